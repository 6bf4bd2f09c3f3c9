// What connected ranks have, for the sources of Ranks alone: ranks.cpp (what they exchange), agreement.cpp (what they
// tell each other through the store), ending.cpp (how they end together).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"
#include "ranks/backend.h"
#include "ranks/liveness.h"
#include "ranks/ranks.h"
#include "ranks/store_text.h"

namespace headscope {

// A rank that failed by itself waits for the others to read why.
inline constexpr double seconds_to_report = 3 * seconds_of_silence;

// A rank that misses another one is ended when it has not ended by itself.
inline constexpr double seconds_to_end = 30;

// A rank that does not beat for so long is gone, or its machine is: while ranks connect and where they end, when little
// or nothing is lost by a mistake.
inline constexpr double seconds_until_gone = 5 * seconds_of_silence;

// The same while they train, as a share of ranks.timeout: 60 s by default. With NCCL nothing else tells: its operations
// go on waiting for a process that was killed. A network may be away for half a minute, and come back.
inline constexpr double share_until_gone = 0.2;

struct Ranks::Connection {
  C10dStore store;
  C10dBackend backend;
  std::optional<Heartbeat> heartbeat;
  at::Device device = at::kCPU;  // where the backend takes tensors
  double timeout = 0;            // seconds
  std::int64_t step = 0;
  double exchange_seconds = 0;
  std::vector<std::weak_ptr<Begun::Work>> begun;  // that may be under way

  // Whether another rank noticed that one is gone. All that this rank is connected to may wait for it, too.
  [[nodiscard]] bool others_noticed() {
    const auto noticed = failure.ask(seconds_of_silence, [store = store] {
      try {
        return is_noticed(store) || store->check({failure_key});
      } catch (const c10::Error&) {  // rank 0 had it
        return true;
      }
    });
    return noticed.value_or(false) || (heartbeat && heartbeat->broke_off());
  }
  Question<bool> failure;

  // Whether the next rank is gone. Each rank asks of the next one, so that somebody asks of each.
  [[nodiscard]] bool next_is_silent(int next) {
    const auto beats =
        beats_of_next.ask(seconds_of_silence, [store = store, next] { return heartbeats_of(store, next); });
    return silence_of_next.after(beats) >
           (backend ? std::max(seconds_until_gone, share_until_gone * timeout) : seconds_until_gone);
  }
  Question<std::int64_t> beats_of_next;
  Silence silence_of_next;

  // A tensor as the backend takes it.
  [[nodiscard]] at::Tensor given(const at::Tensor& tensor) const { return tensor.detach().contiguous().to(device); }
  // Operations do not return before they are done, as far as the host sees.
  [[nodiscard]] bool waits(const at::Tensor& tensor) const { return device.is_cpu() || tensor.is_cpu(); }
};

struct Ranks::Begun::Work {
  c10::intrusive_ptr<c10d::Work> work;
  at::Tensor given = {}, result = {};  // as the backend takes them
  at::Device device = at::kCPU;        // where the result is wanted

  void keep(const at::Tensor& what, const at::Tensor& into, at::Device wanted) {
    given = what;
    result = into;
    device = wanted;
  }
};

}  // namespace headscope
