#include "core/plain_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <new>
#include <system_error>

namespace headscope {
namespace {

// "cannot create directories runs/x: Permission denied", out of the library's wording. A reason that is the path's own
// is bad input.
Error of_file_system(const std::filesystem::filesystem_error& error) {
  std::string doing = error.what();
  doing = doing.substr(0, doing.find(": " + error.code().message()));
  const std::size_t cannot = doing.find("cannot ");
  doing = cannot == std::string::npos ? "cannot look at" : doing.substr(cannot);
  std::string paths = error.path1().empty() ? "''" : error.path1().string();
  if (!error.path2().empty()) paths += fmt::format(" and {}", error.path2().string());
  constexpr std::array of_the_path = {EACCES, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM};
  const bool input = std::find(of_the_path.begin(), of_the_path.end(), error.code().value()) != of_the_path.end();
  return {input ? Fault::input : Fault::runtime, fmt::format("{} {}: {}", doing, paths, error.code().message())};
}

}  // namespace

Error plain_error(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return *ours;
  if (const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return of_file_system(*of_files);
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error);
      of_system != nullptr && of_system->code().value() == EAGAIN)
    return {Fault::runtime, fmt::format("cannot start a thread: {}; use fewer --threads or --jobs, or raise the limit "
                                        "of processes (ulimit -u)",
                                        of_system->code().message())};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {Fault::runtime, "out of memory; a smaller model or batch, fewer workers or fewer rows may fit"};
  if (*error.what() != '\0') return {Fault::runtime, error.what()};
  return {Fault::runtime, "an error of a library without a message; please report what was done"};
}

}  // namespace headscope
