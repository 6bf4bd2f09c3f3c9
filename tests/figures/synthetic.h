// Tables as `headscope plasticity` writes them, made up: a shape that real models have, and no chance in it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "plasticity/aggregates.h"
#include "plasticity/plasticity_figures.h"

namespace headscope::synthetic {

struct Shape {
  std::int64_t layers = 6;
  std::int64_t q_heads = 4;
  std::int64_t buckets = 6;
  std::int64_t components = 16;
  double missing = 0;  // share of heads without values
  bool intervals = false;
  bool checks = false;
  bool diagonal = false;  // column names of the diagonal variant
  bool all_equal = false;
  bool empty_first_key = true;  // logarithmic buckets: key bucket 0 has no pairs
};

// 0..1, the same on every machine (splitmix64).
inline double noise(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0) {
  std::uint64_t z =
      a * 0x9E3779B97F4A7C15ULL + b * 0xC2B2AE3D27D4EB4FULL + c * 0x165667B19E3779F9ULL + d * 0x27D4EB2F165667C5ULL + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

inline PlasticityTables tables(const Shape& shape) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Integers layer, q_head, cell_layer, cell_head, q_bucket, k_bucket, part_layer, part_head, component;
  Numbers value, low, high, cell, weight, empirical, gap, gap_error;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const bool absent = noise(1, l, h) < shape.missing;
      const double depth = (static_cast<double>(l) + 0.5) / static_cast<double>(shape.layers);
      double base = 0.25 + 0.55 * std::sin(3.0 * std::pow(depth, 0.7)) + 0.45 * (noise(2, l, h) - 0.6) * noise(3, l, h);
      if (noise(4, l, h) < 0.05) base *= 0.35;
      base = shape.all_equal ? 0.7 : std::min(std::max(base, 0.01), 0.98);
      layer.push_back(l);
      q_head.push_back(h);
      value.push_back(absent ? nan : base);
      const double half = 0.008 + 0.03 * noise(5, l, h);
      low.push_back(absent ? nan : std::max(base - half, 0.0));
      high.push_back(absent ? nan : std::min(base + half, 1.0));
      gap.push_back(absent ? nan : shape.all_equal ? 0 : 0.1 * std::pow(2 * noise(12, l, h) - 1, 3));
      gap_error.push_back(absent || !shape.intervals ? nan : 0.002 + 0.01 * noise(13, l, h));
      empirical.push_back(value.back() - gap.back());
      for (std::int64_t q = 1; q < shape.buckets; ++q) {
        for (std::int64_t k = 0; k < q; ++k) {
          cell_layer.push_back(l);
          cell_head.push_back(h);
          q_bucket.push_back(q);
          k_bucket.push_back(k);
          const double here = base * (1 - 0.05 * static_cast<double>(q - k)) +
                              0.1 * (noise(6, l * 64 + h, q, k) - 0.5) + 0.02 * static_cast<double>(k);
          const bool empty = absent || (shape.empty_first_key && k == 0);
          cell.push_back(empty ? nan : shape.all_equal ? 0.7 : std::min(std::max(here, 0.0), 1.0));
        }
      }
      const double fall = 0.6 + 2.2 * noise(7, l, h) * (1 - 0.6 * depth);
      double sum = 0;
      for (std::int64_t c = 0; c < shape.components; ++c) sum += std::pow(static_cast<double>(c + 1), -fall);
      for (std::int64_t c = 0; c < shape.components; ++c) {
        part_layer.push_back(l);
        part_head.push_back(h);
        component.push_back(c);
        // 7 is coprime to the usual sizes: the weights come unsorted.
        weight.push_back(std::pow(static_cast<double>((c * 7 + h) % shape.components + 1), -fall) / sum);
      }
    }
  }
  PlasticityTables result;
  result.title = "SmolLM2-135M";
  Table uncertainty("uncertainty");
  uncertainty.add("layer", layer).add("q_head", q_head).add("k_head", q_head).add("ap_overall", value);
  uncertainty.add("low", low).add("high", high);
  if (shape.intervals) result.uncertainty = uncertainty;
  Table checks("checks");
  checks.add("layer", layer).add("q_head", q_head).add("k_head", q_head).add("ap_empirical", empirical);
  checks.add("ap_gap", gap).add("ap_gap_se", gap_error);
  if (shape.checks) result.checks = checks;
  result.heads.add("layer", layer).add("q_head", q_head).add("k_head", q_head).add("ap_overall", value);
  result.cells.add("layer", cell_layer).add("q_head", cell_head).add("k_head", cell_head);
  result.cells.add("q_bucket", q_bucket)
      .add("k_bucket", k_bucket)
      .add(shape.diagonal ? "ap_bucket" : "plasticity", cell);
  result.components.add("layer", part_layer)
      .add("q_head", part_head)
      .add("k_head", part_head)
      .add("component", component);
  result.components.add(shape.diagonal ? "component_weight" : "weight", weight);
  return result;
}

inline PlasticityComparison comparison(const Shape& shape) {
  const PlasticityTables first = tables(shape);
  const Integers layer = first.heads.integers("layer");
  const Integers q_head = first.heads.integers("q_head");
  const Numbers one = first.heads.numbers("ap_overall");
  Numbers two, difference, low, high;
  Integers significant;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double changed = noise(9, i) < 0.06 ? 0.5 * (noise(10, i) - 0.5) : 0.04 * (noise(10, i) - 0.5);
    two.push_back(shape.all_equal ? one[i] : std::min(std::max(one[i] + changed, 0.0), 1.0));
    difference.push_back(two[i] - one[i]);
    const double half = 0.02 + 0.02 * noise(11, i);
    low.push_back(shape.intervals ? difference[i] - half : std::numeric_limits<double>::quiet_NaN());
    high.push_back(shape.intervals ? difference[i] + half : std::numeric_limits<double>::quiet_NaN());
    significant.push_back(std::abs(difference[i]) > half ? 1 : 0);
  }
  PlasticityComparison result;
  result.name_1 = "SmolLM2-135M";
  result.name_2 = "SmolLM2-135M_no_norm";
  result.table.add("layer", layer)
      .add("q_head", q_head)
      .add("ap_1", one)
      .add("ap_2", two)
      .add("difference", difference);
  result.table.add("low", low).add("high", high).add("significant", significant);
  return result;
}

}  // namespace headscope::synthetic
