// Axes: what a figure says of them, and the ends and tics that follow from the values shown. No degenerate table leaves
// gnuplot to guess.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace headscope {

// The smallest and the largest of some values; without any, low > high. Values beyond ±1e100, which no measurement
// gives, would leave nothing of the others, or of gnuplot's arithmetic: they count as missing.
struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value);
  void add(const Extent& other);
  [[nodiscard]] bool empty() const { return !(low <= high); }
};
bool can_be_shown(double value);

struct Tic {
  double at = 0;
  std::string text = {};
};

struct Axis {
  enum Kind {
    any,       // ends at half steps around the values
    share,     // of 0..1: round ends near the values, 0 and 1 when they take most of it; what lies beyond is cut off
    integers,  // half a unit beyond the first and the last
    tokens,    // ends at the last value, or a little beyond at a round number; the label names the unit
    updates,   // the same
    around,    // `middle` and what lies on either side, to round ends; both sides when that is less than `least`
    doubling,  // logarithmic, tics at powers of two, of 4, 16, … where these would be more than nine; it begins at 1 or
               // below the values (1/64 at least); no padding
    fixed,  // low, high and tics are as they are
  };
  Kind kind = any;
  std::vector<std::string> label = {};  // lines
  double padding = 0;                   // moves the ends outwards by this share, so that marks there are not cut
  Extent include = {};                  // shown, whatever the marks show
  double middle = 0, least = 0;
  std::size_t group = 0;       // the x axes of a figure with the same number have one range, and so have the y axes
  bool reversed = false;       // high at the left or at the bottom
  bool grid = true;            // lines at the tics
  bool upright = false;        // the tics' texts are written upwards: names
  double decades_from = 0;     // tokens, updates: logarithmic from here on, which leaves out what is less; 0: linear
  bool tight = false;          // tokens, updates: ends at the last value, since areas must reach the frame
  std::vector<Tic> tics = {};  // given ones stay; without any, few are found
  double low = 0, high = 1;    // found: what is drawn, finite and low < high
  bool log = false;            // found; then low > 0
};

// The axis of some values, fixed. Between tics there are at most `steps` steps; with one, integers have tics at their
// ends only. Without values: 0..1.
Axis fitted(Axis axis, Extent values, int steps = 6);

// "1.5 M tokens", in the unit of a run of `most` tokens: millions; thousands when it has less than one, billions from
// ten thousand millions on.
std::string token_text(double tokens, double most);

}  // namespace headscope
