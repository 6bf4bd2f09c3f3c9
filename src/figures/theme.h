// Colours and the style that every figure shares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/script.h"

namespace headscope {

// Colours are "#rrggbb".
struct Theme {
  std::string name;
  std::string paper;   // background
  std::string ink;     // text and axes
  std::string muted;   // marks that stand back: interval bars, reference lines, other points
  std::string grid;    // grid lines, just visible
  std::string absent;  // fill of cells without a value; never a colour of `sequential`

  std::vector<std::string> categories;  // Okabe and Ito, in order of use
  std::vector<std::string> depth;  // early, middle and final layers: blue, green, red (seed 002), of the categories
  std::vector<std::string> sequential;  // viridis, for areas: dark is low
  std::vector<std::string> ordered;     // of viridis, for lines and points: yellow vanishes on white, violet on black
  std::vector<std::string> diverging;   // for differences: the middle is near the paper
};

const Theme& light_theme();
const Theme& dark_theme();
// "light" or "dark". Throws Error(Fault::input) for another name.
const Theme& theme_named(std::string_view name);

// The gnuplot names of the theme's colours: paper, ink, muted, faint, absent, category1 ..., early, middle, final;
// faded(colour, alpha) lets others shine through.
Script style_commands(const Theme& theme);

}  // namespace headscope
