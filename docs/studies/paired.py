"""The statistics of docs/study.md, "How sure", written a second time in plain Python, for the claims of the studies: nothing here is read from a
verdict of the program.
"""

import functools
import json
import math
import statistics
from pathlib import Path

CONDITIONS = {"A": "QK", "B": "QK_frozen", "C": "NoQK", "A₀": "QK_nodecay", "A₁": "QK_decay_to_one", "S": "QK_scalar", "C′": "NoQK_scaled"}
# The effects by their names; Holm's adjustment is within a family.
FAMILIES = ({"gamma": "A − B", "norm": "B − C", "total": "A − C"},
            {"gamma_learning": "A₀ − B", "gamma_decay": "A − A₀", "decay_target": "A − A₁", "gamma_scale": "S − B", "gamma_shape": "A₀ − S",
             "temperature": "C′ − C", "norm_matched": "B − C′"})
MEASURES = ("mean_pr", "k_pr_centred", "k_pr_rotated", "k_pr_before_gain", "qk_pr", "qk_pr_rotated")
TAU = 1
BLOCKS = 8  # of the held-out text, in a probe


def integral(function, low, high, steps=200):
    """Simpson's rule."""
    width = (high - low) / steps
    inner = sum((4 if i % 2 else 2) * function(low + i * width) for i in range(1, steps))
    return width / 3 * (function(low) + inner + function(high))


def student_cdf(t, n):
    """P(T ≤ t) with n degrees of freedom, any positive number: T = √n·tan(angle), and the angle's density is ∝ cos(angle)ⁿ⁻¹."""
    scale = math.gamma((n + 1) / 2) / (math.sqrt(math.pi) * math.gamma(n / 2))
    return 0.5 + scale * integral(lambda angle: math.cos(angle) ** (n - 1), 0, math.atan(t / math.sqrt(n)))


@functools.cache
def student_quantile(p, n):
    low, high = 0, 1e3
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, n) < p else (low, middle)
    return high


def satterthwaite(*terms):
    """The error of a sum of independent terms (error, degrees of freedom), and its degrees of freedom."""
    variance = sum(error ** 2 for error, _ in terms)
    return math.sqrt(variance), variance ** 2 / sum(error ** 4 / degrees for error, degrees in terms)


def holm(p_values):
    adjusted, largest = {}, 0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1, (len(p_values) - rank) * p))
        adjusted[name] = largest
    return adjusted


class Estimate:
    """A mean with its standard error: its 95 % interval, and the t tests of docs/study.md, "How sure"."""

    def __init__(self, mean, error, degrees, tau=TAU):
        self.mean, self.error, self.degrees, self.tau = mean, error, degrees, tau
        self.half = student_quantile(0.975, degrees) * error
        self.low, self.high = mean - self.half, mean + self.half
        self.p = 2 * (1 - student_cdf(abs(mean) / error, degrees))
        self.p_equivalence = max(1 - student_cdf((mean + tau) / error, degrees), student_cdf((mean - tau) / error, degrees))

    def excludes_zero(self):
        return self.low > 0 or self.high < 0

    def decide(self, p_holm):
        self.p_holm = p_holm
        is_different = p_holm < 0.05 and abs(self.mean) >= self.tau
        self.outcome = "D" if is_different else "E" if self.p_equivalence < 0.05 else "U"

    def words(self):
        different = "different: protects" if self.mean > 0 else "different: worsens"
        return {"D": different, "E": "equivalent: does nothing", "U": "undecided"}[self.outcome]


class Sample(Estimate):
    """The estimate from the values of the seeds."""

    def __init__(self, values, tau=TAU):
        self.values = values
        super().__init__(statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values)), len(values) - 1, tau)


class Study:
    """The runs of each condition by its letter and seed, of one folder or of several. A pair is a text such as "A − B"; its seeds are those that
    both conditions have."""

    def __init__(self, folders, letters, conditions=CONDITIONS, seeds=None):
        paths = {(path.parent.name, int(path.parent.parent.name.removeprefix("seed_"))): path
                 for folder in ([folders] if isinstance(folders, Path) else folders) for path in sorted(folder.glob("seed_*/*/results.json"))}
        self.tags, self.seeds = {tag for tag, _ in paths}, sorted({seed for _, seed in paths if not seeds or seed in seeds})
        self.families = [{name: pair for name, pair in family.items() if set(pair.split(" − ")) <= set(letters)} for family in FAMILIES]
        self.by_seed = {letter: {seed: json.loads(paths[conditions[letter], seed].read_text()) for seed in self.seeds if (conditions[letter], seed) in paths}
                        for letter in letters}
        self.runs = {letter: list(runs.values()) for letter, runs in self.by_seed.items()}
        self.all_runs = [run for runs in self.runs.values() for run in runs]
        self.blocks = BLOCKS
        one = self.all_runs[0]
        self.tokens, self.updates, self.rate = one["tokens"], one["updates"], one["adamw_lr"]
        self.layers, self.d_k = len(one["layer_pr"]), len(one["gamma_final"]["0"])
        for run in self.all_runs:
            self.check(run)

    def check(self, run):
        if (run["tokens"], run["updates"], run["adamw_lr"]) != (self.tokens, self.updates, self.rate):
            raise ValueError(f"{run['tag']}: the runs have different probes or learning rates")
        for probe, mean in enumerate(run["mean_pr"]):
            if not math.isclose(statistics.fmean(layer[probe] for layer in run["layer_pr"].values()), mean, rel_tol=1e-9):
                raise ValueError(f"{run['tag']}: mean_pr is not the mean of layer_pr at probe {probe}")
        for layer, gain in run.get("gamma_final", {}).items():  # the last probe is after the last update
            if not math.isclose(statistics.stdev(gain) / abs(statistics.fmean(gain)), run["gamma_cv"][layer][-1], rel_tol=1e-6):
                raise ValueError(f"{run['tag']}: gamma_cv is not that of gamma_final in layer {layer}")

    def decided(self, estimate):
        """The decided estimate of each pair; estimate(pair) makes it."""
        found = {}
        for family in self.families:
            estimates = {pair: estimate(pair) for pair in family.values()}
            for pair, p_holm in holm({pair: one.p for pair, one in estimates.items()}).items():
                estimates[pair].decide(p_holm)
            found |= estimates
        return found

    def sample(self, letter, value):
        return Sample([value(run) for run in self.runs[letter]])

    def mean(self, letter, value):
        return statistics.fmean(value(run) for run in self.runs[letter])

    def paired(self, pair):
        first, second = (self.by_seed[letter] for letter in pair.split(" − "))
        return [(first[seed], second[seed]) for seed in first if seed in second]

    def differences(self, pair, value):
        return [value(first) - value(second) for first, second in self.paired(pair)]

    def effects(self, value, tau=TAU):
        return self.decided(lambda pair: Sample(self.differences(pair, value), tau))

    def without_seed(self, index):
        def others(pair):
            values = self.differences(pair, at("mean_pr"))
            return Sample(values[:index] + values[index + 1:])
        return self.decided(others)

    def with_text_error(self, degrees=None, tau=TAU):
        """The effects when a condition's error over the text is added, as if independent of the others'; Satterthwaite's degrees of freedom."""
        def widened(pair):
            sample = Sample(self.differences(pair, at("mean_pr")))
            text = math.hypot(*(self.mean(letter, lambda run: run["jackknife_error"]["mean_pr"]) for letter in pair.split(" − ")))
            error, own_degrees = satterthwaite((sample.error, sample.degrees), (text, self.blocks - 1))
            return Estimate(sample.mean, error, degrees or own_degrees, tau)
        return self.decided(widened)

    def tau(self, measure):
        start = {name: statistics.fmean(run[name][0] for run in self.all_runs) for name in (measure, "mean_pr")}
        return TAU * start[measure] / start["mean_pr"]

    def measured(self, measure):
        return self.effects(at(measure), self.tau(measure))

    def over_time(self, pair):
        return [statistics.fmean(self.differences(pair, at("mean_pr", probe))) for probe in range(len(self.tokens))]

    def by_layer(self, pair, measure="mean_pr"):
        return [Sample(self.differences(pair, in_layers([layer], measure))) for layer in range(self.layers)]

    def at_equal_loss(self, pair):
        """The difference of key PR at the last validation loss of the run that ends higher."""
        found = []
        for first, second in self.paired(pair):
            level = max(first["val_loss"][-1], second["val_loss"][-1])
            found.append(pr_at_loss(first, level) - pr_at_loss(second, level))
        return Sample(found)

    def correlation(self, first, second):
        return statistics.correlation(*([run["mean_pr"][-1] for run in self.runs[letter]] for letter in (first, second)))

    def gains(self, letter):
        """The size of each gain of the keys at the end, by layer, over the seeds."""
        return [[abs(gain) for run in self.runs[letter] for gain in run["gamma_final"][str(layer)]] for layer in range(self.layers)]


def at(measure, probe=-1):
    return lambda run: run[measure][probe]


def in_layers(layers, measure="mean_pr"):
    """A run's mean over these layers at the end."""
    name = "layer_pr" if measure == "mean_pr" else f"layer_{measure}"
    return lambda run: statistics.fmean(run[name][str(layer)][-1] for layer in layers)


def mean_abs_and_noise(samples):
    """docs/study.md, "When and where"."""
    return (statistics.fmean(abs(sample.mean) for sample in samples),
            math.sqrt(2 / math.pi) * statistics.fmean(sample.error for sample in samples))


def interval(sample):
    return [sample.mean, sample.low, sample.high]


def pr_at_loss(run, level):
    """Key PR where the validation loss last passed the level, on the line between two probes."""
    loss, pr = run["val_loss"], run["mean_pr"]
    if loss[-1] == level:
        return pr[-1]
    probe = next(i for i in range(len(loss) - 1, 1, -1) if loss[i] <= level < loss[i - 1])
    return pr[probe] + (pr[probe - 1] - pr[probe]) * (level - loss[probe]) / (loss[probe - 1] - loss[probe])


def conclusion(effects):
    named = {"DDD": "both", "DDE": "opposed", "DED": "gamma", "DEU": "gamma", "EDD": "normalisation", "EDU": "normalisation", "EEE": "none"}
    return named.get("".join(effects[pair].outcome for pair in FAMILIES[0].values()), "inconclusive")


def published(context, tag):
    return json.loads((context.shared / "reference/qk_norm_50m_study" / tag / "results.json").read_text())


def output_claims(s, effects):
    """Of the two tables that the program prints."""
    unit = ("# M", 1e6) if s.tokens[-1] >= 1e6 else ("#", 1)
    yield f"condition mean key PR validation loss [collapse] (after {unit[0]} tokens)", [(True,), s.tokens[-1] / unit[1]]
    for letter in s.runs:
        pr, loss = s.sample(letter, at("mean_pr")), s.sample(letter, at("val_loss"))
        yield (f"{letter} {CONDITIONS[letter]} # ± # # ± # #",
               [pr.mean, pr.half, loss.mean, loss.half, s.mean(letter, at("mean_pr", 0)) - pr.mean])
    counts = sorted({len(runs) for runs in s.runs.values()})
    yield f"±: # % interval over {'# to #' if len(counts) > 1 else '#'} seeds", [95, counts[0], *counts[1:][-1:]]
    yield "effect [difference] (# % interval) p (Holm) outcome", [(True,), 95]
    for name, pair in (s.families[0] | s.families[1]).items():
        effect = effects[pair]
        tiny = effect.p_holm < 0.001
        yield (f"{name}, {pair} # (# to #) {'< #' if tiny else '#'} [{effect.words()}]",
               [effect.mean, effect.low, effect.high, 0.001 if tiny else effect.p_holm, (True,)])
    yield f"verdict: [{conclusion(effects)}]", [(True,)]
