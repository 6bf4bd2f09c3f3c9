"""What README.md of this folder says, and how the results beside it give it. scripts/check-studies explains the form."""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = {"A": "QK", "B": "QK_frozen", "C": "NoQK"}

RECORDED = {"It ran on one NVIDIA H200 on 2026-11-15."}
READING = {
    "It does not test a difference between them, and it does not say how much of a difference is chance.",
    "A verdict is about its probe, not about the whole run.",
    "Chance is not the only difference between the runs.",
    "Model size, text, batch and learning rates differ, so the comparison does not say what turns the signs.",
}
# The published results do not tell the size of an update; the script that the page cites does, in this commit.
PUBLISHED_BATCH, PUBLISHED_ACCUMULATION = 8, 4


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
        last = {x: [result["layer_pr"][str(layer)][-1] for layer in range(self.layers)] for x, result in self.results.items()}
        self.layer_gamma, self.layer_norm = self.differences("AB", last), self.differences("BC", last)
        self.gamma_cv = [self.results["A"]["gamma_cv"][str(layer)][-1] for layer in range(self.layers)]

    @staticmethod
    def differences(pair, values):
        return [x - y for x, y in zip(values[pair[0]], values[pair[1]])]

    def verdict(self, probe, tau=1):
        """The rule of docs/study.md for one seed."""
        gamma, norm = abs(self.gamma[probe]) >= tau, abs(self.norm[probe]) >= tau
        if gamma or norm:
            return "both" if gamma and norm else "gamma" if gamma else "normalisation"
        return "inconclusive" if abs(self.pr["A"][probe] - self.pr["C"][probe]) >= tau else "none"

    def stretches(self):
        """(verdict, probes) of each run of probes with one verdict."""
        found = []
        for probe in range(len(self.tokens)):
            if not found or found[-1][0] != self.verdict(probe):
                found.append((self.verdict(probe), []))
            found[-1][1].append(probe)
        return found


def spread(values):
    return [min(values), max(values)] if len(values) > 1 else list(values)


def claims(context):
    study, combined = Study(HERE), json.loads((HERE / "combined.json").read_text())
    yield from setup_claims(study, combined, context)
    yield from probe_claims(study)
    yield from verdict_claims(study, combined["verdict"])
    yield from norm_claims(study)
    yield from gain_claims(study)
    yield from published_claims(study, context)
    yield ("`combined.json` and `*/results.json` hold [all] numbers; `headscope study --analyze` on this folder draws the figures again.",
           [({letter: combined[letter] for letter in FOLDERS} == study.results, "files that differ from each other")])


def setup_claims(s, combined, context):
    preset, tokens, seconds = context.preset("of_88m"), s.tokens, round(combined["elapsed_s"])
    batch, length = tokens[1] / preset["probe_every"] / preset["seq_len"], preset["seq_len"]
    yield ("The causal study (study.md) on the preset `88m` (# layers, d_k #), seed #: # M tokens a condition in updates of # × #, "
           "a probe [every] # M tokens, # min # s for the # conditions.",
           [s.layers, s.d_k, context.seed(), tokens[-1] / 1e6, batch, length,
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
    yield "verdict: [both]", [(s.verdict(-1) == combined["verdict"]["conclusion"] == "both", s.verdict(-1))]
    loss = {letter: result["val_loss"][-1] for letter, result in s.results.items()}
    yield ("The validation losses at the end lie [within #] of [each] other, A's the [lowest].",
           [(True,), max(loss.values()) - min(loss.values()), (True,), (loss["A"] == min(loss.values()), loss)])


def probe_claims(s):
    early, pr = s.tokens.index(3932160), s.pr
    fall = {letter: pr[letter][0] - pr[letter][-1] for letter in FOLDERS}
    yield "Key PR starts at # (A, B) and # (C) of #.", [pr["A"][0], pr["C"][0], s.d_k]
    yield ("At # M tokens it is # (A), # (B) and # (C), [most of the fall in each].",
           [s.tokens[early] / 1e6, *(pr[letter][early] for letter in FOLDERS),
            (all(pr[letter][0] - pr[letter][early] > fall[letter] / 2 for letter in FOLDERS), fall)])
    yield ("From there A [falls] to #, B [rises] to #, and C [stays between] # and #.",
           [(pr["A"][-1] < pr["A"][early], pr["A"]), pr["A"][-1], (pr["B"][-1] > pr["B"][early], pr["B"]), pr["B"][-1],
            (True,), *spread(pr["C"][early:])])
    yield "From start to end the [fall] is # (A), # (B) and # (C).", [(min(fall.values()) > 0, fall), *fall.values()]
    yield ("C has [no] QK-Norm, and its [fall] is # % of A's: [most of the fall needs no] QK-Norm.",
           [(s.results["C"]["gamma_cv"] == {}, "gains in C"), (fall["C"] > 0, fall), 100 * fall["C"] / fall["A"],
            (fall["C"] > max(fall.values()) / 2, fall)])


def verdict_claims(s, recorded):
    turn = next(probe for probe, gamma in enumerate(s.gamma) if gamma < 0)
    stretches, millions = s.stretches(), [count / 1e6 for count in s.tokens]
    yield ("The γ effect (A − B) is [positive] up to # M tokens, [negative] from # M on, and ends at #.",
           [(min(s.gamma[1:turn]) > 0, s.gamma), millions[turn - 1], (max(s.gamma[turn:]) < 0, s.gamma), millions[turn], s.gamma[-1]])
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
    both = [[s.gamma[probe] for probe in probes] for verdict, probes in stretches if verdict == "both"]
    yield ('It is ["both"] in # stretches, with a [positive] γ effect in the [first] and a [negative] one in the [last].',
           [(bool(both), stretches), len(both), (min(both[0]) > 0, both[0]), (True,), (max(both[-1]) < 0, both[-1]), (True,)])


def norm_claims(s):
    norm, half = s.layer_norm, s.layers // 2
    rises = next(layer for layer, effect in enumerate(norm) if effect <= 0)
    falls = 1 + max(layer for layer, effect in enumerate(norm) if effect >= 0)
    middle = norm[rises:falls]
    yield "Effects at the [last] probe: 3_per_layer, 4_causal_decomposition.", [(True,)]
    yield ("Normalisation [alone] (B − C) [raises key PR in each] of layers # to #, by # to #, and [lowers it in each] of layers # to #, "
           "by # to #.",
           [(True,), (min(norm[:rises]) > 0, norm), 0, rises - 1, *spread(norm[:rises]),
            (max(norm[falls:]) < 0, norm), falls, s.layers - 1, *spread([-effect for effect in norm[falls:]])])
    yield "Layers # to # have [both signs].", [rises, falls - 1, (min(middle) < 0 < max(middle), middle)]
    yield ("# % of Σ|B − C| lies in the [upper half] of the layers (# to #).",
           [100 * sum(map(abs, norm[half:])) / sum(map(abs, norm)), (2 * half == s.layers, s.layers), half, s.layers - 1])
    yield ("The norm effect of the model is a mean in which these [signs partly cancel].",
           [(0 < abs(sum(norm)) < sum(map(abs, norm)), sum(norm), sum(map(abs, norm)))])


def gain_claims(s):
    gain, norm, half, first = s.layer_gamma, s.layer_norm, s.layers // 2, range(10)
    share = sum(map(abs, gain[half:])) / sum(map(abs, gain))
    takes = [layer for layer in first if norm[layer] > 0 and -gain[layer] >= norm[layer]]
    most = sorted(sorted(range(s.layers), key=lambda layer: gain[layer])[:2])
    widest = sorted(sorted(range(s.layers), key=lambda layer: -s.gamma_cv[layer])[:2])
    yield ("The learned gain (A − B) acts [more in the lower half]: # % of Σ|A − B| lies in the [upper half].",
           [(share < 0.5, share), 100 * share, (True,)])
    yield ("It [lowers] key PR in # of the [first] # layers.",
           [(True,), sum(gain[layer] < 0 for layer in first), (True,), len(first)])
    yield ("In # of these # (#, # and #) it takes [as much as normalisation gave, or more].",
           [len(takes), len(first), *takes, (min(norm[:len(first)]) > 0, norm)])
    yield ("It takes [most] in layers # and # (# and #), where the variation of the gain is [largest too] (5_gamma_cv: # and #).",
           [(True,), *most, *(gain[layer] for layer in most), (widest == most, widest, most), *(s.gamma_cv[layer] for layer in widest)])


def published_claims(s, context):
    def published():
        return Study(context.shared / "reference/qk_norm_50m_study")

    ours, theirs = context.preset("of_88m"), context.preset("of_1_5b")
    update = s.tokens[1] / ours["probe_every"]
    published_update = PUBLISHED_BATCH * PUBLISHED_ACCUMULATION * theirs["seq_len"]
    yield ("The published run (a model as the preset `1.5b`: # layers, d_k #) ends with [both effects of the opposite sign] after "
           "[as many] tokens: γ effect #, norm effect #.",
           lambda: [published().layers, published().d_k,
                    (published().gamma[-1] * s.gamma[-1] < 0 and published().norm[-1] * s.norm[-1] < 0, s.gamma[-1], s.norm[-1]),
                    (published().tokens[-1] == s.tokens[-1], published().tokens[-1]), published().gamma[-1], published().norm[-1]])
    yield ("By the [same] rule its verdict [changes] # times over # probes.",
           lambda: [(True,), (True,), len(published().stretches()) - 1, len(published().tokens)])
    # The probes of the published run, one for every 120 forward steps, fit its batch; its updates divide them.
    yield ("The published script makes updates of # × # × # = # tokens, # times the # of this run: # updates against #.",
           lambda: [published().tokens[1] / theirs["probe_every"] / theirs["seq_len"], PUBLISHED_ACCUMULATION, theirs["seq_len"],
                    published_update, published_update / update, update, published().tokens[-1] / published_update,
                    s.tokens[-1] / update])
    yield ("Its learning rates are [half of those here]: # against # (Muon), # against # (AdamW).",
           [(all(2 * theirs[rate] == ours[rate] for rate in ("muon_lr", "adamw_lr")), theirs, ours),
            theirs["muon_lr"], ours["muon_lr"], theirs["adamw_lr"], ours["adamw_lr"]])


def readme_claims(context):
    study, combined = Study(HERE), json.loads((HERE / "combined.json").read_text())
    yield ("# minutes on one H200 train an # M parameter model # times on # M tokens of English text "
           "(docs/studies/qk_norm_88m; one seed, which describes and does [not] test):",
           [round(combined["elapsed_s"] / 60), context.millions_of_parameters("of_88m"), len(study.results), study.tokens[-1] / 1e6,
            ("seeds" not in combined, "several seeds")])
    yield "Key participation ratio of the # conditions over training", [len(study.results)]
