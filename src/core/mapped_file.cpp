#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/descriptor.h"
#include "core/error.h"

namespace headscope {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const auto give_up = [&](int reason) {
    fail_input("cannot read {}: {}", file.string(), reason != 0 ? std::strerror(reason) : "not a regular file");
  };
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open()) give_up(errno);
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0) give_up(errno);
  if (S_ISDIR(status.st_mode)) give_up(EISDIR);
  if (!S_ISREG(status.st_mode)) give_up(0);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // the system refuses to map nothing
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
  if (memory == MAP_FAILED) give_up(errno);
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace headscope
