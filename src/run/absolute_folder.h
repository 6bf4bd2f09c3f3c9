// One spelling for a folder, however a user types it.
#pragma once

#include <filesystem>

namespace headscope {

// "runs/first/", "runs/./first" and "runs/x/../first" give the same path: absolute, without a slash at the end.
inline std::filesystem::path absolute_folder(const std::filesystem::path& folder) {
  return std::filesystem::absolute(folder / "").lexically_normal().parent_path();
}

}  // namespace headscope
