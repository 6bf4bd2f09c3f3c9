// Any bytes are read or refused with one line; what is read is consistent.
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>

#include "core/error.h"
#include "formats/captured_vectors.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

void check(const CapturedVectors& captured) {
  const std::size_t n = captured.rows;
  check(n > 0 && captured.dim > 0);
  check(captured.bucket.size() == n && captured.position.size() == n && captured.example_id.size() == n);
  check(captured.sliding_window.empty() || captured.sliding_window.size() == n);
  check(captured.vector32.empty() != captured.vector64.empty());
  check(captured.vector32.size() + captured.vector64.size() == n * captured.dim);
  for (std::size_t i = 0; i < n; ++i) check(captured.bucket[i] >= 0 && captured.position[i] >= 0);
  for (const float value : captured.vector32) check(std::isfinite(value));
  for (const double value : captured.vector64) check(std::isfinite(value));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool drop : {false, true}) {
    try {
      check(parse_captured_vectors(std::as_bytes(std::span(data, size)), "fuzz", {.drop_nonfinite = drop}));
    } catch (const Error& error) {
      check(error.fault() == Fault::input);
      check(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
  return 0;
}
