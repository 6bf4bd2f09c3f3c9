// How ranks end: all together, with one message of what happened.
#include "ranks/ending.h"

#include <unistd.h>

#include <thread>

#include "core/interrupt.h"
#include "core/plain_error.h"
#include "launch/launch.h"
#include "ranks/connection.h"

namespace headscope {

// Ranks that wait for this one notice, too. Operations that are under way may wait for others for long: nobody waits
// for them.
void Ranks::disconnect() const {
  if (!connection_->backend) return;
  for (const auto& begun : connection_->begun)
    if (const auto operation = begun.lock()) operation->work.reset();  // it would keep the connections open
  left_alone([backend = std::move(connection_->backend), aborts = queued()]() mutable {
    if (aborts) backend->abort();
    backend.reset();
    return true;
  });
}

namespace {

[[noreturn]] void end_process(Fault fault, const std::string& message) {
  if (!message.empty()) Console().error(message);
  const int code = static_cast<int>(fault);
  ::_exit(message.empty() ? silent_exit_code(code) : code);
}

}  // namespace

void end_process_after(double seconds, const std::string& message) {
  left_alone([seconds, message]() -> bool {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    end_process(Fault::runtime, message);
  });
}

Deadline::Deadline(double seconds, const std::string& message) {
  left_alone([seconds, message, is_kept = is_kept_] {
    constexpr double seconds_to_stop = 15;
    std::optional<Clock::time_point> asked;
    for (const auto start = Clock::now(); !*is_kept; std::this_thread::sleep_for(Milliseconds(50))) {
      if (interrupt_requested() && !asked) asked = Clock::now();
      if (asked && seconds_since(*asked) > seconds_to_stop)
        end_process(Fault::interrupted, message.empty() ? "" : "interrupted before the ranks were connected");
      if (seconds_since(start) > seconds) end_process(Fault::runtime, message);
    }
    return true;
  });
}

// After an operation that failed: finds out which rank is missing.
void Ranks::find_lost(const std::string& reason, Broken how) const {
  disconnect();
  Answers answers = ask_all(connection_->store, place_, how);
  if (!answers.store) {  // rank 0 has it
    answers.missing = {0};
    answers.speaks = place_.speaks_without_store();
  }
  // Ranks that are still at work will notice it, and ask the store why.
  const double patience = how == Broken::closed ? connection_->timeout : seconds_to_report;
  const std::string who = answers.missing.empty() ? "the connection between ranks broke"
                                                  : fmt::format("rank {} of {} does not answer: it ended or hangs",
                                                                fmt::join(answers.missing, ", rank "), size());
  const LostRank lost =
      !answers.failure.empty()
          ? LostRank(answers.failure, /*is_said_here=*/false, patience)
          : LostRank(fmt::format("step {}: {} ({} noticed it: {}); --resume goes on from the last checkpoint",
                                 connection_->step, who, name(), reason),
                     answers.speaks, patience);
  connection_->heartbeat->stop();  // rank 0 need not wait for this rank to put its things away
  if (place_.owns_process)
    end_process_after(seconds_to_end + (first() ? patience : 0), lost.said_here ? lost.what() : "");
  throw lost;
}

namespace {

// What a rank leaves in the store under this name.
constexpr const char* end_key = "end";          // how many ranks have come to the end
constexpr const char* all_end_key = "all_end";  // rank 0 waits for no more

// True once every rank has come to the end or is silent.
class EveryoneAtTheEnd {
 public:
  EveryoneAtTheEnd(const C10dStore& store, const RankPlace& place)
      : store_(store), place_(place), silences_(static_cast<std::size_t>(place.first() ? place.size : 1)) {}

  bool operator()() {
    if (!place_.first()) return store_->check({all_end_key}) || is_silent(0);
    std::int64_t silent = 0;
    for (int rank = 1; rank < place_.size; ++rank) silent += is_silent(rank) ? 1 : 0;
    if (store_->add(end_key, 0) + silent < place_.size) return false;
    store_->set(all_end_key, bytes_of("yes"));
    return true;
  }

 private:
  bool is_silent(int rank) {
    return silences_[static_cast<std::size_t>(rank)].after(heartbeats_of(store_, rank)) > seconds_until_gone;
  }

  const C10dStore& store_;
  const RankPlace& place_;
  std::vector<Silence> silences_;
};

}  // namespace

void Ranks::last_barrier() const {
  if (!connection_) return;
  const bool has_failed = within(connection_->timeout, false, [store = connection_->store, place = place_] {
    store->add(end_key, 1);
    for (EveryoneAtTheEnd all(store, place); !all(); std::this_thread::sleep_for(between_polls(place.size)))
      if (store->check({failure_key}) || is_noticed(store)) return true;
    return false;
  });
  if (has_failed) find_lost("another rank noticed it", Broken::closed);
}

void Ranks::leave(const LostRank& error) const {
  depart(error.patience);
  throw Error(error.fault(), error.said_here ? error.what() : "");
}

void Ranks::leave(const AgreedError& error) const {
  try {
    last_barrier();
  } catch (const LostRank& lost) {
    leave(lost);
  }
  throw Error(error.fault(), first() ? error.what() : "");
}

void Ranks::leave(const Error& error) const {
  const std::string text = fmt::format("{}: {}", where(), error.what());
  // Where several ranks fail at once, the first one says it.
  const bool said_here = within(seconds_of_silence, true,
                                [store = connection_->store, text] { return set_first(store, failure_key, text); });
  depart(connection_->timeout);
  throw Error(error.fault(), said_here ? text : "");
}

void Ranks::leave(const std::exception& error) const {
  const bool is_of_torch = dynamic_cast<const c10::Error*>(&error) != nullptr;
  leave(is_of_torch ? Error(Fault::runtime, said(error)) : plain_error(error));
}

void Ranks::depart(double patience) const {
  disconnect();  // now the others notice
  connection_->heartbeat->stop();
  wait_until_gone(connection_->store, place_, patience);
}

}  // namespace headscope
