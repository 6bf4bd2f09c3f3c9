"""Reference values for the tests of Student's t, paired tests, power and the verdict of a study, from scipy and mpmath.

    python make_study_oracles.py FOLDER

writes FOLDER/study_*.json. Floats are in round-trip form.
"""

import json
import pathlib
import sys

import mpmath
import numpy as np
import scipy.integrate
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


def paired_oracle():
    """Paired t and its interval by ttest_rel, equivalence by two of its one-sided tests, sign flips by permutation_test."""
    rng = np.random.default_rng(11)
    cases = []
    for n in (2, 3, 5, 6, 7, 9, 11):
        for spread in (1e-3, 0.4, 5):
            a = rng.normal(65, 2, n)
            b = a - rng.choice([0, 0.6, 1.3]) - rng.normal(0, spread, n)
            margin = float(rng.choice([0.5, 1, 2]))
            test = scipy.stats.ttest_rel(a, b)
            ends = test.confidence_interval(0.95)
            above = scipy.stats.ttest_rel(a + margin, b, alternative="greater").pvalue
            below = scipy.stats.ttest_rel(a - margin, b, alternative="less").pvalue
            flips = scipy.stats.permutation_test((a - b,), np.mean, permutation_type="samples", n_resamples=np.inf)
            cases.append({"differences": (a - b).tolist(), "margin": margin, "p_value": float(test.pvalue),
                          "low": float(ends.low), "high": float(ends.high), "p_equivalence": float(max(above, below)),
                          "p_sign_flip": float(flips.pvalue), "interval": interval(a - b)})
    return cases


def holm(p_values):
    p = np.asarray(p_values)
    adjusted = np.empty_like(p)
    adjusted[np.argsort(p)] = np.minimum(np.maximum.accumulate(np.sort(p) * np.arange(p.size, 0, -1)), 1)
    return adjusted.tolist()


def holm_oracle():
    rng = np.random.default_rng(13)
    return [[p.tolist(), holm(p)] for p in (rng.uniform(0, rng.choice([0.05, 1]), rng.integers(1, 9)) for _ in range(50))]


def chances(deviation, margin, family, mean, n):
    """Different and equivalent, by an integral over the mean (the program integrates over the deviation)."""
    df, unit = n - 1, deviation / np.sqrt(n)

    def chance(low, high, most_deviation):
        def density(m):
            return scipy.stats.norm.pdf(m, mean, unit) * scipy.special.chdtr(df, df * (most_deviation(m) / deviation) ** 2)
        low, high = max(low, mean - 12 * unit), min(high, mean + 12 * unit)
        edges = np.linspace(low, high, 40)
        return sum(scipy.integrate.quad(density, *ends, epsabs=1e-13, epsrel=1e-12)[0] for ends in zip(edges, edges[1:])) if low < high else 0.0

    t, t_equivalence = scipy.stats.t.ppf(1 - 0.025 / family, df), scipy.stats.t.ppf(0.95, df)
    different = sum(chance(*ends, lambda m: abs(m) * np.sqrt(n) / t) for ends in ((margin, np.inf), (-np.inf, -margin)))
    equivalent = sum(chance(*ends, lambda m: (margin - abs(m)) * np.sqrt(n) / t_equivalence) for ends in ((-margin, 0), (0, margin)))
    return different, equivalent


def power_oracle():
    """Random designs; without a margin the chance of `different` is that of the noncentral t."""
    rng = np.random.default_rng(14)
    cases = []
    for _ in range(60):
        design = {"deviation": float(rng.choice([0.1, 0.42, 0.6, 1, 3])), "margin": float(rng.choice([0.5, 1, 2])),
                  "family": int(rng.choice([1, 3, 7])), "mean": float(rng.choice([0, 0.7, -1.3, 2])), "n": int(rng.integers(3, 31))}
        different, equivalent = chances(**design)
        cases.append({**design, "different": float(different), "equivalent": float(equivalent)})
    for n in (3, 5, 12):
        for mean in (0.3, 1, 1.5):
            t, shift = scipy.stats.t.ppf(0.975, n - 1), mean * np.sqrt(n)
            found = scipy.stats.nct.sf(t, n - 1, shift) + scipy.stats.nct.cdf(-t, n - 1, shift)
            cases.append({"deviation": 1, "margin": 0, "family": 1, "mean": mean, "n": n, "different": float(found), "equivalent": 0})
    return cases


def outcome(differences, p_holm, tau):
    mean = np.mean(differences)
    below = scipy.stats.ttest_1samp(differences, tau, alternative="less").pvalue
    above = scipy.stats.ttest_1samp(differences, -tau, alternative="greater").pvalue
    return "D" if p_holm < 0.05 and abs(mean) >= tau else "E" if max(below, above) < 0.05 else "U"


CONCLUSIONS = {"DDD": "both", "DDE": "opposed", "DED": "gamma", "DEU": "gamma", "EDD": "normalisation", "EDU": "normalisation", "EEE": "none"}


def judge(values, tau):
    """The rule of the study, for the seeds of A, B and C."""
    a, b, c = map(np.asarray, values)
    pairs = (a - b, b - c, a - c)
    adjusted = holm([scipy.stats.ttest_1samp(pair, 0).pvalue for pair in pairs])
    outcomes = "".join(outcome(pair, p, tau) for pair, p in zip(pairs, adjusted))
    return outcomes, CONCLUSIONS.get(outcomes, "inconclusive"), bool(abs(np.mean(a - b)) < tau)


def verdict_oracle():
    rng = np.random.default_rng(12)
    cases = []
    for _ in range(600):
        tau = float(rng.choice([0.5, 1.0, 2.0]))
        centre = 60 + rng.choice([0, 0.4, 1.5, 4], 3)
        seeds, spread = rng.integers(2, 8), rng.choice([0.05, 0.5, 2])
        shared = rng.normal(0, 3, seeds)  # weights and batches of a seed
        values = [(c + shared + rng.normal(0, spread, seeds)).tolist() for c in centre]
        outcomes, conclusion, kill = judge(values, tau)
        cases.append({"values": values, "tau": tau, "outcomes": outcomes, "conclusion": conclusion, "kill": kill})
    return cases


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for oracle in (student_t_oracle, tail_oracle, quantile_oracle, paired_oracle, holm_oracle, power_oracle, verdict_oracle):
        path = folder / f"study_{oracle.__name__.removesuffix('_oracle')}.json"
        path.write_text(json.dumps(oracle()))


if __name__ == "__main__":
    main()
