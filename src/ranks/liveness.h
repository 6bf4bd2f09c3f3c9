// Which ranks are alive: each of them counts in the store, a few times a second, whatever else it does.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/place.h"
#include "ranks/backend.h"

namespace headscope {

// Counts until it is stopped. Throws where no thread can be started.
class Heartbeat {
 public:
  Heartbeat(const C10dStore& store, int rank);
  ~Heartbeat() { stop(); }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  void stop();
  // It counts no more, although it was not stopped: the store is gone, or no thread could be started.
  [[nodiscard]] bool broke_off() const;

 private:
  struct Stop;
  std::shared_ptr<Stop> stop_;
  std::future<bool> ended_;
};

// How far a rank has counted.
std::int64_t heartbeats_of(const C10dStore& store, int rank);

// The seconds since a rank's count last changed, as one process sees it that polls it.
class Silence {
 public:
  // What the rank has counted to by now; nothing where that could not be asked. Returns the seconds of silence.
  double after(std::optional<std::int64_t> beats);
  [[nodiscard]] std::int64_t beats() const { return beats_; }

 private:
  std::int64_t beats_ = -1;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now(), asked_ = heard_;
};

// A rank on a busy machine still beats within this time.
inline constexpr double seconds_of_silence = 2;

enum class Broken {
  closed,   // a rank closed its connections: it ended. Others may be at work, and will notice later
  timeout,  // nothing came for too long
};

// What is known after a connection broke.
struct Answers {
  bool store = false;        // it could be asked
  std::string failure;       // what a rank that failed left
  std::vector<int> missing;  // ranks that ended or hang, as the first rank that noticed it found
  bool speaks = false;       // this rank is the first that noticed it
};

// Why the first rank that failed by itself did.
inline constexpr const char* failure_key = "failure";

// Whether this is the first rank that misses another.
bool is_first_to_notice(const C10dStore& store, const RankPlace& place);
// Whether any rank does.
bool is_noticed(const C10dStore& store);

// The first rank that notices waits seconds_of_silence for answers, unless all come before; the others wait for what it
// found. Nothing where the store itself does not answer.
Answers ask_all(const C10dStore& store, const RankPlace& place, Broken how);

// Rank 0 has the store: it waits until the others need it no more, or are silent.
void wait_until_gone(const C10dStore& store, const RankPlace& place, double seconds);

}  // namespace headscope
