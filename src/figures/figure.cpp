#include "figures/figure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/missing.h"
#include "figures/table_limits.h"

namespace headscope {

ColourScale ordered_scale(std::int64_t first, std::int64_t last, std::string label) {
  return {ColourScale::ordered, labelled(integer_axis(first, last, 12), {std::move(label)})};
}

Grid grid_of(std::size_t panels) {
  if (panels <= 4) return {.columns = std::min<std::size_t>(panels, 2), .height = panels == 1 ? 220.0 : 140.0};
  return {.columns = (panels + 1) / 2, .width = 192, .height = 140};
}

Figure empty_figure(std::string name, std::string title, std::string subject, std::string why) {
  Figure figure{.name = std::move(name), .title = std::move(title), .subject = std::move(subject)};
  figure.notes = {std::move(why)};
  return figure;
}

std::size_t finite_count(const Numbers& values) {
  return static_cast<std::size_t>(std::ranges::count_if(values, [](double value) { return std::isfinite(value); }));
}

LayerCurves layer_curves(const std::vector<CurvePoint>& points, const std::string& data, const std::string& x) {
  std::set<std::int64_t> places;
  std::map<std::int64_t, std::map<std::int64_t, double>> curves;
  for (const CurvePoint& point : points) {
    places.insert(point.x);
    curves[point.layer][point.x] = point.y;
  }
  if (curves.size() * places.size() > most_curve_points)
    fail_input("{} layers at {} different {}; a figure shows {} points", curves.size(), places.size(), x,
               most_curve_points);
  LayerCurves result{Table(data), {}};
  result.table.add(x, Integers(places.begin(), places.end()));
  for (const auto& [layer, curve] : curves) {
    Numbers column;
    for (const std::int64_t place : places) {
      const auto found = curve.find(place);
      column.push_back(found == curve.end() ? missing : found->second);
    }
    const std::string name = fmt::format("L{}", layer);
    result.table.add(name, std::move(column));
    result.marks.push_back(Mark::line(data, x, name).coloured(by_value(layer)).wide(0.6));
    result.last = layer;
  }
  if (!curves.empty()) result.first = curves.begin()->first;
  return result;
}

}  // namespace headscope
