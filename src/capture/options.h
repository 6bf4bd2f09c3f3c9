// The configuration of a capture: the flags of `headscope capture`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"

namespace headscope {

enum class Sampler { log, uniform, all };
enum class CaptureType { float32, bfloat16 };

template <>
struct EnumNames<Sampler> {
  static constexpr std::array<std::string_view, 3> names = {"log", "uniform", "all"};
};
template <>
struct EnumNames<CaptureType> {
  static constexpr std::array<std::string_view, 2> names = {"float32", "bfloat16"};
};

inline constexpr const char* capture_command = "capture";
inline constexpr const char* rope_key = "rope";  // in the manifest: before or after

struct CaptureOptions {
  // Defaults of the first four are those of the public program that made the format.
  Sampler sampler = Sampler::log;
  std::int64_t bucket_size = 128;
  double base_rate = 1;
  std::int64_t max_length = 4096;
  std::optional<std::int64_t> max_documents;
  bool pre_rope = false;
  std::string layers, heads;  // "0,3-5"; empty: all
  CaptureType dtype = CaptureType::float32;
  std::string device = "auto";
  bool token_str = false;
  std::string tokenizer;             // empty: the model's own
  std::string text_column = "text";  // as most published corpora have it
  // Empty: what suits the device. A CPU's matrix products are as fast with few tokens, and its cache holds them; a GPU
  // wants many. A part is what a kill can lose: less than a minute.
  std::optional<std::int64_t> batch_tokens, part_tokens;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sampler", self.sampler, "Which positions are kept: log (fewer the later), uniform (a share of all), all");
    visit("bucket_size", self.bucket_size,
          "Positions of a bucket; of log, rounded up to a power of two: the first bucket has twice as many",
          SizeRange{1, 1 << 24, "positions"});
    visit("base_rate", self.base_rate, "Rows kept of a bucket and text, on average", positive_up_to(1e9));
    visit("max_length", self.max_length, "Tokens of a text; what is longer is cut at its end",
          SizeRange{1, 1 << 24, "tokens"});
    visit("max_documents", self.max_documents, "Texts to read (default: all)", SizeRange{1, 1LL << 31, "texts"});
    visit("pre_rope", self.pre_rope,
          "Capture before RoPE (after bias and QK-Norm); default: after, as scores have them");
    visit("layers", self.layers, "Layers to capture, such as 0,3-5 (default: all)");
    visit("heads", self.heads, "Heads to capture, of queries and of keys alike, such as 0,2 (default: all)");
    visit("dtype", self.dtype, "What the model computes in: float32 or bfloat16; files hold float32");
    visit("device", self.device, "auto, cpu or cuda (cuda:1: the second GPU)");
    visit("token_str", self.token_str, "Also a column with the piece of the vocabulary at each position");
    visit("tokenizer", self.tokenizer,
          "bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file (default: the model's own)");
    visit("text_column", self.text_column, "Field or column that holds the text");
    visit("batch_tokens", self.batch_tokens, "Tokens of a batch of texts (default: 2048 on a CPU, 65536 on a GPU)",
          SizeRange{1, 1 << 26, "tokens"});
    visit("part_tokens", self.part_tokens,
          "Tokens between two moments at which a capture can go on (default: 16384 on a CPU, 1048576 on a GPU)",
          SizeRange{1, 1LL << 40, "tokens"});
  }
};

// What is read.
struct CaptureInputs {
  std::string model;              // a published model, a checkpoint or a run
  std::vector<std::string> data;  // files and folders of text; none: the text that a run of ours held out
};

// Throws Error(Fault::input) on values that make no sense.
void validate(const CaptureOptions& options);

}  // namespace headscope
