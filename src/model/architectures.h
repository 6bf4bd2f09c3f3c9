// What a published model is, as data: a row for each `model_type` maps the options of its config.json to DecoderConfig,
// and our names of parameters to those of its tensors. Where config.json is silent, a row has the default of the public
// library (transformers). The study's own model is a row, too: the one that needs no translation.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_options.h"
#include "settings/decoder_config.h"

namespace headscope {

// Where the rows of a parameter of ours lie in a stored matrix, or the values in a stored bias.
enum class StoredRows {
  all,
  first_half,    // [gate; up]: the gate
  second_half,   // the up
  by_head,       // head by head [q; k; v]; ours are all queries, then all keys, then all values
  turned_pairs,  // of three tensors, queries and keys: the rows (i, i + d_k/2) of a head are neighbours
};

// A parameter of ours by its name without "layers.N." and without ".weight", ".gain" or ".bias", and what it is called
// in the file, without ".weight" or ".bias". Three names: the parts of our matrix of queries, keys and values.
struct StoredTensor {
  std::string_view ours;
  std::array<std::string_view, 3> stored;
  StoredRows rows = StoredRows::all;
};

// Whether matrices have biases: as the option says (attention_bias for attention, mlp_bias for the feed-forward layer).
enum class Biased { never, always, as_option };

// Which layers have a sliding window: those that layer_types names, where an architecture has layers of both kinds.
// Without that option: every layer but each n-th (gemma), or, where use_sliding_window is true, those from
// max_window_layers on (qwen) or those without RoPE (smollm3).
enum class Windows { none, every_layer, but_each_nth, from_layer_on, without_rope };

// Of a row whose published files leave them out; 0: config.json must say it.
struct DefaultSizes {
  std::int64_t vocabulary = 0, d_model = 0, d_ff = 0, layers = 0, heads = 0;
};

struct Architecture {
  std::string_view model_type;
  DefaultSizes sizes = {};
  std::int64_t longest = 0;  // where max_position_embeddings is absent
  Norm norm = {.eps = 1e-6};
  std::string_view eps_option = "rms_norm_eps";
  bool qk_norm = false;
  QkNormOver qk_norm_over = QkNormOver::one_head;
  Biased qkv_bias = Biased::never, output_bias = Biased::never, feed_forward_bias = Biased::never;
  bool attention_bias = false;  // where the option is absent
  std::string_view activation_option = "hidden_act";
  std::string_view activation = "silu";
  bool gated = true;
  bool has_key_heads = true;   // num_key_value_heads and head_dim are options
  std::int64_t key_heads = 0;  // where the option is absent; 0: as many as query heads
  std::int64_t head_dim = 0;   // the same; 0: hidden_size / num_attention_heads
  Windows windows = Windows::none;
  std::int64_t window = 0;      // where sliding_window is absent; 0: none
  std::int64_t full_every = 0;  // but_each_nth, where sliding_window_pattern is absent
  std::string_view rope_base_option = "rope_theta", rotary_share_option = "partial_rotary_factor";  // of older files
  double rope_base = 10000;
  double sliding_rope_base = 0;  // not 0: layers with a window have a RoPE of their own
  RopePairing pairing = RopePairing::halves;
  bool partial_rotary = false;  // the share of a head that turns is an option
  double rotary_share = 1;      // where it is absent
  bool only_longrope = false;   // the one scaling; older files call it su or yarn
  double original_length = 0;   // where original_max_position_embeddings is absent; 0: as max_position_embeddings says
  bool skips_rope = false;      // no_rope_layers is an option
  bool gemma_scales = false;    // embeddings times sqrt(hidden_size), scores times query_pre_attn_scalar^-1/2
  bool has_score_cap = false;   // attn_logit_softcapping is an option
  bool has_logit_cap = false;   // final_logit_softcapping is
  double score_cap = 0, logit_cap = 0;  // where the options are absent
  bool parallel_residual = false;       // use_parallel_residual is an option, true where it is absent
  bool tied_head = false;               // where tie_word_embeddings is absent
  std::string_view text_options = {};   // the option that holds those of the text model; empty: config.json itself
  std::vector<std::string_view> prefixes =
      {};  // of all tensors but the head's: the first with which there is an embedding
  std::vector<std::string_view> head_names = {};
  std::string_view layer_prefix = "layers.";  // before the number of a layer
  std::vector<StoredTensor> tensors = {};     // empty: our own names
};

// Of the study's own model.
const Architecture& own_architecture();

// Throws Error(Fault::input) that lists the known ones.
const Architecture& published_architecture(const std::string& model_type, const std::string& origin);

// `options` is all of config.json. Throws Error(Fault::input) naming the option that is missing, or whose value is one
// that we cannot compute.
DecoderConfig decoder_config(const Architecture& architecture, const ModelOptions& options);

// The tensors that our parameter is made of, in order, with ".weight" or ".bias"; one of our own has its own name.
struct StoredNames {
  std::vector<std::string> names;
  StoredRows rows = StoredRows::all;
};
StoredNames stored_names(const Architecture& architecture, std::string_view prefix, std::string_view head,
                         const std::string& parameter);

}  // namespace headscope
