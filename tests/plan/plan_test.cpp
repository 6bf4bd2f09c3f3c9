// Plans against numbers that were worked out by hand, and what must hold of any plan.
#include "plan/plan.h"

#include <cmath>

#include "plan/batch_size.h"
#include "plan/exchange.h"
#include "plan/plan_text.h"
#include "support/expect_error.h"
#include "support/largest_model.h"

namespace headscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr RanksReduce ring = RanksReduce::by_backend;

ScalePlan planned(const char* preset, std::int64_t ranks) {
  return compute_plan(preset_setup(preset), ring, ranks, cluster_of("h200x8"));
}

Cluster with_speed(double tokens_per_s) {
  Cluster cluster;
  cluster.tokens_per_s = tokens_per_s;
  return cluster;
}

// Two layers of d_model 32: the attention is one matrix of 96·32 = 3,072 elements (queries 32, keys and values 16 each,
// output 32 rows), up and down have 64·32 = 2,048 each. Gains: 5 norms of 32, and 2 x 2 of QK-Norm with 8. 64 rows of
// embedding, 4 blocks of 16.
DecoderConfig small_model() {
  return {.vocabulary = 64, .d_model = 32, .layers = 2, .heads = 4, .kv_heads = 2, .d_k = 8, .d_ff = 64};
}

TEST(UpdateShares, OfOneRankAreEverything) {
  const UpdateShares shares = share_update(small_model(), true, 1);
  const ParameterCounts parameters = count_parameters(small_model());
  EXPECT_EQ(shares.matrices, 6);
  EXPECT_EQ(shares.without_matrix, 0);
  EXPECT_EQ(shares.most_state, parameters.matrices + 2 * (parameters.total - parameters.matrices));
  EXPECT_EQ(shares.polar_flops, shares.most_polar_flops);
  EXPECT_GE(shares.each_elements, parameters.total);
  EXPECT_LT(shares.each_elements, parameters.total + 64 * 20);  // at most 63 before each of 19 units, and at the end
}

// Rows: 32·32 = 1,024 elements each. Matrices, largest first: 3,072 to each (4,096 both), then 2,048 four times, two to
// each: 8,192. Then 32 five times, 8 four times, each behind a multiple of 64: to the first, which has least, then to
// the other. 9 units: the first gets five of them (the last begins at 8,192 + 4·64 and has 8), the other four.
TEST(UpdateShares, OfTwoRanksByHand) {
  const UpdateShares shares = share_update(small_model(), true, 2);
  EXPECT_EQ(shares.each_elements, 8192 + 5 * 64);
  EXPECT_EQ(shares.without_matrix, 0);
  EXPECT_EQ(2 * shares.most_polar_flops, shares.polar_flops);
  // 2 moments of 1,024 numbers of the embedding, one of 7,168 of matrices, and of gains: 3·32 + 2·8 or 2·32 + 2·8.
  EXPECT_EQ(shares.most_state, 2 * 1024 + 7168 + 2 * (3 * 32 + 2 * 8));
}

// More ranks than anything: 4 blocks of 16 rows of 512 elements, 6 matrices, and no rank has two of them.
TEST(UpdateShares, OfManyRanks_AreTheLargestMatrix) {
  const UpdateShares shares = share_update(small_model(), true, 1000);
  EXPECT_EQ(shares.each_elements, 3072);
  EXPECT_EQ(shares.without_matrix, 994);
  EXPECT_EQ(shares.most_polar_flops, polar_express_flops(96, 32));
  EXPECT_EQ(shares.padded_elements(), 3'072'000);
}

TEST(UpdateShares, FixedGainsAreNotShared) {
  const UpdateShares with = share_update(small_model(), true, 1), without = share_update(small_model(), false, 1);
  EXPECT_EQ(with.most_state - without.most_state, 2 * 4 * 8);
}

TEST(UpdateShares, OfTheLargestModelOnTheMostRanksFit) {
  const DecoderConfig model = test::largest_model();
  const UpdateShares shares = share_update(model, true, most_ranks);
  EXPECT_GT(shares.each_elements, 0);
  EXPECT_GE(shares.padded_elements(), static_cast<double>(count_parameters(model).total));
}

// 10 GB over 8 ranks of a node with 100 GB/s: 7/8 of them, 87.5 ms, and 7 steps of 3.4 µs.
TEST(Exchange, OfANodeByHand) {
  Cluster cluster;
  cluster.link_gb_s = 100;
  EXPECT_DOUBLE_EQ(ring_seconds(cluster, 8, 10e9), 0.0875 + 7 * 3.4e-6);
  EXPECT_EQ(ring_seconds(cluster, 1, 10e9), 0);
  EXPECT_DOUBLE_EQ(all_to_all_seconds(cluster, 8, 10e9), 0.0875 + 7 * 3.4e-6);
}

// 16 ranks on two nodes: 8 NICs of 10 GB/s are slower than the 100 GB/s inside. 15/16 of 10 GB in 117.1875 ms, 14 steps
// inside and one between. To all: 7/16 inside, 8/16 of 10 GB through a NIC of 10 GB/s, 500 ms.
TEST(Exchange, OfTwoNodesByHand) {
  Cluster cluster;
  cluster.link_gb_s = 100;
  cluster.nic_gb_s = 10;
  const double steps = 14 * 3.4e-6 + 14e-6;
  EXPECT_DOUBLE_EQ(ring_seconds(cluster, 16, 10e9), 0.1171875 + steps);
  EXPECT_DOUBLE_EQ(all_to_all_seconds(cluster, 16, 10e9), 0.5 + steps);
  // One rank on the second node: its one NIC is all that the ring has.
  EXPECT_NEAR(ring_seconds(cluster, 9, 9e9), 0.8, 1e-3);
  EXPECT_DOUBLE_EQ(straggler_factor(cluster, 8), 1);
  EXPECT_DOUBLE_EQ(straggler_factor(cluster, 64), 1 + 3 * 0.007);
}

// A cluster's own speed: one rank makes exactly that, and the parts of an update add up.
TEST(Plan, OfOneRankIsTheSpeedThatIsGiven) {
  for (const char* preset : {"tiny", "88m", "1.5b"}) {
    const ScalePlan plan = compute_plan(preset_setup(preset), ring, 1, with_speed(12'345));
    EXPECT_NEAR(plan.one().tokens_per_s(), 12'345, 1e-6);
    EXPECT_EQ(plan.rows.size(), 1);
    EXPECT_EQ(plan.one().traffic_bytes, 0);
    EXPECT_EQ(plan.one().memory.exchanged, 0);
    EXPECT_EQ(plan.one().accumulation, preset_setup(preset).train.accumulation);
  }
}

// 88m on 8: gradients and weights of 8 times the most that a rank owns, 7/8 of them, four bytes, twice.
TEST(Plan, OfANodeByHand) {
  const ScalePlan plan = planned("88m", 8);
  const RankPlan& node = plan.asked();
  EXPECT_EQ(node.tokens_per_update, 8 * 4 * 2048);
  EXPECT_EQ(node.updates, 50'000'000 / 65'536);
  const double most = static_cast<double>(node.shares.each_elements);
  EXPECT_DOUBLE_EQ(node.traffic_bytes, 2 * 7 * 4 * most);
  EXPECT_GT(node.traffic_bytes, 2 * 7.0 / 8 * 4 * 88.6e6);
  EXPECT_LT(node.traffic_bytes, 1.15 * 2 * 7.0 / 8 * 4 * 88.6e6);  // a tenth for the pieces, and little more
  const double step = (16'384 / 554'735.0 - 2e-3) / 2;             // 8,192 tokens
  EXPECT_NEAR(node.pass, step, 1e-9);
  EXPECT_NEAR(node.optimizer, 2e-3 * node.shares.most_polar_flops / node.shares.polar_flops, 1e-12);
  const double latency = 7 * 3.4e-6;  // of each piece and of the rest
  EXPECT_NEAR(node.reduce, 7 * 4 * most / 370e9 + static_cast<double>(node.shares.layer_pieces + 1) * latency, 1e-9);
  EXPECT_EQ(node.reduce, node.gather);
  // 0.8 ms beside 9 ms, but for the last of the pieces, and what is no matrix.
  const auto pieces = static_cast<double>(node.shares.layer_pieces);
  EXPECT_GT(pieces, 1);
  EXPECT_NEAR(node.hidden,
              (pieces - 1) / pieces * node.reduce * static_cast<double>(node.shares.each_layer_elements) / most, 1e-9);
  // Every rank copies all weights once, float32 to float32: its own into the memory that is exchanged, those of others
  // out of it. Then it writes all matrices and the embedding in bfloat16. 4.2 TB/s.
  const double embedding = 49152.0 * 512, matrices = 22.0 * (1536 * 512 + 2 * 2048 * 512);
  const double gains = 22.0 * (2 * 512 + 2 * 64) + 512;
  const double copying = ((embedding + matrices + gains) * 8 + (embedding + matrices) * 6) / 4.2e12;
  EXPECT_NEAR(node.copying, copying, 1e-9);
  EXPECT_NEAR(node.tokens_per_s(), 65'536 / (node.pass + node.optimizer + 2 * node.reduce + latency + copying), 1e-3);
  EXPECT_NEAR(node.per_gpu(), (8 * step + 2e-3) / 8 / node.update_seconds(), 1e-9);  // one GPU, 8 forward steps
}

TEST(Plan, RanksThatShareTheAccumulationLeaveItAsItIs) {
  auto setup = preset_setup("88m");
  setup.train.accumulation = 64;
  setup.train.probe_every = 64;
  for (const std::int64_t ranks : {1, 2, 8, 64}) {
    const ScalePlan plan = compute_plan(setup, ring, ranks, cluster_of("h200x8"));
    EXPECT_EQ(plan.asked().accumulation, 64);
    EXPECT_THAT(plan.actions, Not(Contains(HasSubstr("cannot share"))));
  }
}

TEST(Plan, OtherwiseItIsRaisedAndSaid) {
  auto setup = preset_setup("88m");  // 2 forward steps of 4
  const ScalePlan eight = compute_plan(setup, ring, 8, cluster_of("h200x8"));
  EXPECT_EQ(eight.asked().accumulation, 8);
  EXPECT_THAT(eight.actions,
              Contains(::testing::AllOf(HasSubstr("8 ranks cannot share train.accumulation=2 evenly"),
                                        HasSubstr("What is planned: --set train.accumulation=8, which makes 65,536 "
                                                  "tokens an update instead of 16,384."),
                                        HasSubstr("What keeps 16,384 tokens an update instead: --set train.batch=1 "
                                                  "train.accumulation=8"))));
  const ScalePlan many = compute_plan(setup, ring, 64, cluster_of("h200x8"));
  EXPECT_THAT(many.actions,
              Contains(::testing::AllOf(HasSubstr("--set train.accumulation=64 train.probe_every=128"),
                                        HasSubstr("Nothing keeps 16,384 tokens an update: its 8 sequences"))));
  setup.train.accumulation = 12;
  EXPECT_EQ(compute_plan(setup, ring, 8, cluster_of("h200x8")).asked().accumulation, 16);
  setup.train.accumulation = 1'000'000;  // twice 600,000 is more than a configuration may have
  EXPECT_EQ(compute_plan(setup, ring, 600'000, cluster_of("h200x8")).asked().accumulation, 600'000);
}

TEST(Plan, OrderedGradientsTravelAfterEveryForwardStep) {
  auto setup = preset_setup("88m");
  setup.train.accumulation = 32;
  const RankPlan once = compute_plan(setup, ring, 8, cluster_of("h200x8")).asked();
  const RankPlan ordered = compute_plan(setup, RanksReduce::ordered, 8, cluster_of("h200x8")).asked();
  EXPECT_DOUBLE_EQ(ordered.traffic_bytes, once.traffic_bytes / 2 * (4 + 1));
  EXPECT_GT(ordered.update_seconds(), once.update_seconds());
  EXPECT_GT(ordered.hidden, once.hidden);
}

TEST(Plan, MoreRanksAreFasterSmallerAndWaitMore) {
  for (const char* preset : {"88m", "1.5b"}) {
    const ScalePlan plan = planned(preset, 1024);
    std::vector<std::int64_t> ranks;
    for (const RankPlan& row : plan.rows) ranks.push_back(row.ranks);
    EXPECT_THAT(ranks, ::testing::ElementsAre(1, 8, 64, 512, 1024));
    for (std::size_t i = 1; i < plan.rows.size(); ++i) {
      const RankPlan &row = plan.rows[i], &before = plan.rows[i - 1];
      EXPECT_GT(row.tokens_per_s(), before.tokens_per_s()) << row.ranks;
      EXPECT_GT(row.traffic_bytes, before.traffic_bytes) << row.ranks;
      EXPECT_LE(row.memory.state, before.memory.state) << row.ranks;
      EXPECT_LE(row.optimizer, before.optimizer) << row.ranks;
      EXPECT_GE(row.straggler, before.straggler) << row.ranks;
      EXPECT_GE(row.overlapped_tokens_per_s(), row.tokens_per_s()) << row.ranks;
      EXPECT_LE(row.hidden, row.reduce);
    }
  }
}

TEST(Plan, SlowerNetworksAndGpusMakeItSlower) {
  const Cluster cluster = with_speed(500'000);
  Cluster slow_nic = cluster, slow_link = cluster;
  slow_nic.nic_gb_s = 1;
  slow_link.link_gb_s = 10;
  const auto speed = [](std::int64_t ranks, const Cluster& of) {
    return compute_plan(preset_setup("88m"), ring, ranks, of).asked().tokens_per_s();
  };
  EXPECT_EQ(speed(8, cluster), speed(8, slow_nic));  // one node has no use for a NIC
  EXPECT_GT(speed(64, cluster), speed(64, slow_nic));
  EXPECT_GT(speed(8, cluster), speed(8, slow_link));
  EXPECT_GT(speed(64, cluster), speed(64, with_speed(250'000)));
}

// One rank exchanges nothing and copies nothing. Autograd casts weights in its forward pass: no copies are kept.
TEST(Plan, OnlySeveralRanksCopyWeights) {
  EXPECT_EQ(planned("88m", 1).one().copying, 0);
  EXPECT_THAT(planned("88m", 1).assumptions, Not(Contains(testing::Field(&Assumption::text, HasSubstr("copied")))));
  auto setup = preset_setup("88m");
  setup.model.activation = Activation::gelu;
  const auto total = static_cast<double>(count_parameters(setup.model).total);
  EXPECT_NEAR(compute_plan(setup, ring, 8, cluster_of("h200x8")).asked().copying, 8 * total / 4.2e12, 1e-12);
  // Data sheets: 4.8 TB/s of an H200, 3.35 of an H100.
  EXPECT_NEAR(compute_plan(setup, ring, 8, cluster_of("h100x8")).asked().copying, 8 * total / (4.2e12 * 3.35 / 4.8),
              1e-12);
  for (const auto& [cluster, origin, rate] :
       {std::tuple("h200x8", "measured", "4.2"), std::tuple("h100x8", "assumed", "2.9")})
    EXPECT_THAT(
        compute_plan(setup, ring, 8, cluster_of(cluster)).assumptions,
        Contains(::testing::AllOf(testing::Field(&Assumption::text, HasSubstr(fmt::format("copied at {} TB/s", rate))),
                                  testing::Field(&Assumption::origin, origin))));
}

// 22.91·D^0.47 reaches 1.2·256 sequences at D = 250.4 million, worked out with logarithms.
TEST(CriticalBatch, IsTheLaw) {
  for (const double tokens : {1.0, 50e6, 1e9, 1e15})
    EXPECT_NEAR(critical_batch_tokens(tokens) / (512 * 22.91 * std::exp(0.47 * std::log(tokens / 1e6))), 1, 1e-12);
  const double crossover = 1e6 * std::exp(std::log(1.2 * 256 / 22.91) / 0.47);
  EXPECT_NEAR(crossover, 250.447e6, 1e3);
  EXPECT_NEAR(least_tokens_of_law() / crossover, 1, 1e-12);
}

TEST(Plan, WarnsOfABatchBeyondUse) {
  auto setup = preset_setup("88m");  // 8,192 tokens a forward step
  const auto on = [&](std::int64_t ranks) { return compute_plan(setup, ring, ranks, cluster_of("h200x8")); };
  const auto of_batch = HasSubstr("batch: ");
  EXPECT_NEAR(on(8).critical_batch, 73'758, 1);          // of 50 M tokens: 22.91·50^0.47 = 144.06 sequences
  EXPECT_EQ(on(8).useful_ranks, 8);                      // of 9, full nodes
  EXPECT_THAT(on(9).warnings, Not(Contains(of_batch)));  // 73,728 tokens
  EXPECT_THAT(on(10).warnings, Contains(of_batch));      // 81,920
  EXPECT_THAT(on(64).warnings, Contains(::testing::AllOf(
                                   HasSubstr("batch: 524,288 tokens an update are about 7 times the "
                                             "critical batch, 73,758 tokens"),
                                   HasSubstr("; 8 ranks with one forward step of train.batch=4 each stay below it"))));
  const auto says_little =
      HasSubstr("by its own definition it is 157,286 at least, and it compares with 131,072 tokens");
  EXPECT_THAT(on(64).assumptions, Contains(testing::Field(&Assumption::text, says_little)));
  setup.train.tokens = 250'000'000;
  EXPECT_THAT(on(64).assumptions, Contains(testing::Field(&Assumption::text, says_little)));
  setup.train.tokens = 251'000'000;
  EXPECT_THAT(on(64).assumptions, Not(Contains(testing::Field(&Assumption::text, says_little))));
  setup.train.tokens = 2'000'000'000;  // 22.91·2000^0.47 = 815.6 sequences
  EXPECT_NEAR(on(8).critical_batch, 417'600, 100);
  EXPECT_EQ(on(8).useful_ranks, 48);  // of 50
  EXPECT_THAT(on(64).warnings, Contains(::testing::AllOf(
                                   HasSubstr("about 1.3 times the critical batch, 417,6"),
                                   HasSubstr("; 48 ranks with one forward step of train.batch=4 each stay below it"))));
  setup.train.accumulation = 96;  // on 8 ranks 6 forward steps of each have 393,216 tokens, 12 have 786,432
  EXPECT_THAT(on(8).warnings,
              Contains(HasSubstr("; --set train.accumulation=48 train.probe_every=144 stays below it")));
}

// It is explained in one place, with what was measured and what is assumed.
TEST(Plan, ExplainsTheCriticalBatchOnce) {
  const ScalePlan plan = planned("88m", 64);
  const auto explained = HasSubstr("20 % more tokens");
  EXPECT_THAT(plan.assumptions,
              Contains(testing::Field(
                           &Assumption::text,
                           ::testing::AllOf(explained, HasSubstr("Zhang et al. 2024, AdamW, 1.7 to 24 billion tokens"),
                                            HasSubstr("That as many tokens are critical with train.seq_len=2048 is "
                                                      "assumed"))))
                  .Times(1));
  for (const auto& texts : {plan.notes, plan.actions, plan.warnings})
    EXPECT_THAT(texts, Not(Contains(HasSubstr("20 % more"))));
  auto setup = preset_setup("88m");
  setup.train.seq_len = 512;
  EXPECT_THAT(compute_plan(setup, ring, 8, cluster_of("h200x8")).assumptions,
              Not(Contains(testing::Field(&Assumption::text, HasSubstr("That as many tokens")))));
}

TEST(Plan, WarnsOfFewUpdates) {
  EXPECT_THAT(planned("88m", 64).warnings, Contains(HasSubstr("updates: the whole run has 95")));
  EXPECT_THAT(planned("88m", most_ranks).warnings, Contains(HasSubstr("less than one update")));
  EXPECT_THAT(planned("88m", 1).warnings, Not(Contains(HasSubstr("updates: "))));
}

// 50 M tokens on 64 ranks are 95 updates of 64 forward steps. train.probe_every=120 becomes 128, two updates: probes
// before the first update, after 2, 4, … 94, and after the last. 49 of 0.17 s.
TEST(Plan, CountsProbesBesideTheUpdates) {
  const ScalePlan many = planned("88m", 64);
  std::int64_t probes = 0;
  for (std::int64_t update = 0; update <= 95; ++update) probes += update % 2 == 0 || update == 95 ? 1 : 0;
  EXPECT_EQ(many.probes, probes);
  EXPECT_NEAR(*many.probe_seconds(), 8.33, 1e-9);
  EXPECT_THAT(many.warnings, Contains(HasSubstr("49 probes: about 8.3 s beside 1.7 s of updates")));
  // 3,051 updates of two forward steps: 1 + 50 + 1, 8.84 s of 90, less than a tenth.
  const ScalePlan one = planned("88m", 1);
  EXPECT_EQ(one.probes, 52);
  EXPECT_THAT(one.warnings, Not(Contains(HasSubstr("probes"))));
  EXPECT_THAT(one.notes, Contains(HasSubstr("52 probes: about 8.8 s beside 1 min 30 s of updates")));
  // Other shapes, and larger probes, were not timed.
  auto larger = preset_setup("88m");
  larger.train.batch = 8;
  for (const auto& setup : {preset_setup("1.5b"), preset_setup("tiny"), larger}) {
    const ScalePlan plan = compute_plan(setup, ring, 64, cluster_of("h200x8"));
    EXPECT_FALSE(plan.probe_seconds());
    EXPECT_THAT(plan.notes, Contains(HasSubstr("the time of a probe of this shape is not known")));
    EXPECT_THAT(plan.warnings, Not(Contains(HasSubstr("probes"))));
  }
}

// docs/gpu.md, 88m, 8 x 2048 tokens: 451,014 tokens/s with train.deterministic, 25 % more time with train.recompute.
TEST(Plan, DeterministicAndRecomputeTakeLonger) {
  const auto seconds = [](const char* preset, std::int64_t batch, bool deterministic, bool recompute,
                          const Cluster& cluster) {
    auto setup = preset_setup(preset);
    setup.train.batch = batch;
    setup.train.accumulation = 1;
    setup.train.deterministic = deterministic;
    setup.train.recompute = recompute;
    return compute_plan(setup, ring, 1, cluster).one().update_seconds();
  };
  const Cluster measured = cluster_of("h200x8"), assumed = cluster_of("h100x8"), file = with_speed(100'000);
  EXPECT_NEAR(8 * 2048 / seconds("88m", 8, true, false, measured), 451'014, 1e-3);
  EXPECT_NEAR(seconds("88m", 8, false, true, measured) / (8 * 2048 / 554'735.0), 1.25, 1e-9);
  // The optimizers, 2 ms of 88m, take as long as before.
  const double plain = 8 * 2048 / 554'735.0 - 2e-3, slower = 8 * 2048 / 451'014.0 - 2e-3;
  EXPECT_NEAR(seconds("1.5b", 32, true, false, measured) - 81e-3,
              (seconds("1.5b", 32, false, false, measured) - 81e-3) * slower / plain, 1e-9);
  for (const char* preset : {"tiny", "88m", "1.5b"}) {
    const double before = seconds(preset, 8, false, false, assumed);
    EXPECT_GT(seconds(preset, 8, true, false, assumed), 1.1 * before);
    EXPECT_GT(seconds(preset, 8, false, true, assumed), 1.1 * before);
    EXPECT_GT(seconds(preset, 8, true, true, assumed), 1.3 * before);
    // A file's speed is that of the configuration.
    EXPECT_EQ(seconds(preset, 8, true, true, file), seconds(preset, 8, false, false, file));
  }
}

// 88m has 88.6 M parameters in products: 6 operations each and token, and 3.5·2·2048·512 in each of 22 layers' causal
// attention. 11.36 TFLOP in 8 x 2048 tokens, the smallest forward step that was timed. Of 1.5b it is 16 x 2048.
TEST(Plan, WarnsOfSmallForwardSteps) {
  const double per_token = 6 * (49152.0 * 512 + 22.0 * (1536 * 512 + 2 * 2048 * 512)) + 3.5 * 2 * 2048 * 512 * 22;
  EXPECT_NEAR(smallest_timed_step(preset_setup("tiny")).flops / (per_token * 8 * 2048), 1, 1e-9);
  const auto warnings = [](const char* preset, std::int64_t batch, const Cluster& cluster) {
    auto setup = preset_setup(preset);
    setup.train.batch = batch;
    return compute_plan(setup, ring, 8, cluster).warnings;
  };
  const auto small = HasSubstr("a GPU is less busy in it, so the plan is too fast");
  const auto much = HasSubstr("too fast by far");
  const Cluster measured = cluster_of("h200x8"), assumed = cluster_of("h100x8");
  for (const Cluster& cluster : {measured, assumed}) {
    EXPECT_THAT(warnings("88m", 5, cluster), Not(Contains(small)));
    EXPECT_THAT(warnings("88m", 4, cluster),
                Contains(::testing::AllOf(small, Not(much), HasSubstr("a forward step of 4 x 2048 tokens has 50 % of"),
                                          HasSubstr("timed of 88m (8 x 2048 tokens)"))));
    EXPECT_THAT(warnings("1.5b", 9, cluster), Not(Contains(small)));
    EXPECT_THAT(warnings("1.5b", 4, cluster),
                Contains(::testing::AllOf(small, Not(much), HasSubstr("25 %"), HasSubstr("(16 x 2048 tokens)"))));
    EXPECT_THAT(warnings("tiny", 16, cluster), Contains(::testing::AllOf(much, HasSubstr("(8 x 2048 tokens of 88m)"))));
  }
  EXPECT_THAT(warnings("tiny", 16, with_speed(1e6)), Not(Contains(small)));
  const ScalePlan usual = planned("88m", 8);
  EXPECT_THAT(usual.assumptions, Contains(testing::Field(&Assumption::text, HasSubstr("4 x 2048 was not timed: "))));
}

TEST(Plan, SaysThatRowsAreDifferentTrainings) {
  auto setup = preset_setup("88m");
  const auto different = HasSubstr("the rows of the table are different trainings");
  EXPECT_THAT(compute_plan(setup, ring, 64, cluster_of("h200x8")).actions, Contains(different));
  setup.train.accumulation = 64;
  EXPECT_THAT(compute_plan(setup, ring, 64, cluster_of("h200x8")).actions, Not(Contains(different)));
}

// 50 M tokens: 11 updates of 512 · 8,192 tokens are 46.1 M, one of 4,096 · 8,192 is 33.6 M; 95 of 64 · 8,192 are 0.4 %
// less than 50 M.
TEST(Plan, SaysWhereTheRunsOfRowsHaveFewerTokens) {
  EXPECT_THAT(planned("88m", 4096).actions,
              Contains(HasSubstr("a run is whole updates: 46.1 M tokens on 512 ranks, 33.6 M tokens on 4,096 ranks "
                                 "instead of 50.0 M tokens")));
  EXPECT_THAT(planned("88m", 64).actions, Not(Contains(HasSubstr("whole updates"))));
}

TEST(Plan, SaysWhatMarksInTheTableMean) {
  const auto none = HasSubstr("a row with - has no update"), large = HasSubstr("a row with * does not fit");
  EXPECT_THAT(planned("88m", 4096).actions, ::testing::AllOf(Not(Contains(none)), Not(Contains(large))));
  EXPECT_THAT(planned("88m", 32'768).actions, ::testing::AllOf(Contains(none), Contains(large)));
}

// The same sums as in OfANodeByHand and OfTwoNodesByHand, with 185 and 22.5 GB/s and 1.78 %; and without what is hidden
// and without 0.7 %.
TEST(Plan, RangeByHand) {
  for (const std::int64_t ranks : {8, 64, 1024}) {
    const ScalePlan plan = planned("88m", ranks);
    const RankPlan& asked = plan.asked();
    const auto count = static_cast<double>(ranks), nodes = count / 8, doublings = std::log2(nodes);
    const double latency = (count - nodes) * 3.4e-6 + (nodes - 1) * 14e-6;
    const double bandwidth = nodes > 1 ? std::min(185.0, 8 * 22.5) : 185;
    const double bytes = (count - 1) * 4 * static_cast<double>(asked.shares.each_elements);
    const double gather = bytes / (bandwidth * 1e9) + latency * static_cast<double>(asked.shares.layer_pieces + 1);
    // One rank with NCCL took 1/0.983 of the time of one process, 4 x 16,384 tokens at 554,735 a second of which 2 ms
    // an update are the optimizers': more than copies.
    const double of_ranks = (1 / 0.983 - 1) * (4 * (16'384 / 554'735.0 - 2e-3) + 2e-3);
    EXPECT_GT(of_ranks, asked.copying);
    const double low = (asked.pass + asked.optimizer + of_ranks + 2 * gather + latency) * (1 + 0.0178 * doublings);
    const auto tokens = static_cast<double>(asked.tokens_per_update);
    EXPECT_NEAR(plan.tokens_per_s_low / (tokens / low), 1, 1e-9) << ranks;
    const double high =
        asked.pass + asked.optimizer + asked.copying + asked.reduce + asked.gather + asked.numbers - asked.hidden;
    EXPECT_NEAR(plan.tokens_per_s_high / (tokens / high), 1, 1e-9) << ranks;
    EXPECT_LT(plan.tokens_per_s_low, asked.tokens_per_s());
    EXPECT_GE(plan.tokens_per_s_high, asked.overlapped_tokens_per_s());
  }
  EXPECT_NEAR(planned("88m", 1).tokens_per_s_low, planned("88m", 1).one().tokens_per_s(), 1e-6);
}

// What ranks cost is a cost of every update, or of every four forward steps of a rank.
TEST(Plan, RanksCostAtMostThatOfEveryFourForwardSteps) {
  const std::int64_t parameters = count_parameters(preset_setup("88m").model).total;
  const double once = (1 / 0.983 - 1) * (4 * (16'384 / 554'735.0 - 2e-3) + 2e-3);
  for (const std::int64_t steps : {1, 4}) EXPECT_NEAR(most_seconds_of_ranks(parameters, steps), once, 1e-12);
  EXPECT_NEAR(most_seconds_of_ranks(parameters, 10), 2.5 * once, 1e-12);
  EXPECT_NEAR(most_seconds_of_ranks(3 * parameters, 4), 3 * once, 1e-12);
}

// Bandwidths of a file stand: somebody knows them.
TEST(Plan, RangeHalvesWhatIsAssumedAlone) {
  Cluster given;
  given.given = {"link_gb_s", "nic_gb_s"};
  for (const auto& [ranks, loss] : {std::pair(8, 1.0), std::pair(64, 1.0534)}) {
    const ScalePlan plan = compute_plan(preset_setup("88m"), ring, ranks, given);
    const RankPlan& asked = plan.asked();
    const double of_ranks = most_seconds_of_ranks(count_parameters(preset_setup("88m").model).total, 1) - asked.copying;
    const double low = (asked.update_seconds() / asked.straggler + of_ranks) * loss;
    EXPECT_NEAR(plan.tokens_per_s_low, static_cast<double>(asked.tokens_per_update) / low, 1e-3);
  }
}

TEST(Plan, SaysWhatToDoAboutTheExchange) {
  const auto warnings = [](std::int64_t ranks, const Cluster& cluster, std::int64_t tokens, std::int64_t accumulation,
                           RanksReduce reduce) {
    auto setup = preset_setup("88m");
    setup.train.tokens = tokens;
    setup.train.accumulation = accumulation;
    return compute_plan(setup, reduce, ranks, cluster).warnings;
  };
  const auto with = [](const char* text) {
    return Contains(::testing::AllOf(HasSubstr("exchange: "), HasSubstr(text)));
  };
  const Cluster usual = cluster_of("h200x8");
  EXPECT_THAT(warnings(9, usual, 50'000'000, 2, ring), with("take 8 ranks: the full nodes make 3.97 M tokens/s by "
                                                            "themselves, these 9 ranks 2.42 M"));
  EXPECT_THAT(warnings(4096, usual, 50'000'000, 2, ring), with("% of an update; take fewer ranks"));
  EXPECT_THAT(warnings(4096, usual, 50'000'000, 2, ring), Not(with("train.accumulation")));  // the run has one update
  EXPECT_THAT(warnings(most_ranks, usual, most_tokens, 2, ring), Not(with("train.accumulation")));
  EXPECT_THAT(warnings(1024, usual, 50'000'000, 2, ring), with("leave the run 2 updates of 16,777,216 tokens"));
  // 2·10^9 tokens have a critical batch of 417,600.
  Cluster slow = usual;
  slow.link_gb_s = 20;
  EXPECT_THAT(warnings(8, slow, 2'000'000'000, 8, ring), with("--set train.accumulation=16 train.probe_every=128 makes "
                                                              "it less"));
  EXPECT_THAT(warnings(8, slow, 2'000'000'000, 16, RanksReduce::ordered), with("ranks.reduce=ring"));
}

TEST(Plan, WarnsOfANicThatIsFasterThanALink) {
  const auto gigabits = Contains(HasSubstr("400 Gbit/s are 50 GB/s"));
  Cluster cluster = cluster_of("h200x8");
  EXPECT_THAT(compute_plan(preset_setup("88m"), ring, 8, cluster).warnings, Not(gigabits));
  cluster.nic_gb_s = 400;
  EXPECT_THAT(compute_plan(preset_setup("88m"), ring, 8, cluster).warnings, gigabits);
}

TEST(Plan, SaysHowToMeasureASpeedThatIsAssumed) {
  auto setup = preset_setup("1.5b");
  const auto says = [&](const Cluster& cluster) { return compute_plan(setup, ring, 8, cluster).actions; };
  EXPECT_THAT(says(cluster_of("h200x8")), Not(Contains(HasSubstr("is assumed"))));
  EXPECT_THAT(says(cluster_of("h100x8")),
              Contains(::testing::AllOf(HasSubstr("Do not compare this plan with that of a cluster whose speed was "
                                                  "measured"),
                                        HasSubstr("'headscope bench train --preset 1.5b --batch 4 --device cuda'"))));
  setup.train.accumulation = 8;
  EXPECT_THAT(says(cluster_of("h100x8")), Contains(HasSubstr("--batch 4 --accumulation 8 --device cuda")));
}

TEST(PlanText, CountsAndTimes) {
  EXPECT_EQ(counted(1, "update"), "1 update");
  EXPECT_EQ(counted(0, "update"), "0 updates");
  EXPECT_EQ(counted(1024, "rank"), "1,024 ranks");
  EXPECT_EQ(gpu_time(12'345), "12,345 GPU-hours");
  EXPECT_EQ(gpu_time(0.0306), "0.0306 GPU-hours");
  EXPECT_EQ(gpu_time(3.28e-6), "0.01 GPU-seconds");
  EXPECT_EQ(gpu_time(1e-6), "less than 0.01 GPU-seconds");
}

// docs/scale.md: the rings have the NICs of the node that has fewest ranks.
TEST(Plan, ANinthRankIsSlowerThanEight) {
  EXPECT_LT(planned("88m", 9).asked().tokens_per_s(), planned("88m", 8).asked().tokens_per_s());
}

TEST(Plan, WarnsOfPaddingAndOfMemory) {
  EXPECT_THAT(planned("88m", 8).warnings, Not(Contains(HasSubstr("padding"))));
  EXPECT_THAT(
      planned("88m", 1024).warnings,
      Contains(::testing::AllOf(HasSubstr("padding: 88.6 M parameters travel as 1.10 G numbers, 12.4 times as many"),
                                HasSubstr("958 of 1,024 ranks have none of the 66 matrices"))));
  EXPECT_THAT(planned("1.5b", 8).warnings, Not(Contains(HasSubstr("memory"))));
  auto large = preset_setup("1.5b");
  large.train.batch = 64;
  EXPECT_THAT(compute_plan(large, ring, 8, cluster_of("h200x8")).warnings, Contains(HasSubstr("do not fit in 141 GB")));
}

TEST(Plan, NumbersOfRanksOutOfRangeAreRefused) {
  for (const std::int64_t ranks : {std::int64_t{0}, std::int64_t{-3}, most_ranks + 1, INT64_MAX, INT64_MIN})
    test::expect_error(Fault::input, "--ranks is ", [&] { planned("tiny", ranks); });
}

// Sizes at their limits: finite and positive numbers.
TEST(Plan, OfTheLargestSetupIsFinite) {
  headscope::Setup setup;  // a test has a Setup of its own
  setup.model = test::largest_model();
  setup.train.tokens = most_tokens;
  setup.train.batch = 1 << 20;
  for (const std::int64_t ranks : {std::int64_t{1}, std::int64_t{1000}, most_ranks - 1, most_ranks}) {
    const ScalePlan plan = compute_plan(setup, ring, ranks, cluster_of("h200x8"));
    for (const double value : {plan.asked().tokens_per_s(), plan.asked().memory.total(), plan.asked().update_seconds(),
                               plan.critical_batch}) {
      EXPECT_TRUE(std::isfinite(value));
      EXPECT_GT(value, 0);
    }
    EXPECT_GT(plan.asked().tokens_per_update, 0);
  }
}

TEST(Plan, RunsOfAStudySideBySide) {
  const ScalePlan plan = planned("88m", 8);
  const ManyRuns three = plan_runs(plan, 3), twenty = plan_runs(plan, 20);
  EXPECT_EQ(three.rounds, 1);
  EXPECT_EQ(twenty.rounds, 3);
  EXPECT_DOUBLE_EQ(twenty.side_by_side, 3 * plan.one().run_seconds());
  EXPECT_DOUBLE_EQ(twenty.one_after_another, 20 * plan.asked().run_seconds());
}

}  // namespace
}  // namespace headscope
