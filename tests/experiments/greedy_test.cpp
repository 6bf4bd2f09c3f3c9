// A real model goes on with a text as it does in transformers: what is silently wrong anywhere between a file and the
// logits shows as nonsense.
#include <gtest/gtest.h>

#include "model/load.h"
#include "support/real_model.h"
#include "tokenizer/tokenizer_json.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// The text that follows, of the likeliest token each time.
std::string continued(const Decoder& model, Tokenizer& tokenizer, const std::string& prompt, int tokens) {
  const at::NoGradGuard no_gradients;
  std::vector<std::uint32_t> ids = tokenizer.encode(prompt, {.add_special = false});
  const std::size_t given = ids.size();
  for (int i = 0; i < tokens; ++i) {
    const at::Tensor tokens_bt = at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).unsqueeze(0);
    const at::Tensor hidden_btm = final_hidden(model, tokens_bt, at::kFloat);
    const at::Tensor logits_v = next_token_logits(model, hidden_btm.select(1, hidden_btm.size(1) - 1)).squeeze(0);
    ids.push_back(static_cast<std::uint32_t>(logits_v.argmax().item<std::int64_t>()));
  }
  return tokenizer.decode(std::span(ids).subspan(given), /*skip_special=*/false);
}

struct Continuation {
  const char* prompt;
  const char* text;
};

// Made by transformers 5.22.2 in float32 (generate with do_sample=False, max_new_tokens=12, eos_token_id=None), of the
// folder, whose weights are rounded to bfloat16, and of a folder in float32 (real_model.py --dtype f32), which has the
// weights of the GGUF file: both go on alike. Everywhere the likeliest token is ahead of the next one by 0.02 or more;
// two programs differ by 1e-4. With half the base of RoPE the last one differs, with a tenth all but one do.
constexpr std::array<Continuation, 5> expected = {{
    {"The capital of France is", " Paris.\n\nThe answer is: 201"},
    {"Water boils at a temperature of", " around 1,000°C, which is"},
    {"Once upon a time, there was a little", " girl named Emma who loved to play in the sun. She"},
    {"def add(a, b):\n    return", " a + b\n\n# Example usage:\nadd_"},
    {"Attention is a function of queries, keys and values. Every query is compared with every key, and the result says "
     "how much of each value is taken. A head that looks at the first token only is called",
     " a head.\n\nA head is a function of queries"},
}};

void expect_continued(const fs::path& place) {
  const LoadedModel loaded = load_model(place, at::kCPU);
  Tokenizer tokenizer = open_tokenizer(place);
  for (const auto& [prompt, text] : expected) EXPECT_EQ(continued(loaded.model, tokenizer, prompt, 12), text) << prompt;
}

TEST(RealModel, GoesOnWithATextAsInTransformers) {
  HEADSCOPE_NEEDS_REAL_MODEL();
  expect_continued(test::real_models() / "smollm2");
}

TEST(RealModel, GoesOnWithATextFromAGgufFile) {
  HEADSCOPE_NEEDS_REAL_MODEL();
  expect_continued(test::real_models() / "smollm2.gguf");
}

}  // namespace
}  // namespace headscope
