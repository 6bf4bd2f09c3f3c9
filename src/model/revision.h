// When in its training a published model was saved, as far as its name says it. Revisions of one model are published as
// "step1000", "stage1-step10000-tokens42B", "checkpoint-500" or "iter_0005000".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace headscope {

struct RevisionName {
  std::int64_t step = 0;
  std::int64_t tokens = 0;    // 0: not said
  std::int64_t stage = 0;     // of training: steps are counted anew in each; 0: not said
  std::string of_model = {};  // what stands before all that: "pythia-70m" of "pythia-70m-step1000"
};

// Nothing where the name says no step.
std::optional<RevisionName> parse_revision(std::string_view name);

// That of a model's folder or file. A snapshot in the cache of Hugging Face has the name of the ref that points to it.
std::optional<RevisionName> revision_of(const std::filesystem::path& place);

// "org/name" of models--org--name/snapshots/0123abc, otherwise the last name of the path; where that says nothing but a
// revision, with the folder around it: "pythia-70m/step1000".
std::string published_name(const std::filesystem::path& place);
// The same without the revision: "pythia-70m".
std::string published_model_name(const std::filesystem::path& place);

}  // namespace headscope
