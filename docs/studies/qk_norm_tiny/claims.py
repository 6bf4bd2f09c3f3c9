"""What README.md of this folder says, and how the results beside it give it. scripts/check-studies explains the form.

The statistics are those of docs/studies/paired.py.
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from paired import CONDITIONS, MEASURES, TAU, Sample, Study, at, conclusion, interval, output_claims  # noqa: E402

TRAIN_OPTIONS = HERE.parents[2] / "src/settings/train_options.h"
LARGE = HERE.parent / "qk_norm_88m"
LARGE_UPDATES, LARGE_RATE = 3000, 0.006  # of the command and the preset of that page

RECORDED = {
    "It ran on a CPU on 2026-11-18.",
    "The text, its held-out part, τ = 1, the conditions and the number of seeds were fixed before the runs.",
}
READING = {
    "tiny on English bytes: all controls",
    "What it says",
    "What the control C′ is worth here",
    "Other measures of rank",
    "What it does not show",
    "measure",
    "A − B",
    "B − C",
    "A − C",
    "verdict",
    '"Protects" stands for a higher key PR, "worsens" for a lower one, and "does nothing" for equivalent at τ.',
    "The match holds at the start alone.",
    "D: different, E: equivalent, U: undecided, by the rule of the study within each measure.",
    "So this page and that one do not estimate one effect.",
    "`seed_N/TAG/results.json` hold the results; `headscope study --analyze` on this folder gives the verdict and draws the figures again.",
}
FIGURES = {
    "8_score_spread.png": ("2bf18d051ee77efcbdecf66317a77093f661d8776783fb0f0f8ee5bb5e12c2be", "Spread of the scores"),
}


def claims(context):
    study = Study(HERE, tuple(CONDITIONS))
    effects = study.effects(at("mean_pr"))
    yield from setup_claims(study)
    yield from output_claims(study, effects)
    yield from gain_claims(study, effects)
    yield from norm_claims(study, effects)
    yield from score_claims(study)
    yield from matched_claims(effects)
    yield from measure_claims(study)
    yield from limit_claims(study, effects)


def readme_claims(context):
    return []


def setup_claims(s):
    seeds, tokens = s.seeds, s.tokens
    yield ("The [causal] study (study.md) with [all] controls on the preset `tiny` (# layers, d_k #), which reads the bytes of an English text.",
           [(True,), (s.tags == set(CONDITIONS.values()), s.tags), s.layers, s.d_k])
    yield ("# seeds, # to #; # tokens a run in # updates, a probe [every] # tokens.",
           [len(seeds), seeds[0], seeds[-1], tokens[-1], s.updates[-1], (all(b - a == tokens[1] for a, b in zip(tokens, tokens[1:])), tokens), tokens[1]])
    yield ("headscope study --preset tiny --controls --data train.jsonl.zst --set data.validation=val.jsonl.zst --seeds #,#,#,#,#,#,#,#,#,#", seeds)


def left_by_decay(rate, updates):
    decay = float(re.search(r"double weight_decay = ([\d.]+);", TRAIN_OPTIONS.read_text())[1])
    return (1 - rate * decay) ** updates


def gain_claims(s, effects):
    of_gain = ("A − B", "A₀ − B", "A − A₀", "A − A₁", "S − B", "A₀ − S")
    equivalent = [pair for pair in of_gain if effects[pair].outcome == "E"]
    sure = {pair: effects[pair].p_holm for pair in of_gain if effects[pair].p_holm < 0.05}
    shape, loss = effects["A₀ − S"], Sample(s.differences("A₀ − S", at("val_loss")))
    to_one = Sample(s.differences("A₁ − A₀", at("mean_pr")))
    yield ("# of the # effects of γ are [equivalent to none] at τ = #; A₀ − S is undecided.",
           [len(equivalent), len(of_gain), (shape.outcome == "U", shape.outcome), TAU])
    yield ("# are [not] zero after Holm's adjustment: A − B (p = #), A − A₀ (#) and A₀ − S ([below] #).",
           [len(sure), (set(sure) == {"A − B", "A − A₀", "A₀ − S"}, sure), sure["A − B"], sure["A − A₀"], (shape.p_holm < 0.001, shape.p_holm), 0.001])
    yield ("Decay leaves # of a gain after # updates, against # in the study of 88m: there is [little] of it to see here.",
           [left_by_decay(s.rate, s.updates[-1]), s.updates[-1], left_by_decay(LARGE_RATE, LARGE_UPDATES), (True,)])
    yield ("Decay towards # is as [no] decay: A₁ − A₀ is # (# to #).", [1, (to_one.p_equivalence < 0.001, to_one.p_equivalence), *interval(to_one)])
    yield ("A gain for [each] dimension gives a [lower] key PR [than] one factor per layer: A₀ − S is # (# to #).",
           [(True,), (shape.high < 0, shape.high), (True,), *interval(shape)])
    yield "Its loss is [lower, too], by # (# to #).", [(loss.high < 0, loss.high), -loss.mean, -loss.high, -loss.low]


def norm_claims(s, effects):
    norm, course = effects["B − C"], s.over_time("B − C")
    top, without = course.index(max(course)), [s.without_seed(index)["B − C"].p_holm for index in range(len(s.seeds))]
    kept = s.effects(lambda run: run["mean_pr"][-1] - run["mean_pr"][0])
    yield ("At the [last] probe B − C is #: # of # seeds are [below] #, and p is # or [more] without [any] one of # seeds.",
           [(True,), norm.mean, sum(value < 0 for value in norm.values), len(s.seeds), (True,), 0, 0.05, (True,), (True,),
            sum(p >= 0.05 for p in without)])
    yield ("It was # at # tokens and has [fallen at every] probe since: [no plateau].",
           [course[top], s.tokens[top], (all(b < a for a, b in zip(course[top:], course[top + 1:])), course), (True,)])
    yield ("C starts [lower], at # against #; counted as [collapse] the [difference] is # (# to #), undecided, and the verdict would be inconclusive.",
           [(True,), s.mean("C", at("mean_pr", 0)), s.mean("B", at("mean_pr", 0)), (True,),
            (kept["B − C"].outcome == "U" and conclusion(kept) == "inconclusive", conclusion(kept)), *interval(kept["B − C"])])
    yield ("[Differences] of the validation loss are # (# to #) for A − B, # (# to #) for B − C and # (# to #) for A − A₀.",
           [(True,), *(number for pair in ("A − B", "B − C", "A − A₀") for number in interval(Sample(s.differences(pair, at("val_loss")))))])


def score_claims(s):
    start, end = ({letter: s.mean(letter, at("score_std", probe)) for letter in CONDITIONS} for probe in (0, -1))
    others = [end[letter] for letter in ("A", "B", "A₀", "A₁", "S")]
    same = all(abs(start[letter] / start["A"] - 1) < 0.05 for letter in start if letter != "C")
    yield ("The scores of a query spread by # in C′ and in the conditions with QK-Norm before training; at the end by # in C′, # in C and # to # in "
           "the others.", [start["C′"] if same else None, end["C′"], end["C"], min(others), max(others)])
    yield ("Its validation loss ends # [above] that of C.",
           [Sample(s.differences("C′ − C", at("val_loss"))).mean, (min(s.differences("C′ − C", at("val_loss"))) > 0,)])


def matched_claims(effects):
    matched, temperature = effects["B − C′"], effects["C′ − C"]
    yield ("So C′ is another regime, and [neither] C′ − C (#, undecided) [nor] B − C′ (#) says what temperature does.",
           [(temperature.outcome == "U", temperature.outcome), temperature.mean, (True,), matched.mean])


def measure_claims(s):
    found = {measure: s.measured(measure) for measure in MEASURES}
    for measure, effects in found.items():
        yield f"`{measure}` (τ = #)", [s.tau(measure)]
        for pair in ("A − B", "B − C", "A − C"):
            yield f"# {effects[pair].outcome}", [effects[pair].mean]
        yield f"[{conclusion(effects)}]", [(True,)]
    rotated, small = {name: found[name]["B − C"].outcome for name in ("k_pr_rotated", "qk_pr_rotated")}, found["qk_pr_rotated"]["B − C"]
    verdicts = {conclusion(effects) for effects in found.values()}
    yield "The verdict [depends] on the measure.", [(len(verdicts) > 1, verdicts)]
    yield ("After RoPE B − C is [equivalent to none] at the τ of the measure; in `qk_pr_rotated` it is [small and not] zero, # (# to #).",
           [(set(rotated.values()) == {"E"}, rotated), (small.p_holm < 0.05, small.p_holm), *interval(small)])


def limit_claims(s, effects):
    large = Study(LARGE, ("A", "B", "C"))
    start, large_start = (study.mean("A", at("mean_pr", 0)) for study in (s, large))
    strict = s.effects(at("mean_pr"), 0.3)
    total = large.effects(at("mean_pr"))["A − C"]
    yield "This is a model of # layers after # updates on bytes.", [s.layers, s.updates[-1]]
    yield ("Key PR starts at # of the # of Gaussian keys, so τ = # is a [larger] part of it [than] in the study of 88m, where it starts at #.",
           [start, s.all_runs[0]["gaussian"]["mean_pr"], TAU, (start < large_start, start, large_start), (True,), large_start])
    errors = [run["jackknife_error"]["mean_pr"] for run in s.all_runs]
    yield ("At τ = # A − B would be [different], and the verdict [inconclusive].",
           [0.3, (strict["A − B"].outcome == "D", strict["A − B"].outcome), (conclusion(strict) == "inconclusive", conclusion(strict))])
    yield "A − C is undecided here and [negative] there.", [(effects["A − C"].outcome == "U" and total.high < 0, total.high)]
    yield ("By the jackknife over the sequences of the probe the standard error of a run's key PR is # to #, which the intervals do [not] contain.",
           [min(errors), max(errors), (True,)])
