// Ranks that are threads of the test, connected over loopback through Gloo.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "ranks/ranks.h"

namespace headscope::test {

// A socket that listens at a free port, for the store of rank 0, which closes it.
inline RankPlace place_of_rendezvous() {
  RankPlace place;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  place.listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (place.listening < 0 || ::bind(place.listening, general, length) != 0 ||
      ::listen(place.listening, SOMAXCONN) != 0 || ::getsockname(place.listening, general, &length) != 0)
    fail_runtime("no socket on 127.0.0.1");
  place.port = ntohs(address.sin_port);
  place.said_by = "the test";  // as a launcher's variable would: one rank connects, too
  return place;
}

// Runs body(ranks) as so many ranks at once. Returns what each threw, null where it threw nothing.
inline std::vector<std::exception_ptr> errors_of_ranks(
    int count, const RanksOptions& options, const std::function<void(const Ranks&)>& body,
    const std::function<RankDevice(int rank)>& device = [](int) { return RankDevice(); }) {
  RankPlace place = place_of_rendezvous();
  place.size = count;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (place.rank = 0; place.rank < count; ++place.rank) {
    threads.emplace_back([&errors, &options, &body, &device, place] {
      try {
        const Ranks ranks(place, options, [&] { return device(place.rank); });
        body(ranks);
        ranks.last_barrier();
      } catch (...) {
        errors[static_cast<std::size_t>(place.rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

inline void on_ranks(int count, const RanksOptions& options, const std::function<void(const Ranks&)>& body) {
  for (const std::exception_ptr& error : errors_of_ranks(count, options, body))
    if (error) std::rethrow_exception(error);
}

}  // namespace headscope::test
