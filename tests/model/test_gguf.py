"""GGUF files of the published models, with every scaling of RoPE that the format holds: parity with what transformers computes of the
folder. Those with the plain options are committed, and tested in tests/experiments/parity_test.cpp.

usage: python test_gguf.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
from gguf import GGUFWriter
from gguf_files import write_gguf

DONE, DIFFERENT, WRONG_USAGE = 0, 1, 2
PUBLISHED = Path(__file__).resolve().parent / "published"
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
SLIDING_FIRST = [True, False]
headscope: Path


def tensors_of(model: str) -> dict[str, np.ndarray]:
    data = (PUBLISHED / model / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = (start + place for place in entry["data_offsets"])
        values = np.frombuffer(data[first:last], TYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = (values.astype(np.uint32) << 16).view(np.float32) if entry["dtype"] == "BF16" else values.astype(np.float32)
    return tensors


class Gguf(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope gguf ")
        self.addCleanup(temporary.cleanup)
        self.file = Path(temporary.name) / "model.gguf"

    def write(self, model: str, variant: str, pattern: int | list[bool] | None = None, **changes: object) -> None:
        config = json.loads((PUBLISHED / model / f"{variant}.json").read_text())
        config["rope_parameters"].update(changes)
        write_gguf(model, config, tensors_of(model), self.file, pattern=pattern)

    def parity(self, model: str, variant: str) -> subprocess.CompletedProcess:
        reference = PUBLISHED / model / f"{variant}.npz"
        return subprocess.run([headscope, "parity", self.file, "--reference", reference], capture_output=True, text=True, timeout=100)

    def test_EveryScaling_IsThatOfTheFolder(self):
        for model, variant, pattern in (
            ("llama", "linear", None), ("llama", "llama3", None), ("llama", "yarn", None), ("mistral", "full", None),
            ("qwen3", "yarn", None), ("glm4", "yarn", None), ("phi3", "sliding", None), ("phi3", "longrope", None),
            ("phi3", "longrope_long", None), ("gpt_neox", "sequential", None), ("gemma3_text", "gguf_scaled", 2),
            ("gemma3_text", "gguf_scaled", SLIDING_FIRST),
        ):
            with self.subTest(f"{model} {variant} {pattern}"):
                self.write(model, variant, pattern)
                result = self.parity(model, variant)
                self.assertEqual((result.returncode, result.stderr), (DONE, ""), result.stdout)

    def test_OptionsOfYarn_AreRead(self):
        for option in ({"beta_fast": 4.0}, {"beta_slow": 0.1}):
            with self.subTest(str(option)):
                self.write("llama", "yarn", **option)
                self.assertEqual(self.parity("llama", "yarn").returncode, DIFFERENT)

    def test_WhatIsNotKnown_IsRefusedByItsKey(self):
        for key, value in (("rope.scaling.yarn_attn_factor", 0.8), ("rope.scaling.yarn_ext_factor", 0.5),
                           ("rope.scaling.yarn_log_multiplier", 0.1), ("attention.scale", 0.5), ("logit_scale", 0.25)):
            with self.subTest(key):
                finish = GGUFWriter.write_header_to_file

                def with_key(writer: GGUFWriter) -> None:
                    writer.add_float32(f"llama.{key}", value)
                    finish(writer)
                GGUFWriter.write_header_to_file = with_key
                try:
                    self.write("llama", "yarn")
                finally:
                    GGUFWriter.write_header_to_file = finish
                result = self.parity("llama", "yarn")
                self.assertEqual(result.returncode, WRONG_USAGE, result.stdout)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
                self.assertIn(f"{self.file}: llama.{key} is {value}", result.stderr)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
