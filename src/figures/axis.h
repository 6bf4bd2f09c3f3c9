// Ranges and tics of axes, chosen from the data so that no degenerate table leaves gnuplot to guess.
#pragma once

#include <cstdint>
#include <vector>

#include "figures/script.h"

namespace headscope {

struct Axis {
  double low = 0;  // what is drawn
  double high = 1;
  double first_tic = 0;
  double last_tic = 1;
  double step = 0.2;
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

// Moves the ends outwards by `share` of the range, so that marks at the ends are not cut. The tics stay.
Axis padded(Axis axis, double share);

// A round step (1, 2, 5 times a power of ten) that gives at most `max_steps` steps over `width`, which is positive.
double round_step(double width, int max_steps);

// The same for integers such as layers and heads: 1, 2, 4, 5, 10, 20, ...
std::int64_t integer_step(std::int64_t width, std::int64_t max_steps);

// "set yrange [..:..]" and "set ytics ..." for axis "x", "y" or "cb".
Script axis_commands(const Script& name, const Axis& axis);

// Tics at multiples of a step between two integers of at most ±10^9; the range reaches half a unit beyond.
Axis integer_axis(std::int64_t first, std::int64_t last, std::int64_t max_steps);

}  // namespace headscope
