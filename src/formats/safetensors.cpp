#include "formats/safetensors.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/error.h"
#include "formats/byte_reader.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

// The limit of the format for the header.
constexpr std::uint64_t longest_safetensors_header = 100'000'000;
constexpr std::string_view metadata_member = "__metadata__";

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // behind the header
};

// The JSON header of a file. Its claims are not yet compared with the bytes behind it.
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in order of appearance, names unique
  TensorMetadata metadata;
};

// Parses the structure of the format only. Anything else ends the parse at once, so that nesting takes no memory. A
// name that comes twice is seen; a JSON object in memory would keep the last value.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& origin) : origin_(origin) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::file:
        return move_to(Place::name);
      case Place::entry:
        return move_to(Place::field);
      case Place::metadata:
        return move_to(Place::metadata_key);
      default:
        fail_value("an object");
    }
  }

  bool key(std::string& text) override {
    if (place_ == Place::name) {
      if (!names_.insert(text).second) fail_input("{}: tensor '{}' comes twice", origin_, excerpt(text));
      if (text == metadata_member) return move_to(Place::metadata);
      header_.entries.emplace_back().name = text;
      seen_ = {};
      return move_to(Place::entry);
    }
    if (place_ == Place::metadata_key) {
      key_ = text;
      if (header_.metadata.contains(text))
        fail_input("{}: {} '{}' comes twice", origin_, metadata_member, excerpt(text));
      return move_to(Place::metadata_value);
    }
    return begin_field(text);
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(key_, text);
      return move_to(Place::metadata_key);
    }
    if (place_ != Place::type) fail_value("text");
    for (int type = 0; type < tensor_types; ++type) {
      if (type_name(static_cast<TensorType>(type)) != text || is_quantised(static_cast<TensorType>(type))) continue;
      entry().type = static_cast<TensorType>(type);
      return move_to(Place::field);
    }
    fail_input("{}: tensor '{}' has the unknown type '{}'", origin_, excerpt(entry().name), excerpt(text));
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape) return move_to(Place::dimension);
    if (place_ == Place::offsets) return move_to(Place::offset);
    fail_value("a list");
  }

  bool end_array() override {
    if (place_ == Place::offset && offsets_ != 2) fail_value(fmt::format("{} offsets", offsets_));
    return move_to(Place::field);
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::dimension) {
      constexpr std::size_t most_dimensions = 64;  // PyTorch's limit
      if (value > std::numeric_limits<std::int64_t>::max()) fail_value(fmt::format("the dimension {}", value));
      if (entry().shape.size() == most_dimensions) fail_value("more than 64 dimensions");
      entry().shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ != Place::offset) fail_value(fmt::format("the number {}", value));
    if (offsets_ < 2) (offsets_ == 0 ? entry().begin : entry().end) = value;
    ++offsets_;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::field) {
      if (!seen_.type || !seen_.shape || !seen_.offsets)
        fail_input("{}: tensor '{}' lacks dtype, shape or data_offsets", origin_, excerpt(entry().name));
      return move_to(Place::name);
    }
    return move_to(place_ == Place::metadata_key ? Place::name : Place::end);
  }

  bool null() override { fail_value("null"); }
  bool boolean(bool) override { fail_value("true or false"); }
  bool number_integer(std::int64_t value) override { fail_value(fmt::format("the number {}", value)); }
  bool number_float(double, const std::string& text) override { fail_value("the number " + excerpt(text)); }
  bool binary(nlohmann::json::binary_t&) override { fail_value("binary"); }
  bool parse_error(std::size_t place, const std::string&, const nlohmann::detail::exception&) override {
    fail_input("{}: the header is not valid JSON at its byte {}; copy or write the file again", origin_, place);
  }

 private:
  // What is expected next.
  enum class Place {
    file,
    name,
    entry,
    field,
    type,
    shape,
    dimension,
    offsets,
    offset,
    metadata,
    metadata_key,
    metadata_value,
    end
  };
  struct Fields {
    bool type = false, shape = false, offsets = false;
  };

  TensorEntry& entry() { return header_.entries.back(); }

  bool move_to(Place place) {
    place_ = place;
    return true;
  }

  bool begin_field(const std::string& text) {
    offsets_ = 0;
    if (text == "dtype" && !std::exchange(seen_.type, true)) return move_to(Place::type);
    if (text == "shape" && !std::exchange(seen_.shape, true)) return move_to(Place::shape);
    if (text == "data_offsets" && !std::exchange(seen_.offsets, true)) return move_to(Place::offsets);
    fail_input("{}: tensor '{}' has an unexpected '{}'; expected dtype, shape, data_offsets once each", origin_,
               excerpt(entry().name), excerpt(text));
  }

  [[noreturn]] void fail_value(const std::string& found) {
    if (place_ == Place::metadata || place_ == Place::metadata_value)
      fail_input("{}: {} holds {}; expected texts by name", origin_, metadata_member, found);
    if (place_ == Place::file || place_ == Place::name)
      fail_input("{}: the header is {}; expected an object of tensors", origin_, found);
    const char* expected = place_ == Place::entry  ? "an object with dtype, shape, data_offsets"
                           : place_ == Place::type ? "the name of a type as dtype"
                           : place_ == Place::shape || place_ == Place::dimension
                               ? "whole numbers, not negative, as shape"
                               : "two whole numbers as data_offsets";
    fail_input("{}: tensor '{}' holds {}; expected {}", origin_, excerpt(entry().name), found, expected);
  }

  const std::string& origin_;
  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  Place place_ = Place::file;
  Fields seen_;
  int offsets_ = 0;  // of the entry, so far
  std::string key_;  // of the metadata
};

// Throws Error(Fault::input): not JSON, keys that the format does not have or that come twice, values of another kind.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& origin) {
  // The JSON library takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail_input("{}: the header holds a zero byte at its byte {}; copy or write the file again", origin, zero);
  HeaderReader reader(origin);
  nlohmann::json::sax_parse(text, &reader);
  return reader.take();
}

// Length and JSON, padded with spaces so that the values start at a multiple of 8.
std::string header_bytes(const std::filesystem::path& file, std::span<const TensorView> tensors,
                         const TensorMetadata& metadata) {
  // Appended, not looked up: an ordered object compares a new key with all others.
  nlohmann::ordered_json::object_t header;
  if (!metadata.empty()) header.emplace_back(metadata_member, metadata);
  std::set<std::string_view> names = {metadata_member};
  std::uint64_t end = 0;
  for (const TensorView& tensor : tensors) {
    HEADSCOPE_CHECK(names.insert(tensor.name).second, "{}: tensor '{}' comes twice", file.string(), tensor.name);
    const auto size = byte_size(tensor.type, tensor.shape);
    HEADSCOPE_CHECK(!is_quantised(tensor.type) && size, "{}: tensor '{}' {} of {} has no size", file.string(),
                    tensor.name, shape_text(tensor.shape), type_name(tensor.type));
    const std::uint64_t begin = end;
    end += *size;
    header.emplace_back(
        tensor.name, nlohmann::ordered_json{
                         {"dtype", type_name(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}});
  }
  std::string json;
  try {
    json = nlohmann::ordered_json(std::move(header)).dump();
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
  if (text_of(bytes).starts_with("version https://git-lfs"))
    fail_input("{}: is a pointer of Git LFS, not the file itself; run `git lfs pull` in its folder", origin);
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

std::string write_safetensors(const std::filesystem::path& file, std::span<const TensorView> tensors,
                              const TensorMetadata& metadata) {
  const std::string header = header_bytes(file, tensors, metadata);
  for (const TensorView& tensor : tensors)
    HEADSCOPE_CHECK(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
                    "{}: tensor '{}' {} of {} has {} bytes", file.string(), tensor.name, shape_text(tensor.shape),
                    type_name(tensor.type), tensor.bytes.size());
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

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& file, std::span<const TensorView> tensors,
                                     const TensorMetadata& metadata)
    : file_(file) {
  const std::string header = header_bytes(file, tensors, metadata);
  file_.write(header);
  begins_ = {header.size()};
  for (const TensorView& tensor : tensors) begins_.push_back(begins_.back() + *byte_size(tensor.type, tensor.shape));
}

void SafetensorsWriter::write(std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t begin = begins_.at(tensor) + offset;
  HEADSCOPE_CHECK(begin + bytes.size() <= begins_.at(tensor + 1), "tensor {}: {} bytes at {}", tensor, bytes.size(),
                  offset);
  file_.write_at(text_of(bytes), static_cast<std::int64_t>(begin));
}

void SafetensorsWriter::commit() {
  const auto end = static_cast<std::int64_t>(begins_.back());
  if (file_.size() < end) file_.write_at(std::string_view("\0", 1), end - 1);
  file_.commit();
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
      fail(fmt::format("has {} bytes; {} of shape {} takes another number", entry.end - entry.begin,
                       type_name(entry.type), shape_text(entry.shape)));
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
