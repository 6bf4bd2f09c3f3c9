// The last resort of a rank that misses another one, or cannot reach it: its process ends, whatever it waits for.
#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace headscope {

// Ends this process after so many seconds, where it is still there: what it leaves may hang in a library that waits for
// a rank that is gone. Says the message, unless that is empty, which is another rank's to say.
void end_process_after(double seconds, const std::string& message);

// The same, unless this object is gone before. Also some seconds after a signal that asks to stop.
class Deadline {
 public:
  Deadline(double seconds, const std::string& message);
  ~Deadline() { *is_kept_ = true; }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  std::shared_ptr<std::atomic<bool>> is_kept_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace headscope
