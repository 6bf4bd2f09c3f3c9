// Torch's errors as ours: their what() is a page of addresses.
#pragma once

#include <c10/util/Exception.h>

#include "core/error.h"

namespace headscope {

// Returns body(). An error of torch becomes what torch said, without the addresses.
template <class Body>
auto with_short_torch_errors(Body&& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    throw Error(Fault::runtime, error.what_without_backtrace());
  }
}

}  // namespace headscope
