// Named tensors in one file (safetensors): eight bytes with the length of a JSON header, the header, the values.
// Model weights, optimizer state and published checkpoints are such files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/atomic_file.h"
#include "core/regular_file.h"
#include "formats/tensor.h"

namespace headscope {

using TensorMetadata = std::map<std::string, std::string>;  // "__metadata__" of the header

// Writes the tensors in the given order, atomically. Returns the hash of the file's bytes (formats/content_hash.h).
// Throws Error(Fault::runtime) naming the file and the system's reason, a full disk for example; the folder is then as
// it was.
std::string write_safetensors(const std::filesystem::path& file, std::span<const TensorView> tensors,
                              const TensorMetadata& metadata = {});

// Writes tensors whose values come in any order. Their shapes are known before; the bytes of `tensors` are not used.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& file, std::span<const TensorView> tensors,
                    const TensorMetadata& metadata = {});

  // Bytes of one tensor, from `offset` on. What is never written is 0.
  void write(std::size_t tensor, std::uint64_t offset, std::span<const std::byte> bytes);
  // The file appears. Without it nothing remains.
  void commit();

 private:
  AtomicFile file_;
  std::vector<std::uint64_t> begins_;  // of the tensors in the file, and the end
};

struct SafetensorsContent {
  std::vector<TensorView> tensors;  // in the order of their bytes; views of the parsed bytes
  TensorMetadata metadata;
};

// Every claim of the header is checked: types, shapes and sizes agree, names are unique, and the tensors cover the
// bytes behind the header without gap or overlap, whatever the order of their names. `origin` names the file in errors.
// Throws Error(Fault::input) naming file and tensor.
SafetensorsContent parse_safetensors(std::span<const std::byte> bytes, const std::string& origin);

// A mapped file: a tensor is read when its bytes are touched. Views stay valid as long as the object exists, also after
// a move.
class Safetensors {
 public:
  explicit Safetensors(std::filesystem::path file);

  [[nodiscard]] const std::vector<TensorView>& tensors() const { return content_.tensors; }
  // Throws Error(Fault::input) with the nearest name when there is none.
  [[nodiscard]] const TensorView& get(std::string_view name) const;
  [[nodiscard]] const TensorMetadata& metadata() const { return content_.metadata; }
  [[nodiscard]] std::string hash() const;  // of the whole file, which is read for it
  void forget() const { file_.forget(); }  // memory of what was read

 private:
  std::filesystem::path path_;
  MappedFile file_;
  SafetensorsContent content_;
  std::unordered_map<std::string_view, std::size_t> places_;  // names of content_ to index
};

}  // namespace headscope
