// What a plan counts of an update is what Shares and the optimizers have.
#include "optim/optimizers.h"
#include "plan/shares.h"
#include "settings/setup.h"
#include "support/optimized_models.h"

namespace headscope {
namespace {

// Without values.
Decoder untouched(const DecoderConfig& config, bool trains_qk_gain) {
  Decoder model = empty_decoder(config);
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    value.set_requires_grad(kind != ParameterKind::qk_gain || trains_qk_gain);
  });
  return model;
}

std::vector<DecoderConfig> planned_configs() {
  std::vector<DecoderConfig> configs = test::optimized_configs();
  DecoderConfig norms = configs[1];  // every kind of norm, bias and gain
  norms.norm.kind = NormKind::layer;
  norms.norm.place = NormPlace::both;
  norms.qk_norm = true;
  norms.qk_norm_over = QkNormOver::all_heads;
  configs.push_back(norms);
  configs.push_back(preset_setup("tiny").model);
  return configs;
}

TEST(PlannedShares, HaveTheExchangedMemory) {
  for (const DecoderConfig& config : planned_configs())
    for (const bool trains_qk_gain : {true, false}) {
      const Decoder model = untouched(config, trains_qk_gain);
      for (const int ranks : {2, 3, 4, 7, 8, 40, 64, 200})
        EXPECT_EQ(static_cast<double>(Shares(model, {0, ranks, true}).exchanged_elements()),
                  share_update(config, trains_qk_gain, ranks).padded_elements())
            << config.d_model << " on " << ranks;
    }
  const DecoderConfig config = preset_setup("88m").model;
  for (const int ranks : {8, 64})
    EXPECT_EQ(static_cast<double>(Shares(untouched(config, true), {0, ranks, true}).exchanged_elements()),
              share_update(config, true, ranks).padded_elements())
        << ranks;
}

TEST(PlannedShares, HaveTheStateAndTheMatricesOfTheRankThatHasMost) {
  for (const DecoderConfig& config : planned_configs()) {
    const Decoder model = untouched(config, true);
    for (const int ranks : {1, 2, 4, 7, 40}) {
      std::int64_t most = 0, without = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Optimizers part(model, {}, {rank, ranks});
        std::int64_t numbers = 0;
        bool has_matrix = false;
        for (const auto& [name, value] : part.state()) {
          if (!name.starts_with("adamw.steps.")) numbers += value.numel();
          has_matrix |= name.starts_with("muon.");
        }
        most = std::max(most, numbers);
        without += has_matrix ? 0 : 1;
      }
      const UpdateShares shares = share_update(config, true, ranks);
      EXPECT_EQ(shares.most_state, most) << config.d_model << " on " << ranks;
      EXPECT_EQ(shares.without_matrix, without) << config.d_model << " on " << ranks;
    }
  }
}

}  // namespace
}  // namespace headscope
