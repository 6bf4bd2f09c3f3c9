#include "torch_half.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "core/error.h"

namespace headscope {
namespace {

const Experiments& load() {
  // Idle threads of torch are to sleep: spinning, they would keep cores from our own threads and from other programs,
  // and training is no faster for it. Their library reads this when it is loaded. The user's own choice stands.
  ::setenv("OMP_WAIT_POLICY", "passive", /*replace=*/0);
  const std::filesystem::path file =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / HEADSCOPE_TORCH_HALF;
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* found = library == nullptr ? nullptr : ::dlsym(library, "headscope_experiments");
  if (found == nullptr) {
    const std::string reason = ::dlerror();
    const bool no_memory = reason.find("map segment") != std::string::npos;
    fail_runtime("cannot load the part with torch: {}; {}", reason,
                 no_memory ? "there is not enough memory for it" : "build headscope again");
  }
  return *static_cast<const Experiments*>(found);
}

}  // namespace

const Experiments& torch_half() {
  static const Experiments& loaded = load();
  return loaded;
}

}  // namespace headscope
