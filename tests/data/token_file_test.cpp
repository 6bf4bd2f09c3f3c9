#include "data/token_file.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::string valid_info(const std::string& type = "u16") {
  return R"({"type": ")" + type + R"(", "vocabulary": 300, "tokenizer": "mine", "end_of_text": 0})";
}

TEST(TokenInfo, IsReadAsItIsWritten) {
  const TokenFileInfo info =
      parse_token_info(R"({"type": "u32", "vocabulary": 4294967296, "tokenizer": "é", "end_of_text": 4294967295,
                           "begin_of_text": 7, "tokens": 12, "documents": 3, "other": [1]})",
                       "x.json");
  EXPECT_TRUE(info.wide);
  EXPECT_EQ(info.vocabulary, std::int64_t{1} << 32);
  EXPECT_EQ(info.end_of_text, 4294967295U);
  EXPECT_EQ(info.begin_of_text, 7U);
  EXPECT_EQ(info.tokens, 12);
  EXPECT_EQ(info.documents, 3);
  EXPECT_EQ(to_text(parse_token_info(to_text(info), "again")), to_text(info));
  EXPECT_FALSE(parse_token_info(valid_info(), "x").tokens.has_value());
}

TEST(TokenInfo, WrongFieldsAreNamed) {
  const auto expect = [](const std::string& from, const std::string& to, const std::string& message) {
    std::string text = valid_info();
    text.replace(text.find(from), from.size(), to);
    expect_error(Fault::input, "x.json: " + message, [&] { parse_token_info(text, "x.json"); });
  };
  expect("\"type\"", "\"typ\"", "'type' is missing; expected {\"type\": \"u16\"");
  expect("u16", "u8", "'type' is \"u8\"; expected \"u16\" or \"u32\"");
  expect("\"u16\"", "16", "'type' is 16; expected \"u16\" or \"u32\"");
  expect("300", "0", "'vocabulary' is 0; expected a whole number from 1 to 65536");
  expect("300", "65537", "'vocabulary' is 65537; expected a whole number from 1 to 65536");
  expect("300", "-5", "'vocabulary' is -5; expected");
  expect("300", "3.5", "'vocabulary' is 3.5; expected");
  expect("300", "99999999999999999999", "'vocabulary' is");
  expect("\"mine\"", "null", "'tokenizer' is null; expected a name");
  expect(": 0}", ": 300}", "'end_of_text' is 300; expected a whole number from 0 to 299");
  expect("}", ", \"tokens\": -1}", "'tokens' is -1");
  expect("}", "", "not a JSON object: the file is damaged or incomplete");
  expect_error(Fault::input, "x.json: not a JSON object", [] { parse_token_info("[]", "x.json"); });
  expect_error(Fault::input, "x.json: has 2000000 bytes",
               [] { parse_token_info(std::string(2000000, ' '), "x.json"); });
}

TEST(TokenFile, WrittenDocumentsAreReadBack) {
  const TemporaryFolder folder;
  TextTokenizer bytes("bytes");
  TokenFileWriter kept(folder / "b.bin", false, bytes);
  kept.add("ab", {});
  kept.add(std::string("\0\xff", 2), {});
  EXPECT_FALSE(fs::exists(folder / "b.bin"));
  kept.finish();
  const TokenFile file = open_token_file(folder / "b.bin");
  const auto ids = std::get<0>(file.tokens);
  EXPECT_EQ(std::vector<int>(ids.begin(), ids.end()), (std::vector<int>{257, 'a', 'b', 256, 257, 0, 255, 256}));
  EXPECT_EQ(file.info.tokens, 8);
  EXPECT_EQ(file.info.documents, 2);
  EXPECT_EQ(file.info.tokenizer, "bytes");
  EXPECT_EQ(file.info.begin_of_text, 257U);
  EXPECT_EQ(kept.bytes(), 4);
}

TEST(TokenFile, IsNeitherReplacedNorHalfWritten) {
  const TemporaryFolder folder;
  TextTokenizer bytes("bytes");
  write_file(folder / "a.json", R"({"model": "a tokenizer.json, for example"})");
  expect_error(Fault::input, "a.json: does not describe a token file and is not replaced",
               [&] { TokenFileWriter(folder / "a.bin", true, bytes); });
  const std::string precious = valid_info();
  write_file(folder / "a.json", precious);
  expect_error(Fault::input, "a.json: is there already; give --overwrite",
               [&] { TokenFileWriter(folder / "a.bin", false, bytes); });
  { TokenFileWriter(folder / "a.bin", true, bytes).add("x", {}); }  // never finished
  EXPECT_EQ(read_file(folder / "a.json"), precious);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  TokenFileWriter writer(folder / "a.bin", true, bytes);
  writer.add("x", {});
  writer.finish();
  EXPECT_EQ(open_token_file(folder / "a.bin").info.tokens, 3);
  expect_error(Fault::input, "a.tokens: expected a name that ends in .bin",
               [&] { TokenFileWriter(folder / "a.tokens", false, bytes); });
}

TEST(TokenFile, DamageIsNamed) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& bytes, const std::string& info, const std::string& message) {
    write_file(folder / "a.bin", bytes);
    write_file(folder / "a.json", info);
    expect_error(Fault::input, message, [&] {
      const TokenFile file = open_token_file(folder / "a.bin");
      check_token_ids(file,
                      {0, std::visit([](auto ids) { return static_cast<std::int64_t>(ids.size()); }, file.tokens)});
    });
  };
  expect("", valid_info(), "a.bin: is empty; expected tokens");
  expect("abc", valid_info(), "a.bin: 3 bytes are not a multiple of 2, the size of a token: the file is cut short");
  expect("abcdef", valid_info("u32"), "a.bin: 6 bytes are not a multiple of 4");
  expect(std::string("\1\0\2\0\54\1", 6), valid_info(),
         "a.bin: token 2 (byte 4) is 300; expected less than the vocabulary, 300");
  expect(std::string("\1\0\0\0\0\0\1\0", 8), valid_info("u32"), "a.bin: token 1 (byte 4) is 65536; expected less");
  std::string counted = valid_info();
  counted.replace(counted.find('}'), 1, ", \"tokens\": 5}");
  expect(std::string(8, '\0'), counted, "a.bin: holds 4 tokens; a.json says 5");
  expect("ab", "{", "a.json: not a JSON object");
  fs::remove(folder / "a.json");
  expect_error(Fault::input, "a.bin: a.json is not there", [&] { open_token_file(folder / "a.bin"); });
  expect_error(Fault::input, "absent.bin: No such file", [&] { open_token_file(folder / "absent.bin"); });
  expect_error(Fault::input, "Is a directory", [&] { open_token_file(folder.path()); });
}

}  // namespace
}  // namespace headscope
