"""Reference values for the tests of core/random and stats, from numpy, scipy and mpmath.

    python make_stats_oracles.py FOLDER

writes FOLDER/stats_*.json. Floats are in round-trip form. Large samples are not written: the tests draw them again from
the same seed, since the generator under test is numpy's (and is itself compared in stats_random.json).
"""

import json
import math
import pathlib
import sys
import warnings

import mpmath
import numpy as np
import scipy.optimize
import scipy.stats


def digest(values):
    """Order-dependent 64-bit hash (FNV-1a over whole numbers), for choices too long to write out."""
    code = 0xCBF29CE484222325
    for value in values:
        code = (code ^ int(value)) * 0x100000001B3 % 2**64
    return code


def choice_call(rng, n, k):
    values = rng.choice(n, k, replace=False)
    call = {"call": "choice", "n": n, "k": k, "digest": digest(values)}
    if k <= 12:
        call["values"] = values.tolist()
    return call


def integers_call(rng, n):
    return {"call": "integers", "n": n, "value": int(rng.integers(n))}


def random_call(rng):
    return {"call": "random", "value": float(rng.random())}


def random_oracle():
    """Interleaved calls on one generator per seed: the buffered half word has to behave as numpy's."""
    plan = np.random.default_rng(2024)
    seeds = [0, 1, 2, 42, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**48 + 12345, 2**63 - 1, 2**63, 2**64 - 1]
    seeds += [int(s) for s in plan.integers(0, 2**63, 150)]
    bounds = [1, 2, 3, 7, 100, 2**16, 2**31 - 1, 2**31, 3 * 2**30, 2**32 - 1, 2**32, 2**32 + 1, 2**33, 3 * 2**61, 2**63]
    edges = [(10000, 200), (10000, 201), (10000, 5000), (10001, 200), (10001, 201), (10001, 10001), (10050, 201),
             (10049, 201), (2, 2), (1, 1), (5, 0), (1, 0), (20000, 0), (20000, 1), (10001, 2), (10000, 2), (3, 2)]
    generators = []
    for index, seed in enumerate(seeds):
        rng = np.random.default_rng(seed)
        calls = []
        for _ in range(24):
            kind = int(plan.integers(5))
            if kind == 0:
                calls.append(integers_call(rng, bounds[int(plan.integers(len(bounds)))]))
            elif kind == 1:
                calls.append(integers_call(rng, int(2 ** plan.uniform(0, 62.9))))
            elif kind == 2:
                calls.append(random_call(rng))
            elif kind == 3:
                calls.append(choice_call(rng, int(plan.integers(2, 40000)), 2))
            else:
                n = int(plan.integers(1, 300))
                calls.append(choice_call(rng, n, int(plan.integers(0, n + 1))))
        calls.append(choice_call(rng, *edges[index % len(edges)]))
        calls.append(integers_call(rng, 1000))
        generators.append({"seed": seed, "calls": calls})
    big = np.random.default_rng(7)
    calls = [choice_call(big, n, k) for n, k in [(1_000_000, 20_001), (1_000_000, 20_000), (3_000_000, 50_000),
                                                 (60_000, 50_000), (2**31, 1000), (2**32, 500), (2**32 + 1, 500),
                                                 (2**32 + 2, 3), (2**40, 100)]]
    generators.append({"seed": 7, "calls": calls})
    return generators


def normal_oracle():
    mpmath.mp.dps = 50
    rng = np.random.default_rng(3)
    z = np.concatenate([np.linspace(-38, 38, 1521), rng.normal(0, 2, 800), rng.uniform(-38, 38, 700),
                        10.0 ** rng.uniform(-300, 0, 60), [0.0, 5e-324, 39.0, -39.0]])
    rows = []
    for value in z:
        root = mpmath.mpf(float(value)) / mpmath.sqrt(2)
        lower, upper = mpmath.erfc(-root) / 2, mpmath.erfc(root) / 2
        rows.append([float(value), float(lower), float(4 * lower * upper)])
    return rows


def moments_case(name, values, **recipe):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of constant input, the case that is wanted
        values = np.asarray(values, dtype=float)
        empty = values.size == 0
        result = {
            "name": name,
            "mean": None if empty else float(values.mean()),
            "variance": None if values.size < 2 else float(values.var(ddof=1)),
            "skewness": None if empty else float(scipy.stats.skew(values, bias=False)),
            "kurtosis": None if empty else float(scipy.stats.kurtosis(values, bias=False)),
            "median": None if empty else float(np.median(values)),
        }
    result = {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in result.items()}
    return result | (recipe or {"values": values.tolist()})


def moments_oracle():
    rng = np.random.default_rng(4)
    cases = [moments_case("empty", []), moments_case("one", [3.5]), moments_case("two", [1.0, 4.0]),
             moments_case("three", [1.0, 4.0, 4.5]), moments_case("four", [1.0, -4.0, 4.5, 9.0]),
             moments_case("zeros", [0.0] * 9), moments_case("constant", [0.5] * 50),
             moments_case("constant up to rounding", [1.0] * 20 + [float(np.nextafter(1, 2))]),
             moments_case("offset", (1e6 + rng.normal(size=101)).tolist())]
    for n in [15, 16, 17, 31, 33, 1000]:
        cases.append(moments_case(f"normal {n}", rng.normal(2, 3, n)))
    for n, seed in [(20000, 11), (50001, 12)]:
        u = np.random.default_rng(seed).random(n)
        cases.append(moments_case(f"u^2 {n}", u * u, seed=seed, n=n, power=2))
    return cases


def statistic_oracle():
    cases = []
    for seed, n in enumerate([1, 2, 3, 10, 128, 129, 130, 1000, 20000, 30001]):
        u = np.random.default_rng(seed).random((n, 3))
        z = (u[:, 0] + u[:, 1] + u[:, 2] - 1.5) * 2
        cases.append({"seed": seed, "n": n, "d": float(scipy.stats.ks_1samp(z, scipy.stats.norm.cdf).statistic)})
    return cases


def survival_oracle():
    rng = np.random.default_rng(5)
    points = []
    small = [*range(1, 21), 35, 50, 77, 100, 125, 138, 139, 140, 141, 142, 150, 200, 300, 500, 800]
    large = [1000, 1023, 1024, 1025, 1200, 1400, 1537, 2048, 3000, 5000, 10000, 20000, 50000]
    for n in small + large:
        count = 24 if n < 1000 else 16
        points += [(n, x) for x in rng.uniform(0, 1, count // 2)]
        points += [(n, z / math.sqrt(n)) for z in np.exp(rng.uniform(math.log(0.3), math.log(3), count))]
        points += [(n, z / math.sqrt(n)) for z in rng.uniform(2, 18.8, count // 2)]
        ends = [0.3, 0.5, 0.50001, 0.7, 0.999, 1, 1.001, 1.5, 2, 2.5, n - 1.2, n - 1, n - 0.5, n]
        points += [(n, t / n) for t in ends]
        # Around every limit of the scheme; not on it, where rounding may pick either side.
        limits = [0.5, math.sqrt(0.754693 / n), math.sqrt(2.2 / n), math.sqrt(4 / n), (1.4 / n) ** (2 / 3)]
        points += [(n, limit * (1 + side)) for limit in limits for side in (-1e-9, 1e-9)]
    for n in [100000, 100001, 1000000, 1000001, 3000000]:
        points += [(n, z / math.sqrt(n)) for z in (0.5, 0.9, 1.2, 1.48, 1.49, 2, 4, 10, 18)]
    points += [(100000, 0.99 * (1.4 / 1e5) ** (2 / 3)), (60000, 0.99 * (1.4 / 6e4) ** (2 / 3))]
    points = [(n, x) for n, x in points if 0 <= x <= 1.2]
    return [[n, float(x), float(scipy.stats.kstwo.sf(float(x), n))] for n, x in points]


def line(t, x):
    dt = t - t.mean()
    beta = dt @ x / (dt @ dt)
    alpha = x.mean() - beta * t.mean()
    design = np.stack([np.ones_like(t), t - t.mean()], axis=1)  # centred: lstsq then has no cancellation either
    coefficients = np.linalg.lstsq(design, x, rcond=None)[0]
    residuals = x - design @ coefficients
    r2 = min(1.0, 1 - (residuals @ residuals) / max(((x - x.mean()) ** 2).sum(), 1e-12))
    return [float(alpha), float(beta), float(coefficients[1]), float(r2), float(residuals.var(ddof=1))]


def regression_oracle():
    """t = floor(1000 u0), column j = u_j + j t / 1000 + 10 j, from n rows of d + 1 draws."""
    cases = []
    for seed, n, d in [(21, 3, 2), (22, 17, 5), (23, 400, 8), (24, 20000, 3)]:
        u = np.random.default_rng(seed).random((n, d + 1))
        t = np.floor(1000 * u[:, 0])
        columns = [u[:, j] + j * t / 1000 + 10 * j for j in range(1, d + 1)]
        cases.append({"seed": seed, "n": n, "d": d, "fits": [line(t, x) for x in columns]})
    return cases


def reflection(beta):
    """I - 2 v v^T with 50 digits: u - e1 cancels where beta is nearly along e1."""
    mpmath.mp.dps = 50
    v = [mpmath.mpf(float(b)) for b in beta]
    norm = mpmath.sqrt(mpmath.fsum(b * b for b in v))
    v = [b / norm for b in v]
    v[0] -= 1
    square = mpmath.fsum(b * b for b in v)
    return np.array([[float((i == j) - 2 * a * b / square) for j, b in enumerate(v)] for i, a in enumerate(v)])


def householder_oracle():
    cases = []
    rng = np.random.default_rng(6)
    for beta in [rng.normal(size=2), rng.normal(size=7), rng.normal(size=64), np.array([-3.0, 0, 0]), np.array([-2.0]),
                 np.array([1.0, 1e-7, -2e-7]), np.array([5.0, 1e-10]), 1e-9 * rng.normal(size=5)]:
        h = reflection(beta)
        x = rng.normal(size=(3, len(beta)))
        cases.append({"beta": beta.tolist(), "h": h.tolist(), "x": x.tolist(), "xh": (x @ h).tolist()})
    return cases


def rank_correlation_oracle():
    rng = np.random.default_rng(31)
    cases = []
    for n in [3, 4, 5, 10, 40, 300]:
        x = rng.normal(size=n)
        cases += [(x, rng.normal(size=n)), (x, -x + 0.5 * rng.normal(size=n)), (x, np.exp(x)),
                  (np.round(x), np.round(x + rng.normal(size=n)))]
    rows = []
    for x, y in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant input
            result = scipy.stats.spearmanr(x, y)
        rho, n = float(result.statistic), len(x)
        low = high = None
        if n > 3 and not math.isnan(rho):
            half = scipy.stats.norm.ppf(0.975) * math.sqrt((1 + rho * rho / 2) / (n - 3))
            centre = math.atanh(rho) if abs(rho) < 1 - 1e-12 else math.copysign(math.inf, rho)
            low, high = math.tanh(centre - half), math.tanh(centre + half)
        rows.append({"x": x.tolist(), "y": y.tolist(), "rho": None if math.isnan(rho) else rho, "low": low,
                     "high": high, "p_value": None if math.isnan(rho) else float(result.pvalue)})
    return rows


def norm_entropy_oracle():
    """Norms of key heads and entropies of query heads: falling, rising, unrelated; with and without shared key heads."""
    rng = np.random.default_rng(33)
    rows = []
    for sign, key_heads in [(-1, 8), (1, 8), (0, 8), (-1, 4), (1, 2)]:
        layers, query_heads = 5, 8
        norm = rng.normal(8, 2, (layers, key_heads))
        read = np.repeat(norm, query_heads // key_heads, axis=1)
        entropy = 3 + 0.3 * sign * (read - 8) + 0.2 * rng.normal(size=read.shape)
        result = scipy.stats.spearmanr(read.ravel(), entropy.ravel())
        rows.append({"layers": layers, "key_heads": key_heads, "query_heads": query_heads,
                     "norm": norm.ravel().tolist(), "entropy": entropy.ravel().tolist(),
                     "rho": float(result.statistic), "p_value": float(result.pvalue),
                     "layer_rho": [float(scipy.stats.spearmanr(a, b).statistic) for a, b in zip(read, entropy)],
                     "support": {-1: "supported", 1: "contradicted", 0: "undecided"}[sign]})
    return rows


def distance_with_mode(x, below, above, mode):
    """The least sup |F_n - G| over G that is convex before x[mode] and concave after it, with a jump allowed there.

    x are distinct, F_n rises from below[i] to above[i] at x[i]. Unknown: G at each x, its limit from the left at the
    mode, and the distance; between the x, G may as well be linear.
    """
    n = len(x)
    left = list(range(mode)) + [n]  # n: the limit from the left at the mode
    distance = n + 1
    rows, bounds = [], []

    def at_most(terms, bound):
        row = np.zeros(n + 2)
        for index, weight in terms:
            row[index] += weight
        rows.append(row)
        bounds.append(bound)

    def near(index, value):
        at_most([(index, 1), (distance, -1)], value)
        at_most([(index, -1), (distance, -1)], -value)

    def bends(one, two, three, at, sign):
        """sign * (slope from two to three - slope from one to two) >= 0."""
        first, second = at[1] - at[0], at[2] - at[1]
        at_most([(three, -sign / second), (two, sign / second), (two, sign / first), (one, -sign / first)], 0)

    for i in range(n):
        if i != mode:
            near(i, below[i])
        near(n if i == mode else i, below[i])
        near(i, above[i])
    for i in range(len(left) - 2):
        bends(left[i], left[i + 1], left[i + 2], x[i:i + 3], 1)
    for i in range(mode, n - 2):
        bends(i, i + 1, i + 2, x[i:i + 3], -1)
    for one, two in [*zip(left, left[1:]), (n, mode), *((i, i + 1) for i in range(mode, n - 1))]:
        at_most([(one, 1), (two, -1)], 0)
    goal = np.zeros(n + 2)
    goal[distance] = 1
    result = scipy.optimize.linprog(goal, A_ub=np.array(rows), b_ub=bounds, bounds=[(0, 1)] * (n + 2), method="highs")
    assert result.success, result.message
    return result.fun


def dip_by_definition(values):
    """Linear programming for every mode: a mode between two values is never nearer than one at a value."""
    x, counts = np.unique(values, return_counts=True)
    above = np.cumsum(counts) / len(values)
    below = above - counts / len(values)
    return min(distance_with_mode(x, below, above, mode) for mode in range(len(x)))


def dip_oracle():
    rng = np.random.default_rng(32)
    samples = [np.arange(n) for n in (4, 5, 9)]
    for n in [4, 5, 6, 7, 8, 10, 13, 16]:
        samples += [rng.random(n), rng.normal(size=n), rng.normal(size=n) + 4 * (np.arange(n) % 2),
                    rng.normal(size=n) ** 3, rng.integers(0, 4, n), rng.integers(0, n, n),
                    np.round(rng.normal(size=n) + 3 * (np.arange(n) % 3), 1)]
    return [{"values": np.asarray(s, dtype=float).tolist(), "dip": float(dip_by_definition(s))} for s in samples]


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for oracle in (random_oracle, normal_oracle, moments_oracle, statistic_oracle, survival_oracle, regression_oracle,
                   householder_oracle, rank_correlation_oracle, norm_entropy_oracle,
                   dip_oracle):
        path = folder / f"stats_{oracle.__name__.removesuffix('_oracle')}.json"
        path.write_text(json.dumps(oracle()))


if __name__ == "__main__":
    main()
