// Any text is the results of a run or is refused with one line; results are written, read and written as the same
// bytes.
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "study/results.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ConditionResults results;
  try {
    results = parse_results({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr);
    return 0;
  }
  const std::size_t probes = results.tokens.size();
  check(probes > 0 && results.loss.size() == probes && results.val_loss.size() == probes);
  check(results.mean_pr.size() == probes && !results.layer_pr.empty());
  for (const auto* layers : {&results.layer_pr, &results.gamma_cv})
    for (const Numbers& layer : *layers) check(layer.size() == probes);
  const std::string text = results_text(results);
  check(results_text(parse_results(text, "again")) == text);
  return 0;
}
