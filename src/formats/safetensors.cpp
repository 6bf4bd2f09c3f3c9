#include "formats/safetensors.h"

#include <array>
#include <bit>
#include <cstring>
#include <set>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/error.h"
#include "formats/content_hash.h"
#include "formats/safetensors_header.h"

namespace headscope {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are our views of it");

struct TypeFacts {
  std::string_view name;
  std::size_t size;
};

const TypeFacts& facts(TensorType type) {
  static constexpr std::array<TypeFacts, 10> all = {{{"F64", 8},
                                                     {"F32", 4},
                                                     {"F16", 2},
                                                     {"BF16", 2},
                                                     {"I64", 8},
                                                     {"I32", 4},
                                                     {"I16", 2},
                                                     {"I8", 1},
                                                     {"U8", 1},
                                                     {"BOOL", 1}}};
  return all.at(static_cast<std::size_t>(type));
}

// Nothing when it does not fit 64 bits.
std::optional<std::uint64_t> byte_size(TensorType type, const std::vector<std::int64_t>& shape) {
  std::uint64_t size = facts(type).size;
  for (const std::int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(size, static_cast<std::uint64_t>(dimension), &size)) return {};
  return size;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Length and JSON, padded with spaces so that the values start at a multiple of 8.
std::string header_bytes(const std::filesystem::path& file, std::span<const TensorView> tensors,
                         const TensorMetadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(metadata_key)] = metadata;
  std::set<std::string_view> names = {metadata_key};
  std::uint64_t end = 0;
  for (const TensorView& tensor : tensors) {
    HEADSCOPE_CHECK(names.insert(tensor.name).second, "{}: tensor '{}' comes twice", file.string(), tensor.name);
    HEADSCOPE_CHECK(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
                    "{}: tensor '{}' [{}] of {} has {} bytes", file.string(), tensor.name,
                    fmt::join(tensor.shape, ", "), type_name(tensor.type), tensor.bytes.size());
    const std::uint64_t begin = end;
    end += tensor.bytes.size();
    header[tensor.name] = {{"dtype", type_name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string json;
  try {
    json = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail_runtime("cannot write {}: a tensor's name or a text of its metadata is not UTF-8", file.string());
  }
  json.append((8 - json.size() % 8) % 8, ' ');
  const std::uint64_t length = json.size();
  HEADSCOPE_CHECK(length <= longest_safetensors_header, "{}: a header of {} bytes", file.string(), length);
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json;
}

std::string_view header_text(std::span<const std::byte> bytes, const std::string& origin) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length)
    fail_input("{}: {} bytes are too few for a safetensors file; copy or write it again", origin, bytes.size());
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > longest_safetensors_header)
    fail_input("{}: not a safetensors file: it claims a header of {} bytes; at most {} are allowed", origin, length,
               longest_safetensors_header);
  if (length > bytes.size() - sizeof length)
    fail_input("{}: cut short or not a safetensors file: it claims a header of {} bytes and has {} in all", origin,
               length, bytes.size());
  const std::string_view header = text_of(bytes.subspan(sizeof length, length));
  if (!header.starts_with('{')) fail_input("{}: not a safetensors file: its header does not start with '{{'", origin);
  return header;
}

}  // namespace

std::string_view type_name(TensorType type) {
  return facts(type).name;
}

std::string write_safetensors(const std::filesystem::path& file, std::span<const TensorView> tensors,
                              const TensorMetadata& metadata) {
  const std::string header = header_bytes(file, tensors, metadata);
  AtomicFile out(file);
  ContentHash hash;
  const auto write = [&](std::span<const std::byte> bytes) {
    // In pieces, so that they are hashed while the processor's cache still holds them.
    constexpr std::size_t piece = std::size_t{1} << 20;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece, bytes.size()))) {
      const auto part = bytes.first(std::min(piece, bytes.size()));
      out.write(text_of(part));
      hash.add(part);
    }
  };
  write(std::as_bytes(std::span(header)));
  for (const TensorView& tensor : tensors) write(tensor.bytes);
  out.commit();
  return hash.hex();
}

SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& origin) {
  const std::string_view text = header_text(bytes, origin);
  SafetensorsHeader header = parse_safetensors_header(text, origin);
  const std::span<const std::byte> values = bytes.subspan(sizeof(std::uint64_t) + text.size());
  // Tensors without values share their offset with a neighbour: equal begins are ordered by their ends.
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  SafetensorsContent content{{}, std::move(header.metadata)};
  content.tensors.reserve(header.entries.size());
  std::uint64_t reached = 0;
  for (TensorEntry& entry : header.entries) {
    const auto fail = [&](const std::string& what) {
      fail_input("{}: tensor '{}' {}; copy or write the file again", origin, excerpt(entry.name), what);
    };
    if (entry.end < entry.begin) fail(fmt::format("ends at byte {}, before its start {}", entry.end, entry.begin));
    if (entry.end > values.size())
      fail(fmt::format("ends at byte {}; the file has {} behind its header", entry.end, values.size()));
    if (entry.begin != reached)
      fail(fmt::format("starts at byte {}, the tensors before it end at {}", entry.begin, reached));
    if (byte_size(entry.type, entry.shape) != entry.end - entry.begin)
      fail(fmt::format("has {} bytes; {} of shape [{}] takes another number", entry.end - entry.begin,
                       type_name(entry.type), fmt::join(entry.shape, ", ")));
    reached = entry.end;
    content.tensors.push_back({std::move(entry.name), entry.type, std::move(entry.shape),
                               values.subspan(entry.begin, entry.end - entry.begin)});
  }
  if (reached != values.size())
    fail_input("{}: {} bytes follow the last tensor; copy or write the file again", origin, values.size() - reached);
  return content;
}

Safetensors::Safetensors(std::filesystem::path file)
    : path_(std::move(file)), file_(path_), content_(parse_safetensors(file_.bytes(), path_.string())) {
  for (std::size_t i = 0; i < content_.tensors.size(); ++i) places_.emplace(content_.tensors[i].name, i);
}

const TensorView& Safetensors::get(std::string_view name) const {
  if (const auto place = places_.find(name); place != places_.end()) return content_.tensors[place->second];
  std::vector<std::string> names;
  for (const TensorView& tensor : content_.tensors) names.push_back(tensor.name);
  const std::string nearest = nearest_name(name, names);
  fail_input("{}: there is no tensor '{}'{}", path_.string(), excerpt(name),
             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", excerpt(nearest)));
}

std::string Safetensors::hash() const {
  return content_hash(file_.bytes());
}

}  // namespace headscope
