// `headscope capture`: queries and keys of a model's heads on texts, as files that other programs read.
#pragma once

#include "capture/capture.h"
#include "core/console.h"

namespace headscope {

// Captures into a run folder. Throws Error: input (nothing is captured), interrupted (parts are kept), runtime.
CaptureOutcome run_capture(const CaptureJob& job, Console& console);

// The same as a part of another command's run.
struct CapturePlan {
  std::int64_t layers = 0, heads = 0, key_heads = 0;  // of the model
  std::string title, rope;
  nlohmann::ordered_json config;  // resolved
};
CapturePlan plan_capture(const CaptureInputs& inputs, const CaptureOptions& options);
// Writes the files of the heads into the folder, unless they are there, or goes on with its parts. `hint` says how to
// go on after an interruption.
void capture_into(const CaptureInputs& inputs, const CaptureOptions& options, const std::filesystem::path& folder,
                  const std::string& hint, Console& console);

}  // namespace headscope
