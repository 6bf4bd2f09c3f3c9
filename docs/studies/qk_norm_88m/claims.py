"""What README.md of this folder says, and how the results beside it give it. scripts/check-studies explains the form."""

import importlib.util
import json
import math
import statistics
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = {"A": "QK", "B": "QK_frozen", "C": "NoQK"}

RECORDED = {
    "It ran on one NVIDIA H200 on 2026-11-15.",
    "It is one seed, too.",  # SEED = 42 in the script that the page cites
}
READING = {
    "88m on English text",
    "Over training",
    "tokens",
    "verdict",
    "γ effect",
    "norm effect",
    "What the effects contain",
    "Chance",
    "By layer",
    "Against the published run",
    "It does not test a difference between them.",
    "Chance has the only scale that we have.",
    "A verdict is about its probe, not about the whole run.",
    "B's keys are not isotropic, so this is an estimate.",
    "How much of A − B is learned in the keys before the gain is not measured here.",
    "Part of B − C is the measure: the keys of C keep their lengths, those of B have one length.",
    "At the end this part is unknown.",
    "QK-Norm also changes the scale of the logits and the effective learning rate.",
    "A GPU does not repeat a run bit for bit (gpu.md), so it is a second run of A.",
    "Another seed may differ by more.",
    "Chance is not the only difference between the runs.",
    "Model size, text, vocabulary, batch and learning rates differ, so the comparison does not say what turns the signs.",
}
FIGURES = {
    "2_key_pr_causal.png": (
        "027f74d5a40a18e2a7958f03ecd78b1b2737cc45fb24503db44621c905d3c71e",
        "Key PR over training", "Key participation ratio of the three conditions over training"),
    "3_per_layer.png": (
        "06c1fec19ff9a5c59e10c27e1afbcc5e21b24dcece51c22e510f7d4d3b30236f",
        "3_per_layer"),
    "4_causal_decomposition.png": (
        "16b0a2e8fe4f836338c5062061ea716615b4392163c411ce39b4b644821a7dd4",
        "4_causal_decomposition"),
    "5_gamma_cv.png": (
        "48137a5422a166d543b821e67c7c27afbdd9028a46e86974066505c1edc6510c",
        "5_gamma_cv"),
}
# What the published results do not tell. Read in the commit that the page cites: research/qk_norm_25m_study.py (batch,
# accumulation, probe_every) and configs/llm_config_1b.py (the rest).
PUBLISHED = {"batch": 8, "accumulation": 4, "probe_every": 120, "seq_len": 2048, "muon_lr": 0.012, "adamw_lr": 0.003}


class Study:
    """Three conditions of one seed, by the letters A, B and C; `gamma` is A − B and `norm` is B − C at every probe."""

    def __init__(self, folder):
        self.results = {letter: json.loads((folder / name / "results.json").read_text()) for letter, name in FOLDERS.items()}
        self.tokens = self.results["A"]["tokens"]
        if any(result["tokens"] != self.tokens for result in self.results.values()):
            raise ValueError(f"{folder}: the conditions have different probes")
        self.pr = {letter: result["mean_pr"] for letter, result in self.results.items()}
        self.gamma, self.norm = self.differences("AB", self.pr), self.differences("BC", self.pr)
        self.layers = len(self.results["A"]["layer_pr"])
        self.d_k = len(self.results["A"]["gamma_final"]["0"])
        self.first, self.last = self.by_layer(0), self.by_layer(-1)
        self.layer_gamma, self.layer_norm = self.differences("AB", self.last), self.differences("BC", self.last)
        self.gamma_cv = [self.results["A"]["gamma_cv"][str(layer)][-1] for layer in range(self.layers)]
        self.gain = [self.results["A"]["gamma_final"][str(layer)] for layer in range(self.layers)]
        for probe in range(len(self.tokens)):
            for letter, layers in self.by_layer(probe).items():
                if not math.isclose(statistics.fmean(layers), self.pr[letter][probe], rel_tol=1e-9):
                    raise ValueError(f"{folder}: mean_pr of {letter} is not the mean of layer_pr at probe {probe}")

    def by_layer(self, probe):
        return {x: [result["layer_pr"][str(layer)][probe] for layer in range(self.layers)] for x, result in self.results.items()}

    @staticmethod
    def differences(pair, values):
        return [x - y for x, y in zip(values[pair[0]], values[pair[1]])]

    def verdict(self, probe, tau=1):
        """The rule of docs/study.md for one seed."""
        gamma, norm = abs(self.gamma[probe]) >= tau, abs(self.norm[probe]) >= tau
        if gamma or norm:
            return "both" if gamma and norm else "gamma" if gamma else "normalisation"
        return "inconclusive" if abs(self.pr["A"][probe] - self.pr["C"][probe]) >= tau else "none"

    def stretches(self, tau=1):
        """(verdict, probes) of each run of probes with one verdict."""
        found = []
        for probe in range(len(self.tokens)):
            if not found or found[-1][0] != self.verdict(probe, tau):
                found.append((self.verdict(probe, tau), []))
            found[-1][1].append(probe)
        return found


def spread(values):
    return [min(values), max(values)] if len(values) > 1 else list(values)


def claims(context):
    study, combined = Study(HERE), json.loads((HERE / "combined.json").read_text())
    for layer, gain in enumerate(study.gain):  # the last probe is after the last update, so both are of the same weights
        if not math.isclose(statistics.stdev(gain) / abs(statistics.fmean(gain)), study.gamma_cv[layer], rel_tol=1e-9):
            raise ValueError(f"gamma_cv is not that of gamma_final in layer {layer}")
    yield from setup_claims(study, combined, context)
    yield from probe_claims(study)
    yield from verdict_claims(study, combined["verdict"])
    yield from contents_claims(study)
    yield from chance_claims(study)
    yield from norm_claims(study)
    yield from gain_claims(study)
    yield from published_claims(study, context)
    yield ("`combined.json` and `*/results.json` hold [all] numbers; `headscope study --analyze` on this folder draws the figures again.",
           [({letter: combined[letter] for letter in FOLDERS} == study.results, "files that differ from each other")])


def setup_claims(s, combined, context):
    preset, tokens, seconds = context.preset("of_88m"), s.tokens, round(combined["elapsed_s"])
    batch, length = tokens[1] / preset["probe_every"] / preset["seq_len"], preset["seq_len"]
    yield ("The [causal] study (study.md) on the preset `88m` (# layers, d_k #), seed #: # M tokens a condition in updates of # × #, "
           "a probe [every] # M tokens, # min # s for the # conditions.",
           [(True,), s.layers, s.d_k, context.seed(), tokens[-1] / 1e6, batch, length,
            (all(b - a == tokens[1] for a, b in zip(tokens, tokens[1:])), tokens), tokens[1] / 1e6,
            seconds // 60, seconds % 60, len(s.results)])
    yield ("The text is books, technical writing, speeches, textbooks and reference works: # M tokens of a byte-level BPE "
           "vocabulary of #, so a condition reads it # times.",
           lambda: [context.corpus()[0] / 1e6, context.corpus()[1], tokens[-1] / context.corpus()[0]])
    yield "One seed describes # runs.", [len(s.results)]
    yield ("headscope study --preset 88m --data train.bin --set data.validation=val.bin --set train.batch=# "
           "--set train.accumulation=# --set train.tokens=# --device cuda", [batch, 1, tokens[-1]])
    yield "condition mean key PR validation loss (after # M tokens)", [tokens[-1] / 1e6]
    for letter, result in s.results.items():
        yield f"{letter} {result['tag']} # #", [s.pr[letter][-1], result["val_loss"][-1]]
    recorded = combined["verdict"]
    yield ("verdict: [both]", [(s.verdict(-1) == recorded["conclusion"] == "both" and (recorded["gamma_effect"], recorded["norm_effect"])
                                == (s.gamma[-1], s.norm[-1]), s.verdict(-1), recorded)])
    loss = {letter: result["val_loss"][-1] for letter, result in s.results.items()}
    yield ("The validation losses at the end lie [within #] of [each] other, A's the [lowest].",
           [(True,), math.ceil(1000 * (max(loss.values()) - min(loss.values()))) / 1000, (True,), (loss["A"] == min(loss.values()), loss)])


def probe_claims(s):
    early, pr = s.tokens.index(3932160), s.pr
    fall = {letter: pr[letter][0] - pr[letter][-1] for letter in FOLDERS}
    yield ("Key PR starts at # [(A, B)] and # (C) of #.",
           [pr["A"][0], (pr["A"][0] == pr["B"][0], pr["A"][0], pr["B"][0]), pr["C"][0], s.d_k])
    yield "From start to end it [falls] by # (A), # (B) and # (C).", [(min(fall.values()) > 0, fall), *fall.values()]
    yield ("At # M tokens it is # (A), # (B) and # (C): # %, # % and # % of these [falls].",
           [s.tokens[early] / 1e6, *(pr[letter][early] for letter in FOLDERS),
            *(100 * (pr[letter][0] - pr[letter][early]) / fall[letter] for letter in FOLDERS), (True,)])
    yield ("From there A ends at #, its [lowest], B at #, and C [stays between] # and #.",
           [pr["A"][-1], (pr["A"][-1] == min(pr["A"]), pr["A"]), pr["B"][-1], (True,), *spread(pr["C"][early:])])
    yield "C has [no] QK-Norm.", [(s.results["C"]["gamma_cv"] == {}, "gains in C")]
    layers = [100 * (s.first["C"][i] - s.last["C"][i]) / (s.first["A"][i] - s.last["A"][i]) for i in range(s.layers)]
    yield ("It [falls] # % as [much] as A on average over layers; by layer # % to # %.",
           [(min(layers) > 0, layers), 100 * fall["C"] / fall["A"], (True,), *spread(layers)])


def verdict_claims(s, recorded):
    turn = next(probe for probe, gamma in enumerate(s.gamma) if gamma < 0)
    stretches, millions = s.stretches(), [count / 1e6 for count in s.tokens]
    yield ("The γ effect (A − B) is [positive] from # M to # M tokens, [negative] from # M on, and ends at #.",
           [(min(s.gamma[1:turn]) > 0, s.gamma), millions[1], millions[turn - 1], (max(s.gamma[turn:]) < 0, s.gamma), millions[turn], s.gamma[-1]])
    yield "The norm effect (B − C) ends at #.", [s.norm[-1]]
    yield ("By the rule of study.md, with τ = #, the verdict at [each] of the # probes is:",
           [recorded["tau"], (recorded["tau"] == 1, recorded["tau"]), len(s.tokens)])
    for verdict, probes in stretches:
        several = len(probes) > 1
        yield "# M to # M" if several else "# M", spread([millions[probe] for probe in probes])
        yield f"[{verdict}]", [(True,)]
        for effect in (s.gamma, s.norm):
            yield "# to #" if several else "#", spread([effect[probe] for probe in probes])
    yield "It [changes] # times.", [(len(stretches) > 1, stretches), len(stretches) - 1]
    changes = {tau / 100: len(s.stretches(tau / 100)) - 1 for tau in range(1, 500)}
    yield ("This count depends on τ: # at τ = #, # at #, # at #, # and #.",
           [changes[0.25], 0.25, changes[0.5], 0.5, *{changes[tau] for tau in (1.5, 2, 3)}, 1.5, 2, 3])
    largest = max(tau for tau in changes if s.verdict(-1, tau) == "both")
    yield ('The [last] verdict is ["both"] for [every] τ up to #.',
           [(True,), (True,), (all(s.verdict(-1, tau) == "both" for tau in changes if tau <= largest), largest), largest])
    both = [[s.gamma[probe] for probe in probes] for verdict, probes in stretches if verdict == "both"]
    yield ('With τ = # it is ["both"] in # stretches, with a [positive] γ effect in the [first] and a [negative] one in the [last].',
           [recorded["tau"], (bool(both), stretches), len(both), (min(both[0]) > 0, both[0]), (True,), (max(both[-1]) < 0, both[-1]), (True,)])


def contents_claims(s):
    """Keys with the covariance of the identity, times a gain γ, have singular values in the ratio of |γ|."""
    rank = [sum(map(abs, gain)) ** 2 / sum(g * g for g in gain) for gain in s.gain]
    predicted = [pr * (r / s.d_k - 1) for pr, r in zip(s.last["B"], rank)]
    yield ("Key PR is measured after the gain (study.md), so an uneven gain [changes] it by itself: isotropic keys times γ have singular "
           "values in the ratio of |γ| and the PR (Σ|γ|)²/Σγ².", [(max(rank) < s.d_k, rank)])
    yield "With the gains of A at the end this is # to # of # by layer.", [*spread(rank), s.d_k]
    yield ("B's layer PR times that over # predicts a mean [change] of #; A − B is #.",
           [s.d_k, (True,), statistics.fmean(predicted), s.gamma[-1]])
    yield "Over layers the correlation of the # is #.", [2, statistics.correlation(predicted, s.layer_gamma)]
    # Equal initial weights: tests/model, Initial.WeightsAreTheSameInAllConditions.
    yield ("Before training, where B and C have the [same] weights, B − C is #.",
           [(s.tokens[0] == 0, s.tokens), s.norm[0]])


def chance_claims(s):
    # The other study's tables, read as its own claims read them.
    spec = importlib.util.spec_from_file_location("heads_88m", HERE.parent / "heads_88m" / "claims.py")
    heads = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(heads)
    other = heads.Summary(HERE.parent / "heads_88m" / "summary.md")
    thirds = [[layer for layer in range(s.layers) if 3 * layer // s.layers == third] for third in range(3)]

    def above(column, layers):
        return [pr - statistics.fmean(layers["A"][layer] for layer in third)
                for pr, third in zip(other.rank("k_pr", column), thirds)]

    end, start, half = above("end", s.last), above("start", s.first), (len(s.tokens) + 1) // 2
    steps = {x: max(abs(b - a) for a, b in zip(pr[half:], pr[half + 1:])) for x, pr in s.pr.items()}
    commands = [" ".join((HERE.parent / name / "README.md").read_text().split()) for name in ("heads_88m", "qk_norm_88m")]
    shared = ("--preset 88m", "--data train.bin", "train.batch=8 ", "train.accumulation=1 ", "train.tokens=49152000 ", "seed 42")
    yield ("The run of heads_88m has the preset, seed, text and [update size of A].",
           [(all(part in command for part in shared for command in commands), shared)])
    yield ("At the end its key PR is # [above] A's in the early [third] of the layers, # [below] it in the middle [third] and # [above] it in "
           "the final [third].",
           [end[0], (end[0] > 0, end), (True,), -end[1], (end[1] < 0, end), (True,), end[2], (end[2] > 0, end), (True,)])
    yield ("It was measured on a [training batch], A on a held-out one: before training it is # [above] A's in [each third].",
           [("measured on training batches" in other.text, "summary.md"), start[0], (min(start) > 0, start), (max(start) - min(start) < 0.1, start)])
    yield ("From one probe to the next the mean key PR [changes] by up to # (A), # (B) and # (C) in the second [half] of the run.",
           [(True,), *steps.values(), (2 * s.tokens[half] >= s.tokens[-1] > 2 * s.tokens[half - 1], half)])


def norm_claims(s):
    norm, half = s.layer_norm, s.layers // 2
    rises = next(layer for layer, effect in enumerate(norm) if effect <= 0)
    falls = 1 + max(layer for layer, effect in enumerate(norm) if effect >= 0)
    middle = norm[rises:falls]
    yield "Effects at the [last] probe: 3_per_layer, 4_causal_decomposition.", [(True,)]
    yield ("B is [above C in each] of layers # to #, by # to #, and [below C in each] of layers # to #, by # to #.",
           [(min(norm[:rises]) > 0, norm), 0, rises - 1, *spread(norm[:rises]),
            (max(norm[falls:]) < 0, norm), falls, s.layers - 1, *spread([-effect for effect in norm[falls:]])])
    yield "Layers # to # have [both signs].", [rises, falls - 1, (min(middle) < 0 < max(middle), middle)]
    yield ("# % of Σ|B − C| lies in the [upper half] of the layers (# to #).",
           [100 * sum(map(abs, norm[half:])) / sum(map(abs, norm)), (2 * half == s.layers, s.layers), half, s.layers - 1])
    yield ("The norm effect of the model is a mean in which these [signs partly cancel].",
           [(0 < abs(sum(norm)) < sum(map(abs, norm)), sum(norm), sum(map(abs, norm)))])


def gain_claims(s):
    gain, norm, lower = s.layer_gamma, s.layer_norm, range(s.layers // 2)
    below = [layer for layer in lower if gain[layer] < 0]
    nearly = [layer for layer in below if norm[layer] > 0 and -gain[layer] >= 0.94 * norm[layer]]
    whole = [layer for layer in nearly if -gain[layer] > norm[layer]]
    most = sorted(sorted(range(s.layers), key=lambda layer: gain[layer])[:2])
    widest = sorted(sorted(range(s.layers), key=lambda layer: -s.gamma_cv[layer])[:2])
    yield ("# % of Σ|A − B| lies in the [upper half].",
           [100 * sum(map(abs, gain[len(lower):])) / sum(map(abs, gain)), (2 * len(lower) == s.layers, s.layers)])
    yield ("In the [lower half] (# to #) A is [below B] in # of # layers.",
           [(2 * len(lower) == s.layers, s.layers), lower[0], lower[-1], (all(s.last["A"][i] < s.last["B"][i] for i in below), gain),
            len(below), len(lower)])
    yield ("In # of them (# to #, # and #) B − A is [at least] # % of B − C.",
           [len(nearly), nearly[0], *nearly[-3:], (nearly[:-2] == list(range(nearly[0], nearly[-3] + 1)), nearly), 94])
    yield ("In # (#, #, # and #) it is [more than] B − C: A is [below C].",
           [len(whole), *whole, (all(-gain[i] > norm[i] > 0 for i in whole), whole),
            ([i for i in lower if s.last["A"][i] < s.last["C"][i]] == whole, whole)])
    yield ("A − B is [lowest] in layers # and # (# and #), where the variation of the gain is [largest too] (5_gamma_cv: # and #).",
           [(True,), *most, *(gain[layer] for layer in most), (widest == most, widest, most), *(s.gamma_cv[layer] for layer in widest)])


def published_claims(s, context):
    def published():
        return Study(context.shared / "reference/qk_norm_50m_study")

    ours, vocabulary = context.preset("of_88m"), context.preset("of_88m")["vocabulary"]
    update = s.tokens[1] / ours["probe_every"]
    published_update = PUBLISHED["batch"] * PUBLISHED["accumulation"] * PUBLISHED["seq_len"]
    yield ("The published run (a model as the preset `1.5b`: # layers, d_k #) ends with [both effects of the opposite sign] after "
           "[as many] tokens: γ effect #, norm effect #.",
           lambda: [published().layers, published().d_k,
                    (published().gamma[-1] * s.gamma[-1] < 0 and published().norm[-1] * s.norm[-1] < 0, s.gamma[-1], s.norm[-1]),
                    (published().tokens[-1] == s.tokens[-1], published().tokens[-1]), published().gamma[-1], published().norm[-1]])
    yield ("Its PR is of #, so τ = # is [half as much] of the whole there as here.",
           lambda: [published().d_k, 1, (published().d_k == 2 * s.d_k, published().d_k)])
    yield ("By the [same] rule its verdict [changes] # times over # probes.",
           lambda: [(True,), (True,), len(published().stretches()) - 1, len(published().tokens)])
    # The probes of the published run fit the batch of the script.
    yield ("The published script [makes] updates of # × # × # = # tokens, # times the # of this run: # updates against #.",
           lambda: [(published().tokens[1] == PUBLISHED["probe_every"] * PUBLISHED["batch"] * PUBLISHED["seq_len"], published().tokens[1]),
                    PUBLISHED["batch"], PUBLISHED["accumulation"], PUBLISHED["seq_len"], published_update, published_update / update,
                    update, published().tokens[-1] / published_update, s.tokens[-1] / update])
    yield ("Its learning rates (configuration) are [half of those here]: # against # (Muon), # against # (AdamW).",
           [(all(2 * PUBLISHED[rate] == ours[rate] for rate in ("muon_lr", "adamw_lr")), PUBLISHED, ours),
            PUBLISHED["muon_lr"], ours["muon_lr"], PUBLISHED["adamw_lr"], ours["adamw_lr"]])
    yield ('Its text (report) is a "1B subset" of FineWeb and Cosmopedia-v2; here # M tokens are read # times.',
           lambda: [context.corpus()[0] / 1e6, s.tokens[-1] / context.corpus()[0]])
    yield ("The text here has # of the # tokens of the model's vocabulary.", lambda: [context.corpus()[1], vocabulary])


def readme_claims(context):
    study, combined = Study(HERE), json.loads((HERE / "combined.json").read_text())
    yield ("# minutes on one H200 train an # M parameter model # times on # M tokens of English text "
           "(docs/studies/qk_norm_88m; one seed, which describes and does [not] test):",
           [round(combined["elapsed_s"] / 60), context.millions_of_parameters("of_88m"), len(study.results), study.tokens[-1] / 1e6,
            ("seeds" not in combined, "several seeds")])
    yield "Key participation ratio of the # conditions over training", [len(study.results)]
