#include "settings/ranks_options.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace headscope {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> found;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    found.push_back(i);
    if (i != number / i) found.push_back(number / i);
  }
  std::ranges::sort(found);
  return found;
}

// What to take where nothing keeps the tokens of an update.
std::string next_accumulation(const TrainOptions& options, std::int64_t ranks) {
  const std::int64_t next = (options.accumulation + ranks - 1) / ranks * ranks;
  return fmt::format(
      "--set train.accumulation={}{}: train.accumulation must be a multiple of the ranks. The tokens of an update can "
      "stay only where its sequences are a multiple of {} ({} now)",
      next, probes_between(options, next), ranks, options.batch * options.accumulation);
}

}  // namespace

std::string probes_between(const TrainOptions& options, std::int64_t accumulation) {
  const std::int64_t updates = (options.probe_every + accumulation - 1) / accumulation;
  return options.probe_every % accumulation == 0 ? "" : fmt::format(" train.probe_every={}", updates * accumulation);
}

std::optional<std::int64_t> shared_accumulation(const TrainOptions& options, std::int64_t ranks) {
  const std::int64_t sequences = options.batch * options.accumulation;
  if (sequences % ranks != 0) return std::nullopt;
  std::optional<std::int64_t> best;
  for (const std::int64_t each : divisors(sequences / ranks)) {
    if (ranks * each > most_of_a_batch) break;
    best = ranks * each;
    if (*best > options.accumulation) break;
  }
  return best;
}

void check_ranks(const TrainOptions& options, std::int64_t ranks, const std::string& said_by, bool goes_on) {
  if (options.accumulation % ranks == 0) return;
  const std::string origin = said_by.empty() ? "" : fmt::format("{} is {}: ", said_by, ranks);
  if (goes_on)
    fail_input(
        "{}{} ranks cannot share train.accumulation={} evenly, with which the run began; it goes on with {} rank{}",
        origin, ranks, options.accumulation, fmt::join(divisors(options.accumulation), ", "),
        options.accumulation == 1 ? "" : "s");
  const std::int64_t sequences = options.batch * options.accumulation;
  const auto steps = shared_accumulation(options, ranks);
  fail_input("{}{} ranks cannot share train.accumulation={} evenly; take {} rank{}, or {}", origin, ranks,
             options.accumulation, fmt::join(divisors(options.accumulation), ", "),
             options.accumulation == 1 ? "" : "s",
             steps ? fmt::format("--set train.batch={} train.accumulation={}{}, which keep the {} tokens of an update",
                                 sequences / *steps, *steps, probes_between(options, *steps), options.tokens_per_step())
                   : next_accumulation(options, ranks));
}

}  // namespace headscope
