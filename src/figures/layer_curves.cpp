#include "figures/layer_curves.h"

#include <set>

#include "core/error.h"
#include "core/missing.h"
#include "figures/table_limits.h"

namespace headscope {

LayerCurves layer_curves(const std::vector<CurvePoint>& points, std::string_view x_name) {
  std::set<std::int64_t> places;
  std::map<std::int64_t, std::map<std::int64_t, double>> curves;
  for (const CurvePoint& point : points) {
    places.insert(point.x);
    curves[point.layer][point.x] = point.y;
  }
  LayerCurves result;
  if (curves.empty()) return result;
  if (curves.size() * places.size() > most_curve_points)
    fail_input("{} layers at {} different {}; a figure shows {} points", curves.size(), places.size(), x_name,
               most_curve_points);
  result.table = Table("layers");
  result.table.add(std::string(x_name), Integers(places.begin(), places.end()));
  std::vector<Script> names;
  for (const auto& [layer, curve] : curves) {
    Numbers column;
    for (const std::int64_t x : places) {
      const auto found = curve.find(x);
      column.push_back(found == curve.end() ? missing : found->second);
    }
    result.table.add(fmt::format("L{}", layer), std::move(column));
    names.push_back(format_script("{}", layer));
  }
  result.first = curves.begin()->first;
  result.last = curves.rbegin()->first;
  result.commands = format_script("layer_list = '{}'\n", join(names, " "));
  result.clause = format_script(
      "for [i=1:{}] layers using 1:(column(i+1)) with {} lw 0.6 lc palette cb real(word(layer_list, i)) notitle",
      curves.size(), places.size() == 1 ? Script("points pt 7 ps 0.35") : Script("lines"));
  return result;
}

}  // namespace headscope
