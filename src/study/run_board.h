// Where a process that trains runs of a study says how they are doing, and hears which of them failed: on its own
// console, or, as a worker, to the process that started it (study/workers.h). A run is named by its folder: "QK",
// "seed_42/QK".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/console.h"
#include "core/error.h"
#include "run/claim.h"

namespace headscope {

using FailedRuns = std::map<std::string, std::string>;  // a run to its error

class RunBoard {
 public:
  RunBoard() = default;
  virtual ~RunBoard() = default;
  RunBoard(const RunBoard&) = delete;
  RunBoard& operator=(const RunBoard&) = delete;

  virtual void opened() = 0;  // the folder of the study is open
  // Nothing is left for this process but to wait for another one, which trains this.
  virtual void waits_for(const std::string& label, const ClaimOwner& owner) = 0;
  // Those that failed since the command began: they are not tried again.
  virtual FailedRuns failed() = 0;
  virtual void take(const std::string& run, const std::string& label) = 0;  // this process has claimed it
  virtual void begin(std::int64_t steps, std::int64_t done) = 0;            // its model is there
  virtual void step(std::int64_t done, const std::string& note) = 0;
  virtual void saving() = 0;  // a stop was asked for
  virtual void end() = 0;     // of the run that was taken, however it ended
  // Of a run that was taken, or could not be. Whether this process goes on with the others; where it does not, another
  // one does in its place.
  virtual bool fail(const std::string& run, const std::string& label, const Error& error) = 0;
  virtual void concluded() = 0;  // this process wrote the verdict
};

class ConsoleBoard : public RunBoard {
 public:
  explicit ConsoleBoard(Console& console) : console_(console) {}

  void opened() override {}
  void waits_for(const std::string& label, const ClaimOwner& owner) override;
  FailedRuns failed() override { return failed_; }
  void take(const std::string&, const std::string& label) override { label_ = label; }
  void begin(std::int64_t steps, std::int64_t done) override;
  void step(std::int64_t done, const std::string& note) override;
  void saving() override { console_.info("saving"); }
  void end() override { progress_.reset(); }
  // Throws what is bad input: that is for the user to put right.
  bool fail(const std::string& run, const std::string& label, const Error& error) override;
  void concluded() override {}

 private:
  Console& console_;
  std::string label_;
  std::optional<Progress> progress_;
  FailedRuns failed_;
};

// "waits for A QK, which process 17 on node3 trains; it is taken over …"
std::string waiting_text(const std::string& label, const ClaimOwner& owner);

// "A QK failed, the other runs go on: …"
std::string failed_run_text(const std::string& label, const Error& error);

// "2 of 3 runs failed: A QK: …"
std::string failure_text(const FailedRuns& failed, std::size_t runs);

// No run is left but those that failed.
struct RunsFailed : Error {
  RunsFailed(const FailedRuns& failed, std::size_t runs, const std::string& hint)
      : Error(Fault::runtime, fmt::format("{}; {}", failure_text(failed, runs), hint)) {}
};

}  // namespace headscope
