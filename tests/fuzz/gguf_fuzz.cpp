// A GGUF file is refused in one line, or its tensors lie in it without overlap, every value of its metadata can be read
// as what it is, and weights become as many numbers as the shape says.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>

#include "core/error.h"
#include "formats/gguf.h"

namespace {

using namespace headscope;

void check(bool good) {
  if (!good) std::abort();
}

void read_value(const GgufMetadata& metadata, const std::string& key) {
  const GgufValue& value = metadata.get(key);
  if (value.is_list) {
    if (value.kind == GgufKind::text)
      check(metadata.texts(key).size() == value.count);
    else if (value.kind == GgufKind::boolean)
      check(metadata.booleans(key).size() == value.count);
    else
      check(metadata.numbers(key).size() == value.count);
  } else if (value.kind == GgufKind::text) {
    check(metadata.text(key).size() + sizeof(std::uint64_t) == value.bytes.size());
  } else if (value.kind == GgufKind::boolean) {
    (void)metadata.boolean(key);
  } else {
    (void)metadata.number(key);
  }
}

void read_tensor(const TensorView& tensor) {
  check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size());
  if (is_integer(tensor.type)) {
    check(read_integers(tensor).size() == value_count(tensor));
    return;
  }
  std::vector<float> values(value_count(tensor));
  read_floats(tensor, 0, values);
  std::uint64_t count = 1;
  for (const std::int64_t dimension : tensor.shape) count *= static_cast<std::uint64_t>(dimension);
  check(count == values.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const GgufContent content = parse_gguf(bytes, "fuzz.gguf");
    std::size_t covered = 0;
    for (const TensorView& tensor : content.tensors) {
      covered += tensor.bytes.size();
      if (!tensor.bytes.empty())
        check(tensor.bytes.data() >= bytes.data() && tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + size);
      read_tensor(tensor);
    }
    check(covered <= size);
    for (const std::string& key : content.metadata.keys()) read_value(content.metadata, key);
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strlen(error.what()) < 1500);
    check(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
