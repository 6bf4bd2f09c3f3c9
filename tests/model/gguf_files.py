"""GGUF files as llama.cpp's converter writes them, of the published models in this folder. Needs numpy and gguf."""

from __future__ import annotations

import math
from pathlib import Path

import gguf
import numpy as np

# The architecture's name there, whether rows of queries and keys are stored as neighbouring pairs, and what norms are stored less.
ARCHITECTURES = {
    "llama": ("llama", True, 0), "llama_tied": ("llama", True, 0), "mistral": ("llama", True, 0), "smollm3": ("smollm3", True, 0),
    "qwen2": ("qwen2", False, 0), "qwen3": ("qwen3", False, 0), "olmo2": ("olmo2", False, 0), "gemma2": ("gemma2", False, 1),
    "gemma3_text": ("gemma3", False, 1), "phi3": ("phi3", False, 0), "gpt_neox": ("gptneox", False, 0), "glm4": ("glm4", False, 0)}


def stored_values(name: str, value: np.ndarray, config: dict, turned: bool, offset: int) -> np.ndarray:
    heads = config["num_attention_heads"]
    if turned and (".q_proj." in name or ".k_proj." in name):
        count = heads if ".q_proj." in name else config["num_key_value_heads"]
        value = value.reshape(count, 2, -1, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)
    if "query_key_value" in name:
        value = value.reshape(heads, 3, -1, *value.shape[1:]).swapaxes(0, 1).reshape(value.shape)
    return value + offset if name.endswith("norm.weight") else value


def llama3_divisors(rope: dict, dims: int) -> np.ndarray:
    """What the frequencies are divided by."""
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    turns = rope["original_max_position_embeddings"] / (2 * math.pi) * rope["rope_theta"] ** -(np.arange(0, dims, 2) / dims)
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (1 / ((1 - kept) / factor + kept)).astype(np.float32)


def add_scaling(writer: gguf.GGUFWriter, config: dict, rope: dict, dims: int) -> None:
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if "beta_fast" in rope:
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        if "beta_slow" in rope:
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if kind == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(rope, dims))
    if kind == "longrope":
        original = config["original_max_position_embeddings"]
        longer = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(longer) / math.log(original)) if longer > 1 else 1.0)
        for length in ("long", "short"):
            writer.add_tensor(f"rope_factors_{length}.weight", np.array(rope[f"{length}_factor"], np.float32))


def write_gguf(name: str, config: dict, tensors: dict[str, np.ndarray], path: Path, matrices: type = np.float32,
               pattern: int | list[bool] | None = None) -> None:
    """`config` is config.json of transformers 5; `pattern` says which layers have a window, which converters of today leave out. The
    gguf package knows the names of the tensors."""
    architecture, turned, offset = ARCHITECTURES[name]
    layers = config["num_hidden_layers"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(layers)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    rope = config["rope_parameters"].get("full_attention", config["rope_parameters"])
    dims = int(head_dim * rope.get("partial_rotary_factor", 1))
    writer.add_rope_dimension_count(dims)
    if architecture == "gptneox":
        writer.add_layer_norm_eps(config["layer_norm_eps"])
        writer.add_parallel_residual(config["use_parallel_residual"])
    else:
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_key_length(head_dim)
        writer.add_value_length(head_dim)
        writer.add_rope_freq_base(rope["rope_theta"])
    if architecture in ("gemma2", "gemma3", "phi3"):
        writer.add_sliding_window(config["sliding_window"] or 0)
    if isinstance(pattern, list):
        writer.add_array(f"{architecture}.attention.sliding_window_pattern", pattern)
    elif pattern is not None:
        writer.add_uint32(f"{architecture}.attention.sliding_window_pattern", pattern)
    sliding = config["rope_parameters"].get("sliding_attention", {"rope_theta": 10000.0})
    if sliding["rope_theta"] != 10000.0:
        writer.add_float32(f"{architecture}.rope.freq_base_swa", sliding["rope_theta"])
    if config.get("attn_logit_softcapping"):
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
    if config.get("final_logit_softcapping"):
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    add_scaling(writer, config, rope, dims)
    numbers = {text: number for number, text in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(numbers[architecture], layers)
    for stored, value in tensors.items():
        known = names.get_name(stored, try_suffixes=(".weight", ".bias"))
        assert known, f"{name}: the gguf package has no name for {stored}"
        value = stored_values(stored, value, config, turned, offset)
        writer.add_tensor(known, np.ascontiguousarray(value, matrices if value.ndim > 1 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
