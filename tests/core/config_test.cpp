#include "core/config.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {

enum class Shape { round, square };
template <>
struct EnumNames<Shape> {
  static constexpr std::array<std::string_view, 2> names = {"round", "square"};
};

namespace {

using test::expect_error;

struct Options {
  std::int64_t count = 3;
  std::uint64_t seed = 7;
  double rate = 0.5;
  bool fast = false;
  std::string name = "plain";
  Shape shape = Shape::round;
  std::optional<std::int64_t> limit;
  double inner_rate = 1;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("count", self.count, "");
    visit("seed", self.seed, "");
    visit("rate", self.rate, "");
    visit("fast", self.fast, "");
    visit("name", self.name, "");
    visit("shape", self.shape, "");
    visit("limit", self.limit, "");
    visit("inner.rate", self.inner_rate, "");
  }
};

Options from_yaml(const std::string& text) {
  Options options;
  for (const ConfigEntry& entry : parse_yaml(text, "f.yaml")) apply(options, entry);
  return options;
}

TEST(Config, ReadsEveryTypeFromYaml) {
  const Options options = from_yaml(
      "count: -4\nseed: 18446744073709551615\nrate: 1e-3\nfast: true\nname: \"a b\"\nshape: square\n"
      "limit: 9\ninner:\n  rate: 2.5\n");
  EXPECT_EQ(options.count, -4);
  EXPECT_EQ(options.seed, 18446744073709551615ULL);
  EXPECT_EQ(options.rate, 1e-3);
  EXPECT_TRUE(options.fast);
  EXPECT_EQ(options.name, "a b");
  EXPECT_EQ(options.shape, Shape::square);
  EXPECT_EQ(options.limit, 9);
  EXPECT_EQ(options.inner_rate, 2.5);
}

TEST(Config, AnAliasThatHoldsItselfIsRefused) {
  expect_error(Fault::input, "is nested more than 8 deep", [] { parse_yaml("a: &x\n  b: *x\n", "f.yaml"); });
  std::string wide = "a: &x\n";
  for (int i = 0; i < 100; ++i) wide += fmt::format("  k{}: *x\n", i);
  expect_error(Fault::input, "f.yaml", [&] { parse_yaml(wide, "f.yaml"); });
}

TEST(Config, AListOfAliasesThatFillsTheMemoryIsRefused) {
  std::string list = "*a";
  for (int i = 0; i < 1000; ++i) list += ",*a";
  const std::string yaml = fmt::format("long: &a '{}'\nname: [{}]\n", std::string(2000, 'A'), list);
  expect_error(Fault::input, "'name' is a list of more than 1048576 bytes", [&] { parse_yaml(yaml, "f.yaml"); });
}

TEST(Config, ResolvedYamlGivesTheSameOptions) {
  Options options;
  options.rate = 0.1 + 0.2;  // needs 17 digits
  options.name = "yes: [no] #";
  options.shape = Shape::square;
  const Options again = from_yaml(yaml_of(to_json(options)));
  EXPECT_EQ(to_json(again), to_json(options));
  EXPECT_EQ(again.rate, options.rate);
}

TEST(Config, NullLeavesTheDefault) {
  EXPECT_EQ(from_yaml("limit: null\ncount: ~\n").count, 3);
}

TEST(Config, NumbersHaveShortForms) {
  const auto whole = [](const char* text) {
    std::int64_t value = -1;
    return parse_value(text, value) ? std::optional(value) : std::nullopt;
  };
  EXPECT_EQ(whole("1e5"), 100'000);
  EXPECT_EQ(whole("100k"), 100'000);
  EXPECT_EQ(whole("1.5M"), 1'500'000);
  EXPECT_EQ(whole("2B"), 2'000'000'000);
  EXPECT_EQ(whole("-3k"), -3'000);
  EXPECT_EQ(whole("9007199254740993"), 9007199254740993);  // 2^53 + 1: as it is, not through a double
  for (const char* text : {"1.5", "1e30", "k", "1kk", "1 k", "nan", "inf", "0x10k", "1e5x", "M1", ""})
    EXPECT_EQ(whole(text), std::nullopt) << text;
  std::uint64_t seed = 0;
  EXPECT_FALSE(parse_value("-1k", seed));
  double rate = 0;
  EXPECT_TRUE(parse_value("2k", rate));
  EXPECT_EQ(rate, 2000);
}

TEST(Config, LikelyKeysShareTheLastPartAreUsualWordsOrSpeltAlike) {
  const std::vector<std::string> known = {"model.layers", "optim.muon_lr", "optim.adamw_lr", "train.tokens"};
  const std::vector<UsualWord> words = {{"lr", "optim.muon_lr"}, {"lr", "optim.adamw_lr"}, {"lr", "not.there"}};
  const auto likely = [&](const char* key) { return likely_keys(key, known, words); };
  EXPECT_EQ(likely("layers"), std::vector<std::string>{"model.layers"});
  EXPECT_EQ(likely("Optim.LR"), (std::vector<std::string>{"optim.muon_lr", "optim.adamw_lr"}));
  EXPECT_EQ(likely("trian.tokens").front(), "train.tokens");
  EXPECT_EQ(likely("token").front(), "train.tokens");
  EXPECT_TRUE(likely("colour").empty());
}

TEST(Config, ErrorsNameFileLineAndNearestKey) {
  expect_error(Fault::input, "f.yaml:2: unknown key 'cuont'; did you mean 'count'?",
               [] { from_yaml("rate: 1\ncuont: 3"); });
  expect_error(Fault::input, "f.yaml:1: 'count' is 'many'; expected a whole number", [] { from_yaml("count: many"); });
  expect_error(Fault::input, "'seed' is '-1'; expected a whole number, not negative", [] { from_yaml("seed: -1"); });
  expect_error(Fault::input, "'count' is '3.5'", [] { from_yaml("count: 3.5"); });
  expect_error(Fault::input, "'fast' is 'maybe'; expected true or false", [] { from_yaml("fast: maybe"); });
  expect_error(Fault::input, "f.yaml:1: unknown shape 'oval'; known are round, square",
               [] { from_yaml("shape: oval"); });
  expect_error(Fault::input, "f.yaml:1: unknown shape 'rond'; did you mean 'round'?", [] { from_yaml("shape: rond"); });
  expect_error(Fault::input, "'inner.rate' is 'x'", [] { from_yaml("inner: {rate: x}"); });
  expect_error(Fault::input, "f.yaml:2: 'rate' is given twice", [] { from_yaml("rate: 1\nrate: 2"); });
  expect_error(Fault::input, "f.yaml:1: not valid YAML", [] { from_yaml("a: [1, 2"); });
  expect_error(Fault::input, "expected 'key: value' lines", [] { from_yaml("- 1\n- 2"); });
  expect_error(Fault::input, "unknown key 'something_else_entirely'; 'headscope config' lists all keys",
               [] { from_yaml("something_else_entirely: 1"); });
  expect_error(Fault::input, "nested list", [] { from_yaml("name: [[1]]"); });
}

TEST(Config, ANumberIsFinite) {
  for (const char* value : {"nan", "inf", "-inf", "1e999", ""})
    expect_error(Fault::input, "'rate' is '", [&] { from_yaml(fmt::format("rate: \"{}\"", value)); });
}

TEST(NearestName, IsASlipOfThePenTheCaseOrAFirstPart) {
  const std::vector<std::string> known = {"QK", "QK_frozen", "NoQK", "--dry-run", "--data"};
  EXPECT_EQ(nearest_name("qk", known), "QK");
  EXPECT_EQ(nearest_name("QK_frozn", known), "QK_frozen");
  EXPECT_EQ(nearest_name("--dry", known), "--dry-run");
  EXPECT_EQ(nearest_name("--d", known), "");  // of two
  EXPECT_EQ(nearest_name("xy", known), "");   // nothing in common with QK
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'x'), known), "");
}

TEST(UnknownName, ListsTheKnownOnesWhereNoneIsNear) {
  const std::array known = {"tiny", "88m"};
  EXPECT_EQ(unknown_name("preset", "88n", known), "unknown preset '88n'; did you mean '88m'?");
  EXPECT_EQ(unknown_name("preset", "huge", known), "unknown preset 'huge'; known are tiny, 88m");
}

TEST(Config, AKeyWithALineBreakStillGivesOneLine) {
  expect_error(Fault::input, "unknown key 'a b'", [] { from_yaml("\"a\\nb\": 1"); });
}

TEST(Config, AssignmentSplitsAtTheFirstEqualsSign) {
  const ConfigEntry entry = parse_assignment("a.b=c=d");
  EXPECT_EQ(entry.key, "a.b");
  EXPECT_EQ(entry.value, "c=d");
  expect_error(Fault::input, "expected key=value", [] { parse_assignment("novalue"); });
}

TEST(Config, MissingFileIsNamed) {
  expect_error(Fault::input, "no such file.yaml", [] { read_yaml("no such file.yaml"); });
}

}  // namespace
}  // namespace headscope
