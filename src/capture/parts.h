// While a capture goes on, its vectors are in parts: files of some texts each, for all heads (safetensors). Each
// appears when it is complete, so a capture that was stopped goes on behind the last one, and few files are open. At
// the end the parts become one file for each head.
//
// Of each side of a layer (l00q: queries of layer 0) a part has l00q [heads, rows, dim] float32, l00q.example_id and
// l00q.position [rows] int32, and l00q.token [rows] uint32. Rows are in the order of texts, then of positions. Which
// rows there are is known before the vectors: so is the place of each vector in the file, and it is written when it is
// computed. Memory holds none of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/sampler.h"
#include "formats/safetensors.h"

namespace headscope {

// The queries (q) or keys (k) of a layer.
struct CapturedSide {
  std::int64_t layer = 0;
  char kind = 'q';
  std::vector<std::int64_t> heads;  // that are captured
  std::optional<std::int64_t> sliding_window;
};

struct CapturedText {
  std::int64_t example_id = 0;
  std::vector<std::uint32_t> tokens;
};

// What the parts of one capture share, and how far it has come.
struct PartState {
  std::string model_hash, tokens_hash,
      options_hash;       // of weights and configuration, of all texts' tokens, of what is asked
  std::int64_t part = 0;  // its number
  std::int64_t first_example = 0, next_example = 0;  // that it and the next one begin with
  std::int64_t texts = 0, text_tokens = 0;           // of all parts up to this one
};

class PartWriter {
 public:
  // `texts`: in ascending order of example_id. `dim`: components of a vector.
  PartWriter(const std::filesystem::path& file, std::span<const CapturedSide> sides, std::int64_t dim,
             const PositionSampler& sampler, std::span<const CapturedText> texts, const PartState& state);

  // How many positions of a text (its place among `texts`) are kept.
  [[nodiscard]] std::size_t rows(std::size_t side, std::size_t text) const {
    return static_cast<std::size_t>(first_row_.at(side).at(text + 1) - first_row_[side][text]);
  }
  // Their vectors, of one of the side's heads: [rows, dim].
  void write(std::size_t side, std::size_t text, std::size_t head, std::span<const float> vectors);

  void commit() { file_->commit(); }

 private:
  void write_index(std::size_t index, const CapturedSide& side, const PositionSampler& sampler,
                   std::span<const CapturedText> texts);

  std::int64_t dim_;
  std::vector<std::vector<std::int64_t>> first_row_;  // by side and text; the last is the number of rows
  std::optional<SafetensorsWriter> file_;
};

std::filesystem::path part_file(const std::filesystem::path& folder, std::size_t index);

// How many parts there are, and the state that the last one has; nothing where there is none. Throws
// Error(Fault::input) when one is damaged, or is not of the same capture and right behind the one before it.
struct PartsSoFar {
  std::size_t count = 0;
  std::optional<PartState> state;
};
PartsSoFar parts_in(const std::filesystem::path& folder);

// What the heads' files hold.
struct JoinedHeads {
  std::map<std::int64_t, std::int64_t> rows_by_bucket;  // of all heads
  std::int64_t rows = 0, heads = 0;
  std::vector<std::string> without_rows;  // "l03h00q": no file
};

// Writes OUT/l00h00q/data.parquet … from the parts in `folder`, on all cores. `piece` gives the column token_str;
// without it there is none. `before_head` is called before each file and may throw, from any thread.
JoinedHeads join_parts(const std::filesystem::path& folder, const std::filesystem::path& out,
                       std::span<const CapturedSide> sides, std::int64_t dim, const PositionSampler& sampler,
                       const std::function<std::string(std::uint32_t)>& piece,
                       const std::function<void()>& before_head);

}  // namespace headscope
