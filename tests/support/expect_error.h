// Expects an Error: its kind, one line, and what the line says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace headscope::test {

template <class Action>
void expect_error(Fault fault, const std::string& part, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault) << error.what();
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
    return;
  }
  ADD_FAILURE() << "no error; expected one that says: " << part;
}

}  // namespace headscope::test
