#include "tokenizer/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "tokenizer/tokenizer_json.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using TokenIds = std::vector<std::uint32_t>;

// A GGUF file without tensors, whose metadata are those of a tokenizer.
class TokenizerBytes {
 public:
  TokenizerBytes& text(std::string_view key, std::string_view value) {
    start(key, GgufKind::text);
    add_text(value);
    return *this;
  }
  TokenizerBytes& flag(std::string_view key, bool value) {
    start(key, GgufKind::boolean);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  TokenizerBytes& id(std::string_view key, std::uint32_t value) {
    start(key, GgufKind::u32);
    add_number(value);
    return *this;
  }
  TokenizerBytes& texts(std::string_view key, const std::vector<std::string>& values) {
    start_list(key, GgufKind::text, values.size());
    for (const std::string& value : values) add_text(value);
    return *this;
  }
  template <class Number>
  TokenizerBytes& numbers(std::string_view key, GgufKind kind, const std::vector<Number>& values) {
    start_list(key, kind, values.size());
    for (const Number value : values) add_number(value);
    return *this;
  }
  [[nodiscard]] std::string bytes() const {
    TokenizerBytes whole;
    whole.bytes_ = "GGUF";
    whole.add_number(std::uint32_t{3});
    whole.add_number(std::uint64_t{0});
    whole.add_number(count_);
    return whole.bytes_ + bytes_;
  }

 private:
  template <class Number>
  void add_number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add_text(std::string_view value) {
    add_number(std::uint64_t{value.size()});
    bytes_ += value;
  }
  void start(std::string_view key, GgufKind kind) {
    ++count_;
    add_text("tokenizer.ggml." + std::string(key));
    add_number(static_cast<std::uint32_t>(kind));
  }
  void start_list(std::string_view key, GgufKind kind, std::size_t count) {
    start(key, GgufKind::list);
    add_number(static_cast<std::uint32_t>(kind));
    add_number(std::uint64_t{count});
  }

  std::string bytes_;
  std::uint64_t count_ = 0;
};

TokenizerBytes byte_level() {
  return TokenizerBytes()
      .text("model", "gpt2")
      .text("pre", "smollm")
      .texts("tokens", {"<end>", "a", "b", "ab", "1", "\xC4\xA0", "<tool>", "[PAD7]"})
      .numbers<std::int32_t>("token_type", GgufKind::i32, {3, 1, 1, 1, 1, 1, 4, 5})
      .texts("merges", {"a b"})
      .id("eos_token_id", 0);
}

TokenizerBytes sentencepiece() {
  return TokenizerBytes()
      .text("model", "llama")
      .texts("tokens", {"<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "\xE2\x96\x81", "a", "b", "ab",
                        "\xE2\x96\x81"
                        "a"})
      .numbers<std::int32_t>("token_type", GgufKind::i32, {2, 3, 3, 6, 6, 1, 1, 1, 1, 1});
}

Tokenizer tokenizer_of(const std::string& bytes) {
  const GgufContent content = parse_gguf(std::as_bytes(std::span(bytes)), "t.gguf");
  return Tokenizer(parse_gguf_tokenizer(content.metadata, "t.gguf"), "t");
}

TEST(GgufTokenizer, ByteLevelIsReadAndUsed) {
  Tokenizer tokenizer = tokenizer_of(byte_level().bytes());
  EXPECT_EQ(tokenizer.encode("ab 11<end>ab<tool>b"), (TokenIds{3, 5, 4, 4, 0, 3, 6, 2}));
  EXPECT_EQ(tokenizer.decode(TokenIds{3, 5, 4, 0, 6}), "ab 1<tool>");
  EXPECT_EQ(tokenizer.end_of_text(), 0U);
  EXPECT_EQ(tokenizer.begin_of_text(), std::nullopt);
  EXPECT_EQ(tokenizer.vocabulary(), 7);  // [PAD7] fills the embedding
  EXPECT_TRUE(tokenizer.warnings().empty());
}

TEST(GgufTokenizer, TheFileSaysWhatATextGets) {
  const auto encode = [](const TokenizerBytes& file) { return tokenizer_of(file.bytes()).encode("b"); };
  EXPECT_EQ(encode(byte_level().flag("add_eos_token", true)), (TokenIds{2, 0}));
  EXPECT_EQ(encode(byte_level().id("bos_token_id", 6).flag("add_bos_token", true)), (TokenIds{6, 2}));
  EXPECT_EQ(encode(byte_level().id("bos_token_id", 6)), (TokenIds{2}));
}

TEST(GgufTokenizer, ScoresOrderTheMergesOfSentencepiece) {
  const auto encode = [](const std::vector<float>& scores) {
    return tokenizer_of(sentencepiece().numbers("scores", GgufKind::f32, scores).bytes()).encode("ab\xC3\xA9");
  };
  EXPECT_EQ(encode({0, 0, 0, 0, 0, -9, -9, -9, -1, -2}), (TokenIds{1, 5, 8, 3, 4}));
  EXPECT_EQ(encode({0, 0, 0, 0, 0, -9, -9, -9, -2, -1}), (TokenIds{1, 9, 7, 3, 4}));
  EXPECT_EQ(encode({0, 0, 0, 0, 0, -9, -9, -9, -1, -1}), (TokenIds{1, 5, 8, 3, 4}));  // equal: the lower id
}

// Spaces stay, which decoding takes from the beginning of a text.
TEST(GgufTokenizer, TheBytesOfATokenAreThoseInTheMiddleOfAText) {
  const std::vector<float> scores{0, 0, 0, 0, 0, -9, -9, -9, -1, -2};
  const Tokenizer pieces = tokenizer_of(sentencepiece().numbers("scores", GgufKind::f32, scores).bytes());
  const char* expected[] = {"<unk>", "<s>", "</s>", "\xC3", "\xA9", " ", "a", "b", "ab", " a"};
  for (std::uint32_t id = 0; id < 10; ++id) EXPECT_EQ(pieces.token_bytes(id), expected[id]) << id;
  EXPECT_EQ(pieces.token_bytes(10), std::nullopt);
  const Tokenizer byte_pieces = tokenizer_of(byte_level().bytes());
  EXPECT_EQ(byte_pieces.token_bytes(5), " ");
  EXPECT_EQ(byte_pieces.token_bytes(6), "<tool>");
}

TEST(GgufTokenizer, EqualScoresAreSaid) {
  const std::vector<float> scores(10, -1000);
  const Tokenizer tokenizer = tokenizer_of(sentencepiece().numbers("scores", GgufKind::f32, scores).bytes());
  ASSERT_EQ(tokenizer.warnings().size(), 1U);
  EXPECT_NE(tokenizer.warnings()[0].find("all tokens have the score -1000"), std::string::npos);
}

TEST(GgufTokenizer, EveryTruncationIsRefused) {
  for (const std::string& whole :
       {byte_level().bytes(),
        sentencepiece().numbers<float>("scores", GgufKind::f32, std::vector<float>(10)).bytes()}) {
    tokenizer_of(whole);
    for (std::size_t size = 0; size < whole.size(); ++size)
      expect_error(Fault::input, "t.gguf: ", [&] { tokenizer_of(whole.substr(0, size)); });
  }
}

TEST(GgufTokenizer, AFileIsNamedByItsTokenizerAlone) {
  const TemporaryFolder folder;
  const auto name_of = [&](const TokenizerBytes& file) {
    write_file(folder / "m.gguf", file.bytes());
    return open_tokenizer(folder / "m.gguf").name();
  };
  const std::string name = name_of(byte_level());
  EXPECT_EQ(name.find("GGUF tokenizer "), 0U);
  EXPECT_EQ(name_of(byte_level()), name);
  EXPECT_NE(name_of(byte_level().id("bos_token_id", 6)), name);
  expect_error(Fault::input, "tokenizer.json: is not there, but m.gguf is; give that file itself",
               [&] { open_tokenizer(folder.path()); });
  write_file(folder / "m.gguf", "{}");
  expect_error(Fault::input, "m.gguf: is not a GGUF file", [&] { open_tokenizer(folder / "m.gguf"); });
}

}  // namespace
}  // namespace headscope
