#include "run/claim_owner.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "core/config.h"
#include "core/console.h"
#include "core/json_text.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string first_line(const char* file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string this_machine() {
  std::error_code error;
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  const std::string processes = fs::read_symlink("/proc/self/ns/pid", error).string();
  return boot.empty() || processes.empty() ? "" : boot + " " + processes;
}

// When the process started: 0 where it is dead and not yet waited for. Nothing where that is not to be seen. The first
// thread of a process that is killed may be dead before the others.
std::optional<std::int64_t> start_of(std::int64_t process) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", process).c_str());
  const std::size_t name_end = line.rfind(')');  // the name of the program may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  // proc(5): the state is the third field, the number of threads the 20th, the start the 22nd.
  std::string state, skipped;
  std::int64_t threads = 0, start = 0;
  fields >> state;
  for (int i = 4; i < 20; ++i) fields >> skipped;
  if (!(fields >> threads >> skipped >> start)) return std::nullopt;
  const bool is_dead = (state == "Z" || state == "X") && threads <= 1;
  return is_dead ? 0 : start;
}

std::string host_name() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

std::string new_token() {
  std::random_device random;
  return std::to_string((static_cast<std::uint64_t>(random()) << 32 | random()) >> 1);
}

}  // namespace

ClaimOwner this_process() {
  return {host_name(), ::getpid(), utc_now(), this_machine(), start_of(::getpid()).value_or(0), new_token()};
}

std::string claim_text(const ClaimOwner& owner) {
  return json_text({{"host", owner.host},
                    {"process", owner.process},
                    {"time", owner.time},
                    {"machine", owner.machine},
                    {"started", owner.started},
                    {"token", owner.token}});
}

ClaimOwner claim_owner_in(const std::string& text) {
  const ordered_json claim = parse_json(text);
  ClaimOwner owner{text_at(claim, "host"),    0, text_at(claim, "time"),
                   text_at(claim, "machine"), 0, text_at(claim, "token")};
  const auto number = [&](const char* key) {
    return claim.is_object() && claim.contains(key) && claim[key].is_number_integer() ? claim[key].get<std::int64_t>()
                                                                                      : 0;
  };
  owner.process = number("process");
  owner.started = number("started");
  // The token becomes a part of a file's name.
  if (owner.token.empty() || owner.token.size() > 20 ||
      !std::ranges::all_of(owner.token, [](char c) { return c >= '0' && c <= '9'; }))
    owner.token = "0";
  return owner;
}

bool is_dead(const ClaimOwner& owner) {
  const bool is_here = !owner.machine.empty() && owner.machine == this_machine() && is_on_this_host(owner);
  if (!is_here || owner.process <= 0) return false;
  if (::kill(static_cast<pid_t>(owner.process), 0) != 0 && errno == ESRCH) return true;
  const std::optional<std::int64_t> start = start_of(owner.process);
  return owner.started != 0 && start && *start != owner.started;
}

bool is_on_this_host(const ClaimOwner& owner) {
  return owner.host == host_name();
}

std::string owner_text(const ClaimOwner& owner) {
  if (owner.host.empty() || owner.process <= 0) return "another process";
  return fmt::format("process {} on {}", owner.process, on_one_line(excerpt(owner.host, 64)));
}

}  // namespace headscope
