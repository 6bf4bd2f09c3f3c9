#include "core/regular_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "core/error.h"

namespace headscope {

RegularFile open_regular_file(const std::filesystem::path& file) {
  // O_NONBLOCK: opening a named pipe would wait for a writer. It changes nothing for regular files.
  RegularFile opened{file, Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), 0};
  if (!opened.descriptor.open()) fail_reading(file, errno == ENXIO ? 0 : errno);  // ENXIO: a socket
  struct stat status {};
  if (::fstat(opened.descriptor.get(), &status) != 0) fail_reading(file, errno);
  if (S_ISDIR(status.st_mode)) fail_reading(file, EISDIR);
  if (!S_ISREG(status.st_mode)) fail_reading(file, 0);
  opened.size = static_cast<std::size_t>(status.st_size);
  return opened;
}

std::size_t RegularFile::read(std::span<std::byte> out) const {
  const auto got = descriptor.read_at(out, 0);
  if (!got) fail_reading(path, errno);
  return *got;
}

bool is_named(const Descriptor& opened, const std::filesystem::path& file) {
  struct stat here {};
  struct stat named {};
  if (::stat(file.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ::fstat(opened.get(), &here) != 0 || (here.st_dev == named.st_dev && here.st_ino == named.st_ino);
}

void fail_reading(const std::filesystem::path& file, int reason) {
  fail_input("cannot read {}: {}", file.string(), reason != 0 ? std::strerror(reason) : "not a regular file");
}

RegularFile open_or_create(const std::filesystem::path& file) {
  // A link must not lead to the file of somebody else.
  RegularFile opened{file,
                     Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644)), 0};
  if (!opened.descriptor.open() && errno == ELOOP) fail_input("{}: is a symbolic link; remove it", file.string());
  struct stat status {};
  if (!opened.descriptor.open()) return opened;
  if (::fstat(opened.descriptor.get(), &status) != 0) fail_reading(file, errno);
  if (!S_ISREG(status.st_mode)) fail_input("{}: is not a regular file; remove it", file.string());
  opened.size = static_cast<std::size_t>(status.st_size);
  return opened;
}

MappedFile::MappedFile(const std::filesystem::path& file) {
  const RegularFile opened = open_regular_file(file);
  if (opened.size == 0) return;  // mmap refuses an empty range
  void* const memory = ::mmap(nullptr, opened.size, PROT_READ, MAP_PRIVATE, opened.descriptor.get(), 0);
  if (memory == MAP_FAILED) fail_reading(file, errno);
  bytes_ = {static_cast<const std::byte*>(memory), opened.size};
}

void MappedFile::forget() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace headscope
