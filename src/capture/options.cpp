#include "capture/options.h"

#include "core/lists.h"

namespace headscope {

void validate(const CaptureOptions& options) {
  check_ranges(options);
  if (options.text_column.empty()) fail_input("text_column is empty; expected a name");
  if (!options.layers.empty()) parse_index_list(options.layers, "--layers");
  if (!options.heads.empty()) parse_index_list(options.heads, "--heads");
}

}  // namespace headscope
