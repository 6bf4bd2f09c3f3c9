#include "data/language.h"

#include <array>
#include <cmath>

#include "core/mixed_seed.h"
#include "data/tokenizer.h"

namespace headscope {

LanguageDocument Language::document(std::uint64_t index) const {
  RandomChoices choices{NumpyGenerator(mixed_seed(seed_, index))};
  LanguageDocument document;
  document.text = grammar_.document(choices);
  document.nats = choices.nats();
  return document;
}

double language_unigram_entropy() {
  constexpr std::uint64_t documents = 4096;
  constexpr std::uint64_t seed = 0x5eed;  // not one that a run would use
  const Language language(seed);
  std::array<double, ByteTokenizer::size> counts{};
  double tokens = 0;
  for (std::uint64_t i = 0; i < documents; ++i) {
    const LanguageDocument document = language.document(i);
    for (const char c : document.text) ++counts[static_cast<unsigned char>(c)];
    ++counts[ByteTokenizer::start];
    ++counts[ByteTokenizer::end];
    tokens += static_cast<double>(document.text.size() + 2);
  }
  double entropy = 0;
  for (const double count : counts)
    if (count > 0) entropy -= count / tokens * std::log(count / tokens);
  return entropy;
}

}  // namespace headscope
