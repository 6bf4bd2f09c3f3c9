#include "core/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "core/regular_file.h"

namespace headscope {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const RegularFile opened = open_regular_file(file);
  if (opened.size == 0) return;  // mmap refuses an empty range
  void* const memory = ::mmap(nullptr, opened.size, PROT_READ, MAP_PRIVATE, opened.descriptor.get(), 0);
  if (memory == MAP_FAILED) fail_reading(file, errno);
  bytes_ = {static_cast<const std::byte*>(memory), opened.size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace headscope
