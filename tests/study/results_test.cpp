#include "study/results.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/atomic_file.h"
#include "study/synthetic.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;

// A small file, field by field, so that each can be damaged alone.
struct Fields {
  std::string tag = R"("tag": "QK")";
  std::string tokens = R"("tokens": [0, 983040])";
  std::string loss = R"("loss": [null, 10.23])";
  std::string val_loss = R"("val_loss": [null, 10.31])";
  std::string mean_pr = R"("mean_pr": [1.95, 1.5])";
  std::string layer_pr = R"("layer_pr": {"0": [1.9, 1.4], "1": [2.0, 1.6]})";
  std::string gamma_cv = R"("gamma_cv": {"0": [0.0, 0.01], "1": [0.0, 0.02]})";
  std::string gamma_final = R"("gamma_final": {"0": [1.0, 0.9], "1": [1.1, 1.0]})";

  [[nodiscard]] std::string text() const {
    std::string joined;
    for (const std::string* field : {&tag, &tokens, &loss, &val_loss, &mean_pr, &layer_pr, &gamma_cv, &gamma_final})
      if (!field->empty()) joined += (joined.empty() ? "{" : ", ") + *field;
    return joined + "}";
  }
};

void expect_refused(const Fields& fields, const std::string& message) {
  expect_error(Fault::input, "QK/results.json: " + message, [&] { parse_results(fields.text(), "QK/results.json"); });
}

// Fields with one of them replaced.
Fields with(std::string Fields::*field, const std::string& text) {
  Fields fields;
  fields.*field = text;
  return fields;
}

TEST(Results, AreReadFieldByField) {
  const ConditionResults results = parse_results(Fields().text(), "file", "QK");
  EXPECT_EQ(results.tag, "QK");
  EXPECT_EQ(results.tokens, (Integers{0, 983040}));
  EXPECT_TRUE(std::isnan(results.loss[0]) && std::isnan(results.val_loss[0]));
  EXPECT_EQ(results.loss[1], 10.23);
  EXPECT_EQ(results.val_loss[1], 10.31);
  EXPECT_EQ(results.mean_pr, (Numbers{1.95, 1.5}));
  EXPECT_EQ(results.layer_pr, (std::vector<Numbers>{{1.9, 1.4}, {2.0, 1.6}}));
  EXPECT_EQ(results.gamma_cv, (std::vector<Numbers>{{0, 0.01}, {0, 0.02}}));
  ASSERT_TRUE(results.gamma_final.has_value());
  EXPECT_EQ(*results.gamma_final, (std::vector<Numbers>{{1, 0.9}, {1.1, 1}}));
}

TEST(Results, AreWrittenAsTheyWereRead) {
  EXPECT_EQ(results_text(parse_results(Fields().text(), "file")), Fields().text());
  Fields without;
  without.tag = R"("tag": "NoQK")";
  without.gamma_cv = R"("gamma_cv": {})";
  without.gamma_final = "";
  EXPECT_EQ(results_text(parse_results(without.text(), "file")), without.text());
}

TEST(Results, RoundTripKeepsEveryByteOfHardNumbers) {
  ConditionResults results = synthetic::results({.layers = 12, .probes = 7});
  results.gamma_cv[0] = {0.1, 1e-5, 1.7976931348623156e38, 5e-324, -0.0, 1e22, std::nan("")};
  const std::string text = results_text(results);
  EXPECT_EQ(results_text(parse_results(text, "file")), text);
  EXPECT_NE(text.find("[0.1, 1e-05, 1.7976931348623156e+38, 5e-324, -0.0, 1e+22, null]"), std::string::npos) << text;
}

TEST(Results, PublishedFilesAreWrittenByteForByteAsPythonWroteThem) {
  const auto study = test::shared_folder() / "reference" / "qk_norm_50m_study";
  HEADSCOPE_NEEDS_SHARED(study);
  for (const char* tag : {"QK", "QK_frozen", "NoQK"}) {
    const std::string text = read_file(study / tag / results_name);
    EXPECT_TRUE(results_text(parse_results(text, "file", tag)) == text) << tag;
  }
}

TEST(Results, LayersMayComeInAnyOrderAndUnknownFieldsAreIgnored) {
  Fields fields = with(&Fields::layer_pr, R"("layer_pr": {"1": [2.0, 1.6], "0": [1.9, 1.4]})");
  fields.gamma_final += R"(, "note": {"tag": [1, {"tokens": "x"}], "": null}, "": [[]], "tags": "QK")";
  EXPECT_EQ(results_text(parse_results(fields.text(), "file")), Fields().text());
}

TEST(Results, EveryMissingFieldIsNamed) {
  expect_refused(with(&Fields::tag, ""), "field 'tag' is missing");
  expect_refused(with(&Fields::tokens, ""), "field 'tokens' is missing");
  expect_refused(with(&Fields::loss, ""), "field 'loss' is missing");
  expect_refused(with(&Fields::val_loss, ""), "field 'val_loss' is missing");
  expect_refused(with(&Fields::mean_pr, ""), "field 'mean_pr' is missing");
  expect_refused(with(&Fields::layer_pr, ""), "field 'layer_pr' is missing");
  expect_refused(with(&Fields::gamma_cv, ""), "field 'gamma_cv' is missing");
  EXPECT_FALSE(parse_results(with(&Fields::gamma_final, "").text(), "file").gamma_final.has_value());
}

TEST(Results, EveryWrongTypeIsNamedWithItsPlace) {
  const auto refused = [](std::string Fields::*field, const std::string& text, const std::string& message) {
    expect_refused(with(field, text), message);
  };
  refused(&Fields::tag, R"("tag": 7)", "tag is 7; expected a text");
  refused(&Fields::tag, R"("tag": ["QK"])", "tag is a list; expected a text");
  refused(&Fields::tokens, R"("tokens": 5)", "tokens is 5; expected a list of numbers");
  refused(&Fields::tokens, R"("tokens": [0, "x"])", "tokens[1] is a text; expected a whole number");
  refused(&Fields::tokens, R"("tokens": [0, 1.5])", "tokens[1] is 1.5; expected a whole number");
  refused(&Fields::tokens, R"("tokens": [0, null])", "tokens[1] is null; expected a whole number");
  refused(&Fields::tokens, R"("tokens": [0, 18446744073709551615])", "tokens[1] is 18446744073709551615; expected");
  refused(&Fields::loss, R"("loss": {"0": 1})", "loss is an object; expected a list of numbers");
  refused(&Fields::loss, R"("loss": [null, "nan"])", "loss[1] is a text; expected a number or null");
  refused(&Fields::loss, R"("loss": [null, [1]])", "loss[1] is a list; expected a number or null");
  refused(&Fields::mean_pr, R"("mean_pr": [true, 1])", "mean_pr[0] is true; expected a number or null");
  refused(&Fields::layer_pr, R"("layer_pr": [1])", "layer_pr is a list; expected an object of layers");
  refused(&Fields::layer_pr, R"("layer_pr": {"0": 3})", R"(layer_pr["0"] is 3; expected a list of numbers)");
  refused(&Fields::layer_pr, R"("layer_pr": {"0": [1, {}]})", R"(layer_pr["0"][1] is an object; expected a number)");
  refused(&Fields::gamma_cv, R"("gamma_cv": null)", "gamma_cv is null; expected an object of layers");
}

TEST(Results, SeriesHaveOneValueForEachProbe) {
  const auto refused = [](std::string Fields::*field, const std::string& text, const std::string& message) {
    expect_refused(with(field, text), message);
  };
  refused(&Fields::tokens, R"("tokens": [])", "tokens is empty: there are no probes");
  refused(&Fields::loss, R"("loss": [null])", "loss has 1 values; expected 2, as many as tokens");
  refused(&Fields::val_loss, R"("val_loss": [null, 1, 2])", "val_loss has 3 values; expected 2");
  refused(&Fields::mean_pr, R"("mean_pr": [])", "mean_pr has 0 values; expected 2");
  refused(&Fields::layer_pr, R"("layer_pr": {"0": [1, 2], "1": [1]})", R"(layer_pr["1"] has 1 values; expected 2)");
  refused(&Fields::gamma_cv, R"("gamma_cv": {"0": [1, 2], "1": []})", R"(gamma_cv["1"] has 0 values; expected 2)");
  refused(&Fields::gamma_final, R"("gamma_final": {"0": [1, 2], "1": [1]})", R"(gamma_final["1"] has 1 values)");
}

TEST(Results, LayersAreCountedFromZeroWithoutGaps) {
  const auto refused = [](std::string Fields::*field, const std::string& text, const std::string& message) {
    expect_refused(with(field, text), message);
  };
  refused(&Fields::layer_pr, R"("layer_pr": {})", "layer_pr is empty: there are no layers");
  refused(&Fields::layer_pr, R"("layer_pr": {"1": [1, 2]})", R"(layer_pr has no layer "0" but has layer "1")");
  refused(&Fields::layer_pr, R"("layer_pr": {"0": [1, 2], "9223372036854775807": [1, 2]})",
          R"(layer_pr has no layer "1")");
  for (const char* name : {"00", "+1", "-1", "1.0", "", "layer", "99999999999999999999", "0\\n"})
    refused(&Fields::layer_pr, fmt::format(R"("layer_pr": {{"{}": [1, 2]}})", name), "layer_pr has the layer \"");
  refused(&Fields::gamma_cv, R"("gamma_cv": {"0": [1, 2]})", "gamma_cv has 1 layers; expected 2, as layer_pr");
  refused(&Fields::gamma_final, R"("gamma_final": {"0": [1, 2]})", "gamma_final has 1 layers; expected 2");
}

TEST(Results, TokensDoNotDecrease) {
  expect_refused(with(&Fields::tokens, R"("tokens": [5, 4])"), "tokens[1] is 4, less than 5 before it");
  expect_refused(with(&Fields::tokens, R"("tokens": [0, 5, 4])"), "tokens[2] is 4, less than 5 before it");
  expect_refused(with(&Fields::tokens, R"("tokens": [-1, 4])"),
                 "tokens[0] is -1; expected a whole number, not negative");
  EXPECT_EQ(parse_results(with(&Fields::tokens, R"("tokens": [4, 4])").text(), "file").tokens, (Integers{4, 4}));
}

TEST(Results, TheTagIsANameAndThatOfTheFolder) {
  for (const char* tag : {"Q\\nK", "../QK", "", "seed_1", "plots"})
    expect_refused(with(&Fields::tag, fmt::format(R"("tag": "{}")", tag)),
                   fmt::format(R"(tag is "{}"; expected the name of a condition)", tag));
  expect_error(Fault::input, "tag is 'QK'; expected 'NoQK', the name of its folder",
               [] { parse_results(Fields().text(), "file", "NoQK"); });
}

TEST(Results, UpdatesAndLearningRateMayBeThere) {
  Fields fields;
  fields.gamma_final += R"(, "updates": [0, 60], "adamw_lr": 0.006)";
  const ConditionResults results = parse_results(fields.text(), "file");
  EXPECT_EQ(results.updates, (Integers{0, 60}));
  EXPECT_EQ(results.adamw_lr, 0.006);
  EXPECT_EQ(results_text(results), fields.text());
  expect_refused(with(&Fields::gamma_final, R"("updates": [0])"), "updates has 1 values; expected 2");
  expect_refused(with(&Fields::gamma_final, R"("updates": [3, 1])"), "updates[1] is 1, less than 3 before it");
  for (const char* rate : {"0", "-1", "\"fast\"", "null"})
    expect_refused(with(&Fields::gamma_final, fmt::format(R"("adamw_lr": {})", rate)), "adamw_lr is ");
}

TEST(Results, OtherMeasuresMayBeThere) {
  Fields fields;
  fields.gamma_final +=
      R"(, "qk_pr": [1.5, null], "layer_qk_pr": {"0": [1.25, null], "1": [1.75, 1.0]}, )"
      R"("gaussian": {"mean_pr": 31.9, "qk_pr": 31.8}, "jackknife_error": {"mean_pr": null, "qk_pr": 0.5}, )"
      R"("layer_jackknife_error": {"qk_pr": [0.25, 0.75]})";
  const ConditionResults results = parse_results(fields.text(), "x");
  EXPECT_EQ(results_text(results), fields.text());
  ASSERT_EQ(results.measures.size(), 1U);
  EXPECT_EQ(results.measures.at("qk_pr").mean.front(), 1.5);
  EXPECT_EQ(results.measures.at("qk_pr").layers.at(1).back(), 1.0);
  EXPECT_EQ(results.gaussian.at("mean_pr"), 31.9);
  EXPECT_TRUE(std::isnan(results.jackknife_error.at("mean_pr")));
  EXPECT_EQ(results.layer_jackknife_error.at("qk_pr").back(), 0.75);
  const auto expect_more_refused = [](const std::string& more, const std::string& message) {
    Fields damaged;
    damaged.gamma_final += ", " + more;
    expect_refused(damaged, message);
  };
  expect_more_refused(R"("qk_pr": [1.0, 2.0])", "field 'layer_qk_pr' is missing");
  expect_more_refused(R"("qk_pr": [1.0], "layer_qk_pr": {})", "qk_pr has 1 values; expected 2, as many as tokens");
  expect_more_refused(R"("qk_pr": [1.0, 2.0], "layer_qk_pr": {"0": [1.0, 2.0]})",
                      "layer_qk_pr has 1 layers; expected 2");
  expect_more_refused(R"("gaussian": [1.0])", "gaussian is a list; expected an object of measures");
  expect_more_refused(R"("gaussian": {"qk_pr": "x"})", "gaussian[\"qk_pr\"] is a text; expected a number or null");
  expect_more_refused(R"("gaussian": {"qk_pr": 1e300})", "gaussian[\"qk_pr\"] is 1e+300; expected a number of at most");
  expect_more_refused(R"("layer_jackknife_error": {"qk_pr": [1.0]})", "layer_jackknife_error[\"qk_pr\"] has 1 values");
}

TEST(Results, RepeatedKeysAreRefused) {
  expect_refused(with(&Fields::loss, R"("loss": [null, 1], "loss": [null, 2])"), "field 'loss' is there twice");
  expect_refused(with(&Fields::layer_pr, R"("layer_pr": {"0": [1, 2], "0": [3, 4]})"),
                 R"(layer_pr has the layer "0" twice)");
}

TEST(Results, HostileTextIsRefusedInOneLine) {
  const std::string deep(2'000'000, '[');
  expect_error(Fault::input, "file: the file is a list", [&] { parse_results(deep, "file"); });
  expect_error(Fault::input, "file: not valid JSON", [&] { parse_results("{\"x\": " + deep, "file"); });
  // What is not ours is passed over, however deep.
  const Fields nested = with(&Fields::gamma_final, "\"x\": " + deep + std::string(deep.size(), ']'));
  EXPECT_EQ(parse_results(nested.text(), "file").tokens.size(), 2u);
  expect_refused(with(&Fields::loss, R"("loss": [null, 1e999])"), "a number near byte");
  expect_refused(with(&Fields::loss, "\"loss\": [null, " + std::string(100'000, '9') + "]"), "a number near byte");
  for (const std::string text :
       {"", " ", "null", "7", "\"QK\"", "{", "{}", "{\"tag\"", "{}{}", "\xff\xfe{}", "{\"tag\": NaN}"})
    expect_error(Fault::input, "file: ", [&] { parse_results(text, "file"); });
}

// d_k is 2, the length of gamma_final; without it any model's.
TEST(Results, APrThatNoKeysHaveIsRefused) {
  for (const char* pr : {"-3.0", "0", "0.9", "2.1", "90", "1e300", "-1e300"})
    expect_refused(with(&Fields::mean_pr, fmt::format(R"("mean_pr": [1.5, {}])", pr)), "mean_pr[1] is ");
  expect_refused(with(&Fields::layer_pr, R"("layer_pr": {"0": [1.9, 1.4], "1": [2.0, 0.0]})"),
                 R"(layer_pr["1"][1] is 0; expected a participation ratio, from 1 to 2)");
  Fields other;
  other.gamma_final += R"(, "qk_pr": [1.5, 1.5], "layer_qk_pr": {"0": [1.5, 1.5], "1": [7.0, 1.5]})";
  expect_refused(other, R"(layer_qk_pr["1"][0] is 7; expected a participation ratio)");
  Fields spread;
  spread.gamma_final += R"(, "score_std": [1.5, -1], "layer_score_std": {"0": [1.5, 1.5], "1": [1, 1.5]})";
  expect_refused(spread, "score_std[1] is -1; expected a standard deviation, 0 or more");
  Fields without = with(&Fields::gamma_final, "");
  without.mean_pr = R"("mean_pr": [1000.0, 0.9999])";
  EXPECT_EQ(parse_results(without.text(), "file").mean_pr[0], 1000);
  without.mean_pr = R"("mean_pr": [1.5, 2e6])";
  expect_refused(without, "mean_pr[1] is 2000000; expected a participation ratio, from 1 to 1000000");
}

TEST(Results, ANumberWhoseSumsOverflowIsRefused) {
  expect_refused(with(&Fields::val_loss, R"("val_loss": [null, 1e308])"),
                 "val_loss[1] is 1e+308; expected a number of");
  expect_refused(with(&Fields::loss, R"("loss": [null, -1e308])"), "loss[1] is -1e+308; expected a number of");
}

TEST(Results, NothingMayStandBehindTheDocument) {
  const std::string text = Fields().text();
  for (const std::string& more : {std::string(1, '\0'), std::string("\0{}", 3), std::string("x"), std::string("{}")})
    expect_error(Fault::input, "file: not valid JSON at byte", [&] { parse_results(text + more, "file"); });
  EXPECT_EQ(parse_results(text + " \n\n", "file").tokens.size(), 2u);
}

// A sparse file: it takes no place on the disk.
TEST(Results, AFileOfGigabytesIsRefusedBeforeItIsRead) {
  const test::TemporaryFolder folder;
  write_file(folder / "results.json", Fields().text());
  std::filesystem::resize_file(folder / "results.json", std::uintmax_t{1} << 40);
  expect_error(Fault::input, "results.json: has 1099511627776 bytes; expected at most 268435456",
               [&] { read_results(folder / "results.json", "QK"); });
}

TEST(Results, TruncatedAnywhereAreRefused) {
  const std::string text = Fields().text();
  for (std::size_t length = 0; length < text.size(); ++length)
    expect_error(Fault::input, "file: not valid JSON at byte", [&] { parse_results(text.substr(0, length), "file"); });
}

}  // namespace
}  // namespace headscope
