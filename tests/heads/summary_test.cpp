#include "heads/summary.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

void write_manifest(const TemporaryFolder& folder, const std::string& config) {
  write_file(
      folder / "manifest.json",
      R"({"program": "headscope", "command": "train", "status": "complete", "started": "", "config": )" + config + "}");
}

TEST(Facts, AreThoseOfTheManifest) {
  const TemporaryFolder folder;
  write_manifest(folder, R"({"preset": "tiny", "model": {"d_k": 16}})");
  EXPECT_EQ(read_facts(folder.path()).title, folder.path().filename().string() + " (tiny)");
  EXPECT_EQ(read_facts(folder.path()).d_k, 16);
}

TEST(Facts, OfOtherTypesAreMissing) {
  const TemporaryFolder folder;
  for (const char* config : {"{}", R"({"preset": 7, "model": {"d_k": "x"}})", R"({"preset": {}, "model": []})",
                             R"({"preset": null, "model": {"d_k": 1.5}})"}) {
    write_manifest(folder, config);
    EXPECT_EQ(read_facts(folder.path()).title, folder.path().filename()) << config;
    EXPECT_EQ(read_facts(folder.path()).d_k, 0) << config;
  }
}

// roles.json is a file that anybody may have written.
TEST(ReadSummary, DamageIsNamed) {
  const TemporaryFolder folder;
  const RunTracks nothing;
  const std::string deep(300'000, '[');
  for (const std::string& text :
       {std::string(), std::string("7"), std::string("{}"), std::string(R"({"definition": 7})"),
        std::string(R"({"definition": {}})"), std::string(R"({"definition": {"id": "x"}})"),
        std::string(R"({"definition": {"roles": {}}})"), R"({"definition": )" + deep}) {
    write_file(folder / "roles.json", text);
    expect_error(Fault::input, "roles.json: is damaged", [&] { read_summary(nothing, {}, folder.path()); });
  }
  for (const char* definition : {R"({"id": 7, "roles": 7})", R"({"id": "x", "roles": {"a": {"sink": "high"}}})",
                                 R"({"id": {}, "roles": []})", R"({"id": "x", "roles": {"a": {"sink": [1, 2]}}})"}) {
    write_file(folder / "roles.json", std::string(R"({"definition": )") + definition + "}");
    expect_error(Fault::input, "roles.json", [&] { read_summary(nothing, {}, folder.path()); });
  }
}

}  // namespace
}  // namespace headscope
