#include "figures/token_axis.h"

namespace headscope {

TokenUnit token_unit(double most_tokens) {
  if (most_tokens < 1e3) return {};
  if (most_tokens < 1e6) return {1e3, "thousand"};
  if (most_tokens < 1e10) return {1e6, "M"};
  return {1e9, "B"};
}

TokenAxis token_axis(const std::vector<double>& moments, int max_steps) {
  if (moments.empty()) return {round_axis({}), token_unit(0)};
  const auto [first, last] = std::minmax_element(moments.begin(), moments.end());
  const TokenUnit unit = token_unit(*last);
  if (*first == *last) return {{*first - unit.size, *first + unit.size, *first, *first, unit.size}, unit};
  Axis axis = round_axis({*first, *last}, max_steps);
  if (*last - *first < axis.step) return {axis, unit};
  axis.low = *first;
  const double next_tic = std::ceil(*last / axis.step) * axis.step;
  axis.high = next_tic - *last < 0.04 * (*last - *first) ? next_tic : *last;
  axis.last_tic = std::floor(axis.high / axis.step) * axis.step;
  return {axis, unit};
}

Script token_axis_commands(const TokenAxis& tokens, bool numbers) {
  const Axis& axis = tokens.axis;
  std::vector<Script> tics;
  for (double at = axis.first_tic; at < axis.last_tic + axis.step / 2; at += axis.step) {
    if (at < axis.low) continue;
    const Script number = numbers ? format_script("{:.6g}", at / tokens.unit.size) : Script();
    tics.push_back(format_script("'{}' {:.17g}", number, at));
  }
  return format_script("set xrange [{:.17g}:{:.17g}]; set xtics ({})\n", axis.low, axis.high, join(tics, ", "));
}

Script token_axis_label(const TokenAxis& axis) {
  return axis.unit.name.empty() ? Script("'tokens'") : gnuplot_text(fmt::format("tokens ({})", axis.unit.name));
}

std::string token_text(double tokens, const TokenUnit& unit) {
  if (tokens == 0) return "0 tokens";
  const double count = tokens / unit.size;
  const std::string number = count < 100 ? fmt::format("{:.3g}", count) : fmt::format("{:.0f}", count);
  return fmt::format("{}{}{} tokens", number, unit.name.empty() ? "" : " ", unit.name);
}

}  // namespace headscope
