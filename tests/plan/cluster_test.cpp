#include "plan/cluster.h"

#include <sys/stat.h>

#include <fstream>

#include "plan/plan.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

std::string written(const TemporaryFolder& folder, const std::string& text) {
  const std::string file = (folder.path() / "ours.yaml").string();
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

TEST(Cluster, OfAKnownName) {
  const Cluster cluster = cluster_of("h200x8");
  EXPECT_EQ(cluster.gpus_per_node, 8);
  EXPECT_EQ(cluster.link_gb_s, 370);
  EXPECT_EQ(cluster.nic_gb_s, 45);
  EXPECT_EQ(cluster.memory_gb, 141);
  EXPECT_FALSE(cluster.tokens_per_s);
  EXPECT_TRUE(cluster.given.empty());
  EXPECT_EQ(cluster.nodes(8), 1);
  EXPECT_EQ(cluster.nodes(9), 2);
}

TEST(Cluster, OfAFile_KnowsWhichKeysWereThere) {
  const TemporaryFolder folder;
  const Cluster cluster =
      cluster_of(written(folder, "gpus_per_node: 4\nlink_gb_s: 200\nnic_gb_s: 12.5\ntokens_per_s: 30k\n"));
  EXPECT_EQ(cluster.name, "ours");
  EXPECT_EQ(cluster.gpus_per_node, 4);
  EXPECT_EQ(cluster.link_gb_s, 200);
  EXPECT_EQ(cluster.nic_gb_s, 12.5);
  EXPECT_EQ(cluster.tokens_per_s, 30'000);
  EXPECT_FALSE(cluster.memory_gb);  // not that of another cluster
  EXPECT_TRUE(cluster.gives("nic_gb_s"));
  EXPECT_FALSE(cluster.gives("memory_gb"));
}

TEST(Cluster, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::string& part) {
    expect_error(Fault::input, part, [&] { cluster_of(written(folder, text)); });
  };
  refused("", "has no keys of a cluster; known are name, gpus_per_node");
  refused("gpus_per_nod: 8\n", "ours.yaml:1: unknown key 'gpus_per_nod'; did you mean 'gpus_per_node'?");
  refused("gpus_per_node: 8\nxyzzy: 1\n", "ours.yaml:2: unknown key 'xyzzy'; known are ");
  refused("node:\n  gpus: 8\n", "unknown key 'node.gpus'");
  refused("gpus_per_node: 0\n", "gpus_per_node is 0; expected 1 to 1024");
  refused("gpus_per_node: 8.5\n", "expected a whole number");
  refused("gpus_per_node: 1e9\n", "gpus_per_node is 1000000000");
  for (const char* value : {"0", "-1", "nan", ".nan", "inf", ".inf", "1e300", "fast", "[1, 2]"}) {
    refused(fmt::format("link_gb_s: {}\n", value), "link_gb_s");
    refused(fmt::format("nic_gb_s: {}\n", value), "nic_gb_s");
    refused(fmt::format("tokens_per_s: {}\n", value), "tokens_per_s");
    refused(fmt::format("memory_gb: {}\n", value), "memory_gb");
    refused(fmt::format("peak_tflops: {}\n", value), "peak_tflops");
  }
  refused(std::string("\x7f"
                      "ELF\x02\x01\x01\0\0\0\xff\xfe\x80",
                      13),
          "ours.yaml");
  refused("- 1\n- 2\n", "expected 'key: value' lines");
}

TEST(Cluster, RefusesFilesThatAreNone) {
  const TemporaryFolder folder;
  const std::string pipe = (folder.path() / "pipe.yaml").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(Fault::input, "not a regular file", [&] { cluster_of(pipe); });
  expect_error(Fault::input, "Is a directory", [&] { cluster_of(folder.path().string()); });
  expect_error(Fault::input, "No such file", [&] { cluster_of("absent.yaml"); });
  expect_error(Fault::input, "unknown cluster 'h200'; known are h200x8, h100x8, or name a YAML file",
               [&] { cluster_of("h200"); });
  expect_error(Fault::input, "unknown cluster ''", [&] { cluster_of(""); });
}

}  // namespace
}  // namespace headscope
