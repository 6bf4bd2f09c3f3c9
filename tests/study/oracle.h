// Reference values written by tests/oracle/make_study_oracles.py.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace headscope::test {

// Throws, and so fails the test, if the file is not there.
inline nlohmann::json study_oracle(const std::string& name) {
  const auto path = std::filesystem::path(HEADSCOPE_ORACLES) / ("study_" + name + ".json");
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("no reference values in " + path.string() +
                             ": run tests/oracle/make_study_oracles.py " HEADSCOPE_ORACLES);
  }
  return nlohmann::json::parse(file);
}

}  // namespace headscope::test
