#include "ops/torch_errors.h"

#include <c10/util/Exception.h>

namespace headscope {

std::optional<std::string> torch_message(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch == nullptr) return std::nullopt;
  return of_torch->what_without_backtrace();
}

}  // namespace headscope
