// What ranks tell each other through the store, which rank 0 serves.
#include <algorithm>
#include <map>
#include <thread>

#include "core/json_text.h"
#include "ranks/connection.h"

namespace headscope {

using nlohmann::ordered_json;

namespace {

// "config.train.batch is 8, and 16 on rank 0"; empty where all is the same.
std::string difference(const ordered_json& here, const ordered_json& first) {
  const ordered_json flat_here = here.flatten(), flat_first = first.flatten();
  for (const ordered_json* facts : {&flat_here, &flat_first}) {
    for (const auto& [pointer, value] : facts->items()) {
      const ordered_json mine = flat_here.value(pointer, ordered_json()),
                         other = flat_first.value(pointer, ordered_json());
      if (mine == other) continue;
      std::string key = pointer.substr(1);
      std::replace(key.begin(), key.end(), '/', '.');
      return fmt::format("{} is {}, and {} on rank 0", key, json_line(mine), json_line(other));
    }
  }
  return "";
}

}  // namespace

std::string Ranks::from_first(const std::string& name, const std::function<std::string()>& say) const {
  if (!connection_) return say();
  const std::string key = "said/" + name;
  if (!first()) return get(key, 0);
  std::string text = say();
  tell(key, text);
  return text;
}

// What the function finds in the store, which rank 0 serves. Throws LostRank where that does not answer.
template <class Function>
auto Ranks::ask_store(double seconds, Function function) const {
  const auto fail = [&](const std::string& reason) {
    throw LostRank(
        fmt::format("rank 0 of {} does not answer: it ended or hangs ({} noticed it: {})", size(), name(), reason),
        place_.speaks_without_store(), seconds_to_report);
  };
  auto answer = left_alone(std::move(function));
  if (answer.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready)
    fail(fmt::format("its store did not answer within {:g} s", seconds));
  try {
    return answer.get();
  } catch (const c10::Error& error) {
    fail(said(error));
    throw;
  }
}

void Ranks::tell(const std::string& key, const std::string& text) const {
  ask_store(connection_->timeout, [store = connection_->store, key, text] {
    store->set(key, bytes_of(text));
    return true;
  });
}

namespace {

// What another rank set, or why it is not there.
struct Heard {
  std::string text = {}, reason = {};
  bool others_noticed = false;
  bool speaks = false;
};

// Waits for what the rank sets, or will set.
Heard listen_for(const C10dStore& store, const RankPlace& place, const std::string& key, int from, double timeout) {
  const auto start = Clock::now();
  for (Silence silence;; std::this_thread::sleep_for(between_polls(place.size))) {
    if (store->check({key})) return {.text = text_of(store->get(key))};
    if (store->check({failure_key}) || is_noticed(store)) return {.others_noticed = true};
    const double seconds = silence.after(heartbeats_of(store, from));
    // The first beat waits for a connection of its own, which a busy machine takes long for.
    const double most_silence = silence.beats() > 0 ? seconds_until_gone : 3 * seconds_until_gone;
    const bool is_silent = seconds > most_silence, is_late = seconds_since(start) > timeout;
    if (!is_silent && !is_late) continue;
    return {.reason = is_silent ? "it is silent" : fmt::format("nothing came within {:g} s", timeout),
            .speaks = is_first_to_notice(store, place)};
  }
}

}  // namespace

// What another rank set, or will set.
std::string Ranks::get(const std::string& key, int from) const {
  const double timeout = connection_->timeout;
  const Heard heard =
      ask_store(timeout + 2 * seconds_of_silence, [store = connection_->store, place = place_, key, from, timeout] {
        return listen_for(store, place, key, from, timeout);
      });
  if (heard.others_noticed) find_lost("another rank noticed it", Broken::closed);
  if (heard.reason.empty()) return heard.text;
  throw LostRank(fmt::format("rank {} of {} does not answer: it ended or hangs ({} noticed it: {})", from, size(),
                             name(), heard.reason),
                 heard.speaks, seconds_to_report);
}

void Ranks::compare(const ordered_json& facts) const {
  if (!connection_) return;
  const auto key = [](int rank) { return fmt::format("facts/{}", rank); };
  const std::string text = json_line(facts);  // bytes that are no text are replaced, on every rank
  tell(key(rank()), text);
  const std::string verdict = from_first("facts", [&]() -> std::string {
    const ordered_json first = ordered_json::parse(text);
    for (int rank = 1; rank < size(); ++rank) {
      const std::string found = difference(ordered_json::parse(get(key(rank), rank)), first);
      if (!found.empty())
        return fmt::format(
            "rank {} of {}: {}; start all ranks with the same version, configuration, --threads and data", rank, size(),
            found);
    }
    return "";
  });
  if (!verdict.empty()) throw AgreedError(Fault::input, verdict);
}

// Before ranks connect, all of them have a device: a rank waits long for one that has none.
void Ranks::agree_on_backend(const std::string& gpu) const {
  const auto key = [](int rank) { return fmt::format("device/{}", rank); };
  tell(key(rank()), fmt::format("{} {}", backend_, gpu));
  const std::string verdict = from_first("devices", [&]() -> std::string {
    std::map<std::string, int> rank_of;
    for (int rank = 0; rank < size(); ++rank) {
      const std::string device = get(key(rank), rank), backend = device.substr(0, device.find(' '));
      if (backend != backend_)
        return fmt::format("rank {} of {} connects through {}, and rank 0 through {}; name one with ranks.backend",
                           rank, size(), backend, backend_);
      if (const auto [other, is_new] = rank_of.emplace(device, rank); backend_ == "nccl" && !is_new)
        return fmt::format(
            "rank {} and rank {} of {} have the same GPU, and NCCL needs one for each; start fewer ranks on this "
            "machine, or share GPUs with ranks.backend=gloo",
            other->second, rank, size());
    }
    return "";
  });
  if (!verdict.empty()) throw AgreedError(Fault::input, verdict);
}

}  // namespace headscope
