#include "core/json_text.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(StrictJson, GivesTheValuesOfTheText) {
  const auto value = parse_strict_json(R"({"b": [1, -2, 0.5, null, true], "a": {"b": "ü\n"}})", "x.json");
  EXPECT_EQ(value["b"][1], -2);
  EXPECT_EQ(value["a"]["b"], "ü\n");  // the same key in another object
  EXPECT_EQ(parse_strict_json("[{\"a\":1},{\"a\":2}]", "x.json")[1]["a"], 2);
}

TEST(StrictJson, RefusesInOneLineWhatOthersWouldGuess) {
  const auto refused = [](const std::string& text, const std::string& message) {
    expect_error(Fault::input, "x.json: " + message, [&] { parse_strict_json(text, "x.json"); });
  };
  refused(R"({"a": 1, "b": {"a": 2}, "a": 3})", "the key 'a' comes twice in one object");
  refused(R"({"a": {"x": 1, "x": 1}})", "the key 'x' comes twice");
  refused(R"({"\u0061": 1, "a": 2})", "the key 'a' comes twice");
  refused("", "is not JSON at byte 1");
  refused("{} {}", "is not JSON at byte 4");
  refused("{\"a\": \"\xff\"}", "is not JSON at byte 8");
  refused("[1e999]", "its JSON holds a number that is too large");
  refused(std::string("[1]\0", 4), "is not JSON: it holds a zero byte at byte 3");
  refused(std::string(100'000, '['), "its JSON is nested deeper than 64 levels");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  refused(deep, "its JSON is nested deeper than 64 levels");
}

TEST(StrictJson, ALevelBelowTheLimitIsRead) {
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse_strict_json(deep, "x.json").is_array());
}

}  // namespace
}  // namespace headscope
