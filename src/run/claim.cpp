#include "run/claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/console.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t most_claim_bytes = 4096;

// Seconds since the machine was booted, with those in which it slept.
double boot_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

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

// When the process started: 0 where it is dead and not yet waited for. Nothing where that is not to be seen.
std::optional<std::int64_t> start_of(std::int64_t process) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", process).c_str());
  const std::size_t name_end = line.rfind(')');  // the name of the program may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  if (state == "Z" || state == "X") return 0;
  constexpr int fields_between = 18;  // proc(5): the state is the third field, the start the 22nd
  for (int i = 0; i < fields_between; ++i) fields >> skipped;
  std::int64_t start = 0;
  return fields >> start ? std::optional(start) : std::nullopt;
}

std::string new_token() {
  std::random_device random;
  return std::to_string((static_cast<std::uint64_t>(random()) << 32 | random()) >> 1);
}

ClaimOwner this_process() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return {host, ::getpid(), utc_now(), this_machine(), start_of(::getpid()).value_or(0), new_token()};
}

std::string text_of(const ClaimOwner& owner) {
  return json_text({{"host", owner.host},
                    {"process", owner.process},
                    {"time", owner.time},
                    {"machine", owner.machine},
                    {"started", owner.started},
                    {"token", owner.token}});
}

ClaimOwner owner_in(const std::string& text) {
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

// A claim as it is now.
struct Seen {
  ClaimOwner owner;
  timespec renewed{};  // by the clock of the file server
  bool operator==(const Seen& other) const {
    return owner.token == other.owner.token && renewed.tv_sec == other.renewed.tv_sec &&
           renewed.tv_nsec == other.renewed.tv_nsec;
  }
};

double seconds_from(const timespec& first, const timespec& second) {
  return static_cast<double>(second.tv_sec - first.tv_sec) + 1e-9 * static_cast<double>(second.tv_nsec - first.tv_nsec);
}

[[noreturn]] void refuse_kind(const fs::path& file) {
  fail_input("{}: is a link, a folder or a device, where a run keeps a file; remove it", file.string());
}

// To open a file asks the server for its times again; stat() alone may answer from memory.
std::optional<Seen> look_at(const fs::path& file) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat facts {};
  if (!opened.open() || ::fstat(opened.get(), &facts) != 0) {
    if (errno == ENOENT || errno == ESTALE || errno == ENOTDIR) return std::nullopt;
    if (errno == ELOOP || errno == ENXIO) refuse_kind(file);
    fail_runtime("cannot read {}: {}", file.string(), std::strerror(errno));
  }
  if (!S_ISREG(facts.st_mode)) refuse_kind(file);
  std::string text(most_claim_bytes, '\0');
  const auto got = opened.read_at(std::as_writable_bytes(std::span(text)), 0);
  if (!got && errno == ESTALE) return std::nullopt;
  text.resize(got.value_or(0));
  return Seen{owner_in(text), facts.st_mtim};
}

// A file of our own beside the claim, with what the claim is to say. It goes away with this object.
class Proposal {
 public:
  explicit Proposal(const fs::path& claim) : owner_(this_process()), begun_(boot_seconds()) {
    file_ = claim.parent_path() / fmt::format(".{}.{}.{}.tmp", claim.filename().string(), owner_.process, owner_.token);
    write_new(file_);
  }
  ~Proposal() { ::unlink(file_.c_str()); }
  Proposal(const Proposal&) = delete;
  Proposal& operator=(const Proposal&) = delete;

  [[nodiscard]] const ClaimOwner& owner() const { return owner_; }
  [[nodiscard]] const fs::path& file() const { return file_; }
  // By boot_seconds(), before the file was written: the claim is not younger.
  [[nodiscard]] double begun() const { return begun_; }
  // What the file server's clock said when the file was written: a moment ago.
  [[nodiscard]] const timespec& written() const { return written_; }

  // False where the name is taken.
  [[nodiscard]] bool link_as(const fs::path& name) {
    if (::link(file_.c_str(), name.c_str()) == 0) return true;
    const int reason = errno;
    struct stat facts {};
    // NFS may do it, lose the answer, and say EEXIST when it is asked again: the count of links tells.
    if (::stat(file_.c_str(), &facts) == 0 && facts.st_nlink == 2) return true;
    if (reason == EEXIST) return false;
    // Some file systems have no links. To create a file that must not exist is the next best.
    if (reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS || reason == EMLINK) return try_new(name);
    fail_runtime("cannot write {}: {}", name.string(), std::strerror(reason));
  }

 private:
  bool try_new(const fs::path& name) {
    const Descriptor made(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!made.open() && errno == EEXIST) return false;
    fill(made, name);
    return true;
  }
  void write_new(const fs::path& name) {
    fill(Descriptor(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)), name);
  }
  void fill(const Descriptor& made, const fs::path& name) {
    struct stat facts {};
    if (made.open() && made.write_at(text_of(owner_), 0) && ::fsync(made.get()) == 0 &&
        ::fstat(made.get(), &facts) == 0) {
      written_ = facts.st_mtim;
      return;
    }
    const int reason = errno;
    if (made.open()) ::unlink(name.c_str());
    fail_runtime("cannot write {}: {}", name.string(), std::strerror(reason));
  }

  ClaimOwner owner_;
  double begun_;
  fs::path file_;
  timespec written_{};
};

// A process of this machine that is no longer there. One that another user started may be hidden from us.
bool is_dead(const ClaimOwner& owner) {
  if (owner.machine.empty() || owner.machine != this_machine() || owner.process <= 0) return false;
  if (::kill(static_cast<pid_t>(owner.process), 0) != 0 && errno == ESRCH) return true;
  const std::optional<std::int64_t> start = start_of(owner.process);
  return start && *start != owner.started;
}

// A time that is as far in the future is of a clock that was wrong: nobody would ever take over what has it.
bool has_lapsed(const Seen& seen, const timespec& now, const ClaimTimes& times) {
  return is_dead(seen.owner) || std::abs(seconds_from(seen.renewed, now)) >= times.lapse;
}

// Whoever makes this file may replace the claim of that token.
fs::path right_to_replace(const fs::path& claim, const std::string& token) {
  return claim.parent_path() / fmt::format(".{}.{}.0.tmp", claim.filename().string(), token);
}

// Two processes may find the same claim lapsed: one of them may replace it. A process may die with that right; then
// the right has lapsed, too, and the right to replace it is the next one to have.
bool take_over(Proposal& mine, const fs::path& claim, const Seen& lapsed, const ClaimTimes& times) {
  std::vector<fs::path> rights = {right_to_replace(claim, lapsed.owner.token)};
  while (!mine.link_as(rights.back())) {
    const std::optional<Seen> other = look_at(rights.back());
    if (!other || !has_lapsed(*other, mine.written(), times)) return false;
    const fs::path next = right_to_replace(claim, other->owner.token);
    if (std::ranges::find(rights, next) != rights.end()) return false;
    rights.push_back(next);
  }
  const std::optional<Seen> now = look_at(claim);
  // The owner did not renew it, nobody was faster, and this process was not stopped meanwhile.
  const bool unchanged = now && *now == lapsed && boot_seconds() - mine.begun() < times.lapse / 2;
  if (unchanged) rename_to(mine.file(), claim);
  if (!unchanged) rights = {rights.back()};
  for (const fs::path& right : rights) ::unlink(right.c_str());
  return unchanged;
}

}  // namespace

// Renews a claim until it is released.
class Claim::Renewal {
 public:
  Renewal(fs::path file, const Proposal& proposal, ClaimTimes times)
      : file_(std::move(file)), owner_(proposal.owner()), times_(times), renewed_(proposal.begun()) {
    try {
      thread_ = std::thread([this] { renew_until_stopped(); });
    } catch (const std::system_error&) {
      release();
      throw;
    }
  }
  ~Renewal() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    thread_.join();
    release();
  }
  Renewal(const Renewal&) = delete;
  Renewal& operator=(const Renewal&) = delete;

  void check() {
    const std::scoped_lock lock(mutex_);
    if (is_old()) renew();
    const std::optional<ClaimOwner> other = owner_of(file_);
    lost_ = lost_ || !other || other->token != owner_.token;
    if (!lost_ && !is_old()) return;
    throw ClaimLost(Fault::runtime, other && other->token != owner_.token
                                        ? fmt::format("{}: process {} on {} took this over", file_.string(),
                                                      other->process, other->host)
                                        : fmt::format("{}: the claim of this process is gone", file_.string()));
  }

 private:
  [[nodiscard]] bool is_old() const { return boot_seconds() - renewed_ > times_.lapse / 2; }

  // The time is set through a file that was opened and read: where the claim was replaced meanwhile, that is a file
  // without a name.
  void renew() {
    const Descriptor opened(::open(file_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!opened.open()) {
      lost_ = lost_ || errno == ENOENT || errno == ENOTDIR;
      return;  // of another failure one may hope that it passes
    }
    std::string text(most_claim_bytes, '\0');
    const auto got = opened.read_at(std::as_writable_bytes(std::span(text)), 0);
    if (!got) return;
    text.resize(*got);
    if (owner_in(text).token != owner_.token)
      lost_ = true;
    else if (::futimens(opened.get(), nullptr) == 0)  // no time: the server takes its own
      renewed_ = boot_seconds();
  }

  void renew_until_stopped() {
    std::unique_lock lock(mutex_);
    while (!stopped_ && !lost_) {
      const double age = boot_seconds() - renewed_;
      const double wait = age < times_.renew ? times_.renew - age : times_.renew / 6;  // again soon after a failure
      wake_.wait_for(lock, std::chrono::duration<double>(wait));
      if (!stopped_ && boot_seconds() - renewed_ >= times_.renew) renew();
    }
  }

  // A claim that was just renewed is taken over by nobody, so the file is ours when it is removed.
  void release() noexcept {
    try {
      if (is_old()) renew();
      const std::optional<ClaimOwner> now = owner_of(file_);
      if (!lost_ && !is_old() && now && now->token == owner_.token) ::unlink(file_.c_str());
    } catch (const std::exception&) {  // it lapses by itself
    }
  }

  fs::path file_;
  ClaimOwner owner_;
  ClaimTimes times_;
  std::mutex mutex_;
  std::condition_variable wake_;
  double renewed_;
  bool stopped_ = false, lost_ = false;
  std::thread thread_;
};

Claim::Claim(std::unique_ptr<Renewal> renewal) : renewal_(std::move(renewal)) {}
Claim::Claim(Claim&&) noexcept = default;
Claim& Claim::operator=(Claim&&) noexcept = default;
Claim::~Claim() = default;

std::optional<Claim> Claim::take(const fs::path& file, ClaimTimes times, bool by_age) {
  const std::optional<Seen> seen = look_at(file);
  if (seen && !by_age && !is_dead(seen->owner)) return std::nullopt;
  Proposal mine(file);
  if (seen && !has_lapsed(*seen, mine.written(), times)) return std::nullopt;
  const bool won = seen ? take_over(mine, file, *seen, times) : mine.link_as(file);
  if (!won) return std::nullopt;
  return Claim(std::make_unique<Renewal>(file, mine, times));
}

Claim Claim::wait_for(const fs::path& file, ClaimTimes times) {
  constexpr int age_every = 100;  // an age costs a file
  for (int attempt = 0;; ++attempt) {
    if (std::optional<Claim> claim = take(file, times, attempt % age_every == 0)) return std::move(*claim);
    if (interrupt_requested())
      throw Error(Fault::interrupted, fmt::format("interrupted; it waited for {}", file.string()));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void Claim::check() {
  renewal_->check();
}

std::string owner_text(const ClaimOwner& owner) {
  if (owner.host.empty() || owner.process <= 0) return "another process";
  return fmt::format("process {} on {}", owner.process, on_one_line(excerpt(owner.host, 64)));
}

std::optional<ClaimOwner> owner_of(const fs::path& file) {
  const std::optional<Seen> seen = look_at(file);
  return seen ? std::optional(seen->owner) : std::nullopt;
}

bool is_claimed(const fs::path& file, ClaimTimes times) {
  const std::optional<Seen> seen = look_at(file);
  return seen && !has_lapsed(*seen, Proposal(file).written(), times);
}

namespace {

// Those that do not begin with '.'; none where the folder is not there. Throws on other errors: a claim that is not
// seen would be one that nobody has.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    if (entry->symlink_status(gone).type() == fs::file_type::directory &&
        !entry->path().filename().string().starts_with('.'))
      found.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    fail_runtime("cannot read {}: {}", folder.string(), error.message());
  return found;
}

}  // namespace

std::vector<fs::path> claims_in(const fs::path& run) {
  std::vector<fs::path> places = {run};
  for (const fs::path& folder : folders_in(run)) {
    places.push_back(folder);
    if (!folder.filename().string().starts_with("seed_")) continue;
    for (const fs::path& condition : folders_in(folder)) places.push_back(condition);
  }
  std::vector<fs::path> claims;
  for (const fs::path& place : places) {
    const fs::path claim = place / claim_name;
    std::error_code error;
    if (fs::exists(claim, error)) claims.push_back(claim);
    if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
      fail_runtime("cannot read {}: {}", claim.string(), error.message());
  }
  return claims;
}

}  // namespace headscope
