// The text that the probes of a run measured, and the settings of its training. Values of PR can be compared where
// these are the same.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headscope {

// What the manifest of a run that trained says of it; what it does not say is null or empty.
struct MeasuredText {
  nlohmann::ordered_json train, data, model, optim;  // parts of the configuration
  nlohmann::ordered_json blocks;  // of the validation text, by number; of a run that does not say it the first ones
  std::string hash;               // of training and validation tokens

  [[nodiscard]] bool is_known() const { return !blocks.is_null(); }
};

// `manifest`: one that read_manifest returned.
MeasuredText measured_text(const nlohmann::ordered_json& manifest);

// In what the two, both known, differ: "train.batch is 4 and 8". Empty where nothing says that they measured different
// text.
std::string difference_of(const MeasuredText& first, const MeasuredText& second);

// The settings of model and training that the two do not share, but for those of text and length: "optim.muon_lr (0.02
// and 0.002), train.clip (1 and 2)". Empty where there are none.
std::string other_settings(const MeasuredText& first, const MeasuredText& second);

}  // namespace headscope
