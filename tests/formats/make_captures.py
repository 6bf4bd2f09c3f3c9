"""Writes tests/formats/captures/*.parquet: the same small capture by Parquet writers that share no code with Arrow.

    pip install --target W polars==1.20.0 duckdb && PYTHONPATH=W python3 tests/formats/make_captures.py

The files are stored; captured_vectors_test.cpp reads them. Value of row r, component c: ((31 r + 7 c) mod 64 - 32) / 8.
"""

import pathlib

import duckdb
import numpy as np
import polars as pl

ROWS, DIM = 40, 5
OUT = pathlib.Path(__file__).parent / "captures"

r, c = np.meshgrid(np.arange(ROWS), np.arange(DIM), indexing="ij")
x = (((31 * r + 7 * c) % 64 - 32) / 8).astype(np.float32)
bucket, example, position = np.arange(ROWS) // 10, np.arange(ROWS) % 3 - 1, np.arange(ROWS) * 5

frame = pl.DataFrame(
    {"bucket": bucket.astype(np.uint8), "example_id": example, "position": position.astype(np.int32),
     "sliding_window": [None if i % 4 == 0 else i for i in range(ROWS)], "token_str": [f"t{i}" for i in range(ROWS)]}
).with_columns(vector=pl.Series(x.tolist(), dtype=pl.List(pl.Float32)))
frame.write_parquet(OUT / "polars_list.parquet", compression="zstd", row_group_size=16, data_page_size=256)
frame.with_columns(pl.col("vector").cast(pl.Array(pl.Float64, DIM))).write_parquet(
    OUT / "polars_array64.parquet", compression="lz4", use_pyarrow=False)

db = duckdb.connect()
db.sql(f"""create table t as select (i // 10)::utinyint bucket, i % 3 - 1 example_id, (i * 5)::usmallint as position,
  case when i % 4 = 0 then null else i end sliding_window, 't' || i token_str,
  list_transform(range({DIM}), lambda c: (((31 * i + 7 * c) % 64 - 32) / 8)::float) as vector from range({ROWS}) r(i)""")
db.sql(f"copy t to '{OUT / 'duckdb_v1.parquet'}' (format parquet, compression snappy, parquet_version v1)")
db.sql(f"copy t to '{OUT / 'duckdb_v2.parquet'}' (format parquet, compression zstd, parquet_version v2)")
