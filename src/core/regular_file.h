// Regular files: the one way to open a file that a user names, for reading, and one of our own, for writing in place.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "core/descriptor.h"

namespace headscope {

// A regular file that is open.
struct RegularFile {
  std::filesystem::path path;
  Descriptor descriptor;
  std::size_t size = 0;  // bytes, when it was opened

  // Fills `out` with the first bytes of the file and returns how many there were: fewer than out.size() only where the
  // file is shorter. Throws Error(Fault::input) naming the file.
  std::size_t read(std::span<std::byte> out) const;
};

// Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file. Never waits, not even for
// a named pipe without a writer.
RegularFile open_regular_file(const std::filesystem::path& file);

// The same error, for a reason that shows later (an errno; 0: not a regular file).
[[noreturn]] void fail_reading(const std::filesystem::path& file, int reason);

// For reading and writing in place; makes an empty file where there is none. Throws Error(Fault::input) when a symbolic
// link or something else than a regular file has the name; never waits. For any other reason its descriptor is not
// open, and errno says why.
RegularFile open_or_create(const std::filesystem::path& file);

}  // namespace headscope
