// What connected ranks have, for the sources of Ranks alone: ranks.cpp (what they exchange), agreement.cpp (what they
// tell each other through the store), ending.cpp (how they end together).
#pragma once

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

// A rank that does not beat for so long is gone, or its machine is. With NCCL nothing else tells: its operations go on
// waiting for a process that was killed.
inline constexpr double seconds_until_gone = 5 * seconds_of_silence;

struct Ranks::Connection {
  C10dStore store;
  C10dBackend backend;
  std::optional<Heartbeat> heartbeat;
  at::Device device = at::kCPU;  // where the backend takes tensors
  double timeout = 0;            // seconds
  std::int64_t step = 0;
  double exchange_seconds = 0;
  std::vector<std::weak_ptr<Begun::Work>> begun;  // that may be under way

  // Whether another rank noticed that one is gone. All that this rank is connected to may wait for it, too. A store
  // that hangs is not asked again.
  [[nodiscard]] bool others_noticed() {
    if (!store_answers) return false;
    const auto noticed = within(seconds_of_silence, std::optional<bool>(), [store = store] {
      try {
        return std::optional<bool>(is_noticed(store) || store->check({failure_key}));
      } catch (const c10::Error&) {  // rank 0 had it
        return std::optional<bool>(true);
      }
    });
    store_answers = noticed.has_value();
    return noticed.value_or(false);
  }
  bool store_answers = true;

  // Whether the next rank is gone. Each rank asks of the next one, so that somebody asks of each.
  [[nodiscard]] bool next_is_silent(int next) {
    if (!store_answers) return false;
    const auto beats = within(seconds_of_silence, std::optional<std::int64_t>(),
                              [store = store, next] { return std::optional(heartbeats_of(store, next)); });
    return silence_of_next.after(beats) > seconds_until_gone;
  }
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
