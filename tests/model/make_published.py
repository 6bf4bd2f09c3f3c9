#!/usr/bin/env python3
"""scripts/make-references [FOLDER]: makes the small published models that the tests open, tests/model/published, with what transformers
computes of them. Not a test: what it makes is committed.

A model is a folder with model.safetensors and, for each of its variants, VARIANT.json (config.json as transformers 5 writes it),
VARIANT.v4.json (the same in the older form) and VARIANT.npz (python/export_reference.py). Variants share the weights. Weights are
random and large enough for every choice to show: queries, keys and biases are about 1, scores reach the soft-caps. VARIANT.gguf is the
model in one file of that kind, stored as llama.cpp's converter does it. frequencies.json, beside the folders, has the frequencies of
RoPE in float32, of every kind of scaling.

scripts/make-references has the versions of the packages that it needs.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

from export_reference import reference
from gguf_files import ARCHITECTURES, write_gguf

FOLDER = Path(__file__).parent / "published"
LAYERS, TIME, VOCABULARY = 2, 18, 61
# What parity compares. The rest of a reference would double the size.
KEPT = ("input_ids", "logits", "q_pre", "k_pre", "q_post", "k_post", "entropy")
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 40, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
BOTH = ["sliding_attention", "full_attention"]
VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 8, "patch_size": 4}


def rope(kind: str, **more: object) -> dict:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


FACTORS = {"short_factor": [1.0, 1.1, 1.3, 1.6, 2.0, 2.5], "long_factor": [1.0, 2.0, 4.0, 6.0, 9.0, 12.0]}
LLAMA_ROPES = {
    "linear": rope("linear", factor=2.5),
    "dynamic": {**rope("dynamic", factor=3.0), "max_position_embeddings": 11},
    "dynamic_short": {**rope("dynamic", factor=3.0), "max_position_embeddings": TIME},
    "llama3": rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
    "yarn": rope("yarn", factor=4.0, original_max_position_embeddings=2048),
    "yarn_fine": rope("yarn", factor=8.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.01, truncate=False,
                      mscale=0.7, mscale_all_dim=1.0),
    "yarn_factor": rope("yarn", factor=8.0, original_max_position_embeddings=16, attention_factor=0.8),
    "longrope": rope("longrope", **FACTORS, original_max_position_embeddings=TIME),
    "longrope_long": rope("longrope", **FACTORS, original_max_position_embeddings=TIME - 1),
    "longrope_factor": rope("longrope", **FACTORS, factor=16.0, original_max_position_embeddings=8),
}
PHI3_FACTORS = {"short_factor": [1.0, 1.5, 2.5], "long_factor": [1.0, 3.0, 9.0]}

# Name of the folder: the configuration's class, its options, the stored type, and what the variants change.
MODELS = {
    "llama": ("LlamaConfig", {"head_dim": 12, "attention_bias": True, "mlp_bias": True}, torch.float32, LLAMA_ROPES),
    "llama_tied": ("LlamaConfig", {"num_key_value_heads": 4, "tie_word_embeddings": True, "rms_norm_eps": 1e-3}, torch.float16,
                   {"gelu": {"hidden_act": "gelu"}, "relu": {"hidden_act": "relu"}}),
    "mistral": ("MistralConfig", {"sliding_window": 5}, torch.bfloat16,
                {"full": {"sliding_window": None, "attention_bias": True}}),  # there are no biases, whatever the option says
    "smollm3": ("SmolLM3Config", {"no_rope_layers": [1, 0], "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}},
                torch.bfloat16,
                {"sliding": {"use_sliding_window": True, "sliding_window": 4, "layer_types": BOTH[::-1]},
                 "every_second": {"no_rope_layers": None, "no_rope_layer_interval": 2},
                 "gguf": {"no_rope_layers": [1, 1]}}),  # every fourth layer has no RoPE in a GGUF file
    "qwen2": ("Qwen2Config", {}, torch.bfloat16,
              {"sliding": {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1, "layer_types": BOTH[::-1]}}),
    "qwen3": ("Qwen3Config", {"head_dim": 12, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, torch.bfloat16,
              {"yarn": rope("yarn", factor=4.0, original_max_position_embeddings=512)}),
    "olmo2": ("Olmo2Config", {}, torch.bfloat16, {}),
    "gemma2": ("Gemma2Config", {"head_dim": 12, "query_pre_attn_scalar": 10, "sliding_window": 5, "attn_logit_softcapping": 1.5,
                                "final_logit_softcapping": 3.0}, torch.bfloat16,
               {"no_caps": {"attn_logit_softcapping": None, "final_logit_softcapping": None},
                "gguf": {"query_pre_attn_scalar": 12}}),  # which a GGUF file does not hold: it is taken for head_dim
    "gemma3_text": ("Gemma3TextConfig", {"head_dim": 12, "query_pre_attn_scalar": 10, "sliding_window": 5, "layer_types": BOTH},
                    torch.bfloat16,
                    {"scaled": {"rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 8.0},
                                                    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}},
                                "final_logit_softcapping": 4.0},
                     "gguf": {"query_pre_attn_scalar": 12, "layer_types": [BOTH[0]] * 2},
                     "gguf_scaled": {"query_pre_attn_scalar": 12, "final_logit_softcapping": 4.0,
                                     "rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 8.0},
                                                         "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}}}),
    "gemma3": ("Gemma3Config", {"head_dim": 12, "query_pre_attn_scalar": 10, "sliding_window": 7, "layer_types": BOTH}, torch.bfloat16,
               {"capped": {"final_logit_softcapping": 1.5}}),  # which has no effect in this one
    "phi3": ("Phi3Config", {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.75},
                            "original_max_position_embeddings": TIME}, torch.bfloat16,
             {"sliding": {"sliding_window": 4},
              "longrope": rope("longrope", **PHI3_FACTORS, partial_rotary_factor=0.75),
              "longrope_long": {**rope("longrope", **PHI3_FACTORS, partial_rotary_factor=0.75),
                                "original_max_position_embeddings": TIME - 2}}),
    "gpt_neox": ("GPTNeoXConfig", {}, torch.float32,
                 {"sequential": {"use_parallel_residual": False, **rope("default", partial_rotary_factor=1.0)},
                  "odd": rope("linear", factor=2.0, partial_rotary_factor=0.4)}),  # 3 of 8 dimensions
    "glm4": ("Glm4Config", {"head_dim": 12}, torch.bfloat16, {"yarn": rope("yarn", factor=4.0, original_max_position_embeddings=512,
                                                                         partial_rotary_factor=0.5)}),
}


def configuration(kind: str, options: dict):
    """Of the class `kind`; the text model's part of it where there are several."""
    options = copy.deepcopy({**SIZES, **options})
    if kind == "GPTNeoXConfig":
        options.pop("num_key_value_heads")
    if kind == "Gemma3Config":
        return transformers.Gemma3Config(text_config=options, vision_config={**VISION, "model_type": "siglip_vision_model"},
                                         mm_tokens_per_image=4, boi_token_index=3, eoi_token_index=4, image_token_index=5)
    return getattr(transformers, kind)(**options)


def fill(model: torch.nn.Module, seed: int) -> None:
    """Random weights that bfloat16 and float16 hold exactly."""
    generator = torch.Generator().manual_seed(seed)
    small_gains = "gemma" in model.config.model_type  # stored less 1
    done = set()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.data_ptr() in done:
                continue
            done.add(value.data_ptr())
            random = torch.randn(value.shape, generator=generator)
            if "norm" in name and name.endswith("weight"):
                random = 0.3 * random + (0.0 if small_gains else 1.0)
            elif name.endswith("bias"):
                random = 0.3 * random
            elif "embed" in name:
                random = random * (0.2 if small_gains else 1.0)
            elif value.dim() > 1:
                random = random * 1.5 / value.shape[1] ** 0.5
            value.copy_(random.bfloat16().half().float())


def older_form(config: dict) -> dict:
    """config.json as transformers 4 wrote it."""
    config = copy.deepcopy(config)
    if "text_config" in config:
        config["text_config"] = older_form(config["text_config"])
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    parameters = config.pop("rope_parameters", None)
    if parameters is None:
        return config
    if "full_attention" in parameters:  # gemma3
        sliding = parameters["sliding_attention"]
        assert sliding["rope_type"] == "default"
        config["rope_local_base_freq"] = sliding["rope_theta"]
        config["sliding_window_pattern"] = 2 if config.pop("layer_types") == BOTH else 6
        parameters = parameters["full_attention"]
    neox = config["model_type"] == "gpt_neox"
    config["rotary_emb_base" if neox else "rope_theta"] = parameters.pop("rope_theta")
    share = parameters.pop("partial_rotary_factor", None)
    if share is not None:
        config["rotary_pct" if neox else "partial_rotary_factor"] = share
    kind = parameters.pop("rope_type")
    if config["model_type"] == "phi3":
        parameters.pop("original_max_position_embeddings", None)  # stands beside it
    word = "type" if kind in ("linear", "longrope") and "gemma" not in config["model_type"] else "rope_type"  # both occur
    config["rope_scaling"] = None if kind == "default" else {word: kind, **parameters}
    if config["model_type"] == "gemma2":
        assert config.pop("layer_types") == BOTH  # the older library knows no other order
    return config


def class_of(config) -> type:
    return transformers.AutoModelForCausalLM._model_mapping[type(config)]


def computed(folder: Path, ids: np.ndarray) -> dict[str, np.ndarray]:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return {name: value for name, value in reference(model, ids).items() if name in KEPT}


def make(name: str, seed: int, root: Path) -> None:
    kind, options, dtype, variants = MODELS[name]
    target = root / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    ids = np.random.default_rng(seed).integers(6, VOCABULARY, (1, TIME))
    with tempfile.TemporaryDirectory() as scratch:
        config = configuration(kind, options)
        model = class_of(config)(config)
        fill(model, seed)
        model.to(dtype).save_pretrained(scratch)
        shutil.copy(Path(scratch) / "model.safetensors", target)
        (target / "model.safetensors").chmod(0o644)
        for variant, changes in {"default": {}, **variants}.items():
            folder = Path(scratch) / variant
            folder.mkdir()
            shutil.copy(target / "model.safetensors", folder)
            config = configuration(kind, {**options, **changes})
            config.architectures, config.dtype = [class_of(config).__name__], dtype
            config.save_pretrained(folder)
            written = json.loads((folder / "config.json").read_text())
            arrays = computed(folder, ids)
            older = older_form(written)
            (folder / "config.json").write_text(json.dumps(older))
            again = computed(folder, ids)
            for array, values in arrays.items():
                assert np.array_equal(values, again[array]), f"{name} {variant}: the older form gives another {array}"
            for ending, form in (("json", written), ("v4.json", older)):
                (target / f"{variant}.{ending}").write_text(json.dumps(form, indent=1, sort_keys=True) + "\n")
            np.savez_compressed(target / f"{variant}.npz", **arrays)
            size = {array: float(np.sqrt((values.astype(float) ** 2).mean())) for array, values in arrays.items()}
            holds_all = name in ARCHITECTURES and name != "mistral"  # whose window the format does not hold
            if holds_all and variant == ("gguf" if "gguf" in variants else "default"):
                tensors = {stored: value.float().numpy() for stored, value in load_file(target / "model.safetensors").items()}
                write_gguf(name, written, tensors, target / f"{variant}.gguf", np.float16)
            print(f"{name} {variant}: q {size['q_post']:.2f}, k {size['k_post']:.2f}, entropy {size['entropy']:.2f}, "
                  f"logits {size['logits']:.2f}")


def make_frequencies(path: Path) -> None:
    """What transformers turns the pairs of a head of 64 dimensions by, for sequences of 1024 tokens."""
    length, pairs = 1024, 32
    factors = {"short_factor": [1 + i / 7 for i in range(pairs)], "long_factor": [1 + i * 1.3 for i in range(pairs)]}
    rows = []
    for name, changes in {"default": rope("default"), **LLAMA_ROPES}.items():
        changes = copy.deepcopy(changes)
        if name.startswith("longrope"):
            changes["rope_parameters"].update(factors)
        config = transformers.LlamaConfig(**{**SIZES, "head_dim": 2 * pairs, "max_position_embeddings": 1000, **changes})
        embedding = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(config)
        embedding(torch.zeros(1), torch.arange(length)[None])
        rows.append({"name": name, "length": length, "config": config.to_dict(), "frequencies": embedding.inv_freq.tolist()})
    path.write_text(json.dumps(rows, indent=None, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


def main() -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for seed, name in enumerate(MODELS):
        make(name, seed, root)
    make_frequencies(root.parent / "frequencies.json")


if __name__ == "__main__":
    main()
