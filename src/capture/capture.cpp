#include "capture/capture.h"

namespace headscope {

nlohmann::ordered_json to_json(const CaptureSummary& summary) {
  return {{"title", summary.title},
          {rope_key, summary.rope},
          {"texts", summary.texts},
          {"tokens", summary.tokens},
          {"rows", summary.rows},
          {"files", summary.files},
          {"seconds", summary.seconds},
          {"tokens_per_second", summary.tokens_per_second},
          {"peak_memory_mb", summary.peak_memory_mb}};
}

}  // namespace headscope
