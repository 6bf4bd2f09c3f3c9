// The one way to write a file: to a temporary name in the same folder, synced, checked on close, renamed. A reader sees
// the old content or the new, never a part; a full disk leaves the old file as it was.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace headscope {

// Throws Error(Fault::runtime) naming the file and the system's reason.
void write_file(const std::filesystem::path& file, std::string_view content);

// The whole content. Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
std::string read_file(const std::filesystem::path& file);

}  // namespace headscope
