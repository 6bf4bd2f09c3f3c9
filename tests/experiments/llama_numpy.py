"""A forward pass of a published llama in NumPy, float64: what its heads attend to, computed from the files alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np


def tensors_of(file: Path) -> dict[str, np.ndarray]:
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, one in header.items():
        if name == "__metadata__":
            continue
        assert one["dtype"] == "F32", one
        first, last = one["data_offsets"]
        values = np.frombuffer(data[8 + size + first:8 + size + last], "<f4")
        tensors[name] = values.reshape(one["shape"]).astype(np.float64)
    return tensors


class Llama:
    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = tensors_of(folder / "model.safetensors")

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * self.weights[name]

    def rotated(self, x_thd: np.ndarray) -> np.ndarray:
        time, _, d = x_thd.shape
        frequencies = self.config["rope_parameters"]["rope_theta"] ** (-np.arange(0, d, 2) / d)
        angles = (np.arange(time)[:, None] * frequencies)[:, None, :]
        a, b = x_thd[..., :d // 2], x_thd[..., d // 2:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)

    def attention(self, tokens: list[int]) -> np.ndarray:
        """[layer, head, query, key]"""
        c, w = self.config, self.weights
        time, heads, key_heads, d = len(tokens), c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        x = w["model.embed_tokens.weight"][tokens]
        hidden = np.triu(np.full((time, time), -np.inf), 1)
        layers = []
        for layer in range(c["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            y = self.norm(x, at + "input_layernorm.weight")
            q, k, v = ((y @ w[at + f"self_attn.{name}_proj.weight"].T).reshape(time, -1, d) for name in "qkv")
            k, v = (np.repeat(z, heads // key_heads, 1) for z in (self.rotated(k), v))
            scores = np.einsum("ihd,jhd->hij", self.rotated(q), k) / np.sqrt(d) + hidden
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            layers.append(weights)
            mixed = np.einsum("hij,jhd->ihd", weights, v).reshape(time, -1)
            x = x + mixed @ w[at + "self_attn.o_proj.weight"].T
            y = self.norm(x, at + "post_attention_layernorm.weight")
            gate = y @ w[at + "mlp.gate_proj.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w[at + "mlp.up_proj.weight"].T)) @ w[at + "mlp.down_proj.weight"].T
        return np.array(layers)
