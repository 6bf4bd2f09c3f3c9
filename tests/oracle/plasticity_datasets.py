"""Small folders of captured queries and keys, one per case that the definition of plasticity tells apart.

`DATASETS` lists them; `random_dataset(seed)` makes one of random shape. `Dataset.write(folder)` writes the Parquet files.
Every value is drawn from a seeded generator, so that a case is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plasticity_reference import Config

Generator = np.random.Generator


@dataclass
class Capture:
    """One side of a head as it will stand in the file. None: the column is left out."""

    bucket: np.ndarray
    position: np.ndarray
    vector: np.ndarray  # [n, d]
    example_id: np.ndarray | None
    sliding_window: pa.Array | None = None

    def shuffled(self, rng: Generator) -> "Capture":
        order = rng.permutation(len(self.bucket))
        window = None if self.sliding_window is None else self.sliding_window.take(pa.array(order))
        example = None if self.example_id is None else self.example_id[order]
        return Capture(self.bucket[order], self.position[order], self.vector[order], example, window)

    def with_window(self, value: float | None, kind: pa.DataType) -> "Capture":
        return replace(self, sliding_window=pa.array([value] * len(self.bucket), type=kind))


@dataclass(frozen=True)
class Layout:
    """How a file is written; a reader must not care."""

    vector_type: type = np.float32
    fixed_size_list: bool = True
    integer_type: pa.DataType = pa.int32()
    compression: str = "zstd"
    row_group_size: int = 1 << 20
    dictionary: bool = False
    token_str: bool = False


def head_file(folder: Path, layer: int, head: int, kind: str) -> Path:
    return folder / f"l{layer:02d}h{head:02d}{kind}" / "data.parquet"


def write_capture(file: Path, capture: Capture, layout: Layout = Layout()) -> None:
    columns: dict[str, pa.Array] = {"bucket": pa.array(capture.bucket, type=layout.integer_type)}
    if capture.example_id is not None:
        columns["example_id"] = pa.array(capture.example_id, type=layout.integer_type)
    columns["position"] = pa.array(capture.position, type=layout.integer_type)
    columns["vector"] = _vector_column(capture.vector, layout)
    if capture.sliding_window is not None:
        columns["sliding_window"] = capture.sliding_window
    if layout.token_str:
        columns["token_str"] = pa.array([f"t{i}" for i in range(len(capture.bucket))])
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        pa.table(columns),
        file,
        compression=layout.compression,
        use_dictionary=layout.dictionary,
        row_group_size=layout.row_group_size,
    )


def _vector_column(vector_nd: np.ndarray, layout: Layout) -> pa.Array:
    n, d = vector_nd.shape
    flat = pa.array(vector_nd.ravel().astype(layout.vector_type))
    if layout.fixed_size_list:
        return pa.FixedSizeListArray.from_arrays(flat, d)
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1) * d, type=pa.int32()), flat)


# Making captures


def log_bucket(position: np.ndarray) -> np.ndarray:
    return np.floor(np.log2(position + 1)).astype(np.int64)


def uniform_bucket(size: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda position: position // size


@dataclass(frozen=True)
class Shape:
    """A capture of `examples` texts of `length` tokens, of which a share `kept` was captured."""

    examples: int = 12
    length: int = 96
    kept: float = 0.6
    d: int = 6
    bucket: Callable[[np.ndarray], np.ndarray] = log_bucket
    stretch: int = 1  # positions are multiplied by this
    scale: float = 1.0  # vectors are multiplied by this
    noise: Callable[[Generator, tuple[int, int]], np.ndarray] = lambda rng, size: rng.normal(size=size)
    offset: float = 0.5  # spread of the components' means


def capture(rng: Generator, shape: Shape) -> Capture:
    example, position = (
        column.ravel() for column in np.meshgrid(np.arange(shape.examples), np.arange(shape.length), indexing="ij")
    )
    kept = rng.random(len(example)) < shape.kept
    return vectors_at(rng, shape, position[kept] * shape.stretch, example[kept] + 100)


def vectors_at(rng: Generator, shape: Shape, position: np.ndarray, example: np.ndarray) -> Capture:
    """Anisotropic noise around a mean that drifts with position, differently in every component."""
    n, d = len(position), shape.d
    spread = np.exp(rng.normal(scale=0.5, size=d))
    drift = rng.normal(size=d) / max(int(position.max(initial=0)), 1)
    vector = rng.normal(scale=shape.offset, size=d) + np.outer(position, drift) + spread * shape.noise(rng, (n, d))
    return Capture(shape.bucket(position), position, shape.scale * vector, example)


def of_n_rows(rng: Generator, shape: Shape, n: int, examples: int = 1) -> Capture:
    return vectors_at(rng, shape, rng.integers(0, shape.length, size=n) * shape.stretch, rng.integers(0, examples, size=n))


# Datasets

Sides = dict[tuple[int, int, str], Capture]  # layer, head, "q" or "k"


@dataclass(frozen=True)
class Dataset:
    name: str
    make: Callable[[Generator], Sides]
    config: Config = Config()
    num_layers: int = 1
    layout: Layout = Layout()
    # Columns whose value is the standardised rounding noise of a residual that is zero in exact arithmetic: the
    # definition gives them no meaning, so they are not compared.
    noise_columns: frozenset[str] = field(default_factory=frozenset)

    def write(self, folder: Path) -> None:
        rng = np.random.default_rng([ord(letter) for letter in self.name])
        for (layer, head, kind), side in self.make(rng).items():
            write_capture(head_file(folder, layer, head, kind), side, self.layout)


def every_head(make: Callable[[Generator], Capture], layers: int = 1, q_heads: int = 1, k_heads: int = 1):
    """The same kind of capture on both sides of every head."""

    def sides(rng: Generator) -> Sides:
        heads = [(head, "q") for head in range(q_heads)] + [(head, "k") for head in range(k_heads)]
        return {(layer, head, kind): make(rng) for layer in range(layers) for head, kind in heads}

    return sides


def one_head(make_q: Callable[[Generator], Capture], make_k: Callable[[Generator], Capture] | None = None):
    return lambda rng: {(0, 0, "q"): make_q(rng), (0, 0, "k"): (make_k or make_q)(rng)}


def plain(**changes) -> Callable[[Generator], Capture]:
    shape = Shape(**changes)
    return lambda rng: capture(rng, shape)


def window_dataset(name: str, value: float | None, kind: pa.DataType, **config) -> Dataset:
    make = plain(bucket=uniform_bucket(12))
    return Dataset(
        f"window_{name}", one_head(lambda rng: make(rng).with_window(value, kind)), Config(**config)
    )


def windows_with_nulls_on_keys(rng: Generator) -> Sides:
    """Only the queries' window counts; the keys' column may say anything."""
    make = plain(bucket=uniform_bucket(12))
    return {(0, 0, "q"): make(rng).with_window(3, pa.int32()), (0, 0, "k"): make(rng).with_window(1, pa.int32())}


def sparse_buckets(rng: Generator) -> Sides:
    """Query buckets of one row, gaps, a query bucket before any key; key buckets whose examples have one key each."""
    shape = Shape(d=5, length=64, bucket=uniform_bucket(8))
    q_position = np.array([1] + [9] + [17, 18, 19] + [33] + [50] * 3 + [61, 62, 63])
    k_position = np.array([8, 9, 10, 11] + [24, 25] + [40, 41, 42] + [56])
    k_example = np.array([1, 1, 2, 2] + [1, 2] + [3, 3, 3] + [1])
    return {
        (0, 0, "q"): vectors_at(rng, shape, q_position, np.arange(len(q_position))),
        (0, 0, "k"): vectors_at(rng, shape, k_position, k_example),
    }


def constant_components(rng: Generator) -> Sides:
    """Components that never change, are zero, or whose key means cancel exactly: 512 rows of few-digit binary fractions, so
    that sums are exact in any order and 'constant' is not a matter of rounding."""
    n = 512
    position = np.arange(n)
    sides = {}
    for kind in ("q", "k"):
        vector = np.round(rng.normal(size=(n, 6)) * 64) / 64
        vector[:, 2] = 0.5
        vector[:, 4] = 0.0
        vector[:, 5] = np.where(position % 2 == 0, 0.25, -0.25)
        sides[0, 0, kind] = Capture(position // 64, position, vector, position % 4)
    return sides


def held_constant(columns: list[int], value: float, n: int) -> Callable[[Generator], Capture]:
    """Constants that binary fractions cannot sum exactly: the definition still says that they do not vary."""

    def make(rng: Generator) -> Capture:
        side = of_n_rows(rng, Shape(d=6), n, examples=3)
        side.vector[:, columns] = value
        return side

    return make


def two_rows(rng: Generator) -> Sides:
    """A line through two points, along the first axis, in exact binary fractions: residuals are exactly zero."""
    queries = Capture(np.array([1, 1]), np.array([1, 3]), np.array([[0.5, 1.0], [-0.5, 1.0]]), np.array([0, 0]))
    keys = Capture(np.zeros(2, int), np.array([0, 1]), np.array([[1.0, 0.25], [0.5, -0.25]]), np.array([0, 0]))
    return {(0, 0, "q"): queries, (0, 0, "k"): keys}


def equal_positions(position: int, n: int = 90) -> Callable[[Generator], Capture]:
    def make(rng: Generator) -> Capture:
        side = of_n_rows(rng, Shape(d=5), n=n, examples=5)
        return replace(side, position=np.full(n, position), bucket=rng.integers(0, 4, size=n))

    return make


def equal_but_one(rng: Generator) -> Capture:
    """A baseline that is small and real: one of 200 positions is another."""
    side = equal_positions(99, n=200)(rng)
    side.position[17] += 1
    return side


def duplicate_keys(rng: Generator) -> Sides:
    """Buckets where some, and where all, pairs of keys are equal, so that delta = 0."""
    queries, keys = capture(rng, Shape()), capture(rng, Shape(examples=6))
    keys.vector[keys.bucket == 2] = keys.vector[keys.bucket == 2][0]
    first_example = keys.example_id == keys.example_id[0]
    keys.vector[first_example & (keys.bucket == 4)] = 0.125
    return {(0, 0, "q"): queries, (0, 0, "k"): keys}


KS_SIZES = (3, 4, 5, 7, 9, 10, 30, 139, 140, 141, 142, 200, 1000, 3000)


def ks_sizes(rng: Generator) -> Sides:
    """One layer per sample size, heads from near normal to two-point: every branch of the exact KS distribution."""
    noises = (
        lambda rng, size: rng.normal(size=size),
        lambda rng, size: rng.lognormal(size=size),
        lambda rng, size: rng.choice([-1.0, 1.0], size=size) + 1e-3 * rng.normal(size=size),
    )
    sides: Sides = {}
    for layer, n in enumerate(KS_SIZES):
        for head, noise in enumerate(noises):
            sides[layer, head, "q"] = of_n_rows(rng, Shape(d=4, noise=noise), n)
        sides[layer, 0, "k"] = of_n_rows(rng, Shape(d=4), 40, examples=3)
    return sides


def heavy_tails(rng: Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.standard_t(1.5, size=size)


def without_examples(rng: Generator) -> Capture:
    return replace(capture(rng, Shape()), example_id=None)


DATASETS = [
    Dataset("log_buckets", every_head(plain(d=8), layers=2, q_heads=2), Config(num_q_heads=2), num_layers=2),
    Dataset("uniform_buckets", one_head(plain(bucket=uniform_bucket(16)))),
    Dataset("gqa_3_to_1", every_head(plain(), 2, 6, 2), Config(num_q_heads=6, num_k_heads=2), num_layers=2),
    Dataset("many_heads", every_head(plain(examples=4, d=3), 1, 12, 12), Config(num_q_heads=12, num_k_heads=12)),
    # Sub-sampling: Floyd's method below 10,000 rows and for small shares, the tail shuffle above.
    Dataset("subsample_floyd", one_head(plain(examples=20)), Config(max_tokens_per_head=300, seed=5)),
    Dataset("subsample_queries_only", one_head(plain(examples=20), plain(examples=5)), Config(max_tokens_per_head=400)),
    Dataset("subsample_keys_only", one_head(plain(examples=5), plain(examples=20)), Config(max_tokens_per_head=400)),
    Dataset(
        "subsample_tail_shuffle",
        one_head(plain(examples=120, length=128, kept=0.7, d=3)),
        Config(max_tokens_per_head=6000, seed=3),
    ),
    Dataset(
        "subsample_floyd_of_many",
        one_head(plain(examples=120, length=128, kept=0.7, d=3)),
        Config(max_tokens_per_head=200),
    ),
    # Sliding windows
    window_dataset("int", 2, pa.int32()),
    window_dataset("int64", 2, pa.int64()),
    window_dataset("one", 1, pa.int32()),
    window_dataset("zero", 0, pa.int32()),
    window_dataset("negative", -1, pa.int32()),
    window_dataset("float", 2.7, pa.float64()),
    window_dataset("below_one", 0.5, pa.float32()),
    window_dataset("larger_than_all", 1000, pa.int32()),
    window_dataset("null_values", None, pa.int32()),
    window_dataset("null_type", None, pa.null()),
    window_dataset("in_tokens", 30, pa.int32(), window="tokens"),
    Dataset("window_of_keys_ignored", windows_with_nulls_on_keys),
    # Buckets and examples
    Dataset("sparse_buckets", sparse_buckets),
    Dataset("one_example", one_head(plain(examples=1, length=300))),
    Dataset(
        "interleaved_examples",
        one_head(lambda rng: capture(rng, Shape(examples=9)).shuffled(rng)),
        Config(pairs_per_bucket=40),
    ),
    Dataset("no_example_id", one_head(without_examples)),
    Dataset("duplicate_keys", duplicate_keys),
    Dataset(
        "more_than_2_to_the_32_pairs",
        one_head(
            lambda rng: of_n_rows(rng, Shape(d=1, bucket=uniform_bucket(64)), 400),
            lambda rng: of_n_rows(rng, Shape(d=1, bucket=uniform_bucket(96)), 95_000),
        ),
        Config(max_tokens_per_head=100_000, pairs_per_bucket=500),
    ),
    # Components and rows
    Dataset("constant_components", constant_components),
    Dataset("constant_inexact_component", one_head(held_constant([2], 0.3, 300))),
    Dataset("constant_large_components", one_head(held_constant([2, 3], 1000.1, 301))),
    Dataset("constant_first_component", one_head(held_constant([0], 0.7, 333))),
    Dataset("constant_throughout", one_head(held_constant(list(range(6)), 0.3, 37))),
    Dataset("zero_throughout", one_head(held_constant(list(range(6)), 0.0, 37))),
    Dataset("one_dimension", every_head(plain(d=1), 2, 3), Config(num_q_heads=3), num_layers=2),
    Dataset("two_dimensions", one_head(plain(d=2))),
    Dataset("two_rows", two_rows),
    Dataset("equal_positions", one_head(equal_positions(7), plain(d=5))),
    # The mean of equal logarithms is rounded: it is off by more the more there are, and by lanes of a vector register.
    Dataset("equal_positions_inexact_log", one_head(equal_positions(10), plain(d=5))),
    Dataset("equal_positions_few_rows", one_head(equal_positions(99, n=3), plain(d=5))),
    Dataset("equal_positions_unequal_lanes", one_head(equal_positions(2, n=91), plain(d=5))),
    Dataset("equal_positions_many_rows", one_head(equal_positions(100_002, n=20_001), plain(d=5))),
    Dataset("equal_positions_but_one", one_head(equal_but_one, plain(d=5))),
    Dataset(
        "fewer_rows_than_dimensions",
        one_head(lambda rng: of_n_rows(rng, Shape(d=24), 9), plain(d=24)),
    ),
    # Types and layouts
    Dataset("float16_vectors", one_head(plain()), layout=Layout(vector_type=np.float16)),
    Dataset("float64_vectors", one_head(plain()), layout=Layout(vector_type=np.float64)),
    Dataset(
        "lists_and_row_groups",
        one_head(plain()),
        layout=Layout(
            fixed_size_list=False, integer_type=pa.int64(), compression="snappy", row_group_size=100, dictionary=True,
            token_str=True,
        ),
    ),
    Dataset("gzip_small_groups", one_head(plain()), layout=Layout(compression="gzip", row_group_size=7)),
    Dataset("lz4", one_head(plain()), layout=Layout(compression="lz4", row_group_size=333)),
    Dataset("uncompressed_int16", one_head(plain()), layout=Layout(compression="none", integer_type=pa.int16())),
    # Sizes of numbers
    Dataset("large_positions", one_head(plain(stretch=10_000))),
    Dataset("huge_norms", one_head(plain(scale=1e12))),
    Dataset("tiny_norms", one_head(plain(scale=1e-4))),
    # |beta| < 1e-12 and every total sum of squares < 1e-12: no rotation, R2 against the floor
    Dataset("vanishing_norms", one_head(plain(scale=1e-11, stretch=10))),
    Dataset("far_from_the_origin", one_head(plain(offset=1000.0))),
    # Distributions
    Dataset("heavy_tails", every_head(plain(noise=heavy_tails), 1, 3), Config(num_q_heads=3)),
    Dataset("ks_sizes", ks_sizes, Config(num_q_heads=3), num_layers=len(KS_SIZES)),
    Dataset(
        "ks_beyond_100000_rows",
        one_head(lambda rng: of_n_rows(rng, Shape(d=3), 100_500), plain(d=3)),
        Config(max_tokens_per_head=200_000),
    ),
    # Settings
    Dataset(
        "few_normality_dimensions", one_head(plain(d=20)), Config(normality_max_dims=5, p_alpha=0.4, seed=11)
    ),
    Dataset("few_pairs", one_head(plain()), Config(pairs_per_bucket=7)),
    Dataset("wide_seed", one_head(plain(d=12)), Config(seed=12_345_678_901, max_tokens_per_head=250)),
    Dataset(
        "three_rows",
        one_head(lambda rng: of_n_rows(rng, Shape(d=4), 3), plain(d=4)),
    ),
    Dataset(
        "two_oblique_rows",
        one_head(lambda rng: of_n_rows(rng, Shape(d=4), 2), plain(d=4)),
        noise_columns=frozenset({"q_resid0_skew", "q_resid0_kurt", "q_resid0_ks_p", "ks_d"}),
    ),
    Dataset("one_query", one_head(lambda rng: of_n_rows(rng, Shape(d=4), 1), plain(d=4))),
    Dataset("one_key", one_head(plain(d=4), lambda rng: of_n_rows(rng, Shape(d=4), 1))),
]


def random_dataset(seed: int) -> Dataset:
    """A head of random size, buckets, layout and settings."""
    rng = np.random.default_rng(seed)
    shape = Shape(
        examples=int(rng.integers(1, 15)),
        length=int(rng.integers(20, 200)),
        kept=rng.uniform(0.2, 1),
        d=int(rng.integers(1, 33)),
        bucket=log_bucket if rng.random() < 0.5 else uniform_bucket(int(rng.integers(3, 40))),
        scale=10 ** rng.uniform(-2, 3),
        noise=heavy_tails if rng.random() < 0.3 else Shape.noise,
    )
    config = Config(
        max_tokens_per_head=int(rng.integers(30, 1500)),
        normality_max_dims=int(rng.integers(1, 40)),
        p_alpha=rng.uniform(0, 1),
        seed=int(rng.integers(0, 1 << 40)),
        pairs_per_bucket=int(rng.integers(1, 300)),
    )
    layout = Layout(
        vector_type=[np.float16, np.float32, np.float64][rng.integers(3)],
        fixed_size_list=rng.random() < 0.5,
        compression=["zstd", "snappy", "none"][rng.integers(3)],
        row_group_size=int(rng.integers(20, 2000)),
        dictionary=rng.random() < 0.5,
    )
    window = int(rng.integers(1, 6)) if rng.random() < 0.4 else None

    def side(rng: Generator) -> Capture:
        return capture(rng, shape).shuffled(rng).with_window(window, pa.int32())

    return Dataset(f"random_{seed}", one_head(side), config, layout=layout)
