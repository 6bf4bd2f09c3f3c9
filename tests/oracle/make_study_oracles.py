"""Reference values for the tests of Student's t, Welch's test and the verdict of a study, from scipy and mpmath.

    python make_study_oracles.py FOLDER

writes FOLDER/study_*.json. Floats are in round-trip form.
"""

import json
import pathlib
import sys

import mpmath
import numpy as np
import scipy.special
import scipy.stats


def student_t_oracle():
    """[t, df, P(T <= t)] by scipy, which is good to a few roundings for these."""
    rows = []
    for df in [0.5, 1, 1.37, 2, 2.5, 3, 4, 5.83, 7.9, 10, 20, 30, 99.5, 1e3, 9999, 10001, 12345.6, 1e5, 1e6, 1e9, 1e12]:
        for t in [0, 1e-8, 1e-3, 0.1, 0.5, 1, 1.5, 1.7, 1.75, 2, 3, 5, 10, 20, 36]:
            for sign in (-1, 1):
                rows.append([sign * t, df, float(scipy.special.stdtr(df, sign * t))])
    return rows


def tail_oracle():
    """[t, df, P(|T| >= t)] with 50 digits, from the hypergeometric series: far tails and few degrees of freedom."""
    rows = []
    with mpmath.workdps(50):
        for df in [0.05, 0.5, 1, 2, 3.5, 8, 25, 200, 4000]:
            for t in [2, 7, 40, 1e3, 1e6, 1e20, 1e100]:
                n, square = mpmath.mpf(df), mpmath.mpf(t) ** 2
                x = n / (n + square)
                tail = x ** (n / 2) * mpmath.sqrt(square / (n + square)) * mpmath.hyp2f1(1, n / 2 + 0.5, n / 2 + 1, x)
                tail /= n / 2 * mpmath.beta(n / 2, 0.5)
                if tail > mpmath.mpf("1e-300"):
                    rows.append([t, df, float(tail)])
    return rows


def quantile_oracle():
    """[p, df, t]; scipy's own inverse is off in the tenth digit for one and two degrees of freedom."""
    ps = [1e-6, 0.001, 0.025, 0.3, 0.6, 0.9, 0.975, 0.9995]
    return [[p, df, float(scipy.stats.t.ppf(p, df))] for df in [0.7, 1.5, 3, 4.2, 7, 30, 250, 1e4, 1e5, 1e8] for p in ps]


def interval(values):
    n = len(values)
    if n < 2:
        return None
    low, high = scipy.stats.t.interval(0.95, n - 1, loc=np.mean(values), scale=scipy.stats.sem(values))
    return [float(np.mean(values)), float(scipy.stats.sem(values)), float(low), float(high)]


def welch_oracle():
    rng = np.random.default_rng(11)
    cases = []
    for n, m in [(4, 4), (4, 5), (5, 4), (7, 20), (50, 4), (200, 300)]:
        for scale in (1e-3, 1, 50):
            a = rng.normal(65, 1, n)
            b = rng.normal(62, scale, m)
            test = scipy.stats.ttest_ind(a, b, equal_var=False)
            ends = test.confidence_interval(0.95)
            cases.append({"a": a.tolist(), "b": b.tolist(), "t": float(test.statistic), "df": float(test.df),
                          "p_value": float(test.pvalue), "low": float(ends.low), "high": float(ends.high),
                          "interval_a": interval(a)})
    return cases


def judge(values, tau):
    """The rule of the study: an effect is there when it reaches tau and Welch's test finds it; there is none when the difference and
    its 95 % interval are within tau."""
    mean = [np.mean(v) for v in values]

    def differs(i, j):
        significant = scipy.stats.ttest_ind(values[i], values[j], equal_var=False).pvalue < 0.05
        return abs(mean[i] - mean[j]) >= tau and significant

    gamma, norm = differs(0, 1), differs(1, 2)
    def absent(i, j):
        ends = scipy.stats.ttest_ind(values[i], values[j], equal_var=False).confidence_interval(0.95)
        return max(abs(ends.low), abs(ends.high), abs(mean[i] - mean[j])) < tau

    within = all(absent(i, j) for i, j in ((0, 1), (1, 2), (0, 2)))
    names = {(True, True): "both", (True, False): "gamma", (False, True): "normalisation"}
    return names.get((gamma, norm), "none" if within else "inconclusive"), bool(abs(mean[0] - mean[1]) < tau)


def verdict_oracle():
    rng = np.random.default_rng(12)
    cases = []
    for _ in range(300):
        tau = float(rng.choice([0.5, 1.0, 2.0]))
        centre = 60 + rng.choice([0, 0.4, 1.5, 4], 3)
        spread = rng.choice([0.05, 0.5, 2])
        values = [rng.normal(c, spread, rng.integers(2, 6)).tolist() for c in centre]
        conclusion, kill = judge(values, tau)
        cases.append({"values": values, "tau": tau, "conclusion": conclusion, "kill": kill})
    return cases


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for oracle in (student_t_oracle, tail_oracle, quantile_oracle, welch_oracle, verdict_oracle):
        path = folder / f"study_{oracle.__name__.removesuffix('_oracle')}.json"
        path.write_text(json.dumps(oracle()))


if __name__ == "__main__":
    main()
