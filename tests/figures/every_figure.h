// Every kind of figure from texts and numbers that a run folder could hold, for tests with hostile ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heads/figures/role_figures.h"
#include "heads/figures/surgery_figures.h"
#include "heads/figures/tracking_figures.h"
#include "plasticity/plasticity_figures.h"
#include "study/study_figures.h"

namespace headscope::test {

// Texts that reach figures from files, names and flags.
struct FigureTexts {
  std::string title;
  std::string by, order;     // of one row of surgery.parquet; empty: as surgery writes them
  std::string role;          // of a role definition
  std::string run_1, run_2;  // of a comparison
};

// Numbers as a run has them, with hostile ones where the bytes say so: a byte for each number, 0 to 7 for another one.
class FigureNumbers {
 public:
  FigureNumbers() = default;
  explicit FigureNumbers(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  explicit FigureNumbers(double all) : all_(all) {}  // every number that is not a whole one

  double number(double ordinary) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    constexpr double hostile[] = {nan, inf, -inf, 1e300, -1e17, 1.79e308, 5e-324};
    const unsigned choice = next();
    if (all_) return *all_;
    if (choice > 7) return ordinary;
    if (choice < 7) return hostile[choice];
    double any = 0;
    take(&any, sizeof any);
    return any;
  }
  std::int64_t integer(std::int64_t ordinary) {
    constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t hostile[] = {-1, std::int64_t{1} << 62, least, most, 1023, 999'999'999};
    const unsigned choice = next();
    if (choice > 7) return ordinary;
    if (choice < 6) return hostile[choice];
    std::int64_t any = 0;
    take(&any, choice == 6 ? 2 : sizeof any);
    return any;
  }

 private:
  unsigned next() {
    std::uint8_t byte = 255;
    take(&byte, 1);
    return byte;
  }
  void take(void* to, std::size_t size) {
    if (bytes_.size() < size) return;
    std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::uint8_t> bytes_;
  std::optional<double> all_;
};

inline std::vector<Figure> any_plasticity(const FigureTexts& texts, FigureNumbers numbers) {
  Integers layer, q_head, cell_layer, cell_head, q_bucket, k_bucket;
  Numbers value, low, high, cell, weight, empirical, gap, gap_error;
  for (std::int64_t i = 0; i < 6; ++i) {
    layer.push_back(numbers.integer(i / 2));
    q_head.push_back(numbers.integer(i % 2));
    value.push_back(numbers.number(0.1 * static_cast<double>(i)));
    low.push_back(numbers.number(value.back() - 0.1));
    high.push_back(numbers.number(value.back() + 0.1));
    weight.push_back(numbers.number(0.25));
    empirical.push_back(numbers.number(value.back() - 0.05));
    gap.push_back(numbers.number(0.05));
    gap_error.push_back(numbers.number(0.01 * static_cast<double>(i)));
    for (std::int64_t k = 0; k < 2; ++k) {
      cell_layer.push_back(layer.back());
      cell_head.push_back(q_head.back());
      q_bucket.push_back(numbers.integer(k + 1));
      k_bucket.push_back(numbers.integer(k));
      cell.push_back(numbers.number(0.5));
    }
  }
  PlasticityTables tables;
  tables.title = texts.title;
  tables.heads.add("layer", layer).add("q_head", q_head).add("ap_overall", value);
  tables.cells.add("layer", cell_layer).add("q_head", cell_head).add("q_bucket", q_bucket).add("k_bucket", k_bucket);
  tables.cells.add("plasticity", cell);
  tables.components.add("layer", layer).add("q_head", q_head).add("weight", weight);
  tables.uncertainty = Table("uncertainty");
  tables.uncertainty->add("layer", layer).add("q_head", q_head).add("low", low).add("high", high);
  tables.checks = Table("checks");
  tables.checks->add("layer", layer).add("q_head", q_head).add("ap_empirical", empirical);
  tables.checks->add("ap_gap", gap).add("ap_gap_se", gap_error);
  return plasticity_figures(tables, {.per_head = true});
}

inline std::vector<Figure> any_comparison(const FigureTexts& texts, FigureNumbers numbers) {
  Integers layer, q_head, significant;
  Numbers one, two, difference, low, high;
  for (std::int64_t i = 0; i < 6; ++i) {
    layer.push_back(numbers.integer(i / 2));
    q_head.push_back(numbers.integer(i % 2));
    one.push_back(numbers.number(0.5));
    two.push_back(numbers.number(0.4 + 0.1 * static_cast<double>(i)));
    difference.push_back(two.back() - one.back());
    low.push_back(numbers.number(difference.back() - 0.1));
    high.push_back(numbers.number(difference.back() + 0.1));
    significant.push_back(i % 2);
  }
  PlasticityComparison comparison{.name_1 = texts.run_1, .name_2 = texts.run_2};
  comparison.table.add("layer", layer).add("q_head", q_head).add("ap_1", one).add("ap_2", two);
  comparison.table.add("difference", difference).add("low", low).add("high", high).add("significant", significant);
  return comparison_figures(comparison);
}

inline SeedMeans any_means(std::size_t count, FigureNumbers& numbers) {
  SeedMeans means;
  for (std::size_t i = 0; i < count; ++i) {
    means.mean.push_back(numbers.number(3 + static_cast<double>(i)));
    means.low.push_back(numbers.number(means.mean.back() - 1));
    means.high.push_back(numbers.number(means.mean.back() + 1));
  }
  return means;
}

inline std::vector<Figure> any_study(const FigureTexts& texts, FigureNumbers numbers) {
  StudyFigureData data;
  data.title = texts.title;
  for (const Condition& known : known_conditions()) {
    StudyCurves condition;
    condition.tag = known.tag;
    condition.letter = known.letter;
    condition.name = known.name;
    condition.colour = data.conditions.size();
    for (std::int64_t probe = 0; probe < 3; ++probe) condition.tokens.push_back(numbers.integer(probe * 4096));
    condition.loss = any_means(3, numbers);
    condition.val_loss = any_means(3, numbers);
    condition.mean_pr = any_means(3, numbers);
    condition.layer_pr = any_means(2, numbers);
    condition.gamma_cv = {any_means(3, numbers), any_means(3, numbers)};
    data.conditions.push_back(std::move(condition));
  }
  data.tokens = data.conditions[0].tokens;
  for (const Contrast& contrast : contrasts_of(known_conditions()))
    data.effects.push_back({contrast.name, contrast.name, any_means(3, numbers), any_means(2, numbers),
                            numbers.number(1), numbers.number(0.5), contrast.is_control});
  return study_figures(data);
}

inline std::vector<Figure> any_tracking(const FigureTexts& texts, FigureNumbers numbers) {
  RunTracks run;
  run.train.counts = {3, 1, 2};
  const std::int64_t moments = 1 + numbers.integer(2) % 2;  // of one moment, figures are over layers
  for (std::int64_t i = 0; i < std::max<std::int64_t>(moments, 1); ++i)
    run.train.moments.push_back({i * 10, numbers.integer(i * 4096)});
  for (std::size_t moment = 0; moment < run.train.moments.size(); ++moment) {
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      for (const char* metric : {"k_norm", "k_max_abs", "k_max_abs_mean", "k_pr_vector", "k_pr", "k_cosine"})
        run.train.set(metric, moment, layer, 0, numbers.number(8 + static_cast<double>(layer)));
      for (std::int64_t head = 0; head < 2; ++head)
        for (const char* metric : {"q_norm", "qk_ratio", "entropy"})
          run.train.set(metric, moment, layer, head, numbers.number(2 + static_cast<double>(head)));
    }
    LayerGains gains{run.train.moments[moment], numbers.integer(static_cast<std::int64_t>(moment)), {}, {}};
    for (int i = 0; i < 3; ++i) gains.k.push_back(numbers.number(1));
    run.gains.push_back(std::move(gains));
  }
  return tracking_figures({texts.title, &run});
}

inline std::vector<Figure> any_roles(const FigureTexts& texts, FigureNumbers numbers) {
  const std::vector<std::string> roles = {texts.role, "sink", "mixed"};
  RoleMapData map{texts.title, roles, 2, 2, {0, 1, 2, 0}, {}};
  for (int i = 0; i < 4; ++i) map.score_of.push_back(numbers.number(0.5));
  RoleTimelineData timeline{texts.title, {}, roles, std::vector<Numbers>(3)};
  for (std::int64_t moment = 0; moment < 3; ++moment) {
    timeline.moments.push_back({moment, numbers.integer(moment * 4096)});
    for (Numbers& share : timeline.share) share.push_back(numbers.number(1.0 / 3));
  }
  return {role_map_figure(map), role_timeline_figure(timeline)};
}

inline std::vector<Figure> any_surgery(const FigureTexts& texts, FigureNumbers numbers) {
  Texts method, by, order;
  Numbers share, bits, loss;
  for (const char* how : {"gain", "singular", "random", "random", "tensor", "channel"}) {
    const bool remove = how[0] != 't' && how[0] != 'c';
    for (int i = 0; i < 3; ++i) {
      method.emplace_back(remove ? "remove" : "quantise");
      by.emplace_back(how);
      order.emplace_back(!remove ? "" : how[0] == 'r' ? "random" : "smallest");
      share.push_back(numbers.number(0.5 * i));
      bits.push_back(numbers.number(8 - i));
      loss.push_back(numbers.number(1 + i));
    }
  }
  if (!texts.by.empty()) by[1] = texts.by;
  if (!texts.order.empty()) order[0] = texts.order;
  SurgeryLosses losses{numbers.number(1), numbers.number(3), Table("surgery")};
  losses.rows.add("method", method).add("by", by).add("order", order).add("share_removed", share).add("bits", bits);
  losses.rows.add("loss", loss);
  return surgery_figures(texts.title, losses);
}

struct FigureKind {
  const char* name;
  std::vector<Figure> (*figures)(const FigureTexts&, FigureNumbers);
};

inline const std::vector<FigureKind>& figure_kinds() {
  static const std::vector<FigureKind> kinds = {{"plasticity", any_plasticity}, {"comparison", any_comparison},
                                                {"study", any_study},           {"tracking", any_tracking},
                                                {"roles", any_roles},           {"surgery", any_surgery}};
  return kinds;
}

}  // namespace headscope::test
