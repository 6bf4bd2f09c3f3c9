#include "plasticity/options.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "plasticity/dataset.h"
#include "plasticity/head.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(PlasticityConfig, TheShippedFilesAreValid) {
  for (const char* name : {"smollm2_135m.yaml", "qwen3_8b.yaml"}) {
    std::vector<std::string> ignored;
    const auto options =
        resolve_options<PlasticityOptions>(read_plasticity_config(fs::path("configs/plasticity") / name, ignored));
    EXPECT_TRUE(ignored.empty());
    validate(options);
    EXPECT_EQ(*options.num_q_heads % *options.num_k_heads, 0);
  }
}

TEST(PlasticityConfig, RequiredAndIgnoredKeys) {
  const TemporaryFolder folder;
  std::vector<std::string> ignored;
  write_file(folder / "c.yaml", "model_dir: m\nnum_layers: 1\nnum_q_heads: 2\nnum_k_heads: 1\ndataset_cache_dir: x\n");
  const auto options = resolve_options<PlasticityOptions>(read_plasticity_config(folder / "c.yaml", ignored));
  EXPECT_EQ(ignored, std::vector<std::string>{"dataset_cache_dir"});
  EXPECT_EQ(options.num_q_heads, 2);
  write_file(folder / "c.yaml", "model_dir: m\nnum_layers: 1\nnum_k_heads: 1\n");
  expect_error(Fault::input, "'num_q_heads' is missing", [&] { read_plasticity_config(folder / "c.yaml", ignored); });
}

TEST(PlasticityConfig, ValuesWithoutSenseAreRefused) {
  PlasticityOptions options;
  options.pairs_per_bucket = 0;
  expect_error(Fault::input, "pairs_per_bucket is 0; expected 1 to 1048576", [&] { validate(options); });
  options = {};
  options.p_alpha = 1.5;
  expect_error(Fault::input, "p_alpha is 1.5", [&] { validate(options); });
  options = {};
  options.num_layers = options.num_q_heads = 100'000;  // each is allowed; their list would fill memory
  expect_error(Fault::input, "num_layers 100000 x num_q_heads 100000 is too much", [&] { validate(options); });
}

TEST(PlasticityConfig, EverySizeHasAnUpperEnd) {
  const PlasticityOptions defaults;
  PlasticityOptions::fields(defaults, [](const char* key, const auto& value, const char*, const auto&...) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<T, std::int64_t> || IsOptional<T>::value)
      for (const char* hostile : {"-1", "4611686018427387904", "9223372036854775807"}) {
        PlasticityOptions options;
        expect_error(Fault::input, fmt::format("test: {} is {}; expected ", key, hostile), [&] {
          apply(options, {key, hostile, "test"});
        });
        expect_error(Fault::input, fmt::format("{} is {}; expected ", key, hostile), [&] { validate(options); });
      }
  });
}

TEST(Dataset, FindsLayersAndHeadsByLooking) {
  const TemporaryFolder folder;
  for (const char* name : {"l00h00q", "l00h01q", "l00h00k", "l02h03q", "l02h01k", "notes", "l0h0q", "l00h00v"})
    fs::create_directories(folder / name);
  const Dataset dataset = open_dataset(folder.path(), {});
  EXPECT_EQ(dataset.num_layers, 3);
  EXPECT_EQ(dataset.num_q_heads, 4);
  EXPECT_EQ(dataset.num_k_heads, 2);
  ASSERT_EQ(dataset.heads.size(), 3U);
  EXPECT_EQ(dataset.heads[2], (HeadId{2, 3, 1}));
  EXPECT_EQ(dataset.key_file(dataset.heads[2]), folder / "l02h01k" / "data.parquet");

  PlasticityOptions options;
  options.layers = "2";
  EXPECT_EQ(open_dataset(folder.path(), options).heads.size(), 1U);
  options.layers = "1";
  expect_error(Fault::input, "has none with number 1", [&] { open_dataset(folder.path(), options); });
  options = {};
  options.num_k_heads = 3;
  expect_error(Fault::input, "4 query heads are not a multiple of 3 key heads",
               [&] { open_dataset(folder.path(), options); });
}

TEST(Dataset, RefusesAFolderWithoutHeads) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "holds no heads", [&] { open_dataset(folder.path(), {}); });
  expect_error(Fault::input, "is not a folder", [&] { open_dataset(folder / "absent", {}); });
  expect_error(Fault::input, "no data: name the folder", [&] { open_dataset({}, {}); });
}

TEST(HeadRecord, SurvivesExactly) {
  HeadResult head;
  head.id = {3, 5, 1};
  head.metrics.r2_pos = 0.1 + 0.2;
  head.ap_overall = 5e-324;
  head.cells = {{4, 2, 256, 40, 1.0 / 3, missing, 0.25}, {5, 2, 0, 0, missing, missing, missing}};
  head.component_r2 = {1e-300, missing};
  head.component_weight = {0.75, 0.25};
  head.uncertainty.overall = {0.5, 0.01, missing};
  head.uncertainty.replicates = {0.49, missing};
  head.constant_components = {7};
  head.checks = {.ap_empirical = 0.1, .ap_gap = -1.0 / 3, .ks_d = 1e-3, .own_text_pairs = 12};
  head.uncertainty.examples_hash = "x00";
  const HeadResult again = from_record(to_record(head));
  EXPECT_EQ(to_record(again), to_record(head));
  EXPECT_EQ(again.id, head.id);
  EXPECT_EQ(again.metrics.r2_pos, head.metrics.r2_pos);
  EXPECT_EQ(again.ap_overall, 5e-324);
  EXPECT_EQ(again.cells[0].plasticity, 1.0 / 3);
  EXPECT_TRUE(std::isnan(again.cells[1].plasticity));
  EXPECT_TRUE(std::isnan(again.uncertainty.replicates[1]));
  EXPECT_EQ(again.constant_components, head.constant_components);
  EXPECT_EQ(again.checks.ap_gap, -1.0 / 3);
  EXPECT_TRUE(std::isnan(again.checks.ap_shuffled));
  EXPECT_EQ(again.checks.own_text_pairs, 12);
  expect_error(Fault::input, "start again with --overwrite", [] { from_record("{\"scalars\": []}"); });
}

}  // namespace
}  // namespace headscope
