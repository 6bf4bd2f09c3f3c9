// Reference values written by tests/oracle/make_stats_oracles.py.
#pragma once

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace headscope::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

// Throws, and so fails the test, if the file is not there.
inline nlohmann::json stats_oracle(const std::string& name) {
  const auto path = std::filesystem::path(HEADSCOPE_ORACLES) / ("stats_" + name + ".json");
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("no reference values in " + path.string() +
                             ": run tests/oracle/make_stats_oracles.py " HEADSCOPE_ORACLES);
  }
  return nlohmann::json::parse(file);
}

}  // namespace headscope::test
