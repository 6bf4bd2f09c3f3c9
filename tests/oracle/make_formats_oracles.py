"""Files of other writers for the tests of formats, each with what a correct reader gives.

    python make_formats_oracles.py FOLDER

writes into FOLDER
    types.gguf      one tensor of every type that we read: random blocks, and weights quantised by the gguf package;
                    values of every kind in the metadata
    types.safetensors  the same tensors in float32 as the gguf package dequantises them
    stored.npz, deflated.npz  arrays of every type, order and version, by numpy; zip64.npz: the same with 64-bit fields
    npz.safetensors  the same arrays row by row
The gguf package and numpy write, read and dequantise here; nothing is shared with the program under test.
"""

import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib

import gguf
import numpy as np

TYPES = ["F32", "F16", "BF16", "F64", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "Q6_K", "Q5_K", "Q4_K", "Q3_K", "Q2_K",
         "IQ4_NL", "IQ4_XS"]
# Where the half-precision scales of a block are: random bytes there would be huge or not finite.
SCALES = {"Q8_0": [0], "Q5_1": [0, 2], "Q5_0": [0], "Q4_1": [0, 2], "Q4_0": [0], "Q6_K": [208], "Q5_K": [0, 2],
          "Q4_K": [0, 2], "Q3_K": [108], "Q2_K": [80, 82], "IQ4_NL": [0], "IQ4_XS": [0]}
NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
         "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8", "bool": "BOOL"}


def write_safetensors(file, tensors):
    header, place = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes("C") for array in tensors.values()))


def random_blocks(rng, name, rows, blocks):
    """Every bit of a block is random but for its scales: positive, negative, zero, subnormal and the largest."""
    kind = gguf.GGMLQuantizationType[name]
    data = rng.integers(0, 256, (rows, blocks, gguf.GGML_QUANT_SIZES[kind][1]), np.uint8)
    for place in SCALES[name]:
        scales = rng.normal(0, 0.02, (rows, blocks)).astype(np.float16)
        scales.flat[:5] = [0.0, -0.0, 6e-8, 65504, -6.1e-5]
        data[:, :, place:place + 2] = scales[:, :, None].view(np.uint8)
    return data.reshape(rows, -1)


def write_gguf(folder, rng):
    writer = gguf.GGUFWriter(folder / "types.gguf", "llama")
    writer.add_uint8("kinds.u8", 255)
    writer.add_int8("kinds.i8", -128)
    writer.add_uint16("kinds.u16", 65535)
    writer.add_int16("kinds.i16", -32768)
    writer.add_uint32("kinds.u32", 2**32 - 1)
    writer.add_int32("kinds.i32", -2**31)
    writer.add_uint64("kinds.u64", 2**64 - 1)
    writer.add_int64("kinds.i64", -2**63)
    writer.add_float32("kinds.f32", 1e-5)
    writer.add_float64("kinds.f64", 1e-300)
    writer.add_bool("kinds.true", True)
    writer.add_bool("kinds.false", False)
    writer.add_string("kinds.text", "Grüße\n")
    writer.add_array("kinds.texts", ["", "a", "Ġthe", "x" * 300])
    writer.add_array("kinds.integers", [-1, 0, 2**31 - 1])
    writer.add_array("kinds.numbers", [0.5, -0.25, 1e30])
    writer.add_array("kinds.booleans", [True, False, True])
    expected = {}

    def add(name, data, kind):
        writer.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])

    for kind in TYPES:
        rows, blocks = 3, 4
        if kind in SCALES:
            data = random_blocks(rng, kind, rows, blocks)
            expected[f"{kind}.random"] = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
            add(f"{kind}.random", data, kind)
        weights = rng.normal(0, 0.5, (5, 2, 256)).astype(np.float32)  # three dimensions: rows are the last
        if kind == "F64":
            weights = weights.astype(np.float64) * np.pi
            expected["F64.weights"] = weights.astype(np.float32)
            writer.add_tensor("F64.weights", weights)
            continue
        try:
            data = gguf.quantize(weights, gguf.GGMLQuantizationType[kind])
        except NotImplementedError:  # the package does not quantise to K types
            continue
        expected[f"{kind}.weights"] = gguf.dequantize(data, gguf.GGMLQuantizationType[kind])
        if kind == "BF16":
            data = data.view(np.uint8)
        add(f"{kind}.weights", data, kind)
    # Every half and every bfloat16.
    bits = np.arange(65536, dtype=np.uint16)
    expected["F16.all"] = bits.view(np.float16).astype(np.float32)
    add("F16.all", bits.view(np.float16), "F16")
    expected["BF16.all"] = (bits.astype(np.uint32) << 16).view(np.float32)
    add("BF16.all", bits.view(np.uint8), "BF16")
    writer.add_tensor("I32.all", np.array([-2**31, 0, 7], np.int32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_safetensors(folder / "types.safetensors", expected)


def arrays(rng):
    made = {}
    for name in NAMES:
        kind = np.dtype(name)
        data = rng.integers(0, 256, 24 * kind.itemsize, np.uint8).view(kind) if name != "bool" else rng.random(24) < 0.5
        made[name] = data.reshape(2, 3, 4)
        made[f"{name}.fortran"] = np.asfortranarray(data.reshape(2, 3, 4))
        if kind.itemsize > 1:
            made[f"{name}.big_endian"] = data.reshape(4, 6).astype(kind.newbyteorder(">"))
            made[f"{name}.big_endian_fortran"] = np.asfortranarray(data.reshape(4, 6).astype(kind.newbyteorder(">")))
    made["one value"] = np.float32(0.1)
    made["vector"] = np.arange(7, dtype=np.int16)
    made["empty"] = np.zeros((3, 0, 2), np.float32)
    made["zeros"] = np.zeros((1000, 100), np.float64)  # packed a thousand times smaller
    made["ü/name"] = np.array([1, 2], np.uint8)
    return made


def npy(array, version):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def write_zip64(file, members):
    """A zip archive whose sizes and offsets all stand in 64-bit fields, spelled out."""
    out, directory = b"", b""
    for name, content in members.items():
        raw, offset = name.encode(), len(out)
        common = struct.pack("<HHHHHIIIHH", 45, 0x800, 0, 0, 0x21, zlib.crc32(content), 2**32 - 1, 2**32 - 1, len(raw), 0)
        sizes = struct.pack("<QQ", len(content), len(content))
        out += struct.pack("<I", 0x04034b50) + common[:-2] + struct.pack("<H", 20) + raw
        out += struct.pack("<HH", 1, 16) + sizes + content
        other = struct.pack("<HHQ", 0x7777, 8, 1)  # an extra field of another kind before it
        directory += struct.pack("<IH", 0x02014b50, 45) + common[:-2] + struct.pack("<H", 28 + len(other))
        directory += struct.pack("<HHHII", 3, 0, 0, 0, 2**32 - 1) + raw + other
        directory += struct.pack("<HH", 1, 24) + sizes + struct.pack("<Q", offset) + b"abc"
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, len(members), len(members), len(directory), len(out))
    locator = struct.pack("<IIQI", 0x07064b50, 0, len(out) + len(directory), 1)
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, 2**32 - 1, 2**32 - 1, 7) + b"comment"
    file.write_bytes(out + directory + end64 + locator + end)


def write_npz(folder, rng):
    made = arrays(rng)
    np.savez(folder / "stored.npz", **made)
    np.savez_compressed(folder / "deflated.npz", **made)
    versions = [(1, 0), (2, 0), (3, 0)]
    members = {f"{name}.npy": npy(array, versions[i % 3]) for i, (name, array) in enumerate(made.items())}
    write_zip64(folder / "zip64.npz", members)
    with zipfile.ZipFile(folder / "zip64.npz") as archive:  # Python's reader takes it, too
        assert archive.testzip() is None and len(archive.namelist()) == len(members)
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in made.items()}
    write_safetensors(folder / "npz.safetensors", little)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_gguf(folder, np.random.default_rng(1))
    write_npz(folder, np.random.default_rng(2))


if __name__ == "__main__":
    main()
