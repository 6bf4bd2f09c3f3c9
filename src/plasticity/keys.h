// The key side of a head: orientation, rows in use, and the pairs of keys that are compared (PLASTICITY steps 2, 3,
// 10). Shared by all query heads that read the same key head.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "core/random.h"
#include "formats/captured_vectors.h"
#include "plasticity/labels.h"
#include "stats/householder.h"

namespace headscope {

// The keys of one example in one bucket, at least two of them.
struct ExampleKeys {
  std::int64_t example_id = 0;
  std::vector<std::uint32_t> rows;
};

struct KeyBucket {
  std::int64_t bucket = 0;
  double mean_position = 0;
  std::vector<ExampleKeys> examples;           // in order of first appearance
  std::vector<std::int64_t> cumulative_pairs;  // of the examples up to and with this one

  [[nodiscard]] std::int64_t total_pairs() const { return cumulative_pairs.empty() ? 0 : cumulative_pairs.back(); }
};

// What the buckets of the rows decide.
struct KeyGroups {
  Eigen::VectorXd orientation_d;   // +1 or -1 for each dimension
  std::vector<KeyBucket> buckets;  // ascending
};

struct Keys : KeyGroups {
  CapturedVectors captured;
  std::int64_t rows_used = 0;
  KeyGroups shuffled;  // of the same vectors with shuffled labels; empty without shuffle_keys()
};

struct KeyPair {
  std::uint32_t first = 0, second = 0;  // rows
  std::uint32_t example = 0;            // index into KeyBucket::examples
};

// The rows of a file that are used: all, or a sample without replacement in drawn order.
std::vector<std::uint32_t> sample_rows(std::size_t rows, std::int64_t max_rows, std::uint64_t seed);

// For each dimension the sign of the unweighted mean over buckets of the bucket means; sign 0 counts as +1.
Eigen::VectorXd orientation(const CapturedVectors& keys, const RowLabels& labels);

Keys prepare_keys(CapturedVectors captured, std::int64_t max_rows, std::uint64_t seed);

// Fills in `shuffled`, from the same rows with labels that the generator shuffles.
void shuffle_keys(Keys& keys, std::int64_t max_rows, std::uint64_t seed, NumpyGenerator generator);

// Draws min(most, total) pairs: an example in proportion to its number of pairs, then two of its keys.
void draw_pairs(const KeyBucket& bucket, std::int64_t most, NumpyGenerator& generator, std::vector<KeyPair>& pairs);

// First key minus second key, as captured: a row for each pair.
void key_differences(const CapturedVectors& keys, const std::vector<KeyPair>& pairs, RowMajorMatrix& delta_pd);

}  // namespace headscope
