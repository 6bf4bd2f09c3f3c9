#include "train/loop.h"

#include <ATen/CPUGeneratorImpl.h>

#include "core/atomic_file.h"
#include "formats/parquet_table.h"
#include "heads/training_log.h"
#include "support/exact_model.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/small_run.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::cpu;
using test::expect_error;
using test::run;
using test::small_corpus;
using test::small_job;
using test::TemporaryFolder;
using test::weights_of;

std::string bytes_of(const fs::path& file) {
  return read_file(file);
}

// All tables, but for the column that holds times.
void expect_same_tables(const fs::path& a, const fs::path& b) {
  for (const char* name : {"probes", "layers", "heads", "gamma"}) {
    const fs::path part = fs::path(fmt::format("{}.parquet", name)) / "part-00000.parquet";
    EXPECT_EQ(bytes_of(a / part), bytes_of(b / part)) << name;
  }
  const Table first = read_parquet(a / "steps.parquet"), second = read_parquet(b / "steps.parquet");
  for (const char* column : {"step", "tokens", "loss", "lr", "adamw_lr", "grad_norm"})
    EXPECT_EQ(first.numbers(column), second.numbers(column)) << column;
}

void expect_same_end(const fs::path& a, const fs::path& b) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(bytes_of(a / "checkpoints/step-000012" / name), bytes_of(b / "checkpoints/step-000012" / name)) << name;
  expect_same_tables(a, b);
}

TEST(Train, WritesTablesAndKeepsTheLastCheckpoints) {
  const TemporaryFolder folder;
  run(small_job(folder.path()));
  const Table steps = read_parquet(folder / "steps.parquet");
  EXPECT_EQ(steps.rows(), 12U);
  EXPECT_EQ(steps.integers("tokens").back(), 12 * 4 * 32 * 2);
  const Table probes = read_parquet(folder / "probes.parquet");
  EXPECT_EQ(probes.integers("step"), (Integers{0, 3, 6, 9, 12}));
  EXPECT_TRUE(std::isnan(probes.numbers("loss")[0]));
  EXPECT_TRUE(std::isnan(probes.numbers("val_loss")[0]));
  // The loss of a probe is the mean of the steps since the last one.
  const Numbers loss = steps.numbers("loss");
  for (std::size_t probe = 1; probe < 5; ++probe)
    EXPECT_DOUBLE_EQ(probes.numbers("loss")[probe],
                     (loss[3 * probe - 3] + loss[3 * probe - 2] + loss[3 * probe - 1]) / 3);
  // Of two layers: 16 measurements of 2 key heads, and of 4 query heads 11 when training (at 0 and 10) and 12 at
  // probes.
  EXPECT_EQ(read_parquet(folder / "heads.parquet").rows(), 2U * (2 * (16 * 2 + 11 * 4) + 5 * (16 * 2 + 13 * 4)));
  EXPECT_EQ(read_parquet(folder / "gamma.parquet").vectors("vector").front(), Numbers(8, 1.0));
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(folder / "checkpoints")) kept.push_back(entry.path().filename());
  EXPECT_THAT(kept, ::testing::UnorderedElementsAre("step-000008", "step-000012"));
}

std::vector<std::string> events_of(const fs::path& folder) {
  std::vector<std::string> events;
  for (const TrainingEvent& event : read_events(folder))
    events.push_back(fmt::format("{} {} {}", event.kind, event.moment.step, event.moment.tokens));
  return events;
}

TEST(Train, SaysWhereItIsAndWhatHappened) {
  const TemporaryFolder folder;
  std::vector<std::string> phases;
  TrainObserver observer;
  observer.before_writing = [&] {
    if (const auto progress = read_progress(folder.path());
        progress && (phases.empty() || phases.back() != progress->phase))
      phases.push_back(progress->phase);
  };
  run(small_job(folder.path()), observer);
  EXPECT_THAT(events_of(folder.path()),
              ::testing::ElementsAre("start 0 0", "probe 0 0", "probe 3 768", "checkpoint 4 1024", "probe 6 1536",
                                     "checkpoint 8 2048", "probe 9 2304", "probe 12 3072", "checkpoint 12 3072",
                                     "end 12 3072"));
  EXPECT_THAT(phases, ::testing::AllOf(::testing::Contains("probe"), ::testing::Contains("checkpoint"),
                                       ::testing::Contains("training")));
  const auto progress = read_progress(folder.path());
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->phase, "figures");  // what follows in a run
  EXPECT_EQ(progress->moment, (Moment{12, 3072}));
  EXPECT_EQ(progress->steps, 12);
  EXPECT_EQ(progress->loss, read_parquet(folder / "steps.parquet").numbers("loss").back());
  EXPECT_EQ(progress->seconds_left, 0);
}

TEST(Resume, SaysSoAndForgetsEventsBehindItsCheckpoint) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder.path());
  job.options.keep_checkpoints = 100;
  run(job);
  for (const char* later : {"step-000008", "step-000012"}) fs::remove_all(folder / "checkpoints" / later);
  run(job);
  EXPECT_THAT(events_of(folder.path()),
              ::testing::ElementsAre("start 0 0", "probe 0 0", "probe 3 768", "checkpoint 4 1024", "end 12 3072",
                                     "resume 4 1024", "probe 6 1536", "checkpoint 8 2048", "probe 9 2304",
                                     "probe 12 3072", "checkpoint 12 3072", "end 12 3072"));
  const double loss = read_progress(folder.path())->loss;
  run(job);  // nothing is left to train
  EXPECT_EQ(events_of(folder.path()).size(), 14U);
  EXPECT_EQ(read_progress(folder.path())->loss, loss);
}

TEST(Train, LearnsMoreThanFrequencies) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder.path());
  job.options.tokens *= 10;
  job.options.probe_every = 240;
  run(job);
  const Numbers loss = read_parquet(folder / "probes.parquet").numbers("val_loss");
  EXPECT_LT(loss.back(), 3.2);  // the language's unigram entropy
  EXPECT_GT(loss.back(), 0.5);  // its true entropy is 0.58
}

// A stop after so many steps: the checkpoint of that step is what a killed run leaves.
TEST(Resume, ContinuesBitForBitFromEveryCheckpoint) {
  const TemporaryFolder folder;
  TrainJob whole = small_job(folder / "whole");
  whole.options.keep_checkpoints = 100;
  run(whole);
  for (const char* last : {"step-000004", "step-000008", "step-000012"}) {
    const fs::path copy = folder / last;
    fs::copy(folder / "whole", copy, fs::copy_options::recursive);
    for (const auto& entry : fs::directory_iterator(folder / "whole" / "checkpoints"))
      if (entry.path().filename() > last) fs::remove_all(copy / "checkpoints" / entry.path().filename());
    TrainJob job = whole;
    job.folder = copy;
    run(job);
    expect_same_end(folder / "whole", copy);
  }
}

void expect_same_tracks(const Tracks& a, const Tracks& b) {
  EXPECT_EQ(a.moments, b.moments);
  EXPECT_EQ(a.counts.layers, b.counts.layers);
  EXPECT_EQ(a.counts.key_heads, b.counts.key_heads);
  EXPECT_EQ(a.counts.query_heads, b.counts.query_heads);
  for (const Metric& metric : head_metrics()) {
    ASSERT_EQ(a.has(metric.name), b.has(metric.name)) << metric.name;
    for (std::size_t moment = 0; moment < a.moments.size(); ++moment) {
      const auto x = a.at(metric.name, moment), y = b.at(metric.name, moment);
      ASSERT_EQ(x.size(), y.size());
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size_bytes()), 0) << metric.name;  // NaN equals itself
    }
  }
}

// What a run keeps in memory is what a reader finds in its files, also of fewer moments than there were.
TEST(Result, IsWhatTheFilesHold) {
  for (const std::size_t most : {std::size_t{1000}, std::size_t{4}}) {
    const TemporaryFolder folder;
    TrainJob job = small_job(folder / "run");
    job.track.every = 1;
    job.keep_moments = most;
    const TrainResult result = run(job);
    const RunTracks read = read_tracks(job.folder, most);
    EXPECT_EQ(read.train.moments.size(), std::min<std::size_t>(most, 12));
    expect_same_tracks(result.tracks.train, read.train);
    expect_same_tracks(result.tracks.probe, read.probe);
    ASSERT_EQ(result.tracks.gains.size(), read.gains.size());
    EXPECT_GT(read.gains.size(), 0U);
    for (std::size_t i = 0; i < read.gains.size(); ++i) {
      EXPECT_EQ(result.tracks.gains[i].moment, read.gains[i].moment);
      EXPECT_EQ(result.tracks.gains[i].layer, read.gains[i].layer);
      EXPECT_EQ(result.tracks.gains[i].q, read.gains[i].q);
      EXPECT_EQ(result.tracks.gains[i].k, read.gains[i].k);
    }
    EXPECT_EQ(result.losses.back().validation, read_losses(job.folder).back().validation);
    // The same run, stopped after the first checkpoint: the result is read from the files.
    TrainJob first = job;
    first.folder = folder / "stopped";
    first.options.keep_checkpoints = 100;
    run(first);
    for (const char* later : {"step-000008", "step-000012"}) fs::remove_all(first.folder / "checkpoints" / later);
    const TrainResult resumed = run(first);
    expect_same_tracks(resumed.tracks.train, result.tracks.train);
    expect_same_tracks(resumed.tracks.probe, result.tracks.probe);
    EXPECT_EQ(resumed.losses.size(), result.losses.size());
  }
}

TEST(QkGain, ThatIsFixedStaysOne) {
  for (const QkGain gain : {QkGain::learned, QkGain::fixed}) {
    TrainJob job = small_job("");
    job.options.qk_gain = gain;
    const Corpus corpus = small_corpus(job.options);
    Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
    for (int i = 0; i < 3; ++i) trainer.step();
    for (const DecoderLayer& layer : trainer.model().layers) {
      EXPECT_EQ(at::equal(layer.k_gain, at::ones({8})), gain == QkGain::fixed);
      EXPECT_EQ(at::equal(layer.q_gain, at::ones({8})), gain == QkGain::fixed);
      EXPECT_FALSE(at::equal(layer.attention_norm.gain, at::ones({32})));
    }
  }
}

TEST(Resume, GoesOnBitForBitWithOneGainThatDecaysToOne) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder / "whole");
  job.model.qk_gain = QkGainShape::scalar;
  job.options.optim.gain_decay.number = 20;
  job.options.optim.gain_decay_target = 1;
  job.options.keep_checkpoints = 100;
  const TrainResult whole = run(job);
  job.folder = folder / "stopped";
  run(job);
  for (const char* later : {"step-000008", "step-000012"}) fs::remove_all(job.folder / "checkpoints" / later);
  const TrainResult resumed = run(job);
  ASSERT_EQ(resumed.tracks.gains.size(), whole.tracks.gains.size());
  for (std::size_t i = 0; i < whole.tracks.gains.size(); ++i) {
    EXPECT_EQ(resumed.tracks.gains[i].k, whole.tracks.gains[i].k);
    EXPECT_EQ(whole.tracks.gains[i].k, std::vector<double>(8, whole.tracks.gains[i].k[0]));
  }
  EXPECT_NE(whole.tracks.gains.back().k[0], 1);
  EXPECT_EQ(resumed.losses.back().validation, whole.losses.back().validation);
}

TEST(Resume, WithoutACheckpointStartsAgain) {
  const TemporaryFolder folder;
  run(small_job(folder / "whole"));
  fs::copy(folder / "whole", folder / "copy", fs::copy_options::recursive);
  fs::remove_all(folder / "copy" / "checkpoints");
  run(small_job(folder / "copy"));
  expect_same_end(folder / "whole", folder / "copy");
}

TEST(Resume, WithOtherDataIsRefused) {
  const TemporaryFolder folder;
  const TrainJob job = small_job(folder.path());
  run(job);
  Corpus corpus = small_corpus(job.options);
  corpus.hash = "other";
  expect_error(Fault::input, "the data is not what it was", [&] { train(job, corpus, cpu()); });
}

TEST(Probe, ChangesNothing) {
  const TrainJob job = small_job("");
  const Corpus corpus = small_corpus(job.options);
  Trainer probed(make_decoder(job.model, 1), job.options, 1, corpus, cpu()),
      plain(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(probed.probe(MetricSelection("all", "test"), true));
    probed.step();
    plain.step();
  }
  const auto a = weights_of(probed), b = weights_of(plain);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
}

// Mean over layers of k_max_abs_mean after some steps.
double largest_components(double penalty, StepRecord& first) {
  TrainJob job = small_job("");
  job.options.max_abs_penalty = penalty;
  const Corpus corpus = small_corpus(job.options);
  Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  first = *trainer.step();
  for (int i = 0; i < 15; ++i) trainer.step();
  double sum = 0;
  for (const HeadValues& layer : trainer.probe(MetricSelection("outlier", "test"), false).layers)
    sum += layer.at("k_max_abs_mean")[0];
  return sum / 2;
}

TEST(MaxAbsPenalty, KeepsComponentsSmallAndIsNotPartOfTheLoss) {
  StepRecord free, bound, tightly_bound;
  const double without = largest_components(0, free), with = largest_components(0.3, bound);
  EXPECT_LT(with, 0.95 * without);
  EXPECT_LT(largest_components(3, tightly_bound), with);
  EXPECT_EQ(bound.loss, free.loss);
  EXPECT_NE(bound.grad_norm, free.grad_norm);
}

// The gradient of λ·mean max|k_i| in every parameter is that of its definition.
TEST(MaxAbsPenalty, GradientIsThatOfItsDefinition) {
  const TrainJob job = small_job("");
  const Decoder model = make_decoder(job.model, 3);
  at::Generator generator = at::detail::createCPUGenerator(4);
  const at::Tensor tokens = at::randint(0, 258, {2, 16}, generator, at::kLong);
  const auto penalty = [&](const Decoder& of) {
    double sum = 0;
    const at::NoGradGuard no_gradients;
    final_hidden(of, tokens, at::kDouble, {.observe = [&](std::int64_t, const HeadVectors& vectors) {
                   const at::Tensor k = vectors.k_bthd.flatten(0, 2);
                   for (std::int64_t i = 0; i < k.size(0); ++i)
                     sum += k[i].abs().max().item<double>() / static_cast<double>(k.size(0));
                 }});
    return sum;
  };
  const Decoder wide = test::converted(model, at::kDouble);
  at::Tensor total = at::zeros({}, at::kDouble);
  final_hidden(wide, tokens, at::kDouble, {.observe = [&](std::int64_t, const HeadVectors& vectors) {
                 total = total + mean_largest_component(vectors.k_bthd);
               }});
  torch::autograd::backward({total}, {});
  // Along the gain of the first layer's keys, where the penalty is piecewise linear: central differences are exact.
  const at::Tensor gain = wide.layers[0].k_gain;
  for (std::int64_t i = 0; i < gain.numel(); ++i) {
    const double step = 1e-6, before = gain[i].item<double>();
    const at::NoGradGuard no_gradients;
    gain[i].fill_(before + step);
    const double above = penalty(wide);
    gain[i].fill_(before - step);
    const double below = penalty(wide);
    gain[i].fill_(before);
    EXPECT_NEAR(gain.grad()[i].item<double>(), (above - below) / (2 * step), 1e-6) << i;
  }
}

// Two forward steps of 4 sequences are one of 8, but for the order of sums.
TEST(Accumulation, IsALargerBatch) {
  TrainJob two = small_job(""), one = small_job("");
  one.options.batch = 8;
  one.options.accumulation = 1;
  one.options.validation_batches = 1;
  const Corpus corpus = small_corpus(two.options);
  Trainer accumulated(make_decoder(two.model, 1), two.options, 1, corpus, cpu()),
      whole(make_decoder(one.model, 1), one.options, 1, corpus, cpu());
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(accumulated.step()->loss, whole.step()->loss, 1e-4);
}

TEST(NotFinite, StopsWithTheStepAndTheParameterAndSavesTheStateBefore) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder.path());
  job.options.optim.muon_lr = 1e30;
  expect_error(Fault::runtime, "test: step ", [&] { run(job); });
  expect_error(Fault::runtime, "not finite; the largest gradient is that of ", [&] { run(job); });
  const auto latest = latest_checkpoint(folder / "checkpoints");
  ASSERT_TRUE(latest.has_value());
  EXPECT_LT(nlohmann::json::parse(read_file(*latest / "state.json"))["step"], 12);
  EXPECT_EQ(read_progress(folder.path())->phase, "failed");
  EXPECT_EQ(read_events(folder.path()).back().kind, "end");
  EXPECT_NE(read_events(folder.path()).back().text.find("not finite"), std::string::npos);
}

TEST(NotFinite, IsAResultWhereThatIsAskedFor) {
  const TemporaryFolder folder;
  TrainJob job = small_job(folder.path());
  job.options.optim.muon_lr = 1e30;
  job.diverges_to_result = true;
  const TrainResult result = run(job);
  ASSERT_TRUE(result.divergence.has_value());
  EXPECT_LT(result.divergence->moment.step, 12);
  EXPECT_EQ(read_progress(folder.path())->phase, "diverged");
  EXPECT_EQ(result.losses.front().moment.step, 0);
  EXPECT_NE(result.divergence->found.find("not finite"), std::string::npos);
}

// Outside of a run, too, it is an error like others, with its numbers.
TEST(NotFinite, IsAnErrorInOneLine) {
  TrainJob job = small_job("");
  job.options.optim.muon_lr = 1e30;
  const Corpus corpus = small_corpus(job.options);
  Trainer trainer(make_decoder(job.model, 1), job.options, 1, corpus, cpu());
  const auto all_steps = [&] {
    for (int i = 0; i < 12; ++i) trainer.step();
  };
  expect_error(Fault::runtime, "not finite; the largest gradient is that of ", all_steps);
  try {
    trainer.step();
    FAIL() << "a step that is not finite was made";
  } catch (const NotFinite& failure) {
    EXPECT_TRUE(failure.found.starts_with(fmt::format("step {}: loss ", trainer.steps_done() + 1))) << failure.found;
  }
}

class Damaged : public ::testing::Test {
 protected:
  Damaged() { run(small_job(folder.path())); }
  void flip(const std::string& name, std::size_t place) const {
    const fs::path file = folder / "checkpoints/step-000012" / name;
    std::string bytes = read_file(file);
    bytes[place % bytes.size()] = static_cast<char>(bytes[place % bytes.size()] ^ 4);
    write_file(file, bytes);
  }
  TemporaryFolder folder;
};

TEST_F(Damaged, WeightsAreRefused) {
  flip("model.safetensors", 100'001);
  expect_error(Fault::input, "model.safetensors: its content does not match the hash",
               [&] { run(small_job(folder.path())); });
}

TEST_F(Damaged, OptimizerStateIsRefused) {
  flip("optimizer.safetensors", 50'003);
  expect_error(Fault::input, "optimizer.safetensors: its content does not match",
               [&] { run(small_job(folder.path())); });
}

TEST_F(Damaged, StateIsRefusedWhereverABitFlips) {
  const std::string state = read_file(folder / "checkpoints/step-000012/state.json");
  for (std::size_t place = 0; place < state.size(); place += 37) {
    flip("state.json", place);
    expect_error(Fault::input, "state.json: ", [&] { run(small_job(folder.path())); });
    write_file(folder / "checkpoints/step-000012/state.json", state);
  }
}

TEST_F(Damaged, AnEarlierCheckpointIsUsedWhenTheDamagedOneIsRemoved) {
  const TemporaryFolder other;
  run(small_job(other / "whole"));
  flip("model.safetensors", 100'001);
  fs::remove_all(folder / "checkpoints/step-000012");
  run(small_job(folder.path()));
  expect_same_end(other / "whole", folder.path());
}

}  // namespace
}  // namespace headscope
