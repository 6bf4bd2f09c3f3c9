#include "formats/parquet_table.h"

#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/arrow_table.h"
#include "formats/part_table.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Tables = std::vector<std::shared_ptr<arrow::Table>>;

// Rows of one row group: large enough to compress well, small enough to be joined in memory.
constexpr std::int64_t group_rows = 1 << 20;

// What goes wrong in a file that is read, in one line with its name.
template <class Body>
auto reading(const fs::path& file, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail_runtime("{}: not enough memory for its rows", file.string());
  } catch (const std::exception& error) {
    fail_input("{}: is damaged, or not a Parquet table: {}", file.string(), error.what());
  }
}

// What goes wrong while writing and is not yet an Error.
template <class Body>
auto writing(const std::string& name, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail_runtime("cannot write {}: {}", name, error.what());
  }
}

// Where the writer of Arrow writes to: our atomic file.
class AtomicSink : public arrow::io::OutputStream {
 public:
  explicit AtomicSink(AtomicFile& file) : file_(file) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  [[nodiscard]] bool closed() const override { return closed_; }
  [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return file_.size(); }
  arrow::Status Write(const void* data, std::int64_t size) override {
    file_.write({static_cast<const char*>(data), static_cast<std::size_t>(size)});
    return arrow::Status::OK();
  }
  using arrow::io::OutputStream::Write;

 private:
  AtomicFile& file_;
  bool closed_ = false;
};

std::unique_ptr<parquet::arrow::FileWriter> open_writer(const std::shared_ptr<arrow::Schema>& schema,
                                                        std::shared_ptr<arrow::io::OutputStream> sink) {
  const auto properties = parquet::WriterProperties::Builder()
                              .compression(arrow::Compression::ZSTD)
                              ->max_row_group_length(group_rows)
                              ->enable_page_checksum()
                              ->build();
  return value_of(parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), std::move(sink), properties));
}

std::unique_ptr<parquet::arrow::FileReader> open_reader(const fs::path& file) {
  if (!fs::exists(file)) fail_input("cannot read {}: No such file or directory", file.string());
  auto source = value_of(arrow::io::ReadableFile::Open(file.string()));
  parquet::ReaderProperties properties(arrow::default_memory_pool());
  properties.set_page_checksum_verification(true);  // zstd alone lets a flipped bit through as another number
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(std::move(source), properties));
  return value_of(builder.Build());
}

std::shared_ptr<arrow::Table> read_arrow(const fs::path& file) {
  return reading(file, [&] {
    std::shared_ptr<arrow::Table> table;
    check(open_reader(file)->ReadTable(&table));
    return table;
  });
}

std::shared_ptr<arrow::Table> read_like(const fs::path& file, const std::shared_ptr<arrow::Schema>& schema) {
  auto table = read_arrow(file);
  if (schema != nullptr && !table->schema()->Equals(*schema, /*check_metadata=*/false))
    fail_input("{}: its columns are not those of the first part", file.string());
  return table;
}

// The file, or the parts of the folder.
std::vector<fs::path> files_of(const fs::path& file_or_folder) {
  const fs::path place = part_folder(file_or_folder);
  return fs::is_directory(place) ? part_files(place) : std::vector{place};
}

// Places of columns by name.
std::vector<int> column_places(const fs::path& file, const arrow::Schema& schema,
                               const std::vector<std::string>& columns) {
  std::vector<int> places;
  for (const std::string& column : columns) {
    places.push_back(schema.GetFieldIndex(column));
    if (places.back() < 0) fail_input("{}: has no column '{}'", file.string(), column);
  }
  return places;
}

// Rows that wait until they fill a group.
class Joined {
 public:
  Joined(AtomicFile& file, const std::shared_ptr<arrow::Schema>& schema)
      : writer_(open_writer(schema, std::make_shared<AtomicSink>(file))) {}

  void add(const std::shared_ptr<arrow::Table>& rows) {
    waiting_.push_back(rows);
    waiting_rows_ += rows->num_rows();
    if (waiting_rows_ >= group_rows) flush(waiting_rows_ / group_rows * group_rows);
  }

  void finish() {
    flush(waiting_rows_);
    check(writer_->Close());
  }

 private:
  // Combined: pages end where rows do not tell, should a column consist of several pieces.
  void flush(std::int64_t rows) {
    if (rows == 0) return;
    const auto all = value_of(arrow::ConcatenateTables(waiting_));
    check(writer_->WriteTable(*value_of(all->Slice(0, rows)->CombineChunks()), group_rows));
    waiting_ = {all->Slice(rows)};
    waiting_rows_ -= rows;
  }

  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  Tables waiting_;
  std::int64_t waiting_rows_ = 0;
};

}  // namespace

std::string to_parquet(const Table& table) {
  return writing("a table as Parquet", [&] {
    const auto rows = arrow_table(table);
    const auto sink = value_of(arrow::io::BufferOutputStream::Create());
    const auto writer = open_writer(rows->schema(), sink);
    check(writer->WriteTable(*rows, group_rows));
    check(writer->Close());
    return value_of(sink->Finish())->ToString();
  });
}

void join_parquet(const fs::path& out, const std::vector<fs::path>& files, std::int64_t rows) {
  HEADSCOPE_CHECK(!files.empty(), "nothing to join in {}", out.string());
  AtomicFile file(out);
  std::shared_ptr<arrow::Schema> schema;
  std::unique_ptr<Joined> joined;
  for (const fs::path& name : files) {
    auto part = read_like(name, schema);
    if (part->num_rows() > rows) part = part->Slice(0, rows);
    rows -= part->num_rows();
    writing(out.string(), [&] {
      if (schema == nullptr) {
        schema = part->schema();
        joined = std::make_unique<Joined>(file, schema);
      }
      joined->add(part);
    });
  }
  writing(out.string(), [&] { joined->finish(); });
  file.commit();
}

std::int64_t parquet_rows(const fs::path& file) {
  return reading(file, [&] { return open_reader(file)->parquet_reader()->metadata()->num_rows(); });
}

Table read_parquet(const fs::path& file_or_folder) {
  const std::vector<fs::path> files = files_of(file_or_folder);
  Table table(file_or_folder.string());
  if (files.empty()) return table;
  Tables parts;
  for (const fs::path& file : files) parts.push_back(read_like(file, parts.empty() ? nullptr : parts[0]->schema()));
  return reading(file_or_folder, [&] {
    const auto all = value_of(arrow::ConcatenateTables(parts));
    add_columns(table, *all);
    return std::move(table);
  });
}

void scan_parquet(const fs::path& file_or_folder, const std::vector<std::string>& columns,
                  const std::function<void(const Table&)>& visit) {
  for (const fs::path& file : files_of(file_or_folder)) {
    const auto reader = reading(file, [&] { return open_reader(file); });
    for (int group = 0; group < reader->num_row_groups(); ++group) {
      Table table(file.string());
      reading(file, [&] {
        std::shared_ptr<arrow::Schema> schema;
        check(reader->GetSchema(&schema));
        std::shared_ptr<arrow::Table> rows;
        check(reader->ReadRowGroup(group, column_places(file, *schema, columns), &rows));
        add_columns(table, *rows);
      });
      visit(table);
    }
  }
}

}  // namespace headscope
