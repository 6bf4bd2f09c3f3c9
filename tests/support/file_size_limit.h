// A disk that is full after so many bytes: while it lives, no file of this process grows beyond.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace headscope::test {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : action_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, action_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  using Action = void (*)(int);
  Action action_;
  rlimit before_{};
};

}  // namespace headscope::test
