"""Attention plasticity of one head, step by step, in plain numpy and scipy: the oracle of the plasticity tests.

It follows the definition and nothing else: an explicit Householder matrix, numpy's own generator, scipy's own
statistics. Sums and products run in np.longdouble, so that a value printed here is the value of the definition to about
1e-12 and a disagreement is the program's. Letters as in the definition: t position, x a query component.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
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

CHECK_COLUMNS = [
    "layer", "q_head", "k_head", "ap_empirical", "ap_gap", "ap_own_text", "ap_shuffled", "ap_other_text", "ks_d",
    "lilliefors_p", "ap_gap_se", "ap_shuffled_gap_se", "ap_text_gap_se", "own_text_pairs", "own_text_queries",
]

REPLICATE_COLUMNS = ["layer", "q_head", "k_head", "replicate", "ap_overall"]
BOOTSTRAP_REPLICATES = 200


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


@dataclass
class PairScores:
    """Of every pair of a cell: the difference of its keys, mean and variance of q·delta, 4 p (1 - p); NaN: left out."""

    delta: np.ndarray  # [pairs, d], rotated
    m: np.ndarray
    v: np.ndarray
    value: np.ndarray


def seed_pairs(cell: Cell, queries: Rows, keys: Rows, line: Line, variance: np.ndarray) -> PairScores:
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
    v = np.where(v <= 0, np.longdouble(1e-12), v)
    return PairScores(delta, m, v, plasticity(m, v))


def diagonal_pairs(cell: Cell, queries: Rows, keys: Rows, line: Line, variance: np.ndarray) -> PairScores:
    tau = bucket_position(queries, cell.q_bucket)
    delta = key_differences(cell, keys)
    m = delta @ (line.alpha + line.beta * tau)
    v = delta**2 @ np.where(variance <= 0, np.longdouble(1e-12), variance)
    v[v <= 0] = np.nan
    return PairScores(delta, m, v, plasticity(m, v))


def key_differences(cell: Cell, keys: Rows) -> np.ndarray:
    first, second = np.array(cell.pairs).T
    return keys.x[first] - keys.x[second]


PAIR_SCORES = {"seed": seed_pairs, "diagonal": diagonal_pairs}


def mean_of_pairs(values: np.ndarray) -> float:
    kept = values[~np.isnan(values)]
    return kept.mean() if len(kept) else np.nan


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


# Bootstrap over texts

SPLITMIX_STEP = 0x9E3779B97F4A7C15


def mixed_bits(x: int) -> int:
    x %= 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def splitmix(state: int) -> int:
    return mixed_bits(state + SPLITMIX_STEP)


def bootstrap_weights(seed: int, text: int) -> np.ndarray:
    """Poisson(1) for each replicate, by inversion."""
    state = mixed_bits(splitmix(seed) ^ (text % 2**64))
    words = [mixed_bits(state + SPLITMIX_STEP * (r + 1)) >> 11 for r in range(BOOTSTRAP_REPLICATES)]
    return stats.poisson.ppf(np.nextafter(np.array(words) * 2.0**-53, 1), 1)


def replicates(fitted: "Fitted", cells: list[tuple[Cell, PairScores]], config: Config, variant: str) -> np.ndarray:
    """ap_overall with each draw of texts; nothing where all pairs are of one text."""
    queries, keys = fitted.queries, fitted.keys
    influence, key_texts, total = TextSums(), set(), 0
    weights = {int(t): bootstrap_weights(config.seed, int(t)) for t in np.union1d(queries.example_id, keys.example_id)}
    value_sum, weight_sum = np.zeros(BOOTSTRAP_REPLICATES), np.zeros(BOOTSTRAP_REPLICATES)
    for cell, scores in cells:
        kept = ~np.isnan(scores.value)
        if not kept.any():
            continue
        text = keys.example_id[np.array(cell.pairs)[kept, 0]]
        key_texts |= set(text.tolist())
        drawn = np.array([weights[int(t)] for t in text])  # [pairs, replicates]
        weight = (queries.bucket == cell.q_bucket).sum() if variant == "seed" else 1
        count = drawn.sum(axis=0)
        value = scores.value[kept].astype(np.float64) @ drawn / np.where(count > 0, count, 1)
        value_sum += np.where(count > 0, weight * value, 0)
        weight_sum += np.where(count > 0, weight, 0)
        total += weight
        influence.add(queries.example_id, query_influence(scores, weight / kept.sum(), fitted, cell.q_bucket, variant))
    if len(key_texts) < 2:
        return np.array([])
    moved = sum(((weights[t] - 1) * value for t, value in influence.items()), np.zeros(BOOTSTRAP_REPLICATES)) / total
    return np.where(weight_sum > 0, value_sum / np.where(weight_sum > 0, weight_sum, 1) + moved, np.nan)


# Checks


def mixed_seed(seed: int, index: int) -> int:
    """SplitMix64, twice."""
    return splitmix(splitmix(seed) + index)


def shuffled(rows: Rows, seed: int, layer: int, head: int, side: int) -> Rows:
    """Positions and buckets permuted among the rows of each text."""
    generator = np.random.default_rng(mixed_seed(mixed_seed(mixed_seed(seed, layer), head), side))
    bucket, position = rows.bucket.copy(), rows.position.copy()
    for text in dict.fromkeys(rows.example_id.tolist()):
        of_text = np.flatnonzero(rows.example_id == text)
        order = generator.choice(len(of_text), len(of_text), replace=False)
        bucket[of_text], position[of_text] = rows.bucket[of_text[order]], rows.position[of_text[order]]
    return replace(rows, bucket=bucket, position=position)


def share_plasticity(scores: np.ndarray) -> np.ndarray:
    """4 p (1 - p) of each column, p the share of positive scores; a tie is one half."""
    p = ((scores > 0).mean(axis=0) + (scores >= 0).mean(axis=0)) / 2
    return 4 * p * (1 - p)


def clustered_error(influence: dict[int, float], weight: float) -> float:
    texts = len(influence)
    if texts < 2:
        return np.nan
    return np.sqrt(sum(value**2 for value in influence.values()) * texts / (texts - 1)) / weight


class TextSums(dict):
    def __missing__(self, key: int) -> float:
        return 0.0

    def add(self, keys: np.ndarray, values: np.ndarray) -> None:
        for key in np.unique(keys):
            self[int(key)] += float(values[keys == key].sum())


def query_influence(scores: PairScores, share: float, fitted: "Fitted", q_bucket: int, variant: str) -> np.ndarray:
    """What each query moves of the Gaussian value of a cell, pair by pair and query by query."""
    kept = ~np.isnan(scores.value)
    delta, m, v = scores.delta[kept], scores.m[kept], scores.v[kept]
    z = (m / np.sqrt(v)).astype(np.float64)
    by_mean = share * 4 * stats.norm.pdf(z) * (1 - 2 * stats.norm.cdf(z)) / np.sqrt(v)
    by_variance = -by_mean * z / (2 * np.sqrt(v))
    queries, line = fitted.queries, fitted.line
    lines = 1 if variant == "seed" else queries.x.shape[1]
    t = queries.position - column_mean(queries.position)
    reach = bucket_position(queries, q_bucket) - column_mean(queries.position)
    pull = 1 / np.longdouble(len(t)) + (t * reach / (t**2).sum() if (t**2).sum() > 0 else 0)
    residual = line.residual[:, :lines]
    influence = pull * (residual @ (by_mean @ delta[:, :lines]))
    influence += (residual**2 - (residual**2).mean(axis=0)) @ (by_variance @ delta[:, :lines] ** 2) / len(t)
    inside = np.flatnonzero(queries.bucket == q_bucket)
    y = queries.x[inside, lines:]
    product = ((y - column_mean(y)) @ delta[:, lines:].T).astype(np.float64)
    influence[inside] += (product @ by_mean + (product**2 - (product**2).mean(axis=0)) @ by_variance) / len(inside)
    return influence


def checks(fitted: "Fitted", cells: list[tuple[Cell, PairScores]], ap_overall: float, variant: str) -> dict:
    """The columns that count queries."""
    queries, keys = fitted.queries, fitted.keys
    empirical, own, other, weights, text_weights = [], [], [], [], []
    gap, text_gap, text_weight, own_queries = TextSums(), TextSums(), TextSums(), []
    for cell, scores in cells:
        kept = ~np.isnan(scores.value)
        if not kept.any():
            continue
        inside = np.flatnonzero(queries.bucket == cell.q_bucket)
        text = queries.example_id[inside]
        weight = len(inside) if variant == "seed" else 1
        share = weight / kept.sum()
        first, second = np.array(cell.pairs)[kept].T
        key_text = keys.example_id[first]
        product = fitted.raw_queries[inside] @ (fitted.raw_keys[first] - fitted.raw_keys[second]).T
        value = share_plasticity(product)
        empirical.append(value.mean())
        weights.append(weight)

        difference = scores.value[kept] - value
        gap.add(key_text, share * (difference - difference.mean()))
        prefer = ((product > 0) + 0.5 * (product == 0)).astype(np.float64)
        p = prefer.mean(axis=0)
        gap.add(text, -share * (prefer - p) @ (4 * (1 - 2 * p)) / len(inside))
        gap.add(queries.example_id, query_influence(scores, share, fitted, cell.q_bucket, variant))

        by_text = {int(t): share_plasticity(product[text == t]) for t in np.unique(text)}
        owns, others, of = [], [], []
        for j, mine in enumerate(key_text):
            if int(mine) in by_text and len(by_text) > 1:
                owns.append(by_text[int(mine)][j])
                others.append(np.mean([values[j] for t, values in by_text.items() if t != mine]))
                of.append(mine)
        if owns:
            own_queries += [(text == mine).sum() for mine in of]
            own.append(np.mean(owns))
            other.append(np.mean(others))
            text_weights.append(weight)
            apart = np.array(owns) - np.array(others)
            text_gap.add(np.array(of), weight * apart / len(owns))
            text_weight.add(np.array(of), np.full(len(owns), weight / len(owns)))
            for mine, j, mean_of_others in zip(of, np.flatnonzero(np.isin(key_text, list(by_text))), others):
                for t, values in by_text.items():
                    moved = 0 if t == mine else (values[j] - mean_of_others) / (len(by_text) - 1)
                    text_gap[t] -= weight / len(owns) * moved
    mean = lambda values, of: np.average(values, weights=of) if values else np.nan
    ap_empirical = mean(empirical, weights)
    for t, of_text in text_weight.items():
        text_gap[t] -= of_text * (mean(own, text_weights) - mean(other, text_weights))
    return {
        "ap_empirical": ap_empirical,
        "ap_gap": ap_overall - ap_empirical,
        "ap_own_text": mean(own, text_weights),
        "ap_other_text": mean(other, text_weights),
        "ap_gap_se": clustered_error(gap, sum(weights)),
        "ap_text_gap_se": clustered_error(text_gap, sum(text_weights)),
        "own_text_pairs": len(own_queries),
        "own_text_queries": np.mean(own_queries) if own_queries else np.nan,
    }


def first_component_distance(residual: np.ndarray) -> dict[str, float]:
    nothing = {"ks_d": np.nan, "lilliefors_p": np.nan}
    if len(residual) < 2 or standard_deviation(residual) <= 0:
        return nothing
    z = ((residual - column_mean(residual)) / standard_deviation(residual)).astype(np.float64)
    d = stats.kstest(z, "norm", method="exact").statistic
    return {"ks_d": d, "lilliefors_p": lilliefors_p(d, len(z))}


def lilliefors_p(d: float, n: int) -> float:
    """Dallal and Wilkinson (1986) up to 0.1, R's nortest above; for n > 100 through Stephens' modified statistic."""
    if n < 5:
        return np.nan
    modified = d * (np.sqrt(n) - 0.01 + 0.85 / np.sqrt(n))
    size, at = (n, d) if n <= 100 else (100, modified / (10 - 0.01 + 0.085))
    p = np.exp(-7.01256 * at**2 * (size + 2.78019) + 2.99587 * at * np.sqrt(size + 2.78019) - 0.122119
               + 0.974598 / np.sqrt(size) + 1.67997 / size)
    if p <= 0.1:
        return p
    if modified <= 0.302:
        return 1.0
    for most, polynomial in (
        (0.5, (81.218052, -138.55152, 80.709644, -19.828315, 2.76773)),
        (0.9, (-32.355711, 94.029866, -97.490286, 40.662806, -4.901232)),
        (np.inf, (2.423045, -12.234627, 23.186922, -19.558097, 6.198765)),
    ):
        if modified <= most:
            return float(np.clip(np.polyval(polynomial, modified), 0, 1))


# All of it


@dataclass
class Fitted:
    """Steps 2 to 8."""

    queries: Rows  # sub-sampled, oriented and rotated
    keys: Rows
    raw_queries: np.ndarray  # the same rows as captured
    raw_keys: np.ndarray
    oriented: np.ndarray  # the queries before the rotation
    window: float | None
    original: Line
    line: Line
    variance: np.ndarray


def fit(queries: Rows, keys: Rows, config: Config) -> Fitted:
    sign = orientation(keys)
    queries, keys = (subsample(rows, config.max_tokens_per_head, config.seed) for rows in (queries, keys))
    raw_queries, raw_keys = queries.x, keys.x
    oriented = queries.x * sign
    window = window_of(queries)
    original = fit_line(queries.position, oriented)
    h = reflection(original.beta)
    queries, keys = replace(queries, x=oriented @ h), replace(keys, x=keys.x * sign @ h)
    rotated = fit_line(queries.position, queries.x)
    variance = residual_variance(rotated.residual)
    return Fitted(queries, keys, raw_queries, raw_keys, oriented, window, original, rotated, variance)


def evaluate(
    fitted: Fitted, layer: int, q_head: int, config: Config, variant: str
) -> tuple[list[dict], list[tuple[Cell, PairScores]], float]:
    """Steps 10 to 12: the rows of the cells, the cells with pairs, and the head's value."""
    queries, keys = fitted.queries, fitted.keys
    rows, with_pairs = [], []
    for cell in sample_cells(queries, keys, fitted.window, layer, q_head, config):
        if variant == "seed" and (queries.bucket == cell.q_bucket).sum() < 2:
            continue  # no covariance; its pairs were drawn all the same
        value = np.nan
        if cell.pairs:
            scores = PAIR_SCORES[variant](cell, queries, keys, fitted.line, fitted.variance)
            value = mean_of_pairs(scores.value)
            with_pairs.append((cell, scores))
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
    values = np.array([row["value"] for row in rows], dtype=np.float64)
    sizes = np.array([(queries.bucket == row["q_bucket"]).sum() for row in rows])
    return rows, with_pairs, head_value(values, sizes, variant)


@dataclass
class Head:
    """What the tables hold of a head. Keys are the columns in order, floats are np.float64 or np.longdouble, and NaN
    stands for an empty field."""

    metrics: dict
    cells: list[dict]
    components: list[dict]
    checks: dict  # without ap_shuffled_gap_se
    replicates: list[dict]


def analyse_head(q_file: Path, k_file: Path, layer: int, q_head: int, config: Config, variant: str) -> Head:
    k_head = config.key_head(q_head)
    head = {"layer": layer, "q_head": q_head, "k_head": k_head}
    captured = load(q_file), load(k_file)
    fitted = fit(*captured, config)
    queries = fitted.queries
    cells, with_pairs, ap_overall = evaluate(fitted, layer, q_head, config, variant)
    metrics = head | {
        "n_q_tokens": len(queries),
        "n_k_tokens": len(fitted.keys),
        "d_model": queries.x.shape[1],
        "q_R2_pos": fitted.original.r2.mean(),
        "q_beta_norm": np.sqrt((fitted.original.beta**2).sum()),
        **scalar_predictability(queries.position, fitted.oriented, fitted.original.beta),
        **first_component_normality(fitted.line.residual[:, 0]),
        **semantic_normality(queries.x[:, 1:], config),
        "ap_overall": ap_overall,
    }
    without_order = fit(
        shuffled(captured[0], config.seed, layer, q_head, 0), shuffled(captured[1], config.seed, layer, k_head, 1), config
    )
    check = head | {
        **checks(fitted, with_pairs, ap_overall, variant),
        "ap_shuffled": evaluate(without_order, layer, q_head, config, variant)[2],
        **first_component_distance(fitted.line.residual[:, 0]),
        "ap_shuffled_gap_se": np.nan,
    }
    weights = component_weights(fitted.original.r2)
    components = [
        {"component": j, "component_r2": fitted.original.r2[j], "component_weight": weights[j], "weight": weights[j]}
        for j in range(len(weights))
    ]
    return Head(
        _columns(metrics, METRIC_COLUMNS[variant]),
        [_columns(head | cell, CELL_COLUMNS[variant]) for cell in cells],
        [_columns(head | component, COMPONENT_COLUMNS[variant]) for component in components],
        _columns(check, CHECK_COLUMNS),
        [
            _columns(head | {"replicate": r, "ap_overall": value}, REPLICATE_COLUMNS)
            for r, value in enumerate(replicates(fitted, with_pairs, config, variant))
        ],
    )


def _columns(row: dict, names: list[str]) -> dict:
    return {name: row[name] for name in names}
