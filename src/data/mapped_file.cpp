#include "data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/descriptor.h"
#include "core/error.h"

namespace headscope {

MappedFile::MappedFile(const std::filesystem::path& file) {
  const auto give_up = [&](const char* reason) { fail_input("cannot read {}: {}", file.string(), reason); };
  // Not blocking: a named pipe would otherwise wait for a writer.
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!opened.open() || ::fstat(opened.get(), &status) != 0) give_up(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) give_up("not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // nothing cannot be mapped
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.get(), 0);
  if (memory == MAP_FAILED) give_up(std::strerror(errno));
  bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace headscope
