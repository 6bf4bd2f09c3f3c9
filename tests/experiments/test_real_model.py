"""A real model, SmolLM2-135M-Instruct, inspected in one command: its tables, its loss, and the memory that it takes.

usage: python test_real_model.py PATH_TO_HEADSCOPE [unittest options]

The model is what tests/model/fetch_real.py fetches, the text that of the shared corpus; without one of them, tests skip. Loss and heads are
compared with a forward pass in numpy, tokens with the `tokenizers` library.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "model")]

import fetch_real  # noqa: E402
import program  # noqa: E402
from program import Program, head_values, rows  # noqa: E402

FOLDER, GGUF = fetch_real.models() / "smollm2", fetch_real.models() / "smollm2.gguf"
TEXT = fetch_real.SHARED / "corpus/val.jsonl.zst"
LAYERS, HEADS, KEY_HEADS, D_K, THETA, EPSILON = 30, 9, 3, 64, 100000.0, 1e-5
END = 2  # <|im_end|>


def weights() -> dict[str, np.ndarray]:
    """The tensors of the folder, from bfloat16 to float32."""
    content = (FOLDER / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    found = {}
    for name, tensor in json.loads(content[8:start]).items():
        if name == "__metadata__":
            continue
        assert tensor["dtype"] == "BF16", name
        first, last = tensor["data_offsets"]
        halves = np.frombuffer(content, "<u2", (last - first) // 2, start + first)
        found[name] = (halves.astype(np.uint32) << 16).view(np.float32).reshape(tensor["shape"])
    return found


def first_tokens(count: int) -> np.ndarray:
    """The text's documents, one after another, each with its end."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    ids: list[int] = []
    for line in pa.input_stream(str(TEXT), compression="zstd").read().decode().splitlines():
        ids += [*tokenizer.encode(json.loads(line)["text"]).ids, END]
        if len(ids) >= count:
            return np.array(ids[:count])
    raise AssertionError(f"{TEXT} has less than {count} tokens")


def rms_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gain


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Reference:
    """Llama in numpy, one sequence at a time: the losses of its tokens, and by (layer, kind, head) norms and entropies, summed over sequences."""

    def __init__(self) -> None:
        self.weights = weights()
        self.sums: dict[tuple, float] = {}

    def add(self, layer: int, kind: str, metric: str, values_h: np.ndarray) -> None:
        for head, value in enumerate(values_h):
            key = layer, kind, head, metric
            self.sums[key] = self.sums.get(key, 0.0) + float(value)

    def losses(self, tokens: np.ndarray, targets: np.ndarray) -> np.ndarray:
        w, t = self.weights, len(tokens)
        angles = np.outer(np.arange(t), THETA ** (-np.arange(0, D_K, 2) / D_K))
        cos, sin = (np.concatenate([of, of], -1).astype(np.float32) for of in (np.cos(angles), np.sin(angles)))

        def turned(x_htd: np.ndarray) -> np.ndarray:
            first, second = np.split(x_htd, 2, -1)
            return x_htd * cos + np.concatenate([-second, first], -1) * sin

        x = w["model.embed_tokens.weight"][tokens]
        for layer in range(LAYERS):
            def linear(name: str, value: np.ndarray) -> np.ndarray:
                return value @ w[f"model.layers.{layer}.{name}.weight"].T

            h = rms_norm(x, w[f"model.layers.{layer}.input_layernorm.weight"])
            q, k, v = (linear(f"self_attn.{name}_proj", h).reshape(t, -1, D_K).swapaxes(0, 1) for name in "qkv")
            self.add(layer, "q", "q_norm", np.linalg.norm(q, axis=-1).mean(-1))
            self.add(layer, "k", "k_norm", np.linalg.norm(k, axis=-1).mean(-1))
            q, k, v = turned(q), turned(k).repeat(HEADS // KEY_HEADS, 0), v.repeat(HEADS // KEY_HEADS, 0)
            scores = q @ k.swapaxes(1, 2) / np.sqrt(D_K)
            rows_htt = softmax(np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf))
            logs = np.log(rows_htt, out=np.zeros_like(rows_htt), where=rows_htt > 0)
            self.add(layer, "q", "entropy", -(rows_htt * logs).sum(-1).mean(-1))
            self.add(layer, "q", "sink", rows_htt[:, 1:, 0].mean(-1))
            x = x + linear("self_attn.o_proj", (rows_htt @ v).swapaxes(0, 1).reshape(t, -1))
            h = rms_norm(x, w[f"model.layers.{layer}.post_attention_layernorm.weight"])
            gate = linear("mlp.gate_proj", h)
            x = x + linear("mlp.down_proj", gate / (1 + np.exp(-gate)) * linear("mlp.up_proj", h))
        logits = rms_norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T
        top = logits.max(-1, keepdims=True)
        return (top + np.log(np.exp(logits - top).sum(-1, keepdims=True)))[:, 0] - logits[np.arange(t), targets]


def inspected(model: Path, out: Path, *more: object) -> tuple[dict, int]:
    """What the command printed, and the most memory that it had: all of its resident set, pages of mapped files included."""
    command = [program.headscope, "inspect", model, "--data", TEXT, "--out", out, "--json", *more]
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        child = subprocess.Popen([str(word) for word in command], stdout=printed, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        said.seek(0)
        assert child.returncode == program.DONE, said.read().decode()
        return json.loads(printed.read()), usage.ru_maxrss * 1024


class RealModel(Program):
    @classmethod
    def setUpClass(cls) -> None:
        for needed in (FOLDER / "model.safetensors", GGUF, TEXT):
            if not needed.is_file():
                raise unittest.SkipTest(f"{needed} is not there; tests/model/fetch_real.py fetches the model, HEADSCOPE_SHARED names the text's folder")
        temporary = tempfile.TemporaryDirectory(prefix="headscope real ")
        cls.addClassCleanup(temporary.cleanup)
        cls.out = Path(temporary.name)
        # The flags' defaults, but half as many batches of the loss: a further one takes no more memory.
        cls.said, cls.memory = {}, {}
        for model in (FOLDER, GGUF):
            cls.said[model], cls.memory[model] = inspected(model, cls.out / model.name, "--set", "train.validation_batches=2")

    def test_EveryHead_IsMeasured(self):
        for model in (FOLDER, GGUF):
            values = head_values(self.out / model.name, "probe")
            for kind, heads, metric in (("q", HEADS, "entropy"), ("q", HEADS, "induction"), ("k", KEY_HEADS, "k_pr")):
                of_metric = {(layer, head): value for (_, layer, of, head, name), value in values.items() if (of, name) == (kind, metric)}
                self.assertEqual(sorted(of_metric), [(layer, head) for layer in range(LAYERS) for head in range(heads)])
                self.assertTrue(all(np.isfinite(value) for value in of_metric.values()), metric)
            self.assertEqual(len(rows(self.out / model.name, "roles")["role"]), LAYERS * HEADS)
            self.assertEqual(self.said[model]["architecture"], "llama")

    def test_TheLoss_IsThatOfARealModel(self):
        for model in (FOLDER, GGUF):
            # A uniform guess over the vocabulary has 10.8 nats; models of this size have about 3 on text of many kinds.
            self.assertGreater(self.said[model]["val_loss"], 1.5)
            self.assertLess(self.said[model]["val_loss"], 3.5)

    def test_LossAndHeads_AreThoseOfNumpy(self):
        batch, length = 2, 64
        tokens = first_tokens(batch * length + 1)
        reference = Reference()
        losses = np.concatenate([reference.losses(tokens[i:i + length], tokens[i + 1:i + length + 1]) for i in (0, length)])
        out = self.folder / "small"
        said, _ = inspected(FOLDER, out, "--batch", batch, "--seq-len", length, "--set", "train.validation_batches=1")
        self.assertAlmostEqual(said["val_loss"], float(losses.mean()), delta=1e-4)  # sums in float32 in another order
        values = {key[1:]: value for key, value in head_values(out, "probe").items()}
        self.assertEqual(len(reference.sums), LAYERS * (3 * HEADS + KEY_HEADS))
        for key, total in reference.sums.items():
            self.assertAlmostEqual(values[key], total / batch, delta=2e-4 * max(1.0, total / batch), msg=str(key))

    def test_AGguf_GivesTheHeadsOfItsFolder(self):
        one, other = (head_values(self.out / model.name, "probe") for model in (FOLDER, GGUF))
        self.assertEqual(one.keys(), other.keys())
        # Weights of the folder are those of the file, rounded to 8 bits: a relative error of 2^-9 at most, and norms differ by less.
        for key, value in one.items():
            if key[-1] in ("q_norm", "k_norm"):
                self.assertAlmostEqual(other[key] / value, 1, delta=2**-9, msg=str(key))
        self.assertAlmostEqual(self.said[FOLDER]["val_loss"], self.said[GGUF]["val_loss"], delta=1e-3)

    def test_Memory_IsThatOfTheWeightsAndAGigabyte(self):
        weights_in_float32 = 4 * sum(tensor.size for tensor in weights().values())
        self.assertEqual(weights_in_float32, 538_060_032)
        for model, most in self.memory.items():
            self.assertLess(most, weights_in_float32 + 10**9, f"{model.name}: {most / 1e6:.0f} MB")

    def test_Roles_AreThoseOfTheInspection(self):
        out = self.folder / "roles"
        self.done("roles", GGUF, "--data", TEXT, "--out", out)
        found = rows(out, "roles")["role"]
        self.assertEqual(len(found), LAYERS * HEADS)
        self.assertEqual(found, rows(self.out / GGUF.name, "roles")["role"])


if __name__ == "__main__":
    program.main()
