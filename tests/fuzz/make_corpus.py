"""Writes tests/fuzz/corpus/captured_vectors: small valid files, one per way of storing that the reader knows.

    pip install --target W pyarrow==23.0.1 numpy && PYTHONPATH=W python3 tests/fuzz/make_corpus.py
"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).parent / "corpus" / "captured_vectors"


def write(name, rows=3, dim=2, element=pa.float32(), integer=pa.int64(), window=pa.nulls, columns=None, **how):
    table = {
        "bucket": pa.array([i // 2 for i in range(rows)], integer),
        "position": pa.array([5 * i for i in range(rows)], integer),
        "vector": pa.array([[(i * 3 + c) / 4 - 1 for c in range(dim)] for i in range(rows)], pa.list_(element)),
        "sliding_window": window(rows),
    } | (columns or {})
    how = {"compression": "none", "store_schema": False, "write_statistics": False, "use_dictionary": False,
           "write_page_index": False} | how
    pq.write_table(pa.table(table), OUT / f"{name}.parquet", **how)


write("plain")
write("dictionary", use_dictionary=True)
write("v2", data_page_version="2.0")
write("v2_dictionary_zstd", data_page_version="2.0", use_dictionary=True, compression="zstd")
write("float16", element=pa.float16(), use_dictionary=True)
write("float64_split", element=pa.float64(),
      column_encoding={"vector.list.element": "BYTE_STREAM_SPLIT", "bucket": "PLAIN", "position": "DELTA_BINARY_PACKED",
                       "sliding_window": "PLAIN"})
write("uint32_windows", integer=pa.uint32(), window=lambda n: pa.array([None, 5, None, 7][:n] + [1] * (n - 4)), rows=9)
write("groups", rows=4, row_group_size=2, columns={"example_id": pa.array([1, 1, 2, 2])})
write("checksum_snappy", compression="snappy", write_page_checksum=True)
write("gzip", compression="gzip", dim=9)
write("lz4", compression="lz4", dim=17)
write("not_finite", columns={"vector": pa.array([[1, 2], [float("nan"), 1], [0, float("inf")]], pa.list_(pa.float32()))})
write("nulls", columns={"vector": pa.array([[1, 2], None, [0, None]], pa.list_(pa.float32()))})
