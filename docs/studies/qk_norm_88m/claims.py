"""What README.md of this folder says, and how the results beside it give it. scripts/check-studies explains the form.

The statistics are those of docs/studies/paired.py.
"""

import math
import re
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from paired import (CONDITIONS, MEASURES, TAU, Estimate, Sample, Study, at, conclusion, holm, in_layers, integral, interval,  # noqa: E402
                    mean_abs_and_noise, output_claims, published, satterthwaite, student_quantile)

CONTROLS = HERE.parent / "qk_norm_88m_controls"
TRAIN_OPTIONS = HERE.parents[2] / "src/settings/train_options.h"
LETTERS = ("A", "B", "C", "A₀")
VOCABULARY = 16384  # of the command in README.md

RECORDED = {
    "It ran on one NVIDIA H200 on 2026-11-18, 86 s a run.",
    "Conditions, τ = 1, the last probe as the test and five seeds were fixed before the runs.",
    "The fifth seed, 46, ran some hours after the others, two runs at a time, when their results were known and with a newer version of the program: the time on the "
    "machine had ended after 16 runs.",
    "It is one seed.",  # SEED = 42 in the script that the page cites
    "Keys of the probe are of 8 blocks of the held-out text, 15 documents, the same for all seeds.",
}
READING = {
    "88m on English text: the gain of QK-Norm, its decay, and normalisation",
    '"Protects" stands for a higher key PR, "worsens" for a lower one, and "does nothing" for equivalent at τ.',
    "γ and its decay",
    "A₀ and B",
    "Loss",
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
    "A₀ − C",
    "Noise is what chance alone gives for this mean.",  # docs/study.md, "When and where"
    "Decay acts on the gain of the queries, too, which is not separated here.",
    "The loss follows from the condition, so this describes and does not control.",
    "Only the last probe is the test.",
    "D: different, E: equivalent, U: undecided, by the rule of the study within each measure.",
    "The ranges were chosen after looking.",
    # docs/measurements.md, "Other ranks"
    "Without QK-Norm the scores do not fix key PR.",
    "Before RoPE, keys times any invertible matrix and queries times its inverse transpose have the same scores and another key PR; with RoPE this "
    "holds for scaled rotations of its pairs.",
    "With a learned γ they do not fix it either: a factor of a dimension (with RoPE: of a pair) can move from the gain of the keys to that of the "
    "queries.",
    "B alone has a fixed frame.",
    "The intervals of this section are not adjusted and do not contain the error of the text.",
    "Model, text and batch differ, too.",
    "It does not shrink with seeds, and the intervals above do not contain it.",
    "`seed_N/TAG/results.json` hold the results; `headscope study --analyze` on this folder gives the verdict and draws the figures again.",
}
FIGURES = {
    "2_key_pr_causal.png": (
        "24116bc8cb0784a70753a515c61906955596e74ad32ae3ca6ca1e4895d18c198",
        "Key PR over training", "Key participation ratio of the four conditions over training"),
    "6_effects_over_time.png": (
        "7cd44a4ce99bb2ecf3a31a48f7c0959b0f511e3997e26cbe86a2cf6213a194c1",
        "Effects over training"),
    "7_effects_by_layer.png": (
        "9bf66c56c9d4f787de9b35cb106f2d86d5acddb79418df373fd4e185002f331e",
        "Effects by layer"),
    "8_score_spread.png": (
        "c9cbef68083ac1630bbe351acb6c6660dfd6a2c772bd20e520cf099aff8fa7be",
        "Spread of the scores"),
}
# What the published results do not tell. Read in the repository that the page cites: research/qk_norm_25m_study.py (batch,
# accumulation, probe_every), configs/llm_config_1b.py (adamw_lr) and configs/llm_config.py (the rest).
PUBLISHED = {"batch": 8, "accumulation": 4, "probe_every": 120, "seq_len": 2048, "adamw_lr": 0.003, "weight_decay": 0.2}


def chance_of_equivalence(deviation, seeds, tau=TAU):
    """That seeds with this standard deviation of their differences are found equivalent where the true mean is 0."""
    n, quantile, mean = seeds - 1, student_quantile(0.95, seeds - 1), statistics.NormalDist(0, deviation / math.sqrt(seeds))

    def density(s):  # of the standard deviation s of the sample: s·√n/deviation has the χ distribution of n
        chi = s * math.sqrt(n) / deviation
        return chi ** (n - 1) * math.exp(-chi * chi / 2) / (2 ** (n / 2 - 1) * math.gamma(n / 2)) * math.sqrt(n) / deviation

    def inside(s):  # |mean| < τ − quantile·s/√seeds
        return 2 * mean.cdf(tau - quantile * s / math.sqrt(seeds)) - 1

    return integral(lambda s: density(s) * inside(s), 0, tau * math.sqrt(seeds) / quantile)


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
    study = Study(HERE, LETTERS)
    effects = study.effects(at("mean_pr"))
    yield from setup_claims(study, context)
    yield from output_claims(study, effects)
    yield from decay_claims(study, effects)
    yield from gain_claims(study, effects)
    yield from offset_claims(study)
    yield from learning_claims(study, effects, context)
    yield from loss_claims(study, effects)
    yield from time_claims(study, effects)
    yield from measure_claims(study)
    yield from layer_claims(study)
    yield from score_claims(study)
    yield from published_claims(study, context)
    yield from limit_claims(study)
    yield from test_claims(study, effects)
    yield from text_claims(study, effects)


def setup_claims(s, context):
    length, tokens, seeds = context.preset("of_88m")["seq_len"], s.tokens, s.seeds
    batch = tokens[-1] / s.updates[-1] / length
    yield ("The [causal] study (study.md) on the preset `88m` (# layers, d_k #) with the control A₀, in which the gain γ of QK-Norm is "
           "learned without weight decay.", [(True,), s.layers, s.d_k])
    yield "The preset is called 88m; with the vocabulary here the model has # M parameters.", [millions_of_parameters(context)]
    yield ("[Seeds # to #]; # M tokens a run in # updates of # × #, a probe [every] # M tokens.",
           [(seeds == list(range(seeds[0], seeds[-1] + 1)), seeds), seeds[0], seeds[-1], tokens[-1] / 1e6, s.updates[-1], batch, length,
            (all(b - a == tokens[1] for a, b in zip(tokens, tokens[1:])), tokens), tokens[1] / 1e6])
    yield ("The text is books, technical writing, speeches, textbooks and reference works: # M tokens of a byte-level BPE vocabulary of #, "
           "which [is the model's]; a run reads it # times.",
           lambda: [context.corpus()[0] / 1e6, context.corpus()[1], (context.corpus()[1] == VOCABULARY, context.corpus()[1]),
                    tokens[-1] / context.corpus()[0]])
    yield ("headscope study --preset 88m --data train.bin --set data.validation=val.bin train.batch=# train.accumulation=# train.tokens=# "
           "model.vocabulary=# [--conditions QK,QK_nodecay,QK_frozen,NoQK] --seeds #,#,#,#,# --device cuda",
           [batch, 1, tokens[-1], VOCABULARY, (s.tags == {CONDITIONS[letter] for letter in LETTERS}, s.tags), *seeds])


def decay_claims(s, effects):
    gamma, learning, decay = (effects[pair] for pair in ("A − B", "A₀ − B", "A − A₀"))
    checks = robust(s, ("A − B", "A − A₀"))
    yield ("At # M tokens training γ [lowers] key PR by #.",
           [s.tokens[-1] / 1e6, (gamma.outcome == "D" and gamma.mean < 0, gamma.outcome), -gamma.mean])
    yield ("Without weight decay of γ the [difference] to a fixed γ is #, [equivalent to none] at τ = # (p = #; mean |effect| of the layers #, "
           "noise #).",
           [(True,), learning.mean, (learning.outcome == "E", learning.outcome), TAU, learning.p_equivalence,
            *mean_abs_and_noise(s.by_layer("A₀ − B"))])
    yield ("Decay of γ [lowers] key PR by #, in [each] seed by # to #.",
           [(decay.outcome == "D" and decay.mean < 0, decay.outcome), -decay.mean, (max(decay.values) < 0, decay.values), -max(decay.values),
            -min(decay.values)])
    yield ("A − B and A − A₀ [stay different] without [any] one of the seeds, with the error of the text, at [equal] loss, after Holm's "
           "adjustment over [all] tests of the table of measures, and without layers # to #.",
           [(all(checks.values()), checks), (True,), (True,), (True,), 0, 2])
    yield ("A − B, B − C and A − C are [different], so the verdict is [both].", [(conclusion(effects) == "both", conclusion(effects)), (True,)])
    yield from fragile_claims(s)


def fragile_claims(s):
    """Of A − C, on which the verdict rests."""
    total, fewer = "A − C", {seed: s.without_seed(index) for index, seed in enumerate(s.seeds)}
    undecided = [seed for seed in fewer if fewer[seed][total].outcome == "U"]
    others = {"loss": s.decided(s.at_equal_loss), "layers": s.effects(in_layers(range(3, s.layers))),
              "last five": s.effects(lambda run: statistics.fmean(run["mean_pr"][-5:]))}
    outcomes = {name: other[total].outcome for name, other in others.items()}
    over_all = holm_over_table(s)["mean_pr", total]
    yield ("It rests on A − C, which is fragile: it is undecided without [any] one of # seeds (without #, which ran later, p = #), at [equal] loss, "
           "without layers # to # and in the mean of the [last] # probes, and after Holm's adjustment over [all] tests of the table its p is [above] #.",
           [(True,), len(undecided), 46 if 46 in undecided else None, fewer[46][total].p_holm, (set(outcomes.values()) == {"U"}, outcomes), 0, 2,
            (True,), 5, (True,), (over_all > 0.05, over_all), 0.05])
    analyses = [*(fewer[seed] for seed in undecided), *others.values()]
    yield ("Then the verdict is [inconclusive]; A − B, B − C and A − A₀ [stay different].",
           [({conclusion(analysis) for analysis in analyses} == {"inconclusive"},),
            (all(analysis[pair].outcome == "D" for analysis in analyses for pair in ("A − B", "B − C", "A − A₀")),)])


def robust(s, pairs):
    """Whether the pairs are different and negative under other analyses."""
    equal_loss, over_all = s.decided(s.at_equal_loss), holm_over_table(s)
    analyses = {f"without seed {seed}": s.without_seed(index) for index, seed in enumerate(s.seeds)}
    analyses |= {"text": s.with_text_error(), "text, few degrees of freedom": s.with_text_error(len(s.seeds) - 1), "equal loss": equal_loss,
                 "without layers": s.effects(in_layers(range(3, s.layers)))}
    found = {name: all(analysis[pair].outcome == "D" and analysis[pair].mean < 0 for pair in pairs) for name, analysis in analyses.items()}
    return found | {"Holm over the table": all(over_all["mean_pr", pair] < 0.05 for pair in pairs)}


def gain_claims(s, effects):
    """What decay does to the gains of the keys, and these to their rank."""
    def variation(run):
        return statistics.fmean(layer[-1] for layer in run["gamma_cv"].values())

    def ratio(layer):
        return s.mean("A", lambda run: run["layer_pr"][str(layer)][-1] / run["layer_k_pr_before_gain"][str(layer)][-1])

    def predicted(layer):
        return s.mean("A", lambda run: participation_ratio(run["gamma_final"][str(layer)]) / s.d_k)

    pair, before = "A − A₀", s.measured("k_pr_before_gain")["A − A₀"]
    left, decay, gains = left_by_decay(s.rate, s.updates[-1], weight_decay()), effects[pair], s.runs["A"][0]["gamma_final"]["0"]
    uneven = s.differences(pair, variation)
    early, early_before = (Sample(s.differences(pair, in_layers(range(3), measure))) for measure in ("mean_pr", "k_pr_before_gain"))
    late_before = statistics.fmean(s.differences(pair, in_layers(range(3, s.layers), "k_pr_before_gain")))
    yield "AdamW takes # × # of γ in [every] update.", [s.rate, weight_decay(), (True,)]
    yield ("[Alone], this leaves # of [each] gain after # updates and does [not change] key PR, which has [no] scale.",
           [(True,), left, (True,), s.updates[-1],
            (math.isclose(participation_ratio(gains), participation_ratio([left * gain for gain in gains])), gains), (True,)])
    yield ("[Together] with learning it [makes the gains uneven]: the γ CV of the keys ends at # in A and at # in A₀ on average over layers.",
           [(True,), (min(uneven) > 0, uneven), s.mean("A", variation), s.mean("A₀", variation)])
    yield "Their mean |γ| ends at # and at #.", [mean_size(s, "A"), mean_size(s, "A₀")]
    yield ("On the average over layers, # (# to #) of the # arises at the gain and # before it (`k_pr_before_gain`: [equivalent to none]; mean "
           "|effect| #, noise #).",
           [*interval(Sample(s.differences(pair, at_gain))), decay.mean, before.mean, (before.outcome == "E", before.outcome),
            *mean_abs_and_noise(s.by_layer(pair, "k_pr_before_gain"))])
    yield ("This [hides a cancellation]: in layers # to # A − A₀ is # (# to #) before the gain, # % of their #.",
           [(early_before.high < 0 < late_before, early_before.high, late_before), 0, 2, *interval(early_before),
            100 * early_before.mean / early.mean, early.mean])
    yield ("The share (Σ|γ|)²/(d_k Σγ²) goes with a layer's ratio of key PR after to before the gain in A with r = # over layers (means over seeds).",
           [statistics.correlation(*([value(layer) for layer in range(s.layers)] for value in (predicted, ratio)))])


def offset_claims(s):
    yield ("Without the common offset of the keys A − A₀ is #; the offset gives back # (# to #).",
           [s.measured("k_pr_centred")["A − A₀"].mean, *interval(Sample(s.differences("A − A₀", by_offset)))])


def at_gain(run):
    """The part of a run's key PR that arises at the gain."""
    return run["mean_pr"][-1] - run["k_pr_before_gain"][-1]


def by_offset(run):
    """The part of a run's key PR that the common offset of the keys makes."""
    return run["mean_pr"][-1] - run["k_pr_centred"][-1]


def mean_size(s, letter):
    return statistics.fmean(gain for layer in s.gains(letter) for gain in layer)


def slopes(s, pair, probes):
    """Of key PR over the last probes, per million tokens, in each seed."""
    millions = [count / 1e6 for count in s.tokens[-probes:]]
    courses = zip(*(s.differences(pair, at("mean_pr", probe)) for probe in range(-probes, 0)))
    return Sample([statistics.linear_regression(millions, course).slope for course in courses])


def learning_claims(s, effects, context):
    pair, millions = "A₀ − B", [count / 1e6 for count in s.tokens]
    learning, half = effects[pair], student_quantile(0.95, len(s.seeds) - 1) * effects[pair].error
    # At the start the conditions are the same model.
    outcomes = "-" + "".join(s.effects(at("mean_pr", probe))[pair].outcome for probe in range(1, len(s.tokens)))
    first, equivalent = outcomes.index("D"), len(outcomes.rstrip("E"))
    last = first + len(re.match("D+", outcomes[first:])[0]) - 1
    long, short = slopes(s, pair, 11), slopes(s, pair, 6)
    means = {measure: s.measured(measure)[pair] for measure in MEASURES}
    loss = Sample(s.differences(pair, at("val_loss")))
    parts = [means["k_pr_before_gain"].mean, Sample(s.differences(pair, at_gain)).mean, means["k_pr_centred"].mean,
             Sample(s.differences(pair, by_offset)).mean]
    yield "At the end the # % interval of A₀ − B is # to #.", [90, learning.mean - half, learning.mean + half]
    again = outcomes.rindex("D")
    yield ("By the rule of the study A₀ and B were [different] from # M to # M tokens and at # M, and equivalent from # M on.",
           [(outcomes.count("D") == last + 1 - first + 1, outcomes), millions[first], millions[last], millions[again], millions[equivalent]])
    yield ("The [difference falls] by # to # per M tokens in [each] seed over the [last] # M tokens, and by # (# % interval # to #) over the [last] # M.",
           [(True,), -max(long.values), -min(long.values), (max(long.values) < 0, long.values), (True,),
            millions[-1] - millions[-11], -short.mean, 95, -short.high, -short.low, (True,), millions[-1] - millions[-6]])
    yield ("The [last] probe has # of # seeds [below] #.", [(True,), sum(value < 0 for value in learning.values), len(s.seeds), (True,), 0])
    yield ("So # is a point of a course, and [no plateau] is shown.", [learning.mean, (long.high < 0, long.values)])
    yield ("Parts [cancel]: # before the gain and # at it, # without the common offset of the keys and # by the offset.",
           [(parts[0] * parts[1] < 0 and parts[2] * parts[3] < 0, parts), *parts])
    yield ("A₀ and B [differ] in other measures and in loss ([below]).",
           [(all(mean.outcome == "D" for name, mean in means.items() if name != "mean_pr") and loss.high < 0, loss.high), (True,)])

    def start():
        return published(context, "QK")["mean_pr"][0]

    def scaled():
        return TAU * s.mean("A", at("mean_pr", 0)) / start()

    yield ("τ = # is that of the plan for a model with d_k #, whose key PR starts at #.",
           lambda: [TAU, len(published(context, "QK")["gamma_final"]["0"]), start()])
    yield ("Scaled by the start it would be # here, and A₀ − B would be [equivalent, too]; with the error of the text it would be "
           "undecided.",
           lambda: [scaled(), (s.effects(at("mean_pr"), scaled())[pair].outcome == "E" and s.with_text_error(tau=scaled())[pair].outcome == "U",
                               s.with_text_error(tau=scaled())[pair].p_equivalence)])


def loss_claims(s, effects):
    losses = {pair: Sample(s.differences(pair, at("val_loss"))) for pair in ("A − B", "A₀ − B", "A − A₀", "B − C", "A − C", "A₀ − C")}
    free = Sample(s.differences("A₀ − C", at("mean_pr")))
    for loss in losses.values():
        yield "# (# to #)", interval(loss)
    yield "These are [differences] of the validation loss at the end (# % interval).", [(True,), 95]
    yield ("A has a [lower] key PR [than] B and a [lower] loss; A₀ has a [higher] key PR [than] C and a [lower] loss.",
           [(effects["A − B"].high < 0, effects["A − B"].high), (True,), (losses["A − B"].high < 0, losses["A − B"].high),
            (free.low > 0, free.low), (True,), (losses["A₀ − C"].high < 0, losses["A₀ − C"].high)])
    yield "At [equal] loss A − C is # (# to #).", [(True,), *interval(s.at_equal_loss("A − C"))]
    yield ("At [equal] loss A − B is # (# to #), A − A₀ # (# to #) and B − C # (# to #).",
           [(True,), *(number for pair in ("A − B", "A − A₀", "B − C") for number in interval(s.at_equal_loss(pair)))])


def time_claims(s, effects):
    millions = [count / 1e6 for count in s.tokens]
    gamma, norm, learning, decay = map(s.over_time, ("A − B", "B − C", "A₀ − B", "A − A₀"))
    turn, top = next(probe for probe, mean in enumerate(gamma) if mean < 0), gamma.index(max(gamma))
    below = [probe for probe, mean in enumerate(norm) if mean < 0]
    moved = [course[-1] - course[top] for course in (gamma, learning, decay)]
    yield ("A − B is [positive] from # M to # M tokens, [at most] # at # M, and [negative] from # M on.",
           [(min(gamma[1:turn]) > 0, gamma), millions[1], millions[turn - 1], (True,), gamma[top], millions[top],
            (max(gamma[turn:]) < 0, gamma), millions[turn]])
    yield "From # M to the end it moves by #: A₀ − B by # and A − A₀ by #.", [millions[top], *moved]
    yield ("So [most of the move happens without decay]; the mean of A₀ − B is [above] # at [every] probe after the start.",
           [(moved[1] / moved[0] > 0.5, moved), (min(learning[1:]) > 0, learning), 0, (True,)])
    yield "The # M were chosen after looking.", [millions[top]]
    yield ("B − C is # before training, # at # M tokens, [negative] from # M to # M and [positive] from # M on.",
           [norm[0], norm[1], millions[1], (max(norm[below[0]:below[-1] + 1]) < 0, norm), millions[below[0]], millions[below[-1]],
            (min(norm[below[-1] + 1:]) > 0, norm), millions[below[-1] + 1]])
    late = s.effects(lambda run: statistics.fmean(run["mean_pr"][-5:]))
    changed = {pair: late[pair].outcome for pair in effects if late[pair].outcome != effects[pair].outcome}
    yield ("The mean of the [last] # probes gives the [same outcome as the last one for each effect but A − C, which is undecided] there.",
           [(True,), 5, (changed == {"A − C": "U"}, changed)])


def holm_over_table(s):
    """Holm's adjustment over the distinct tests of the table of measures: B and C have no gain, so one of theirs is there twice."""
    found = {measure: s.measured(measure) for measure in MEASURES}
    return holm({(measure, pair): effect.p for measure in MEASURES for pair, effect in found[measure].items()
                 if (measure, pair) != ("k_pr_before_gain", "B − C")})


def measure_claims(s):
    found, over_all = {measure: s.measured(measure) for measure in MEASURES}, holm_over_table(s)
    different = {key for key in over_all if found[key[0]][key[1]].outcome == "D"}
    fallen = {key for key in different if over_all[key] >= 0.05}
    for measure in MEASURES:
        yield f"`{measure}` (τ = #)", [s.tau(measure)]
        for pair in ("A − B", "A₀ − B", "A − A₀", "B − C", "A − C"):
            effect = found[measure][pair]
            is_near = effect.outcome == "D" and abs(effect.mean) - effect.half < effect.tau
            yield f"# {effect.outcome}{'*' if is_near else ''}{'†' if (measure, pair) in fallen else ''}", [effect.mean]
    yield "A * marks a D whose interval [reaches inside] ± τ.", [(True,)]  # the cells above
    yield ("Of the # distinct tests of the table # are D; after Holm's adjustment over [all] #, # of them have p ≥ # (†).",
           [len(over_all), len(different), (True,), len(over_all), len(fallen), 0.05])
    decay = {measure: found[measure]["A − A₀"] for measure in MEASURES}
    lowered = {measure for measure in MEASURES if decay[measure].outcome == "D" and decay[measure].mean < 0}
    norm, centred, rotated = (found[measure]["B − C"] for measure in MEASURES[:3])
    offset, layers = Sample(s.differences("B − C", by_offset)), s.by_layer("B − C", "k_pr_centred")
    yield ("A − A₀ is [negative and D in every measure but the one that leaves γ out].", [({*MEASURES} - lowered == {"k_pr_before_gain"}, lowered)])
    yield "B − C is # for keys before RoPE, # without their common offset, and # after RoPE.", [norm.mean, centred.mean, rotated.mean]
    yield ("On the average over layers the offset is [all of B − C]: its part is # (# to #).",
           [(abs(centred.mean) < 0.05 and centred.outcome == "E", centred.mean), *interval(offset)])
    yield ("The # is [equivalent to none] and hides structure (mean |effect| #, noise #): it is # in layers # to # and # in layers # to #.",
           [centred.mean, (centred.outcome == "E", centred.outcome), *mean_abs_and_noise(layers),
            statistics.fmean(sample.mean for sample in layers[:7]), 0, 6, statistics.fmean(sample.mean for sample in layers[9:]), 9, s.layers - 1])
    total, scores = found["mean_pr"]["A − C"], found["qk_pr"]["A − C"]
    learned, decayed = found["qk_pr"]["A₀ − B"], found["qk_pr"]["A − A₀"]
    apart = Sample([a - b for a, b in zip(learned.values, decayed.values)])
    yield "`qk_pr` does [not change under] these maps.", [(True,)]  # tests/probe
    yield ("There A − C is #, the [opposite sign] of # in `mean_pr`; after Holm's adjustment over [all] tests [neither stays].",
           [scores.mean, (scores.mean * total.mean < 0, scores.mean, total.mean), total.mean, (True,),
            ({("mean_pr", "A − C"), ("qk_pr", "A − C")} <= fallen, fallen)])
    yield ("Learning (A₀ − B, #) and decay (A − A₀, #) share A − B there [about equally], their [difference] is # (# to #).",
           [learned.mean, decayed.mean, (not apart.excludes_zero(), apart.low, apart.high), (True,), *interval(apart)])
    yield "So the split into # and # is one of `mean_pr`.", [found["mean_pr"]["A₀ − B"].mean, found["mean_pr"]["A − A₀"].mean]


def layer_claims(s):
    decays, norms = s.by_layer("A − A₀"), s.by_layer("B − C")
    decay, norm = ([sample.mean for sample in samples] for samples in (decays, norms))
    lowest = sorted(sorted(range(s.layers), key=lambda layer: decay[layer])[:3])
    turn = next(layer for layer, mean in enumerate(norm) if mean < 0)
    sure = [layer for layer, sample in enumerate(norms) if sample.excludes_zero()]
    yield ("A − A₀ is [negative in all] of the # layers, and [lowest] in layers # to # (#, # and #).",
           [(max(decay) < 0, decay), s.layers, (lowest == [0, 1, 2], lowest), lowest[0], lowest[-1], *(decay[layer] for layer in lowest)])
    yield "Without these layers it is # (# to #).", interval(Sample(s.differences("A − A₀", in_layers(range(3, s.layers)))))
    yield "Its # % interval excludes # in # layers.", [95, 0, sum(sample.excludes_zero() for sample in decays)]
    yield ("B − C is [positive] in layers # to # and [negative] in layers # to #.",
           [(min(norm[:turn]) > 0, norm), 0, turn - 1, (max(norm[turn:]) < 0, norm), turn, s.layers - 1])
    yield ("A₀ − B excludes # in layers # and #.",
           [0, *(layer for layer, sample in enumerate(s.by_layer("A₀ − B")) if sample.excludes_zero())])
    yield "Layers are [not] tested, and their intervals [not] corrected; layers # to # were set apart after looking.", [(True,), (True,), 0, 2]
    yield ("Its interval excludes # in layers # to # ([positive]) and # to # ([negative]).",
           [0, 0, 11, (sure == [*range(12), *range(18, 22)] and min(norm[:12]) > 0, sure), 18, 21, (max(norm[18:]) < 0, norm)])


def score_claims(s):
    start, end = ({letter: s.mean(letter, at("score_std", probe)) for letter in LETTERS} for probe in (0, -1))
    decay = s.differences("A − A₀", at("score_std"))
    yield ("The scores of a query spread by # (`score_std`: standard deviation over [all] keys, without mask) before training [with QK-Norm] and by "
           "# without it.", [start["A"], (True,), (start["A"] == start["A₀"] == start["B"], start), start["C"]])
    yield "At the end it is # (A), # (A₀), # (B) and # (C).", [end[letter] for letter in ("A", "A₀", "B", "C")]
    yield "Decay [lowers] it in [each] seed.", [(max(decay) < 0, decay), (True,)]


def published_claims(s, context):
    def course(first, second):
        return [a - b for a, b in zip(*(published(context, CONDITIONS[letter])["mean_pr"] for letter in (first, second)))]

    def effects():
        return course("A", "B")[-1], course("B", "C")[-1]

    def variation(gains):
        return statistics.stdev(gains) / abs(statistics.fmean(gains))

    def norm_course():
        """The tokens of the first and the last of its last positive probes in a row; whether the signs here are the opposite then and at the end."""
        theirs, tokens = course("B", "C"), published(context, "QK")["tokens"]
        last = max(probe for probe, value in enumerate(theirs) if value > 0)
        first = max(probe for probe, value in enumerate(theirs[:last]) if value < 0) + 1
        return tokens[first] / 1e6, tokens[last] / 1e6, norm[first] < 0 < norm[-1]

    def gains():
        layers = list(published(context, "QK")["gamma_final"].values())
        every = [gain for layer in layers for gain in layer]
        return statistics.fmean(every), min(every), statistics.fmean(map(variation, layers))

    gamma, norm = map(s.over_time, ("A − B", "B − C"))
    own = [(mean_size(s, letter), s.mean(letter, lambda run: statistics.fmean(layer[-1] for layer in run["gamma_cv"].values())))
           for letter in ("A₀", "A")]
    updates = s.tokens[-1] / (PUBLISHED["batch"] * PUBLISHED["accumulation"] * PUBLISHED["seq_len"])
    yield ("The published run (a model as the preset `1.5b`: # layers, d_k #) ends with γ effect # and norm effect # after [as many] tokens, "
           "the [opposite signs].",
           lambda: [len(published(context, "QK")["layer_pr"]), len(published(context, "QK")["gamma_final"]["0"]), *effects(),
                    (published(context, "QK")["tokens"][-1] == s.tokens[-1], published(context, "QK")["tokens"]),
                    (all(theirs * here < 0 for theirs, here in zip(effects(), (gamma[-1], norm[-1]))), effects())])
    yield ("Its B − C is [positive] from # M to # M tokens and then [negative], the [opposite of the course here]: a probe here with the [same "
           "signs] would be chosen after looking.",
           lambda: [(True,), *norm_course()[:2], (True,), (norm_course()[2], norm), (True,)])
    # The probes of the published run fit the batch of the script.
    yield ("It [makes] # updates, and its updates × learning rate of AdamW is # against # here (its source).",
           lambda: [(published(context, "QK")["tokens"][1] == PUBLISHED["probe_every"] * PUBLISHED["batch"] * PUBLISHED["seq_len"],
                     published(context, "QK")["tokens"]), updates, updates * PUBLISHED["adamw_lr"], s.updates[-1] * s.rate])
    yield ("Its gains end with a mean of #, a minimum of # and a CV of #: mean and CV are [nearer to A₀] (#, #) [than] to A (#, #).",
           lambda: [*gains(), (all(abs(theirs - free) < abs(theirs - full) for theirs, free, full in zip(gains()[::2], *own)), gains(), own),
                    *own[0], (True,), *own[1]])
    few = Study(CONTROLS / "batch_32", ("A", "B", "C"))
    yield ("After # updates of # × # tokens this model has [the signs of the published run] (other controls).",
           lambda: [few.updates[-1], few.tokens[-1] / few.updates[-1] / PUBLISHED["seq_len"], PUBLISHED["seq_len"],
                    (all(theirs * few.over_time(pair)[-1] > 0 for pair, theirs in zip(("A − B", "B − C"), effects())), effects())])


def limit_claims(s):
    follows = "NumberOr<SameAsWeightDecay> gain_decay, embedding_decay;" in TRAIN_OPTIONS.read_text()
    yield "# seeds are of one size, one text and one optimizer (Muon for matrices, which shapes spectra itself).", [len(s.seeds)]
    yield "The embedding [decays in all] conditions.", [(follows and weight_decay() > 0, "another default of optim.embedding_decay")]
    seeds = len(list((CONTROLS / "controls").glob("seed_*")))
    yield ("Other controls, [other] doses of decay, and [fewer and larger] updates have a page of their own, with # seeds.", [(True,), (True,), seeds])
    spreads = {f"{s.mean(letter, at('score_std')):.1f}" for letter in LETTERS}
    yield ("[All] effects contain the temperature of the scores, which is [another one in each] condition ([above]).",
           [(True,), (len(spreads) == len(LETTERS), spreads), (True,)])
    yield "# M tokens are short.", [s.tokens[-1] / 1e6]


def test_claims(s, effects):
    correlations = [s.correlation(*pair) for pair in (("A", "C"), ("A", "A₀"), ("B", "C"), ("A", "B"), ("A₀", "B"))]
    deviations = {pair: statistics.stdev(effect.values) for pair, effect in effects.items()}
    least, largest = (choose(deviations, key=deviations.get) for choose in (min, max))
    a, c = (s.sample(letter, at("mean_pr")) for letter in ("A", "C"))
    welch = Estimate(a.mean - c.mean, *satterthwaite((a.error, a.degrees), (c.error, c.degrees)))
    chance = chance_of_equivalence(deviations["A − C"], len(s.seeds))
    yield ("The p values rest on normal [differences]: with # seeds a [sign]-flip test has a p of [at least] #.",
           [(True,), len(s.seeds), (True,), (True,), 2 / 2 ** len(s.seeds)])
    yield ("Pairing does [not help] in # of the # effects: over seeds, their conditions correlate by # (A, C), # (A, A₀), # (B, C), # (A, B) and # "
           "(A₀, B).", [(True,), sum(value < 0 for value in correlations), len(effects), *correlations])
    yield ("Welch's test of A − C, computed after the fact for sensitivity, gives p = #; the paired test, with #, was fixed before.",
           [welch.p, effects["A − C"].p])
    yield ("Standard deviations of the paired [differences] are # [(A₀ − B)] to # [(A − C)].",
           [(True,), deviations[least], (least == "A₀ − B", deviations), deviations[largest], (largest == "A − C", deviations)])
    yield ("Without a [difference], # seeds with # find equivalence with a chance of # %.",
           [(True,), len(s.seeds), deviations["A − C"], 100 * chance])


def text_claims(s, effects):
    errors = [run["jackknife_error"]["mean_pr"] for run in s.all_runs]
    text, few = s.with_text_error(), s.with_text_error(len(s.seeds) - 1)
    is_kept = all(effects[pair].outcome == text[pair].outcome == few[pair].outcome for pair in effects)
    yield "By the jackknife over these blocks the standard error of a run's key PR is # to #.", [min(errors), max(errors)]
    yield ("Added as if independent, with Satterthwaite's degrees of freedom, it gives # to # for A₀ − B and # to # for B − C.",
           [number for pair in ("A₀ − B", "B − C") for number in (text[pair].low, text[pair].high)])
    yield ("[No] outcome of `mean_pr` [changes], with # degrees of freedom [neither].",
           [(True,), (is_kept, {pair: (text[pair].outcome, few[pair].outcome) for pair in effects}), len(s.seeds) - 1, (True,)])
    starts = {letter: s.mean(letter, at("mean_pr", 0)) for letter in LETTERS}
    kept = [Sample(s.differences(pair, lambda run: run["mean_pr"][-1] - run["mean_pr"][0])) for pair in ("B − C", "A − C")]
    yield ("[Collapse] counts from the untrained models, # with QK-Norm and # without, [not] from the # of Gaussian keys.",
           [(starts["A"] == starts["B"] == starts["A₀"], starts), starts["A"], starts["C"], (True,), s.all_runs[0]["gaussian"]["mean_pr"]])
    yield "[Differences of collapse] are # (# to #) for B − C and # (# to #) for A − C.", [(True,), *interval(kept[0]), *interval(kept[1])]


def readme_claims(context):
    study = Study(HERE, LETTERS)
    effects, seconds = study.effects(at("mean_pr")), int(re.search(r"(\d+) s a run", (HERE / "README.md").read_text())[1])
    gamma, learning = effects["A − B"], effects["A₀ − B"]
    yield ("# conditions (A, B, C, and A without weight decay of γ) of # seeds, # s a run on one H200, # M parameters, English text "
           "(docs/studies/qk_norm_88m): at # M tokens training γ [lowers] key PR by # (# % interval # to #); without weight decay of γ the [difference] "
           "is #, [equivalent to none] at τ = #.",
           [len(LETTERS), len(study.seeds), seconds, millions_of_parameters(context), study.tokens[-1] / 1e6,
            (gamma.outcome == "D" and gamma.mean < 0, gamma.outcome), -gamma.mean, 95, -gamma.high, -gamma.low, (True,), learning.mean,
            (learning.outcome == "E", learning.outcome), TAU])
    yield "Key participation ratio of the # conditions over training", [len(LETTERS)]
