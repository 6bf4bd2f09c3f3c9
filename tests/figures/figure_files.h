// A small figure to draw, and what `draw` wrote, read without the code under test.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "figures/render.h"

namespace headscope {

// A figure of three rows, one without a value; 1600 x 1000 pixels.
inline Figure line_figure(const std::string& name) {
  Table table("line");
  table.add("x", Integers{1, 2, 3}).add("y", Numbers{0.5, std::nan(""), 2}).add("name", Texts{"a", "b\tc", "d"});
  Figure figure{name, "A figure"};
  figure.data = {{"line", table}};
  figure.panels = {{.x = {.kind = Axis::integers, .include = {0, 4}}, .y = {.include = {0, 3}}}};
  figure.panels[0].marks = {Mark::line("line", "x", "y").sized(0.5).named("a line")};
  figure.grid.height = 201;
  return figure;
}

inline Drawn draw(const Figure& figure, const std::filesystem::path& folder, const Theme& theme) {
  return draw(std::vector{figure}, folder, theme);
}

inline std::string script_of(const Figure& figure, const Theme& theme = light_theme()) {
  const Figure whole = completed(figure);
  return render(whole, theme).script.text();
}

// The marks of all panels and the legend's second part, in their order.
inline std::vector<Mark> marks_of(const Figure& figure) {
  std::vector<Mark> marks;
  for (const Panel& panel : figure.panels) marks.insert(marks.end(), panel.marks.begin(), panel.marks.end());
  marks.insert(marks.end(), figure.kinds.begin(), figure.kinds.end());
  return marks;
}

inline std::vector<std::string> legend_of(const Figure& figure) {
  std::vector<std::string> names;
  for (const LegendEntry& entry : lay_out(completed(figure)).legend) names.push_back(entry.mark.name);
  return names;
}

// The mark with this name in the legend.
inline Mark mark_named(const Figure& figure, const std::string& name) {
  for (const Mark& mark : marks_of(figure))
    if (mark.name == name) return mark;
  throw std::runtime_error(figure.name + " has no mark " + name);
}

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Width and height out of the header of a PNG; 0, 0 when it is none.
inline std::pair<unsigned, unsigned> png_size(const std::filesystem::path& file) {
  const std::string bytes = bytes_of(file);
  if (bytes.size() < 24 || bytes.substr(0, 8) != "\x89PNG\r\n\x1a\n" || bytes.substr(12, 4) != "IHDR") return {0, 0};
  const auto number = [&](std::size_t at) {
    unsigned value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value * 256 + static_cast<unsigned char>(bytes[i]);
    return value;
  };
  return {number(16), number(20)};
}

// The columns of a .dat file as texts.
inline std::map<std::string, std::vector<std::string>> columns_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::map<std::string, std::vector<std::string>> columns;
  std::vector<std::string> names;
  for (std::string line; std::getline(in, line);) {
    std::stringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell);
    if (names.empty()) {
      names = row;
      for (const std::string& name : names) columns[name] = {};
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i) columns[names[i]].push_back(row.at(i));
  }
  return columns;
}

inline std::vector<double> numbers_of(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  for (const std::string& text : texts) numbers.push_back(std::stod(text));
  return numbers;
}

}  // namespace headscope
