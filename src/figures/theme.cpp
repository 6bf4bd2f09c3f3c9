#include "figures/theme.h"

#include <array>
#include <charconv>

#include "core/config.h"
#include "core/error.h"

namespace headscope {
namespace {

const std::vector<std::string> viridis = {"#440154", "#482878", "#3e4a89", "#31688e", "#26828e",
                                          "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"};

std::array<double, 3> channels(std::string_view colour) {
  HEADSCOPE_CHECK(colour.size() == 7 && colour[0] == '#', "colour = {}", colour);
  std::array<double, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    int value = 0;
    const char* first = colour.data() + 1 + 2 * i;
    const auto [end, fault] = std::from_chars(first, first + 2, value, 16);
    HEADSCOPE_CHECK(fault == std::errc() && end == first + 2, "colour = {}", colour);
    rgb[i] = value;
  }
  return rgb;
}

// `count` colours of `colours` between two fractions.
std::vector<std::string> part(const std::vector<std::string>& colours, double from, double to, int count) {
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.push_back(colour_at(colours, from + (to - from) * i / (count - 1)));
  return result;
}

}  // namespace

const Theme& light_theme() {
  static const Theme theme = {
      .name = "light",
      .paper = "#ffffff",
      .ink = "#1f2328",
      .muted = "#8a9099",
      .grid = "#e6e8eb",
      .absent = "#e3e5e8",
      .categories = {"#0072b2", "#d55e00", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#f0e442", "#000000"},
      .depth = {"#0072b2", "#009e73", "#cc3311"},
      .sequential = viridis,
      .ordered = part(viridis, 0.0, 0.88, 10),  // yellow vanishes on white
      .diverging = {"#053061", "#2166ac", "#4393c3", "#92c5de", "#d1e5f0", "#f7f7f7", "#fddbc7", "#f4a582", "#d6604d",
                    "#b2182b", "#67001f"},
  };
  return theme;
}

const Theme& dark_theme() {
  static const Theme theme = {
      .name = "dark",
      .paper = "#15181c",
      .ink = "#e6e8eb",
      .muted = "#868d96",
      .grid = "#2b3036",
      .absent = "#3a4047",
      .categories = {"#56b4e9", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#f0e442", "#0072b2", "#ffffff"},
      .depth = {"#56b4e9", "#4fd1a5", "#ee4b3a"},
      .sequential = viridis,
      .ordered = part(viridis, 0.3, 1.0, 10),  // dark violet vanishes on black
      .diverging = {"#b3dcff", "#6fb4ea", "#3f86c4", "#2a5c89", "#213b54", "#20252b", "#4d2f28", "#87452f", "#c06a45",
                    "#e99a75", "#ffd2bb"},
  };
  return theme;
}

const Theme& theme_named(std::string_view name) {
  for (const Theme* theme : {&light_theme(), &dark_theme()})
    if (theme->name == name) return *theme;
  fail_input("{}", unknown_name("theme", name, std::array{"light", "dark"}));
}

Script style_commands(const Theme& theme) {
  Script text = format_script(
      "# Colours of the {} theme.\npaper = {}; ink = {}; muted = {}; faint = {}; absent = {}\n"
      "early = {}; middle = {}; final = {}\nfaded(colour, alpha) = sprintf('#%02x%s', alpha, colour[2:*])\n",
      gnuplot_name(theme.name), gnuplot_text(theme.paper), gnuplot_text(theme.ink), gnuplot_text(theme.muted),
      gnuplot_text(theme.grid), gnuplot_text(theme.absent), gnuplot_text(theme.depth[0]), gnuplot_text(theme.depth[1]),
      gnuplot_text(theme.depth[2]));
  for (std::size_t i = 0; i < theme.categories.size(); ++i)
    text += format_script("category{} = {}\n", i + 1, gnuplot_text(theme.categories[i]));
  return text;
}

std::string colour_at(const std::vector<std::string>& colours, double fraction) {
  HEADSCOPE_CHECK(colours.size() > 1, "{} colours", colours.size());
  const double place = std::clamp(fraction, 0.0, 1.0) * static_cast<double>(colours.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), colours.size() - 2);
  const auto low = channels(colours[below]);
  const auto high = channels(colours[below + 1]);
  const double share = place - static_cast<double>(below);
  const auto mixed = [&](std::size_t i) { return static_cast<int>(std::lround(low[i] + (high[i] - low[i]) * share)); };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
}

double luminance(std::string_view colour) {
  const auto linear = [](double channel) {
    const double c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  const auto rgb = channels(colour);
  return 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]);
}

double contrast(std::string_view one, std::string_view other) {
  const double a = luminance(one) + 0.05;
  const double b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
}

}  // namespace headscope
