"""What README.md of this folder says, and how the results beside it and those of ../qk_norm_88m give it. scripts/check-studies explains the form.

The statistics are those of docs/studies/paired.py.
"""

import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAIN = HERE.parent / "qk_norm_88m"
sys.path.insert(0, str(HERE.parent))

from paired import CONDITIONS, MEASURES, TAU, Sample, Study, at, conclusion, interval, output_claims, published  # noqa: E402

LENGTH = 2048  # tokens of a sequence
DOSES = {"A₀": 0, "D₁": 0.05, "D₂": 0.1, "A": 0.2}  # of decay of γ
WITH_DOSES = CONDITIONS | {"D₁": "QK_decay_005", "D₂": "QK_decay_010"}
PUBLISHED_PRODUCT = 750 * 0.003  # updates × learning rate of AdamW: ../qk_norm_88m

RECORDED = {
    "A₁: γ decays towards 1.",
    "Sets, conditions and the order of the seeds were fixed before that study; these runs were made when its results were known, on the same day, with "
    "newer versions of the program, as many seeds as the time on the machine had room for.",
}
READING = {
    "88m on English text: other controls, doses of decay, fewer and larger updates",
    "Controls",
    "Doses of decay",
    "Fewer and larger updates",
    "What it does not show",
    "S: one learned factor per layer for queries and one for keys, without decay.",
    "C′: no QK-Norm, and a fixed factor that gives the scores of the untrained model the spread that QK-Norm gives them.",
    '"Protects" stands for a higher key PR, "worsens" for a lower one, and "does nothing" for equivalent at τ.',
    "decay of γ", "left of a gain by decay alone", "key PR",
    *(f"`{measure}`" for measure in MEASURES[1:]),
    "γ CV of the keys", "mean size of the keys' gains", "spread of the scores", "validation loss",
    "A factor does not change the rank of the keys by itself; it acts through what the other weights learn.",
    "`controls`, `doses` and `batch_32` hold the results; the commands above give the tables and draw the figures again.",
}
FIGURES = {
    "controls_key_pr.png": ("50648a4cd03ba4a12e7bdc05cce2d609490cbce3622d107da97ed9a767a55335", "Key PR over training with all controls"),
    "batch_32_key_pr.png": ("a177d0d9c97e212aafba7efb4986b4a73703ec94008a36a92885b3420012ba09", "Key PR over training with 32 × 2048 tokens an update"),
}


def claims(context):
    controls = Study([MAIN, HERE / "controls"], tuple(CONDITIONS))
    seeds = sorted({int(path.name.removeprefix("seed_")) for path in (HERE / "doses").iterdir()})
    doses = Study([MAIN, HERE / "doses"], tuple(DOSES), WITH_DOSES, seeds)
    few = Study(HERE / "batch_32", ("A", "B", "C", "A₀"))
    yield from setup_claims(controls, few)
    yield from output_claims(controls, controls.effects(at("mean_pr")))
    yield from target_claims(controls)
    yield from scale_claims(controls)
    yield from matched_claims(controls)
    yield from dose_claims(doses)
    yield from output_claims(few, few.effects(at("mean_pr")))
    yield from few_claims(few, Study(MAIN, ("A", "B", "C", "A₀")), context)
    yield from limit_claims(controls, few)


def readme_claims(context):
    return []


def setup_claims(s, few):
    seeds = sorted(s.by_seed["S"])
    yield ("The study of 88m leaves open what [else] decay could do, [how much of it is needed], and [why its signs are not those] of the published run.", [(True,), (True,), (True,)])
    yield ("# sets of runs with its text, model, vocabulary and machine: controls (# updates of # × # tokens, as there), doses of decay (the [same]), and "
           "# updates of # × # tokens.",
           [3, s.updates[-1], batch(s), LENGTH, (True,), few.updates[-1], batch(few), LENGTH])
    yield ("Seeds # to #, the [first] # of its #.", [seeds[0], seeds[-1], (seeds == s.seeds[:len(seeds)], s.seeds), len(seeds), len(s.seeds)])
    yield ("So [all] of this is exploratory: # seeds give a test # degrees of freedom, and p is adjusted [within a set only].",
           [(True,), len(seeds), len(seeds) - 1, (True,)])
    yield "headscope study --analyze docs/studies/qk_norm_88m docs/studies/qk_norm_88m_controls/controls", []
    yield "headscope study --analyze docs/studies/qk_norm_88m_controls/batch_32", []


def batch(s):
    return s.tokens[-1] / s.updates[-1] / LENGTH


def difference(s, pair, measure="mean_pr"):
    return Sample(s.differences(pair, at(measure)))


def target_claims(s):
    target, none, fixed, loss = (difference(s, "A − A₁"), difference(s, "A₁ − A₀"), difference(s, "A₁ − B"), difference(s, "A₁ − A₀", "val_loss"))
    yield ("Where decay pulls γ towards # instead of #, key PR ends [higher]: A − A₁ is # (# to #), # to # in the seeds.",
           [1, 0, (target.high < 0, target.high), *interval(target), min(target.values), max(target.values)])
    yield ("A₁ is [above] A₀, which has [no] decay, by # (# to #), and [above] B, whose γ is fixed, by # (# to #).",
           [(none.low > 0, none.low), (True,), *interval(none), (fixed.low > 0, fixed.low), *interval(fixed)])
    yield ("So it is [not] decay as such that [lowers] key PR in A, but decay towards #.", [(target.high < 0 < none.low, target.high, none.low), (True,), 0])
    yield "The validation loss of A₁ is that of A₀ + # (# to #).", interval(loss)


def scale_claims(s):
    scale, shape, learning = difference(s, "S − B"), difference(s, "A₀ − S"), learning_in_common(s)
    yield "One learned factor per layer [raises] key PR: S − B is # (# to #).", [(scale.low > 0, scale.low), *interval(scale)]
    yield ("A gain for [each] dimension ends [lower] [than] one factor: A₀ − S is # (# to #), undecided after Holm's adjustment (p = #).",
           [(True,), (shape.high < 0, shape.high), (s.effects(at("mean_pr"))["A₀ − S"].outcome == "U",), *interval(shape),
            s.effects(at("mean_pr"))["A₀ − S"].p_holm])
    yield ("Their sum is A₀ − B, # in these seeds: a scale that [raises] key PR and a shape that [lowers] it [nearly cancel] in the # of the study of 88m.",
           [learning, (True,), (True,), (abs(learning) < min(abs(scale.mean), abs(shape.mean)) / 2, learning), difference(s, "A₀ − B").mean])


def learning_in_common(s):
    return statistics.fmean(s.by_seed["A₀"][seed]["mean_pr"][-1] - s.by_seed["B"][seed]["mean_pr"][-1] for seed in s.by_seed["S"])


def matched_claims(s):
    start, end = ({letter: s.mean(letter, at("score_std", probe)) for letter in ("B", "C", "C′")} for probe in (0, -1))
    loss, spread = difference(s, "C′ − C", "val_loss"), [run["score_std"][-1] for run in s.runs["C′"]]
    temperature, matched = difference(s, "C′ − C"), difference(s, "B − C′")
    yield ("The scores of C′ spread by # before training, those of B by #; at the end by # (# to # over seeds), #, and # in C.",
           [start["C′"], start["B"], end["C′"], min(spread), max(spread), end["B"], end["C"]])
    yield "Its loss ends # (# to #) [above] that of C.", [*interval(loss), (loss.low > 0, loss.low)]
    yield ("So C′ is another regime here, [too], and [neither] C′ − C (#) [nor] B − C′ (#) says what temperature does.",
           [(True,), (True,), temperature.mean, (True,), matched.mean])


def mean_size(run):
    return statistics.fmean(abs(gain) for layer in run["gamma_final"].values() for gain in layer)


def variation(run):
    return statistics.fmean(layer[-1] for layer in run["gamma_cv"].values())


def dose_claims(s):
    for letter, dose in DOSES.items():
        yield f"# ({letter})", [dose]
    rows = [at(measure) for measure in MEASURES] + [variation, mean_size, at("score_std"), at("val_loss")]
    for letter, dose in DOSES.items():
        yield "#", [(1 - s.rate * dose) ** s.updates[-1]]
    for value in rows:
        for letter in DOSES:
            yield "#", [s.mean(letter, value)]
    small, middle, large, step = (difference(s, pair) for pair in ("D₁ − A₀", "D₂ − A₀", "A − A₀", "A − D₂"))
    yield ("Against [no] decay, key PR ends # (# to #) [higher] at #, # (# to #) [lower] at #, and # (# to #) [lower] at #.",
           [(True,), *interval(small), (small.mean > 0,), 0.05, *lowering(middle), (True,), 0.1, *lowering(large), (True,), 0.2])
    yield ("So the effect is [not] in proportion to the dose: # % of it arises [between] # and #, A − D₂ = # (# to #).",
           [(step.mean / large.mean > 0.6, step.mean / large.mean), 100 * step.mean / large.mean, (True,), 0.1, 0.2, *interval(step)])
    centred, measures = [s.mean(letter, at("k_pr_centred")) for letter in DOSES], ("k_pr_centred", "k_pr_before_gain", "qk_pr", "qk_pr_rotated")
    tops = {measure: max(DOSES, key=lambda letter: s.mean(letter, at(measure))) for measure in measures}
    sizes, spreads, uneven = ([s.mean(letter, value) for letter in DOSES] for value in (mean_size, at("score_std"), variation))
    yield ("Without the common offset of the keys it [falls at each] dose (`k_pr_centred`), and in `qk_pr` and `qk_pr_rotated` it is [highest] at #.",
           [(centred == sorted(centred, reverse=True), centred), (tops["qk_pr"] == tops["qk_pr_rotated"] == "D₁", tops), 0.05])
    yield ("The gains become [smaller] and [less] even with [each] dose, and the scores spread [less].",
           [(sizes == sorted(sizes, reverse=True), sizes), (uneven == sorted(uneven), uneven), (True,), (spreads == sorted(spreads, reverse=True), spreads)])
    loss = [s.mean(letter, at("val_loss")) for letter in DOSES]
    yield "The validation losses lie [within] # of [each] other.", [(True,), max(loss) - min(loss), (True,)]


def lowering(sample):
    return [-sample.mean, -sample.high, -sample.low]


def at_probe(s, pair, probe):
    return statistics.fmean(s.differences(pair, at("mean_pr", probe)))


def few_claims(s, many, context):
    effects, long = s.effects(at("mean_pr")), many.effects(at("mean_pr"))
    pairs = ("A − B", "B − C", "A − C")
    update = max(set(s.updates) & set(many.updates))
    near = min(range(len(many.tokens)), key=lambda probe: abs(many.tokens[probe] - s.tokens[-1]))
    theirs = lambda: published_effects(context)  # noqa: E731
    here, there = ([at_probe(study, pair, study.updates.index(update)) for pair in pairs] for study in (s, many))
    equal_tokens = [at_probe(many, pair, near) for pair in pairs]
    ends = [effects[pair].mean for pair in pairs]
    yield ("Here training γ [raises] key PR and normalisation [lowers] it: the [signs] are the [opposite] of those after # updates of # × # tokens.",
           [(ends[0] > 0,), (ends[1] < 0,), (True,), (all(long[pair].mean * end < 0 for pair, end in zip(pairs, ends)),), many.updates[-1], batch(many), LENGTH])
    yield ("They are [those of the published run], # (A − B), # (B − C) and # (A − C), whose updates × learning rate of AdamW is #; it is # here and # in the "
           "study of 88m.",
           lambda: [(all(end * value > 0 for end, value in zip(ends, theirs())), theirs()), *theirs(), PUBLISHED_PRODUCT, s.updates[-1] * s.rate,
                    many.updates[-1] * many.rate])
    yield ("After # updates A − B, B − C and A − C are #, # and # here, and #, # and # in the study of 88m with a [quarter] of the tokens: the [same signs].",
           [update, *here, *there, (batch(s) == 4 * batch(many),), (all(a * b > 0 for a, b in zip(here, there)), here, there)])
    yield ("After [about as many] tokens, # M, they are #, # and # there.", [(True,), many.tokens[near] / 1e6, *equal_tokens])
    yield ("So in this model the [signs] of A − B and B − C go with the number of updates and [not] with the number of tokens; batch and learning are [not] "
           "separated further.",
           [(equal_tokens[0] * here[0] < 0 < there[0] * here[0] and equal_tokens[1] * here[1] < 0 < there[1] * here[1],), (True,), (True,)])
    learning, decay = effects["A₀ − B"], effects["A − A₀"]
    yield ("Learning γ without decay [raises] key PR by # (# to #), and decay [lowers] it by # (# to #).",
           [(learning.low > 0, learning.low), *interval(learning), (decay.high < 0, decay.high), *lowering(decay)])
    yield ("The study of 88m ends at [no] effect of learning and # of decay: the longer it trains, the [more] of the [difference] is decay.",
           [(long["A₀ − B"].outcome == "E",), long["A − A₀"].mean, (long["A − A₀"].high < decay.low,), (True,)])


def published_effects(context):
    final = {letter: published(context, CONDITIONS[letter])["mean_pr"][-1] for letter in "ABC"}
    return final["A"] - final["B"], final["B"] - final["C"], final["A"] - final["C"]


def limit_claims(s, few):
    errors = [run["jackknife_error"]["mean_pr"] for letter in ("A₁", "S", "C′") for run in s.runs[letter]] + [
        run["jackknife_error"]["mean_pr"] for run in few.all_runs]
    yield ("By the jackknife over the blocks of the probe the standard error of a run's key PR is # to #, which the intervals do [not] contain.",
           [min(errors), max(errors), (True,)])
    yield ("# seeds find an effect of # [only] where the [differences] hardly scatter; an undecided pair says [little].",
           [len(few.seeds), TAU, (True,), (True,), (True,)])
    yield ("In A₁ and S the scores spread by # and # at the end, against # in B: their effects on key PR contain the temperature, as those of [all] conditions.",
           [s.mean("A₁", at("score_std")), s.mean("S", at("score_std")), s.mean("B", at("score_std")), (True,)])
    yield ("Of decay towards # one dose was run, and of # updates one learning rate.", [1, few.updates[-1]])
