#include "tokenizer/gguf_words.h"

#include <array>

#include "core/error.h"

namespace headscope {
namespace {

using pre_tokenizer::Behavior;
using pre_tokenizer::ByteLevel;
using WordSteps = std::vector<pre_tokenizer::Step>;

// The patterns of the published tokenizer.json files.
constexpr const char* llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* tekken_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* gpt4o_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* deepseek_v3_pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
// Letters with upper and lower case.
constexpr const char* deepseek_llm_letters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"
    R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
    R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr const char* deepseek_signs =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* deepseek_ideographs = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* three_digits = "[0-9][0-9][0-9]";

void split_at(const char* pattern, WordSteps& steps) {
  steps.emplace_back(pre_tokenizer::Split{TextPattern::expression(pattern), Behavior::isolated});
}

template <const auto&... patterns>
void with_patterns(WordSteps& steps) {
  (split_at(patterns, steps), ...);
  steps.emplace_back(ByteLevel{.add_prefix_space = false, .use_pattern = false});
}

void with_gpt2_pattern(WordSteps& steps) {
  steps.emplace_back(ByteLevel{.add_prefix_space = false});
}

void with_single_digits(WordSteps& steps) {
  steps.emplace_back(pre_tokenizer::digits(/*individual=*/true));
  with_gpt2_pattern(steps);
}

void as_falcon(WordSteps& steps) {
  steps.emplace_back(pre_tokenizer::punctuation(Behavior::contiguous));
  with_gpt2_pattern(steps);
  steps.emplace_back(pre_tokenizer::digits(/*individual=*/false));
  split_at(three_digits, steps);
}

void as_deepseek_v3(WordSteps& steps) {
  for (const char* pattern : {R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)"})
    split_at(pattern, steps);
  with_patterns<deepseek_v3_pattern>(steps);
}

void as_deepseek_llm(WordSteps& steps) {
  for (const char* pattern :
       {R"([\r\n])", deepseek_llm_letters, deepseek_signs, R"(\s+$)", deepseek_ideographs, R"(\p{N}+)"})
    split_at(pattern, steps);
  with_patterns<>(steps);
}

void as_deepseek_coder(WordSteps& steps) {
  for (const char* pattern : {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", deepseek_ideographs, R"(\p{N})"})
    split_at(pattern, steps);
  with_patterns<>(steps);
}

// What llama.cpp does where a file gives no name.
void as_default(WordSteps& steps) {
  for (const char* pattern : {R"([\p{P}\$\+<=>\^~\|]+)", pre_tokenizer::gpt2_pattern, R"(\p{N}+)", three_digits})
    split_at(pattern, steps);
  with_patterns<>(steps);
}

struct NamedWords {
  std::string_view name;
  void (*add)(WordSteps& steps);
  bool nfc = false, ignore_merges = false, add_begin = false;
};

// llama.cpp's names, with what the published tokenizers do. It cuts by simpler patterns in places ('ſ is 's in none of
// them) and does not normalise, so its own ids differ from the model's for some texts.
constexpr auto named_words = std::to_array<NamedWords>({
    {"default", as_default},
    {"gpt-2", with_gpt2_pattern},
    {"phi-2", with_gpt2_pattern},
    {"mpt", with_gpt2_pattern, /*nfc=*/true},   // also Pythia
    {"olmo", with_gpt2_pattern, /*nfc=*/true},  // and GPT-NeoX
    {"smollm", with_single_digits},
    {"starcoder", with_single_digits},
    {"refact", with_single_digits},
    {"command-r", with_single_digits, /*nfc=*/true},
    {"falcon", as_falcon},
    {"llama-bpe", with_patterns<llama3_pattern>, /*nfc=*/false, /*ignore_merges=*/true, /*add_begin=*/true},
    {"llama3", with_patterns<llama3_pattern>, /*nfc=*/false, /*ignore_merges=*/true, /*add_begin=*/true},
    {"llama-v3", with_patterns<llama3_pattern>, /*nfc=*/false, /*ignore_merges=*/true, /*add_begin=*/true},
    {"smaug-bpe", with_patterns<llama3_pattern>, /*nfc=*/false, /*ignore_merges=*/true},  // and SmolLM3
    {"dbrx", with_patterns<llama3_pattern>},                                              // also OLMo 2, Phi-4
    {"glm4", with_patterns<llama3_pattern>},
    {"chatglm-bpe", with_patterns<llama3_pattern>},
    {"qwen2", with_patterns<qwen2_pattern>, /*nfc=*/true},
    {"deepseek-r1-qwen", with_patterns<qwen2_pattern>, /*nfc=*/true},
    {"tekken", with_patterns<tekken_pattern>, /*nfc=*/false, /*ignore_merges=*/true, /*add_begin=*/true},
    {"gpt-4o", with_patterns<gpt4o_pattern>},
    {"llama4", with_patterns<gpt4o_pattern>},
    {"deepseek-llm", as_deepseek_llm},
    {"deepseek-coder", as_deepseek_coder},
    {"deepseek-v3", as_deepseek_v3},
});

}  // namespace

GgufWords gguf_words(std::string_view name, const std::string& origin) {
  std::vector<std::string_view> known;
  for (const NamedWords& words : named_words) {
    known.push_back(words.name);
    if (words.name != name) continue;
    GgufWords made{
        .normalizer = {}, .pre_tokenizer = {}, .ignore_merges = words.ignore_merges, .add_begin = words.add_begin};
    words.add(made.pre_tokenizer);
    if (words.nfc) made.normalizer.emplace_back(NormalForm::nfc);
    return made;
  }
  fail_input(
      "{}: cuts text into words as '{}' (tokenizer.ggml.pre), which is not known; known are {}; give the model's "
      "tokenizer.json instead",
      origin, excerpt(name, 60), fmt::join(known, ", "));
}

}  // namespace headscope
