#include "run/claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "core/atomic_file.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_claim_bytes = 4096;

// A thread that waits does not see that the machine slept.
constexpr double seconds_between_looks_at_the_clock = 1;

// Seconds since the machine was booted, with those in which it slept.
double boot_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
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
  if (!got) fail_runtime("cannot read {}: {}", file.string(), std::strerror(errno));
  text.resize(*got);
  return Seen{claim_owner_in(text), facts.st_mtim};
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
    if (made.open() && made.write_at(claim_text(owner_), 0) && ::fsync(made.get()) == 0 &&
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

// A time that is as far in the future counts as lapsed, too: otherwise nobody could ever take the claim over.
bool has_lapsed(const Seen& seen, const timespec& now, const ClaimTimes& times) {
  return is_dead(seen.owner) || std::abs(seconds_from(seen.renewed, now)) >= times.lapse;
}

// A machine that slept wakes with claims that look lapsed. Their owners renew them at once.
bool is_renewed_soon(const fs::path& file, const Seen& seen, const ClaimTimes& times) {
  const double seconds = std::min(3 * seconds_between_looks_at_the_clock, times.lapse / 8);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::optional<Seen> now = look_at(file);
  return !now || !(*now == seen);
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
    std::optional<ClaimOwner> other;
    try {
      other = owner_of(file_);
      lost_ = lost_ || !other || other->token != owner_.token;
    } catch (const Error&) {  // a disk that cannot be read now: as long as the claim is new, nobody has taken it over
    }
    if (!lost_ && !is_old()) return;
    throw ClaimLost(Fault::runtime,
                    other && other->token != owner_.token
                        ? fmt::format("{}: {} took this over", file_.string(), owner_text(*other))
                        : fmt::format("{}: the claim of this process is gone, or was not renewed", file_.string()));
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
    if (claim_owner_in(text).token != owner_.token)
      lost_ = true;
    else if (::futimens(opened.get(), nullptr) == 0)  // no time: the server takes its own
      renewed_ = boot_seconds();
  }

  void renew_until_stopped() {
    std::unique_lock lock(mutex_);
    while (!stopped_ && !lost_) {
      const double age = boot_seconds() - renewed_;
      const double wait = age < times_.renew ? times_.renew - age : times_.renew / 6;  // again soon after a failure
      wake_.wait_for(lock, std::chrono::duration<double>(std::min(wait, seconds_between_looks_at_the_clock)));
      if (stopped_ || boot_seconds() - renewed_ < times_.renew) continue;
      try {
        renew();
      } catch (const std::exception&) {  // no memory: one may hope that it passes
      }
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
  if (seen && !is_dead(seen->owner) && is_on_this_host(seen->owner) && is_renewed_soon(file, *seen, times))
    return std::nullopt;
  const bool won = seen ? take_over(mine, file, *seen, times) : mine.link_as(file);
  if (!won) return std::nullopt;
  return Claim(std::make_unique<Renewal>(file, mine, times));
}

void Claim::check() const {
  renewal_->check();
}

std::optional<ClaimOwner> owner_of(const fs::path& file) {
  const std::optional<Seen> seen = look_at(file);
  return seen ? std::optional(seen->owner) : std::nullopt;
}

bool is_claimed(const fs::path& file, ClaimTimes times) {
  const std::optional<Seen> seen = look_at(file);
  return seen && !has_lapsed(*seen, Proposal(file).written(), times);
}

void remove_lapsed(const fs::path& file) {
  try {
    static_cast<void>(Claim::take(file));  // and releases it
  } catch (const Error&) {                 // no room for a file: the claim has lapsed all the same
  }
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
