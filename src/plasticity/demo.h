// A dataset whose plasticity is known in closed form: Gaussian queries around a line in position, and keys that vary in
// three directions, so that the standardised score difference of a random pair is uniform on [-r, r].
#pragma once

#include <filesystem>
#include <vector>

#include "plasticity/plasticity.h"

namespace headscope {

// Mean of 4 Phi(x) (1 - Phi(x)) for x uniform on [-r, r].
double plasticity_of_uniform(double r);

// The layers and heads of the demonstration. Its files belong into `root`, whether they are there or not.
Dataset demo_dataset(const std::filesystem::path& root);

// Writes the files of the dataset. The same seed gives the same bytes. For the diagonal variant, the noise of the
// queries has the same variance in every direction: the variant is exact for such noise only.
void write_demo(const Dataset& dataset, const PlasticityOptions& options);

struct DemoRow {
  HeadId id;
  double truth = 0;
  Estimate estimate;
};

// The true plasticity of each head, over the cells and weights that the analysis used, beside its estimate.
std::vector<DemoRow> compare_with_truth(const PlasticityResult& result);

}  // namespace headscope
