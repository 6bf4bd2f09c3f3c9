// `headscope parity`: a model against arrays that another program saved of it.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "core/console.h"

namespace headscope {

struct ParityOptions {
  std::filesystem::path model;      // anything that load_model takes
  std::filesystem::path reference;  // .npz; docs/models.md says which arrays
  std::string device = "cpu";
};

// The largest difference of an array, or of one layer's part of it, and what is allowed: a limit for the kind of array
// times the root mean square of the reference array, where that is more than 1.
struct ParityRow {
  std::string name;
  int layer = -1;  // -1: of no layer
  double difference = 0, tolerance = 0;

  [[nodiscard]] bool within() const { return difference <= tolerance; }  // NaN is not
};

struct Parity {
  std::string model, reference;        // as given
  std::string title;                   // "SmolLM2-135M (llama)"
  std::vector<ParityRow> rows;         // by layer, then by name; logits last
  std::vector<std::string> not_there;  // arrays that the reference lacks

  [[nodiscard]] bool within() const { return std::ranges::all_of(rows, &ParityRow::within); }
  // The row with the largest share of its tolerance; one that is NaN is worst of all.
  [[nodiscard]] const ParityRow& worst() const {
    return *std::ranges::max_element(rows, {}, [](const ParityRow& row) {
      return std::isnan(row.difference) ? std::numeric_limits<double>::infinity() : row.difference / row.tolerance;
    });
  }
};

// Computes in float32. Throws Error(Fault::input) on a model or a reference that cannot be read, and when a shape of
// the reference is not the model's.
Parity compare_with_reference(const ParityOptions& options, Console& console);

}  // namespace headscope
