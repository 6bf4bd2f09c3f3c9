// Which process does a piece of work, as a file in a folder that several machines may share. The file is claim.json:
// host, process, time. A claim is made by link(2), which one of several processes wins on every file system, NFS
// included. Its owner renews it, which sets the file's time. A claim that is not renewed lapses, and another process
// takes it over. Ages are differences of two times that the file server gave, so the clocks of the machines do not
// matter. A process of the same machine that is dead has no claim, however new the file is.
//
//   if (std::optional<Claim> claim = Claim::take(folder / claim_name)) {
//     claim->check();                                  // before each group of files: throws when it was taken over
//     …
//   }                                                  // released
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "run/claim_owner.h"

namespace headscope {

// In seconds. NFS may show the time of a file a minute late, so a lapse is more than a renewal and that minute.
struct ClaimTimes {
  double renew = 30;
  double lapse = 120;
};

// What was claimed belongs to another process now: this one was silent for too long.
class ClaimLost : public Error {
 public:
  using Error::Error;
};

class Claim {
 public:
  // Nothing where another process has it. `by_age`: false asks only whether the owner is a dead process of this
  // machine, and writes nothing where it is not. Throws Error(Fault::runtime) when the folder cannot be written.
  static std::optional<Claim> take(const std::filesystem::path& file, ClaimTimes times = {}, bool by_age = true);

  Claim(Claim&&) noexcept;
  Claim& operator=(Claim&&) noexcept;
  ~Claim();  // releases it

  // Throws ClaimLost where the file is gone, or another process's: this one may have been stopped meanwhile.
  void check() const;

 private:
  class Renewal;
  explicit Claim(std::unique_ptr<Renewal> renewal);
  std::unique_ptr<Renewal> renewal_;
};

// Nothing where there is no claim. A damaged file has an owner without names.
std::optional<ClaimOwner> owner_of(const std::filesystem::path& file);

// Somebody has the claim: it is there and has not lapsed.
bool is_claimed(const std::filesystem::path& file, ClaimTimes times = {});

// Removes a claim that nobody has any more. One that another process has, or takes meanwhile, stays.
void remove_lapsed(const std::filesystem::path& file);

// The claims in a run folder: its own, and those of its trainings (TAG/claim.json, seed_N/TAG/claim.json).
std::vector<std::filesystem::path> claims_in(const std::filesystem::path& run);

}  // namespace headscope
