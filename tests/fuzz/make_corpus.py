"""Writes seeds of the fuzzers of Parquet: small valid files, one per way of storing that a reader knows.

    pip install --target W pyarrow==23.0.1 numpy && PYTHONPATH=W python3 tests/fuzz/make_corpus.py
"""

import pathlib

import pyarrow as pa
import pyarrow.parquet as pq

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, columns, **how):
    how = {"compression": "none", "store_schema": False, "write_statistics": False, "use_dictionary": False,
           "write_page_index": False} | how
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), CORPUS / target / f"{name}.parquet", **how)


def capture(name, rows=3, dim=2, element=pa.float32(), integer=pa.int64(), window=pa.nulls, columns=None, **how):
    table = {
        "bucket": pa.array([i // 2 for i in range(rows)], integer),
        "position": pa.array([5 * i for i in range(rows)], integer),
        "vector": pa.array([[(i * 3 + c) / 4 - 1 for c in range(dim)] for i in range(rows)], pa.list_(element)),
        "sliding_window": window(rows),
    } | (columns or {})
    write("captured_vectors", name, table, **how)


capture("plain")
capture("dictionary", use_dictionary=True)
capture("v2", data_page_version="2.0")
capture("v2_dictionary_zstd", data_page_version="2.0", use_dictionary=True, compression="zstd")
capture("float16", element=pa.float16(), use_dictionary=True)
capture("float64_split", element=pa.float64(),
        column_encoding={"vector.list.element": "BYTE_STREAM_SPLIT", "bucket": "PLAIN",
                         "position": "DELTA_BINARY_PACKED", "sliding_window": "PLAIN"})
capture("uint32_windows", integer=pa.uint32(), window=lambda n: pa.array([None, 5, None, 7][:n] + [1] * (n - 4)), rows=9)
capture("groups", rows=4, row_group_size=2, columns={"example_id": pa.array([1, 1, 2, 2])})
capture("checksum_snappy", compression="snappy", write_page_checksum=True)
capture("gzip", compression="gzip", dim=9)
capture("lz4", compression="lz4", dim=17)
capture("not_finite", columns={"vector": pa.array([[1, 2], [float("nan"), 1], [0, float("inf")]], pa.list_(pa.float32()))})
capture("nulls", columns={"vector": pa.array([[1, 2], None, [0, None]], pa.list_(pa.float32()))})

# Of a run's tables (heads, gamma), and what other programs make of such a table.
HEADS = {"step": [0, 0, 1], "kind": ["k", "q", "k"], "value": [0.5, float("nan"), 2.0]}
GAMMA = {"step": [0, 1], "vector": pa.array([[1.0, 2.0], []], pa.list_(pa.field("element", pa.float64(), nullable=False)))}
NARROW = {str(kind): pa.array([1, None, 0], kind) for kind in (pa.int8(), pa.uint16(), pa.uint64(), pa.float32())}


def table(name, columns, **how):
    write("parquet_table", name, columns, **how)


table("heads", HEADS)
table("heads_dictionary_zstd", HEADS, use_dictionary=True, compression="zstd", write_page_checksum=True)
table("heads_v2_delta", HEADS, data_page_version="2.0",
      column_encoding={"step": "DELTA_BINARY_PACKED", "kind": "DELTA_BYTE_ARRAY", "value": "BYTE_STREAM_SPLIT"})
table("heads_lengths", HEADS, column_encoding={"step": "PLAIN", "kind": "DELTA_LENGTH_BYTE_ARRAY", "value": "PLAIN"})
table("gamma", GAMMA)
table("gamma_groups_snappy", GAMMA, row_group_size=1, compression="snappy", use_dictionary=True)
table("narrow_and_nulls", NARROW | {"flag": [True, None, False]})
table("categories", {"kind": pa.array(["k", None, "q", "k"]).dictionary_encode()}, store_schema=True, use_dictionary=True)
table("large_and_fixed", {"text": pa.array(["a", None], pa.large_string()),
                          "pair": pa.array([[1, 2], None], pa.list_(pa.float32(), 2)),
                          "list": pa.array([[1], None], pa.large_list(pa.float64()))}, store_schema=True)
table("other_types", {"group": pa.array([{"a": 1, "b": "x"}]), "when": pa.array([1], pa.timestamp("us")),
                      "bytes": pa.array([b"\xff"]), "step": [7]})
table("no_rows", {"step": pa.array([], pa.int64()), "vector": pa.array([], pa.list_(pa.float64()))})

TEXTS = {"text": ["one", "", "three words here"], "id": [1, 2, 3]}


def texts(name, columns=TEXTS, **how):
    write("text_column", name, columns, **how)


texts("plain")
texts("dictionary", use_dictionary=True)
texts("v2_zstd", data_page_version="2.0", compression="zstd", write_page_checksum=True)
texts("gzip_groups", compression="gzip", row_group_size=1)
texts("delta", column_encoding={"text": "DELTA_BYTE_ARRAY", "id": "PLAIN"})
texts("lengths", column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY", "id": "PLAIN"})
texts("null", {"text": ["one", None]})
texts("required_bytes", pa.table([[b"one", b"two"]], pa.schema([pa.field("text", pa.binary(), nullable=False)])))
texts("in_a_group", {"text": pa.array([{"text": "one"}])})
texts("numbers", {"text": [1, 2]})
