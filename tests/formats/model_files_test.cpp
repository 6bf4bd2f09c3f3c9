#include "formats/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

using NamedValues = std::vector<std::pair<std::string, std::string>>;

void write_tensors(const fs::path& file, const NamedValues& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, values] : tensors)
    views.push_back(
        {name, TensorType::u8, {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))});
  write_safetensors(file, views);
}

std::string values_of(const ModelFiles& model, std::string_view name) {
  const TensorView& tensor = model.get(name);
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

void write_sharded(const fs::path& folder, const std::string& index) {
  make_folder(folder);
  write_file(folder / "config.json", "{}");
  write_tensors(folder / "model-1.safetensors", {{"a", "aa"}, {"b", "bb"}});
  write_tensors(folder / "model-2.safetensors", {{"c", "cc"}});
  write_file(folder / "model.safetensors.index.json", index);
}

constexpr const char* good_index = R"({"metadata": {"total_size": 6}, "weight_map":
  {"c": "model-2.safetensors", "a": "model-1.safetensors", "b": "model-1.safetensors"}})";

TEST(ModelFiles, AFolderWithOneFile) {
  const TemporaryFolder folder;
  write_tensors(folder / "model.safetensors", {{"w", "xyz"}});
  write_file(folder / "config.json", "{}");
  ModelFiles opened(folder.path());
  const ModelFiles model = std::move(opened);  // views outlive a move
  EXPECT_EQ(values_of(model, "w"), "xyz");
  EXPECT_TRUE(model.contains("w"));
  EXPECT_FALSE(model.contains("v"));
  EXPECT_EQ(model.place(), folder.path());
  EXPECT_EQ(model.gguf(), nullptr);
  EXPECT_EQ(model.required_file("config.json"), folder / "config.json");
  EXPECT_FALSE(model.file("tokenizer.json"));
  EXPECT_THAT(model.weight_files(), ElementsAre(folder / "model.safetensors"));
  expect_error(Fault::input, "there is no tokenizer.json", [&] { (void)model.required_file("tokenizer.json"); });
  expect_error(Fault::input, "there is no tensor 'ww'; did you mean 'w'?", [&] { (void)model.get("ww"); });
}

TEST(ModelFiles, AFolderWithShards) {
  const TemporaryFolder folder;
  write_sharded(folder / "model", good_index);
  const ModelFiles model(folder / "model");
  EXPECT_EQ(values_of(model, "a") + values_of(model, "b") + values_of(model, "c"), "aabbcc");
  EXPECT_EQ(model.weight_files().size(), 2U);
  EXPECT_TRUE(model.unlisted().empty());
}

TEST(ModelFiles, AHundredThousandTensorsInTwoShards) {
  const TemporaryFolder folder;
  constexpr std::size_t count = 100'000;
  std::array<NamedValues, 2> shards;
  std::string map;
  for (std::size_t i = 0; i < count; ++i) {
    shards[i % 2].emplace_back(fmt::format("layers.{}.weight", i), std::to_string(i));
    map += fmt::format("{}\"layers.{}.weight\":\"model-{}.safetensors\"", i == 0 ? "" : ",", i, i % 2 + 1);
  }
  make_folder(folder / "model");
  write_tensors(folder / "model/model-1.safetensors", shards[0]);
  write_tensors(folder / "model/model-2.safetensors", shards[1]);
  write_file(folder / "model/model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  const ModelFiles model(folder / "model");
  EXPECT_EQ(model.tensors().size(), count);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(values_of(model, fmt::format("layers.{}.weight", i)), std::to_string(i));
}

TEST(ModelFiles, TheHashIsThatOfTheWeightsWhateverTheFiles) {
  const TemporaryFolder folder;
  write_sharded(folder / "shards", good_index);
  make_folder(folder / "one");
  write_tensors(folder / "one/model.safetensors", {{"c", "cc"}, {"b", "bb"}, {"a", "aa"}});
  make_folder(folder / "other");
  write_tensors(folder / "other/model.safetensors", {{"c", "cc"}, {"b", "bb"}, {"a", "ab"}});
  EXPECT_EQ(ModelFiles(folder / "shards").weights_hash(), ModelFiles(folder / "one").weights_hash());
  EXPECT_NE(ModelFiles(folder / "one").weights_hash(), ModelFiles(folder / "other").weights_hash());
}

TEST(ModelFiles, TheIndexDecidesAndWhatItDoesNotNameIsListed) {
  const TemporaryFolder folder;
  write_sharded(folder / "model", R"({"weight_map": {"a": "model-1.safetensors", "c": "model-2.safetensors"}})");
  write_tensors(folder / "model/model-2.safetensors", {{"c", "cc"}, {"a", "another"}});
  const ModelFiles model(folder / "model");
  EXPECT_EQ(values_of(model, "a"), "aa");
  EXPECT_FALSE(model.contains("b"));
  EXPECT_THAT(model.unlisted(), ElementsAre("b (model-1.safetensors)", "a (model-2.safetensors)"));
}

TEST(ModelFiles, AMissingTensorIsNamedWithItsShard) {
  const TemporaryFolder folder;
  write_sharded(folder / "model", good_index);
  write_tensors(folder / "model/model-1.safetensors", {{"a", "aa"}, {"x", "bb"}});
  expect_error(Fault::input, "model-1.safetensors: lacks tensor 'b', which model.safetensors.index.json places there",
               [&] { ModelFiles(folder / "model"); });
  fs::remove(folder / "model/model-2.safetensors");
  write_tensors(folder / "model/model-1.safetensors", {{"a", "aa"}, {"b", "bb"}});
  expect_error(Fault::input, "model-2.safetensors: No such file", [&] { ModelFiles(folder / "model"); });
}

TEST(ModelFiles, AnIndexLeavesItsFolderNowhere) {
  for (const char* name : {"../a", "/etc/passwd", "..", ".", "", "x/y", "x\\\\y"})
    expect_error(Fault::input, "i.json: tensor 'w' is placed in '",
                 [&] { parse_weight_map(fmt::format(R"({{"weight_map": {{"w": "{}"}}}})", name), "i.json"); });
  expect_error(Fault::input, "expected the name of a file in the same folder",
               [] { parse_weight_map(R"({"weight_map": {"w": "a\u0000b"}})", "i.json"); });
}

TEST(ModelFiles, ADamagedIndexIsRefusedInOneLine) {
  const auto refused = [](const std::string& text, const std::string& message) {
    expect_error(Fault::input, "i.json: " + message, [&] { parse_weight_map(text, "i.json"); });
  };
  refused(R"({"weight_map": {"w": "a", "w": "b"}})", "the key 'w' comes twice in one object");
  refused(R"({"weight_map": {"w": 1}})", "the file of tensor 'w' is not a text");
  refused(R"({"weight_map": []})", "has no object 'weight_map'");
  refused("[]", "has no object 'weight_map'");
  refused("{", "is not JSON at byte 2");
  refused(std::string("{}\0", 3), "is not JSON: it holds a zero byte at byte 2");
  refused(std::string(100'000, '['), "its JSON is nested deeper than 64 levels");
  std::string deep = R"({"weight_map": )";
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  refused(deep, "its JSON is nested deeper than 64 levels");
}

TEST(ModelFiles, AFolderOfTheCacheStandsForItsSnapshot) {
  const TemporaryFolder folder;
  const fs::path cache = folder / "models--org--name", commit = "0123abc";
  make_folder(cache / "blobs");
  make_folder(cache / "refs");
  make_folder(cache / "snapshots" / commit);
  write_tensors(cache / "blobs/1f", {{"w", "xyz"}});
  fs::create_symlink("../../blobs/1f", cache / "snapshots" / commit / "model.safetensors");
  for (const bool with_reference : {false, true}) {
    if (with_reference) {
      make_folder(cache / "snapshots" / "another");
      expect_error(Fault::input, "holds 2 snapshots and no refs/main; give one of them", [&] { ModelFiles{cache}; });
      write_file(cache / "refs/main", "0123abc\n");
    }
    const ModelFiles model(cache);
    EXPECT_EQ(model.place(), cache / "snapshots" / commit);
    EXPECT_EQ(values_of(model, "w"), "xyz");
  }
  EXPECT_EQ(values_of(ModelFiles(cache / "snapshots" / commit), "w"), "xyz");
  write_file(cache / "refs/main", "fedc");
  expect_error(Fault::input, "refs/main: names the snapshot fedc, which is not there", [&] { ModelFiles{cache}; });
  write_file(cache / "refs/main", "../../elsewhere");
  expect_error(Fault::input, "refs/main: holds '../../elsewhere'; expected the name of a folder",
               [&] { ModelFiles{cache}; });
  fs::remove(cache / "refs/main");
  fs::remove_all(cache / "snapshots");
  make_folder(cache / "snapshots");
  expect_error(Fault::input, "snapshots: holds no snapshot", [&] { ModelFiles{cache}; });
}

TEST(ModelFiles, WhatIsNoModelIsSaid) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "no: No such file", [&] { ModelFiles(folder / "no"); });
  expect_error(Fault::input, "holds no model; expected model.safetensors or", [&] { ModelFiles{folder.path()}; });
  write_file(folder / "pytorch_model.bin", "x");
  expect_error(Fault::input, "holds weights as pytorch_model.bin only", [&] { ModelFiles{folder.path()}; });
  expect_error(Fault::input, "pytorch_model.bin: is not a GGUF file",
               [&] { ModelFiles(folder / "pytorch_model.bin"); });
  fs::remove(folder / "pytorch_model.bin");
  write_file(folder / "m.gguf", "x");
  expect_error(Fault::input, "holds m.gguf; give that file itself", [&] { ModelFiles{folder.path()}; });
  write_file(folder / "model.safetensors", "version https://git-lfs.example/spec/v1\noid sha256:0\nsize 9\n");
  expect_error(Fault::input, "model.safetensors: is a pointer of Git LFS", [&] { ModelFiles{folder.path()}; });
}

TEST(ModelFiles, AGgufFileIsAModel) {
  const fs::path file = fs::path(HEADSCOPE_ORACLES) / "types.gguf";
  const ModelFiles model(file);
  ASSERT_NE(model.gguf(), nullptr);
  EXPECT_EQ(model.gguf()->metadata().text("general.architecture"), "llama");
  EXPECT_EQ(model.get("Q4_K.random").type, TensorType::q4_k);
  EXPECT_FALSE(model.file("config.json"));
}

TEST(ModelFiles, APublishedFolderOpens) {
  const fs::path folder = test::shared_folder() / "reference/models/tiny/qwen3";
  HEADSCOPE_NEEDS_SHARED(folder);
  const ModelFiles model(folder);
  EXPECT_EQ(model.get("model.embed_tokens.weight").type, TensorType::bf16);
  EXPECT_TRUE(model.file("tokenizer.json"));
}

}  // namespace
}  // namespace headscope
