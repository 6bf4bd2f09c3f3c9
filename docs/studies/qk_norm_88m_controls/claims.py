"""What README.md of this folder says, and how the results beside it and those of ../qk_norm_88m give it. scripts/check-studies explains the form.

The statistics are those of docs/studies/paired.py.
"""

import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAIN = HERE.parent / "qk_norm_88m"
sys.path.insert(0, str(HERE.parent))

from paired import (CONDITIONS, MEASURES, Sample, Study, at, conclusion, holm, in_layers, interval, output_claims,  # noqa: E402
                    published)

LENGTH = 2048  # tokens of a sequence
DOSES = {"A₀": 0, "D₁": 0.05, "D₂": 0.1, "A": 0.2}  # of decay of γ
WITH_DOSES = CONDITIONS | {"D₁": "QK_decay_005", "D₂": "QK_decay_010"}
THREE = ("A − B", "B − C", "A − C")
PUBLISHED_UPDATES, PUBLISHED_RATE = 750, 0.003  # ../qk_norm_88m

RECORDED = {
    "A₁: γ decays towards 1.",
    "Layers 0 to 2 were set apart in the study of 88m, after looking.",
    "So only differences within a set are compared, and losses of the two sets are not.",
    "Sets, conditions and the order of the seeds were fixed before that study; these runs were made when its results were known, on the same day, with "
    "newer versions of the program, as many seeds as the time on the machine had room for.",
}
READING = {
    "88m on English text: other controls, doses of decay, fewer and larger updates",
    "Controls",
    "Doses of decay",
    "Fewer and larger updates",
    "What it does not show",
    "So all of this is exploratory.",
    "S: one learned factor per layer for queries and one for keys, without decay.",
    "C′: no QK-Norm, and a fixed factor that gives the scores of the untrained model the spread that QK-Norm gives them.",
    '"Protects" stands for a higher key PR, "worsens" for a lower one, and "does nothing" for equivalent at τ.',
    "decay of γ", "left of a gain by decay alone", "key PR",
    *(f"`{measure}`" for measure in MEASURES[1:]),
    "γ CV of the keys", "mean size of the keys' gains", "spread of the scores", "validation loss",
    "measure", "A − B", "B − C", "A − C", "verdict",
    "Both pairs were added after the fact.",
    "A factor does not change the rank of the keys by itself; it acts through what the other weights learn.",
    "That a scale raises and a shape lowers key PR is one reading of this.",
    "How much decay it takes depends on the measure.",
    "D: different, E: equivalent, U: undecided, by the rule of the study within each measure.",
    "Whether they turn later with this batch was not run.",
    "Batch, learning rate and passes over the text are not separated.",
    "`controls`, `doses` and `batch_32` hold the results; the commands above give the tables and draw the figures again.",
}
FIGURES = {
    "controls_key_pr.png": ("50648a4cd03ba4a12e7bdc05cce2d609490cbce3622d107da97ed9a767a55335", "Key PR over training with all controls"),
    "batch_32_key_pr.png": ("a177d0d9c97e212aafba7efb4986b4a73703ec94008a36a92885b3420012ba09", "Key PR over training with 32 × 2048 tokens an update"),
}


def claims(context):
    controls = Study([MAIN, HERE / "controls"], tuple(CONDITIONS))
    seeds = sorted(controls.by_seed["S"])
    doses = Study([MAIN, HERE / "doses"], tuple(DOSES), WITH_DOSES, seeds)
    few, many = Study(HERE / "batch_32", ("A", "B", "C", "A₀")), Study(MAIN, ("A", "B", "C", "A₀"))
    few.blocks = 32
    yield from setup_claims(controls, few)
    yield from multiple_claims(controls, doses, few)
    yield from output_claims(controls, controls.effects(at("mean_pr")))
    yield from mixed_claims(controls, seeds)
    yield from target_claims(controls)
    yield from scale_claims(controls)
    yield from matched_claims(controls)
    yield from dose_claims(doses)
    yield from output_claims(few, few.effects(at("mean_pr")))
    yield from probe_claims(few, many)
    yield from sign_claims(few, many, context)
    yield from measure_claims(few, many)
    yield from decay_claims(few, many)
    yield from limit_claims(controls, doses, few)


def readme_claims(context):
    return []


def batch(s):
    return s.tokens[-1] / s.updates[-1] / LENGTH


def difference(s, pair, measure="mean_pr"):
    return Sample(s.differences(pair, at(measure)))


def after(s, pair, update, measure="mean_pr"):
    return Sample(s.differences(pair, at(measure, s.updates.index(update))))


def lowering(sample):
    return [-sample.mean, -sample.high, -sample.low]


def mean_size(run):
    return statistics.fmean(abs(gain) for layer in run["gamma_final"].values() for gain in layer)


def variation(run):
    return statistics.fmean(layer[-1] for layer in run["gamma_cv"].values())


def setup_claims(s, few):
    seeds = sorted(s.by_seed["S"])
    yield ("The study of 88m leaves open what [else] decay could do, [how much of it is needed], and [why its signs are not those] of the published run.",
           [(True,), (True,), (True,)])
    yield ("# sets of runs with its text, model, vocabulary and machine: controls (# updates of # × # tokens, as there), doses of decay (the [same]), and "
           "# updates of # × # tokens.", [3, s.updates[-1], batch(s), LENGTH, (True,), few.updates[-1], batch(few), LENGTH])
    yield "Seeds # to #, the [first] # of its #.", [seeds[0], seeds[-1], (seeds == s.seeds[:len(seeds)], s.seeds), len(seeds), len(s.seeds)]
    yield ("With # seeds a test has # degrees of freedom and a [sign]-flip test a p of [at least] #: [each] p here rests on normal [differences].",
           [len(seeds), len(seeds) - 1, (True,), (True,), 2 / 2 ** len(seeds), (True,), (True,)])
    yield "headscope study --analyze docs/studies/qk_norm_88m docs/studies/qk_norm_88m_controls/controls", []
    yield "headscope study --analyze docs/studies/qk_norm_88m_controls/batch_32", []


def multiple_claims(s, doses, few):
    own = {pair: difference(s, pair).p for pair in ("A − A₁", "S − B", "A₀ − S", "C′ − C", "B − C′", "A₁ − A₀", "A₁ − B")}
    own |= {pair: difference(doses, pair).p for pair in ("D₁ − A₀", "D₂ − A₀", "A − D₂")}
    own |= {f"{pair} here": difference(few, pair).p for pair in (*THREE, "A₀ − B", "A − A₀")}
    sure = {pair for pair, p in holm(own).items() if p < 0.05}
    yield ("Holm's adjustment is [within] the families of a set; over [all] # tests of this page that have # seeds it leaves # with p [below] #: A − A₁, S − B and "
           "A₁ − B, and A − B, B − C and A₀ − B of the [last] set.",
           [(True,), (True,), len(own), len(few.seeds), len(sure),
            (sure == {"A − A₁", "S − B", "A₁ − B", "A − B here", "B − C here", "A₀ − B here"}, sure), 0.05, (True,)])


def mixed_claims(s, seeds):
    yield ("Effects with A₁, S or C′ have # pairs, the others the # of the study of 88m, whose verdict this is; it rests on A − C, which is fragile.",
           [len(seeds), len(s.seeds)])


def target_claims(s):
    target, none, fixed = difference(s, "A − A₁"), difference(s, "A₁ − A₀"), difference(s, "A₁ − B")
    decided = {measure: s.measured(measure)["A − A₁"] for measure in MEASURES}
    others = {measure for measure, effect in decided.items() if effect.outcome != "D"}
    family = {pair: difference(s, pair).p for pair in (*s.families[1].values(), "A₁ − A₀", "A₁ − B")}
    uneven, size = ({letter: s.mean(letter, value) for letter in ("A", "A₀", "A₁")} for value in (variation, mean_size))
    yield ("Where decay pulls γ towards # instead of #, key PR ends [higher]: A − A₁ is # (# to #), and [different in every measure but] `qk_pr` (#, p = #).",
           [1, 0, (target.high < 0, target.high), *interval(target), (others == {"qk_pr"}, others), decided["qk_pr"].mean, decided["qk_pr"].p_holm])
    yield ("A₁ is [above] A₀, which has [no] decay, by # (# to #), and [above] B, whose γ is fixed, by # (# to #).",
           [(none.low > 0, none.low), (True,), *interval(none), (fixed.low > 0, fixed.low), *interval(fixed)])
    yield "With them in its family A₁ − A₀ has p = #.", [holm(family)["A₁ − A₀"]]
    yield ("So at this rate of decay the target decides the [sign]: decay towards # [lowers] key PR, decay towards # does [not].",
           [(target.high < 0 < none.low, target.high, none.low), 0, (True,), 1, (True,)])
    yield ("Decay towards # also keeps the gains even (γ CV #, against # in A₀ and # in A) and [larger than] in A (mean size # and #); which of these counts "
           "is [not] separated.",
           [1, uneven["A₁"], uneven["A₀"], uneven["A"], (size["A₁"] > size["A"], size), size["A₁"], size["A"], (True,)])


def scale_claims(s):
    scale, shape = difference(s, "S − B"), s.effects(at("mean_pr"))["A₀ − S"]
    deviations = [statistics.stdev(s.differences("S − B", at("mean_pr", probe))) for probe in range(1, len(s.tokens))]
    text, early = s.with_text_error()["S − B"], after(s, "S − B", 360)
    parts = {measure: (s.measured(measure)["S − B"].mean, s.measured(measure)["A₀ − S"].mean) for measure in MEASURES}
    yield ("S [differs] from B by a learned temperature per layer (the scores spread by # at the end, against #).",
           [(True,), s.mean("S", at("score_std")), s.mean("B", at("score_std"))])
    yield "S − B is # (# to #).", interval(scale)
    yield ("The interval is narrow by chance: the deviation over seeds is # at the [last] probe and # to # at those before it, and with the error of the text it "
           "is # to #.", [deviations[-1], (True,), min(deviations[:-1]), max(deviations[:-1]), text.low, text.high])
    yield "It [falls] from # after # updates: a point of a course, as A₀ − B.", [(early.mean > scale.mean,), early.mean, 360]
    yield ("A gain for [each] dimension ends [lower than] one factor: A₀ − S is # (# to #), undecided (p = #).",
           [(True,), (shape.outcome == "U" and shape.mean < 0, shape.outcome), *interval(shape), shape.p_holm])
    yield ("The sum of S − B and A₀ − S is A₀ − B, # in these seeds.", [sum(parts["mean_pr"])])
    yield ("It [cancels in key PR alone]: the parts are # and # in `k_pr_centred`, # and # in `qk_pr`, and # and # in `qk_pr_rotated`.",
           [(all(abs(sum(two)) > abs(sum(parts["mean_pr"])) for name, two in parts.items() if name != "mean_pr"), parts),
            *parts["k_pr_centred"], *parts["qk_pr"], *parts["qk_pr_rotated"]])


def matched_claims(s):
    start, end = ({letter: s.mean(letter, at("score_std", probe)) for letter in ("B", "C", "C′")} for probe in (0, -1))
    course = [s.mean("C′", at("score_std", probe)) for probe in range(len(s.tokens))]
    others = max(value for letter in CONDITIONS if letter != "C′" for run in s.runs[letter] for value in run["score_std"])
    loss, temperature, matched = difference(s, "C′ − C", "val_loss"), difference(s, "C′ − C"), s.effects(at("mean_pr"))["B − C′"]
    yield ("The scores of C′ spread by # before training, as those of B (#), by # at # M tokens, where [no other] condition ever passes #, and by # at the end "
           "(C: #).", [start["C′"], start["B"], max(course), s.tokens[course.index(max(course))] / 1e6, (others < 5.3, others), 5.3, end["C′"], end["C"]])
    yield "Its loss ends # (# to #) [above] that of C.", [*interval(loss), (loss.low > 0, loss.low)]
    yield ("So C′ is another regime, as in the study of tiny, and [neither] C′ − C (#) [nor] B − C′ (#; # in `k_pr_centred`) says what temperature does.",
           [(True,), temperature.mean, (True,), matched.mean, s.measured("k_pr_centred")["B − C′"].mean])


def dose_claims(s):
    for letter, dose in DOSES.items():
        yield f"# ({letter})", [dose]
    for dose in DOSES.values():
        yield "#", [(1 - s.rate * dose) ** s.updates[-1]]
    for value in [at(measure) for measure in MEASURES] + [variation, mean_size, at("score_std"), at("val_loss")]:
        for letter in DOSES:
            yield "#", [s.mean(letter, value)]
    small, middle, large = (difference(s, pair) for pair in ("D₁ − A₀", "D₂ − A₀", "A − A₀"))
    adjusted = list(holm({0: small.p, 1: middle.p, 2: large.p}).items())
    adjusted = [p for _, p in sorted(adjusted)]
    late = Sample(s.differences("D₂ − A₀", in_layers(range(3, s.layers))))
    yield ("Against [no] decay, key PR ends # (# to #) [higher] at #, # (# to #) [lower] at #, and # (# to #) [lower] at #, in these # seeds.",
           [(True,), *interval(small), (small.mean > 0,), 0.05, *lowering(middle), (True,), 0.1, *lowering(large), (True,), 0.2, len(s.seeds)])
    yield ("After Holm's adjustment over the # doses p is #, # and #: # and # are undecided.",
           [3, *adjusted, *([0.05, 0.1] if adjusted[0] > 0.05 and adjusted[1] > 0.05 else [None, None])])
    yield "Without layers # to # the dose # gives # (# to #).", [0, 2, 0.1, *interval(late)]
    bends = {measure: bend(s, measure) for measure in MEASURES}
    shares = [second / whole for second, whole in zip(difference(s, "A − D₂").values, large.values)]
    centred = difference(s, "A − D₂", "k_pr_centred").mean / difference(s, "A − A₀", "k_pr_centred").mean
    yield ("So the effect is [not] in proportion to the dose: the second # [lowers] key PR by # (# to #) [more than the first], and the interval excludes # in "
           "[all] # measures.",
           [(bends["mean_pr"].high < 0,), 0.1, (True,), *lowering(bends["mean_pr"]), (True,), 0,
            (all(one.high < 0 for one in bends.values()), {name: one.high for name, one in bends.items()}), len(bends)])
    yield ("# % of it (# to # % in the seeds; # % in `k_pr_centred`) arises [between] # and #.",
           [100 * difference(s, "A − D₂").mean / large.mean, 100 * min(shares), 100 * max(shares), 100 * centred, (True,), 0.1, 0.2])
    light = {measure: difference(s, "D₁ − A₀", measure) for measure in MEASURES}
    yield ("The dose # [lowers] `k_pr_centred` by # (# to #) and [raises] `k_pr_rotated` by # (# to #), `k_pr_before_gain` by # (# to #) and `qk_pr_rotated` by # "
           "(# to #), intervals that are [not] adjusted.",
           [0.05, (light["k_pr_centred"].high < 0,), *lowering(light["k_pr_centred"]),
            (all(light[measure].low > 0 for measure in ("k_pr_rotated", "k_pr_before_gain", "qk_pr_rotated")),), *interval(light["k_pr_rotated"]),
            *interval(light["k_pr_before_gain"]), *interval(light["qk_pr_rotated"]), (True,)])
    sizes, spreads, uneven, loss = ([s.mean(letter, value) for letter in DOSES] for value in (mean_size, at("score_std"), variation, at("val_loss")))
    yield ("The gains become [smaller] and [less] even with [each] dose, and the scores spread [less].",
           [(sizes == sorted(sizes, reverse=True), sizes), (uneven == sorted(uneven), uneven), (True,), (spreads == sorted(spreads, reverse=True), spreads)])
    yield "The validation losses lie [within] # of [each] other.", [(True,), max(loss) - min(loss), (True,)]


def bend(s, measure):
    """How much more the second half of the dose does than the first."""
    return Sample([second - first for second, first in zip(difference(s, "A − D₂", measure).values, difference(s, "D₂ − A₀", measure).values)])


def probe_claims(s, many):
    starts = [s.by_seed[letter][seed]["mean_pr"][0] - many.by_seed[letter][seed]["mean_pr"][0] for letter in ("A", "C") for seed in s.seeds]
    yield ("Probes here measure # blocks, those of the study of 88m #: the [same] untrained models have a key PR # to # [higher] here.",
           [batch(s), batch(many), (True,), min(starts), max(starts), (min(starts) > 0,)])


def sign_claims(s, many, context):
    ends, long = ([difference(study, pair).mean for pair in THREE] for study in (s, many))
    update, near = 360, min(range(len(many.tokens)), key=lambda probe: abs(many.tokens[probe] - s.tokens[-1]))
    here, there = ([after(study, pair, update) for pair in THREE] for study in (s, many))
    equal_tokens = [Sample(many.differences(pair, at("mean_pr", near))) for pair in THREE]
    theirs = lambda: published_effects(context, -1)  # noqa: E731

    def at_720():
        probe = round(720 / PUBLISHED_UPDATES * (len(published(context, "QK")["tokens"]) - 1))
        tokens = published(context, "QK")["tokens"]
        return [720, (tokens[probe] / tokens[-1] * PUBLISHED_UPDATES == 720, tokens[probe]), published_effects(context, probe)[1],
                after(many, "B − C", 720).mean]

    yield ("Here training γ [raises] key PR and normalisation [lowers] it: the [signs] are the [opposite] of those after # updates of # × # tokens.",
           [(ends[0] > 0,), (ends[1] < 0,), (True,), (all(a * b < 0 for a, b in zip(ends, long)),), many.updates[-1], batch(many), LENGTH])
    yield ("They are [those of the published run], # (A − B), # (B − C) and # (A − C), whose updates × learning rate of AdamW is #; it is # here and # in the "
           "study of 88m.",
           lambda: [(all(end * value > 0 for end, value in zip(ends, theirs())), theirs()), *theirs(), PUBLISHED_UPDATES * PUBLISHED_RATE,
                    s.updates[-1] * s.rate, many.updates[-1] * many.rate])
    yield ("That run is one seed of [another] model, text and learning rate, and of the # [signs] # are free.", [(True,), 3, (True,), 2])
    yield ("After # updates A − B, B − C and A − C are # (# to #), # (# to #) and # (# to #) here, and # (# to #), # (# to #) and # (# to #) in the study of 88m, "
           "# seeds with a [quarter] of the tokens: the [same signs].",
           [update, *(number for sample in (*here, *there) for number in interval(sample)), len(many.seeds), (batch(s) == 4 * batch(many),),
            (all(a.mean * b.mean > 0 for a, b in zip(here, there)),)])
    yield ("After # M tokens, [about as many] as here, they are # (# to #), # (# to #) and # (# to #) there.",
           [many.tokens[near] / 1e6, (True,), *(number for sample in equal_tokens for number in interval(sample))])
    yield ("So up to # updates the [signs] of A − B and B − C in key PR are those of the [same] update in the study of 88m, and [not] those of the [same] number of "
           "tokens; the sizes are [not the same].",
           [s.updates[-1], (all(a.mean * b.mean > 0 > a.mean * c.mean for a, b, c in list(zip(here, there, equal_tokens))[:2]),), (True,), (True,), (True,),
            (here[1].high < there[1].mean,)])
    yield ("Number of updates and updates × learning rate are [not] separated here; by updates [alone] the published run does [not] fit: after # of them [its] B − C is "
           "#, that of the study of 88m #.", lambda: [(True,), (True,), (True,), *at_720()])


def published_effects(context, probe):
    values = {letter: published(context, CONDITIONS[letter])["mean_pr"][probe] for letter in "ABC"}
    return values["A"] - values["B"], values["B"] - values["C"], values["A"] - values["C"]


def measure_claims(s, many):
    found, long = ({measure: study.measured(measure) for measure in MEASURES} for study in (s, many))
    for measure, effects in found.items():
        yield f"`{measure}` (τ = #)", [s.tau(measure)]
        for pair in THREE:
            yield f"# {effects[pair].outcome} (# {long[measure][pair].outcome})", [effects[pair].mean, long[measure][pair].mean]
        yield f"[{conclusion(effects)} ({conclusion(long[measure])})]", [(True,)]
    turned = {pair: {measure for measure in MEASURES if found[measure][pair].outcome == long[measure][pair].outcome == "D"
                     and found[measure][pair].mean * long[measure][pair].mean < 0} for pair in THREE}
    yield "In brackets: the study of 88m after # updates.", [many.updates[-1]]
    yield ("The reversal of A − B holds in # of the # measures; that of B − C in [`mean_pr` and `k_pr_before_gain` alone], which are one number where γ is fixed "
           "or absent; that of A − C in `mean_pr` [alone].",
           [len(turned["A − B"]), len(MEASURES), (turned["B − C"] == {"mean_pr", "k_pr_before_gain"}, turned), (turned["A − C"] == {"mean_pr"}, turned)])
    yield ("In `qk_pr` A − B (#) and B − C (#) are [equivalent to none] here.",
           [found["qk_pr"]["A − B"].mean, found["qk_pr"]["B − C"].mean, (found["qk_pr"]["A − B"].outcome == found["qk_pr"]["B − C"].outcome == "E",)])


def decay_claims(s, many):
    effects, course = s.effects(at("mean_pr")), {update: after(s, "A − A₀", update).mean for update in (160, 360)}
    learning, decay = effects["A₀ − B"], effects["A − A₀"]
    yield ("Learning γ without decay [raises] key PR by # (# to #); A − A₀ is # (# to #), in size [below] τ, so undecided by the rule.",
           [(learning.low > 0, learning.low), *interval(learning), *interval(decay), (decay.outcome == "U" and abs(decay.mean) < 1, decay.outcome)])
    yield ("[Within] these # updates decay does [not] gain: A − A₀ is # after # updates, # after # (# in the study of 88m) and # at the end.",
           [(True,), s.updates[-1], (course[160] < course[360] < decay.mean, course), course[160], 160, course[360], 360, after(many, "A − A₀", 360).mean,
            decay.mean])


def limit_claims(s, doses, few):
    text, text_few = s.with_text_error(), few.with_text_error()
    early = lambda study, pair: statistics.fmean(study.differences(pair, in_layers(range(3))))  # noqa: E731
    late = lambda study, pair: Sample(study.differences(pair, in_layers(range(3, study.layers))))  # noqa: E731
    errors = {"of 8": [run["jackknife_error"]["mean_pr"] for study in (s, doses) for run in study.all_runs],
              "of 32": [run["jackknife_error"]["mean_pr"] for run in few.all_runs]}
    yield ("By the jackknife over the blocks of the probe the standard error of a run's key PR is # to # with # blocks and # to # with #.",
           [min(errors["of 8"]), max(errors["of 8"]), 8, min(errors["of 32"]), max(errors["of 32"]), 32])
    yield ("Intervals do [not] contain it unless it says so; with it A − A₁ is # to #, and A − C of the [last] set # to #.",
           [(True,), text["A − A₁"].low, text["A − A₁"].high, (True,), text_few["A − C"].low, text_few["A − C"].high])
    yield "An undecided pair of # seeds says [little].", [len(few.seeds), (True,)]
    yield ("Effects are [large] in layers # to #, as in the study of 88m: A − A₁ is # there and # (# to #) without them, S − B # and # (# to #), and A − C of the "
           "[last] set # and # (# to #).",
           [(abs(early(s, "A − A₁")) > abs(late(s, "A − A₁").mean),), 0, 2, early(s, "A − A₁"), *interval(late(s, "A − A₁")), early(s, "S − B"),
            *interval(late(s, "S − B")), (True,), early(few, "A − C"), *interval(late(few, "A − C"))])
    yield "Of decay towards # one dose was run, and of # updates one learning rate.", [1, few.updates[-1]]
