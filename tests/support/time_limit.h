// Ends the test program when something takes too long: a read from a named pipe would wait for ever.
#pragma once

#include <unistd.h>

namespace headscope::test {

class TimeLimit {
 public:
  explicit TimeLimit(unsigned seconds) { ::alarm(seconds); }
  ~TimeLimit() { ::alarm(0); }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace headscope::test
