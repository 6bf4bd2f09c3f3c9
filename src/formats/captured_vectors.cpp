#include "formats/captured_vectors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <numeric>
#include <utility>
#include <system_error>

#include "core/error.h"
#include "formats/captured_footer.h"

namespace headscope {

void* allocate_large(std::size_t bytes) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  void* memory = nullptr;
  if (bytes < 2 * huge_page) {
    memory = std::malloc(bytes);
  } else if (::posix_memalign(&memory, huge_page, bytes) == 0) {
    ::madvise(memory, bytes, MADV_HUGEPAGE);  // one page fault instead of 512; only a hint
  } else {
    memory = nullptr;
  }
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

void free_large(void* memory) noexcept {
  std::free(memory);
}

namespace {

using FileBytes = std::vector<std::byte, UninitialisedAllocator<std::byte>>;

// A bucket is the index of a region of the context: real ones are below 32 (logarithmic) or some thousands (linear).
constexpr std::int64_t largest_bucket = 1'000'000;

// Values decoded at a time: 64 KiB of float32, so that the check for NaN finds them in the cache.
constexpr int batch = 16384;

class OpenFile {
 public:
  // Not blocking: a named pipe would otherwise wait for a writer.
  explicit OpenFile(const std::filesystem::path& file) : fd_(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail_errno(const std::string& origin, std::string_view what) {
  fail_input("{}: cannot {}: {}", origin, what, std::generic_category().message(errno));
}

FileBytes read_file(const std::filesystem::path& file, const std::string& origin) {
  const OpenFile opened(file);
  struct stat status {};
  if (opened.fd() < 0 || ::fstat(opened.fd(), &status) != 0) fail_errno(origin, "open");
  if (S_ISDIR(status.st_mode)) fail_input("{}: is a directory, expected a Parquet file", origin);
  if (!S_ISREG(status.st_mode)) fail_input("{}: is not a regular file, expected a Parquet file", origin);
  FileBytes bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::read(opened.fd(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(origin, "read");
    if (got == 0) fail_input("{}: became shorter while it was read; is it still being written?", origin);
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string hash(std::span<const std::byte> bytes) {
  const auto digest = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

// Runs `body`; whatever goes wrong in it becomes one line with the file and the column.
template <class Body>
void in_column(const std::string& origin, const CapturedColumn& column, Body&& body) {
  try {
    body();
  } catch (const Error&) {
    throw;
  } catch (const ColumnFault& fault) {
    fail_input("{}: column '{}': {}", origin, column.name, fault.what());
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: column '{}': not enough memory for its values", origin, column.name);
  } catch (const std::exception& error) {
    fail_input("{}: column '{}': damaged: {}; copy or write the file again", origin, column.name, one_line(error.what()));
  }
}

// The values of a column without lists. `present` is empty when none is null; a null's value is 0.
template <class Value>
struct FlatValues {
  std::vector<Value> values;
  std::vector<bool> present;

  [[nodiscard]] bool is_null(std::size_t row) const { return !present.empty() && !present[row]; }
};

// Which rows of a page are null; returns how many are not.
std::size_t follow_nulls(const DataPage& page, std::size_t first_row, std::vector<bool>& present) {
  const auto levels = static_cast<std::size_t>(page.levels);
  const auto gap = first_below(page.definition, 1, levels);
  if (gap && present.empty()) present.resize(first_row, true);
  if (present.empty() && !gap) return levels;
  std::size_t count = 0;
  LevelRuns runs(page.definition, 1, levels);
  for (LevelRun run; runs.next(run);) {
    for (std::size_t i = 0; i < run.count; ++i) {
      present.push_back(run.at(i) == 1);
      count += present.back() ? 1 : 0;
    }
  }
  return count;
}

template <class Stored>
auto read_flat(const CapturedColumn& column, const parquet::ReaderProperties& properties) {
  FlatValues<typename PageValues<Stored>::Value> flat;
  for (const auto& chunk : column.chunks) {
    ColumnPages pages(chunk, 0, column.max_definition, properties);
    PageValues<Stored> values(properties.memory_pool());
    const auto on_dictionary = [&](auto bytes, int count) { values.set_dictionary(bytes, count); };
    while (const auto page = pages.next(on_dictionary)) {
      const std::size_t first = flat.values.size();
      const auto levels = static_cast<std::size_t>(page->levels);
      const std::size_t count = column.max_definition > 0 ? follow_nulls(*page, first, flat.present) : levels;
      flat.values.resize(first + levels);
      values.start(*page, static_cast<int>(count));
      values.decode(flat.values.data() + first, static_cast<int>(count));
      // Values lie without gaps in the page: move each to its row, the last one first.
      for (std::size_t row = first + levels, next = first + count; row-- > first && next <= row;) {
        flat.values[row] = flat.present[row] ? flat.values[--next] : 0;
      }
    }
  }
  return flat;
}

// Integers of any width as what they mean: Parquet stores the unsigned ones in signed types.
template <class As, class Value>
std::vector<std::int64_t> integers(const FlatValues<Value>& flat) {
  std::vector<std::int64_t> out(flat.values.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    if (flat.is_null(row)) column_fault("row {} is null, expected an integer", row);
    const auto value = static_cast<As>(flat.values[row]);
    if (!std::in_range<std::int64_t>(value)) column_fault("row {} is {}, too large for a signed integer", row, value);
    out[row] = static_cast<std::int64_t>(value);
  }
  return out;
}

struct Range {
  std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  std::string_view expected;
};

std::vector<std::int64_t> read_integers(const CapturedColumn& column, const Range& range,
                                        const parquet::ReaderProperties& properties, const std::string& origin) {
  std::vector<std::int64_t> out;
  in_column(origin, column, [&] {
    switch (column.type) {
      case CapturedType::int32:
        out = integers<std::int32_t>(read_flat<std::int32_t>(column, properties));
        break;
      case CapturedType::uint32:
        out = integers<std::uint32_t>(read_flat<std::int32_t>(column, properties));
        break;
      case CapturedType::int64:
        out = integers<std::int64_t>(read_flat<std::int64_t>(column, properties));
        break;
      default:
        out = integers<std::uint64_t>(read_flat<std::int64_t>(column, properties));
    }
    const auto outside = [&](std::int64_t value) { return value < range.lowest || value > range.highest; };
    const auto bad = std::find_if(out.begin(), out.end(), outside);
    if (bad != out.end()) column_fault("row {} is {}, expected {}", bad - out.begin(), *bad, range.expected);
  });
  return out;
}

template <class As, class Value>
std::vector<double> windows(const FlatValues<Value>& flat) {
  std::vector<double> out(flat.values.size());
  for (std::size_t row = 0; row < out.size(); ++row) {
    const auto window = static_cast<double>(static_cast<As>(flat.values[row]));
    if (std::isinf(window)) column_fault("row {} is infinite; leave it null where there is no window", row);
    out[row] = flat.is_null(row) ? std::numeric_limits<double>::quiet_NaN() : window;
  }
  return out;
}

std::vector<double> read_windows(const CapturedColumn& column, const parquet::ReaderProperties& properties,
                                 const std::string& origin) {
  std::vector<double> out;
  in_column(origin, column, [&] {
    switch (column.type) {
      case CapturedType::int32:
        out = windows<std::int32_t>(read_flat<std::int32_t>(column, properties));
        break;
      case CapturedType::uint32:
        out = windows<std::uint32_t>(read_flat<std::int32_t>(column, properties));
        break;
      case CapturedType::int64:
        out = windows<std::int64_t>(read_flat<std::int64_t>(column, properties));
        break;
      case CapturedType::uint64:
        out = windows<std::uint64_t>(read_flat<std::int64_t>(column, properties));
        break;
      case CapturedType::float16:
        out = windows<float>(read_flat<half>(column, properties));
        break;
      case CapturedType::float32:
        out = windows<float>(read_flat<float>(column, properties));
        break;
      case CapturedType::float64:
        out = windows<double>(read_flat<double>(column, properties));
    }
  });
  return out;
}

// The exponent of an infinity or a NaN is all ones: adding one to it carries into the sign bit.
std::uint32_t nonfinite(float value) {
  return ((std::bit_cast<std::uint32_t>(value) & 0x7f800000U) + 0x00800000U) & 0x80000000U;
}
std::uint64_t nonfinite(double value) {
  return ((std::bit_cast<std::uint64_t>(value) & 0x7ff0000000000000U) + 0x0010000000000000U) & 0x8000000000000000U;
}

template <class Value>
bool all_finite(const Value* values, std::size_t count) {
  decltype(nonfinite(Value{})) found = 0;  // an OR without branches: the compiler vectorises it
  for (std::size_t i = 0; i < count; ++i) found |= nonfinite(values[i]);
  return found == 0;
}

// What the vector column turned out to be.
struct VectorShape {
  std::size_t components = 0;
  bool finite = true;
};

// The levels of a page: complete rows of equal length without nulls.
void follow_rows(const CapturedColumn& column, const DataPage& page, EqualRows& rows) {
  const auto levels = static_cast<std::size_t>(page.levels);
  const auto gap = first_below(page.definition, column.max_definition, levels);
  rows.follow(page.repetition, gap ? gap->index + 1 : levels);
  if (!gap) return;
  if (gap->level < column.list_definition - 1) column_fault("row {} is null, expected a vector", rows.rows());
  if (gap->level == column.list_definition - 1) column_fault("row {} has no components", rows.rows());
  column_fault("row {}, component {} is null, expected a number", rows.rows(), rows.length() - 1);
}

template <class Stored, class Values>
VectorShape read_vectors(const CapturedColumn& column, const parquet::ReaderProperties& properties, Values& out) {
  std::int64_t total = 0;
  for (const auto& chunk : column.chunks) total += chunk.levels;
  out.resize(static_cast<std::size_t>(total));
  auto* next = out.data();
  VectorShape shape;
  EqualRows rows;
  for (const auto& chunk : column.chunks) {
    ColumnPages pages(chunk, column.max_repetition, column.max_definition, properties);
    PageValues<Stored> values(properties.memory_pool());
    const auto on_dictionary = [&](auto bytes, int count) { values.set_dictionary(bytes, count); };
    const std::size_t before = rows.rows();
    rows.start_chunk();
    while (const auto page = pages.next(on_dictionary)) {
      follow_rows(column, *page, rows);
      values.start(*page, page->levels);
      for (int done = 0; done < page->levels; done += batch) {
        const int count = std::min(batch, page->levels - done);
        values.decode(next, count);
        shape.finite &= all_finite(next, static_cast<std::size_t>(count));
        next += count;
      }
    }
    rows.end_chunk();
    if (rows.rows() - before != static_cast<std::size_t>(chunk.rows)) {
      column_fault("damaged: {} rows where the footer promises {}", rows.rows() - before, chunk.rows);
    }
  }
  shape.components = rows.components();
  return shape;
}

template <class Values>
void refuse_nonfinite(const Values& values, std::size_t dim, const std::string& origin) {
  const auto bad = std::find_if(values.begin(), values.end(), [](auto value) { return nonfinite(value) != 0; });
  const auto at = static_cast<std::size_t>(bad - values.begin());
  fail_input("{}: column 'vector': row {}, component {} is {}, expected a finite number", origin, at / dim, at % dim,
             std::isnan(*bad) ? "NaN" : "infinite");
}

// Moves the kept rows of a [rows, width] array to its front.
template <class Values>
void keep_rows(Values& values, const std::vector<std::size_t>& kept, std::size_t width) {
  if (values.empty()) return;
  auto out = values.begin();
  for (const std::size_t row : kept) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(row * width);
    out = from == out ? out + static_cast<std::ptrdiff_t>(width) : std::copy_n(from, width, out);
  }
  values.resize(kept.size() * width);
}

void drop_nonfinite(CapturedVectors& captured, const std::string& origin) {
  std::vector<std::size_t> kept;
  const std::size_t dim = captured.dim;
  for (std::size_t row = 0; row < captured.rows; ++row) {
    const bool finite = captured.vector64.empty() ? all_finite(&captured.vector32[row * dim], dim)
                                                  : all_finite(&captured.vector64[row * dim], dim);
    if (finite) kept.push_back(row);
  }
  if (kept.empty()) fail_input("{}: column 'vector': every row has a NaN or an infinity, no rows are left", origin);
  keep_rows(captured.vector32, kept, dim);
  keep_rows(captured.vector64, kept, dim);
  keep_rows(captured.bucket, kept, 1);
  keep_rows(captured.position, kept, 1);
  keep_rows(captured.example_id, kept, 1);
  keep_rows(captured.sliding_window, kept, 1);
  captured.dropped_nonfinite = captured.rows - kept.size();
  captured.rows = kept.size();
}

parquet::ReaderProperties reader_properties(CappedPool& pool, std::size_t file_size) {
  parquet::ReaderProperties properties(&pool);
  properties.set_page_checksum_verification(true);
  // Texts and lists that a header claims are refused before memory is taken for them. The second limit also bounds the
  // nesting of the schema, which libparquet follows by recursion.
  properties.set_thrift_string_size_limit(static_cast<std::int32_t>(std::min<std::size_t>(file_size, 1 << 26)));
  properties.set_thrift_container_size_limit(10'000);
  return properties;
}

}  // namespace

CapturedVectors parse_captured_vectors(std::span<const std::byte> bytes, const std::string& origin,
                                       const CaptureReadOptions& options) {
  CappedPool pool(decoded_limit(bytes.size()));
  const auto properties = reader_properties(pool, bytes.size());
  const auto file =
      read_captured_footer({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, origin, properties);

  CapturedVectors captured;
  captured.rows = static_cast<std::size_t>(file.rows);
  captured.bucket = read_integers(
      file.bucket, {0, largest_bucket, "the index of a region of the context, 0 to 1000000"}, properties, origin);
  captured.position =
      read_integers(file.position, {.lowest = 0, .expected = "a token position, at least 0"}, properties, origin);
  if (file.example_id) {
    captured.example_id = read_integers(*file.example_id, {}, properties, origin);
  } else {
    captured.example_id.resize(captured.rows);
    std::iota(captured.example_id.begin(), captured.example_id.end(), std::int64_t{0});
  }
  if (file.sliding_window) captured.sliding_window = read_windows(*file.sliding_window, properties, origin);

  VectorShape shape;
  in_column(origin, file.vector, [&] {
    if (file.vector.type == CapturedType::float16) {
      shape = read_vectors<half>(file.vector, properties, captured.vector32);
    } else if (file.vector.type == CapturedType::float32) {
      shape = read_vectors<float>(file.vector, properties, captured.vector32);
    } else {
      shape = read_vectors<double>(file.vector, properties, captured.vector64);
    }
  });
  captured.dim = shape.components;
  if (!shape.finite && options.drop_nonfinite) {
    drop_nonfinite(captured, origin);
  } else if (!shape.finite) {
    captured.vector64.empty() ? refuse_nonfinite(captured.vector32, captured.dim, origin)
                              : refuse_nonfinite(captured.vector64, captured.dim, origin);
  }
  captured.content_hash = hash(bytes);
  return captured;
}

CapturedVectors read_captured_vectors(const std::filesystem::path& file, const CaptureReadOptions& options) {
  const std::string origin = file.string();
  return parse_captured_vectors(read_file(file, origin), origin, options);
}

}  // namespace headscope
