"""Attention plasticity of one head, step by step, in plain numpy and scipy: the oracle of the plasticity tests.

It follows the definition and nothing else: an explicit Householder matrix, numpy's own generator, scipy's own
statistics. Sums and products run in np.longdouble, so that a value printed here is the value of the definition to about
1e-12 and a disagreement is the program's. Letters as in the definition: t position, x a query component.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

VARIANTS = ("seed", "diagonal")

METRIC_COLUMNS = {
    "seed": [
        "layer", "q_head", "k_head", "n_q_tokens", "n_k_tokens", "d_model", "q_R2_pos", "q_R2_scalar",
        "q_mae_baseline", "q_mae_proj", "q_mae_ratio", "q_resid0_skew", "q_resid0_kurt", "q_resid0_ks_p",
        "q_noise_med_abs_skew", "q_noise_med_abs_kurt", "q_noise_med_ks_p", "q_noise_frac_ks_p_lt_alpha", "ap_overall",
    ],
}
METRIC_COLUMNS["diagonal"] = METRIC_COLUMNS["seed"][:7] + ["q_beta_norm"] + METRIC_COLUMNS["seed"][7:]
CELL_COLUMNS = {
    "seed": ["layer", "q_head", "k_head", "q_bucket", "k_bucket", "plasticity", "n_pairs"],
    "diagonal": ["layer", "q_head", "k_head", "q_bucket", "k_bucket", "ap_bucket"],
}
COMPONENT_COLUMNS = {
    "seed": ["layer", "q_head", "k_head", "component", "weight"],
    "diagonal": ["layer", "q_head", "k_head", "component", "component_r2", "component_weight"],
}


@dataclass(frozen=True)
class Config:
    """The configuration fields that change a number."""

    num_q_heads: int = 1
    num_k_heads: int = 1
    max_tokens_per_head: int = 50000
    normality_max_dims: int = 64
    p_alpha: float = 0.01
    seed: int = 0
    pairs_per_bucket: int = 256
    window: str = "buckets"  # or "tokens": the distance between bucket mean positions

    def key_head(self, q_head: int) -> int:
        return q_head // (self.num_q_heads // self.num_k_heads)


@dataclass
class Rows:
    """One side of a head: [n] columns and x [n, d]."""

    bucket: np.ndarray
    example_id: np.ndarray
    position: np.ndarray
    sliding_window: np.ndarray  # float64, NaN for null
    x: np.ndarray

    def __len__(self) -> int:
        return len(self.bucket)

    def take(self, index: np.ndarray) -> "Rows":
        return Rows(*(column[index] for column in vars(self).values()))


# Step 1


def load(file: Path) -> Rows:
    table = pq.ParquetFile(file).read()
    n = table.num_rows
    return Rows(
        bucket=_integers(table["bucket"]),
        example_id=_integers(table["example_id"]) if "example_id" in table.column_names else np.arange(n),
        position=_integers(table["position"]).astype(np.longdouble),
        sliding_window=_window_column(table),
        x=_vectors(table["vector"]),
    )


def _integers(column: pa.ChunkedArray) -> np.ndarray:
    return column.to_numpy().astype(np.int64)


def _window_column(table: pa.Table) -> np.ndarray:
    if "sliding_window" not in table.column_names:
        return np.full(table.num_rows, np.nan)
    return np.array([np.nan if w is None else float(w) for w in table["sliding_window"].to_pylist()], dtype=np.float64)


def _vectors(column: pa.ChunkedArray) -> np.ndarray:
    values = np.concatenate([np.asarray(chunk.flatten()) for chunk in column.chunks])
    return values.astype(np.longdouble).reshape(len(column), -1)


# Step 2


def orientation(keys: Rows) -> np.ndarray:
    bucket_means = np.array([column_mean(keys.x[keys.bucket == b]) for b in np.unique(keys.bucket)])
    sign = np.sign(bucket_means.mean(axis=0))
    sign[sign == 0] = 1
    return sign


def column_mean(x: np.ndarray) -> np.ndarray:
    """The mean of each column; of a constant column exactly its value, which a rounded sum may miss."""
    return np.where((x == x[0]).all(axis=0), x[0], x.mean(axis=0))


# Step 3


def subsample(rows: Rows, cap: int, seed: int) -> Rows:
    if len(rows) <= cap:
        return rows
    return rows.take(np.random.default_rng(seed).choice(len(rows), cap, replace=False))


# Step 4


def window_of(queries: Rows) -> float | None:
    distinct = np.unique(queries.sliding_window)  # NaNs count as one value
    if len(distinct) > 1:
        raise ValueError(f"mixed sliding windows: {distinct}")
    value = distinct[0]
    if np.isnan(value) or value <= 0:
        return None
    return max(np.floor(value), 1)


# Step 5 (and 8)


@dataclass
class Line:
    """x = alpha + beta t + residual for every component."""

    alpha: np.ndarray
    beta: np.ndarray
    r2: np.ndarray
    residual: np.ndarray  # [n, d]


def fit_line(t: np.ndarray, x: np.ndarray) -> Line:
    t_centred = t - column_mean(t)
    x_mean = column_mean(x)
    x_centred = x - x_mean
    t_square = (t_centred**2).sum()
    if t_square <= 0:
        zero = np.zeros(x.shape[1], dtype=np.longdouble)
        return Line(alpha=x_mean, beta=zero, r2=zero, residual=x_centred)
    # Centring x changes nothing in exact arithmetic, and makes the slope of a constant component exactly zero.
    beta = t_centred @ x_centred / t_square
    residual = x_centred - np.outer(t_centred, beta)
    ss_residual = (residual**2).sum(axis=0)
    ss_total = (x_centred**2).sum(axis=0)
    r2 = np.minimum(1, 1 - ss_residual / np.maximum(ss_total, np.longdouble(1e-12)))
    return Line(alpha=x_mean - beta * column_mean(t), beta=beta, r2=r2, residual=residual)


# Step 6


def scalar_predictability(t: np.ndarray, x: np.ndarray, beta: np.ndarray) -> dict[str, float]:
    if len(np.unique(t)) == 1:  # nothing is to be predicted: no rounding is involved in saying so
        return {"q_R2_scalar": 0.0, "q_mae_baseline": 0.0, "q_mae_proj": 0.0, "q_mae_ratio": 1.0}
    y = np.log2(t + 1)
    y_centred = y - y.mean()
    baseline = np.abs(y_centred).mean()
    r2, mae = np.longdouble(0), baseline
    norm = np.sqrt((beta**2).sum())
    if norm > 0:
        s = x @ (beta / norm)
        s_centred = s - column_mean(s)
        s_square = (s_centred**2).sum()
        if s_square > 0:
            residual = y_centred - s_centred * ((s_centred @ y_centred) / s_square)
            mae = np.abs(residual).mean()
            r2 = 1 - (residual**2).sum() / (y_centred**2).sum()
    return {
        "q_R2_scalar": r2,
        "q_mae_baseline": baseline,
        "q_mae_proj": mae,
        "q_mae_ratio": mae / baseline,
    }


# Step 7


def reflection(beta: np.ndarray) -> np.ndarray:
    """H, symmetric and orthogonal, with H e1 = beta / |beta|."""
    identity = np.eye(len(beta), dtype=np.longdouble)
    norm = np.sqrt((beta**2).sum())
    if norm < 1e-12:
        return identity
    v = beta / norm - identity[0]
    length = np.sqrt((v**2).sum())
    if length < 1e-12:
        return identity
    v = v / length
    return identity - 2 * np.outer(v, v)


# Step 8


def residual_variance(residual: np.ndarray) -> np.ndarray:
    n, d = residual.shape
    if n < 2:
        return np.ones(d, dtype=np.longdouble)
    return standard_deviation(residual) ** 2


def standard_deviation(x: np.ndarray) -> np.ndarray:
    return np.sqrt(((x - column_mean(x)) ** 2).sum(axis=0) / (len(x) - 1))


# Step 9


def first_component_normality(residual: np.ndarray) -> dict[str, float]:
    if len(residual) < 2:
        return dict.fromkeys(("q_resid0_skew", "q_resid0_kurt", "q_resid0_ks_p"), np.nan)
    deviation = standard_deviation(residual)
    if deviation <= 0:
        return {"q_resid0_skew": 0.0, "q_resid0_kurt": 0.0, "q_resid0_ks_p": 1.0}
    z = ((residual - column_mean(residual)) / deviation).astype(np.float64)
    return {
        "q_resid0_skew": _quietly(stats.skew, z),
        "q_resid0_kurt": _quietly(stats.kurtosis, z),
        "q_resid0_ks_p": ks_p_value(z),
    }


def semantic_normality(semantic: np.ndarray, config: Config) -> dict[str, float]:
    names = ("q_noise_med_abs_skew", "q_noise_med_abs_kurt", "q_noise_med_ks_p", "q_noise_frac_ks_p_lt_alpha")
    n, d = semantic.shape
    if n < 3 or d == 0:
        return dict(zip(names, (0.0, 0.0, 1.0, 0.0)))
    deviation = standard_deviation(semantic)
    deviation[deviation == 0] = 1
    z = ((semantic - column_mean(semantic)) / deviation).astype(np.float64)
    skew = np.median(np.abs(_quietly(stats.skew, z)))
    kurtosis = np.median(np.abs(_quietly(stats.kurtosis, z)))
    tested = np.random.default_rng(config.seed).choice(d, min(config.normality_max_dims, d), replace=False)
    p = np.array([ks_p_value(z[:, j]) for j in tested])
    return dict(zip(names, (skew, kurtosis, np.median(p), np.mean(p < config.p_alpha))))


def _quietly(statistic, z: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():  # scipy warns where it answers NaN for a constant column: that is the definition
        warnings.simplefilter("ignore", RuntimeWarning)
        return statistic(z, axis=0, bias=False)


def ks_p_value(z: np.ndarray) -> float:
    return stats.kstest(z, "norm", method="exact").pvalue


# Step 10


@dataclass
class Cell:
    q_bucket: int
    k_bucket: int
    pairs: list[tuple[int, int]]  # rows of the keys


def sample_cells(queries: Rows, keys: Rows, window: float | None, layer: int, q_head: int, config: Config) -> list[Cell]:
    generator = np.random.default_rng(config.seed + 10007 * layer + 379 * q_head)
    cells = []
    for q_bucket in np.unique(queries.bucket):
        if q_bucket <= 0:
            continue
        for k_bucket in np.unique(keys.bucket):
            if k_bucket < q_bucket and in_window(queries, keys, q_bucket, k_bucket, window, config):
                pairs = sample_pairs(keys, k_bucket, config.pairs_per_bucket, generator)
                cells.append(Cell(int(q_bucket), int(k_bucket), pairs))
    return cells


def in_window(queries: Rows, keys: Rows, q_bucket: int, k_bucket: int, window: float | None, config: Config) -> bool:
    if window is None:
        return True
    if config.window == "tokens":
        return bucket_position(queries, q_bucket) - bucket_position(keys, k_bucket) <= window
    return k_bucket >= q_bucket - window


def bucket_position(rows: Rows, bucket: int) -> np.longdouble:
    return rows.position[rows.bucket == bucket].mean()


def sample_pairs(keys: Rows, k_bucket: int, limit: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    by_example: dict[int, list[int]] = {}  # a dict keeps the order of first appearance
    for row in np.flatnonzero(keys.bucket == k_bucket):
        by_example.setdefault(int(keys.example_id[row]), []).append(int(row))
    candidates = [np.array(rows) for rows in by_example.values() if len(rows) >= 2]
    if not candidates:
        return []
    cumulative = np.cumsum([len(rows) * (len(rows) - 1) // 2 for rows in candidates])
    total = int(cumulative[-1])
    pairs = []
    for _ in range(min(limit, total)):
        r = generator.integers(total)
        rows = candidates[np.flatnonzero(cumulative > r)[0]]
        first, second = generator.choice(rows, 2, replace=False)
        pairs.append((int(first), int(second)))
    return pairs


# Step 11


def plasticity(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """4 p (1 - p) with p = Phi(m / sqrt v); 1 - p is taken from the other tail, where it keeps its digits."""
    z = (m / np.sqrt(v)).astype(np.float64)
    return 4 * stats.norm.cdf(z) * stats.norm.sf(z)


def seed_cell(cell: Cell, queries: Rows, keys: Rows, line: Line, variance: np.ndarray) -> float:
    inside = queries.x[queries.bucket == cell.q_bucket]
    tau = bucket_position(queries, cell.q_bucket)
    semantic = inside[:, 1:]
    mean = column_mean(semantic)
    centred = semantic - mean
    covariance = centred.T @ centred / (len(inside) - 1) + np.longdouble(1e-12) * np.eye(semantic.shape[1])
    delta = key_differences(cell, keys)
    first, rest = delta[:, 0], delta[:, 1:]
    m = first * (line.alpha[0] + line.beta[0] * tau) + rest @ mean
    v = first**2 * variance[0] + ((rest @ covariance) * rest).sum(axis=1)
    return plasticity(m, np.where(v <= 0, np.longdouble(1e-12), v)).mean()


def diagonal_cell(cell: Cell, queries: Rows, keys: Rows, line: Line, variance: np.ndarray) -> float:
    tau = bucket_position(queries, cell.q_bucket)
    delta = key_differences(cell, keys)
    m = delta @ (line.alpha + line.beta * tau)
    v = delta**2 @ np.where(variance <= 0, np.longdouble(1e-12), variance)
    kept = v > 0
    return plasticity(m[kept], v[kept]).mean() if kept.any() else np.nan


def key_differences(cell: Cell, keys: Rows) -> np.ndarray:
    first, second = np.array(cell.pairs).T
    return keys.x[first] - keys.x[second]


CELL_VALUE = {"seed": seed_cell, "diagonal": diagonal_cell}


# Step 12


def head_value(values: np.ndarray, sizes: np.ndarray, variant: str) -> float:
    kept = ~np.isnan(values)
    if not kept.any():
        return np.nan
    weights = sizes[kept] if variant == "seed" else None
    return np.average(values[kept], weights=weights)


# Step 13


def component_weights(r2: np.ndarray) -> np.ndarray:
    positive = np.maximum(r2, 0)
    total = positive.sum()
    return positive / total if total > 0 else np.full(len(r2), np.longdouble(1) / len(r2))


# All of it


def analyse_head(
    q_file: Path, k_file: Path, layer: int, q_head: int, config: Config, variant: str
) -> tuple[dict, list[dict], list[dict]]:
    """The row of head_metrics.csv, the rows of head_bucket_plasticity.csv and those of head_component_weights.csv.

    Keys are the columns in order, floats are np.float64 or np.longdouble, and NaN stands for an empty field.
    """
    head = {"layer": layer, "q_head": q_head, "k_head": config.key_head(q_head)}
    queries, keys = load(q_file), load(k_file)
    sign = orientation(keys)
    queries, keys = (subsample(rows, config.max_tokens_per_head, config.seed) for rows in (queries, keys))
    queries.x, keys.x = queries.x * sign, keys.x * sign
    window = window_of(queries)

    original = fit_line(queries.position, queries.x)
    scalar = scalar_predictability(queries.position, queries.x, original.beta)
    h = reflection(original.beta)
    queries.x, keys.x = queries.x @ h, keys.x @ h
    rotated = fit_line(queries.position, queries.x)
    variance = residual_variance(rotated.residual)

    cells = _cell_rows(sample_cells(queries, keys, window, layer, q_head, config), queries, keys, rotated, variance, variant)
    values = np.array([cell["value"] for cell in cells], dtype=np.float64)
    sizes = np.array([(queries.bucket == cell["q_bucket"]).sum() for cell in cells])
    metrics = head | {
        "n_q_tokens": len(queries),
        "n_k_tokens": len(keys),
        "d_model": queries.x.shape[1],
        "q_R2_pos": original.r2.mean(),
        "q_beta_norm": np.sqrt((original.beta**2).sum()),
        **scalar,
        **first_component_normality(rotated.residual[:, 0]),
        **semantic_normality(queries.x[:, 1:], config),
        "ap_overall": head_value(values, sizes, variant),
    }
    weights = component_weights(original.r2)
    components = [
        {"component": j, "component_r2": original.r2[j], "component_weight": weights[j], "weight": weights[j]}
        for j in range(len(weights))
    ]
    return (
        _columns(metrics, METRIC_COLUMNS[variant]),
        [_columns(head | cell, CELL_COLUMNS[variant]) for cell in cells],
        [_columns(head | component, COMPONENT_COLUMNS[variant]) for component in components],
    )


def _cell_rows(
    cells: list[Cell], queries: Rows, keys: Rows, line: Line, variance: np.ndarray, variant: str
) -> list[dict]:
    rows = []
    for cell in cells:
        if variant == "seed" and (queries.bucket == cell.q_bucket).sum() < 2:
            continue  # no covariance; its pairs were drawn all the same
        value = CELL_VALUE[variant](cell, queries, keys, line, variance) if cell.pairs else np.nan
        rows.append(
            {
                "q_bucket": cell.q_bucket,
                "k_bucket": cell.k_bucket,
                "n_pairs": len(cell.pairs),
                "value": value,
                "plasticity": value,
                "ap_bucket": value,
            }
        )
    return rows


def _columns(row: dict, names: list[str]) -> dict:
    return {name: row[name] for name in names}
