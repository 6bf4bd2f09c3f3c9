#!/usr/bin/env python3
"""Saves what a published model computes, as `headscope parity` reads it: queries and keys before and after RoPE, the entropy of
every row of attention, and logits, in float32 on the CPU.

    export_reference.py MODEL OUT.npz                          # 2 sequences of 48 random tokens
    export_reference.py MODEL OUT.npz --ids 1,5,7 --ids 2,9,4  # these sequences, of one length
    export_reference.py MODEL OUT.npz --text "The capital of France is"

MODEL is a folder, or a name that transformers knows. Needs torch, transformers and numpy.

Arrays, with B sequences of T tokens, L layers, H query heads, K key heads, D dimensions of a head, V tokens, C the model's width:
    input_ids B,T    logits B,T,V    hidden L+1,B,T,C (what enters each layer; the last one after the final norm)
    q_pre, q_post L,B,H,T,D    k_pre, k_post L,B,K,T,D (before RoPE: after bias and q/k norm)
    entropy L,B,H,T (nats)    entropy_mean L,H    attn_last L,B,H,T (row of the last query)
    scaling L (factor on q·k)    window L (sliding window; 0: none)
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager

import numpy as np
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

RECORDER = "headscope_recorder"


class Recorder:
    """Sees every layer's queries and keys on their way through the library's own model."""

    def __init__(self) -> None:
        self.layers: list[dict[str, np.ndarray]] = []
        self.before: tuple[torch.Tensor, torch.Tensor] | None = None  # what entered RoPE, until the layer's attention

    def attention(self, module, query, key, value, attention_mask, scaling=None, softcap=None, sliding_window=None, **_):
        """The library's eager attention, recorded."""
        scale = module.head_dim**-0.5 if scaling is None else scaling
        groups = query.shape[1] // key.shape[1]
        scores = torch.matmul(query, key.repeat_interleave(groups, 1).transpose(2, 3)) * scale
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        if attention_mask is not None:
            scores = scores + attention_mask
        rows = torch.softmax(scores, dim=-1, dtype=torch.float32)
        before = self.before if self.before is not None else (query, key)  # a layer without RoPE
        self.before = None
        self.layers.append({
            "q_pre": numbers(before[0]), "k_pre": numbers(before[1]), "q_post": numbers(query), "k_post": numbers(key),
            "entropy": numbers(torch.special.entr(rows.double()).sum(-1)), "attn_last": numbers(rows[:, :, -1]),
            "scaling": np.float32(scale), "window": np.int32(sliding_window or 0),
        })
        return torch.matmul(rows, value.repeat_interleave(groups, 1)).transpose(1, 2).contiguous(), rows

    @contextmanager
    def watching(self, model):
        """Puts the recorder between the model's code and RoPE, and in the place of its attention."""
        AttentionInterface.register(RECORDER, self.attention)
        AttentionMaskInterface.register(RECORDER, eager_mask)
        model.set_attn_implementation(RECORDER)
        modules = {sys.modules[type(part).__module__] for part in model.modules()}
        patched = [(module, module.apply_rotary_pos_emb) for module in modules if hasattr(module, "apply_rotary_pos_emb")]

        def recorded(original):
            def rotate(q, k, *arguments, **named):
                self.before = (q, k)
                return original(q, k, *arguments, **named)
            return rotate

        for module, original in patched:
            module.apply_rotary_pos_emb = recorded(original)
        try:
            yield
        finally:
            for module, original in patched:
                module.apply_rotary_pos_emb = original


def numbers(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()


def reference(model, ids: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a model of transformers in float32, for `ids` [B, T]."""
    recorder = Recorder()
    with torch.no_grad(), recorder.watching(model):
        output = model(input_ids=torch.from_numpy(ids.astype(np.int64)), use_cache=False, output_hidden_states=True)
    arrays = {"input_ids": ids.astype(np.int32), "logits": numbers(output.logits)}
    arrays["hidden"] = np.stack([numbers(state) for state in output.hidden_states])
    for name in recorder.layers[0]:
        arrays[name] = np.stack([layer[name] for layer in recorder.layers])
    arrays["entropy_mean"] = arrays["entropy"].mean((1, 3))
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--ids", action="append", default=[], help="a sequence of tokens, comma-separated; may come again")
    parser.add_argument("--text", help="tokenized by the model's own tokenizer")
    parser.add_argument("--batch", type=int, default=2, help="random sequences [2]")
    parser.add_argument("--length", type=int, default=48, help="of random sequences [48]")
    parser.add_argument("--seed", type=int, default=0, help="of random sequences [0]")
    options = parser.parse_args()
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    if options.ids:
        ids = np.array([[int(word) for word in sequence.split(",")] for sequence in options.ids])
    elif options.text:
        tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
        ids = np.array([tokenizer(options.text)["input_ids"]])
    else:
        vocabulary = model.get_input_embeddings().weight.shape[0]
        ids = np.random.default_rng(options.seed).integers(0, vocabulary, (options.batch, options.length))
    arrays = reference(model, ids)
    np.savez(options.out, **arrays)
    print(f"{options.out}: {len(arrays['entropy'])} layers, {ids.shape[0]} sequences of {ids.shape[1]} tokens")


if __name__ == "__main__":
    main()
