// The hash of a file's content: XXH3 of its bytes, 128 bits, in hexadecimal. Manifests record it for every input.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headscope {

std::string content_hash(std::span<const std::byte> bytes);
inline std::string content_hash(std::string_view text) {
  return content_hash(std::as_bytes(std::span(text)));
}

// The same hash of bytes that come piece by piece.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
