#include "experiments/parity.h"

#include "core/error.h"
#include "formats/npz.h"
#include "support/expect_error.h"
#include "support/published_models.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using test::PublishedCase;
using test::PublishedModel;

Parity compared(const std::filesystem::path& model, const std::filesystem::path& reference) {
  Console quiet({.quiet = true});
  return compare_with_reference({.model = model, .reference = reference}, quiet);
}

class PublishedParity : public ::testing::TestWithParam<PublishedCase> {};

// Windows, soft-caps, biases, every scaling of RoPE, both forms of config.json: against transformers.
TEST_P(PublishedParity, HoldsForQueriesKeysEntropyAndLogits) {
  const PublishedModel model(GetParam());
  const Parity parity = compared(model.path(), GetParam().reference());
  EXPECT_TRUE(parity.not_there.empty());
  EXPECT_EQ(parity.rows.size(), 2U * 5 + 1);
  for (const ParityRow& row : parity.rows)
    EXPECT_TRUE(row.within()) << row.name << " of layer " << row.layer << ": " << row.difference << ", allowed "
                              << row.tolerance;
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedParity, ::testing::ValuesIn(test::published_cases()), [](const auto& tested) {
  const PublishedCase& one = tested.param;
  return one.model + "_" + one.variant + (one.form == "json" ? "" : "_v4");
});

class GgufParity : public ::testing::TestWithParam<PublishedCase> {};

// A GGUF file gives the queries and keys of its folder: rows that its format permutes, fused matrices and gains come
// out as they were.
TEST_P(GgufParity, HoldsForQueriesKeysEntropyAndLogits) {
  const Parity parity = compared(GetParam().gguf(), GetParam().reference());
  for (const ParityRow& row : parity.rows)
    EXPECT_TRUE(row.within()) << row.name << " of layer " << row.layer << ": " << row.difference << ", allowed "
                              << row.tolerance;
}

INSTANTIATE_TEST_SUITE_P(Models, GgufParity, ::testing::ValuesIn(test::gguf_cases()),
                         [](const auto& tested) { return tested.param.model; });

// An option that is read wrongly shows: a value beside the right one is above the tolerance.
struct WrongOption {
  const char* model;
  const char* variant;
  const char* what;
  void (*change)(ordered_json& config);
};

TEST(Parity, ShowsAnOptionThatIsALittleWrong) {
  const WrongOption wrong[] = {
      {"llama", "default", "eps", [](auto& c) { c["rms_norm_eps"] = 3e-5; }},
      {"llama", "default", "base", [](auto& c) { c["rope_parameters"]["rope_theta"] = 10100; }},
      {"llama", "linear", "factor", [](auto& c) { c["rope_parameters"]["factor"] = 2.51; }},
      {"llama", "dynamic", "longest", [](auto& c) { c["max_position_embeddings"] = 12; }},
      {"llama", "llama3", "low", [](auto& c) { c["rope_parameters"]["low_freq_factor"] = 1.05; }},
      {"llama", "yarn", "original", [](auto& c) { c["rope_parameters"]["original_max_position_embeddings"] = 512; }},
      {"llama", "yarn_fine", "truncate", [](auto& c) { c["rope_parameters"].erase("truncate"); }},
      {"llama", "yarn_fine", "mscale", [](auto& c) { c["rope_parameters"].erase("mscale"); }},
      {"llama", "longrope", "original", [](auto& c) { c["rope_parameters"]["original_max_position_embeddings"] = 17; }},
      {"mistral", "default", "window", [](auto& c) { c["sliding_window"] = 6; }},
      {"smollm3", "default", "no rope",
       [](auto& c) {
         c["no_rope_layers"] = {1, 1};
       }},
      {"smollm3", "sliding", "layers",
       [](auto& c) {
         c["layer_types"] = {"sliding_attention", "full_attention"};
       }},
      {"qwen2", "sliding", "used", [](auto& c) { c.erase("layer_types"), c["use_sliding_window"] = false; }},
      {"gemma2", "default", "score cap", [](auto& c) { c["attn_logit_softcapping"] = 1.51; }},
      {"gemma2", "default", "logit cap", [](auto& c) { c["final_logit_softcapping"] = 3.01; }},
      {"gemma2", "default", "scale", [](auto& c) { c["query_pre_attn_scalar"] = 11; }},
      {"gemma3_text", "scaled", "own base",
       [](auto& c) { c["rope_parameters"]["sliding_attention"]["rope_theta"] = 310; }},
      {"phi3", "default", "share", [](auto& c) { c["rope_parameters"]["partial_rotary_factor"] = 1.0; }},
      {"gpt_neox", "default", "residual", [](auto& c) { c["use_parallel_residual"] = false; }},
      {"gpt_neox", "odd", "share", [](auto& c) { c["rope_parameters"]["partial_rotary_factor"] = 0.5; }},
      {"llama_tied", "default", "activation", [](auto& c) { c["hidden_act"] = "gelu"; }},
  };
  for (const WrongOption& option : wrong) {
    const PublishedCase one{option.model, option.variant, "json"};
    const PublishedModel model(one, option.change);
    EXPECT_FALSE(compared(model.path(), one.reference()).within()) << option.model << ": " << option.what;
  }
}

TEST(Parity, TolerancesGrowWithTheReferenceAndNanIsNeverWithin) {
  const PublishedCase one{"qwen2", "default", "json"};
  const PublishedModel model(one);
  const Npz reference(one.reference());
  for (const ParityRow& row : compared(model.path(), one.reference()).rows) {
    const NumpyArray array = reference.get(row.name);
    std::vector<float> values(value_count(array.view()));
    read_floats(array.view(), 0, values);
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    const double size = std::max(1.0, std::sqrt(squares / static_cast<double>(values.size())));
    const double limit = row.name == "logits" ? 5e-5 : row.name == "entropy" ? 1e-5 : 2e-5;
    EXPECT_NEAR(row.tolerance, limit * size, 1e-12) << row.name;
  }
  EXPECT_FALSE((ParityRow{"logits", -1, std::nan(""), 1e9}).within());
}

TEST(Parity, RefusesAReferenceThatIsNotOfTheModel) {
  const PublishedModel model({"qwen3", "default", "json"});
  const auto refused = [&](const char* message, const std::filesystem::path& reference) {
    test::expect_error(Fault::input, message, [&] { compared(model.path(), reference); });
  };
  refused("q_pre has shape [2, 1, 4, 18, 8]; the model gives [2, 1, 4, 18, 12]",
          test::published_folder / "qwen2/default.npz");
  const test::TemporaryFolder folder;
  const std::vector<std::int64_t> ids = {1, 61};
  const TensorView tokens{"input_ids", TensorType::i64, {1, 2}, std::as_bytes(std::span(ids))};
  write_npz(folder / "tokens.npz", {{tokens}});
  refused("input_ids holds 61; the model's vocabulary is 61", folder / "tokens.npz");
  const TensorView flat{"input_ids", TensorType::i64, {2}, std::as_bytes(std::span(ids))};
  write_npz(folder / "flat.npz", {{flat}});
  refused("input_ids has shape [2]; expected sequences", folder / "flat.npz");
  const std::vector<std::int64_t> few = {1, 2};
  write_npz(folder / "alone.npz", {{TensorView{"input_ids", TensorType::i64, {1, 2}, std::as_bytes(std::span(few))}}});
  refused("holds nothing to compare; expected one at least of q_pre, k_pre", folder / "alone.npz");
}

}  // namespace
}  // namespace headscope
