#include "capture/parts.h"

#include <algorithm>
#include <cstring>

#include "core/parallel.h"
#include "formats/capture_writer.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

std::string side_name(const CapturedSide& side) {
  return fmt::format("l{:02}{}", side.layer, side.kind);
}

// Tensors of a side, in this order.
constexpr std::size_t tensors_of_a_side = 4;
constexpr std::array<const char*, tensors_of_a_side> tensor_endings = {"", ".example_id", ".position", ".token"};

TensorMetadata metadata_of(const PartState& state) {
  return {{"model", state.model_hash},
          {"tokens", state.tokens_hash},
          {"options", state.options_hash},
          {"part", std::to_string(state.part)},
          {"first_example", std::to_string(state.first_example)},
          {"next_example", std::to_string(state.next_example)},
          {"texts", std::to_string(state.texts)},
          {"text_tokens", std::to_string(state.text_tokens)}};
}

PartState state_of(const Safetensors& part, const fs::path& file) {
  const auto text = [&](const char* name) {
    const auto found = part.metadata().find(name);
    if (found == part.metadata().end())
      fail_input("{}: is no part of a capture: it says nothing of '{}'; start again with --overwrite", file.string(),
                 name);
    return found->second;
  };
  const auto number = [&](const char* name) {
    std::int64_t value = 0;
    if (!parse_value(text(name), value) || value < 0)
      fail_input("{}: is damaged: '{}' is no number; start again with --overwrite", file.string(), name);
    return value;
  };
  return {.model_hash = text("model"),
          .tokens_hash = text("tokens"),
          .options_hash = text("options"),
          .part = number("part"),
          .first_example = number("first_example"),
          .next_example = number("next_example"),
          .texts = number("texts"),
          .text_tokens = number("text_tokens")};
}

// The numbers of a tensor; a file may start them at any byte.
template <class T>
std::vector<T> numbers_of(const TensorView& tensor, TensorType type, const fs::path& file) {
  if (tensor.type != type || tensor.shape.size() != 1)
    fail_input("{}: {} is {} of shape {}; start again with --overwrite", file.string(), tensor.name,
               type_name(tensor.type), shape_text(tensor.shape));
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

// The rows of one side in one part, checked.
struct SideRows {
  std::vector<std::int32_t> example_id, position, bucket;
  std::vector<std::uint32_t> token;
  std::span<const std::byte> vectors;  // [heads, rows, dim] float32

  [[nodiscard]] std::size_t rows() const { return position.size(); }
};

SideRows rows_of(const Safetensors& part, const fs::path& file, const CapturedSide& side, std::int64_t dim,
                 const PositionSampler& sampler) {
  const std::string name = side_name(side);
  SideRows rows;
  rows.example_id = numbers_of<std::int32_t>(part.get(name + tensor_endings[1]), TensorType::i32, file);
  rows.position = numbers_of<std::int32_t>(part.get(name + tensor_endings[2]), TensorType::i32, file);
  rows.token = numbers_of<std::uint32_t>(part.get(name + tensor_endings[3]), TensorType::u32, file);
  const TensorView& vectors = part.get(name);
  const std::vector<std::int64_t> shape = {std::ssize(side.heads), std::ssize(rows.position), dim};
  if (vectors.type != TensorType::f32 || vectors.shape != shape || rows.example_id.size() != rows.rows() ||
      rows.token.size() != rows.rows())
    fail_input("{}: {} is {} of shape {} with {} positions; expected F32 of {}; start again with --overwrite",
               file.string(), name, type_name(vectors.type), shape_text(vectors.shape), rows.rows(), shape_text(shape));
  rows.vectors = vectors.bytes;
  for (const std::int32_t position : rows.position) rows.bucket.push_back(sampler.bucket(position));
  return rows;
}

// The rows of one of the side's heads.
void append(CaptureWriter& writer, const SideRows& rows, std::size_t head, std::int64_t dim,
            const std::function<std::string(std::uint32_t)>& piece) {
  constexpr std::size_t most = 4096;  // rows at a time: the bytes of the file do not depend on it
  const auto width = static_cast<std::size_t>(dim);
  std::vector<float> vectors;
  std::vector<std::string> texts;
  for (std::size_t first = 0; first < rows.rows(); first += most) {
    const std::size_t count = std::min(most, rows.rows() - first), from = (head * rows.rows() + first) * width;
    vectors.resize(count * width);
    std::memcpy(vectors.data(), rows.vectors.data() + from * sizeof(float), vectors.size() * sizeof(float));
    texts.clear();
    for (std::size_t row = first; piece && row < first + count; ++row) texts.push_back(piece(rows.token[row]));
    const auto part = [&](const std::vector<std::int32_t>& column) { return std::span(column).subspan(first, count); };
    writer.append({part(rows.bucket), part(rows.example_id), part(rows.position), vectors, texts});
  }
}

}  // namespace

PartWriter::PartWriter(const fs::path& file, std::span<const CapturedSide> sides, std::int64_t dim,
                       const PositionSampler& sampler, std::span<const CapturedText> texts, const PartState& state)
    : dim_(dim) {
  std::vector<TensorView> tensors;
  for (const CapturedSide& side : sides) {
    auto& first = first_row_.emplace_back(1, 0);
    for (const CapturedText& text : texts)
      first.push_back(first.back() +
                      std::ssize(sampler.kept(text.example_id, side.layer, side.kind, std::ssize(text.tokens))));
    const std::string name = side_name(side);
    const std::int64_t rows = first.back();
    tensors.push_back({name, TensorType::f32, {std::ssize(side.heads), rows, dim}, {}});
    tensors.push_back({name + tensor_endings[1], TensorType::i32, {rows}, {}});
    tensors.push_back({name + tensor_endings[2], TensorType::i32, {rows}, {}});
    tensors.push_back({name + tensor_endings[3], TensorType::u32, {rows}, {}});
  }
  make_folder(file.parent_path());
  file_.emplace(file, tensors, metadata_of(state));
  for (std::size_t side = 0; side < sides.size(); ++side) write_index(side, sides[side], sampler, texts);
}

// Which rows the side has. Memory holds those of one side.
void PartWriter::write_index(std::size_t index, const CapturedSide& side, const PositionSampler& sampler,
                             std::span<const CapturedText> texts) {
  std::vector<std::int32_t> examples, positions;
  std::vector<std::uint32_t> tokens;
  for (const CapturedText& text : texts)
    for (const std::int32_t at : sampler.kept(text.example_id, side.layer, side.kind, std::ssize(text.tokens))) {
      examples.push_back(static_cast<std::int32_t>(text.example_id));
      positions.push_back(at);
      tokens.push_back(text.tokens[static_cast<std::size_t>(at)]);
    }
  const std::size_t tensor = index * tensors_of_a_side;
  file_->write(tensor + 1, 0, std::as_bytes(std::span(examples)));
  file_->write(tensor + 2, 0, std::as_bytes(std::span(positions)));
  file_->write(tensor + 3, 0, std::as_bytes(std::span(tokens)));
}

void PartWriter::write(std::size_t side, std::size_t text, std::size_t head, std::span<const float> vectors) {
  const std::vector<std::int64_t>& first = first_row_.at(side);
  HEADSCOPE_CHECK(std::ssize(vectors) == (first.at(text + 1) - first[text]) * dim_, "{} values for {} rows of {}",
                  vectors.size(), first[text + 1] - first[text], dim_);
  const std::int64_t row = static_cast<std::int64_t>(head) * first.back() + first[text];
  file_->write(side * tensors_of_a_side, static_cast<std::uint64_t>(row * dim_) * sizeof(float),
               std::as_bytes(vectors));
}

fs::path part_file(const fs::path& folder, std::size_t index) {
  return folder / fmt::format("part-{:05}.safetensors", index);
}

PartsSoFar parts_in(const fs::path& folder) {
  PartsSoFar parts;
  std::error_code ignored;
  for (; fs::exists(part_file(folder, parts.count), ignored); ++parts.count) {
    const fs::path file = part_file(folder, parts.count);
    const PartState state = state_of(Safetensors(file), file);
    const PartState before = parts.state.value_or(PartState{state.model_hash, state.tokens_hash, state.options_hash});
    if (state.part != static_cast<std::int64_t>(parts.count) || state.first_example != before.next_example ||
        state.model_hash != before.model_hash || state.tokens_hash != before.tokens_hash ||
        state.options_hash != before.options_hash)
      fail_input("{}: does not follow the part before it, or is of another capture; remove it and go on with --resume",
                 file.string());
    parts.state = state;
  }
  return parts;
}

JoinedHeads join_parts(const fs::path& folder, const fs::path& out, std::span<const CapturedSide> sides,
                       std::int64_t dim, const PositionSampler& sampler,
                       const std::function<std::string(std::uint32_t)>& piece,
                       const std::function<void()>& before_head) {
  // Headers are parsed once; mapped files need no descriptor.
  std::vector<Safetensors> parts;
  std::vector<fs::path> files;
  for (std::size_t i = 0, count = parts_in(folder).count; i < count; ++i) {
    files.push_back(part_file(folder, i));
    parts.emplace_back(files.back());
  }
  JoinedHeads joined;
  for (const CapturedSide& side : sides) {
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const SideRows part = rows_of(parts[i], files[i], side, dim, sampler);
      rows += std::ssize(part.position);
      for (const std::int32_t bucket : part.bucket) joined.rows_by_bucket[bucket] += std::ssize(side.heads);
    }
    if (rows == 0) {
      for (const std::int64_t head : side.heads)
        joined.without_rows.push_back(fmt::format("l{:02}h{:02}{}", side.layer, head, side.kind));
      continue;
    }
    joined.rows += rows * std::ssize(side.heads);
    joined.heads += std::ssize(side.heads);
    parallel_for(side.heads.size(), available_cores(), [&](std::size_t head) {
      before_head();
      CaptureWriter writer(captured_file(out, side.layer, side.heads[head], side.kind),
                           {static_cast<std::size_t>(dim), side.sliding_window, piece != nullptr});
      for (std::size_t i = 0; i < parts.size(); ++i)
        append(writer, rows_of(parts[i], files[i], side, dim, sampler), head, dim, piece);
      writer.commit();
    });
    for (const Safetensors& part : parts) part.forget();
  }
  return joined;
}

}  // namespace headscope
