#include "figures/theme.h"

#include <array>

#include "core/config.h"
#include "core/error.h"

namespace headscope {
namespace {

const std::vector<std::string> viridis = {"#440154", "#482878", "#3e4a89", "#31688e", "#26828e",
                                          "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"};

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
      .ordered = {"#440154", "#471d6e", "#44377f", "#3c4f8a", "#33648d", "#2a788e", "#248b8c", "#209f88", "#30b17d",
                  "#50c269", "#7cd14f", "#afdd2f"},
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
      .ordered = {"#355f8d", "#2e6f8e", "#287e8e", "#238e8c", "#1f9e89", "#2bac80", "#3dba75", "#5dc762", "#82d34b",
                  "#abdc32", "#d4e228", "#fde725"},
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

}  // namespace headscope
