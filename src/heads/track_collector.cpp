#include "heads/track_collector.h"

#include <algorithm>

#include "core/lists.h"

namespace headscope {
namespace {

// Tracks of one source from what was kept of it.
template <class Kept>
Tracks tracks_of(std::string source, const HeadCounts& counts, const std::vector<Kept>& kept) {
  Tracks tracks(std::move(source));
  tracks.counts = counts;
  for (const Kept& one : kept) tracks.moments.push_back(one.moment);
  for (std::size_t moment = 0; moment < kept.size(); ++moment)
    for (std::size_t layer = 0; layer < kept[moment].layers.size(); ++layer)
      for (const auto& [metric, values] : kept[moment].layers[layer])
        for (std::size_t head = 0; head < values.size(); ++head)
          tracks.set(metric, moment, static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head), values[head]);
  return tracks;
}

template <class Kept>
void count(const std::vector<Kept>& kept, HeadCounts& counts) {
  for (const Kept& one : kept) {
    counts.layers = std::max(counts.layers, static_cast<std::int64_t>(one.layers.size()));
    for (const HeadValues& layer : one.layers)
      for (const auto& [metric, values] : layer) {
        std::int64_t& heads =
            metric_named(metric, "heads").kind == HeadKind::key ? counts.key_heads : counts.query_heads;
        heads = std::max(heads, static_cast<std::int64_t>(values.size()));
      }
  }
}

}  // namespace

TrackCollector::TrackCollector(const ExpectedMoments& expected)
    : most_(expected.most),
      train_{evenly_spaced(expected.train, expected.most)},
      probe_{evenly_spaced(expected.probe, expected.most)} {}

void TrackCollector::add(const Measured& when, const std::vector<HeadValues>& layers) {
  if (std::ranges::all_of(layers, &HeadValues::empty)) return;  // no rows of heads: no moment
  Source& source = when.source == "probe" ? probe_ : train_;
  if (!std::ranges::binary_search(source.places, source.seen++)) return;
  source.kept.push_back({when.moment, layers});
  gains_.try_emplace(when.moment.step);
  keep_gains(when.moment);
}

void TrackCollector::add_gains(const Moment& moment, const Gains& gains) {
  last_gains_at_ = moment;
  last_gains_ = gains;
  keep_gains(moment);
}

// The last gains, where the moment is theirs and is kept.
void TrackCollector::keep_gains(const Moment& moment) {
  const auto place = gains_.find(moment.step);
  if (place != gains_.end() && last_gains_at_ == moment) place->second = {moment, last_gains_};
}

RunTracks TrackCollector::tracks() const {
  HeadCounts counts;
  count(train_.kept, counts);
  count(probe_.kept, counts);
  RunTracks run;
  run.train = tracks_of("train", counts, train_.kept);
  run.probe = tracks_of("probe", counts, probe_.kept);
  for (const auto& [step, kept] : gains_) {
    const auto& [moment, gains] = kept;
    for (std::size_t layer = 0; layer < gains.k.size(); ++layer)
      run.gains.push_back({moment, static_cast<std::int64_t>(layer), gains.q[layer], gains.k[layer]});
  }
  return run;
}

}  // namespace headscope
