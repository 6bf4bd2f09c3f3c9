// The axis of tokens, the one that every figure over training shares.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "figures/axis.h"

namespace headscope {

// The data are tokens; the numbers at the tics are units of them.
struct TokenUnit {
  double size = 1;
  std::string_view name;  // empty: single tokens
};

// Millions; thousands when the whole run has less than one, billions from ten thousand millions on.
TokenUnit token_unit(double most_tokens);

struct TokenAxis {
  Axis axis;
  TokenUnit unit;
};

// From the first of these moments to the last, or a little beyond to a round number. One moment: one tic.
TokenAxis token_axis(const std::vector<double>& moments, int max_steps = 6);

// Without numbers: for a panel that has another below.
Script token_axis_commands(const TokenAxis& axis, bool numbers = true);
// "'tokens (M)'"
Script token_axis_label(const TokenAxis& axis);
// "1.5 M tokens"
std::string token_text(double tokens, const TokenUnit& unit);

}  // namespace headscope
