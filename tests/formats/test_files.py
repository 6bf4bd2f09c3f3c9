"""Files that headscope writes, read by other programs' readers: tables by pyarrow, tensors by struct and json, arrays by
numpy.

usage: python test_files.py PATH_TO_WRITE_FILES [unittest options]
"""

from __future__ import annotations

import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

PROGRAM = ""


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        subprocess.run([PROGRAM, str(cls.folder)], check=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.scratch.cleanup()

    def check_gamma(self, table: pa.Table) -> None:
        self.assertEqual(table.column("step").to_pylist(), [row << 33 for row in range(10)])
        self.assertEqual(table.column("layer").to_pylist(), [-row for row in range(10)])
        self.assertEqual(table.column("kind").to_pylist(), ["q" if row % 2 == 0 else "kü" for row in range(10)])
        for row, loss in enumerate(table.column("loss").to_pylist()):
            self.assertTrue(math.isnan(loss) if row % 4 == 1 else loss == 0.1 * row, (row, loss))  # None is no NaN
        for row, vector in enumerate(table.column("vector").to_pylist()):
            self.assertEqual((vector[0], vector[2], len(vector)), (0.5 + row, 1e-300, 3))
            self.assertTrue(math.isnan(vector[1]))
        self.assertEqual(table.schema.names, ["step", "layer", "kind", "loss", "vector"])
        types = table.schema.types
        self.assertEqual(types[:4], [pa.int64(), pa.int64(), pa.string(), pa.float64()])
        self.assertEqual((types[4].value_type, pa.types.is_list(types[4])), (pa.float64(), True))

    def test_a_table_is_read_by_the_name_of_its_folder(self) -> None:
        for name in ("growing.parquet", "merged.parquet"):
            with self.subTest(name):
                self.check_gamma(pq.read_table(self.folder / name))
                self.check_gamma(pyarrow.dataset.dataset(self.folder / name).to_table())

    def test_a_table_is_read_by_a_pattern(self) -> None:
        for name, parts in {"growing.parquet": 3, "merged.parquet": 1}.items():
            files = sorted((self.folder / name).glob("*.parquet"))
            self.assertEqual(len(files), parts)
            self.check_gamma(pa.concat_tables([pq.ParquetFile(file).read() for file in files]))

    def test_tables_are_compressed_and_carry_no_time(self) -> None:
        metadata = pq.ParquetFile(self.folder / "merged.parquet" / "part-00000.parquet").metadata
        column = metadata.row_group(0).column(0)
        self.assertEqual(column.compression, "ZSTD")
        self.assertIsNone(metadata.metadata)

    def test_tensors_have_the_published_layout(self) -> None:
        content = (self.folder / "model.safetensors").read_bytes()
        (length,) = struct.unpack_from("<Q", content)
        self.assertEqual((length % 8, content[8:9]), (0, b"{"))
        header, values = json.loads(content[8 : 8 + length]), content[8 + length :]
        self.assertEqual(header.pop("__metadata__"), {"format": "pt", "ü": '"\n'})
        self.assertEqual(list(header), ["a.weight", "tokens", "scalar", "none"])

        def tensor(name: str, dtype: str, numpy_type: str) -> np.ndarray:
            self.assertEqual(header[name]["dtype"], dtype)
            begin, end = header[name]["data_offsets"]
            return np.frombuffer(values[begin:end], numpy_type).reshape(header[name]["shape"])

        weights = np.array([[0.5, -1.25, 3e-38], [np.inf, 5, 6]], np.float32)
        np.testing.assert_array_equal(tensor("a.weight", "F32", "<f4"), weights)
        np.testing.assert_array_equal(tensor("tokens", "I64", "<i8"), [1, -2, 2**62])
        np.testing.assert_array_equal(tensor("scalar", "F32", "<f4"), np.float32(0.5))
        self.assertEqual(tensor("none", "BF16", "<u2").shape, (0, 4))
        self.assertEqual(header["none"]["data_offsets"], [len(values), len(values)])

    def test_arrays_are_read_by_numpy(self) -> None:
        for name, method in (("stored.npz", zipfile.ZIP_STORED), ("deflated.npz", zipfile.ZIP_DEFLATED)):
            with self.subTest(name), zipfile.ZipFile(self.folder / name) as archive:
                self.assertIsNone(archive.testzip())
                self.assertEqual({entry.compress_type for entry in archive.infolist()}, {method})
                arrays = np.load(self.folder / name, allow_pickle=False)
                self.assertEqual(list(arrays), ["numbers", "halves", "bits", "one", "none", "ü/many"])
                expected = {
                    "numbers": np.array([[0.5, -1e300, np.inf], [0, 5, 6]]),
                    "halves": np.array([1, -2], np.float16),
                    "bits": np.array([[True, False, True]]),
                    "one": np.uint8(1),
                    "none": np.zeros((0, 4), np.uint32),
                    "ü/many": np.arange(-7, 99_993).reshape(10, 10_000),
                }
                for key, array in expected.items():
                    self.assertEqual(arrays[key].dtype, array.dtype, key)
                    np.testing.assert_array_equal(arrays[key], array, strict=True)
                for entry in archive.infolist():  # values are aligned, as numpy aligns them
                    self.assertEqual(len(archive.read(entry)[10:].partition(b"\n")[0]) % 64, 53)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
