#include "study/run_board.h"

namespace headscope {

void ConsoleBoard::waits_for(const std::string& label, const ClaimOwner& owner) {
  console_.info(waiting_text(label, owner));
}

void ConsoleBoard::begin(std::int64_t steps, std::int64_t done) {
  progress_.emplace(console_, label_, "steps", static_cast<std::size_t>(steps), static_cast<std::size_t>(done));
}

void ConsoleBoard::step(std::int64_t done, const std::string& note) {
  if (progress_) progress_->reach(static_cast<std::size_t>(done), note);
}

bool ConsoleBoard::fail(const std::string& run, const std::string& label, const Error& error) {
  if (error.fault() == Fault::input) throw error;
  failed_[run] = error.what();
  console_.warn(failed_run_text(label, error));
  return true;
}

std::string waiting_text(const std::string& label, const ClaimOwner& owner) {
  return fmt::format(
      "waits for {}, which {} trains; it is taken over when nothing was heard of that process for {:.0f} s", label,
      owner_text(owner), ClaimTimes().lapse);
}

std::string failed_run_text(const std::string& label, const Error& error) {
  std::string_view what = error.what();
  if (what.starts_with(label + ": ")) what.remove_prefix(label.size() + 2);
  return fmt::format("{} failed, the other runs go on: {}", label, what);
}

std::string failure_text(const FailedRuns& failed, std::size_t runs) {
  const std::string& first = failed.begin()->second;
  return runs == 1 ? first : fmt::format("{} of {} runs failed: {}", failed.size(), runs, first);
}

}  // namespace headscope
