#include "heads/figures/surgery_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "figures/script.h"

namespace headscope {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, text) != known.end();
}

// `by` becomes the name of a table and `order` a part of a legend; x must fit on the axis. The table may come from
// anywhere: only what surgery writes is accepted.
void check_row(bool remove, std::string_view by, std::string_view order, double x) {
  if (!(remove ? is_one_of(by, {"gain", "singular", "random"}) : is_one_of(by, {"tensor", "channel"})))
    fail_input("column 'by' holds '{}'; expected {}", shorten(by, 40),
               remove ? "gain, singular or random" : "tensor or channel");
  if (!(remove ? is_one_of(order, {"smallest", "largest", "random"}) : order.empty()))
    fail_input("column 'order' holds '{}'; expected {}", shorten(order, 40),
               remove ? "smallest, largest or random" : "nothing where keys are rounded");
  if (remove && !(x >= 0 && x <= 1)) fail_input("column 'share_removed' holds {}; expected 0 to 1", x);
  if (!remove && !(x >= 1 && x <= 64 && x == std::floor(x)))
    fail_input("column 'bits' holds {}; expected a whole number from 1 to 64", x);
}

}  // namespace

std::vector<SurgeryCurve> surgery_curves(const Table& rows, std::string_view method) {
  const Numbers share = rows.numbers("share_removed"), bits = rows.numbers("bits"), loss = rows.numbers("loss");
  const Texts &methods = rows.texts("method"), &bys = rows.texts("by"), &orders = rows.texts("order");
  const bool remove = method == "remove";
  std::vector<SurgeryCurve> curves;
  std::vector<std::map<double, Numbers>> losses;  // of each curve, by x
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (methods[row] != method) continue;
    const std::string& by = bys[row];
    const double x = remove ? share[row] : bits[row];
    check_row(remove, by, orders[row], x);
    const auto found = std::find_if(curves.begin(), curves.end(), [&](const auto& curve) { return curve.by == by; });
    const auto index = static_cast<std::size_t>(found - curves.begin());
    if (found == curves.end()) {
      curves.push_back({.by = by, .order = orders[row]});
      losses.emplace_back();
    }
    losses[index][x].push_back(loss[row]);
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (const auto& [x, values] : losses[i]) {
      const double lowest = *std::min_element(values.begin(), values.end());
      double above = 0;  // so that the mean of equal values is exactly theirs
      for (const double value : values) above += value - lowest;
      curves[i].x.push_back(x);
      curves[i].loss.push_back(lowest + above / static_cast<double>(values.size()));
      curves[i].lowest.push_back(lowest);
      curves[i].highest.push_back(*std::max_element(values.begin(), values.end()));
      curves[i].repeats = std::max(curves[i].repeats, values.size());
    }
  }
  return curves;
}

}  // namespace headscope
