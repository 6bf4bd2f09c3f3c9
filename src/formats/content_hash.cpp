#include "formats/content_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace headscope {
namespace {

std::string hex_of(XXH128_hash_t digest) {
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace

struct ContentHash::State {
  XXH3_state_t value;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->value);
}

ContentHash::~ContentHash() = default;

void ContentHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->value, bytes.data(), bytes.size());
}

std::string ContentHash::hex() const {
  return hex_of(XXH3_128bits_digest(&state_->value));
}

std::string content_hash(std::span<const std::byte> bytes) {
  return hex_of(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace headscope
