#include "plasticity/plasticity.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <variant>

#include "core/parallel.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

std::variant<Keys, Error> read_keys(const Dataset& dataset, const HeadId& id, const PlasticityOptions& options,
                                    StageTimes& times) {
  try {
    Keys keys = timed(times, Stage::read, [&] {
      return prepare_keys(read_captured_vectors(dataset.key_file(id), {options.drop_nonfinite}),
                          options.max_tokens_per_head, options.seed);
    });
    if (options.checks)
      timed(times, Stage::checks, [&] {
        shuffle_keys(keys, options.max_tokens_per_head, options.seed,
                     shuffle_generator(options.seed, id.layer, id.k_head, Side::keys));
      });
    return keys;
  } catch (const Error& error) {
    return error;
  }
}

// A head's share of its keys, which other query heads can share. The first worker that asks reads the file; others wait
// for it. An error is the error of every head that shares the keys. The last share frees them.
using SharedKeys = std::shared_future<std::variant<Keys, Error>>;

using KeyHead = std::pair<std::int64_t, std::int64_t>;  // layer, key head

std::vector<SharedKeys> share_keys(const std::vector<HeadId>& heads, const Dataset& dataset,
                                   const PlasticityOptions& options, StageTimes& times) {
  std::map<KeyHead, SharedKeys> by_key;
  std::vector<SharedKeys> shares;
  for (const HeadId& id : heads) {
    SharedKeys& keys = by_key[{id.layer, id.k_head}];
    if (!keys.valid())
      keys = std::async(std::launch::deferred, [&, id] { return read_keys(dataset, id, options, times); }).share();
    shares.push_back(keys);
  }
  return shares;
}

HeadResult analyse_files(const HeadId& id, const Dataset& dataset, const SharedKeys& shared,
                         const PlasticityOptions& options, StageTimes& times) {
  const CapturedVectors queries = timed(
      times, Stage::read, [&] { return read_captured_vectors(dataset.query_file(id), {options.drop_nonfinite}); });
  if (const auto* error = std::get_if<Error>(&shared.get())) throw Error(*error);
  const Keys& keys = std::get<Keys>(shared.get());
  if (queries.dim != keys.captured.dim)
    fail_input("{}: vectors have dimension {}, those of {} have {}; expected the same", dataset.query_file(id).string(),
               queries.dim, dataset.key_file(id).string(), keys.captured.dim);
  return analyse_head(id, queries, keys, options, times);
}

std::vector<HeadId> heads_left(const Dataset& dataset, const std::vector<HeadResult>& finished) {
  std::set<HeadId> done;
  for (const HeadResult& head : finished) done.insert(head.id);
  std::vector<HeadId> left = dataset.heads;
  std::erase_if(left, [&](const HeadId& head) { return done.contains(head); });
  return left;
}

// Orders the heads so that workers that start together read different key files: a worker waits when another one reads
// the file that it needs. At most `workers` key files are in memory then.
std::vector<HeadId> spread_over_keys(const std::vector<HeadId>& heads, std::size_t workers) {
  std::map<KeyHead, std::vector<HeadId>> by_key;
  for (const HeadId& id : heads) by_key[{id.layer, id.k_head}].push_back(id);
  std::vector<std::tuple<std::size_t, std::size_t, HeadId>> places;  // batch of key files, place among their readers
  std::size_t files = 0;
  for (const auto& [key, readers] : by_key) {
    for (std::size_t i = 0; i < readers.size(); ++i) places.emplace_back(files / workers, i, readers[i]);
    ++files;
  }
  std::sort(places.begin(), places.end());
  std::vector<HeadId> order;
  for (const auto& [batch, place, id] : places) order.push_back(id);
  return order;
}

// The message without the names of files below the root.
std::string without_files(std::string message, const std::filesystem::path& root) {
  const std::string start = (root / "").string();
  for (std::size_t at = 0; (at = message.find(start, at)) != message.npos;)
    message.erase(at, std::min(message.find_first_of(" :;,'", at + start.size()), message.size()) - at);
  return message;
}

template <class Item>
void sort_by_head(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.id < b.id; });
}

}  // namespace

PlasticityResult compute_plasticity(const PlasticityOptions& options, const Dataset& dataset,
                                    const PlasticityObserver& observer, std::vector<HeadResult> finished) {
  validate(options);
  PlasticityResult result{.options = options, .heads = std::move(finished), .failures = {}, .times = {}};
  const auto workers =
      static_cast<std::size_t>(options.max_workers.value_or(static_cast<std::int64_t>(available_cores())));
  const std::vector<HeadId> left = spread_over_keys(heads_left(dataset, result.heads), workers);
  std::vector<SharedKeys> keys = share_keys(left, dataset, options, result.times);
  std::mutex mutex;  // of the two lists of the result
  observer.started(left.size());
  parallel_for(left.size(), workers, [&](std::size_t index) {
    observer.before_head();
    std::optional<HeadResult> head;
    HeadFailure failure{left[index], {}, {}};
    try {
      head = analyse_files(left[index], dataset, keys[index], options, result.times);
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      failure.message = error.what();
      failure.reason = without_files(failure.message, dataset.root);
    }
    keys[index] = {};
    if (head)
      timed(result.times, Stage::write, [&] { observer.finished(*head); });
    else
      observer.failed(failure);
    const std::scoped_lock lock(mutex);
    if (head)
      result.heads.push_back(std::move(*head));
    else
      result.failures.push_back(std::move(failure));
  });
  sort_by_head(result.heads);
  sort_by_head(result.failures);
  return result;
}

std::optional<HeadRange> range_of(const std::vector<HeadResult>& heads) {
  HeadRange range;
  std::vector<double> values;
  for (const HeadResult& head : heads) {
    if (std::isnan(head.ap_overall)) continue;
    values.push_back(head.ap_overall);
    range.mean += head.ap_overall;
    if (range.lowest == nullptr || head.ap_overall < range.lowest->ap_overall) range.lowest = &head;
    if (range.highest == nullptr || head.ap_overall > range.highest->ap_overall) range.highest = &head;
  }
  if (values.empty()) return std::nullopt;
  range.mean /= static_cast<double>(values.size());
  range.median = median(values);
  return range;
}

}  // namespace headscope
