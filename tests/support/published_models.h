// The small published models in tests/model/published (make_published.py), as folders that the program opens.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "support/temporary_folder.h"

namespace headscope::test {

inline const std::filesystem::path published_folder = "tests/model/published";  // tests run in the root

// A variant of a model in one of the two forms of config.json: "llama", "yarn", "v4.json".
struct PublishedCase {
  std::string model, variant, form;

  [[nodiscard]] std::filesystem::path config() const { return published_folder / model / (variant + "." + form); }
  [[nodiscard]] std::filesystem::path weights() const { return published_folder / model / "model.safetensors"; }
  [[nodiscard]] std::filesystem::path gguf() const { return published_folder / model / (variant + ".gguf"); }
  [[nodiscard]] std::filesystem::path reference() const { return published_folder / model / (variant + ".npz"); }
};

inline std::vector<PublishedCase> published_cases() {
  std::vector<PublishedCase> cases;
  for (const auto& model : std::filesystem::directory_iterator(published_folder))
    for (const auto& file : std::filesystem::directory_iterator(model.path()))
      if (file.path().extension() == ".npz")
        for (const char* form : {"json", "v4.json"})
          cases.push_back({model.path().filename().string(), file.path().stem().string(), form});
  std::ranges::sort(cases, {}, &PublishedCase::config);
  return cases;
}

// The variants that are there as GGUF files.
inline std::vector<PublishedCase> gguf_cases() {
  std::vector<PublishedCase> cases;
  const std::vector<PublishedCase> all = published_cases();
  for (const PublishedCase& one : all)
    if (one.form == "json" && std::filesystem::exists(one.gguf())) cases.push_back(one);
  return cases;
}

// A folder as it is published, with a config.json that `change` has changed.
class PublishedModel {
 public:
  explicit PublishedModel(
      const PublishedCase& published, const std::function<void(nlohmann::ordered_json&)>& change = [](auto&) {}) {
    nlohmann::ordered_json config = parse_json(read_file(published.config()));
    change(config);
    write_file(folder_ / "config.json", json_text(config));
    std::filesystem::create_symlink(std::filesystem::absolute(published.weights()), folder_ / "model.safetensors");
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace headscope::test
