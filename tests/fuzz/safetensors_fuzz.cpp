// A safetensors file is refused in one line, or its tensors cover it exactly and survive being written and read again.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "core/error.h"
#include "formats/safetensors.h"

namespace {

using namespace headscope;

void check(bool good) {
  if (!good) std::abort();
}

bool same(const TensorView& a, const TensorView& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

void write_and_read(const SafetensorsContent& content) {
  const auto file =
      std::filesystem::temp_directory_path() / ("headscope_fuzz_safetensors." + std::to_string(::getpid()));
  const std::string hash = write_safetensors(file, content.tensors, content.metadata);
  const Safetensors again(file);
  std::filesystem::remove(file);
  check(again.hash() == hash && again.metadata() == content.metadata);
  check(again.tensors().size() == content.tensors.size());
  for (const TensorView& tensor : content.tensors) check(same(again.get(tensor.name), tensor));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const SafetensorsContent content = parse_safetensors(bytes, "fuzz.safetensors");
    std::size_t covered = 0;
    for (const TensorView& tensor : content.tensors) covered += tensor.bytes.size();
    std::uint64_t header = 0;
    std::memcpy(&header, data, sizeof header);
    check(sizeof header + header + covered == size);
    write_and_read(content);
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strlen(error.what()) < 1000);
    check(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
