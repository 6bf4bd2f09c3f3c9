// Names of Gloo that c10d's ProcessGroupGloo.hpp mentions. The torch wheel holds Gloo and has no headers of it; CMake
// makes files under Gloo's names that include this one. We construct and call nothing of it: c10d does, in the wheel.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo {

class Algorithm;

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace transport {
class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace transport

namespace rendezvous {
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& data) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

}  // namespace gloo
