// Published speeds of other programs on one GPU and on many, against the same model of exchange and waiting that plans
// are made with. docs/scale.md has these rows.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "plan/batch_size.h"
#include "plan/exchange.h"
#include "plan/memory.h"
#include "plan/plan.h"

namespace headscope {
namespace {

// Of IST-DASLab/llmq: an update of 524,288 tokens.
constexpr double llmq_tokens = 524'288;

// Seconds of an update on 8 GPUs of a node from those on one: an eighth, and gradients and weights of two bytes between
// the ranks, nothing hidden.
double on_eight(double parameters, double seconds) {
  return seconds / 8 + 2 * ring_seconds(cluster_of("h100x8"), 8, 2 * parameters);
}

struct OneToEight {
  const char* name;
  double parameters, one, eight;  // seconds
};

// IST-DASLab/llmq at dcad498, benchmarks/H100x1.md and H100x8.md: medians of the steps 1 to 5. Here are the
// configurations whose two commands differ in --gpus and --grad-accumulation alone.
constexpr OneToEight llmq_rows[] = {{"0.5B bf16", 0.494e9, 3.504, 0.446},
                                    {"1.5B bf16", 1.54e9, 8.906, 1.146},
                                    {"1.5B fp8", 1.54e9, 7.183, 0.929},
                                    {"3B bf16", 3.09e9, 16.959, 2.185},
                                    {"3B fp8", 3.09e9, 12.984, 1.675}};

// The model must be nearer than 8 times one GPU, by a third at least (chosen).
TEST(Published, LlmqOn8H100FromOne) {
  for (const OneToEight& row : llmq_rows) {
    const double seconds = on_eight(row.parameters, row.one);
    const double error = row.eight / seconds - 1, of_null = row.eight / (row.one / 8) - 1;
    std::printf("llmq %s: model %.0fk (%+.1f %%), 8 times one %.0fk (%+.1f %%), measured %.0fk\n", row.name,
                llmq_tokens / seconds / 1e3, 100 * error, 8 * llmq_tokens / row.one / 1e3, 100 * of_null,
                llmq_tokens / row.eight / 1e3);
    EXPECT_NEAR(error, 0, 0.03) << row.name;
    EXPECT_LT(std::abs(error), std::abs(of_null) * 2 / 3) << row.name;
  }
}

// Seconds of the steps 1 to 5 of the rows with 1.5B and 3B.
struct Steps {
  const char* name;
  double parameters;
  std::array<double, 5> one, eight;
};
constexpr Steps llmq_steps[] = {
    {"1.5B bf16", 1.54e9, {8.898, 8.906, 8.905, 8.914, 8.930}, {1.148, 1.143, 1.146, 1.145, 1.148}},
    {"1.5B fp8", 1.54e9, {7.188, 7.182, 7.177, 7.183, 7.204}, {0.929, 0.930, 0.927, 0.929, 0.928}},
    {"3B bf16", 3.09e9, {16.981, 16.978, 16.958, 16.959, 16.935}, {2.184, 2.185, 2.185, 2.185, 2.182}},
    {"3B fp8", 3.09e9, {13.035, 13.032, 12.984, 12.980, 12.954}, {1.666, 1.678, 1.675, 1.675, 1.674}}};

double median(const std::array<double, 5>& values) {
  std::array<double, 5> sorted = values;
  std::ranges::sort(sorted);
  return sorted[2];
}

// If all that is measured beyond an eighth of one GPU were exchange, it would run at 151 to 295 GB/s: 7/8 of gradients
// and of weights of two bytes, of any step on one GPU and on eight. It is no bandwidth: llmq hides a part of its
// reduction behind a matrix product, and eight GPUs may wait for each other. The steps of 0.5B scatter by more than the
// exchange takes. Half of 370 lies in that range.
TEST(Published, HalfOfTheBandwidthIsWithinWhatLlmqGives) {
  double least = 1e9, most = 0;
  for (const Steps& row : llmq_steps) {
    double of_row[2] = {1e9, 0};
    for (const double one : row.one)
      for (const double eight : row.eight) {
        const double rate = 2 * 7.0 / 8 * 2 * row.parameters / (eight - one / 8) / 1e9;
        of_row[0] = std::min(of_row[0], rate);
        of_row[1] = std::max(of_row[1], rate);
      }
    std::printf("llmq %s: as if exchanged at %.0f to %.0f GB/s\n", row.name, of_row[0], of_row[1]);
    least = std::min(least, of_row[0]);
    most = std::max(most, of_row[1]);
  }
  EXPECT_NEAR(least, 151, 0.5);
  EXPECT_NEAR(most, 295, 0.5);
  std::vector<double> of_medians;
  for (const Steps& row : llmq_steps)
    of_medians.push_back(2 * 7.0 / 8 * 2 * row.parameters / (median(row.eight) - median(row.one) / 8) / 1e9);
  EXPECT_THAT(of_medians, ::testing::ElementsAre(::testing::DoubleNear(165, 0.5), ::testing::DoubleNear(173, 0.5),
                                                 ::testing::DoubleNear(166, 0.5), ::testing::DoubleNear(208, 0.5)));
  EXPECT_GT(Cluster().link_gb_s / 2, least);
  EXPECT_LT(Cluster().link_gb_s / 2, most);
}

// What plans of the presets would be with it.
TEST(Published, PlansWithTheBandwidthAsOfLlmq) {
  Cluster slower;
  slower.link_gb_s = 170;
  const auto loss = [&](const char* preset, std::int64_t ranks) {
    const auto speed = [&](const Cluster& cluster) {
      return compute_plan(preset_setup(preset), RanksReduce::by_backend, ranks, cluster).asked().tokens_per_s();
    };
    const double percent = 100 * (1 - speed(slower) / speed(cluster_of("h200x8")));
    std::printf("%s on %d ranks with 170 GB/s: %.1f %% fewer tokens/s\n", preset, static_cast<int>(ranks), percent);
    return percent;
  };
  for (const char* preset : {"88m", "1.5b"})
    for (const std::int64_t ranks : {8, 64}) EXPECT_NEAR(loss(preset, ranks), 16, 4.5) << preset;
  EXPECT_NEAR(loss("88m", 1024), 34, 0.5);
  EXPECT_NEAR(loss("1.5b", 1024), 44, 0.5);
}

// NVIDIA/nccl, src/graph/tuning.cc: losses and norms of all ranks at the latencies of its simple protocol, which plans
// take, and of LL128, 1.9 and 4.0 µs.
TEST(Published, NumbersBesideGradientsAreLatency) {
  const RankPlan plan = compute_plan(preset_setup("88m"), RanksReduce::by_backend, 1024, cluster_of("h200x8")).asked();
  const double simple = 896 * 3.4e-6 + 127 * 14e-6, ll128 = 896 * 1.9e-6 + 127 * 4.0e-6;
  EXPECT_NEAR(plan.numbers, simple, 1e-9);
  const double share = 100 * simple * plan.straggler / plan.update_seconds();
  const double faster = 100 * (plan.update_seconds() / (plan.update_seconds() - (simple - ll128) * plan.straggler) - 1);
  std::printf("numbers of 1024 ranks: %.2f ms, %.1f %% of an update; with LL128 %.2f ms, %+.1f %% tokens/s\n",
              1e3 * simple, share, 1e3 * ll128, faster);
  EXPECT_NEAR(share, 9, 0.5);
  EXPECT_NEAR(faster, 5, 0.5);
}

// Not in the table: their commands differ. 7B fp8 recomputes the whole feed-forward on one GPU and its activation alone
// on eight; 14B fp8 keeps optimizer state and weights in host memory on one GPU and in shards on eight.
TEST(Published, LlmqWithOtherCommandsOnEight) {
  const OneToEight rows[] = {{"7B fp8", 7.62e9, 27.380, 3.307}, {"14B fp8", 14.8e9, 55.986, 7.131}};
  for (const OneToEight& row : rows) {
    const double seconds = on_eight(row.parameters, row.one);
    std::printf("llmq %s: model %.1fk (%+.1f %%), 8 times one %.1fk (%+.1f %%), measured %.1fk\n", row.name,
                llmq_tokens / seconds / 1e3, 100 * (row.eight / seconds - 1), 8 * llmq_tokens / row.one / 1e3,
                100 * (row.eight / (row.one / 8) - 1), llmq_tokens / row.eight / 1e3);
    EXPECT_NEAR(row.eight / seconds, 1, 0.1) << row.name;
  }
}

// Tokens/s of a GPU when the exchange is hidden, as FSDP hides it: what is left is the loss with more nodes.
double on_more_nodes(double tokens_per_s, std::int64_t from, std::int64_t to) {
  const Cluster cluster = cluster_of("h100x8");
  return tokens_per_s * straggler_factor(cluster, from) / straggler_factor(cluster, to);
}

// The loss for a doubling of the nodes with which the plan's factor 1 + loss·log2(nodes) gives this ratio.
double loss_of(double ratio, double nodes_before, double nodes_after) {
  return (ratio - 1) / (std::log2(nodes_after) - ratio * std::log2(nodes_before));
}

// pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3 (Llama 3.1 8B, FSDP), and
// llama3-8b_h200_202506_trainy-whitefiber.md (float8).
TEST(Published, TorchtitanOnMoreNodes) {
  struct Row {
    const char* name;
    std::int64_t from, to;
    double before, after, tolerance;
  };
  const Row rows[] = {{"H100", 8, 128, 5762, 5605, 0.001},  // what the constant is fitted to
                      {"H100, compiled", 8, 128, 6667, 6514, 0.01},
                      {"H100, compiled, float8", 8, 128, 8532, 8380, 0.015},
                      {"H200, compiled, float8", 32, 64, 10938, 10753, 0.015}};
  for (const Row& row : rows) {
    const double model = on_more_nodes(row.before, row.from, row.to);
    std::printf("torchtitan %s, %d -> %d: model %.0f, %+.1f %%, no loss %.0f, %+.1f %%, measured %.0f\n", row.name,
                static_cast<int>(row.from), static_cast<int>(row.to), model, 100 * (model / row.after - 1), row.before,
                100 * (row.before / row.after - 1), row.after);
    EXPECT_NEAR(model / row.after, 1, row.tolerance) << row.name;
  }
  std::vector<double> losses;  // of a doubling
  for (const Row& row : rows)
    losses.push_back(
        loss_of(row.before / row.after, static_cast<double>(row.from) / 8, static_cast<double>(row.to) / 8));
  // An update of torchtitan, 2 x 8192 tokens of a GPU, takes seconds, one of 88m milliseconds: a delay that does not
  // grow with the update weighs that many times more there.
  const double update =
      compute_plan(preset_setup("88m"), RanksReduce::by_backend, 8, cluster_of("h200x8")).asked().update_seconds();
  std::printf("an update of torchtitan: %.2f s, of 88m on 8 ranks: %.1f ms\n", 2 * 8192 / rows[0].before, 1e3 * update);
  EXPECT_NEAR(2 * 8192 / rows[0].before, 2.84, 0.01);
  EXPECT_NEAR(1e3 * update, 16.5, 0.5);
  std::printf("a doubling: %.2f, %.2f, %.2f, %.2f %%\n", 100 * losses[0], 100 * losses[1], 100 * losses[2],
              100 * losses[3]);
  EXPECT_NEAR(loss_per_doubling, losses[0], 0.0001);
  EXPECT_NEAR(least_loss_published, std::ranges::min(losses), 0.0001);
  EXPECT_NEAR(most_loss_published, std::ranges::max(losses), 0.0001);
}

// What Zhang et al. measured, sequences of 512 tokens, in runs of 20 tokens for each parameter (plots/chinchilla.ipynb
// of hlzhang109/critical-batch-size), from their fits of a + b/B updates of B sequences. The law in tokens must give
// it: that is how its unit was checked.
struct CriticalBatch {
  double parameters, sequences, a, b;
};
constexpr CriticalBatch critical_batches[] = {{85e6, 745.3, 1293.8268694659337, 2834258.0888740215},
                                              {151e6, 955.2, 1752.4211962796799, 5677478.783007255},
                                              {302e6, 1393.7, 2095.3497601960876, 11383269.891870424},
                                              {604e6, 1888.5, 2459.9274969089824, 19449688.58779496},
                                              {1200e6, 2533.4, 3897.306597333535, 43381130.22429582}};

// The batch that takes 20 % more sequences than 256 do, by bisection.
double with_a_fifth_more(double a, double b) {
  const auto sequences = [&](double batch) { return batch * (a + b / batch); };
  double low = 256, high = 1e12;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (sequences(middle) < 1.2 * sequences(256) ? low : high) = middle;
  }
  return low;
}

TEST(Published, CriticalBatches) {
  for (const auto& [parameters, sequences, a, b] : critical_batches) {
    const double law = critical_batch_tokens(20 * parameters);
    std::printf("critical batch, %.0f M tokens: law %.0f, measured %.0f, %+.1f %%\n", 20 * parameters / 1e6, law / 512,
                sequences, 100 * (law / 512 / sequences - 1));
    EXPECT_NEAR(law / 512 / sequences, 1, 0.05);
    EXPECT_NEAR(with_a_fifth_more(a, b), sequences, 0.1);  // the definition is theirs
  }
}

// Whatever the fit, no batch below 1.2·256 sequences takes 20 % more than 256 do.
TEST(Published, TheDefinitionHasALeastCriticalBatch) {
  for (const double ratio : {0.0, 1.0, 100.0, 1e4}) {
    const double batch = with_a_fifth_more(1000, 1000 * ratio);
    EXPECT_GE(batch * 512, least_by_definition * (1 - 1e-9)) << ratio;
    EXPECT_NEAR(batch, 1.2 * 256 + 0.2 * ratio, 1e-3) << ratio;
  }
  EXPECT_NEAR(with_a_fifth_more(1000, 0) * 512, least_by_definition, 1e-6);
}

// docs/gpu.md: peak memory on one H200, of allocated tensors. The program's own 300 MiB are not among them. The row of
// 32 sequences is of a program that did not repeat keys.
TEST(Published, MemoryOfOneGpu) {
  struct Row {
    const char* preset;
    std::int64_t batch;
    bool repeated_keys;
    double mib;
  };
  for (const Row& row : {Row{"88m", 8, true, 7071}, Row{"88m", 32, false, 20051}, Row{"1.5b", 16, false, 74301}}) {
    auto setup = preset_setup(row.preset);
    setup.train.batch = row.batch;
    StepKind kind = step_on_gpu(setup);
    const double today = process_memory(setup, kind).total() / (1 << 20);
    kind.repeated_keys = row.repeated_keys;
    const ProcessMemory memory = process_memory(setup, kind);
    const double total = memory.total() / (1 << 20), tensors = (memory.total() - memory.program) / (1 << 20);
    std::printf(
        "memory of %s, %d sequences: model %.0f MiB (today's plan %.0f), %.0f of tensors, measured %.0f, %+.1f %%\n",
        row.preset, static_cast<int>(row.batch), total, today, tensors, row.mib, 100 * (tensors / row.mib - 1));
    EXPECT_EQ(total - tensors, 300);
    EXPECT_GT(tensors, row.mib) << row.preset;
    EXPECT_LT(tensors, 1.1 * row.mib) << row.preset;
  }
}

// docs/gpu.md: Polar Express of 1.5b, "about 41" TFLOP.
TEST(Published, OperationsOfPolarExpress) {
  const UpdateShares whole = share_update(preset_setup("1.5b").model, true, 1);
  EXPECT_NEAR(whole.polar_flops / 1e12, 41, 0.5);
  EXPECT_EQ(whole.matrices, 96);
}

// docs/gpu.md: the figures that plans start from come out again.
TEST(Published, OneGpuAtTheMeasuredShape) {
  auto setup = preset_setup("88m");
  setup.train.batch = 8;
  setup.train.accumulation = 1;
  EXPECT_NEAR(compute_plan(setup, RanksReduce::by_backend, 1, cluster_of("h200x8")).one().tokens_per_s(), 554'735, 1);
  setup = preset_setup("1.5b");
  setup.train.batch = 16;
  EXPECT_NEAR(compute_plan(setup, RanksReduce::by_backend, 1, cluster_of("h200x8")).one().tokens_per_s(), 52'538, 1);
}

}  // namespace
}  // namespace headscope
