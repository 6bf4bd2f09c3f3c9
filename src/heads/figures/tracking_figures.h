// The figures of a tracked run (seeds 000, 001 and 002), named as there. They show how heads and layers part during
// training.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "heads/tracks.h"

namespace headscope {

struct TrackingFigureData {
  std::string title;  // the run's name; may be empty
  const RunTracks* tracks = nullptr;
};

//   norm_divergence         norm of the keys of every key head against tokens, a panel for each of up to 8 layers
//   entropy_norm_scatter    entropy of the attention against the key norm of every query head, at four moments
//   effective_rank          participation ratio of one key's components and of all keys' singular values
//   gamma_heatmap           gain of the keys, dimension x tokens, a panel for each of up to 8 layers
//   key_norm_evolution      key norm of layers and groups of layers; dashed: the root of the head's dimension
//   outlier_magnitude       largest component of the keys: of all tokens, and the mean over tokens
//   latent_redundancy       mean cosine of pairs of keys
//   key_magnitude_profile   final key norm by layer, with that of the start
//   qk_ratio                query norm over key norm, and the growth of both
// Early, middle and final layers have the same colours everywhere. Of one moment (an inspection), figures over tokens
// become figures over layers. A figure of what was not tracked says so.
std::vector<Figure> tracking_figures(const TrackingFigureData& data);

}  // namespace headscope
