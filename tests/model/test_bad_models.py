"""Published models that are damaged, hostile or not known: exit code 2, one line that names the file, and nothing left behind.

usage: python test_bad_models.py PATH_TO_HEADSCOPE [unittest options]

The readers have tests of their own, byte by byte (tests/formats, tests/tokenizer); here is what a user sees.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

DONE, WRONG_USAGE = 0, 2
PUBLISHED = Path(__file__).resolve().parent / "published"
DEEP = "[" * 100_000 + "]" * 100_000
MATRIX, BIAS = "model.layers.1.self_attn.k_proj.weight", "model.layers.1.self_attn.k_proj.bias"
INDEX = "model.safetensors.index.json"
headscope: Path

Damage = Callable[[Path], None]


def read_weights(folder: Path) -> tuple[dict, bytes]:
    data = (folder / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:8 + length]), data[8 + length:]


def write_weights(folder: Path, header: dict | str | bytes, data: bytes, name: str = "model.safetensors") -> None:
    text = json.dumps(header) if isinstance(header, dict) else header
    text = text.encode() if isinstance(text, str) else text
    (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + data)


def weights(change: Callable[[dict], None]) -> Damage:
    """Changes the header of the weights."""
    def damage(folder: Path) -> None:
        header, data = read_weights(folder)
        change(header)
        write_weights(folder, header, data)
    return damage


def raw(name: str, content: str | bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(content.encode() if isinstance(content, str) else content) and None


def replaced(name: str, old: str, new: str) -> Damage:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    return damage


def changed_json(name: str, change: Callable[[dict], None]) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))
    return damage


def config(**options: object) -> Damage:
    return changed_json("config.json", lambda content: content.update(options))


def tokenizer(change: Callable[[dict], None]) -> Damage:
    return changed_json("tokenizer.json", change)


def shards(**more: object) -> Damage:
    """The weights in a file of another name, with an index that says so; `more` changes the index."""
    def damage(folder: Path) -> None:
        header, data = read_weights(folder)
        (folder / "model.safetensors").unlink()
        write_weights(folder, header, data, "part.safetensors")
        index = {"weight_map": {name: "part.safetensors" for name in header if name != "__metadata__"}, **more}
        for name, file in more.pop("places", {}).items():
            index["weight_map"][name] = file
        index.pop("places", None)
        (folder / INDEX).write_text(json.dumps(index))
    return damage


def instead(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)
    return damage


def value_bits(name: str, bits: int) -> Damage:
    """Puts a value of BF16 into a tensor."""
    def damage(folder: Path) -> None:
        header, data = read_weights(folder)
        place = header[name]["data_offsets"][0] + 6
        write_weights(folder, header, data[:place] + struct.pack("<H", bits) + data[place + 2:])
    return damage


def set_in(name: str, **fields: object) -> Damage:
    return weights(lambda header: header[name].update(fields))


def moved(by: int) -> Damage:
    def change(header: dict) -> None:
        header[MATRIX]["data_offsets"] = [place + by for place in header[MATRIX]["data_offsets"]]
    return weights(change)


def link_loop(path: Path) -> None:
    path.symlink_to(path.name + ".other")
    path.with_name(path.name + ".other").symlink_to(path.name)


def renamed(old: str, new: str) -> Damage:
    return weights(lambda header: header.update({new: header.pop(old)}))


# What is damaged, what the line says (every part of it), and how.
FILES: list[tuple[str, tuple[str, ...], Damage]] = [
    ("a header beyond the file", ("model.safetensors",), raw("model.safetensors", struct.pack("<Q", 1 << 20) + b"{}")),
    ("a header of more than 100 MB", ("model.safetensors",), raw("model.safetensors", struct.pack("<Q", 1 << 62) + b"{}")),
    ("a file of 5 bytes", ("model.safetensors",), raw("model.safetensors", b"12345")),
    ("an empty file of weights", ("model.safetensors",), raw("model.safetensors", b"")),
    ("a header that is a list", ("model.safetensors",), lambda folder: write_weights(folder, "[1]", b"")),
    ("a deep header", ("model.safetensors",), lambda folder: write_weights(folder, DEEP, b"")),
    ("a deep tensor", ("model.safetensors", "'a'"), lambda folder: write_weights(folder, '{"a":' + DEEP + "}", b"")),
    ("a deep shape", ("model.safetensors", "'a'"), lambda folder: write_weights(folder, '{"a":{"shape":' + DEEP + "}}", b"")),
    ("a tensor twice", ("model.safetensors", "twice"),
     lambda folder: write_weights(folder, "{" + '"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},' * 2 + '"b":1}', b"1234")),
    ("overlapping tensors", ("model.safetensors", MATRIX), moved(-2)),
    ("a tensor beyond the file", ("model.safetensors", "tensor '"), moved(1 << 40)),
    ("a negative offset", ("model.safetensors", MATRIX), moved(-(1 << 40))),
    ("a shape whose product overflows", ("model.safetensors", MATRIX), set_in(MATRIX, shape=[1 << 40, 1 << 40])),
    ("a negative dimension", ("model.safetensors", MATRIX), set_in(MATRIX, shape=[-16, -32])),
    ("a shape that is not that of the bytes", ("model.safetensors", MATRIX), set_in(MATRIX, shape=[15, 32])),
    ("an unknown type", ("model.safetensors", MATRIX, "F4"), set_in(MATRIX, dtype="F4")),
    ("integer weights", (MATRIX, "I16"), set_in(MATRIX, dtype="I16")),
    ("another shape", (MATRIX, "[32, 16]"), set_in(MATRIX, shape=[32, 16])),
    ("another number of dimensions", (MATRIX, "[512]"), set_in(MATRIX, shape=[512])),
    ("a missing tensor", ("lacks a tensor of the model: " + BIAS,), renamed(BIAS, "k_proj.bias")),
    ("NaN", (MATRIX, "NaN"), value_bits(MATRIX, 0x7FC0)),
    ("infinity", (MATRIX, "infinity"), value_bits(MATRIX, 0xFF80)),
    ("no weights", ("{model}", "model.safetensors"), lambda folder: (folder / "model.safetensors").unlink()),
    ("a pipe as weights", ("model.safetensors",), instead("model.safetensors", os.mkfifo)),
    ("a folder as weights", ("model.safetensors",), instead("model.safetensors", os.mkdir)),
    ("a link to itself as weights", ("model.safetensors",), instead("model.safetensors", link_loop)),
    ("a link to nothing as weights", ("model.safetensors",), instead("model.safetensors", lambda path: path.symlink_to("no"))),
    ("a shard elsewhere", (INDEX, "../part.safetensors"), shards(places={MATRIX: "../part.safetensors"})),
    ("a shard of the whole machine", (INDEX, "/etc/passwd"), shards(places={MATRIX: "/etc/passwd"})),
    ("a missing shard", ("gone.safetensors",), shards(places={MATRIX: "gone.safetensors"})),
    ("a shard that is a number", (INDEX, MATRIX), shards(places={MATRIX: 7})),
    ("a tensor that its shard lacks", ("part.safetensors", "model.no.weight"), shards(places={"model.no.weight": "part.safetensors"})),
    ("a map that is a list", (INDEX, "weight_map"), shards(weight_map=[])),
    ("a deep index", (INDEX, "nested"), lambda folder: (shards()(folder), raw(INDEX, DEEP)(folder)) and None),
    ("a tensor twice in the index", (INDEX, "twice"),
     lambda folder: (shards()(folder), raw(INDEX, '{"weight_map":{"a":"part.safetensors","a":"b"}}')(folder)) and None),
    ("config.json that is a list", ("config.json", "object"), raw("config.json", "[]")),
    ("config.json that is no JSON", ("config.json", "JSON"), raw("config.json", '{"model_type": ')),
    ("config.json that is no text", ("config.json",), raw("config.json", b"\xff\xfe\x00")),
    ("an empty config.json", ("config.json",), raw("config.json", "")),
    ("an option twice", ("config.json", "twice"), raw("config.json", '{"model_type": "llama", "model_type": "qwen2"}')),
    ("a deep config.json", ("config.json", "nested"), raw("config.json", DEEP)),
    ("a deep option", ("config.json", "nested"), raw("config.json", '{"model_type": "qwen2", "rope_scaling": ' + DEEP + "}")),
    ("a pipe as config.json", ("config.json",), instead("config.json", os.mkfifo)),
    ("a folder as config.json", ("config.json",), instead("config.json", os.mkdir)),
    ("a link to itself as config.json", ("{model}",), instead("config.json", link_loop)),
    ("an unknown model_type", ("config.json", "'mamba'", "llama, mistral, smollm3", "glm4"), config(model_type="mamba")),
    ("a model_type of 1 MB", ("config.json", "known are llama"), config(model_type="x" * 1_000_000)),
    ("a model_type with line ends", ("config.json", "known are llama"), config(model_type="a\nb\x1b[31m")),
    ("an unknown activation", ("config.json", "hidden_act", "mish"), config(hidden_act="mish")),
    ("an unknown scaling of RoPE", ("config.json", "rope_parameters.rope_type"), config(rope_parameters={"rope_type": "axial"})),
    ("a scaling without its factor", ("config.json", "rope_scaling.factor"), config(rope_scaling={"type": "linear"})),
    ("a scaling that is text", ("config.json", "rope_scaling"), config(rope_scaling="linear")),
    ("zero heads", ("config.json", "num_attention_heads"), config(num_attention_heads=0)),
    ("key heads that do not divide", ("config.json", "num_key_value_heads"), config(num_key_value_heads=3)),
    ("as many layers as there are numbers", ("config.json", "num_hidden_layers"), config(num_hidden_layers=2**62)),
    ("a vocabulary beyond int64", ("config.json", "vocab_size"), config(vocab_size=2**64)),
    ("more layers than weights", ("lacks 24 tensors of the model: model.layers.2.",), config(num_hidden_layers=4, layer_types=None)),
    ("a window of another kind", ("config.json", "sliding_window"), config(use_sliding_window=True, sliding_window="4")),
    ("an epsilon of 0", ("config.json", "rms_norm_eps"), config(rms_norm_eps=0)),
    ("quantised weights", ("config.json", "quantization_config"), config(quantization_config={"bits": 4})),
]
TOKENIZERS: list[tuple[str, tuple[str, ...], Damage]] = [
    ("no tokenizer", ("{model}", "tokenizer.json"), lambda folder: (folder / "tokenizer.json").unlink()),
    ("a merge of an unknown piece", ("tokenizer.json", "zq"), tokenizer(lambda t: t["model"]["merges"].append("zq z"))),
    ("a merge to an unknown piece", ("tokenizer.json", "zz"), tokenizer(lambda t: t["model"]["merges"].append("z z"))),
    ("another kind of tokenizer", ("tokenizer.json", "Unigram"), tokenizer(lambda t: t["model"].update(type="Unigram"))),
    ("a deep tokenizer", ("tokenizer.json", "nested"), raw("tokenizer.json", DEEP)),
    ("a piece twice", ("tokenizer.json", "twice"), replaced("tokenizer.json", '"a": 0,', '"a": 0, "a": 1,')),
    ("a tokenizer that is a list", ("tokenizer.json",), raw("tokenizer.json", "[]")),
    ("a pipe as tokenizer", ("tokenizer.json",), instead("tokenizer.json", os.mkfifo)),
]


def gguf_damage(data: bytes) -> list[tuple[str, tuple[str, ...], bytes]]:
    """Of a whole file: its first 24 bytes are the name, the version, and the counts of tensors and of metadata."""
    def counts(tensors: int, values: int) -> bytes:
        return data[:8] + struct.pack("<QQ", tensors, values) + data[24:]
    tensors, values = struct.unpack("<QQ", data[8:24])
    architecture = data.index(b"qwen2")
    return [
        ("more tensors than bytes", (), counts(1 << 60, values)),
        ("more metadata than bytes", (), counts(tensors, 1 << 60)),
        ("a tensor too many", (), counts(tensors + 1, values)),
        ("a value too few", (), counts(tensors, values - 1)),
        ("no tensors", ("token_embd.weight",), counts(0, values)),
        ("a half", (), data[:len(data) // 2]),
        ("nothing after the name", (), data[:4]),
        ("another version", ("version",), data[:4] + struct.pack("<I", 9) + data[8:]),
        ("the other order of bytes", (), data[:4] + struct.pack(">I", 3) + data[8:]),
        ("an unknown architecture", ("'mamba'", "known are llama"), data[:architecture] + b"mamba" + data[architecture + 5:]),
    ]


class Published(unittest.TestCase):
    """A small model with a tokenizer, in a folder of its own."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope bad ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.text = self.folder / "text.jsonl"
        self.text.write_text('{"text": "the quick brown fox jumps over the lazy dog"}\n' * 40)

    def model(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir()
        for source, target in (("default.json", "config.json"), ("model.safetensors", "model.safetensors")):
            shutil.copyfile(PUBLISHED / "qwen2" / source, folder / target)
        pieces = {chr(ord("a") + i): i for i in range(26)} | {"Ġ": 26, "Ċ": 27, "th": 28}
        end = {"id": 29, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
               "special": True}
        (folder / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "added_tokens": [end], "normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "vocab": pieces, "merges": ["t h"]}}))
        (folder / "tokenizer_config.json").write_text('{"eos_token": "<|end|>"}')
        return folder

    def parity(self, model: Path) -> subprocess.CompletedProcess:
        return self.run_program("parity", model, "--reference", PUBLISHED / "qwen2" / "default.npz")

    def inspect(self, model: Path, *more: object) -> subprocess.CompletedProcess:
        arguments = more if "--data" in more else ("--data", self.text, *more)
        return self.run_program("inspect", model, "--out", self.folder / "out", "--batch", "2", "--seq-len", "8", *arguments)

    def run_program(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([headscope, *arguments], capture_output=True, text=True, timeout=100, cwd=self.folder)

    def assert_refused(self, result: subprocess.CompletedProcess, parts: tuple[str, ...], model: Path) -> None:
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr[:2000])
        self.assertEqual(result.stdout, "")
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr[:2000])
        self.assertLess(len(result.stderr), 1500)
        self.assertTrue(result.stderr.removesuffix("\n").isprintable(), result.stderr)
        for part in (str(model), *parts):
            self.assertIn(part.replace("{model}", str(model)), result.stderr)
        self.assertFalse((self.folder / "out").exists())


class BadModels(Published):
    def test_TheModelItself_IsMeasured(self):
        """What the damage is done to is good."""
        model = self.model("model")
        result = self.parity(model)
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))
        shards()(model)
        result = self.parity(model)
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))
        result = self.inspect(model, "--quiet")
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))

    def check_all(self, cases: list[tuple[str, tuple[str, ...], Damage]], command: Callable) -> None:
        models = []
        for number, (_, _, damage) in enumerate(cases):
            models.append(self.model(f"model{number}"))
            damage(models[-1])
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(command, models))
        for (name, parts, _), model, result in zip(cases, models, results):
            with self.subTest(name):
                self.assert_refused(result, parts, model)

    def test_DamagedFiles_AreOneLine(self):
        self.check_all(FILES, self.parity)

    def test_DamagedTokenizers_AreOneLineAndLeaveNothing(self):
        self.check_all(TOKENIZERS, self.inspect)

    def test_AVocabularyLargerThanTheEmbedding_IsOneLine(self):
        def larger(content: dict) -> None:
            content["model"]["vocab"].update({"x" * (i + 2): 29 + i for i in range(32)})
            content["added_tokens"][0]["id"] = 61
        model = self.model("model")
        tokenizer(larger)(model)
        self.assert_refused(self.inspect(model), ("vocabulary of 62", "61"), self.text)

    def test_DamagedWeights_LeaveNoRun(self):
        model = self.model("model")
        value_bits(MATRIX, 0x7FC0)(model)
        self.assert_refused(self.inspect(model), (MATRIX,), model)

    def test_DamagedGguf_IsOneLine(self):
        for number, (name, parts, data) in enumerate(gguf_damage((PUBLISHED / "qwen2" / "default.gguf").read_bytes())):
            with self.subTest(name):
                model = self.folder / f"{number}.gguf"
                model.write_bytes(data)
                self.assert_refused(self.parity(model), parts, model)

    def test_EmptyData_IsOneLine(self):
        model = self.model("model")
        for name, content in (("empty.txt", ""), ("empty.jsonl", "")):
            data = self.folder / name
            data.write_text(content)
            with self.subTest(name):
                self.assert_refused(self.inspect(model, "--data", data), (), data)

    def test_PlacesWithoutAModel_AreOneLine(self):
        empty = self.folder / "empty"
        empty.mkdir()
        loop = self.folder / "loop"
        link_loop(loop)
        pipe = self.folder / "pipe.gguf"
        os.mkfifo(pipe)
        for place in (empty, loop, pipe, self.folder / "nothing", self.text):
            with self.subTest(place.name):
                self.assert_refused(self.parity(place), (), place)

    def test_ExtraTensors_AreListedInAWarning(self):
        model = self.model("model")
        header, data = read_weights(model)
        names = [f"extra.{i:02}.weight" for i in range(12)]
        for name in names:
            header[name] = {"dtype": "U8", "shape": [2], "data_offsets": [len(data), len(data) + 2]}
            data += b"ab"
        write_weights(model, header, data)
        result = self.parity(model)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("12 tensors are not used: " + ", ".join(names[:8]) + " and 4 more", result.stderr)
        self.assertIn("all within tolerance", result.stdout)


class BadReferences(Published):
    """Of parity: arrays that are missing, damaged or of another model."""

    def refused(self, parts: tuple[str, ...], **changes: object) -> None:
        model = self.folder / "model"
        if not model.exists():
            self.model("model")
        arrays = dict(np.load(PUBLISHED / "qwen2" / "default.npz")) | changes
        file = self.folder / "other.npz"
        np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
        self.assert_refused(self.run_program("parity", model, "--reference", file), parts, file)

    def test_Arrays_AreNamed(self):
        ids = np.load(PUBLISHED / "qwen2" / "default.npz")["input_ids"]
        names = ("q_pre", "k_pre", "q_post", "k_post", "entropy", "logits")
        for name, parts, changes in (
            ("no tokens", ("input_ids",), {"input_ids": None}),
            ("tokens alone", ("nothing to compare",), dict.fromkeys(names)),
            ("one sequence as a row", ("input_ids", "[18]"), {"input_ids": ids[0]}),
            ("no sequence", ("input_ids",), {"input_ids": ids[:0]}),
            ("tokens that are numbers", ("input_ids",), {"input_ids": ids.astype(np.float32)}),
            ("a token beyond the vocabulary", ("input_ids", "61"), {"input_ids": np.full_like(ids, 61)}),
            ("a negative token", ("input_ids", "-1"), {"input_ids": np.full_like(ids, -1)}),
            ("other tokens", ("q_pre has shape",), {"input_ids": ids[:, :5]}),
            ("objects", ("q_post",), {"q_post": np.array([{"a": 1}], dtype=object)}),
            ("texts", ("entropy",), {"entropy": np.array(["a", "b"])}),
            ("complex numbers", ("logits",), {"logits": np.zeros((1, 18, 61), np.complex64)}),
            ("another shape of logits", ("logits has shape [18, 61]",), {"logits": np.zeros((18, 61), np.float32)}),
            ("a layer too many", ("entropy has shape",), {"entropy": np.zeros((3, 1, 4, 18), np.float32)}),
            ("no values", ("k_pre has shape",), {"k_pre": np.zeros((0,), np.float32)}),
            ("NaN", ("k_post holds NaN or infinity",), {"k_post": np.full((2, 1, 2, 18, 8), np.nan, np.float32)}),
            ("infinity", ("k_post holds NaN or infinity",), {"k_post": np.full((2, 1, 2, 18, 8), np.inf, np.float32)}),
        ):
            with self.subTest(name):
                self.refused(parts, **changes)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
