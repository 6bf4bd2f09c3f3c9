#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>

#include "core/atomic_file.h"
#include "formats/content_hash.h"
#include "formats/quantised.h"
#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

const std::filesystem::path gguf_oracles = HEADSCOPE_ORACLES;

// A file made by hand, number by number.
class GgufBytes {
 public:
  template <class Number>
  GgufBytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& text(std::string_view value) {
    number<std::uint64_t>(value.size());
    bytes_ += value;
    return *this;
  }
  GgufBytes& start(std::uint64_t tensors, std::uint64_t values, std::uint32_t version = 3) {
    bytes_ += "GGUF";
    return number(version).number(tensors).number(values);
  }
  template <class Number>
  GgufBytes& value(std::string_view key, GgufKind kind, Number given) {
    return text(key).number(static_cast<std::uint32_t>(kind)).number(given);
  }
  // Dimensions in the order of the file: the row's length first.
  GgufBytes& tensor(std::string_view name, std::vector<std::uint64_t> dimensions, std::uint32_t type,
                    std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) number(dimension);
    return number(type).number(offset);
  }
  GgufBytes& align(std::size_t to = 32) {
    bytes_.append((to - bytes_.size() % to) % to, '\0');
    return *this;
  }
  GgufBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

GgufContent parse_bytes(const std::string& bytes) {
  return parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf");
}

void expect_refused(const GgufBytes& file, const std::string& message) {
  expect_error(Fault::input, message, [&] { parse_bytes(file.bytes()); });
  expect_error(Fault::input, "x.gguf: ", [&] { parse_bytes(file.bytes()); });
}

std::vector<float> all_floats(const TensorView& tensor) {
  std::vector<float> values(value_count(tensor));
  read_floats(tensor, 0, values);
  return values;
}

// Bit for bit, but for the bits of a NaN.
void expect_same_floats(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(actual[i]) == std::bit_cast<std::uint32_t>(expected[i]);
    if (!same && !(std::isnan(actual[i]) && std::isnan(expected[i])) && different++ < 3)
      ADD_FAILURE() << "value " << i << " is " << actual[i] << "; expected " << expected[i];
  }
  EXPECT_EQ(different, 0U);
}

// The gguf package wrote the blocks and dequantised them.
TEST(Gguf, EveryTypeHasTheValuesOfTheGgufPackage) {
  const Gguf file(gguf_oracles / "types.gguf");
  const Safetensors expected(gguf_oracles / "types.safetensors");
  std::set<TensorType> seen;
  for (const TensorView& tensor : file.tensors()) {
    if (is_integer(tensor.type)) continue;
    SCOPED_TRACE(tensor.name);
    seen.insert(tensor.type);
    const TensorView& values = expected.get(tensor.name);
    EXPECT_EQ(tensor.shape, values.shape);
    expect_same_floats(all_floats(tensor), all_floats(values));
  }
  EXPECT_EQ(file.tensors().size(), expected.tensors().size() + 1);
  // Every type that is no integer; safetensors has no quantised ones.
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(tensor_types) - 9);
}

TEST(Gguf, RangesOfBlocksAreThoseOfTheWhole) {
  const Gguf file(gguf_oracles / "types.gguf");
  for (const TensorView& tensor : file.tensors()) {
    if (is_integer(tensor.type)) continue;
    SCOPED_TRACE(tensor.name);
    const std::vector<float> whole = all_floats(tensor);
    const std::size_t block = values_per_block(tensor.type);
    std::vector<float> pieces(whole.size());
    for (std::size_t first = 0, size = block; first < whole.size(); first += size, size += block) {
      size = std::min(size, whole.size() - first);
      read_floats(tensor, first, std::span(pieces).subspan(first, size));
    }
    expect_same_floats(pieces, whole);
    std::vector<float> beyond(block);
    expect_error(Fault::runtime, "internal check", [&] { read_floats(tensor, whole.size(), beyond); });
    if (block > 1) expect_error(Fault::runtime, "internal check", [&] { read_floats(tensor, 1, beyond); });
  }
}

TEST(Gguf, IntegersAreNoWeights) {
  const Gguf file(gguf_oracles / "types.gguf");
  const TensorView& tensor = file.tensors().back();
  EXPECT_THAT(read_integers(tensor), ElementsAre(std::numeric_limits<std::int32_t>::min(), 0, 7));
  expect_error(Fault::input, "tensor 'I32.all' holds I32; expected floating-point values", [&] { all_floats(tensor); });
  expect_error(Fault::input, "'F32.weights' holds F32; expected integers",
               [&] { read_integers(file.tensors().front()); });
}

// The numbers are those of tests/oracle/make_formats_oracles.py.
TEST(Gguf, MetadataOfEveryKind) {
  const Gguf file(gguf_oracles / "types.gguf");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(metadata.text("general.architecture"), "llama");
  EXPECT_EQ(metadata.integer("kinds.u8"), 255);
  EXPECT_EQ(metadata.integer("kinds.i8"), -128);
  EXPECT_EQ(metadata.integer("kinds.u16"), 65535);
  EXPECT_EQ(metadata.integer("kinds.i16"), -32768);
  EXPECT_EQ(metadata.integer("kinds.u32"), 4294967295);
  EXPECT_EQ(metadata.integer("kinds.i32"), -2147483648);
  EXPECT_EQ(metadata.integer("kinds.i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(metadata.number("kinds.u64"), 0x1p64);
  EXPECT_EQ(metadata.number("kinds.i16"), -32768.0);
  EXPECT_EQ(metadata.number("kinds.f32"), 1e-5F);
  EXPECT_EQ(metadata.number("kinds.f64"), 1e-300);
  EXPECT_TRUE(metadata.boolean("kinds.true"));
  EXPECT_FALSE(metadata.boolean("kinds.false"));
  EXPECT_EQ(metadata.text("kinds.text"), "Grüße\n");
  EXPECT_THAT(metadata.texts("kinds.texts"), ElementsAre("", "a", "Ġthe", std::string(300, 'x')));
  EXPECT_THAT(metadata.integers("kinds.integers"), ElementsAre(-1, 0, 2147483647));
  EXPECT_THAT(metadata.numbers("kinds.numbers"), ElementsAre(0.5, -0.25, 1e30F));
  EXPECT_THAT(metadata.booleans("kinds.booleans"), ElementsAre(true, false, true));
  EXPECT_EQ(metadata.keys().size(), 18U);
}

TEST(Gguf, AbsentValuesHaveADefaultOrAnErrorWithTheNearestKey) {
  const Gguf file(gguf_oracles / "types.gguf");
  const GgufMetadata& metadata = file.metadata();
  EXPECT_EQ(metadata.integer("no", 7), 7);
  EXPECT_EQ(metadata.number("no", 0.5), 0.5);
  EXPECT_EQ(metadata.text("no", "word"), "word");
  EXPECT_TRUE(metadata.boolean("no", true));
  EXPECT_EQ(metadata.integer("kinds.u8", 7), 255);
  expect_error(Fault::input, "types.gguf: there is no 'kinds.u9' in its metadata; did you mean 'kinds.u",
               [&] { (void)metadata.integer("kinds.u9"); });
}

TEST(Gguf, AValueOfAnotherKindIsNamed) {
  const Gguf file(gguf_oracles / "types.gguf");
  const GgufMetadata& metadata = file.metadata();
  const auto refuse = [](const std::string& message, auto action) { expect_error(Fault::input, message, action); };
  refuse("'kinds.text' is a text; expected an integer", [&] { (void)metadata.integer("kinds.text", 1); });
  refuse("'kinds.u64' is a 64-bit integer; expected an integer below 2^63",
         [&] { (void)metadata.integer("kinds.u64"); });
  refuse("'kinds.f32' is a 32-bit number; expected an integer", [&] { (void)metadata.integer("kinds.f32"); });
  refuse("'kinds.true' is true or false; expected a number", [&] { (void)metadata.number("kinds.true"); });
  refuse("'kinds.u8' is an 8-bit integer; expected true or false", [&] { (void)metadata.boolean("kinds.u8"); });
  refuse("'kinds.u8' is an 8-bit integer; expected a text", [&] { (void)metadata.text("kinds.u8"); });
  refuse("'kinds.u8' is an 8-bit integer; expected a list", [&] { (void)metadata.integers("kinds.u8"); });
  refuse("'kinds.texts' is a list of 4 values, each a text; expected one value",
         [&] { (void)metadata.text("kinds.texts"); });
  refuse("'kinds.texts' is a list of 4 values, each a text; expected integers",
         [&] { (void)metadata.integers("kinds.texts"); });
  refuse("each a 32-bit number; expected texts", [&] { (void)metadata.texts("kinds.numbers"); });
  refuse("each a text; expected numbers", [&] { (void)metadata.numbers("kinds.texts"); });
  refuse("expected values that are true or false", [&] { (void)metadata.booleans("kinds.integers"); });
}

// Closed forms: one block whose values are known.
TEST(Gguf, SmallBlocksByHand) {
  const auto dequantised = [](TensorType type, const std::string& block) {
    std::vector<float> values(values_per_block(type));
    dequantise(type, std::as_bytes(std::span(block)), values);
    return values;
  };
  const std::string one("\x00\x3c", 2), two("\x00\x40", 2);  // 1 and 2 in half precision
  std::vector<float> expected(32);
  std::string quants;
  for (int i = 0; i < 32; ++i) quants += static_cast<char>(i - 16);
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = 2.0F * static_cast<float>(i - 16);
  EXPECT_EQ(dequantised(TensorType::q8_0, two + quants), expected);
  // The low halves of the bytes come first: 3 sixteen times, then 12.
  for (int i = 0; i < 32; ++i) expected[static_cast<std::size_t>(i)] = i < 16 ? 3.0F : 12.0F;
  EXPECT_EQ(dequantised(TensorType::q4_1, one + std::string(2, '\0') + std::string(16, '\xc3')), expected);
}

TEST(Gguf, HalvesBelowTheNormalOnesAreExact) {
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(half_to_float(0x03ff), 1023 * 0x1p-24F);
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14F);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0F);
  EXPECT_EQ(half_to_float(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
}

GgufBytes small_file() {
  GgufBytes file;
  file.start(2, 2, 2).value("a.count", GgufKind::u32, std::uint32_t{5});
  file.text("a.words").number(std::uint32_t{9}).number(std::uint32_t{8}).number(std::uint64_t{2}).text("x").text("");
  file.tensor("w", {2, 3}, 0, 0).tensor("v", {32}, 8, 32);
  return file.align().raw(std::string(24, 'f')).align().raw(std::string(34, 'q'));
}

TEST(Gguf, ShapesAreRowByRow) {
  const std::string bytes = small_file().bytes();
  const GgufContent content = parse_bytes(bytes);
  EXPECT_EQ(content.version, 2U);
  ASSERT_EQ(content.tensors.size(), 2U);
  EXPECT_THAT(content.tensors[0].shape, ElementsAre(3, 2));
  EXPECT_EQ(content.tensors[0].bytes.size(), 24U);
  EXPECT_EQ(static_cast<char>(content.tensors[0].bytes.front()), 'f');
  EXPECT_EQ(content.tensors[1].type, TensorType::q8_0);
  EXPECT_EQ(static_cast<char>(content.tensors[1].bytes.back()), 'q');
  EXPECT_THAT(content.metadata.texts("a.words"), ElementsAre("x", ""));
}

TEST(Gguf, ACutFileIsRefusedAtEveryLength) {
  const std::string whole = small_file().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length)
    expect_error(Fault::input, "x.gguf: ", [&] { parse_bytes(whole.substr(0, length)); });
}

TEST(Gguf, TheAlignmentIsThatOfTheFile) {
  GgufBytes file;
  file.start(1, 1).value("general.alignment", GgufKind::u32, std::uint32_t{128}).tensor("w", {1}, 0, 128);
  file.align(128).raw(std::string(128, '\0')).raw("abcd");
  const GgufContent content = parse_bytes(file.bytes());
  EXPECT_EQ(static_cast<char>(content.tensors[0].bytes[0]), 'a');
  for (const std::uint32_t wrong : {0U, 24U}) {
    GgufBytes damaged;
    damaged.start(0, 1).value("general.alignment", GgufKind::u32, wrong);
    expect_refused(damaged, fmt::format("general.alignment is {}; expected a power of two", wrong));
  }
}

TEST(Gguf, DamageIsRefusedInOneLine) {
  constexpr std::uint64_t huge = ~std::uint64_t{0};
  expect_refused(GgufBytes().raw("GGML"), "is not a GGUF file");
  expect_refused(GgufBytes().start(0, 0, 1), "has version 1 of the GGUF format; known are 2 and 3");
  expect_refused(GgufBytes().start(0, 0, 3U << 24), "is a big-endian GGUF file");
  expect_refused(GgufBytes().start(0, huge), "it claims 18446744073709551615 metadata and has 24 bytes");
  expect_refused(GgufBytes().start(huge, 0), "it claims 18446744073709551615 tensors and has 24 bytes");
  expect_refused(GgufBytes().start(1U << 30, 0).raw(std::string(100, 'x')), "it claims 1073741824 tensors");
  expect_refused(GgufBytes().start(0, 1).number(huge).raw(std::string(20, 'k')), "a key at byte 32 needs");
  expect_refused(GgufBytes().start(0, 1).text("k").number(13U).raw("xxxx"), "'k' has the unknown kind 13");
  expect_refused(GgufBytes().start(0, 1).text("k").number(8U).number(huge), "a text at byte 45 needs");
  expect_refused(GgufBytes().start(0, 1).text("k").number(9U).number(4U).number(huge),
                 "'k' claims 18446744073709551615 values");
  expect_refused(GgufBytes().start(0, 1).text("k").number(9U).number(8U).number(huge),
                 "'k' claims 18446744073709551615 values");
  expect_refused(GgufBytes().start(0, 1).text("k").number(9U).number(9U).number(std::uint64_t{1}).raw("12345678"),
                 "'k' is a list of lists");
  expect_refused(GgufBytes().start(0, 2).value("k", GgufKind::u8, 'a').value("k", GgufKind::u8, 'b'),
                 "the key 'k' comes twice");
}

// A file of a model: its metadata, and a tensor of one value.
std::string part_bytes(std::uint16_t number, std::uint16_t count, const std::string& tensor, std::int32_t tensors = 2) {
  return GgufBytes()
      .start(1, 3)
      .value("split.no", GgufKind::u16, number)
      .value("split.count", GgufKind::u16, count)
      .value("split.tensors.count", GgufKind::i32, tensors)
      .tensor(tensor, {1}, 0, 0)
      .align()
      .number(1.5F + static_cast<float>(number))
      .bytes();
}

TEST(Gguf, FilesOfOneModelAreOpenedTogether) {
  const test::TemporaryFolder folder;
  const auto first = folder / "m-00001-of-00002.gguf", second = folder / "m-00002-of-00002.gguf";
  const auto refused = [&](const std::filesystem::path& file, const std::string& message) {
    expect_error(Fault::input, message, [&] { Gguf{file}; });
  };
  write_file(first, part_bytes(0, 2, "a"));
  refused(first, "m-00002-of-00002.gguf: is not there; m-00001-of-00002.gguf is one of 2 files of a model");
  write_file(second, part_bytes(1, 2, "b"));
  for (const auto& given : {first, second}) {
    const Gguf model(given);
    EXPECT_THAT(model.paths(), ElementsAre(first, second));
    EXPECT_EQ(model.path(), first);
    ASSERT_EQ(model.tensors().size(), 2U);
    EXPECT_THAT(all_floats(model.tensors()[0]), ElementsAre(1.5F));
    EXPECT_THAT(all_floats(model.tensors()[1]), ElementsAre(2.5F));
    EXPECT_EQ(model.hash(), content_hash(part_bytes(0, 2, "a") + part_bytes(1, 2, "b")));
  }
  write_file(folder / "other.gguf", part_bytes(1, 2, "b"));
  refused(folder / "other.gguf", "expected a name that ends with -00002-of-00002.gguf");
  write_file(second, part_bytes(1, 2, "a"));
  refused(first, "m-00002-of-00002.gguf: tensor 'a' is in another file of the model, too");
  write_file(second, part_bytes(0, 2, "b"));
  refused(first, "m-00002-of-00002.gguf: is file 1 of 2 of a model; its name says 2 of 2");
  write_file(second, part_bytes(1, 3, "b"));
  refused(first, "m-00002-of-00002.gguf: is file 2 of 3 of a model; its name says 2 of 2");
  write_file(second, part_bytes(2, 2, "b"));
  refused(first, "split.no is 2 and split.count is 2; expected a number below a count of at most 99999");
  write_file(first, part_bytes(0, 2, "a", 3));
  write_file(second, part_bytes(1, 2, "b", 3));
  refused(first, "the 2 files of the model have 2 tensors; split.tensors.count says 3");
}

TEST(Gguf, DamagedTensorsAreNamed) {
  const std::string values(64, 'v');
  const auto refused = [&](std::vector<std::uint64_t> dimensions, std::uint32_t type, std::uint64_t offset,
                           const std::string& message) {
    SCOPED_TRACE(message);
    expect_refused(GgufBytes().start(1, 0).tensor("w", dimensions, type, offset).align().raw(values), message);
  };
  refused({2, 2, 2, 2, 2}, 0, 0, "tensor 'w' claims 5 dimensions; at most 4");
  refused({17}, 0, 0, "tensor 'w' of 68 bytes starts at 0; the file has 64 behind its header");
  refused({1}, 0, 64, "tensor 'w' of 4 bytes starts at 64; the file has 64");
  refused({1}, 0, 4, "tensor 'w' starts at 4, which is not a multiple of 32");
  refused({1}, 0, ~std::uint64_t{31}, "tensor 'w' of 4 bytes starts at 18446744073709551584");
  refused({1ULL << 32, 1ULL << 32}, 0, 0, "tensor 'w' of F32 cannot have the shape [4294967296, 4294967296]");
  refused({1ULL << 63}, 0, 0, "tensor 'w' has the dimension 9223372036854775808");
  refused({1ULL << 62}, 0, 0, "tensor 'w' of F32 cannot have the shape");
  refused({31}, 8, 0, "tensor 'w' of Q8_0 cannot have the shape [31]: a row is a multiple of 32 values");
  refused({}, 8, 0, "tensor 'w' of Q8_0 cannot have the shape []");
  refused({32}, 16, 0, "tensor 'w' has the type IQ2_XXS, which cannot be read; known are F32, F16, Q4_0");
  refused({32}, 77, 0, "tensor 'w' has the type with the unknown number 77, which cannot be read");
  const auto two = [&](const char* second, std::uint64_t offset) {
    return GgufBytes().start(2, 0).tensor("w", {9}, 0, 0).tensor(second, {1}, 0, offset).align().raw(values);
  };
  expect_refused(two("w", 32), "tensor 'w' comes twice");
  expect_refused(two("v", 32), "the tensors 'w' and 'v' overlap");
  EXPECT_EQ(parse_bytes(GgufBytes().start(1, 0).tensor("w", {}, 0, 32).align().raw(values).bytes()).tensors.size(), 1U);
}

TEST(Gguf, AFileIsKnownByItsFirstBytes) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", small_file().bytes());
  write_file(folder / "b", "GGU");
  EXPECT_TRUE(is_gguf(folder / "a"));
  EXPECT_FALSE(is_gguf(folder / "b"));
  EXPECT_FALSE(is_gguf(folder / "no"));
  EXPECT_FALSE(is_gguf(folder.path()));
  EXPECT_EQ(Gguf(folder / "a").hash(), content_hash(small_file().bytes()));
}

}  // namespace
}  // namespace headscope
