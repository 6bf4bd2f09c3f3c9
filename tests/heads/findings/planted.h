// Tracks with planted answers.
#pragma once

#include <functional>
#include <string_view>

#include "heads/tracks.h"

namespace headscope::test {

inline Tracks tracks_of(HeadCounts counts, std::size_t moments, std::string source = "train") {
  Tracks tracks(std::move(source));
  tracks.counts = counts;
  for (std::size_t i = 0; i < moments; ++i)
    tracks.moments.push_back({static_cast<std::int64_t>(i) * 10, static_cast<std::int64_t>(i) * 640});
  return tracks;
}

// value(moment, layer, head) for every head of the metric.
using HeadValue = std::function<double(std::size_t, std::int64_t, std::int64_t)>;
inline void plant(Tracks& tracks, std::string_view metric, const HeadValue& value) {
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment)
    for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
      for (std::int64_t head = 0; head < tracks.heads_of(metric); ++head)
        tracks.set(metric, moment, layer, head, value(moment, layer, head));
}

inline RunTracks run_of(Tracks tracks) {
  RunTracks run;
  (tracks.source == "probe" ? run.probe : run.train) = std::move(tracks);
  return run;
}

}  // namespace headscope::test
