"""What README.md of this folder says, and how the results beside it give it. scripts/check-studies explains the form.

The statistics are those of docs/study.md, written a second time: nothing here is read from a verdict of the program.
"""

import json
import math
import re
import statistics
from pathlib import Path

HERE = Path(__file__).resolve().parent
TRAIN_OPTIONS = HERE.parents[2] / "src/settings/train_options.h"
CONDITIONS = {"A": "QK", "B": "QK_frozen", "C": "NoQK", "A₀": "QK_nodecay"}
# The effects by their names; Holm's adjustment is within a family.
FAMILIES = ({"gamma": "A − B", "norm": "B − C", "total": "A − C"}, {"gamma_learning": "A₀ − B", "gamma_decay": "A − A₀"})
MEASURES = ("mean_pr", "k_pr_centred", "k_pr_rotated", "k_pr_before_gain", "qk_pr", "qk_pr_rotated")
TAU = 1
VOCABULARY = 16384  # of the command in README.md

RECORDED = {
    "It ran on one NVIDIA H200 on 2026-11-18, 86 s a run.",
    "Conditions, τ = 1, the last probe as the test and five seeds were fixed before the runs.",
    "The fifth seed, 46, was not run.",
    "It is one seed.",  # SEED = 42 in the script that the page cites
    "Keys of the probe are of 8 blocks of the held-out text, 15 documents.",
}
READING = {
    "88m on English text: the gain of QK-Norm, its decay, and normalisation",
    "A learned γ lowers key PR with decay, not without",
    "Over training",
    "Other measures of rank",
    "By layer",
    "Scores",
    "Against the published run",
    "What it does not show",
    "measure",
    "A − B",
    "A₀ − B",
    "A − A₀",
    "B − C",
    "A − C",
    "Only the last probe is the test.",
    "D: different, E: equivalent, U: undecided, by the rule of study.md within each measure.",
    "Measures are not corrected for their number.",
    "Layers are not tested.",
    "What this does to attention apart from rank is not measured here.",
    "Model, text and batch differ as well, so this does not show why the published run has other signs.",
    "The intervals above do not contain it: they are over seeds.",
    "`seed_N/TAG/results.json` hold the results; `headscope study --analyze` on this folder gives the verdict and draws the figures again.",
}
FIGURES = {
    "2_key_pr_causal.png": (
        "5e7681e8090d35b919c733f604694552020ac5cf2a6980b3aa0ad7c72368a6c9",
        "Key PR over training", "Key participation ratio of the four conditions over training"),
    "6_effects_over_time.png": (
        "783cae4171202b318c68f903d282b619690d9c8b782e51bf1ca0f4fc9fba8b39",
        "Effects over training"),
    "7_effects_by_layer.png": (
        "a2965729c32dfa806df452a23d85d96b73361e502ce26fd032e05b4254ff9c74",
        "Effects by layer"),
    "8_score_spread.png": (
        "3ba406c3e004b4a27370fdf5f833138e339cd776905ea66afb6b16c2b12b106a",
        "Spread of the scores"),
}
# What the published results do not tell. Read in the repository that the page cites: research/qk_norm_25m_study.py (batch,
# accumulation, probe_every), configs/llm_config_1b.py (adamw_lr) and configs/llm_config.py (the rest).
PUBLISHED = {"batch": 8, "accumulation": 4, "probe_every": 120, "seq_len": 2048, "adamw_lr": 0.003, "weight_decay": 0.2}


def student_cdf(t, n):
    """P(T ≤ t) with n degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(n))
    term = math.cos(angle) if n % 2 else 1
    total = term if n > 1 else 0
    for k in range(2 + n % 2, n - 1, 2):
        term *= math.cos(angle) ** 2 * (k - 1) / k
        total += term
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if n % 2 else math.sin(angle) * total
    return (1 + inside) / 2


def student_quantile(p, n):
    low, high = 0, 1e3
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, n) < p else (low, middle)
    return high


def holm(p_values):
    adjusted, largest = {}, 0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1, (len(p_values) - rank) * p))
        adjusted[name] = largest
    return adjusted


class Sample:
    """Values of the seeds: their mean, its 95 % interval, and the t tests of docs/study.md, "How sure"."""

    def __init__(self, values, tau=TAU):
        self.values, self.tau, n = values, tau, len(values) - 1
        self.mean, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))
        self.half = student_quantile(0.975, n) * error
        self.low, self.high = self.mean - self.half, self.mean + self.half
        self.p = 2 * (1 - student_cdf(abs(self.mean) / error, n))
        self.p_equivalence = max(1 - student_cdf((self.mean + tau) / error, n), student_cdf((self.mean - tau) / error, n))

    def decide(self, p_holm):
        self.p_holm = p_holm
        is_different = p_holm < 0.05 and abs(self.mean) >= self.tau
        self.outcome = "D" if is_different else "E" if self.p_equivalence < 0.05 else "U"

    def words(self):
        different = "different: protects" if self.mean > 0 else "different: worsens"
        return {"D": different, "E": "equivalent: does nothing", "U": "undecided"}[self.outcome]


class Study:
    """The runs of each condition by its letter, in the order of the seeds. A pair is a text such as "A − B"."""

    def __init__(self):
        self.seeds = sorted(int(path.name.removeprefix("seed_")) for path in HERE.glob("seed_*"))
        self.tags = {path.parent.name for path in HERE.glob("seed_*/*/results.json")}
        self.runs = {letter: [json.loads((HERE / f"seed_{seed}" / tag / "results.json").read_text()) for seed in self.seeds]
                     for letter, tag in CONDITIONS.items()}
        self.all_runs = [run for runs in self.runs.values() for run in runs]
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

    def sample(self, letter, value):
        return Sample([value(run) for run in self.runs[letter]])

    def mean(self, letter, value):
        return statistics.fmean(value(run) for run in self.runs[letter])

    def differences(self, pair, value):
        return [value(first) - value(second) for first, second in zip(*(self.runs[letter] for letter in pair.split(" − ")))]

    def effects(self, value, tau=TAU):
        """The decided sample of each pair."""
        found = {}
        for family in FAMILIES:
            samples = {pair: Sample(self.differences(pair, value), tau) for pair in family.values()}
            for pair, p_holm in holm({pair: sample.p for pair, sample in samples.items()}).items():
                samples[pair].decide(p_holm)
            found |= samples
        return found

    def tau(self, measure):
        start = {name: statistics.fmean(run[name][0] for run in self.all_runs) for name in (measure, "mean_pr")}
        return TAU * start[measure] / start["mean_pr"]

    def measured(self, measure):
        return self.effects(at(measure), self.tau(measure))

    def over_time(self, pair):
        return [statistics.fmean(self.differences(pair, at("mean_pr", probe))) for probe in range(len(self.tokens))]

    def by_layer(self, pair):
        return [Sample(self.differences(pair, lambda run: run["layer_pr"][str(layer)][-1])) for layer in range(self.layers)]

    def at_equal_loss(self, pair):
        """The mean difference of key PR at the last validation loss of the run that ends higher."""
        found = []
        for first, second in zip(*(self.runs[letter] for letter in pair.split(" − "))):
            level = max(first["val_loss"][-1], second["val_loss"][-1])
            found.append(pr_at_loss(first, level) - pr_at_loss(second, level))
        return statistics.fmean(found)

    def gains(self, letter):
        """The size of each gain of the keys at the end, by layer, over the seeds."""
        return [[abs(gain) for run in self.runs[letter] for gain in run["gamma_final"][str(layer)]] for layer in range(self.layers)]


def at(measure, probe=-1):
    return lambda run: run[measure][probe]


def pr_at_loss(run, level):
    """Key PR where the validation loss last passed the level, on the line between two probes."""
    loss, pr = run["val_loss"], run["mean_pr"]
    if loss[-1] == level:
        return pr[-1]
    probe = next(i for i in range(len(loss) - 1, 1, -1) if loss[i] <= level < loss[i - 1])
    return pr[probe] + (pr[probe - 1] - pr[probe]) * (level - loss[probe]) / (loss[probe - 1] - loss[probe])


def participation_ratio(values):
    return sum(map(abs, values)) ** 2 / sum(value * value for value in values)


def weight_decay():
    return float(re.search(r"double weight_decay = ([\d.]+);", TRAIN_OPTIONS.read_text())[1])


def left_by_decay(rate, updates, decay):
    """The share of a gain that decay leaves where no gradient moves it."""
    return (1 - rate * decay) ** updates


def millions_of_parameters(context):
    p = context.preset("of_88m")
    gains = p["d_model"] * (2 * p["layers"] + 1) + 2 * p["d_k"] * p["layers"]
    return context.millions_of_parameters("of_88m") + (gains - (p["vocabulary"] - VOCABULARY) * p["d_model"]) / 1e6


def claims(context):
    study = Study()
    effects = study.effects(at("mean_pr"))
    yield from setup_claims(study, context)
    yield from output_claims(study, effects)
    yield from decay_claims(study, effects)
    yield from gain_claims(study, effects)
    yield from loss_claims(study)
    yield from time_claims(study, effects)
    yield from measure_claims(study)
    yield from layer_claims(study, effects)
    yield from score_claims(study)
    yield from published_claims(study, context)
    yield from limit_claims(study, context)


def setup_claims(s, context):
    length, tokens, seeds = context.preset("of_88m")["seq_len"], s.tokens, s.seeds
    batch = tokens[-1] / s.updates[-1] / length
    yield ("The [causal] study (study.md) on the preset `88m` (# layers, d_k #; # M parameters with the vocabulary here) with the control "
           "A₀, in which the gain γ of QK-Norm is learned without weight decay.",
           [(True,), s.layers, s.d_k, millions_of_parameters(context)])
    yield ("[Seeds # to #]; # M tokens a run in # updates of # × #, a probe [every] # M tokens.",
           [(seeds == list(range(seeds[0], seeds[-1] + 1)), seeds), seeds[0], seeds[-1], tokens[-1] / 1e6, s.updates[-1], batch, length,
            (all(b - a == tokens[1] for a, b in zip(tokens, tokens[1:])), tokens), tokens[1] / 1e6])
    yield ("The text is books, technical writing, speeches, textbooks and reference works: # M tokens of a byte-level BPE vocabulary of #, "
           "which [is the model's]; a run reads it # times.",
           lambda: [context.corpus()[0] / 1e6, context.corpus()[1], (context.corpus()[1] == VOCABULARY, context.corpus()[1]),
                    tokens[-1] / context.corpus()[0]])
    yield ("headscope study --preset 88m --data train.bin --set data.validation=val.bin train.batch=# train.accumulation=# train.tokens=# "
           "model.vocabulary=# [--conditions QK,QK_nodecay,QK_frozen,NoQK] --seeds #,#,#,# --device cuda",
           [batch, 1, tokens[-1], VOCABULARY, (s.tags == set(CONDITIONS.values()), s.tags), *seeds])


def output_claims(s, effects):
    yield "condition mean key PR validation loss [collapse] (after # M tokens)", [(True,), s.tokens[-1] / 1e6]
    for letter, tag in CONDITIONS.items():
        pr, loss = s.sample(letter, at("mean_pr")), s.sample(letter, at("val_loss"))
        yield (f"{letter} {tag} # ± # # ± # #",
               [pr.mean, pr.half, loss.mean, loss.half, s.mean(letter, at("mean_pr", 0)) - pr.mean])
    yield "±: # % interval over # seeds", [95, len(s.seeds)]
    yield "effect [difference] (# % interval) p (Holm) outcome", [(True,), 95]
    for name, pair in (FAMILIES[0] | FAMILIES[1]).items():
        effect = effects[pair]
        tiny = effect.p_holm < 0.001
        yield (f"{name}, {pair} # (# to #) {'< #' if tiny else '#'} [{effect.words()}]",
               [effect.mean, effect.low, effect.high, 0.001 if tiny else effect.p_holm, (True,)])
    yield f"verdict: {conclusion(effects)}", []


def conclusion(effects):
    named = {"DDD": "both", "DDE": "opposed", "DED": "gamma", "DEU": "gamma", "EDD": "normalisation", "EDU": "normalisation", "EEE": "none"}
    return named.get("".join(effects[pair].outcome for pair in FAMILIES[0].values()), "inconclusive")


def decay_claims(s, effects):
    gamma, norm, total = (effects[pair] for pair in FAMILIES[0].values())
    learning, decay = (effects[pair] for pair in FAMILIES[1].values())
    yield "Training γ [lowers] key PR by #.", [(gamma.outcome == "D" and gamma.mean < 0, gamma.outcome), -gamma.mean]
    yield ("This takes the weight decay of γ: without it the [difference] to a fixed γ is #, [equivalent to none] at τ = # (p = #), and with "
           "it key PR is # [lower than] without.",
           [(True,), learning.mean, (learning.outcome == "E", learning.outcome), TAU, learning.p_equivalence, -decay.mean,
            (decay.outcome == "D" and decay.mean < 0, decay.outcome)])
    yield ("In [each] seed A is # to # [below] A₀, and A₀ is [within #] of B.",
           [(True,), -max(decay.values), -min(decay.values), (max(decay.values) < 0, decay.values), (True,), max(map(abs, learning.values))])
    yield ("The verdict of the # conditions A, B and C is [inconclusive since A − C is undecided]; A − B and B − C are [both different], with "
           "[opposite signs].",
           [3, (conclusion(effects) == "inconclusive" and total.outcome == "U", total.outcome),
            (gamma.outcome == norm.outcome == "D", gamma.outcome, norm.outcome), (gamma.mean * norm.mean < 0, gamma.mean, norm.mean)])


def gain_claims(s, effects):
    """What decay does to the gains of the keys, and these to their rank."""
    def variation(run):
        return statistics.fmean(layer[-1] for layer in run["gamma_cv"].values())

    before = s.measured("k_pr_before_gain")
    left, decay, gains = left_by_decay(s.rate, s.updates[-1], weight_decay()), effects["A − A₀"], s.runs["A"][0]["gamma_final"]["0"]
    sizes = {letter: [gain for layer in s.gains(letter) for gain in layer] for letter in ("A", "A₀")}
    uneven = s.differences("A − A₀", variation)
    yield "AdamW takes # × # of γ in [every] update.", [s.rate, weight_decay(), (True,)]
    yield ("[Alone], this leaves # of [each] gain after # updates and does [not change] key PR, which has [no] scale.",
           [(True,), left, (True,), s.updates[-1],
            (math.isclose(participation_ratio(gains), participation_ratio([left * gain for gain in gains])), gains), (True,)])
    yield ("[Together] with learning it [makes the gains uneven]: the γ CV of the keys ends at # in A and at # in A₀ on average over layers.",
           [(True,), (min(uneven) > 0, uneven), s.mean("A", variation), s.mean("A₀", variation)])
    yield ("Their mean |γ| ends at # in A and at # in A₀; # % of the gains of A end [below] # in size, and # % of those of A₀.",
           [*map(statistics.fmean, sizes.values()), 100 * share_below(0.1, sizes["A"]), (True,), 0.1, 100 * share_below(0.1, sizes["A₀"])])
    yield ("Before the gain is applied, the effect of decay is [equivalent to none] (`k_pr_before_gain`: A − A₀ = #), and A is # [above] B.",
           [(before["A − A₀"].outcome == "E", before["A − A₀"].outcome), before["A − A₀"].mean, before["A − B"].mean,
            (before["A − B"].outcome == "D" and before["A − B"].mean > 0, before["A − B"].outcome)])
    yield ("So decay [lowers the rank by the gain itself: dimensions that are multiplied by little count little].",
           [(decay.outcome == "D" and decay.mean < 0 and before["A − A₀"].outcome == "E", decay.outcome, before["A − A₀"].outcome)])


def share_below(size, values):
    return sum(value < size for value in values) / len(values)


def loss_claims(s):
    loss = Sample(s.differences("A − A₀", at("val_loss")))
    yield ("A [lower] loss by decay of γ is [not seen]: at the end the validation loss of A₀ is # [below] that of A on average (# % interval "
           "of A − A₀: # to #).", [(True,), (loss.high > 0, loss.high), loss.mean, (loss.mean > 0, loss.mean), 95, loss.low, loss.high])
    yield "At [equal] validation loss A − B is # and B − C is #.", [(True,), s.at_equal_loss("A − B"), s.at_equal_loss("B − C")]


def time_claims(s, effects):
    millions, gamma, norm, learning = [count / 1e6 for count in s.tokens], *map(s.over_time, ("A − B", "B − C", "A₀ − B"))
    pr = {letter: [s.mean(letter, at("mean_pr", probe)) for probe in range(len(s.tokens))] for letter in CONDITIONS}
    turn, top = next(probe for probe, mean in enumerate(gamma) if mean < 0), gamma.index(max(gamma))
    below = [probe for probe, mean in enumerate(norm) if mean < 0]
    highest = learning.index(max(learning))
    yield ("A − B and B − C [change their signs] over training.",
           [(min(gamma) < 0 < max(gamma) and min(norm) < 0 < max(norm), gamma, norm)])
    yield ("A − B is [positive] from # M to # M tokens, [at most] # at # M, and [negative] from # M on.",
           [(min(gamma[1:turn]) > 0, gamma), millions[1], millions[turn - 1], (True,), gamma[top], millions[top],
            (max(gamma[turn:]) < 0, gamma), millions[turn]])
    yield ("A₀ − B is [at most] # at # M tokens and [falls] to #: B is [lowest there] (#) and [rises] to #, A₀ is [lowest] at the end.",
           [(True,), learning[highest], millions[highest], (True,), learning[-1], (min(pr["B"]) == pr["B"][highest], pr["B"]),
            pr["B"][highest], (True,), pr["B"][-1], (min(pr["A₀"]) == pr["A₀"][-1], pr["A₀"])])
    yield ("B − C is [negative] from # M to # M tokens and [positive] from # M on.",
           [(max(norm[below[0]:below[-1] + 1]) < 0, norm), millions[below[0]], millions[below[-1]],
            (min(norm[below[-1] + 1:]) > 0, norm), millions[below[-1] + 1]])
    late = s.effects(lambda run: statistics.fmean(run["mean_pr"][-5:]))
    yield ("The mean of the [last] # probes gives the [same outcome for each] effect as the [last] one.",
           [(True,), 5, (all(late[pair].outcome == effects[pair].outcome for pair in effects), late), (True,)])


def measure_claims(s):
    found = {measure: s.measured(measure) for measure in MEASURES}
    for measure in MEASURES:
        yield f"`{measure}` (τ = #)", [s.tau(measure)]
        for pair in ("A − B", "A₀ − B", "A − A₀", "B − C", "A − C"):
            yield f"# {found[measure][pair].outcome}", [found[measure][pair].mean]
    decay = {measure: found[measure]["A − A₀"] for measure in MEASURES}
    lowered = {measure for measure in MEASURES if decay[measure].outcome == "D" and decay[measure].mean < 0}
    norm, centred, rotated = (found[measure]["B − C"] for measure in MEASURES[:3])
    yield ("Decay [lowers every measure but the one that leaves γ out].", [({*MEASURES} - lowered == {"k_pr_before_gain"}, lowered)])
    yield ("What normalisation does [depends on the measure]: B − C is # for keys before RoPE, [equivalent to none] without their common "
           "offset, and # after RoPE.",
           [(norm.outcome == rotated.outcome == "D" and norm.mean * rotated.mean < 0, norm.outcome, rotated.outcome), norm.mean,
            (centred.outcome == "E", centred.outcome), rotated.mean])
    yield ('So "normalisation protects rank" [holds for keys before RoPE with their offset, and not without it].',
           [(norm.words() == "different: protects" and centred.outcome == "E", norm.outcome, centred.outcome)])
    learning, others = found["mean_pr"]["A₀ − B"], [found[measure]["A₀ − B"] for measure in ("k_pr_centred", "qk_pr")]
    yield ("Whether learning γ does [nothing depends on the measure, too]: A₀ − B is # for `mean_pr`, # without the offset and # for `qk_pr`.",
           [(learning.outcome == "E" and all(other.outcome == "D" for other in others), learning.outcome), learning.mean,
            *(other.mean for other in others)])


def layer_claims(s, effects):
    decay, samples = [sample.mean for sample in s.by_layer("A − A₀")], s.by_layer("B − C")
    norm = [sample.mean for sample in samples]
    most = sorted(sorted(range(s.layers), key=lambda layer: decay[layer])[:3])
    turn = next(layer for layer, mean in enumerate(norm) if mean < 0)
    yield ("Means over seeds: A − A₀ is [negative in all] of the # layers, and [lowest] in layers # to # (#, # and #), where the mean |γ| of A "
           "ends at #, # and #.",
           [(max(decay) < 0, decay), s.layers, (most == [most[0], most[0] + 1, most[0] + 2], most), most[0], most[-1],
            *(decay[layer] for layer in most), *(statistics.fmean(s.gains("A")[layer]) for layer in most)])
    yield ("B − C is [positive] in layers # to # and [negative] in layers # to #: its mean over layers hides # [signs].",
           [(min(norm[:turn]) > 0, norm), 0, turn - 1, (max(norm[turn:]) < 0, norm), turn, s.layers - 1, 2, (True,)])
    yield ("The # % interval of B − C is # wide in a single layer on average, and # for the mean over layers.",
           [95, statistics.fmean(2 * sample.half for sample in samples), 2 * effects["B − C"].half])


def score_claims(s):
    start, end = ({letter: s.mean(letter, at("score_std", probe)) for letter in CONDITIONS} for probe in (0, -1))
    pr = [s.mean(letter, at("mean_pr")) for letter in CONDITIONS]
    course = [s.mean("C", at("score_std", probe)) for probe in range(len(s.tokens))]
    spread, rank = max(end.values()) / min(end.values()), max(pr) / min(pr)
    decay = s.differences("A − A₀", at("score_std"))
    yield ("The scores of a query spread by # (standard deviation over keys) before training [with QK-Norm] and by # without it.",
           [start["A"], (start["A"] == start["A₀"] == start["B"], start), start["C"]])
    yield ("At the end it is # (A), # (A₀), # (B) and # (C), after a peak of # in C at # M tokens.",
           [*(end[letter] for letter in ("A", "A₀", "B", "C")), max(course), s.tokens[course.index(max(course))] / 1e6])
    yield ("Conditions [differ] in it [more than] in rank: at the end by a factor of up to #, in key PR by #.",
           [(True,), (spread > rank, spread, rank), spread, rank])
    # |q| = |k| = √d_k after RMSNorm, so |q·k|/√d_k ≤ √d_k.
    yield ("A γ of # bounds a score by √d_k = #, and decay [lowers] the spread in [each] seed.",
           [1, math.sqrt(s.d_k), (max(decay) < 0, decay), (True,)])


def published_claims(s, context):
    def results(tag):
        return json.loads((context.shared / "reference/qk_norm_50m_study" / tag / "results.json").read_text())

    def effects():
        a, b, c = (results(CONDITIONS[letter])["mean_pr"][-1] for letter in "ABC")
        return a - b, b - c

    gamma, norm, learning = map(s.over_time, ("A − B", "B − C", "A₀ − B"))
    updates = s.tokens[-1] / (PUBLISHED["batch"] * PUBLISHED["accumulation"] * PUBLISHED["seq_len"])
    dose = updates * PUBLISHED["adamw_lr"]
    probe = min(range(len(s.tokens)), key=lambda probe: abs(s.updates[probe] * s.rate - dose))
    yield ("The published run (a model as the preset `1.5b`: # layers, d_k #) ends with γ effect # and norm effect # after [as many] tokens, "
           "the [opposite signs].",
           lambda: [len(results("QK")["layer_pr"]), len(results("QK")["gamma_final"]["0"]), *effects(),
                    (results("QK")["tokens"][-1] == s.tokens[-1], results("QK")["tokens"]),
                    (all(theirs * ours < 0 for theirs, ours in zip(effects(), (gamma[-1], norm[-1]))), effects())])
    # The probes of the published run fit the batch of the script.
    yield ("It [makes] # updates (script), and its updates × learning rate of AdamW (configuration) is # against # here: decay [alone] leaves # "
           "of its gains, and # of ours.",
           lambda: [(results("QK")["tokens"][1] == PUBLISHED["probe_every"] * PUBLISHED["batch"] * PUBLISHED["seq_len"], results("QK")["tokens"]),
                    updates, dose, s.updates[-1] * s.rate, (True,), left_by_decay(PUBLISHED["adamw_lr"], updates, PUBLISHED["weight_decay"]),
                    left_by_decay(s.rate, s.updates[-1], weight_decay())])
    yield ("Where this study had [made] # updates (#), after # M tokens, the effects were # and #: the [signs] of the published run.",
           lambda: [(True,), s.updates[probe], s.updates[probe] * s.rate, s.tokens[probe] / 1e6, gamma[probe], norm[probe],
                    (all(theirs * ours > 0 for theirs, ours in zip(effects(), (gamma[probe], norm[probe]))), effects())])
    yield ("Decay is [enough to turn the sign] of A − B here: A₀ − B is [positive at every] probe after the start.",
           [(max(gamma) > 0 > gamma[-1], gamma), (min(learning[1:]) > 0, learning)])
    yield ("It does [not turn] B − C: B's γ is [fixed], and C has [none].",
           [(True,), (not any(cv for run in s.runs["B"] for layer in run["gamma_cv"].values() for cv in layer), "gains that vary in B"),
            (not any(run["gamma_cv"] for run in s.runs["C"]), "gains in C")])


def limit_claims(s, context):
    errors = [run["jackknife_error"]["mean_pr"] for run in s.all_runs]
    follows = "NumberOr<SameAsWeightDecay> gain_decay, embedding_decay;" in TRAIN_OPTIONS.read_text()
    yield "# seeds are of one size, one text and one optimizer (Muon for matrices, which shapes spectra itself).", [len(s.seeds)]
    yield "The embedding [decays in all] conditions.", [(follows and weight_decay() > 0, "another default of optim.embedding_decay")]
    yield ("Other controls (`QK_decay_to_one`, `QK_scalar`, `NoQK_scaled`) and other doses of decay were [not run] here: B − C still contains the "
           "temperature of the scores.", [(s.tags == set(CONDITIONS.values()), s.tags)])
    yield "# M tokens are short, and the text is read # times.", lambda: [s.tokens[-1] / 1e6, s.tokens[-1] / context.corpus()[0]]
    yield "By the jackknife over these blocks the standard error of a run's key PR is # to #.", [min(errors), max(errors)]


def readme_claims(context):
    study = Study()
    effects, seconds = study.effects(at("mean_pr")), int(re.search(r"(\d+) s a run", (HERE / "README.md").read_text())[1])
    gamma, learning = effects["A − B"], effects["A₀ − B"]
    yield ("# conditions (A, B, C, and A without weight decay of γ) of # seeds, # s a run on one H200, # M parameters, # M tokens of English "
           "text (docs/studies/qk_norm_88m): training γ [lowers] key PR by # (# % interval # to #); without weight decay of γ the [difference] "
           "is #, [equivalent to none] at τ = #.",
           [len(CONDITIONS), len(study.seeds), seconds, millions_of_parameters(context), study.tokens[-1] / 1e6,
            (gamma.outcome == "D" and gamma.mean < 0, gamma.outcome), -gamma.mean, 95, -gamma.high, -gamma.low, (True,), learning.mean,
            (learning.outcome == "E", learning.outcome), TAU])
    yield "Key participation ratio of the # conditions over training", [len(CONDITIONS)]
