#define USE_C10D_GLOO  // c10d's headers are empty without it
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"  // of c10d's headers
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#pragma GCC diagnostic pop

#include <net/if.h>

#include <cstdlib>

#include "core/error.h"
#include "ranks/backend.h"

namespace headscope {
namespace {

// The network that the ranks use: that of the store where it is this machine's own, otherwise that of the host's name,
// or the interface that the user names as for torch.
auto gloo_device(const std::string& host) {
  using c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME")) {
    if (::if_nametoindex(interface) == 0)
      fail_input("GLOO_SOCKET_IFNAME is '{}': this machine has no such network interface", excerpt(interface));
    return ProcessGroupGloo::createDeviceForInterface(interface);
  }
  if (host == "localhost" || host.starts_with("127.")) return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

// gloo_names.h declares what the class holds. With the headers of Gloo it has as many bytes (torch 2.11.0).
static_assert(sizeof(c10d::ProcessGroupGloo) == 488, "compare gloo_names.h with the Gloo of this torch");

C10dBackend connect_gloo(const C10dStore& store, const RankPlace& place, std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(gloo_device(place.host));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
}

}  // namespace headscope
