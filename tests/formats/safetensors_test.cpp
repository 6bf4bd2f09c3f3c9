#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/atomic_file.h"
#include "formats/content_hash.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/shared_folder.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

std::span<const std::byte> as_span(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A file made by hand, not by our writer.
std::string file_of(const std::string& header, const std::string& values) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + values;
}

SafetensorsContent parse(const std::string& bytes) {
  return parse_safetensors(as_span(bytes), "x.safetensors");
}

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Safetensors, EveryTypeComesBack) {
  const TemporaryFolder folder;
  std::string values(96, '\0');
  std::iota(values.begin(), values.end(), '\1');
  constexpr std::array<std::size_t, 13> sizes = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1};  // in the order of TensorType
  std::vector<TensorView> tensors;
  for (std::size_t type = 0; type < sizes.size(); ++type)
    tensors.push_back({fmt::format("layers.{}.\"ü\"", type),
                       static_cast<TensorType>(type),
                       {2, 3},
                       as_span(values).first(6 * sizes[type])});
  tensors.push_back({"one value", TensorType::f32, {}, as_span(values).first(4)});
  tensors.push_back({"none", TensorType::f32, {0, 7}, {}});
  const TensorMetadata metadata = {{"format", "pt"}, {"text", "line\n\"quoted\""}};
  const std::string hash = write_safetensors(folder / "a", tensors, metadata);

  Safetensors read_once(folder / "a");
  const Safetensors again = std::move(read_once);  // views outlive a move
  EXPECT_EQ(again.metadata(), metadata);
  EXPECT_EQ(again.hash(), hash);
  EXPECT_EQ(again.hash(), content_hash(as_span(read_file(folder / "a"))));
  ASSERT_EQ(again.tensors().size(), tensors.size());
  for (const TensorView& tensor : tensors) {
    const TensorView& read = again.get(tensor.name);
    EXPECT_EQ(read.type, tensor.type);
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
  }
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(Safetensors, WritesTheBytesThatTheFormatAsksFor) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", std::vector<TensorView>{{"b", TensorType::u8, {3}, as_span("xyz")},
                                                          {"a", TensorType::i16, {1, 2}, as_span("1234")}});
  const std::string header = R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                             R"("a":{"dtype":"I16","shape":[1,2],"data_offsets":[3,7]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(read_file(folder / "a"), file_of(padded, "xyz1234"));
  write_safetensors(folder / "empty", {});
  EXPECT_EQ(read_file(folder / "empty"), file_of("{}      ", ""));
}

TEST(Safetensors, NamesMayComeInAnyOrderAndTensorsComeInThatOfTheirBytes) {
  const std::string bytes = file_of(R"({"z":{"shape":[2],"data_offsets":[4,6],"dtype":"U8"},"__metadata__":{"k":"v"},
     "y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"n":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}  )",
                                    "abcdef");
  const auto content = parse(bytes);
  ASSERT_EQ(content.tensors.size(), 3U);
  EXPECT_EQ(content.tensors[0].name, "y");
  EXPECT_EQ(content.tensors[1].name, "n");
  EXPECT_EQ(content.tensors[2].name, "z");
  EXPECT_EQ(static_cast<char>(content.tensors[2].bytes[0]), 'e');
  EXPECT_EQ(content.metadata.at("k"), "v");
}

// tests/oracle/make_model_oracles.py has a writer of its own. The first step of AdamW is decay and then the sign of the
// gradient, nearly: its moments are the gradient and its square.
TEST(Safetensors, ReadsAFileOfAnotherWriter) {
  const Safetensors file(std::filesystem::path(HEADSCOPE_ORACLES) / "optimizers.safetensors");
  const auto values = [&](const char* name) {
    const TensorView& tensor = file.get(name);
    EXPECT_EQ(tensor.type, TensorType::f64);
    std::vector<double> read(tensor.bytes.size() / sizeof(double));
    std::memcpy(read.data(), tensor.bytes.data(), tensor.bytes.size());
    return read;
  };
  const auto initial = values("gain.initial"), gradients = values("gain.gradients"), after = values("gain.after");
  EXPECT_THAT(file.get("gain.after").shape, ElementsAre(10, 48));
  const double rate = std::stod(file.metadata().at("adamw_lr")), decay = std::stod(file.metadata().at("weight_decay"));
  for (std::size_t i = 0; i < initial.size(); ++i) {
    const double step = rate * gradients[i] / (std::abs(gradients[i]) + 1e-8);
    EXPECT_NEAR(after[i], initial[i] * (1 - rate * decay) - step, 1e-15);  // some roundings of numbers below 0.1
  }
}

TEST(Safetensors, ReadsAPublishedFile) {
  const auto file = test::shared_folder() / "reference/models/tiny/llama/model.safetensors";
  HEADSCOPE_NEEDS_SHARED(file);
  const Safetensors model(file);
  const TensorView& embedding = model.get("model.embed_tokens.weight");
  EXPECT_EQ(embedding.type, TensorType::f32);
  ASSERT_EQ(embedding.shape.size(), 2U);
  EXPECT_EQ(embedding.bytes.size(), static_cast<std::size_t>(4 * embedding.shape[0] * embedding.shape[1]));
  float largest = 0;
  for (std::size_t i = 0; i + 4 <= embedding.bytes.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, embedding.bytes.data() + i, sizeof value);
    largest = std::max(largest, std::abs(value));
  }
  EXPECT_GT(largest, 0.01F);
  EXPECT_LT(largest, 10.0F);
}

TEST(Safetensors, AnAbsentTensorIsNamedWithTheNearest) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", std::vector<TensorView>{{"layers.0.weight", TensorType::u8, {1}, as_span("x")}});
  const Safetensors file(folder / "a");
  expect_error(Fault::input, "a: there is no tensor 'layer.0.weight'; did you mean 'layers.0.weight'?",
               [&] { (void)file.get("layer.0.weight"); });
}

TEST(Safetensors, AFullDiskIsReportedAndLeavesNothingNew) {
  const TemporaryFolder folder;
  const std::string values(1 << 22, 'v');
  const std::vector<TensorView> tensors = {{"w", TensorType::u8, {1 << 22}, as_span(values)}};
  write_file(folder / "a", "old");
  const test::FileSizeLimit limit(3 << 20);
  expect_error(Fault::runtime, "a: File too large while writing; nothing was changed",
               [&] { write_safetensors(folder / "a", tensors); });
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
  expect_error(Fault::runtime, "No such file or directory", [&] { write_safetensors(folder / "no" / "b", tensors); });
}

TEST(Safetensors, RefusesToWriteWhatCannotBeReadBack) {
  const TemporaryFolder folder;
  const auto write = [&](std::vector<TensorView> tensors) {
    return [&folder, tensors] { write_safetensors(folder / "a", tensors); };
  };
  const TensorView one = {"w", TensorType::u8, {1}, as_span("x")};
  expect_error(Fault::runtime, "tensor 'w' comes twice", write({one, one}));
  expect_error(Fault::runtime, "tensor 'w' [2] of U8 has 1 bytes", write({{"w", TensorType::u8, {2}, as_span("x")}}));
  expect_error(Fault::runtime, "'__metadata__' comes twice", write({{"__metadata__", TensorType::u8, {0}, {}}}));
  expect_error(Fault::runtime, "is not UTF-8", write({{"\xff", TensorType::u8, {0}, {}}}));
  EXPECT_EQ(entries(folder.path()), 0U);
}

TEST(Safetensors, ACutFileIsRefusedAtEveryLength) {
  const std::string whole = file_of(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "abcdefgh");
  EXPECT_EQ(parse(whole).tensors.size(), 1U);
  for (std::size_t length = 0; length < whole.size(); ++length)
    expect_error(Fault::input, "x.safetensors: ", [&] { parse(whole.substr(0, length)); });
  expect_error(Fault::input, "1 bytes follow the last tensor", [&] { parse(whole + "x"); });
}

struct Damage {
  const char* header;
  const char* message;
};

// Behind each header lie eight bytes.
constexpr Damage damages[] = {
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "'w' ends at byte 0, before its start 8"},
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", "'w' ends at byte 9; the file has 8"},
    {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "'w' starts at byte 4, the tensors before it end at 0"},
    {R"({"v":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
     "'w' starts at byte 4, the tensors before it end at 5"},
    {R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "'w' has 8 bytes; F32 of shape [3]"},
    {R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", "'w' has 8 bytes"},
    {R"({"w":{"dtype":"F32","shape":[4611686018427387906],"data_offsets":[0,8]}})", "'w' has 8 bytes"},
    {R"({"w":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8]}})", "holds the dimension 92233720"},
    {R"({"w":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}})", "'w' holds the number 1844674"},
    {R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "'w' holds the number -2; expected whole numbers"},
    {R"({"w":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "'w' holds the number 2; expected whole numbers"},
    {R"({"w":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "'w' holds a list; expected whole numbers"},
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "'w' holds 1 offsets; expected two"},
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4,8]}})", "'w' holds 3 offsets; expected two"},
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0.0,8]}})", "'w' holds the number 0.0; expected two"},
    {R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", "'w' has the unknown type 'F31'"},
    {R"({"w":{"dtype":null,"shape":[2],"data_offsets":[0,8]}})", "'w' holds null; expected the name of a type"},
    {R"({"w":{"dtype":"F32","shape":[2]}})", "'w' lacks dtype, shape or data_offsets"},
    {R"({"w":{"dtype":"F32","shape":[2],"shape":[2],"data_offsets":[0,8]}})", "'w' has an unexpected 'shape'"},
    {R"({"w":{"dtype":"F32","shape":[2],"x":{"y":[{}]},"data_offsets":[0,8]}})", "'w' has an unexpected 'x'"},
    {R"({"w":[[[[[[]]]]]]})", "'w' holds a list; expected an object"},
    {R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
     "tensor 'w' comes twice"},
    {R"({"__metadata__":{"a":1}})", "__metadata__ holds the number 1; expected texts"},
    {R"({"__metadata__":{"a":"1","a":"2"}})", "__metadata__ 'a' comes twice"},
    {R"({"__metadata__":[]})", "__metadata__ holds a list; expected texts"},
    {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} {})", "the header is not valid JSON at its byte 56"},
    {R"({"w)", "the header is not valid JSON"},
    {"{\"\xff\":{}}", "the header is not valid JSON"},
    {R"([])", "its header does not start with '{'"},
    {R"({})", "8 bytes follow the last tensor"},
};

TEST(Safetensors, ADamagedHeaderIsRefusedInOneLineThatNamesFileAndTensor) {
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.header);
    expect_error(Fault::input, damage.message, [&] { parse(file_of(damage.header, "abcdefgh")); });
    expect_error(Fault::input, "x.safetensors: ", [&] { parse(file_of(damage.header, "abcdefgh")); });
  }
  expect_error(Fault::input, "holds a zero byte", [&] { parse(file_of(std::string("{}\0", 3), "")); });
}

TEST(Safetensors, HostileLengthsAndDepthsTakeNoMemory) {
  std::string bytes = file_of("{}", "");
  for (const std::uint64_t length : {std::uint64_t{100'000'001}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    std::memcpy(bytes.data(), &length, sizeof length);
    expect_error(Fault::input, "it claims a header of", [&] { parse(bytes); });
  }
  expect_error(Fault::input, "holds an object",
               [] { parse(file_of(R"({"w":{"dtype":)" + std::string(1 << 20, '{'), "")); });
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  expect_error(Fault::input, "more than 64 dimensions",
               [&] { parse(file_of(R"({"w":{"dtype":"U8","shape":[)" + ones + "]", "")); });
  const std::string name(1 << 20, 'n');
  try {
    parse(file_of("{\"" + name + "\":1}", ""));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_LT(std::strlen(error.what()), 400U);
  }
}

}  // namespace
}  // namespace headscope
