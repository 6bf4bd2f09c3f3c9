// An archive of arrays is refused in one line, or its arrays survive being written and read again. The same bytes are
// also tried as one array, and as the packed bytes of a member: a mutated archive seldom gets past its checksums.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "core/error.h"
#include "formats/npz.h"

namespace {

using namespace headscope;

void check(bool good) {
  if (!good) std::abort();
}

void refused_or_read(auto parse) {
  try {
    parse();
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strlen(error.what()) < 1500);
    check(std::strchr(error.what(), '\n') == nullptr);
  }
}

void check_array(const NumpyArray& array) {
  check(byte_size(array.type, array.shape) == array.bytes.size());
}

void write_and_read(const std::vector<NumpyArray>& arrays) {
  const auto file = std::filesystem::temp_directory_path() / ("headscope_fuzz_npz." + std::to_string(::getpid()));
  std::vector<TensorView> views;
  for (const NumpyArray& array : arrays) {
    if (array.name.empty() || array.name.size() > 60'000) return;  // our writer takes no such name
    views.push_back(array.view());
  }
  write_npz(file, views, arrays.size() % 2 == 0 ? NpzPacking::stored : NpzPacking::deflated);
  const Npz again(file);
  std::filesystem::remove(file);
  check(again.names().size() == arrays.size());
  for (const NumpyArray& array : arrays) {
    const NumpyArray read = again.get(array.name);
    check(read.type == array.type && read.shape == array.shape && read.bytes == array.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  refused_or_read([&] {
    std::vector<NumpyArray> arrays;
    for (const ZipMember& member : parse_npz(bytes, "fuzz.npz")) {
      arrays.push_back(unpack_array(member, "fuzz.npz"));
      check_array(arrays.back());
    }
    write_and_read(arrays);
  });
  refused_or_read([&] { check_array(parse_npy(bytes, "array", "fuzz.npy")); });
  if (size < 2) return 0;
  const std::uint64_t claimed = data[0] | std::uint64_t{data[1]} << 8;
  refused_or_read([&] { check_array(unpack_array({"array", true, bytes.subspan(2), claimed, 0}, "fuzz.npz")); });
  return 0;
}
