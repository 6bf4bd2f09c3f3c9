// From which batch on an update of more tokens is of little use.
#pragma once

namespace headscope {

// Zhang et al., How Does Critical Batch Size Scale in Pre-training?, 2024, arXiv 2410.21676. The critical batch is the
// batch that needs 20 % more tokens for a loss than a batch of 256 sequences of 512 tokens
// (hlzhang109/critical-batch-size, plots/chinchilla.ipynb). With a + b/B updates of B sequences that is
// a·B = 1.2·256·a + 0.2·b. a and b are not negative, so it is 1.2·256 sequences at least.
constexpr double reference_sequences = 256, sequence_tokens = 512, further_tokens = 0.2;
constexpr double least_critical_batch = (1 + further_tokens) * reference_sequences * sequence_tokens;  // tokens

// Their law, in tokens of an update: 22.91·D^0.47 sequences of 512 tokens, D in millions of tokens of the whole run.
// Measured with AdamW on C4, models of 85 M to 1.2 B parameters, 20 tokens for each parameter.
double critical_batch_law(double tokens_of_run);
constexpr double least_tokens_measured = 1.7e9, most_tokens_measured = 24e9;
// Below so many tokens of a run the law gives less than its definition allows: about 250 million.
double least_tokens_of_law();

// Tokens of an update from which a plan warns: the law's number, or where that is less than its definition allows, the
// least that is allowed.
double critical_batch_tokens(double tokens_of_run);

}  // namespace headscope
