// What is asked of a capture, and what came of it.
#pragma once

#include "capture/options.h"
#include "run/run_folder.h"

namespace headscope {

struct CaptureJob {
  CaptureInputs inputs;
  CaptureOptions options;
  RunFolderOptions folder;
};

struct CaptureSummary {
  std::int64_t texts = 0, tokens = 0;  // that were computed on
  std::int64_t rows = 0, files = 0;    // vectors, and files of heads
  std::string rope;                    // "before" or "after"
  std::string title;                   // of the model
  double seconds = 0, tokens_per_second = 0, peak_memory_mb = 0;
};
nlohmann::ordered_json to_json(const CaptureSummary& summary);

struct CaptureOutcome {
  std::filesystem::path out;
  CaptureSummary summary;
  bool already_complete = false;
};

}  // namespace headscope
