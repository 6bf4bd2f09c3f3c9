"""What README.md of this folder says, and how heads.csv and distance.csv give it. scripts/check-studies explains the form."""

import csv
import math
import random
import re
import statistics
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS = ("after", "before")
MEASUREMENTS = ["entropy_norm", "constancy", "consistency", "sink", "previous", "self", "induction", "q_norm", "k_norm"]
ROLES = ["induction", "previous_token", "current_token", "static_sink", "semantic_retrieval", "syntactic_gatherer", "mixed"]
CELLS = [(8, 7), (9, 7), (9, 8), (10, 7), (10, 8), (10, 9)]
REPLICATES = 1000
INTERVALS = 2 * (2 * len(MEASUREMENTS) + 1)  # of the table of relations: two runs; over all heads with depth, inside layers without
NORMAL = statistics.NormalDist()
# Known from the model and from the manifests of the runs: texts that were cut, pairs of a cell.
RUN = {"bits": 4, "d": 64, "cut": 49, "pairs": 256}
# Known from the manifests of the runs, from other runs of the program and from the definition.
RECORDED = {
    "166 held-out documents of the text of qk_norm_88m, 202,471 tokens.",
    "Bootstrap with 200 replicates that resamples texts with both their keys and their queries (these to first order); intervals are 95 %.",
    "One NVIDIA H200 on 2026-11-17 (`inspect`) and 2026-11-18 (`plasticity`), 9 s for each run of `plasticity`.",
    "Two CPU cores take about six minutes a run.",
    "`inspect` reads 17 of the 166 documents for it.",  # it says so
    "Over all heads CPU and GPU differ by at most 1.2e-7 in plasticity, float32 and bfloat16 by at most 0.0011.",
    "For two keys of one text: how uncertain is a head, over the queries of a later region, which of the two gets the "
    "larger score?",
}
READING = {
    "Attention plasticity of SmolLM2",
    "This page has it for every head of a published model, before and after RoPE, with its baselines, and beside what the "
    "heads attend to.",
    "`tests/model/fetch_real.py` fetches it.",
    "docs/studies/smollm2_plasticity/rebuild smollm2.gguf val.jsonl.zst FOLDER",
    "computes the runs, `heads.csv` (a row for each head), `distance.csv` and the figures again.",
    "Pairs are of keys in an earlier bucket than the query, so the value of such a head is seldom about the key that it "
    "reads most.",
    "After RoPE q·k is the score that attention uses, up to a scale: content and distance together.",
    "Before RoPE it is the score that the pair would have at distance zero: content alone, and no attention is computed from it.",
    "Errors of model − count and of own − other text: infinitesimal jackknife over texts.",
    "The maps have different scales of colour.",
    "These are different quantities, not a measurement and its correction.",
    "The heads share their texts, so these counts are not independent trials and the means have no interval.",
    "Shuffled vectors keep their rotation, so queries and keys then meet at other distances than their labels say.",
    "Means, and ranges of plasticity:",
    "Roles are cut by entropy, constancy and key norm, which are related to plasticity after RoPE themselves.",
    "Spearman's ρ with plasticity.",
    "`constancy` says how little the query decides where a head looks.",
    "Plasticity is about the sign of a difference of scores: longer queries lower the entropy and leave plasticity as it is.",
    "No row says what makes a head plastic.",
    "These intervals are not corrected for their number.",
    "Buckets double in width, so distance and the spread of positions inside a bucket change together.",
    "Nothing here is about other models.",
    "Every pair of keys counts alike, whether the head attends to them or not.",
    "A head's value weights cells by their queries under logarithmic sampling.",
    "Intervals over layers allow for it, errors of single heads and their counts do not.",
    "It turns a key by its position, so after RoPE keys differ by content and by place.",
    "Nothing was changed in the model.",
    "Relations are between measurements of the same weights.",
    # headings and names of columns and rows
    "Layers and heads", "Before and after RoPE", "Baselines", "Sinks and roles", "Relations with attention", "Distance",
    "Limits", "model", "text", "vectors", "pairs", "errors", "attention", "machine", "head", "heads", "after RoPE",
    "before RoPE", "entropy_norm", "sink", "previous", "role", "difference", "run", "mean", "median size", "range",
    "beyond", "found", "measurement", "after, all heads", "after, inside layers", "before, all heads",
    "before, inside layers", "–", "query bucket", "key bucket", "one model", "weights", "samples", "shared keys", "RoPE",
    "no cause",
}
FIGURES = {
    "plasticity_after.png": (
        "5394be0170e1fdae6af12d6914f186447c80433be60bcce756d159826bcb3580",
        "Plasticity of each head after RoPE", "Plasticity of every query head of SmolLM2 after RoPE"),
    "plasticity_before.png": (
        "f4d85c4b3347fb4cf333ec98155ed4a37885bb5585cce96a4802da500554f4af",
        "Plasticity of each head before RoPE"),
    "before_and_after.png": (
        "60a323a75ef908bd6a79f7c63a168d8e17f028e9e9ece33ce4975a8d1a5c107a",
        "Each head before and after RoPE"),
    "gaussian_check.png": (
        "6497b0f5f9fa34f25ddfe620aa9ae61ebdb5b12a6cc34b7d3f0baa78126db73b",
        "Gaussian model and count"),
    "role_map.png": (
        "f880ab6fdf28bd3962bf54a3cdc0b5864e5b8a83dd49353a9834311cf09d80cc",
        "Roles of heads"),
    "plasticity_entropy.png": (
        "7fc735d5896ebf99b32ec9fc805a9175beb96709449fc57c8b3d4693e547934f",
        "Plasticity and entropy"),
}


class Study:
    """The rows of heads.csv by layer and head, and the cells of distance.csv by run and layer."""

    def __init__(self):
        self.heads = [{name: value if name == "role" else float(value) for name, value in row.items()} for row in table("heads.csv")]
        self.layers = sorted({int(row["layer"]) for row in self.heads})
        self.in_layer = [[row for row in self.heads if row["layer"] == layer] for layer in self.layers]
        self.cells = {(row["run"], int(row["layer"]), int(row["q_bucket"]), int(row["k_bucket"])): float(row["plasticity"])
                      for row in table("distance.csv")}
        if any(len(rows) != len(self.in_layer[0]) for rows in self.in_layer):
            raise ValueError("heads.csv: the layers have different numbers of heads")

    def column(self, name):
        return [row[name] for row in self.heads]

    def layer_means(self, name):
        return [statistics.fmean(row[name] for row in rows) for rows in self.in_layer]

    def differences(self, run, check):
        """The difference that a check is about and its z, for each head."""
        of = {"gap": lambda row: row[f"{run}_gap"], "text": lambda row: row[f"{run}_own_text"] - row[f"{run}_other_text"],
              "shuffled": lambda row: row[f"{run}_ap"] - row[f"{run}_shuffled"]}[check]
        return [of(row) for row in self.heads], [of(row) / row[f"{run}_{check}_se"] for row in self.heads]

    def cell(self, run, cell):
        return [self.cells[(run, layer, *cell)] for layer in self.layers]


def table(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


@cache
def study():
    return Study()


def name(row):
    return f"L{row['layer']:.0f}H{row['q_head']:.0f}"


def ties(values):
    """Indices of equal values, in the order of the values."""
    order, found = sorted(range(len(values)), key=values.__getitem__), []
    for i in order:
        if found and values[found[-1][0]] == values[i]:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def centred_ranks(groups, weights):
    """Ranks less their mean, where index i stands for weights[i] equal values."""
    ranks, below, middle = [0] * len(weights), 0, (sum(weights) + 1) / 2
    for group in groups:
        size = sum(weights[i] for i in group)
        for i in group:
            ranks[i] = below + (size + 1) / 2 - middle
        below += size
    return ranks


def correlation(x, y, weights):
    def product(a, b):
        return sum(w * i * j for w, i, j in zip(weights, a, b))
    return product(x, y) / math.sqrt(product(x, x) * product(y, y))


def spearman(x, y):
    ones = [1] * len(x)
    return correlation(centred_ranks(ties(x), ones), centred_ranks(ties(y), ones), ones)


@cache
def pooled():
    """Spearman's rho over all heads and its standard error by a bootstrap over layers: {(x, y): (rho, error)}."""
    s, generator = study(), random.Random(0)
    names = ["layer", *MEASUREMENTS, *(f"{run}_ap" for run in RUNS)]
    pairs = [(x, f"{run}_ap") for run in RUNS for x in names[:-2]] + [("before_ap", "after_ap"), ("sink", "entropy_norm"), ("sink", "layer")]
    groups = {x: ties(s.column(x)) for x in names}
    drawn = {pair: [] for pair in pairs}
    for replicate in range(REPLICATES + 1):
        times = [1] * len(s.layers) if replicate == 0 else [0] * len(s.layers)
        for layer in generator.choices(range(len(s.layers)), k=len(s.layers)) if replicate else []:
            times[layer] += 1
        weights = [times[int(row["layer"])] for row in s.heads]
        ranks = {x: centred_ranks(groups[x], weights) for x in names}
        roots = {x: math.sqrt(sum(w * r * r for w, r in zip(weights, ranks[x]))) for x in names}
        for x, y in pairs:
            drawn[x, y].append(sum(w * a * b for w, a, b in zip(weights, ranks[x], ranks[y])) / (roots[x] * roots[y]))
    return {pair: (values[0], statistics.stdev(values[1:])) for pair, values in drawn.items()}


def student(probability, freedom):
    """The quantile of Student's t, by bisection of the midpoint integral of its density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)

    def below(t):
        step = t / 400
        return 0.5 + step * sum(scale * (1 + ((i + 0.5) * step) ** 2 / freedom) ** (-(freedom + 1) / 2) for i in range(400))
    low, high = 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < probability else (low, middle)
    return low


@cache
def t_quantile(freedom, intervals=1):
    return student(1 - 0.025 / intervals, freedom)


def t_interval(values):
    half = t_quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values) - half, statistics.fmean(values) + half


def inside(x, run):
    """Spearman's rho in each layer."""
    return [spearman([row[x] for row in rows], [row[f"{run}_ap"] for row in rows]) for rows in study().in_layer]


def pooled_relation(x, y):
    """rho, its interval, and whether the interval that is corrected for the number of intervals excludes 0."""
    rho, error = pooled()[x, y]
    return rho, rho - 1.959964 * error, rho + 1.959964 * error, abs(rho) > NORMAL.inv_cdf(1 - 0.025 / INTERVALS) * error


def inside_relation(x, run):
    values = inside(x, run)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.fmean(values), *t_interval(values), abs(statistics.fmean(values)) > t_quantile(len(values) - 1, INTERVALS) * error


def share_between(groups):
    """Share of the variance that lies between groups, and the share that groups of the same sizes have on average by chance."""
    values = [value for group in groups for value in group]
    mean = statistics.fmean(values)
    between = sum(len(group) * (statistics.fmean(group) - mean) ** 2 for group in groups)
    return between / sum((value - mean) ** 2 for value in values), (len(groups) - 1) / (len(values) - 1)


def p_value(z):
    return math.erfc(abs(z) / math.sqrt(2))


def discoveries(p_values, rate=0.05):
    """How many Benjamini and Hochberg (1995) find."""
    return max((i for i, p in enumerate(sorted(p_values), 1) if p <= rate * i / len(p_values)), default=0)


def beyond(z):
    return sum(abs(value) > 1.96 for value in z)


def bucket(number, size=128):
    """First and last position of a bucket of the sampler `log` (docs/capture.md)."""
    inside = [t for t in range(4095) if max(math.floor(math.log2(t + 1)), math.ceil(math.log2(size))) == number]
    return inside[0], inside[-1]


def split(run, holds):
    """In every layer that has heads of both kinds: the mean plasticity of those that the condition holds for, less that of the others."""
    found = []
    for rows in study().in_layer:
        kinds = [[row[f"{run}_ap"] for row in rows if holds(row) == kind] for kind in (True, False)]
        if all(kinds):
            found.append(statistics.fmean(kinds[0]) - statistics.fmean(kinds[1]))
    return found


def constants():
    """The numbers of the commands in rebuild."""
    return {option: int(value) for option, value in re.findall(r'"--([a-z-]+)", "(\d+)"', (HERE / "rebuild").read_text())}


def claims(context):
    s = study()
    yield from setup_claims(s)
    yield from layer_claims(s)
    yield from ranked_claims(s)
    yield from rope_claims(s)
    yield from baseline_claims(s)
    yield from role_claims(s)
    yield from relation_claims(s)
    yield from distance_claims(s)
    yield from limit_claims(s)


def setup_claims(s):
    tokens, first, rows = constants(), s.in_layer[0], s.column("after_n_q_tokens")
    yield ("Plasticity (plasticity.md) is # where it is [always the same] key and # where it is a coin flip.",
           [4 * 1.0 * (1 - 1.0), (True,), 4 * 0.5 * (1 - 0.5)])
    yield ("SmolLM2-135M-Instruct as a GGUF file with weights rounded to # bits: # layers of # query and # key heads, d #.",
           [RUN["bits"], len(s.layers), len(first), len({row["k_head"] for row in first}), RUN["d"]])
    yield "# documents are cut to # tokens.", [RUN["cut"], tokens["max-length"]]
    yield "Logarithmic sampling with a base rate of # (capture.md): # to # queries a head.", [tokens["base-rate"], min(rows), max(rows)]
    yield "The # runs keep the [same] rows.", [len(RUNS), (rows == s.column("before_n_q_tokens"), "n_q_tokens")]
    buckets = sorted({cell[0] for cell in CELLS})
    yield ("Query buckets #, # and # with [each earlier] key bucket: # cells of # pairs of keys.",
           [*buckets, (CELLS == [(q, k) for q in buckets for k in range(7, q)], CELLS), len(CELLS), RUN["pairs"]])
    yield "`inspect` on # sequences of # tokens of the [same] text (measurements.md, roles.md).", [tokens["batch"], tokens["seq-len"], (True,)]


def layer_claims(s):
    ap, means = s.column("after_ap"), s.layer_means("after_ap")
    noise = 100 * statistics.fmean(row["after_se"] ** 2 for row in s.heads) / statistics.pvariance(ap)
    rho = pooled_relation("layer", "after_ap")
    layers = share_between([[row["after_ap"] for row in rows] for rows in s.in_layer])
    keys = {}
    for row in s.heads:
        keys.setdefault((row["layer"], row["k_head"]), []).append(row["after_ap"])
    shared = share_between(list(keys.values()))
    yield "After RoPE the mean over # heads is #, from # to #.", [len(ap), statistics.fmean(ap), min(ap), max(ap)]
    yield "The error of a head is [small] beside that: squared errors are # % of the variance of heads.", [(noise < 1, noise), noise]
    yield ("Layer means go from # (layer #) to # (layer #), [without a trend] in depth: Spearman's ρ of plasticity and layer is # (# to #).",
           [min(means), means.index(min(means)), max(means), means.index(max(means)), (rho[1] < 0 < rho[2], rho), *rho[:3]])
    yield "# % of the variance lies [between] layers, where chance gives # %.", [100 * layers[0], (True,), 100 * layers[1]]
    yield ("# % lies [between] the # key heads, where chance gives # %: query heads that read the [same] keys are [alike], and # heads are "
           "[fewer than] # independent values.",
           [100 * shared[0], (True,), len(keys), 100 * shared[1], (True,), (shared[0] > 2 * shared[1], shared), len(ap),
            (shared[0] > shared[1], shared), len(ap)])


def ranked_claims(s, ends=5):
    order = sorted(s.heads, key=lambda row: -row["after_ap"])
    yield "The # [most] and the # [least] plastic heads, with intervals.", [ends, (True,), ends, (True,)]
    yield "They were chosen after looking, among #.", [len(order)]
    for row in order[:ends] + order[-ends:]:
        yield name(row), []
        for run in RUNS:
            yield "# (# to #)", [row[f"{run}_ap"], row[f"{run}_low"], row[f"{run}_high"]]
        for measurement in ("entropy_norm", "sink", "previous"):
            yield "#", [row[measurement]]
        yield row["role"], []
    best = [row["role"] for row in order[:3]]
    yield "The # [highest] are previous-token heads.", [len(best), (set(best) == {"previous_token"}, best)]


def rope_claims(s):
    before, differences = s.column("before_ap"), s.column("difference")
    found = discoveries([p_value(row["difference"] / row["difference_se"]) for row in s.heads])
    largest = max(s.heads, key=lambda row: abs(row["difference"]))
    rho = pooled_relation("before_ap", "after_ap")
    yield "Before RoPE the mean is #, from # to #.", [statistics.fmean(before), min(before), max(before)]
    yield ("# of # heads are [higher] after RoPE; # [differ] at a false discovery rate of # % (paired over texts).",
           [sum(value > 0 for value in differences), len(before), (True,), found, (True,), 5])
    yield f"The [largest difference] is that of {name(largest)}: # before, # after.", [(True,), largest["before_ap"], largest["after_ap"]]
    yield "The ranks of heads have [little] in common: ρ is # (# to #).", [(rho[1] < 0 and rho[0] < 0.3, rho), *rho[:3]]


def baseline_claims(s):
    n = len(s.heads)
    checks = {(check, run): s.differences(run, check) for check in ("gap", "text", "shuffled") for run in RUNS}
    found = {key: discoveries([p_value(value) for value in z]) for key, (_, z) in checks.items()}
    yield ("Heads [beyond] # errors, where chance gives # of #, and heads at a false discovery rate of # %.", [(True,), 1.96, 0.05 * n, n, 5])
    labels = {"gap": "model − count", "text": "own − other text", "shuffled": "in place − shuffled"}
    for (check, run), (values, z) in checks.items():
        yield labels[check], []
        yield run, []
        yield "#", [statistics.fmean(values)]
        yield "#", [statistics.median(map(abs, values))]
        yield "# to #", [min(values), max(values)]
        yield "#", [beyond(z)]
        yield "#", [found[check, run]]
    yield from gap_claims(s, checks, found)
    means = {(run, kind): statistics.fmean(s.column(f"{run}_{kind}")) for run in RUNS for kind in ("own_text", "other_text", "empirical")}
    yield ("**Own and other text.** With queries of the keys' own text plasticity is [higher] on average [than] with those of another text: # against # "
           "after and # against # before RoPE.",
           [(all(means[run, "own_text"] > means[run, "other_text"] for run in RUNS), means), (True,),
            *(means[run, kind] for run in RUNS for kind in ("own_text", "other_text"))])
    queries = s.column("after_own_text_queries")
    if queries != s.column("before_own_text_queries"):
        raise ValueError("heads.csv: the runs have different own_text_queries")
    yield ("[Both are below] the count over [all] texts (# and #): one text has [few] queries in a bucket.",
           [(all(means[run, kind] < means[run, "empirical"] for run in RUNS for kind in ("own_text", "other_text")), means), (True,),
            *(means[run, "empirical"] for run in RUNS), (max(queries) < 20, max(queries))])
    yield "Their number, averaged over pairs (`own_text_queries`), has a median of # over heads.", [statistics.median(queries)]
    yield ("The false discovery rate leaves # and # heads in which the match of query and text shows.", [found["text", run] for run in RUNS])
    z = checks["shuffled", "after"][1]
    signs = [sum(value > 1.96 for value in z), sum(value < -1.96 for value in z)]
    yield ("**Positions shuffled.** After RoPE the labels of position matter in # heads, with [both signs]: # are [above] and # [below] their "
           "shuffled value by [more than] # errors.",
           [found["shuffled", "after"], (min(signs) > 0, signs), signs[0], (True,), signs[1], (True,), (True,), 1.96])
    sizes = [statistics.median(map(abs, checks["shuffled", run][0])) for run in reversed(RUNS)]
    yield "Before RoPE # heads are found, and the median size is # instead of #.", [found["shuffled", "before"], *sizes]
    yield from normality_claims(s)


def gap_claims(s, checks, found):
    n = len(s.heads)
    wide = [[row for row in s.heads if abs(row[f"{run}_gap"]) > 0.02] for run in RUNS]
    some = [sum(abs(row[f"{run}_gap"]) > 0.01 for row in s.heads) for run in RUNS]
    early = [sum(row["layer"] < 2 for row in rows) for rows in wide]
    largest = [max(s.heads, key=lambda row: abs(row[f"{run}_gap"])) for run in RUNS]
    ranks = [spearman(s.column(f"{run}_ap"), s.column(f"{run}_empirical")) for run in RUNS]
    counts = [found["gap", run] for run in RUNS]
    yield ("**Gaussian model and count.** The gap is found in [most] heads; its size is [above] # in # heads after RoPE and # before, and [above] # in # and #.",
           [(min(counts) > n / 2, counts), (True,), 0.01, *some, (True,), 0.02, *map(len, wide)])
    yield (f"# and # of the latter lie in layers # and #; the [largest] are {name(largest[0])} (#) and, before RoPE, {name(largest[1])} (#).",
           [*early, 0, 1, (True,), *(abs(row[f"{run}_gap"]) for row, run in zip(largest, RUNS))])
    yield "[Both] ways rank heads [nearly alike]: ρ is # after and # before RoPE.", [(True,), (min(ranks) > 0.99, ranks), *ranks]


def normality_claims(s):
    n = len(s.heads)
    rejected = [sum(value < 0.05 for value in s.column(f"{run}_lilliefors_p")) for run in RUNS]
    rho = [spearman(s.column(f"{run}_ks_d"), [abs(value) for value in s.column(f"{run}_gap")]) for run in RUNS]
    yield ("**Normality.** The Lilliefors test of the positional component has p < # in # heads after RoPE and # before, where chance gives #.",
           [0.05, *rejected, 0.05 * n])
    yield ("With # queries or [more] a head this says [little about] size.", [min(s.column("after_n_q_tokens")), (True,), (True,)])
    yield ("The distance `ks_d` and the size of the gap have a ρ of # after and # before RoPE, over [all] heads.", [*rho, (True,)])
    yield "The test is [about] one component, the value [about] a projection of [all] #.", [(True,), (True,), (True,), RUN["d"]]


def role_claims(s):
    of_role = {role: [row for row in s.heads if row["role"] == role] for role in ROLES}
    layers, wide = [int(row["layer"]) for row in of_role["static_sink"]], [row for row in s.heads if row["sink"] >= 0.3]
    at = [int(row["layer"]) for row in wide]
    yield "# heads have the role `static_sink`, in layers # to #.", [len(layers), min(layers), max(layers)]
    yield ("# heads have at [least] # of their attention on the [first] token, [all] in layers # to #; [below] layer # the [largest] `sink` is #.",
           [len(wide), (True,), 0.3, (True,), (True,), min(at), max(at), (True,), min(at), (True,),
            max(row["sink"] for row in s.heads if row["layer"] < min(at))])
    for role, rows in of_role.items():
        yield role, []
        yield "#", [len(rows)]
        for run in RUNS:
            values = [row[f"{run}_ap"] for row in rows]
            yield "# (# to #)", [statistics.fmean(values), min(values), max(values)]
        for measurement in ("entropy_norm", "sink"):
            yield "#", [statistics.fmean(row[measurement] for row in rows)]
    found = [split(run, holds) for holds in (lambda row: row["role"] == "static_sink", lambda row: row["sink"] >= 0.3) for run in RUNS]
    numbers = [[statistics.fmean(values), *t_interval(values)] for values in found]
    yield ("In the # layers that have [both], static sinks [differ] from the other heads of their layer by # (# to #) after and # (# to #) before RoPE.",
           [len(found[0]), (True,), (True,), *numbers[0], *numbers[1]])
    yield ("With the limit `sink` ≥ # [alone] (# layers) it is # (# to #) and # (# to #).", [0.3, (True,), len(found[2]), *numbers[2], *numbers[3]])
    corrected = [abs(statistics.fmean(v)) > t_quantile(len(v) - 1, len(found)) * statistics.stdev(v) / math.sqrt(len(v)) for v in found]
    yield ("With Bonferroni's correction for these # intervals [only the second] excludes #.",
           [len(found), (corrected == [False, True, False, False], corrected), 0])
    first, last = bucket(7)
    yield ("The [first] token is a key in bucket # [only], # of # positions: plasticity of a sink head is [mostly not about] its sink.",
           [(first == 0, first), 7, (bucket(8)[0] > 0, bucket(8)), 1, last - first + 1, (True,)])


def relation_claims(s):
    yield ("Over [all] heads: intervals by a bootstrap over the # layers (# replicates, ± # errors).", [(True,), len(s.layers), REPLICATES, 1.96])
    yield ("Inside layers: the mean of # values of # heads, with Student's interval; depth is then constant.", [len(s.layers), len(s.in_layer[0])])
    yield "A star: the interval excludes # with Bonferroni's correction for the # intervals of the table.", [0, INTERVALS]
    pooled_cells = {(x, run): pooled_relation(x, f"{run}_ap") for x in ("layer", *MEASUREMENTS) for run in RUNS}
    inside_cells = {(x, run): inside_relation(x, run) for x in MEASUREMENTS for run in RUNS}
    yield "depth (layer)", []
    for run in RUNS:
        yield relation_cell(pooled_cells["layer", run])
    for x in MEASUREMENTS:
        yield f"`{x}`", []
        for run in RUNS:
            yield relation_cell(pooled_cells[x, run])
            yield relation_cell(inside_cells[x, run])
    entropy = {run: [pooled_cells["entropy_norm", run], inside_cells["entropy_norm", run]] for run in RUNS}
    sink = [cell for (x, _), cell in [*pooled_cells.items(), *inside_cells.items()] if x == "sink"]
    yield ("After RoPE heads with [lower] entropy are [more] plastic, over [all] heads and inside layers; before RoPE [both] intervals include #.",
           [(all(high < 0 for _, _, high, _ in entropy["after"]), entropy["after"]), (True,), (True,),
            (all(low < 0 < high for _, low, high, _ in entropy["before"]), entropy["before"]), 0])
    yield "The relation with `sink` survives the correction in [no] column.", [(len(sink) == 4 and not any(cell[3] for cell in sink), sink)]
    yield "`sink` and `entropy_norm` have a ρ of # with [each] other.", [pooled()["sink", "entropy_norm"][0], (True,)]
    constancy = pooled_cells["constancy", "after"]
    yield ("Its ρ after RoPE is [negative], as is expected of # measures of related things.", [(constancy[2] < 0, constancy), 2])
    quiet = sum(value < 0.02 for value in s.column("induction"))
    yield ("`induction` is [below] # in # of # heads, so its ranks are [mostly] those of values [near] #.",
           [(True,), 0.02, quiet, len(s.heads), (quiet > 0.75 * len(s.heads), quiet), (True,), 0])


def relation_cell(relation):
    rho, low, high, star = relation
    return "# (# to #)" + (" *" if star else ""), [rho, low, high]


def distance_claims(s):
    ends = [bucket(number)[1] for number in (7, 8, 9, 10)]
    yield ("Mean over heads by query and key bucket; key bucket # has positions # to #, # those to #, # to #; query bucket # ends at #.",
           [7, 0, ends[0], 8, ends[1], 9, ends[2], 10, ends[3]])
    for cell in CELLS:
        yield "#", [cell[0]]
        yield "#", [cell[1]]
        for run in RUNS:
            yield "#", [statistics.fmean(s.cell(run, cell))]
    for near, far in (((10, 9), (10, 7)), ((9, 8), (9, 7))):
        change = {run: [a - b for a, b in zip(s.cell(run, near), s.cell(run, far))] for run in RUNS}
        values = {run: [statistics.fmean(v), *t_interval(v), sum(d > 0 for d in v), len(v)] for run, v in change.items()}
        above = (min(values["after"][1], values["before"][1]) > 0, values)
        yield ("In query bucket # key bucket # is [above] key bucket # by # (# to #, over layers) after RoPE, in # of # layers, and by # (# to #) before, in "
               "# of #.", [near[0], near[1], above, far[1], *values["after"], *values["before"]])
    length = constants()["max-length"]
    yield "With `--max-length #` position # is a bucket of its own.", [length, bucket(11)[0]]
    lone = {layer for _, layer, q_bucket, _ in s.cells if q_bucket == 11}
    yield ("[Only] layer # kept # queries or [more] there, so its # heads have cells that the others lack, and the program's figure "
           "`plasticity_distance` ends in them; this table leaves them out.",
           [(len(lone) == 1, lone), *lone, 2, (True,), len(s.in_layer[0])])


def limit_claims(s):
    yield "Rounded to # bits, tuned on instructions, one text corpus.", [RUN["bits"]]
    change = [abs(mean - statistics.fmean(s.cells[(run, layer, *cell)] for cell in CELLS))
              for run in RUNS for layer, mean in zip(s.layers, s.layer_means(f"{run}_ap"))]
    yield ("With [equal] weights of the # cells layer means [change] by at [most] #.",
           [(True,), len(CELLS), (True,), (True,), max(change)])
    yield ("Entropy, sink and roles come from a stream cut into # tokens, plasticity from single documents.", [constants()["seq-len"]])
    yield "# query heads read one key head.", [len(s.in_layer[0]) // len({row["k_head"] for row in s.in_layer[0]})]


def readme_claims(context):
    s = study()
    ap, entropy, inside_entropy = s.column("after_ap"), pooled_relation("entropy_norm", "after_ap"), inside_relation("entropy_norm", "after")
    yield ("In the # query heads of SmolLM2-135M (docs/studies/smollm2_plasticity, one model, one text corpus) plasticity after RoPE goes from # to #; heads "
           "with [lower] attention entropy are [more] plastic (rank correlation #, # inside layers).",
           [len(ap), min(ap), max(ap), (entropy[2] < 0 and inside_entropy[2] < 0, entropy, inside_entropy), (True,), entropy[0], inside_entropy[0]])
