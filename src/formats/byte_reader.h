// Takes numbers and texts from bytes, one after another, and checks each length against what is left. Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/error.h"

namespace headscope {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so are our views of them");

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ByteReader {
 public:
  // `origin` names the file in errors and must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }

  // Throws Error(Fault::input): "x.gguf: cut short or damaged: the count of tensors at byte 8 needs 8 bytes, 3 are
  // left".
  std::span<const std::byte> take(std::uint64_t count, std::string_view what) {
    if (count > left())
      fail_input("{}: cut short or damaged: {} at byte {} needs {} bytes, {} are left; copy or download the file again",
                 origin_, what, position_, count, left());
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  template <class Number>
  Number number(std::string_view what) {
    static_assert(std::is_trivially_copyable_v<Number>);
    Number value{};
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& origin_;
  std::size_t position_ = 0;
};

}  // namespace headscope
