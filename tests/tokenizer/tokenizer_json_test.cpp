#include "tokenizer/tokenizer_json.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using nlohmann::json;
using namespace nlohmann::literals;
using test::expect_error;
using test::TemporaryFolder;

// Two letters, their pair, and a special token.
json small() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 3, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
                      "normalized": false, "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})");
}

Tokenizer made_of(const json& file) {
  return Tokenizer(parse_tokenizer_json(file.dump(), "t.json"), "t");
}

void expect_refused(const json& file, const std::string& message) {
  expect_error(Fault::input, message, [&] { made_of(file); });
}

// The file with another value at a place: "/model/type".
json changed(const std::string& place, const json& value) {
  json file = small();
  file[json::json_pointer(place)] = value;
  return file;
}

using Ids = std::vector<std::uint32_t>;

TEST(TokenizerJson, IsReadAndUsed) {
  Tokenizer tokenizer = made_of(small());
  EXPECT_EQ(tokenizer.encode("abba<end>ab"), (Ids{2, 1, 0, 3, 2}));
  EXPECT_EQ(tokenizer.vocabulary(), 4);
  EXPECT_EQ(tokenizer.decode(Ids{2, 3, 1}), "ab b");
  EXPECT_EQ(tokenizer.decode(Ids{2, 3, 1}, /*skip_special=*/false), "ab <end> b");
  EXPECT_EQ(tokenizer.piece(2), "ab");
  EXPECT_EQ(tokenizer.id_of("<end>"), 3U);
  EXPECT_FALSE(tokenizer.piece(4));
}

TEST(TokenizerJson, CharactersWithoutTokenAreCounted) {
  Tokenizer tokenizer = made_of(small());
  EXPECT_EQ(tokenizer.encode("axb"), Ids{2});  // what is left is merged, as the library does it
  EXPECT_EQ(tokenizer.encode("axb"), Ids{2});  // counted each time
  EXPECT_EQ(tokenizer.counts().vanished, 2);
}

TEST(TokenizerJson, TextThatIsNotUtf8IsNamed) {
  Tokenizer tokenizer = made_of(small());
  const auto encode = [&](const std::string& text) { (void)tokenizer.encode(text, {.place = "x.jsonl: line 7"}); };
  for (const char* wrong : {"ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xc0\x80", "ab\xf4\x90\x80\x80", "ab\xe2\x82"})
    expect_error(Fault::input, "x.jsonl: line 7: byte 2 is not UTF-8", [&] { encode(wrong); });
}

TEST(TokenizerJson, OtherModelsAreNamed) {
  for (const char* kind : {"Unigram", "WordPiece", "WordLevel"})
    expect_refused(changed("/model/type", kind),
                   std::string("t.json: model: a tokenizer of the kind ") + kind + " is not supported; expected BPE");
  json unigram = small();
  unigram["model"] = {{"unk_id", 0}, {"vocab", {{"<unk>", 0.0}, {"a", -1.5}}}};
  unigram["model"]["vocab"] = json::array({json::array({"<unk>", 0.0}), json::array({"a", -1.5})});
  expect_refused(unigram, "a tokenizer of the kind Unigram is not supported");
}

TEST(TokenizerJson, UnknownComponentsAreNamed) {
  expect_refused(changed("/normalizer", {{"type", "Precompiled"}}),
                 "t.json: normalizer: normalizer 'Precompiled' is not supported; supported are Sequence, NFC");
  expect_refused(changed("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "UnicodeScripts"}}}}}),
                 "t.json: pre_tokenizer.pretokenizers[0]: pre-tokenizer 'UnicodeScripts' is not supported");
  expect_refused(changed("/post_processor", {{"type", "New"}}), "post-processor 'New' is not supported");
  expect_refused(changed("/decoder", {{"type", "CTC"}}), "decoder 'CTC' is not supported");
  expect_refused(changed("/version", "2.0"), "version: is \"2.0\"; expected \"1.0\"");
  expect_refused(changed("/model/dropout", 0.1), "dropout a text has no fixed tokens");
}

TEST(TokenizerJson, DamagedVocabulariesAreNamed) {
  expect_refused(changed("/model/merges", R"([["a", "x"]])"_json),
                 "merge 0 ('a' and 'x') names 'x', which is not in the vocabulary");
  expect_refused(changed("/model/merges", R"([["b", "a"]])"_json), "names 'ba', which is not in the vocabulary");
  expect_refused(changed("/model/merges", R"(["a b c"])"_json), "model.merges[0] is not a pair of pieces");
  expect_refused(changed("/model/merges", R"([["a", "b", "ab"]])"_json), "model.merges[0] is not a pair of pieces");
  expect_refused(changed("/model/merges", R"([["a", 1]])"_json), "model.merges[0] is not a pair of pieces");
  expect_refused(changed("/model/merges", json(nullptr)), "'merges' is missing");
  expect_refused(changed("/model/vocab/b", 0), "both have id 0");
  expect_refused(changed("/model/vocab/b", 1 << 24), "model.vocab: 'b' has id 16777216; expected less than 16777216");
  expect_refused(changed("/model/vocab/b", -1), "model.vocab: 'b' is -1; expected an id");
  expect_refused(changed("/model/vocab/b", 1.5), "expected an id");
  expect_refused(changed("/model/vocab/b", "1"), "expected an id");
  expect_refused(changed("/model/vocab", json::object()), "the vocabulary is empty");
  expect_refused(changed("/model/unk_token", "<unk>"), "the unknown piece '<unk>' is not in the vocabulary");
  expect_refused(changed("/model", json(nullptr)), "'model' is missing");
  expect_refused(changed("/model", "BPE"), "model: is \"BPE\"; expected an object");
}

TEST(TokenizerJson, DamagedAddedTokensAreNamed) {
  const json token = small()["added_tokens"][0];
  json other = token;
  other["content"] = "<other>";
  expect_refused(changed("/added_tokens", {token, other}), "the added tokens '<end>' and '<other>' both have id 3");
  other = token;
  other["lstrip"] = true;
  expect_refused(changed("/added_tokens", {token, other}), "the added token '<end>' is there twice");
  expect_refused(changed("/added_tokens/0/id", 4e9), "added_tokens[0].id: is 4000000000.0; expected a whole number");
  expect_refused(changed("/added_tokens/0/content", 5), "added_tokens[0].content: is 5; expected a text");
  expect_refused(changed("/added_tokens/0/content", std::string(5000, 'x')), "has 5000 bytes; expected at most 4096");
  json gap = small();
  gap["model"]["vocab"]["c"] = 4;  // so the next free id is taken
  gap["model"]["vocab"].erase("ab");
  gap["model"]["merges"] = json::array();
  gap["model"]["vocab"]["d"] = 3;
  gap["model"]["vocab"].erase("c");
  expect_refused(gap, "the added token '<end>' has id 3, which is that of the piece 'd'");
}

TEST(TokenizerJson, AnotherIdOfAnAddedTokenIsAWarning) {
  Tokenizer tokenizer = made_of(changed("/added_tokens/0/id", 9));
  EXPECT_EQ(tokenizer.encode("<end>"), Ids{3});  // as the library does it
  ASSERT_EQ(tokenizer.warnings().size(), 1U);
  EXPECT_THAT(tokenizer.warnings()[0], testing::HasSubstr("'<end>' has id 9 in the file"));
}

TEST(TokenizerJson, TruncationIsSaidNotDone) {
  Tokenizer tokenizer = made_of(changed("/truncation", {{"max_length", 1}}));
  EXPECT_EQ(tokenizer.encode("aaa").size(), 3U);
  EXPECT_THAT(tokenizer.warnings().at(0), testing::HasSubstr("'truncation' of the file is not applied"));
}

TEST(TokenizerJson, DamagedComponentsAreNamed) {
  const auto split = [](const json& pattern) {
    return changed("/pre_tokenizer",
                   {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}});
  };
  expect_refused(split({{"Regex", "(?P<x>a)"}}),
                 "t.json: pre_tokenizer.pattern: the pattern '(?P<x>a)' is not supported");
  expect_refused(split({{"Regex", "[a"}}), "a '[' without ']'");
  expect_refused(split({{"Regex", "a)"}}), "a ')' without '('");
  expect_refused(split({{"Regex", R"(\p{Emoji})"}}), "the property 'Emoji'");
  expect_refused(split({{"Regex", R"(a\1)"}}), R"('\1')");
  expect_refused(split({{"Regex", "*"}}), "nothing to repeat");
  expect_refused(split({{"Regex", "[[:alpha:]]"}}), "a POSIX class");
  expect_refused(split({{"Regex", "(?i:ss)"}}), "'ss' without regard to case");
  expect_refused(split({{"Regex", std::string(30'000, 'a')}}), "a pattern of 30000 bytes");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "(";
  expect_refused(split({{"Regex", deep}}), "deep nesting");
  expect_refused(split({{"String", ""}}), "the pattern is empty");
  expect_refused(split(json::object()), "pre_tokenizer.pattern: 'Regex' is missing");
  json wrong = split({{"String", "a"}});
  wrong["pre_tokenizer"]["behavior"] = "Kept";
  expect_refused(wrong, "pre_tokenizer.behavior: is \"Kept\"; expected Removed, Isolated");
  expect_refused(changed("/pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "ab"}}), "expected one character");
  expect_refused(changed("/post_processor", {{"type", "TemplateProcessing"},
                                             {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}}},
                                             {"special_tokens", {{"<s>", {{"ids", {77}}}}}}}),
                 "the post-processor adds the id 77; expected less than 4");
}

TEST(TokenizerJson, DamagedJsonIsRefused) {
  const auto refused = [](const std::string& text, const std::string& message) {
    expect_error(Fault::input, message, [&] { parse_tokenizer_json(text, "t.json"); });
  };
  const std::string whole = small().dump();
  for (std::size_t length = 0; length < whole.size(); ++length)
    refused(whole.substr(0, length), "t.json: not valid JSON at byte");
  refused("[]", "is not a JSON object");
  refused("7", "is not a JSON object");
  refused(R"({"model": {}, "model": {}})", "the key 'model' comes twice");
  refused(R"({"model": {"vocab": {}, "vocab": {}}})", "the key 'vocab' comes twice");
  refused(R"({"model": {"merges": [], "merges": []}})", "the key 'merges' comes twice");
  refused(R"({"a": {"b": 1, "b": 2}})", "the key 'b' comes twice");
  const std::string open(100'000, '['), close(100'000, ']');
  refused(R"({"a": )" + open + close + "}", "nested deeper than 64");
  refused(R"({"model": {"vocab": )" + open + close + "}}", "Unigram");
  refused(R"({"model": {"merges": )" + open + close + "}}", "model.merges[0] is not a pair");
  refused(open, "nested deeper than 64");
  refused(std::string("{\"a\": \"\xff\"}"), "not valid JSON");
}

TEST(TokenizerJson, PieceThatComesTwiceIsRefused) {
  expect_error(Fault::input, "the piece 'a' is twice in the vocabulary", [] {
    Tokenizer(parse_tokenizer_json(R"({"model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []}})", "t"), "t");
  });
}

TEST(OpenTokenizer, FindsTheFile) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "none: is not there; expected bytes, a tokenizer.json, a folder",
               [&] { open_tokenizer(folder / "none"); });
  expect_error(Fault::input, "tokenizer.json: is not there", [&] { open_tokenizer(folder.path()); });
  write_file(folder / "tokenizer.json", small().dump());
  const std::string name = open_tokenizer(folder / "tokenizer.json").name();
  EXPECT_EQ(open_tokenizer(folder.path()).name(), name);
  // A folder of the Hugging Face cache.
  const auto cache = folder / "models--org--name", snapshot = cache / "snapshots" / "abc";
  std::filesystem::create_directories(snapshot);
  std::filesystem::create_directories(cache / "refs");
  std::filesystem::create_symlink(folder / "tokenizer.json", snapshot / "tokenizer.json");
  EXPECT_EQ(open_tokenizer(cache).name(), name);  // the only snapshot
  std::filesystem::create_directories(cache / "snapshots" / "def");
  expect_error(Fault::input, "2 snapshots", [&] { open_tokenizer(cache); });
  write_file(cache / "refs" / "main", "abc\n");
  EXPECT_EQ(open_tokenizer(cache).name(), name);
  EXPECT_EQ(open_tokenizer(snapshot).name(), name);
  write_file(cache / "refs" / "main", "../../x");
  expect_error(Fault::input, "holds '../../x'; expected the name of a folder in", [&] { open_tokenizer(cache); });
}

TEST(OpenTokenizer, KnowsTheEndOfAText) {
  const TemporaryFolder folder;
  write_file(folder / "tokenizer.json", small().dump());
  EXPECT_FALSE(open_tokenizer(folder.path()).end_of_text());
  write_file(folder / "tokenizer_config.json", R"({"eos_token": {"content": "<end>"}, "bos_token": "a"})");
  EXPECT_EQ(open_tokenizer(folder.path()).end_of_text(), 3U);
  EXPECT_EQ(open_tokenizer(folder.path()).begin_of_text(), 0U);
  write_file(folder / "tokenizer_config.json", R"({"eos_token": "<other>"})");
  const Tokenizer other = open_tokenizer(folder.path());
  EXPECT_FALSE(other.end_of_text());
  EXPECT_THAT(other.warnings().at(0), testing::HasSubstr("'<other>'"));
  write_file(folder / "tokenizer_config.json", "{");
  expect_error(Fault::input, "tokenizer_config.json: not ", [&] { open_tokenizer(folder.path()); });
}

}  // namespace
}  // namespace headscope
