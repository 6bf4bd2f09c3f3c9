#include "run/manifest.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "run/run_folder.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(RunTitle, NamesTheFolderAndWhatItIsARunOf) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_title(folder / "first/", "tiny"), "first (tiny)");
  EXPECT_EQ(run_title(folder / "tiny_long", "tiny"), "tiny_long");
  EXPECT_EQ(run_title(folder / "first", ""), "first");
  std::filesystem::create_directories(folder / "study/seed_42/QK");
  write_file(folder / "study/manifest.json",
             R"({"program": "headscope", "command": "study", "status": "complete", "started": "", "config": {}})");
  EXPECT_EQ(run_title(folder / "study/seed_42/QK", "tiny"), "study/seed_42/QK (tiny)");
}

TEST(Manifest, DamageIsNamed) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "holds no manifest.json", [&] { read_manifest(folder.path()); });
  write_file(folder / "manifest.json", "{\"status\": ");
  expect_error(Fault::input, "is damaged", [&] { read_manifest(folder.path()); });
  const auto write = [&](const char* key, const ordered_json& value) {
    ordered_json manifest = {
        {"program", "headscope"}, {"command", "x"}, {"status", "complete"}, {"started", "x"}, {"config", {{"a", 1}}}};
    manifest[key] = value;
    if (value.is_null()) manifest.erase(key);
    write_file(folder / "manifest.json", manifest.dump());
  };
  for (const char* key : {"command", "status", "started"})
    for (const ordered_json& value : {ordered_json(), ordered_json(7)}) {
      write(key, value);
      expect_error(Fault::input, fmt::format("it has no text '{}'", key), [&] { read_manifest(folder.path()); });
    }
  for (const ordered_json& value : {ordered_json(), ordered_json("x")}) {
    write("config", value);
    expect_error(Fault::input, "it has no object 'config'", [&] { read_manifest(folder.path()); });
  }
  write("more", 1);
  EXPECT_EQ(read_manifest(folder.path()).at("more"), 1);
  const std::size_t levels = 300'000;
  write_file(folder / "manifest.json",
             R"({"program": "headscope", "config": )" + std::string(levels, '[') + std::string(levels, ']') + "}");
  expect_error(Fault::input, "is damaged", [&] { RunFolder::add_to(folder.path()); });
}

// On a full disk: no byte beside the status changes, and the file keeps its size.
TEST(Manifest, TheStatusAloneChangesInPlace) {
  const TemporaryFolder folder;
  ordered_json manifest = {
      {"program", "headscope"}, {"command", "x"}, {"command_line", R"(x --name '"status": "running"')"},
      {"status", "running"},    {"started", "x"}, {"config", {{"status", "running"}}}};
  const fs::path file = folder / "manifest.json";
  write_file(file, json_text(manifest));
  const auto size = fs::file_size(file);
  set_status_in_place(folder.path(), RunStatus::failed);
  manifest["status"] = "failed";
  EXPECT_EQ(read_manifest(folder.path()), manifest);
  EXPECT_EQ(fs::file_size(file), size);
  set_status_in_place(folder.path(), RunStatus::interrupted);  // a longer word
  EXPECT_EQ(read_manifest(folder.path()), manifest);
  set_status_in_place(folder / "elsewhere", RunStatus::failed);
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));
  fs::create_directory(folder / "empty");
  set_status_in_place(folder / "empty", RunStatus::failed);
  EXPECT_TRUE(fs::is_empty(folder / "empty"));
  write_file(file, "no manifest");
  set_status_in_place(folder.path(), RunStatus::failed);
  EXPECT_EQ(read_file(file), "no manifest");
}

}  // namespace
}  // namespace headscope
