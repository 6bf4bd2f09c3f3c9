// Torch's errors as ours: their what() is a page of addresses.
#pragma once

#include <c10/util/Exception.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace headscope {

// The bytes that the CPU's memory did not have, 0 where torch does not say the number. Nothing for another error: torch
// has no type for this one.
inline std::optional<std::uint64_t> bytes_that_did_not_fit(const c10::Error& error) {
  constexpr std::string_view asked = "you tried to allocate ";
  const std::string_view said = error.what_without_backtrace();
  const std::size_t found = said.find("DefaultCPUAllocator"), number = said.find(asked, found);
  if (found == std::string_view::npos || number == std::string_view::npos) return std::nullopt;
  std::uint64_t bytes = 0;
  std::from_chars(said.data() + number + asked.size(), said.data() + said.size(), bytes);
  return bytes;
}

// "0.75 GiB more"; bytes = 0: the number is not known.
inline std::string more_memory_text(std::uint64_t bytes) {
  if (bytes == 0) return "more bytes than were free";
  return fmt::format("{:.2f} GiB more", static_cast<double>(bytes) / (1 << 30));
}

// Returns body(). An error of torch becomes what torch said, without the addresses; that of memory says what helps.
template <class Body>
auto with_short_torch_errors(Body&& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    if (const auto bytes = bytes_that_did_not_fit(error))
      fail_runtime("out of memory: {} were needed at once; a smaller model or batch needs less",
                   more_memory_text(*bytes));
    throw Error(Fault::runtime, error.what_without_backtrace());
  }
}

}  // namespace headscope
