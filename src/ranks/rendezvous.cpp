#include "ranks/rendezvous.h"

#include <netdb.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/console.h"
#include "core/interrupt.h"
#include "ranks/store_text.h"

namespace headscope {
namespace {

// What the store has under these names.
constexpr const char* run_key = "headscope/run";  // whose store it is; not of torchrun's, which is for one run
constexpr const char* stranger_key = "headscope/stranger";  // a rank that was refused there
constexpr const char* size_key = "size";                    // how many ranks rank 0 expects
constexpr const char* arrived_key = "arrived";              // how many processes have, also those that make no sense
constexpr const char* came_key = "came";                    // how many ranks have come
constexpr const char* all_key = "all";                      // all have
constexpr const char* ending_key = "ending";         // why the start was ended: the exit code, who says it and the text
constexpr const char* knowing_key = "knows_ending";  // how many processes have read that

std::string seat(int rank) {
  return fmt::format("seat/{}", rank);
}

// A store refuses long names.
std::string short_name(const std::string& run) {
  return run.size() < 200 ? run : fmt::format("{}…{:x}", run.substr(0, 100), std::hash<std::string>()(run));
}

std::string address(const RankPlace& place) {
  return fmt::format("{}:{}", place.host, place.port);
}

// Of ranks that cannot agree on who speaks. `is_first_there`: no earlier rank of this machine is.
[[noreturn]] void fail_alone(const RankPlace& place, Fault fault, const std::string& text, bool is_first_there) {
  throw Error(fault, is_first_there ? fmt::format("{}: {}", place.name(), text) : "");
}

// What every rank of a machine meets.
[[noreturn]] void fail_on_machine(const RankPlace& place, Fault fault, const std::string& text) {
  fail_alone(place, fault, text, place.speaks_for_machine());
}

// A connection to every other rank, of rank 0 four (its store has three clients in each), and the files of the run.
void make_room_for_connections(const RankPlace& place) {
  std::error_code error;
  const auto opened = std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), {});
  const auto needed = static_cast<rlim_t>(opened + 32 + 5 * place.size);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed)
    fail_on_machine(place, Fault::runtime,
                    fmt::format("may open {} files at once, and {} ranks need {}; raise the limit (ulimit -n)",
                                limit.rlim_max, place.size, needed));
  limit.rlim_cur = needed;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class Rendezvous {
 public:
  Rendezvous(const RankPlace& place, double timeout, const std::function<void(const std::string&)>& say)
      : place_(place), timeout_(timeout), say_(say) {}

  C10dStore all_here() {
    make_room_for_connections(place_);
    find_host();
    const C10dStore whole = reach_store();
    const C10dStore store = c10::make_intrusive<c10d::PrefixStore>("headscope/" + short_name(place_.run), whole);
    try {
      if (!place_.launcher_has_store) check_whose(whole, store);
      take_seat(store);
      wait_for_all(whole, store);
      return store;
    } catch (const c10::Error& error) {
      // Rank 0 had the store. It may be gone because it was asked to stop, as this one was.
      stop_if_asked();
      if (place_.serves_store()) fail_runtime("{}: its store failed: {}", place_.name(), said(error));
      if (place_.rank != 1 || place_.launched_here) throw Error(Fault::runtime, "");  // --ranks knows how it ended
      fail_runtime("rank 0 of {} ended before all ranks had come ({} noticed it: {})", place_.size, place_.name(),
                   said(error));
    }
  }

 private:
  [[nodiscard]] bool is_late() const { return seconds_since(start_) > timeout_; }

  void stop_if_asked() const {
    if (interrupt_requested()) throw Error(Fault::interrupted, place_.first() ? interruption() : "");
  }

  // --ranks knows whether the user asked for that, or another rank was killed, and says it.
  [[nodiscard]] const char* interruption() const {
    return place_.launched_here ? "" : "interrupted before all ranks had come";
  }

  // A name that is not known will not be known later. A server of names that does not answer may.
  void find_host() const {
    while (true) {
      const std::string host = place_.host;
      std::future<int> answer = left_alone([host] {
        addrinfo* found = nullptr;
        const int failure = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
        if (failure == 0) ::freeaddrinfo(found);
        return failure;
      });
      while (answer.wait_for(Milliseconds(20)) != std::future_status::ready) {
        stop_if_asked();
        if (is_late()) fail_on_machine(place_, Fault::input, host_failure("no answer"));
      }
      const int failure = answer.get();
      if (failure == 0) return;
      if (failure != EAI_AGAIN || is_late())
        fail_on_machine(place_, Fault::input, host_failure(::gai_strerror(failure)));
      std::this_thread::sleep_for(Milliseconds(100));
    }
  }

  [[nodiscard]] std::string host_failure(const std::string& reason) const {
    return fmt::format("MASTER_ADDR is '{}': {}; set it to the host of rank 0", excerpt(place_.host), reason);
  }

  C10dStore reach_store() const {
    c10d::TCPStoreOptions options;
    options.port = place_.port;
    options.isServer = place_.serves_store();
    options.waitWorkers = false;
    options.timeout = Milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(timeout_ * 1000)));
    if (options.isServer && place_.listening >= 0) options.masterListenFd = place_.listening;
    std::future<C10dStore> reached = left_alone(
        [host = place_.host, options]() -> C10dStore { return c10::make_intrusive<c10d::TCPStore>(host, options); });
    while (reached.wait_for(Milliseconds(5)) != std::future_status::ready) {
      stop_if_asked();
      if (is_late()) fail_to_reach("no answer");
    }
    try {
      return reached.get();
    } catch (const std::system_error&) {
      throw;
    } catch (const std::exception& error) {
      fail_to_reach(said(error));
    }
  }

  // Rank 1 speaks where rank 0 is the one that is missing.
  [[noreturn]] void fail_to_reach(const std::string& reason) const {
    const auto fail = [&](const std::string& text) {
      fail_alone(place_, Fault::runtime, text, place_.speaks_for_machine() || place_.rank == 1);
    };
    if (place_.serves_store() && reason.find("EADDRINUSE") != std::string::npos)
      fail(fmt::format("port {} of this machine is in use; give each run a MASTER_PORT of its own", place_.port));
    if (place_.serves_store())
      fail(fmt::format("cannot be reached at {}: {}; MASTER_ADDR must be the host of rank 0", address(place_), reason));
    fail(
        fmt::format("cannot reach rank 0 at {} within {:g} s: {}; start all {} ranks, or see {}, MASTER_ADDR and "
                    "MASTER_PORT",
                    address(place_), timeout_, reason, place_.size, place_.said_by));
    HEADSCOPE_CHECK(false, "{}", reason);
  }

  // Another run may have the port. Its rank 0 knows nothing of this one.
  void check_whose(const C10dStore& whole, const C10dStore& store) const {
    const std::string size = std::to_string(place_.size);
    if (place_.serves_store()) {
      store->add(arrived_key, 1);
      store->set(size_key, bytes_of(size));
      whole->set(run_key, bytes_of(place_.run));
      return;
    }
    while (!whole->check({run_key})) {
      stop_if_asked();
      if (is_late()) fail_to_reach("it has another store");
      std::this_thread::sleep_for(between_polls(place_.size));
    }
    if (text_of(whole->get(run_key)) != place_.run) {
      whole->set(stranger_key, bytes_of(place_.name()));
      throw Error(Fault::input, place_.speaks_for_machine()
                                    ? fmt::format("{}: another run of headscope is at {}, or the same one with "
                                                  "another --out; give all ranks one --out, and each run a "
                                                  "MASTER_PORT of its own",
                                                  place_.name(), address(place_))
                                    : "");
    }
    store->add(arrived_key, 1);
    if (const std::string expected = text_of(store->get(size_key)); expected != size)
      end_rendezvous(store, place_,
                     Error(Fault::input, fmt::format("{}: {} is {}, and {} on rank 0", place_.name(), place_.said_by,
                                                     size, expected)));
  }

  void take_seat(const C10dStore& store) const {
    if (store->add(seat(place_.rank), 1) > 1)
      end_rendezvous(
          store, place_,
          Error(Fault::input, fmt::format("two processes at {} are {}; number them from 0 to {}, and give each "
                                          "run a MASTER_PORT of its own",
                                          address(place_), place_.name(), place_.size - 1)));
    if (store->add(came_key, 1) == place_.size) store->set(all_key, bytes_of("yes"));
  }

  void wait_for_all(const C10dStore& whole, const C10dStore& store) const {
    constexpr double seconds_of_patience = 3;
    for (bool has_said = !place_.first(), has_warned = has_said; !store->check({all_key});) {
      if (const std::string stranger = has_warned ? "" : text_at(whole, stranger_key); !stranger.empty()) {
        say_(fmt::format("{} came to {} with another --out, or from another run: it was refused", stranger,
                         address(place_)));
        has_warned = true;
      }
      if (!has_said && seconds_since(start_) > seconds_of_patience) {
        say_(fmt::format("waits for {} at {}, {:g} s at most", missing_ranks(store), address(place_), timeout_));
        has_said = true;
      }
      if (!text_at(store, ending_key).empty()) end_rendezvous(store, place_, Error(Fault::runtime, ""));
      if (interrupt_requested()) end_rendezvous(store, place_, Error(Fault::interrupted, interruption()));
      if (is_late()) end_rendezvous(store, place_, Error(Fault::runtime, missing_text(store)));
      std::this_thread::sleep_for(between_polls(place_.size));
    }
  }

  // "rank 1, rank 3 of 4"
  [[nodiscard]] std::string missing_ranks(const C10dStore& store) const {
    std::vector<int> missing;
    for (int rank = 0; rank < place_.size; ++rank)
      if (!store->check({seat(rank)})) missing.push_back(rank);
    constexpr std::size_t most = 8;
    const std::string more = missing.size() > most ? fmt::format(" and {} more", missing.size() - most) : "";
    missing.resize(std::min(missing.size(), most));
    return fmt::format("rank {}{} of {}", fmt::join(missing, ", rank "), more, place_.size);
  }

  [[nodiscard]] std::string missing_text(const C10dStore& store) const {
    return fmt::format("{} did not come to {} within {:g} s; start all of them, look whether they ended, or see {}",
                       missing_ranks(store), address(place_), timeout_, place_.said_by);
  }

  const RankPlace& place_;
  double timeout_;
  const std::function<void(const std::string&)>& say_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace

C10dStore rendezvous(const RankPlace& place, double timeout, const std::function<void(const std::string&)>& say) {
  try {
    return Rendezvous(place, timeout, say).all_here();
  } catch (const std::system_error& error) {
    fail_on_machine(place, Fault::runtime,
                    fmt::format("cannot start a thread: {}; raise the limit of processes (ulimit -u)", error.what()));
  }
}

void end_rendezvous(const C10dStore& store, const RankPlace& place, const Error& error) {
  const std::string own = fmt::format("{} {} {} {}", error.exit_code(), place.rank, ::getpid(), error.what());
  std::string agreed;
  try {
    agreed = text_of(store->compareSet(ending_key, {}, bytes_of(own)));
    store->add(knowing_key, 1);
  } catch (const c10::Error&) {  // rank 0 had it
    throw Error(error.fault(), place.speaks_without_store() ? error.what() : "");
  }
  // Rank 0 has the store, which the others read: those that are here and, where the start makes no sense, those that
  // come at about the same time.
  const auto fault = fault_of(std::stoi(agreed));
  const double seconds_to_read = fault == Fault::input ? 5 : 2;
  const auto all = [&] {
    return std::max(store->add(arrived_key, 0), std::int64_t{fault == Fault::input ? place.size : 0});
  };
  const auto start = Clock::now();
  if (place.serves_store())
    while (store->add(knowing_key, 0) < all() && seconds_since(start) < seconds_to_read)
      std::this_thread::sleep_for(Milliseconds(10));
  throw Error(fault, agreed == own ? error.what() : "");
}

}  // namespace headscope
