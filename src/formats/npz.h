// Arrays of NumPy: .npy holds one, .npz is a zip archive of .npy files (numpy.savez, numpy.savez_compressed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/regular_file.h"
#include "formats/tensor.h"
#include "formats/zip.h"

namespace headscope {

// In memory row by row and little-endian, whatever the order in the file. Types: F64, F32, F16, I8 to I64, U8 to U64,
// BOOL.
struct NumpyArray {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  [[nodiscard]] TensorView view() const { return {name, type, shape, bytes}; }
};

// All functions that read throw Error(Fault::input) naming the file (`origin`), and the array where there is one. They
// take memory only when the array's shape agrees with the size of the file or member.

// The content of a .npy file. `name` becomes the name of the array.
NumpyArray parse_npy(std::span<const std::byte> bytes, std::string name, const std::string& origin);

// The members of an archive in its order, views of `bytes`; their names are unique and without ".npy".
std::vector<ZipMember> parse_npz(std::span<const std::byte> bytes, const std::string& origin);

// Unpacks a member of parse_npz.
NumpyArray unpack_array(const ZipMember& member, const std::string& origin);

// A mapped archive: an array is unpacked when it is asked for.
class Npz {
 public:
  explicit Npz(std::filesystem::path file);

  [[nodiscard]] std::vector<std::string> names() const;  // in the order of the archive
  [[nodiscard]] bool contains(std::string_view name) const { return places_.contains(name); }
  // The error carries the nearest name when there is none.
  [[nodiscard]] NumpyArray get(std::string_view name) const;

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<ZipMember> members_;
  std::map<std::string, std::size_t, std::less<>> places_;  // name to index
};

enum class NpzPacking { stored, deflated };

// Writes the arrays in the given order, atomically; the same arrays give the same bytes. BF16 and quantised types have
// no name in NumPy: they are a mistake of the caller. Throws Error(Fault::runtime) naming the file and the system's
// reason.
void write_npz(const std::filesystem::path& file, std::span<const TensorView> arrays,
               NpzPacking packing = NpzPacking::stored);

}  // namespace headscope
