// The process that has a claim (claim.h), as the file says it.
#pragma once

#include <cstdint>
#include <string>

namespace headscope {

struct ClaimOwner {
  std::string host;
  std::int64_t process = 0;
  std::string time;          // UTC, by the owner's clock: when the claim was made
  std::string machine;       // the boot of its kernel and its name space of processes; empty: not known
  std::int64_t started = 0;  // when the process started, in ticks of its kernel: process numbers are used again
  std::string token;         // digits; of this claim alone
};

// With a new token.
ClaimOwner this_process();

// A process of this machine that is no longer there. One that another user started may be hidden from us.
bool is_dead(const ClaimOwner& owner);
bool is_on_this_host(const ClaimOwner& owner);

// The content of the file, and what it says. A damaged file has an owner without names.
std::string claim_text(const ClaimOwner& owner);
ClaimOwner claim_owner_in(const std::string& text);

// "process 17 on node3"; "another process" where the claim does not say which.
std::string owner_text(const ClaimOwner& owner);

}  // namespace headscope
