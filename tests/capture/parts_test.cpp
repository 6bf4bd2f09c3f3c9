#include "capture/parts.h"

#include <gtest/gtest.h>

#include "formats/capture_writer.h"
#include "formats/captured_vectors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

constexpr std::int64_t dim = 3;

// A number that says whose it is.
float value(std::int64_t layer, char kind, std::int64_t head, std::int64_t example, std::int64_t position,
            std::int64_t i) {
  return static_cast<float>(layer * 100000 + (kind == 'k' ? 50000 : 0) + head * 10000 + example * 100 + position) +
         0.25F * static_cast<float>(i);
}

std::vector<CapturedSide> sides() {
  return {{2, 'q', {0, 3}, {}}, {2, 'k', {1}, {}}, {5, 'q', {0, 3}, 64}};
}

CaptureOptions options() {
  CaptureOptions all;
  all.sampler = Sampler::all;
  all.bucket_size = 4;
  return all;
}

CapturedText text(std::int64_t example, std::size_t length) {
  std::vector<std::uint32_t> tokens;
  for (std::size_t i = 0; i < length; ++i)
    tokens.push_back(static_cast<std::uint32_t>(example * 10 + static_cast<std::int64_t>(i)));
  return {example, tokens};
}

// Texts are written last to first: a batch has them in any order.
void write_part(const std::filesystem::path& file, const std::vector<CapturedText>& texts, const PartState& state) {
  const auto of = sides();
  PartWriter part(file, of, dim, PositionSampler(options()), texts, state);
  for (std::size_t side = of.size(); side-- > 0;)
    for (std::size_t t = texts.size(); t-- > 0;)
      for (std::size_t head = 0; head < of[side].heads.size(); ++head) {
        std::vector<float> vectors;
        for (std::size_t position = 0; position < part.rows(side, t); ++position)
          for (std::int64_t i = 0; i < dim; ++i)
            vectors.push_back(value(of[side].layer, of[side].kind, of[side].heads[head], texts[t].example_id,
                                    static_cast<std::int64_t>(position), i));
        part.write(side, t, head, vectors);
      }
  part.commit();
}

TEST(CaptureParts, BecomeOneFileForEachHeadInTheOrderOfTexts) {
  const TemporaryFolder folder;
  const auto parts = folder / "parts";
  write_part(part_file(parts, 0), {text(0, 5), text(2, 1)}, {"m", "t", "o", 0, 0, 3, 2, 6});
  write_part(part_file(parts, 1), {text(7, 9)}, {"m", "t", "o", 1, 3, 8, 3, 15});
  const PartsSoFar found = parts_in(parts);
  EXPECT_EQ(found.count, 2U);
  EXPECT_EQ(found.state->next_example, 8);
  EXPECT_EQ(found.state->text_tokens, 15);

  const auto piece = [](std::uint32_t token) { return "t" + std::to_string(token); };
  const JoinedHeads joined = join_parts(parts, folder / "out", sides(), dim, PositionSampler(options()), piece, [] {});
  EXPECT_EQ(joined.heads, 5);
  EXPECT_EQ(joined.rows, 75);
  EXPECT_EQ(joined.rows_by_bucket, (std::map<std::int64_t, std::int64_t>{{0, 45}, {1, 25}, {2, 5}}));
  for (const CapturedSide& side : sides())
    for (const std::int64_t head : side.heads) {
      const CapturedVectors read = read_captured_vectors(captured_file(folder / "out", side.layer, head, side.kind));
      ASSERT_EQ(read.rows, 15U);
      std::size_t row = 0;
      for (const auto& [example, length] : {std::pair{0, 5}, {2, 1}, {7, 9}})
        for (std::int64_t position = 0; position < length; ++position, ++row) {
          EXPECT_EQ(read.example_id[row], example);
          EXPECT_EQ(read.position[row], position);
          EXPECT_EQ(read.bucket[row], position / 4);
          EXPECT_EQ(std::isnan(read.sliding_window[row]), !side.sliding_window);
          if (side.sliding_window) {
            EXPECT_EQ(read.sliding_window[row], 64);
          }
          for (std::int64_t i = 0; i < dim; ++i)
            EXPECT_EQ(read.vector32[row * dim + static_cast<std::size_t>(i)],
                      value(side.layer, side.kind, head, example, position, i));
        }
    }
}

TEST(CaptureParts, APartThatWasNotCommittedIsNotThere) {
  const TemporaryFolder folder;
  const auto parts = folder / "parts";
  {
    const std::vector<CapturedText> texts = {text(0, 5)};
    PartWriter part(part_file(parts, 0), sides(), dim, PositionSampler(options()), texts,
                    {"m", "t", "o", 0, 0, 1, 1, 5});
  }
  EXPECT_EQ(parts_in(parts).count, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(parts));
}

TEST(CaptureParts, PartsOfOtherCapturesOrInAnotherOrderAreRefused) {
  const PartState first{"m", "t", "o", 0, 0, 3, 2, 6};
  for (const PartState& second : {PartState{"m", "t", "o", 0, 0, 3, 2, 6}, PartState{"m", "t", "o", 1, 4, 8, 3, 15},
                                  PartState{"n", "t", "o", 1, 3, 8, 3, 15}, PartState{"m", "u", "o", 1, 3, 8, 3, 15},
                                  PartState{"m", "t", "p", 1, 3, 8, 3, 15}}) {
    const TemporaryFolder folder;
    write_part(part_file(folder.path(), 0), {text(0, 5), text(2, 1)}, first);
    write_part(part_file(folder.path(), 1), {text(7, 9)}, second);
    expect_error(Fault::input, "part-00001.safetensors: does not follow", [&] { parts_in(folder.path()); });
  }
}

TEST(CaptureParts, AFileThatIsNoPartIsRefused) {
  const TemporaryFolder folder;
  const std::vector<float> one = {1};
  const std::vector<TensorView> tensors = {{"l02q", TensorType::f32, {1}, std::as_bytes(std::span(one))}};
  write_safetensors(part_file(folder.path(), 0), tensors, {{"model", "m"}});
  expect_error(Fault::input, "part-00000.safetensors: is no part of a capture: it says nothing of 'tokens'",
               [&] { parts_in(folder.path()); });
  write_safetensors(part_file(folder.path(), 0), tensors,
                    {{"model", "m"}, {"tokens", "t"}, {"options", "o"}, {"part", "x"}});
  expect_error(Fault::input, "'part' is no number", [&] { parts_in(folder.path()); });
}

TEST(CaptureWriter, BytesDoNotDependOnHowRowsCame) {
  const TemporaryFolder folder;
  constexpr std::size_t rows = 3000, wide = 4096;  // groups of 1024 rows
  std::vector<std::int32_t> numbers(rows);
  std::vector<float> vectors(rows * wide);
  for (std::size_t i = 0; i < rows; ++i) numbers[i] = static_cast<std::int32_t>(i);
  for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = static_cast<float>(i % 1009);
  const auto write = [&](const char* name, std::size_t step) {
    CaptureWriter writer(folder / name, {wide, std::nullopt, false});
    for (std::size_t first = 0; first < rows; first += step) {
      const std::size_t count = std::min(step, rows - first);
      const auto part = std::span<const std::int32_t>(numbers).subspan(first, count);
      writer.append({part, part, part, std::span<const float>(vectors).subspan(first * wide, count * wide)});
    }
    writer.commit();
    return read_file(folder / name);
  };
  const std::string at_once = write("one.parquet", rows);
  EXPECT_EQ(at_once, write("many.parquet", 7));
  EXPECT_EQ(at_once, write("some.parquet", 1024));
  EXPECT_EQ(read_captured_vectors(folder / "one.parquet").vector32.back(), vectors.back());
}

}  // namespace
}  // namespace headscope
