// The JSON header of a safetensors file. Its claims are not yet compared with the bytes behind it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors.h"

namespace headscope {

// The limit of the format.
constexpr std::uint64_t longest_safetensors_header = 100'000'000;
constexpr std::string_view metadata_key = "__metadata__";

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // behind the header
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // in order of appearance, names unique
  TensorMetadata metadata;
};

// Throws Error(Fault::input): not JSON, keys that the format does not have or that come twice, values of another kind.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& origin);

}  // namespace headscope
