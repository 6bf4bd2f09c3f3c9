#include "formats/safetensors_header.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/error.h"

namespace headscope {
namespace {

using nlohmann::json;

// Parses the structure of the format only. Anything else ends the parse at once, so that nesting takes no memory. A
// name that comes twice is seen; a JSON object in memory would keep the last value.
class HeaderReader : public nlohmann::json_sax<json> {
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
      if (text == metadata_key) return move_to(Place::metadata);
      header_.entries.emplace_back().name = text;
      seen_ = {};
      return move_to(Place::entry);
    }
    if (place_ == Place::metadata_key) {
      key_ = text;
      if (header_.metadata.contains(text)) fail_input("{}: {} '{}' comes twice", origin_, metadata_key, excerpt(text));
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
    for (int type = 0; type <= static_cast<int>(TensorType::boolean); ++type) {
      if (type_name(static_cast<TensorType>(type)) != text) continue;
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
  bool binary(json::binary_t&) override { fail_value("binary"); }
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
      fail_input("{}: {} holds {}; expected texts by name", origin_, metadata_key, found);
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

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& origin) {
  // The JSON library takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail_input("{}: the header holds a zero byte at its byte {}; copy or write the file again", origin, zero);
  HeaderReader reader(origin);
  json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace headscope
