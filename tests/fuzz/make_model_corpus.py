"""Writes seeds of the fuzzers of model files: small GGUF files by the gguf package, archives and arrays by numpy.

    pip install --target W -r lock/tests.txt && PYTHONPATH=W python3 tests/fuzz/make_model_corpus.py
"""

import io
import pathlib
import sys
import zlib

import gguf
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tokenizer"))
import gguf_files  # noqa: E402

CORPUS = pathlib.Path(__file__).parent / "corpus"


def folder(target):
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    return CORPUS / target


def gguf_file(name, tensors, fill=lambda writer: None):
    writer = gguf.GGUFWriter(folder("gguf") / f"{name}.gguf", "llama")
    fill(writer)
    for tensor, (kind, data) in tensors.items():
        writer.add_tensor(tensor, data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def blocks(kind, count=1):
    return np.arange(gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][1] * count, dtype=np.uint8).reshape(count, -1)


def values(writer):
    for width in (8, 16, 32, 64):
        getattr(writer, f"add_uint{width}")(f"u{width}", 7)
        getattr(writer, f"add_int{width}")(f"i{width}", -7)
    writer.add_float32("f32", 0.5)
    writer.add_float64("f64", 0.5)
    writer.add_bool("b", True)
    writer.add_array("texts", ["a", "bc", ""])
    writer.add_array("integers", [1, 2])
    writer.add_array("numbers", [0.5])
    writer.add_array("booleans", [True, False])


gguf_file("values", {}, values)
gguf_file("plain", {"a": ("F32", np.ones((2, 3), np.float32)), "b": ("F16", np.ones(3, np.float16)),
                    "c": ("BF16", np.ones(6, np.uint8)), "d": ("I32", np.ones(2, np.int32))})
gguf_file("small_blocks", {kind: (kind, blocks(kind, 2)) for kind in ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL")})
for kind in ("Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K", "IQ4_XS"):
    gguf_file(kind, {kind: (kind, blocks(kind))})
gguf_file("alignment", {"a": ("F32", np.ones(2, np.float32))}, lambda writer: writer.add_custom_alignment(64))

TOKENS = {"tokens": ["<s>", "</s>", "a", "b", "ab", "Ġ", "<end>", "[PAD7]", "  "], "token_type": [3, 3, 1, 1, 1, 1, 4, 5, 4],
          "bos_token_id": 0, "eos_token_id": 1}
for pre in ("gpt-2", "smollm", "llama-bpe", "qwen2", "falcon", "deepseek-llm", "other", None):
    gguf_files.write_metadata(folder("gguf_tokenizer") / f"{pre or 'no_pre'}.gguf", TOKENS | {"model": "gpt2", "pre": pre, "merges": ["a b"], "add_eos_token": True})
PIECES = {"model": "llama", "tokens": ["<unk>", "<s>", "</s>", "<0xC3>", "<0xA9>", "▁", "a", "b", "ab", "▁ab", "  "],
          "token_type": [2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 4], "scores": [0.0, 0.0, 0.0, 0.0, 0.0, -3.0, -4.0, -5.0, -1.0, -2.0, -1000.0]}
for prefix in (True, False):
    gguf_files.write_metadata(folder("gguf_tokenizer") / f"scores_{prefix}.gguf", PIECES | {"add_space_prefix": prefix, "unknown_token_id": 0})
gguf_files.write_metadata(folder("gguf_tokenizer") / "bert.gguf", PIECES | {"model": "bert"})

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "f": np.asfortranarray(np.ones((2, 3), np.int16)),
          "b": np.array([True, False]), "big": np.array([1, 2], ">u4"), "one": np.float16(0.5), "none": np.zeros((0, 2))}
np.savez(folder("npz") / "stored.npz", **ARRAYS)
np.savez_compressed(folder("npz") / "deflated.npz", **ARRAYS)
for name, array in ARRAYS.items():
    for version in ((1, 0), (2, 0)):
        file = io.BytesIO()
        np.lib.format.write_array(file, array, version=version)
        content = file.getvalue()
        (folder("npz") / f"{name}_{version[0]}.npy").write_bytes(content)
    packer = zlib.compressobj(wbits=-15)  # the bytes of a member behind the size that it claims
    packed = packer.compress(content) + packer.flush()
    (folder("npz") / f"{name}.packed").write_bytes(len(content).to_bytes(2, "little") + packed)

for name, text in {
    "two": '{"metadata": {"total_size": 8}, "weight_map": {"a.weight": "model-00001-of-00002.safetensors", '
           '"b": "model-00002-of-00002.safetensors"}}',
    "leaves": '{"weight_map": {"a": "../x"}}',
    "twice": '{"weight_map": {"a": "x", "a": "y"}}',
    "too_large": '{"metadata": {"total_size": 333334e333333}}',
    "deep": '{"weight_map": ' + "[" * 70,
}.items():
    (folder("weight_map") / f"{name}.json").write_text(text)
