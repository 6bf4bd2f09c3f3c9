// A GGUF file as a published model: its metadata in the words of config.json, and a row of architectures.h with the
// names that its tensors have.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "formats/gguf.h"
#include "model/architectures.h"

namespace headscope {

struct GgufModel {
  nlohmann::json options = {};
  Architecture architecture = {};
  std::set<std::string, std::less<>> read_tensors = {};  // those that hold options: factors of RoPE
};

// Throws Error(Fault::input) that lists the known architectures, or names the key that is missing or cannot be
// computed.
GgufModel describe_gguf(const Gguf& file);

}  // namespace headscope
