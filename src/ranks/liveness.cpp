#include "ranks/liveness.h"

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/console.h"
#include "ranks/store_text.h"

namespace headscope {
namespace {

constexpr const char* noticed_key = "noticed";  // by which rank first
constexpr const char* missing_key = "missing";  // which ranks that one found to be missing
constexpr const char* gone_key = "gone";        // how many ranks need the store no more

std::string beat_key(int rank) {
  return fmt::format("beat/{}", rank);
}

// Set by a rank that knows that a connection broke.
std::string answer_key(int rank) {
  return fmt::format("answer/{}", rank);
}

std::vector<std::int64_t> all_heartbeats(const C10dStore& store, int size) {
  std::vector<std::int64_t> beats;
  for (int rank = 0; rank < size; ++rank) beats.push_back(heartbeats_of(store, rank));
  return beats;
}

// Takes seconds_of_silence, unless all ranks answer before.
std::vector<int> find_missing(const C10dStore& store, int size, Broken how) {
  const std::vector<std::int64_t> before = all_heartbeats(store, size);
  const auto is_alive = [&](int rank) {
    if (store->check({answer_key(rank)})) return true;
    return how == Broken::closed && heartbeats_of(store, rank) != before[static_cast<std::size_t>(rank)];
  };
  std::vector<int> missing;
  const auto start = Clock::now();
  do {
    missing.clear();
    for (int rank = 0; rank < size; ++rank)
      if (!is_alive(rank)) missing.push_back(rank);
    if (missing.empty()) break;
    if (store->check({failure_key})) return {};  // a rank says why it ended: none is missed
    std::this_thread::sleep_for(Milliseconds(50));
  } while (seconds_since(start) < seconds_of_silence);
  return missing;
}

// What the rank that speaks found; none where it did not say so in time.
std::vector<int> missing_by_the_first(const C10dStore& store) {
  const auto start = Clock::now();
  while (!store->check({missing_key})) {
    if (store->check({failure_key}) || seconds_since(start) > 1.5 * seconds_of_silence) return {};
    std::this_thread::sleep_for(Milliseconds(100));
  }
  return nlohmann::json::parse(text_at(store, missing_key)).get<std::vector<int>>();
}

// The first rank that noticed asks for all of them: hundreds that did so at once would be too much for one store.
Answers ask(const C10dStore& store, const RankPlace& place, Broken how) {
  Answers answers;
  store->set(answer_key(place.rank), bytes_of("yes"));
  answers.speaks = is_first_to_notice(store, place);
  if (answers.speaks) {
    answers.missing = find_missing(store, place.size, how);
    store->set(missing_key, bytes_of(nlohmann::json(answers.missing).dump()));
  } else {
    answers.missing = missing_by_the_first(store);
  }
  answers.failure = text_at(store, failure_key);
  answers.store = true;
  return answers;
}

}  // namespace

struct Heartbeat::Stop {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false;
};

Heartbeat::Heartbeat(const C10dStore& store, int rank) : stop_(std::make_shared<Stop>()) {
  ended_ = left_alone([store, key = beat_key(rank), stop = stop_] {
    constexpr Milliseconds period(250);
    std::unique_lock lock(stop->mutex);
    while (!stop->asked) {
      lock.unlock();
      store->add(key, 1);
      lock.lock();
      stop->changed.wait_for(lock, period, [&] { return stop->asked; });
    }
    return true;
  });
  if (ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) ended_.get();  // it throws what failed
}

void Heartbeat::stop() {
  {
    const std::scoped_lock lock(stop_->mutex);
    stop_->asked = true;
  }
  stop_->changed.notify_all();
  if (ended_.valid()) ended_.wait_for(std::chrono::seconds(1));
}

bool Heartbeat::broke_off() const {
  const std::scoped_lock lock(stop_->mutex);
  return !stop_->asked && ended_.valid() && ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::int64_t heartbeats_of(const C10dStore& store, int rank) {
  return store->add(beat_key(rank), 0);
}

double Silence::after(std::optional<std::int64_t> beats) {
  const bool was_stopped = seconds_since(asked_) > 2 * seconds_of_silence;  // this process itself
  asked_ = Clock::now();
  if (!beats || *beats != beats_ || was_stopped) heard_ = asked_;
  beats_ = beats.value_or(beats_);
  return seconds_since(heard_);
}

bool is_first_to_notice(const C10dStore& store, const RankPlace& place) {
  return set_first(store, noticed_key, std::to_string(place.rank));
}

bool is_noticed(const C10dStore& store) {
  return store->check({noticed_key});
}

Answers ask_all(const C10dStore& store, const RankPlace& place, Broken how) {
  return within(2 * seconds_of_silence, Answers(), [store, place, how] { return ask(store, place, how); });
}

void wait_until_gone(const C10dStore& store, const RankPlace& place, double seconds) {
  constexpr double seconds_to_say_so = 3 * seconds_of_silence;  // the store may hang
  within(place.serves_store() ? seconds : std::min(seconds, seconds_to_say_so), false, [store, place] {
    store->add(gone_key, place.first() ? 0 : 1);
    if (!place.first() || place.launcher_has_store) return true;
    const auto all_are_gone = [&] {
      const std::string missing = text_at(store, missing_key);
      const std::size_t count = missing.empty() ? 0 : nlohmann::json::parse(missing).size();
      return store->add(gone_key, 0) >= place.size - 1 - static_cast<std::int64_t>(count);
    };
    std::vector<std::int64_t> beats = all_heartbeats(store, place.size);
    auto changed = Clock::now();
    while (!all_are_gone() && seconds_since(changed) < seconds_of_silence) {
      std::this_thread::sleep_for(between_polls(place.size));
      if (all_heartbeats(store, place.size) == beats) continue;
      beats = all_heartbeats(store, place.size);
      changed = Clock::now();
    }
    return true;
  });
}

}  // namespace headscope
