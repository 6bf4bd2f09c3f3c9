// Where a larger batch wastes a fifth of its tokens.
#pragma once

namespace headscope {

// Tokens of an update up to which twice the tokens make about half the updates: 22.91·D^0.47 sequences of 512 tokens,
// D in millions of tokens of the whole run (Zhang et al., How Does Critical Batch Size Scale in Pre-training?, 2024,
// arXiv 2410.21676). There, 20 % more tokens than with a small batch reach the same loss. Measured with AdamW on C4,
// models of 85 M to 1.2 B parameters.
double critical_batch_tokens(double tokens_of_run);
// What was measured: 20 tokens for each parameter.
constexpr double least_tokens_measured = 1.7e9, most_tokens_measured = 24e9;

}  // namespace headscope
