#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "figures/render.h"

namespace headscope {
namespace {

constexpr double line_height = 15, sample = 16;
constexpr double most_beside = 140;  // width of a label beside a panel

double widest(const std::vector<std::string>& texts, double font) {
  double most = 0;
  for (const std::string& text : texts) most = std::max(most, text_width(text, font));
  return most;
}

double widest_tic(const Axis& axis) {
  double most = 0;
  for (const Tic& tic : axis.tics) most = std::max(most, text_width(tic.text, 12));
  return most;
}

// Shortened until it fits.
std::string cut_to(const std::string& text, double room, double font) {
  std::string shown = shorten(text, 160);
  for (std::size_t limit = 159; limit >= 8 && text_width(shown, font) > room; --limit) shown = shorten(shown, limit);
  return shown;
}

int in_thirds(double units) {  // 10 / 3 pixels to a unit: whole pixels
  return static_cast<int>(std::lround(units / 3)) * 3;
}

class LayoutMaker {
 public:
  explicit LayoutMaker(const Figure& figure) : figure_(figure) {}

  Layout make() {
    layout_.width = figure_.grid.page ? 960 : 480;
    if (!figure_.panels.empty()) measure();
    add_title();
    if (figure_.panels.empty()) {
      add({figure_.nothing, layout_.width / 2.0, 70, 14, PlacedText::centre, false, {.role = Colour::muted}});
      return std::move(layout_);
    }
    add_rows();
    add_panels();
    return std::move(layout_);
  }

 private:
  void add(PlacedText text) { layout_.texts.push_back(std::move(text)); }

  [[nodiscard]] const Grid& grid() const { return figure_.grid; }
  [[nodiscard]] std::size_t rows() const { return (figure_.panels.size() + grid().columns - 1) / grid().columns; }
  [[nodiscard]] bool has_bar() const { return figure_.colours && figure_.colours->axis.tics.size() > 1; }
  [[nodiscard]] bool has_titles() const {
    return std::ranges::any_of(figure_.panels, [](const Panel& panel) { return !panel.title.empty(); });
  }

  // Margins and sizes.
  void measure() {
    layout_.columns = grid().columns;
    const Panel& first = figure_.panels[0];
    double numbers = 0, names = 0;
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      if (i % grid().columns == 0) numbers = std::max(numbers, widest_tic(figure_.panels[i].y));
      for (const Label& label : figure_.panels[i].labels)
        if (label.place == Label::beside) names = std::min(std::max(names, widest(label.text, 12)), most_beside);
    }
    const std::array<double, 3> label_room = {4, 28, 45};  // of a title of no, one or two lines
    left_ = label_room[std::min<std::size_t>(first.y.label.size(), 2)] + numbers + 11;
    right_ = std::max(16.0, 4 + (first.x.upright ? 0 : widest_tic(first.x) / 2)) + (names > 0 ? names + 2 : 0);
    if (has_bar()) {
      bar_ = 29 + widest_tic(figure_.colours->axis);
      right_ = bar_ + label_room[std::min<std::size_t>(figure_.colours->axis.label.size(), 2)];
    }
    bottom_ = first.x.upright ? 34 + widest_tic(first.x) : 48;
    gap_x_ = std::max(16.0, widest_tic(first.x) + 8);
    gap_y_ = has_titles() ? 26 : 14;
    const auto columns = static_cast<double>(grid().columns);
    panel_width_ = grid().width > 0 ? grid().width : (layout_.width - left_ - right_ + gap_x_) / columns - gap_x_;
    if (grid().width > 0) layout_.width = in_thirds(left_ + columns * (panel_width_ + gap_x_) - gap_x_ + right_);
    place_legend();
    top_ = (row_ == 0 ? 30 : 36 + line_height * static_cast<double>(row_)) + (has_titles() ? 18 : 0);
    panel_height_ = height_of_panel();
    layout_.height = in_thirds(top_ + static_cast<double>(rows()) * (panel_height_ + gap_y_) - gap_y_ + bottom_);
  }

  [[nodiscard]] double height_of_panel() const {
    if (grid().height > 0) return grid().height;
    if (grid().aspect <= 0) return rows() == 1 ? 216 : rows() == 2 ? 150 : 110;
    double least = widest(figure_.panels[0].y.label, 14) + 8;
    if (has_bar()) least = std::max(least, widest(figure_.colours->axis.label, 12) + 8);
    const double most = grid().most_height > 0 ? grid().most_height : 720;
    return std::max(std::min(grid().aspect * panel_width_, most), least / static_cast<double>(rows()));
  }

  void add_title() {
    std::string title = figure_.title;
    const double start = figure_.panels.empty() ? 50 : left_;
    if (!figure_.subject.empty()) {
      title += ", ";
      title += cut_to(figure_.subject, layout_.width - start - 8 - text_width(title, 14), 14);
    }
    add({title, start, layout_.height - 14.0, 14});
  }

  // Entries in as many columns as fit, each as wide as its widest; `y` counts from the top, since the height is not
  // known.
  void place_block(std::vector<Mark> marks) {
    const double room = layout_.width - left_ - 8;
    for (Mark& mark : marks) mark.name = cut_to(mark.name, room - sample - 5, 12);
    std::vector<double> widths;
    for (std::size_t columns = marks.size(); columns > 0; --columns) {
      widths.assign(columns, 0);
      for (std::size_t i = 0; i < marks.size(); ++i)
        widths[i % columns] = std::max(widths[i % columns], sample + 5 + text_width(marks[i].name, 12) + 16);
      double total = -16;
      for (const double width : widths) total += width;
      if (total <= room) break;
    }
    double x = left_;
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (i % widths.size() == 0) x = left_, ++row_;
      const double y = 19 + line_height * static_cast<double>(row_);
      layout_.legend.push_back({std::move(marks[i]), x, y});
      x += widths[i % widths.size()];
    }
  }

  void place_legend() {
    std::vector<Mark> named;
    for (const Panel& panel : figure_.panels)
      for (const Mark& mark : panel.marks)
        if (!mark.name.empty() && std::ranges::none_of(named, [&](const Mark& other) {
              return other.name == mark.name && other.colour.index == mark.colour.index;
            }))
          named.push_back(mark);
    place_block(std::move(named));
    place_block(figure_.kinds);
    legend_rows_ = row_;
    row_ += figure_.notes.size();
  }

  void add_rows() {
    for (LegendEntry& entry : layout_.legend) {
      entry.y = layout_.height - entry.y;
      add({entry.mark.name, entry.x + sample + 5, entry.y});
    }
    for (std::size_t i = 0; i < figure_.notes.size(); ++i)
      add({figure_.notes[i], left_, layout_.height - 19 - line_height * static_cast<double>(legend_rows_ + i + 1)});
  }

  void add_panels() {
    const double area_top = layout_.height - top_;
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) {
      const auto column = static_cast<double>(i % grid().columns), row = static_cast<double>(i / grid().columns);
      layout_.panels.push_back({left_ + column * (panel_width_ + gap_x_),
                                area_top - row * (panel_height_ + gap_y_) - panel_height_, panel_width_,
                                panel_height_});
      const Place& place = layout_.panels.back();
      add({figure_.panels[i].title, place.left, place.top() + 10});
      add_labels(figure_.panels[i], place);
    }
    const auto columns = static_cast<double>(grid().columns), down = static_cast<double>(rows());
    const double width = columns * (panel_width_ + gap_x_) - gap_x_;
    const double height = down * (panel_height_ + gap_y_) - gap_y_;
    const double middle = area_top - height / 2;
    add_axis_label(figure_.panels[0].x.label, left_ + width / 2, 11, false);
    add_axis_label(figure_.panels[0].y.label, 10, middle, true);
    if (!has_bar()) return;
    layout_.bar = {left_ + width + 8, area_top - height, 9, height};
    const std::vector<std::string>& label = figure_.colours->axis.label;
    for (std::size_t i = 0; i < label.size(); ++i)
      add({label[i], left_ + width + bar_ + 8 + 14 * static_cast<double>(i), middle, 12, PlacedText::centre, true});
  }

  void add_axis_label(const std::vector<std::string>& lines, double x, double y, bool upright) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      add({lines[i], x + (lines.size() > 1 ? 14 * static_cast<double>(i) - 2 : 0), y, lines.size() > 1 ? 12 : 14,
           PlacedText::centre, upright});
  }

  void add_labels(const Panel& panel, const Place& place);
  void add_beside(std::vector<const Label*> labels, const Panel& panel, const Place& place);
  void add_near(const std::vector<const Label*>& labels, const Panel& panel, const Place& place);
  [[nodiscard]] std::vector<Place> obstacles(const Panel& panel, const Place& place) const;

  const Figure& figure_;
  Layout layout_;
  double left_ = 50, right_ = 16, top_ = 30, bottom_ = 48;
  double gap_x_ = 0, gap_y_ = 0, panel_width_ = 0, panel_height_ = 0;
  double bar_ = 0;  // from the panels to the bar's label
  std::size_t row_ = 0, legend_rows_ = 0;
};

double x_of(const Panel& panel, const Place& place, double value) {
  return place.left + position_on(panel.x, value) * place.width;
}
double y_of(const Panel& panel, const Place& place, double value) {
  return place.bottom + position_on(panel.y, value) * place.height;
}

void LayoutMaker::add_labels(const Panel& panel, const Place& place) {
  std::vector<const Label*> beside, near;
  for (const Label& label : panel.labels) {
    if (label.place == Label::centred)
      add({label.text[0], x_of(panel, place, label.x), y_of(panel, place, label.y), 11, PlacedText::centre, false,
           label.colour});
    else
      (label.place == Label::beside ? beside : near).push_back(&label);
  }
  add_beside(beside, panel, place);
  add_near(near, panel, place);
}

// Moves labels apart until none touch, and into the panel's height.
void LayoutMaker::add_beside(std::vector<const Label*> labels, const Panel& panel, const Place& place) {
  std::ranges::stable_sort(labels, [](const Label* a, const Label* b) { return a->y < b->y; });
  std::vector<double> middle, height;
  for (const Label* label : labels) {
    middle.push_back(std::clamp(position_on(panel.y, label->y), 0.0, 1.0) * place.height);
    height.push_back(line_height * static_cast<double>(label->text.size()));
  }
  bool moved = true;
  for (int pass = 0; moved && pass < 100; ++pass) {
    moved = false;
    for (std::size_t i = 1; i < middle.size(); ++i) {
      const double overlap = (height[i] + height[i - 1]) / 2 - (middle[i] - middle[i - 1]);
      if (overlap <= 1e-6) continue;
      middle[i] += overlap / 2;
      middle[i - 1] -= overlap / 2;
      moved = true;
    }
  }
  double below = 0, above = place.height;
  for (const double one : height) above -= one;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    above += height[i];
    const double y = place.bottom + std::max(std::min(middle[i], above - height[i] / 2), below + height[i] / 2);
    below += height[i];
    const std::vector<std::string>& lines = labels[i]->text;
    for (std::size_t line = 0; line < lines.size(); ++line)
      add({cut_to(lines[line], most_beside, 12), place.right() + 7,
           y + line_height * ((static_cast<double>(lines.size()) - 1) / 2 - static_cast<double>(line)), 12,
           PlacedText::left, false, labels[i]->colour});
  }
}

// The points and upright segments of a panel.
std::vector<Place> LayoutMaker::obstacles(const Panel& panel, const Place& place) const {
  std::vector<Place> found;
  for (const Mark& mark : panel.marks) {
    const bool is_point = mark.kind == Mark::Kind::points;
    if (!is_point && mark.kind != Mark::Kind::segment) continue;
    const Table& table = data_of(figure_, mark);
    const Numbers x = table.numbers(mark.x), low = table.numbers(is_point ? mark.y : mark.low);
    const Numbers high = is_point ? low : table.numbers(mark.high);
    for (std::size_t i = 0; i < x.size(); ++i)
      found.push_back({x_of(panel, place, x[i]) - 2, y_of(panel, place, low[i]) - 2, 4,
                       y_of(panel, place, high[i]) - y_of(panel, place, low[i]) + 4});
  }
  return found;
}

// Right, left, above or below its point, where a label meets the fewest marks and no other label.
void LayoutMaker::add_near(const std::vector<const Label*>& labels, const Panel& panel, const Place& place) {
  const std::vector<Place> marks = labels.empty() ? std::vector<Place>{} : obstacles(panel, place);
  std::vector<Place> taken;
  for (const Label* label : labels) {
    const double width = text_width(label->text[0], 11) + 2, height = 13, away = width / 2 + 5;
    std::size_t fewest = marks.size() + 1;
    Place best;
    for (const auto& [dx, dy] : std::initializer_list<std::pair<double, double>>{
             {away, 0}, {-away, 0}, {0, 11}, {0, -11}, {away, 9}, {-away, 9}, {away, -9}, {-away, -9}}) {
      const Place box{x_of(panel, place, label->x) + dx - width / 2, y_of(panel, place, label->y) + dy - height / 2,
                      width, height};
      const auto met = [&](const Place& other) { return box.meets(other); };
      const bool inside = box.left >= place.left && box.right() <= place.right() && box.bottom >= place.bottom &&
                          box.top() <= place.top();
      if (!inside || std::ranges::any_of(taken, met)) continue;
      const auto count = static_cast<std::size_t>(std::ranges::count_if(marks, met));
      if (count >= fewest) continue;
      fewest = count;
      best = box;
    }
    if (best.width <= 0) continue;
    taken.push_back(best);
    add({label->text[0], best.left + width / 2, best.bottom + height / 2, 11, PlacedText::centre, false,
         label->colour});
  }
}

}  // namespace

double text_width(std::string_view text, double font) {
  // Advance widths of DejaVu Sans from the space to ~, in hundredths of the font's size.
  constexpr std::array<unsigned char, 95> widths = {
      32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
      64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
      60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
      63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};
  double sum = 0;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code < 0x7f)
      sum += widths[code - 0x20];
    else if (code >= 0xc0)  // the first byte of a character: letters are below U+0800, ideographs from U+3000 on
      sum += code < 0xe0 ? 65 : code < 0xe3 ? 84 : 103;
  }
  return sum * font / 100;
}

double position_on(const Axis& axis, double value) {
  const double share = axis.log ? std::log(value / axis.low) / std::log(axis.high / axis.low)
                                : (value - axis.low) / (axis.high - axis.low);
  return axis.reversed ? 1 - share : share;
}

Layout lay_out(const Figure& figure) {
  HEADSCOPE_CHECK(figure.panels.empty() || figure.grid.columns > 0, "figure {} is not completed", figure.name);
  return LayoutMaker(figure).make();
}

}  // namespace headscope
