// What ranks tell each other through the store, as text, and calls of a store that may hang.
#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "core/error.h"
#include "ranks/backend.h"

namespace headscope {

using Milliseconds = std::chrono::milliseconds;

// How long each of so many processes waits before it asks the one store again, which answers some ten thousand times a
// second.
inline Milliseconds between_polls(int processes) {
  return Milliseconds(std::max(5, processes / 5));
}

inline std::vector<std::uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

inline std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// What the key holds now; empty where it is not set.
inline std::string text_at(const C10dStore& store, const std::string& key) {
  return store->check({key}) ? text_of(store->get(key)) : "";
}

// Sets the key where nobody has. Whether this call did.
inline bool set_first(const C10dStore& store, const std::string& key, const std::string& text) {
  return text_of(store->compareSet(key, {}, bytes_of(text))) == text;
}

// What torch says, without addresses and without the place in its sources.
inline std::string said(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  std::string text = on_one_line(of_torch != nullptr ? of_torch->what_without_backtrace() : error.what());
  if (const std::size_t place = text.find("] "); text.starts_with("[/") && place != std::string::npos)
    text.erase(0, place + 2);
  return excerpt(text);
}

inline std::string said(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return said(error);
  }
}

// Runs the function in a thread of its own, which is left alone where nobody waits for it any more: the store's server
// may hang, and its client waits for it without a limit. It ends with the process. Where
// no thread can be started, the future has the std::system_error.
template <class Function>
auto left_alone(Function function) {
  using Result = decltype(function());
  auto result = std::make_shared<std::promise<Result>>();
  std::future<Result> future = result->get_future();
  try {
    std::thread([result, function = std::move(function)]() mutable {
      try {
        result->set_value(function());
      } catch (...) {
        result->set_exception(std::current_exception());
      }
    }).detach();
  } catch (const std::system_error&) {
    result->set_exception(std::current_exception());
  }
  return future;
}

// Returns function(); `otherwise` where it throws or takes longer.
template <class Function, class Result>
Result within(double seconds, Result otherwise, Function function) {
  auto future = left_alone(std::move(function));
  if (future.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) return otherwise;
  try {
    return future.get();
  } catch (const std::exception&) {
    return otherwise;
  }
}

// Asks the store the same thing again and again. A question whose answer is late is not asked a second time.
template <class Answer>
class Question {
 public:
  // Nothing where no answer came within the seconds, of which a late one has none more, or where the function threw.
  template <class Function>
  std::optional<Answer> ask(double seconds, Function function) {
    const double patience = answer_.valid() ? 0 : seconds;
    if (!answer_.valid()) answer_ = left_alone(std::move(function));
    if (answer_.wait_for(std::chrono::duration<double>(patience)) != std::future_status::ready) return std::nullopt;
    try {
      return answer_.get();
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }

 private:
  std::future<Answer> answer_;  // of a question that was asked and not answered yet
};

}  // namespace headscope
