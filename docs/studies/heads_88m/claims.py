"""What README.md of this folder says, and how summary.md and role_map.png give it. scripts/check-studies explains the form."""

import math
import re
import statistics
import struct
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Hardware, date and time stand in no file of the repository. The cells quote the reports that the run is compared with.
RECORDED = {
    "It ran on one NVIDIA H200 on 2026-11-15, in 4 min 10 s.",
    "The text is that of qk_norm_88m.",
    'What two earlier reports ("The Attention Civil War", "Analysis of Attention Key Evolution") describe, and what this run shows.',
    "early layers damp their keys, middle and final ones dip and then rise above √d_k = 8",
    'the final profile is a "checkmark": low in layers 0 to 3, then linearly up',
    "higher norm means sharper attention",
    "The report's value may be the largest component of all keys (`k_max_abs`), which the summary does not hold.",
    # key_norm_evolution.png: the thick curves, 9.7 at 6.9 M and 10.9 at 13.4 M tokens by its pixels.
    "In between they are higher: read from the figure, middle layers reach about 9.7 near 7 M tokens and final ones about 10.9 near 13 M, "
    "and then fall.",
    'The last row is a question of the research plan "Strategic Divergence of Attention Heads".',
    "heads of a layer split into two populations of norms",
    "keys become axis-aligned spikes, in middle and final layers",
    "deep layers become redundant: mean cosine above 0.5, early layers near 0.05",
    "keys collapse to few dimensions: 24 → 11 of 64 in middle layers",
    "a volume knob: keys or queries grow",
}
READING = {
    "Every head of 88m on English text",
    "Tables and rules are in summary.md.",
    "One seed describes one run.",
    "reported",
    "this run",
    "Roles",
    "See docs/train.md (flags, files, figures), docs/roles.md (roles), docs/surgery.md (operations).",
    "The interval takes the heads as independent, and the heads of a layer share one gain.",
    "How much of it is due to depth is not measured here.",
    "Norm and sharpness inside a layer",
    "They cannot tell a moderate one from none, nor one layer from another.",
    "Gatherers are defined by a low key norm and retrieval heads by a high one, so where they lie follows in part from the norms by "
    "depth.",
    '"No induction head" says little: its probe is no text.',
    "Whether a head does induction on text is not measured here.",
}
FIGURES = {
    "key_norm_evolution.png": (
        "a558c0c5cd2db3e8c06fc2d1ca59e593885db1e71454a20f1f1e9254159c9d3f",
        "Key norm by layer"),
    "entropy_norm_scatter.png": (
        "374c2e406b4ea0869ebc7aa59b20313b750e9c55da278d064d70e2666e861963",
        "Entropy against key norm over training", "Entropy against key norm of every head over training"),
    "key_magnitude_profile.png": (
        "d8df2cc266491ea081c034af4b7e5a69779f474863c96998d9265eb7b689b3cf",
        "Final key norm of each layer"),
    "role_map.png": (
        "ec114c2270984bb681ed926d9c6103c9c55c5a9d86bac3bae0bbd45b25f02a3a",
        "Roles of heads"),
}
BATCH, PROBE_EVERY = 8, 100  # of the command in README.md


class Summary:
    """Tables and sentences of summary.md."""

    def __init__(self, path):
        self.text = path.read_text().replace("−", "-")
        blocks = re.findall(r"(?:^\|.*\n)+", self.text, re.M)
        self.tables = [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()] for block in blocks]
        self.layers, self.key_heads, self.query_heads = map(int, self.numbers(r"(\d+) layers, each with (\d+) key heads and (\d+) query"))
        self.moments, self.last_step = self.numbers(r"at (\d+) moments from step 0 to (\d+)")
        self.norm = self.column("mean key norm")
        self.rho = self.column("rank correlation of norm and entropy")
        self.above = [float(row["95 % interval"].split(" to ")[1]) for row in self.table("rank correlation of norm and entropy")]

    def table(self, heading):
        """The rows of the first table that has this heading, as dictionaries. A heading that comes again is numbered."""
        for names, _, *rows in self.tables:
            names = [name if names.index(name) == i else f"{name} 2" for i, name in enumerate(names)]
            if heading in names:
                return [dict(zip(names, row)) for row in rows]
        raise KeyError(f"summary.md has no table with the heading {heading}")

    def column(self, heading):
        return [float(re.match(r"-?[\d.]+", row[heading])[0]) for row in self.table(heading)]

    def numbers(self, pattern):
        return [float(value) for value in re.search(pattern, self.text).groups()]

    def rank(self, metric, column):
        """Early, middle and final values of a column of the table of effective ranks."""
        return [float(row[column]) for row in self.table("effective rank") if row["effective rank"] == f"`{metric}`"]

    def growth(self, metric):
        return next(row for row in self.table("end / start") if row["quantity"] == f"`{metric}`")


def tokens(s, context):
    """Tokens of the whole run: every moment is followed by as many updates as lie between two."""
    return s.last_step * s.moments / (s.moments - 1) * BATCH * context.preset("of_88m")["seq_len"]


def ranks(values):
    return [sum(w < v for w in values) + (values.count(v) + 1) / 2 for v in values]


def spearman(x, y):
    x, y = ([rank - (len(v) + 1) / 2 for rank in ranks(v)] for v in (x, y))
    return sum(a * b for a, b in zip(x, y)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def interval(rho, n):
    """Fisher's 95 % interval with the standard error of Bonett and Wright, as in summary.md."""
    half = 1.959964 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def least_rho(n):
    """The |rho| above which the interval of n heads excludes 0."""
    return next(rho / 1e4 for rho in range(1, 10000) if interval(rho / 1e4, n)[0] > 0)


def fisher_mean(values):
    return math.tanh(sum(map(math.atanh, values)) / len(values))


def fisher_interval(values):
    """Student's 95 % interval of the mean of atanh over 22 layers."""
    z = list(map(math.atanh, values))
    if len(z) != 22:
        raise ValueError("the quantile below is that of 21 degrees of freedom")
    half = 2.079614 * statistics.stdev(z) / math.sqrt(len(z))
    return math.tanh(statistics.fmean(z) - half), math.tanh(statistics.fmean(z) + half)


def gaussian_energy(d):
    """(E max|x_i| / E ‖x‖)² of d standard normal components: E max is the integral of P(max > t), by the midpoint rule."""
    largest = sum(1 - math.erf((i + 0.5) / 1000 / math.sqrt(2)) ** d for i in range(10000)) / 1000
    return (largest / (math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2)))) ** 2


def pixels(path):
    """The rows of an 8 bit RGB picture (PNG specification, section 9: filters)."""
    data, at, packed = path.read_bytes(), 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", data[at + 8:at + 8 + size])
            if (depth, colour, interlaced) != (8, 2, 0):
                raise ValueError(f"{path}: expected a picture of 8 bit RGB without interlacing")
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw, rows, stride = zlib.decompress(packed), [], 3 * width
    above = bytes(stride)
    for y in range(height):
        filtered, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride if filtered else 0):
            a, b, c = (row[x - 3], above[x], above[x - 3]) if x >= 3 else (0, above[x], 0)
            nearest = min((a, b, c), key=lambda v: abs(a + b - c - v)) if filtered == 4 else 0
            row[x] = (row[x] + (0, a, b, (a + b) // 2, nearest)[filtered]) & 255
        above = bytes(row)
        rows.append(above)
    return rows


def roles(path, layers, heads):
    """The layers of the heads of each role, from the colours of role_map.png (src/figures/theme.cpp)."""
    colours = {"0072b2": "induction", "d55e00": "previous", "009e73": "current", "e69f00": "sink", "56b4e9": "retrieval",
               "cc79a7": "gatherer", "e3e5e8": "mixed"}
    rows, ground = pixels(path), bytes.fromhex("f7f8f9")  # the colour around the squares, nowhere but in the map
    lines = [y for y, row in enumerate(rows) if ground * 2 in row]
    left = min(row.find(ground * 2) for row in (rows[y] for y in lines)) // 3
    width = max(row.rfind(ground * 2) for row in (rows[y] for y in lines)) // 3 + 2 - left
    found = {role: [] for role in colours.values()}
    for layer in range(layers):
        for head in range(heads):
            x, y = left + int((layer + 0.5) * width / layers), lines[0] + int((head + 0.5) * (lines[-1] + 1 - lines[0]) / heads)
            found[colours[rows[y][3 * x:3 * x + 3].hex()]].append(layer)
    return found


def range_and_rest(layers):
    """First and last of the layers that follow each other from the first on, and the others: 1 2 3 5 gives 1, 3, 5."""
    layers = sorted(set(layers))
    last = next(layer for layer in layers if layer + 1 not in layers)
    return [layers[0], last, *(layer for layer in layers if layer > last)]


def claims(context):
    summary = Summary(HERE / "summary.md")
    yield from setup_claims(summary, context)
    yield from norm_claims(summary)
    yield from head_claims(summary)
    yield from key_claims(summary)
    yield from sharpness_claims(summary)
    yield from role_claims(summary, context)


def setup_claims(s, context):
    preset = context.preset("of_88m")
    every = s.last_step / (s.moments - 1)
    of_group = [[layer for layer in range(s.layers) if 3 * layer // s.layers == group] for group in range(3)]
    means = [sum(s.norm[layer] for layer in group) / len(group) for group in of_group]
    yield ("The preset `88m` (# layers of # query and # key heads, d_k #, learned QK-Norm), seed #, # M tokens in updates of # × #.",
           [s.layers, s.query_heads, s.key_heads, s.column("norm at start")[0] ** 2, context.seed(), tokens(s, context) / 1e6,
            BATCH, preset["seq_len"]])
    yield ("The heads are measured [every] # updates on the training batch and [every] # on a held-out one.",
           [(True,), every, (True,), PROBE_EVERY])
    yield ("headscope train --preset 88m --data train.bin --set data.validation=val.bin train.batch=# train.accumulation=# "
           "train.tokens=# train.probe_every=# --track-[every] # --device cuda", [BATCH, 1, tokens(s, context), PROBE_EVERY, (True,), every])
    yield ("Early, middle and final are layers # to #, # to # and # to #; their values are [means].",
           [*(layer for group in of_group for layer in (group[0], group[-1])),
            (all(abs(a - b) < 0.06 for a, b in zip(means, s.column("at end"))), means, s.column("at end"))])


def norm_claims(s):
    start, lowest, end, root = s.column("norm at start"), s.column("lowest (step)"), s.column("at end"), s.column("norm at start")[0]
    steps = [float(re.search(r"\((\d+)\)", row["lowest (step)"])[1]) for row in s.table("norm at start")]
    odd = [layer for layer in range(s.layers) if (s.norm[layer] < root) != (3 * layer < s.layers)]
    yield ("[Yes]: early # → #; middle # → # (step #) → #; final # → # (step #) → #.",
           [(end[0] < root and all(lowest[i] < start[i] and end[i] > root for i in (1, 2)), end), start[0], end[0],
            *(value for i in (1, 2) for value in (start[i], lowest[i], steps[i], end[i]))])
    yield ("Of the # layers # ends on the other side of #: layer #, a middle one (#).",
           [s.layers, len(odd), root, odd[0], s.norm[odd[0]]])
    bottom, top = s.norm.index(min(s.norm)), s.norm.index(max(s.norm))
    depth = spearman(s.norm[bottom:], list(range(bottom, s.layers)))
    yield ("[Yes by the rule of the summary], which asks [only] for this: [lowest] in layer # (#), # in the [last], rank correlation with depth "
           "# from there on.",
           [(3 * bottom < s.layers and depth >= 0.8 and s.norm[-1] >= 1.1 * s.norm[bottom], depth), ("`checkmark`" in s.text, "rules"),
            (True,), bottom, s.norm[bottom],
            s.norm[-1], (True,), depth])
    first, next_two = statistics.fmean(s.norm[:3]), statistics.fmean(s.norm[4:6])
    yield ("Layers # to # are [not low]: [each is above] layer # (#), and their mean (#) is [above] that of layers # and # (#).",
           [0, bottom - 1, (first > next_two, first, next_two), (min(s.norm[:3]) > s.norm[5], s.norm), 5, s.norm[5], first,
            (first > next_two, first, next_two), 4, 5, next_two])
    yield ("[Not linear]: it is [highest] in layer # (#) and [falls over the last] # layers.",
           [(top < s.layers - 1, top), (True,), top, s.norm[top],
            (all(a > b for a, b in zip(s.norm[top:], s.norm[top + 1:])), s.norm[top:]), s.layers - 1 - top])
    rho = s.numbers(r"rank correlation of (\S+) \(95")[0]
    yield ("Over [all] # query heads they [go together]: Spearman's ρ is #.",
           [(True,), s.layers * s.query_heads, (interval(rho, s.layers * s.query_heads)[1] < 0, rho), rho])
    yield ("Inside layers ρ is [nearer to #] on average: see [below].", [(rho < fisher_mean(s.rho) < 0, rho, fisher_mean(s.rho)), 0, (True,)])


def head_claims(s):
    heads, p = s.layers * s.key_heads, s.column("p of the dip test")
    share, passing = s.column("between-head share"), [value for value in p if value < 0.05]
    model = s.numbers(r"dip test over (\d+) heads, p = ([\d.]+);")
    wide = [layer for layer in range(s.layers) if share[layer] > 50]
    yield "[Not seen]: the dip test over # key heads has p = #.", [(model[1] >= 0.05, model), heads, model[1]]
    yield ("By itself # layer of # has p < #, where chance gives #.", [len(passing), s.layers, 0.05, s.layers * 0.05])
    yield "The test has # heads in a layer, so a split could be missed.", [s.key_heads]
    yield ("Heads do [differ]: [differences between] heads [make] # % of the variance at the end (# % at the start by construction: γ = # "
           "gives [all] keys the norm #), [above one half] in layer # [only] (# %).",
           [(sum(share) > 0, share), (True,), (True,), sum(share) / s.layers, s.numbers(r"\(([\d.]+) % at step 0\)")[0], 1,
            (len(set(s.column("norm at start"))) == 1, s.column("norm at start")), s.column("norm at start")[0],
            (share[wide[0]] > 50, share), wide[0], (len(wide) == 1, wide), share[wide[0]]])
    keys, queries = s.growth("k_norm"), s.growth("q_norm")
    stayed = int(queries["heads"]) - int(s.growth("qk_ratio")["grew"]) - int(s.growth("qk_ratio")["shrank"])
    limits = [tuple(map(float, row["95 % interval"].split(" to "))) for row in (keys, queries)]
    yield ("[Neither] on average: factor # for key norms, # for query norms, and [both] intervals (heads taken as independent) include #.",
           [(max(float(row["end / start"]) for row in (keys, queries)) < 1.1, keys, queries), float(keys["end / start"]),
            float(queries["end / start"]), (all(low < 1 < high for low, high in limits), limits), 1])
    yield ("Single heads do: of # key heads # [grew] and # [shrank] by a factor of # or [more].",
           [heads, int(keys["grew"]), (True,), int(keys["shrank"]), (True,), s.numbers(r"mean growth is at least ([\d.]+)")[0], (True,)])
    yield ("The ratio of query to key norm [stayed within] that factor in # of # heads.", [(True,), stayed, s.layers * s.query_heads])


def key_claims(s):
    energy, start, end = s.column("energy in one dimension"), s.column("cosine at start"), s.column("at end 2")
    one_hot, heads = s.numbers(r"(\d+) of (\d+) key heads are one-hot")
    vector, pr = [s.rank("k_pr_vector", column) for column in ("start", "end")], [s.rank("k_pr", column) for column in ("start", "end")]
    lowest, step = s.rank("k_pr", "lowest")[2], s.rank("k_pr", "at step")[2]
    yield ("[No]: the [largest] component holds # % (middle) and # % (final) of a key's energy, and # % in early layers.",
           [(max(energy) < 50, energy), (True,), energy[1], energy[2], energy[0]])
    yield ("This is (mean of the [largest] component / mean norm)²; Gaussian keys of # dimensions have # %.",
           [("(k_max_abs_mean / k_norm)^2" in s.text, "rules"), s.column("norm at start")[0] ** 2,
            100 * gaussian_energy(round(s.column("norm at start")[0] ** 2))])
    yield "# of # key heads are one-hot.", [one_hot, heads]
    yield ("In # of # the [same] dimension is [largest in at least half] of the keys.",
           [*s.numbers(r"(\d+) of (\d+) key heads have a privileged"), (True,),
            (min(s.column("largest in")) >= 50, s.column("largest in"))])
    yield ("Middle layers [yes] (# → #), final layers [no] (# → #).",
           [(end[1] > 0.5, end), start[1], end[1], (end[2] <= 0.5, end), start[2], end[2]])
    yield "Early layers are [above] # (# → #).", [(min(start[0], end[0]) > 0.05, start[0], end[0]), 0.05, start[0], end[0]]
    yield "They end [lower].", [(all(a > b for ends in (vector, pr) for a, b in zip(*ends)), vector, pr)]
    yield ("By the [same] measure (`k_pr_vector`) # → # / # / # (early, middle, final); by `k_pr` # / # / # → # / # / #.",
           [(max(vector[0]) - min(vector[0]) < 0.1, vector[0]), vector[0][0], *vector[1], *pr[0], *pr[1]])
    yield ("In final layers `k_pr` is [lowest] at step # (#) and [higher] at the end.", [(True,), step, lowest, (pr[1][2] > lowest, pr[1][2])])


def sharpness_claims(s):
    n, rho = s.query_heads, s.numbers(r"rank correlation of (\S+) \(95 % interval (\S+) to (\S+),")
    below = [layer for layer in range(s.layers) if s.above[layer] < 0]
    negative = sum(value < 0 for value in s.rho)
    table = [abs(interval(value, n)[1] - above) for value, above in zip(s.rho, s.above)]
    wider = [interval(value, s.key_heads)[1] - interval(value, n)[1] for value in s.rho]
    spans = [float(high) - float(low) for low, high in (row["range of its heads"].split(" to ") for row in s.table("range of its heads"))]
    ratio = s.growth("qk_ratio")
    apart, heads = int(ratio["grew"]) + int(ratio["shrank"]), int(ratio["heads"])
    start = {row["norm at start"] for row in s.table("norm at start")}
    yield "Over [all] heads ρ of key norm and entropy is # (# % interval # to #).", [(True,), rho[0], 95, *interval(rho[0], s.layers * n)]
    yield "Were the # layers the units, the [same] ρ would have the interval # to #.", [s.layers, (True,), *interval(rho[0], s.layers)]
    # Both norms start at sqrt(d_k), so the growth of their ratio is the ratio at the end.
    yield ("Key norm and query norm are [nearly one variable] here: at the end they are [within] a factor of # of [each] other in # of # "
           "heads.",
           [(apart < 0.1 * heads and len(start) == 1, apart, start), (True,), s.numbers(r"mean growth is at least ([\d.]+)")[0], (True,),
            heads - apart, heads])
    yield "So the # is [about both, and about] depth.", [rho[0], (apart < 0.1 * heads and spearman(s.norm, list(range(s.layers))) > 0.8, s.norm)]
    yield "Inside single layers # of # ρ are [negative], from # to #.", [negative, s.layers, (True,), min(s.rho), max(s.rho)]
    yield ("Their Fisher mean (tanh of the mean of atanh ρ) is #, with a # % interval over layers of # to #.",
           [fisher_mean(s.rho), 95, *fisher_interval(s.rho)])
    yield ("It can[not] be compared with the # as it is: the key norms of a layer's heads span # on average, the norms of the layers #, and a "
           "[narrow range by itself brings a correlation nearer to #].",
           [(True,), rho[0], statistics.fmean(spans), max(s.norm) - min(s.norm),
            (max(spans) < (max(s.norm) - min(s.norm)) / 4, spans), 0])
    yield "# of # intervals of single layers lie [below] #.", [len(below), s.layers, (True,), 0]
    yield ("This count says [little about] the layers: with # heads a # % interval excludes # [only] where |ρ| is [above] #.",
           [(least_rho(n) > 0.5, least_rho(n)), n, 95, 0, (max(table) < 0.01, table), (True,), least_rho(n)])
    yield "The # query heads of a layer read # key heads, so their norms come in [equal pairs].", [n, s.key_heads, (n == 2 * s.key_heads, n)]
    yield ("With # heads instead of # [each] of these intervals would be [wider].", [s.key_heads, n, (True,), (min(wider) > 0, wider)])
    yield "# heads can show a [strong] relation, as in layers #, # and #.", [n, (max(s.rho[layer] for layer in below) < -0.7, below), *below]


def role_claims(s, context):
    found = roles(HERE / "role_map.png", s.layers, s.query_heads)
    yield ("By the built-in definition (roles.md) # heads are syntactic gatherers (layers # to # and #), # semantic retrieval (layers # "
           "to # and #) and # previous-token heads (layer #); # are mixed.",
           [len(found["gatherer"]), *range_and_rest(found["gatherer"]), len(found["retrieval"]), *range_and_rest(found["retrieval"]),
            len(found["previous"]), *set(found["previous"]), len(found["mixed"])])
    yield "[No] head is a static sink or an induction head.", [(not found["sink"] + found["induction"], found)]
    vocabulary = context.preset("of_88m")["vocabulary"]
    yield ("The probe takes random tokens from the preset's vocabulary of #, and the tokenizer of the text has # of them.",
           lambda: [vocabulary, context.corpus()[1]])
    yield ("So [about] # [thirds] of the tokens of this probe are tokens that the model [never] saw in training.",
           lambda: [(True,), round(3 * (1 - context.corpus()[1] / vocabulary)), (True,), (True,)])


def readme_claims(context):
    s = Summary(HERE / "summary.md")
    minutes, seconds = map(int, re.search(r"(\d+) min (\d+) s", (HERE / "README.md").read_text()).groups())
    rho, inside = s.numbers(r"rank correlation of (\S+) \(95")[0], fisher_mean(s.rho)
    yield ("# minutes on one H200 train an # M parameter model on # M tokens of English text and measure its # query heads on the way "
           "(docs/studies/heads_88m, one seed).",
           [round(minutes + seconds / 60), context.millions_of_parameters("of_88m"), tokens(s, context) / 1e6, s.layers * s.query_heads])
    spans = [float(high) - float(low) for low, high in (row["range of its heads"].split(" to ") for row in s.table("range of its heads"))]
    yield ("Over [all] heads a [high] key norm goes with [sharp] attention (rank correlation #); inside single layers, where norms [differ "
           "less], it is # on average.", [(True,), (rho < 0, rho), (True,), rho, (max(spans) < max(s.norm) - min(s.norm), spans), inside])
