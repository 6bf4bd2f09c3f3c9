#include "heads/terminal_map.h"

#include <gtest/gtest.h>

#include "heads/findings/planted.h"

namespace headscope {
namespace {

TEST(TerminalMap, NamesKeyHeadsAndQueryHeads) {
  Tracks tracks = test::tracks_of({2, 1, 2}, 1, "probe");
  test::plant(tracks, "k_cosine", [](auto, std::int64_t layer, auto) { return layer == 0 ? -0.0001 : 0.5; });
  test::plant(tracks, "sink", [](auto, auto, std::int64_t head) { return head == 0 ? 0.25 : 0.75; });
  EXPECT_EQ(terminal_map(tracks, 0, metric_named("k_cosine", ""), /*colours=*/false, 100),
            "  k_cosine     K0\n"
            "  layer 0   0.000\n"  // no sign before zero
            "  layer 1   0.500\n"
            "  mean cosine of all pairs of distinct keys: 0.000 to 0.500\n");
  EXPECT_EQ(terminal_map(tracks, 0, metric_named("sink", ""), /*colours=*/false, 100),
            "  sink         H0     H1\n"
            "  layer 0   0.250  0.750\n"
            "  layer 1   0.250  0.750\n"
            "  mean attention to the first token: 0.250 to 0.750\n");
}

}  // namespace
}  // namespace headscope
