// From which batch on an update of more tokens is of little use.
#pragma once

namespace headscope {

// Zhang et al., How Does Critical Batch Size Scale in Pre-training?, 2024, arXiv 2410.21676. The critical batch is the
// batch that needs 20 % more tokens for a loss than a batch of 256 sequences of 512 tokens
// (hlzhang109/critical-batch-size, plots/chinchilla.ipynb).
constexpr double reference_sequences = 256, sequence_tokens = 512, further_tokens = 0.2;

// Tokens of an update from which a plan warns. Their law: 22.91·D^0.47 sequences of 512 tokens, D in millions of tokens
// of the whole run. Measured with AdamW on C4, models of 85 M to 1.2 B parameters, 20 tokens for each parameter.
double critical_batch_tokens(double tokens_of_run);
constexpr double least_tokens_measured = 1.7e9, most_tokens_measured = 24e9;

// Below so many tokens of a run, about 250 million, the law gives less than its own definition: a batch that needs more
// tokens than the reference is no smaller than it. With a + b/B updates of B sequences, where a and b are not negative,
// the definition gives 1.2·256 sequences at least. A plan keeps to the law there, too: it warns earlier.
constexpr double least_by_definition = (1 + further_tokens) * reference_sequences * sequence_tokens;  // tokens
double least_tokens_of_law();

}  // namespace headscope
