// Axes: ranges and tics chosen from the data, so that no degenerate table leaves gnuplot to guess.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct Tic {
  double at = 0;
  std::string text = {};
};

struct Axis {
  double low = 0, high = 1;  // what is drawn; low < high
  std::vector<Tic> tics = {};
  std::vector<std::string> label = {};  // lines
  bool log = false;                     // to base 2; then low > 0
  bool reversed = false;                // high at the left or at the bottom
  bool grid = true;                     // lines at the tics
  bool upright = false;                 // the tics' texts are written upwards: names
};

// All axes are finite and not empty, and have few tics. Values beyond ±1e100, which no measurement gives, would leave
// nothing of the others, or of gnuplot's arithmetic: they count as missing.

// For values of 0..1: ends at round numbers around the finite values, at least 0.1 apart, and at
// 0 and 1 when the values take most of that range anyway. Without values: 0..1. Values far from that range get a
// round_axis.
Axis unit_axis(const std::vector<double>& values);

// For values >= 0: from 0 to a round number above the largest.
Axis count_axis(const std::vector<double>& values);

// For values of any size: tics at multiples of a round step, at most `max_steps` of them over the finite values, and
// ends at the next half step. Equal values get a range around them; without values: 0..1.
Axis round_axis(const std::vector<double>& values, int max_steps = 6);

// As far below `middle` as above: to the value that is farthest from it, at least `least` and at most 1e6.
Axis symmetric_axis(const std::vector<double>& values, double middle, double least);

// Tics at multiples of a step between two integers of at most ±10^9; the range reaches half a unit beyond.
Axis integer_axis(std::int64_t first, std::int64_t last, std::int64_t max_steps);

// Tokens from the first of these moments to the last, or a little beyond to a round number; the tics count units of
// them, which the label names. One moment: one tic.
Axis token_axis(const std::vector<double>& moments, int max_steps = 6);

// Moves the ends outwards by `share` of the range, so that marks at the ends are not cut. The tics stay.
Axis padded(Axis axis, double share);
Axis labelled(Axis axis, std::vector<std::string> lines);

// A round step (1, 2, 5 times a power of ten) that gives at most `max_steps` steps over `width`, which is positive.
double round_step(double width, int max_steps);

// The same for integers such as layers and heads: 1, 2, 4, 5, 10, 20, ...
std::int64_t integer_step(std::int64_t width, std::int64_t max_steps);

// "0.25", "−3" with a true minus sign.
std::string tic_text(double number);

// Millions of tokens; thousands when the whole run has less than one, billions from ten thousand millions on.
struct TokenUnit {
  double size = 1;
  std::string_view name;  // empty: single tokens
};
TokenUnit token_unit(double most_tokens);
std::string token_text(double tokens, const TokenUnit& unit);  // "1.5 M tokens"

}  // namespace headscope
