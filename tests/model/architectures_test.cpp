#include "model/architectures.h"

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "formats/safetensors.h"
#include "model/load.h"
#include "support/expect_error.h"
#include "support/published_models.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using test::expect_error;
using test::PublishedCase;
using test::PublishedModel;

LoadedModel opened(const fs::path& folder) {
  return load_model(folder, at::kCPU);
}

// A model with one option changed is refused, and the message names the option.
template <class Change>
void expect_refused(const char* model, const char* message, Change change) {
  const PublishedModel changed({model, "default", "json"}, change);
  expect_error(Fault::input, message, [&] { opened(changed.path()); });
}

TEST(Architecture, ParametersAreCountedAsTheModelHasThem) {
  for (const PublishedCase& one : test::published_cases()) {
    const PublishedModel published(one);
    const LoadedModel model = opened(published.path());
    std::int64_t total = 0;
    for_each_parameter(model.model,
                       [&](const std::string&, ParameterKind, const at::Tensor& value) { total += value.numel(); });
    EXPECT_EQ(count_parameters(model.model.config).total, total) << one.model;
    EXPECT_FALSE(model.model.embedding.requires_grad());
  }
}

TEST(Architecture, AnUnknownOneIsRefusedWithThoseThatAreKnown) {
  expect_refused("llama",
                 "model_type is 'mamba'; known are llama, mistral, smollm3, qwen2, qwen3, olmo2, gemma2, gemma3_text, "
                 "gemma3, phi3, gpt_neox, glm4",
                 [](auto& c) { c["model_type"] = "mamba"; });
  expect_refused("llama", "model_type is missing", [](auto& c) { c.erase("model_type"); });
  expect_refused("llama", "model_type is 7; expected text", [](auto& c) { c["model_type"] = 7; });
}

TEST(Architecture, AValueThatWeCannotComputeIsRefusedByTheNameOfItsOption) {
  expect_refused("llama", R"(hidden_act is "mish"; known are silu)", [](auto& c) { c["hidden_act"] = "mish"; });
  expect_refused("gemma2", R"(hidden_activation is "mish")", [](auto& c) { c["hidden_activation"] = "mish"; });
  expect_refused("llama", R"(rope_parameters.rope_type is "axial"; known are default, linear, dynamic, llama3)",
                 [](auto& c) { c["rope_parameters"]["rope_type"] = "axial"; });
  expect_refused("llama", R"(rope_scaling.type is "ntk"; known are)", [](auto& c) {
    c["rope_scaling"] = {{"type", "ntk"}};
  });
  expect_refused("phi3", R"(rope_parameters.rope_type is "linear"; known are default and longrope)",
                 [](auto& c) { c["rope_parameters"]["rope_type"] = "linear"; });
  expect_refused("llama", "rope_scaling.factor is missing", [](auto& c) { c["rope_scaling"] = {{"type", "linear"}}; });
  expect_refused("llama", "rope_scaling.long_factor is [1.0,2.0]; expected a list of 6 numbers", [](auto& c) {
    c["rope_scaling"] = {{"type", "longrope"}, {"short_factor", {1., 1., 1., 1., 1., 1.}}, {"long_factor", {1., 2.}}};
  });
  expect_refused("phi3", "short_mscale is 1.2", [](auto& c) {
    c["rope_parameters"]["rope_type"] = "longrope";
    c["rope_parameters"]["short_mscale"] = 1.2;
  });
  expect_refused("qwen2", "partial_rotary_factor is 0.5; in qwen2 a head turns as a whole",
                 [](auto& c) { c["rope_parameters"]["partial_rotary_factor"] = 0.5; });
  expect_refused("qwen2", "rope_parameters.full_attention", [](auto& c) {
    c["rope_parameters"] = {{"full_attention", {{"rope_theta", 1e4}}}};
  });
  expect_refused("gemma3_text", "rope_parameters.rope_theta is 10000.0; expected it in full_attention", [](auto& c) {
    c["rope_parameters"] = {{"rope_theta", 1e4}};
  });
  expect_refused("gemma3_text", "attn_logit_softcapping is 50.0; gemma3_text is known without it",
                 [](auto& c) { c["attn_logit_softcapping"] = 50.0; });
  expect_refused("gemma2", "use_bidirectional_attention is true; expected causal attention",
                 [](auto& c) { c["use_bidirectional_attention"] = true; });
  expect_refused("llama", "quantization_config", [](auto& c) { c["quantization_config"] = {{"bits", 4}}; });
  expect_refused("gemma2", "layer_types is [\"sliding_attention\",\"chunked_attention\"]; known are full_attention",
                 [](auto& c) { c["layer_types"][1] = "chunked_attention"; });
  expect_refused("mistral", "mistral has sliding_attention in every layer", [](auto& c) {
    c["layer_types"] = {"sliding_attention", "full_attention"};
  });
  expect_refused("qwen2", "sliding_attention needs sliding_window", [](auto& c) {
    c["layer_types"] = {"sliding_attention", "full_attention"};
  });
  expect_refused("gemma2", "sliding_window is missing; layers with sliding_attention need it", [](auto& c) {
    c["sliding_window"] = nullptr;
    c.erase("layer_types");
  });
  expect_refused("gpt_neox",
                 R"(rope_parameters.rope_type is "yarn"; it needs an even number of dimensions that turn, and 3 do)",
                 [](auto& c) {
                   c["rope_parameters"] = {{"rope_type", "yarn"}, {"factor", 4.0}, {"partial_rotary_factor", 0.4}};
                 });
}

// config.json of gemma-3-4b: what it leaves out is the default of its class in transformers.
TEST(Architecture, Gemma3FilesLeaveSizesOut) {
  const nlohmann::json published = nlohmann::json::parse(R"({
    "architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 255999, "eoi_token_index": 256000,
    "eos_token_id": [1, 106], "image_token_index": 262144, "initializer_range": 0.02, "mm_tokens_per_image": 256,
    "model_type": "gemma3",
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
                    "num_hidden_layers": 34, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                    "sliding_window": 1024},
    "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}})");
  const DecoderConfig c = decoder_config(published_architecture("gemma3", "config.json"), {published, "config.json"});
  EXPECT_EQ(std::tuple(c.vocabulary, c.d_model, c.d_ff, c.layers), std::tuple(262208, 2560, 10240, 34));
  EXPECT_EQ(std::tuple(c.heads, c.kv_heads, c.d_k, c.longest), std::tuple(8, 4, 256, 131072));
  EXPECT_EQ(std::tuple(c.window(4), c.window(5), c.window(33)), std::tuple(1024, 0, 1024));
  EXPECT_EQ(std::tuple(c.rope.base, c.rope.scaling.factor), std::tuple(1e6, 8.0));
  EXPECT_EQ(std::tuple(c.sliding_rope->base, c.sliding_rope->scaling.kind), std::tuple(1e4, RopeScalingKind::none));
  EXPECT_DOUBLE_EQ(*c.attention_scale, 1.0 / 16);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.logit_cap, 0);
}

TEST(Architecture, SizesAreCheckedBeforeMemoryIsTaken) {
  expect_refused("llama", "hidden_size is missing", [](auto& c) { c.erase("hidden_size"); });
  expect_refused("llama", "hidden_size is missing", [](auto& c) { c["hidden_size"] = nullptr; });
  expect_refused("llama", "num_hidden_layers is 5000000000; expected a whole number, 1 to 4096",
                 [](auto& c) { c["num_hidden_layers"] = 5000000000; });
  expect_refused("llama", "vocab_size is 61.5; expected a whole number", [](auto& c) { c["vocab_size"] = 61.5; });
  expect_refused("llama", "num_key_value_heads is 3; expected a divisor of num_attention_heads, 4",
                 [](auto& c) { c["num_key_value_heads"] = 3; });
  expect_refused("qwen2", "hidden_size is 33; without head_dim, expected a multiple",
                 [](auto& c) { c["hidden_size"] = 33; });
  expect_refused("llama", "rms_norm_eps is -1.0; expected a number, more than 0",
                 [](auto& c) { c["rms_norm_eps"] = -1.0; });
  // Weights of a terabyte, which the file does not hold.
  expect_refused("llama", "embed_tokens.weight has shape [61, 32], the model's has [16777216, 32]",
                 [](auto& c) { c["vocab_size"] = 1 << 24; });
}

TEST(Architecture, DamagedJsonIsRefused) {
  const PublishedModel model({"llama", "default", "json"});
  const auto refused = [&](const char* message, const std::string& text) {
    write_file(model.path() / "config.json", text);
    expect_error(Fault::input, message, [&] { opened(model.path()); });
  };
  refused("comes twice", R"({"model_type": "llama", "model_type": "qwen2"})");
  refused("nested deeper", std::string(100'000, '['));
  refused("is not JSON", R"({"model_type": )");
  refused("is not an object", "[1]");
}

// The tensors of a model, to be written with changes.
struct Tensors {
  explicit Tensors(const char* model)
      : file(test::published_folder / model / "model.safetensors"), list(file.tensors()) {}
  void write(const fs::path& folder) const {
    fs::remove(folder / "model.safetensors");
    write_safetensors(folder / "model.safetensors", list);
  }
  TensorView& named(const std::string& name) { return *std::ranges::find(list, name, &TensorView::name); }
  Safetensors file;
  std::vector<TensorView> list;
};

TEST(StoredWeights, ThatAreMissingAreNamed) {
  const PublishedModel model({"qwen2", "default", "json"});
  Tensors tensors("qwen2");
  std::erase_if(tensors.list, [](const TensorView& t) { return t.name == "model.layers.1.self_attn.k_proj.bias"; });
  tensors.write(model.path());
  expect_error(Fault::input, "lacks a tensor of the model: model.layers.1.self_attn.k_proj.bias",
               [&] { opened(model.path()); });
  std::erase_if(tensors.list, [](const TensorView& t) { return t.name == "lm_head.weight"; });
  tensors.write(model.path());
  expect_error(Fault::input, "lacks 2 tensors of the model: model.layers.1.self_attn.k_proj.bias, lm_head.weight",
               [&] { opened(model.path()); });
}

TEST(StoredWeights, ThatAreNotUsedAreListed) {
  const PublishedModel model({"qwen2", "default", "json"});
  Tensors tensors("qwen2");
  EXPECT_TRUE(opened(model.path()).warnings.empty());
  TensorView extra = tensors.list.front();
  extra.name = "model.layers.0.rotary_emb.inv_freq";
  tensors.list.push_back(extra);
  tensors.write(model.path());
  const LoadedModel loaded = opened(model.path());
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_THAT(loaded.warnings[0], ::testing::HasSubstr("a tensor is not used: model.layers.0.rotary_emb.inv_freq"));
}

TEST(StoredWeights, OfAnotherShapeOrTypeAreRefused) {
  const PublishedModel model({"qwen2", "default", "json"});
  Tensors tensors("qwen2");
  TensorView& matrix = tensors.named("model.layers.0.mlp.up_proj.weight");
  std::swap(matrix.shape[0], matrix.shape[1]);
  tensors.write(model.path());
  expect_error(Fault::input, "mlp.up_proj.weight has shape [32, 40], the model's has [40, 32]",
               [&] { opened(model.path()); });
  std::swap(matrix.shape[0], matrix.shape[1]);
  matrix.type = TensorType::i16;
  tensors.write(model.path());
  expect_error(Fault::input, "mlp.up_proj.weight has type I16; expected floating-point", [&] { opened(model.path()); });
}

TEST(StoredWeights, ThatAreNoNumbersAreRefused) {
  for (const int bits : {0x7fc0, 0x7f80, 0xff80}) {  // BF16: NaN and the infinities
    const PublishedModel model({"qwen2", "default", "json"});
    Tensors tensors("qwen2");
    TensorView& matrix = tensors.named("model.layers.1.self_attn.v_proj.weight");
    std::vector<std::byte> bytes(matrix.bytes.begin(), matrix.bytes.end());
    bytes[100] = static_cast<std::byte>(bits & 0xff);
    bytes[101] = static_cast<std::byte>(bits >> 8);
    matrix.bytes = bytes;
    tensors.write(model.path());
    expect_error(Fault::input, "model.layers.1.self_attn.v_proj.weight holds NaN or infinity",
                 [&] { opened(model.path()); });
  }
}

TEST(StoredWeights, AHeadBesideATiedEmbeddingIsUsedWhereItDiffers) {
  const PublishedModel model({"llama_tied", "default", "json"});
  Tensors tensors("llama_tied");
  TensorView head = tensors.named("model.embed_tokens.weight");
  head.name = "lm_head.weight";
  tensors.list.push_back(head);
  tensors.write(model.path());
  const LoadedModel same = opened(model.path());
  EXPECT_TRUE(same.model.config.tied_head);
  EXPECT_TRUE(same.warnings.empty());
  std::vector<std::byte> other(head.bytes.begin(), head.bytes.end());
  other[0] ^= std::byte{1};
  tensors.list.back().bytes = other;
  tensors.write(model.path());
  const LoadedModel differs = opened(model.path());
  EXPECT_FALSE(differs.model.config.tied_head);
  EXPECT_EQ((differs.model.own_head - differs.model.embedding).count_nonzero().item<std::int64_t>(), 1);
  ASSERT_EQ(differs.warnings.size(), 1U);
  EXPECT_THAT(differs.warnings[0], ::testing::HasSubstr("lm_head.weight has other values"));
}

// Base models are published without the prefix.
TEST(StoredWeights, AreFoundWithoutThePrefix) {
  const PublishedModel model({"llama_tied", "default", "json"});
  const LoadedModel before = opened(model.path());
  Tensors tensors("llama_tied");
  for (TensorView& tensor : tensors.list) tensor.name.erase(0, std::string("model.").size());
  tensors.write(model.path());
  EXPECT_TRUE(at::equal(opened(model.path()).model.layers[1].qkv.weight, before.model.layers[1].qkv.weight));
}

TEST(LoadedModel, HasTheNameOfItsFolder) {
  const test::TemporaryFolder cache;
  const fs::path snapshot = cache / "models--org--small-model/snapshots/0123abc";
  fs::create_directories(snapshot);
  fs::copy(test::published_folder / "qwen3/default.json", snapshot / "config.json");
  fs::copy(test::published_folder / "qwen3/model.safetensors", snapshot);
  for (const fs::path& place : {snapshot, cache / "models--org--small-model"})
    EXPECT_EQ(title_of(opened(place)), "org/small-model (qwen3)");
}

}  // namespace
}  // namespace headscope
