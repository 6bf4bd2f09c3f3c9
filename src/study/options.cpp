#include "study/options.h"

#include <set>

#include "verdict/results.h"

namespace headscope {
namespace {

// Learns the embedded language in under a minute on two cores.
StudyOptions tiny() {
  return {};
}

// The source study's training (seed 004): 4 sequences a forward step, 2 forward steps an update, a probe every 120.
StudyOptions source_study() {
  StudyOptions options;
  options.model.vocabulary = 49152;
  options.train.seq_len = 2048;
  options.train.batch = 4;
  options.train.accumulation = 2;
  options.train.tokens = 50'000'000;
  options.train.probe_every = 120;
  options.train.checkpoint_every = 500;
  return options;
}

StudyOptions of_88m() {
  StudyOptions options = source_study();
  options.preset = "88m";
  options.model.d_model = 512;
  options.model.layers = 22;
  options.model.heads = 8;
  options.model.kv_heads = 4;
  options.model.d_k = 64;
  options.model.d_ff = 2048;
  options.train.optim.muon_lr = 0.024;
  options.train.optim.adamw_lr = 0.006;
  return options;
}

StudyOptions of_1_5b() {
  StudyOptions options = source_study();
  options.preset = "1.5b";
  options.model.d_model = 2048;
  options.model.layers = 32;
  options.model.heads = 16;
  options.model.kv_heads = 8;
  options.model.d_k = 128;
  options.model.d_ff = 8192;
  options.train.optim.muon_lr = 0.012;
  options.train.optim.adamw_lr = 0.003;
  return options;
}

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

}  // namespace

StudyOptions study_preset(const std::string& name) {
  if (name == "tiny") return tiny();
  if (name == "88m") return of_88m();
  if (name == "1.5b") return of_1_5b();
  fail_input("--preset {}: expected tiny, 88m or 1.5b", name);
}

StudyOptions resolve_study(const std::vector<ConfigEntry>& entries) {
  std::string preset = "tiny";
  for (const ConfigEntry& entry : entries)
    if (entry.key == "preset") preset = entry.value;
  StudyOptions options = study_preset(preset);
  for (const ConfigEntry& entry : entries)
    if (entry.key != "preset") apply(options, entry);
  options.model.positions = options.train.seq_len;
  return options;
}

void validate(const StudyOptions& options) {
  validate(options.model);
  validate(options.train);
  validate(options.data);
  if (!(options.tau > 0) || std::isinf(options.tau))
    fail_input("study.tau is {}; expected a number above 0", options.tau);
  seeds_of(options);
  conditions_of(options);
}

std::vector<std::uint64_t> seeds_of(const StudyOptions& options) {
  std::vector<std::uint64_t> seeds;
  for (const std::string& part : parts_of(options.seeds)) {
    std::uint64_t seed = 0;
    if (!parse_value(part, seed))
      fail_input("study.seeds is '{}'; expected whole numbers, comma-separated", options.seeds);
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end())
      fail_input("study.seeds is '{}'; {} is there twice, a seed counts once", options.seeds, seed);
    seeds.push_back(seed);
  }
  return seeds;
}

std::vector<std::size_t> conditions_of(const StudyOptions& options) {
  std::set<std::size_t> chosen;
  for (const std::string& part : parts_of(options.conditions)) {
    std::size_t found = n_conditions;
    for (std::size_t i = 0; i < n_conditions; ++i)
      if (part == condition_tags[i] || part == condition_letters[i]) found = i;
    if (found == n_conditions)
      fail_input("study.conditions is '{}'; '{}' is none of {}", options.conditions, part,
                 fmt::join(condition_tags, ", "));
    chosen.insert(found);
  }
  return {chosen.begin(), chosen.end()};
}

}  // namespace headscope
