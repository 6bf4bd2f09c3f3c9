"""`headscope capture` of a real model, SmolLM2-135M-Instruct, against transformers and against the public program of the same format.

usage: scripts/peers test_capture_peers.py PATH_TO_HEADSCOPE [unittest options]

Which rows are kept is computed here again with torch's generator, and vectors are what transformers' own model hands to and takes from RoPE.
HEADSCOPE_QK_SNIFFER names a checkout of the public program, viktor-shcherb/qk-sniffer: whole files are then compared with those
that it writes. The model is what tests/model/fetch_real.py fetches, the text that of the shared corpus; without one of them, tests skip.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "experiments"), str(TESTS / "model")]

import fetch_real  # noqa: E402
import program  # noqa: E402
from program import Program  # noqa: E402

try:
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.models.llama import modeling_llama
except ImportError:
    torch = None

MODEL = fetch_real.models() / "smollm2"
CORPUS = fetch_real.SHARED / "corpus/val.jsonl.zst"
CHECKOUT = os.environ.get("HEADSCOPE_QK_SNIFFER", "")
LAYERS, HEADS, KEY_HEADS, D_K = 30, 9, 3, 64
MAX_LENGTH = 256
# Buckets small enough to have some in a document, and rates that keep enough rows of every head to see a wrong one. 24 is no power of
# two: the logarithmic sampler takes 32, the others 24.
CHOICES = {"log": ("--bucket-size", 24, "--base-rate", 6), "uniform": ("--bucket-size", 24, "--base-rate", 2.5),
           "all": ("--bucket-size", 24)}
# By the largest entry of a head. float32 sums in another order differ by 3e-6 after 30 layers, a wrong epsilon of RMSNorm by 7e-5.
TOLERANCE = 2e-5


def corpus(count: int) -> list[str]:
    lines = pa.input_stream(str(CORPUS), compression="zstd").read().decode().splitlines()
    return [json.loads(line)["text"] for line in lines[:count]]


def write_documents(file: Path, texts: list[str]) -> Path:
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return file


def check_needs() -> None:
    if torch is None:
        raise unittest.SkipTest("torch and transformers are not there; scripts/peers runs a Python that has them")
    for needed in (MODEL / "model.safetensors", CORPUS):
        if not needed.is_file():
            raise unittest.SkipTest(f"{needed} is not there; tests/model/fetch_real.py fetches the model, HEADSCOPE_SHARED names the text's folder")


def types(file: Path) -> dict[str, str]:
    return {field.name: str(field.type) for field in parquet.read_schema(file)}


class Library:
    """What transformers computes of the documents: their tokens, and by (rope, document, layer, kind) vectors [heads, tokens, d]."""

    def __init__(self, texts: list[str]) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(MODEL)
        model = AutoModel.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="sdpa").eval()
        self.ids = [self.tokenizer(text, truncation=True, max_length=MAX_LENGTH)["input_ids"] for text in texts]
        self.vectors: dict[tuple, np.ndarray] = {}
        rotate = modeling_llama.apply_rotary_pos_emb
        for document, ids in enumerate(self.ids):
            if ids:
                modeling_llama.apply_rotary_pos_emb = self.recording(rotate, document)
                with torch.inference_mode():
                    model(input_ids=torch.tensor([ids]), use_cache=False)
        modeling_llama.apply_rotary_pos_emb = rotate

    def recording(self, rotate, document: int):
        layer = 0

        def recorded(q, k, *arguments, **named):
            nonlocal layer
            turned = rotate(q, k, *arguments, **named)
            for rope, pair in (("pre", (q, k)), ("post", turned)):
                for kind, states in zip("qk", pair):
                    self.vectors[rope, document, layer, kind] = states[0].numpy()
            layer += 1
            return turned

        return recorded


def mix(value: int) -> int:
    """The finaliser of SplitMix64."""
    value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    value = ((value ^ value >> 27) * 0x94D049BB133111EB) % 2**64
    return value ^ value >> 31


def seed(document: int, layer: int, kind: str) -> int:
    state = 0x243F6A8885A308D3
    for value in (document, layer, ord(kind)):
        state = ((state ^ mix(value)) * 0x9E3779B97F4A7C15) % 2**64
        state ^= state >> 32
    return state


def buckets(sampler: str, positions: np.ndarray, size: int) -> np.ndarray:
    if sampler != "log":
        return positions // size
    return np.array([max((int(position) + 1).bit_length() - 1, math.ceil(math.log2(size))) for position in positions], dtype=np.int64)


def kept(sampler: str, length: int, document: int, layer: int, kind: str, size: int, rate: float) -> np.ndarray:
    """The positions of a document of which a layer's queries or keys are kept."""
    positions = np.arange(length)
    if sampler == "all":
        return positions
    widths = 2.0 ** buckets("log", positions, size) if sampler == "log" else np.full(length, float(size))
    shares = torch.tensor(np.minimum(1, rate / widths), dtype=torch.float32)
    draws = torch.rand(length, generator=torch.Generator().manual_seed(seed(document, layer, kind)), dtype=torch.float32)
    return positions[(draws < shares).numpy()]


def columns(file: Path) -> dict:
    """Of a head's file: lists, the vectors as one array. A head of which no row was kept has no file, and no columns."""
    if not file.is_file():
        return {}
    table = parquet.read_table(file)
    found = {name: table[name].to_pylist() for name in table.column_names if name != "vector"}
    return found | {"vector": table["vector"].combine_chunks().flatten().to_numpy().reshape(-1, D_K)}


def file_of(layer: int, head: int, kind: str) -> str:
    return f"l{layer:02}h{head:02}{kind}/data.parquet"


class Captured(Program):
    def capture(self, documents: Path, sampler: str, *more: object) -> Path:
        out = self.folder / f"{sampler} {len(os.listdir(self.folder))}"
        self.done("capture", MODEL, "--data", documents, "--out", out, "--sampler", sampler, "--max-length", MAX_LENGTH,
                  *CHOICES[sampler], *more)
        return out

    def assert_close(self, found: np.ndarray, expected: np.ndarray, of: str) -> None:
        self.assertEqual(found.shape, expected.shape, of)
        self.assertLess(np.abs(found - expected).max(), TOLERANCE * max(1.0, np.abs(expected).max()), of)


class Transformers(Captured):
    @classmethod
    def setUpClass(cls) -> None:
        check_needs()
        temporary = tempfile.TemporaryDirectory(prefix="headscope capture ")
        cls.addClassCleanup(temporary.cleanup)
        whole, long = corpus(2)
        texts = [whole, "", "a", long]
        cls.documents = write_documents(Path(temporary.name) / "documents.jsonl", texts)
        cls.library = Library(texts)

    def expected(self, sampler: str, rope: str, layer: int, kind: str) -> tuple[dict, np.ndarray]:
        """Columns of the heads' files, and the vectors [heads, rows, d]."""
        flags = dict(zip(CHOICES[sampler][::2], CHOICES[sampler][1::2]))
        size, rate = flags["--bucket-size"], flags.get("--base-rate", 1.0)
        rows, vectors = {"bucket": [], "example_id": [], "position": []}, []
        for document, ids in enumerate(self.library.ids):
            if ids:
                positions = kept(sampler, len(ids), document, layer, kind, size, rate)
                rows["bucket"] += buckets(sampler, positions, size).tolist()
                rows["example_id"] += [document] * len(positions)
                rows["position"] += positions.tolist()
                vectors.append(self.library.vectors[rope, document, layer, kind][:, positions])
        return rows | {"sliding_window": [None] * len(rows["position"])}, np.concatenate(vectors, axis=1)

    def assert_captured(self, sampler: str, rope: str) -> None:
        out = self.capture(self.documents, sampler, *(["--pre-rope"] if rope == "pre" else []))
        total = 0
        for layer in range(LAYERS):
            for kind, heads in (("q", HEADS), ("k", KEY_HEADS)):
                rows, vectors_hnd = self.expected(sampler, rope, layer, kind)
                total += len(rows["position"])
                for head in range(heads):
                    name = file_of(layer, head, kind)
                    found = columns(out / name)
                    if not rows["position"]:
                        self.assertEqual(found, {}, name)
                        continue
                    vectors_nd = found.pop("vector")
                    self.assertEqual(found, rows, name)
                    self.assert_close(vectors_nd, vectors_hnd[head], name)
        self.assertGreater(total, 8 * 2 * LAYERS)  # rows of a head: enough to see a wrong choice

    def test_TheTexts_AreOfAllKinds(self):
        whole, *others = (len(ids) for ids in self.library.ids)
        self.assertTrue(1 < whole < MAX_LENGTH)
        self.assertEqual(others, [0, 1, MAX_LENGTH])  # without a token, of one, and cut

    def test_Log_KeepsTheRowsAndVectors(self):
        self.assert_captured("log", "post")
        self.assert_captured("log", "pre")

    def test_Uniform_KeepsTheRowsAndVectors(self):
        self.assert_captured("uniform", "post")
        self.assert_captured("uniform", "pre")

    def test_All_KeepsTheRowsAndVectors(self):
        self.assert_captured("all", "post")
        self.assert_captured("all", "pre")

    def test_TokenStr_IsThePieceOfTheTokenizer(self):
        out = self.capture(self.documents, "all", "--token-str", "--layers", 0, "--heads", 0)
        pieces = [piece for ids in self.library.ids for piece in self.library.tokenizer.convert_ids_to_tokens(ids)]
        for kind in "qk":
            self.assertEqual(columns(out / file_of(0, 0, kind))["token_str"], pieces)


class PublicProgram(Captured):
    """The files of the public program itself. It fails on a text without a token, so there is none here."""

    @classmethod
    def setUpClass(cls) -> None:
        if not CHECKOUT:
            raise unittest.SkipTest("HEADSCOPE_QK_SNIFFER does not name a checkout of viktor-shcherb/qk-sniffer")
        check_needs()

    def assert_same_files(self, sampler: str, *more: str) -> None:
        whole, long = corpus(2)
        documents = write_documents(self.folder / "documents.jsonl", [whole, "a", long])
        theirs = self.folder / "theirs"
        command = [sys.executable, TESTS / "support/qk_sniffer.py", CHECKOUT, MODEL, documents, theirs, "--max-length", MAX_LENGTH,
                   "--sampler", "log_uniform" if sampler == "log" else sampler, *CHOICES[sampler], *more]
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr)
        ours = self.capture(documents, sampler, *more)
        names, found = (sorted(str(file.relative_to(out)) for file in out.glob("l*/data.parquet")) for out in (theirs, ours))
        self.assertEqual(found, names)
        self.assertGreater(len(names), LAYERS)
        for name in names:
            self.assertEqual(types(ours / name), types(theirs / name), name)
            mine, other = columns(ours / name), columns(theirs / name)
            vectors_nd, expected_nd = mine.pop("vector"), other.pop("vector")
            self.assertEqual(mine, other, name)
            self.assert_close(vectors_nd, expected_nd, name)
        self.assert_same_state(*(json.loads((out / "_saver_state.json").read_text()) for out in (ours, theirs)))

    def assert_same_state(self, ours: dict, theirs: dict) -> None:
        self.assertEqual(ours["bucket_counts"], theirs["bucket_counts"])
        for name, value in theirs["model_metadata"].items():
            if name.startswith("sampling_") or name == "attention_scope":
                self.assertEqual(ours["model_metadata"][name], value, name)

    def test_Log_IsTheSame(self):
        self.assert_same_files("log", "--token-str")

    def test_Uniform_IsTheSame(self):
        self.assert_same_files("uniform", "--pre-rope")

    def test_All_IsTheSame(self):
        self.assert_same_files("all")


if __name__ == "__main__":
    program.main()
