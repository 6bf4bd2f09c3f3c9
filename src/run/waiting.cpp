#include "run/waiting.h"

#include <thread>

#include "core/error.h"
#include "core/interrupt.h"
#include "run/claim.h"
#include "run/names.h"

namespace headscope {
namespace {

constexpr auto moment = std::chrono::milliseconds(50);
constexpr int moments_before_a_word = 100;

}  // namespace

void Waiting::again() {
  if (++moments_ == moments_before_a_word && say_) say_for_whom();
  if (interrupt_requested())
    throw Error(
        Fault::interrupted,
        fmt::format("interrupted while it waited for another process that opens or ends {}; {}", run_.string(), hint_));
  std::this_thread::sleep_for(moment);
}

void Waiting::say_for_whom() const {
  if (const auto owner = owner_of(run_ / claim_name))
    say_(fmt::format("waits for {}, which opens or ends {}{}", owner_text(*owner), run_.string(), until_));
  else
    say_(fmt::format("waits for another process, which has {} locked", run_.string()));
}

}  // namespace headscope
