#include "data/tokenizer.h"

#include "core/config.h"

namespace headscope {

void ByteTokenizer::encode(std::string_view text, std::vector<std::uint32_t>& tokens) const {
  tokens.reserve(tokens.size() + text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
}

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name) {
  if (name == "bytes") return std::make_unique<ByteTokenizer>();
  fail_input("{}", unknown_name("tokenizer", name, std::array{"bytes"}));
}

}  // namespace headscope
