#include "heads/findings/measured.h"

#include <algorithm>
#include <cmath>

namespace headscope {

const Tracks& source_for(const RunTracks& run, std::initializer_list<std::string_view> metrics) {
  const std::span<const std::string_view> wanted(metrics.begin(), metrics.size());
  return !run.finest().has_all(wanted) && run.other().has_all(wanted) ? run.other() : run.finest();
}

Basis basis_of(const Tracks& tracks, std::initializer_list<std::string_view> metrics) {
  Basis basis{tracks.source, tracks.moments, {}};
  for (const std::string_view metric : metrics)
    if (!tracks.has(metric)) basis.not_tracked.emplace_back(metric);
  return basis;
}

std::span<const double> heads_at_end(const Tracks& tracks, std::string_view metric) {
  return tracks.at(metric, tracks.moments.size() - 1);
}

double group_mean(const Tracks& tracks, std::string_view metric, std::size_t moment, const GroupLayers& group) {
  return finite_mean(tracks.at(metric, moment, group.first, group.last));
}

GroupCurve group_curve(const Tracks& tracks, std::string_view metric, const GroupLayers& group) {
  GroupCurve curve;
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment) {
    const double value = group_mean(tracks, metric, moment, group);
    if (moment == 0) curve.start = value;
    curve.end = value;
    if (std::isnan(value) || value >= curve.lowest) continue;
    curve.lowest = value;
    curve.lowest_at = tracks.moments[moment];
  }
  return curve;
}

}  // namespace headscope
