// Where the time of an update goes. Work on a GPU is timed by events in its queue, which do not make it wait.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ops/device.h"

namespace headscope {

class PartTimer {
 public:
  explicit PartTimer(const ComputeDevice& device);
  ~PartTimer();
  PartTimer(const PartTimer&) = delete;
  PartTimer& operator=(const PartTimer&) = delete;

  // From here on.
  void start();
  // What was queued since the last call belongs to this part.
  void done(const char* part);
  // Waits for the device. The sum of each part since the first start.
  [[nodiscard]] std::map<std::string, double> milliseconds();

 private:
  struct Marks;
  std::unique_ptr<Marks> marks_;
};

}  // namespace headscope
