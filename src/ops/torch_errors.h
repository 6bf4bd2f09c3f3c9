// Torch's errors as ours: their what() is a page of addresses.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "core/error.h"

namespace headscope {

// What torch said, without the addresses; nothing for any other error.
std::optional<std::string> torch_message(const std::exception& error);

// Returns body().
template <class Body>
auto with_short_torch_errors(Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    if (const auto message = torch_message(error)) throw Error(Fault::runtime, *message);
    throw;
  }
}

}  // namespace headscope
