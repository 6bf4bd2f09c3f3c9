#include "heads/figures/metric_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "figures/figure_files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

RunTracks tracks(std::size_t moments) {
  RunTracks made;
  made.probe.counts = {3, 2, 4};
  for (std::size_t moment = 0; moment < moments; ++moment)
    made.probe.moments.push_back({static_cast<std::int64_t>(moment), static_cast<std::int64_t>(moment) * 1000});
  for (std::size_t moment = 0; moment < moments; ++moment)
    for (std::int64_t layer = 0; layer < 3; ++layer)
      for (std::int64_t head = 0; head < 4; ++head)
        made.probe.set("sink", moment, layer, head, 0.01 * static_cast<double>(10 * layer + head + 1));
  return made;
}

TEST(MetricFigures, DataAreTheValuesOfTheChosenHeads) {
  const TemporaryFolder folder;
  const auto figures =
      metric_figures(tracks(3), {256, 32}, {.metric = "sink", .heads = {"L1H2", "L0H3"}, .title = "run"});
  EXPECT_EQ(draw(figures, folder.path(), light_theme()).warnings, "");
  const auto curves = columns_of(folder.path() / "metric_sink_curves.dat");
  EXPECT_THAT(curves.at("L1H2"), ElementsAre("0.13", "0.13", "0.13"));
  EXPECT_THAT(curves.at("tokens"), ElementsAre("0", "1000", "2000"));
  EXPECT_FALSE(curves.contains("L0H0"));
  EXPECT_THAT(legend_of(completed(figures[0])), ElementsAre("L1H2", "L0H3", "uniform attention"));
  EXPECT_THAT(columns_of(folder.path() / "metric_sink_map.dat").at("value"), ElementsAre("0.13", "0.04"));
}

TEST(MetricFigures, EveryShapeDrawsWithoutWarnings) {
  for (const std::size_t moments : {1U, 2U})
    for (const Theme* theme : {&light_theme(), &dark_theme()}) {
      const TemporaryFolder folder;
      EXPECT_EQ(
          draw(metric_figures(tracks(moments), {}, {.metric = "sink", .layers = {2}}), folder.path(), *theme).warnings,
          "");
    }
}

TEST(MetricFigures, WhatIsNotThereIsRefused) {
  const auto refused = [](const char* message, const MetricFigureOptions& options) {
    expect_error(Fault::input, message, [&] { metric_figures(tracks(2), {}, options); });
  };
  refused("unknown metric 'snik'; did you mean 'sink'?", {.metric = "snik"});
  refused("--metric entropy: was not measured", {.metric = "entropy"});
  refused("there is no head 'L7H0'; sink is measured of L0H0 to L2H3", {.metric = "sink", .heads = {"L7H0"}});
  refused("there is no layer 3; the run has 0 to 2", {.metric = "sink", .layers = {3}});
  refused("have no head in common", {.metric = "sink", .layers = {1}, .heads = {"L0H0"}});
}

}  // namespace
}  // namespace headscope
