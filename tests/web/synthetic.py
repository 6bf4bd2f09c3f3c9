"""Writes a report page with made-up runs, in the format of src/page/README.md, without the program.

It is an independent writer of the format: the browser tests compare what the page shows with the numbers made here.
`python3 synthetic.py page.html --layers 32 --heads 32 --key-heads 8 --moments 300` writes one for a look.
"""
import argparse
import base64
import hashlib
import html
import json
import math
import os
import pathlib
import re
import string
import subprocess
import tempfile
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]

VIRIDIS = ["#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"]


def theme(name):
    """The colours of src/figures/theme.cpp, read from there."""
    source = (ROOT / "src/figures/theme.cpp").read_text()
    body = re.search(r'\.name = "%s",(.*?)\n  };' % name, source, re.S).group(1)
    colours = {}
    for key, value in re.findall(r"\.(\w+) = (\{.*?\}|\"[^\"]*\"|viridis)", body, re.S):
        found = re.findall(r'"(#\w+)"', value)
        colours[key] = VIRIDIS if value == "viridis" else found if value[0] == "{" else found[0]
    return colours


METRICS = [
    ("k_norm", "norm", "k", "", "mean over tokens of the key's norm"),
    ("k_max_abs", "outlier", "k", "", "largest component of all keys"),
    ("k_top_dim", "outlier", "k", "index", "dimension that holds the most energy"),
    ("k_pr", "rank", "k", "dimensions", "participation ratio of the singular values"),
    ("k_cosine", "redundancy", "k", "", "mean cosine of all pairs of distinct keys"),
    ("q_norm", "norm", "q", "", "mean over tokens of the query's norm"),
    ("entropy", "attention", "q", "nats", "entropy of the attention, mean over rows"),
    ("max_logit", "attention", "q", "", "largest scaled score of a causal pair"),
    ("sink", "attention", "q", "", "mean attention to the first token"),
    ("previous", "attention", "q", "", "mean attention to the token before"),
    ("self", "attention", "q", "", "mean attention to the token itself"),
    ("induction", "induction", "q", "", "attention to what followed the token's first occurrence; probes only"),
]
# What values can be held against: within the values, and far above them.
LEVELS = {
    "sink": [{"value": 0.03, "text": "uniform attention 0.03"}, {"value": 0.3, "text": "static sink ≥ 0.3", "role": True}],
    "entropy": [{"value": 3.0, "text": "uniform attention 3"}],
    "k_pr": [{"value": 400.0, "text": "Gaussian keys 400"}],
}
ROLES = [("induction", "I"), ("previous_token", "P"), ("static_sink", "S"), ("semantic_retrieval", "R")]
NO_ROLE = 255


def encode(values, bits, scale):
    """d12, d10, d8: values [head][moment] as bytes, and the numbers that undo it."""
    v = np.log(values) if scale == "log" else values
    finite = v[np.isfinite(v)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    top = 2**bits - 2
    span = high - low
    scaled = (v - low) / span * top if span > 0 else np.where(np.isfinite(v), 0.0, np.nan)
    codes = np.where(np.isfinite(v), np.rint(np.nan_to_num(scaled)), top + 1).astype(np.int64)
    steps = np.diff(codes, axis=1, prepend=0)
    if bits == 8:
        data = (steps % 256).astype(np.uint8).tobytes()
    else:
        steps[:, 1:] = np.where(steps[:, 1:] >= 0, 2 * steps[:, 1:], -2 * steps[:, 1:] - 1)
        data = (steps & 255).astype(np.uint8).tobytes() + (steps >> 8).astype(np.uint8).tobytes()
    return data, low, high, span / top / 2


class Blocks:
    def __init__(self):
        self.texts = {}

    def add(self, data):
        name = f"b{len(self.texts) + 1}"
        self.texts[name] = base64.b64encode(zlib.compress(data, 6)).decode()
        return name


def tracks(random, metric, kind, layers, heads, moments, d_k, shift):
    """Values [layer × heads][moment] that look like training: a fast rise, a turn at a third, heads that differ."""
    t = np.linspace(0, 1, moments)
    depth = np.repeat(np.linspace(0, 1, layers), heads)[:, None]
    own = random.normal(size=(layers * heads, 1))
    when = 0.25 + 0.25 * depth + 0.05 * own
    turn = 1 / (1 + np.exp(-(t - when) * 22))
    walk = np.cumsum(random.normal(size=(layers * heads, moments)), axis=1) / math.sqrt(moments) * 0.15
    loud = (random.random((layers * heads, 1)) < 0.15) * turn
    share = lambda z: 1 / (1 + np.exp(-z))
    return {
        "k_norm": 5.6 + turn * (2.5 * depth + 0.7 * own + shift) + 4 * loud + walk,
        "k_max_abs": np.exp(1.2 + turn * (1.2 * depth + 2.2 * loud + 0.3 * shift) + 0.4 * walk),
        "k_top_dim": np.floor(np.abs(own * 7 + 3 * np.round(turn * own))) % d_k,
        "k_pr": d_k * (0.62 - 0.3 * turn * (1 - 0.5 * depth) - 0.1 * loud) + walk * 2 - 1.5 * shift * turn,
        "k_cosine": share(-2.5 + turn * (2 * depth + 0.8 * own) + walk),
        "q_norm": 5.6 + turn * (1.5 * depth + 0.5 * own + shift) + walk,
        "entropy": 3.6 - turn * (1.3 - depth + 0.6 * own) + 0.4 * walk,
        "max_logit": 4 + 9 * turn * (0.4 + depth) + 2 * loud + walk,
        "sink": share(-4 + turn * (5 * loud + 2 * depth + own) + walk),
        "previous": share(-3 + 4 * turn * (own > 1.2) + walk),
        "self": share(-2.5 + own * turn + walk),
        "induction": share(-5 + 7 * turn * (own < -1.1) * (depth > 0.3) + walk),
    }[metric]


def role_or_none(role):
    return None if role == NO_ROLE else int(role)


def attention_bytes(random, tokens, sink):
    rows = []
    for i in range(tokens):
        score = random.normal(size=i + 1) * 1.2 - 0.12 * (i - np.arange(i + 1))
        score[0] += sink
        weight = np.exp(score - score.max())
        rows.append(np.rint(255 * np.sqrt(weight / weight.sum())).astype(np.uint8))
    return np.concatenate(rows).tobytes()


TEXT = ["The", " head", " looks", " back", " at", " the", " first", " token", ",", " then", " at", " the", " token", " before", ".", "\n",
        "A", " query", " asks", ";", " a", " key", " answers", ".", "\n\n", "\t", "⟨0xE2⟩", "é", " attention", " is", " a", " weighted", " mean",
        " of", " values", " —", " and", " most", " of", " it", " is", " wasted", " on", " the", " first", " token", "."]


def examples(random, pieces, heads):
    """Two places of the text for each head, in the order of their strength."""
    found = []
    for head in range(heads):
        for quantile in (0.99, 0.5):
            start = int(random.integers(0, len(pieces) - 12))
            weights = random.integers(0, 255, 12)
            weights[9:] = 0
            found.append({"head": head, "quantile": quantile, "strength": float(random.random()), "document": int(random.integers(0, 99)), "query": start + 8,
                          "key": start + int(weights.argmax()), "query_at": 8, "key_at": int(weights.argmax()),
                          "pieces": pieces[start:start + 12], "weights": weights.tolist()})
    return found


def run(blocks, truth, random, name, options, letter, same_heads, shift):
    layers, heads, key_heads, d_k = options.layers, options.heads, options.key_heads, 64
    step = np.unique(np.rint(np.concatenate([np.linspace(0, 10 * options.moments, options.moments - options.moments // 4),
                                             np.geomspace(1, 10 * options.moments, options.moments // 4)])).astype(int))
    moments = len(step)
    tokens = step * 4096
    series = []
    for metric, _, kind, _, _ in METRICS:
        count = key_heads if kind == "k" else heads
        values = tracks(random, metric, kind, layers, count, moments, d_k, shift)
        if metric == "induction" and moments > 1:
            values[:, 0] = np.nan
        if options.hostile and metric == "entropy":
            values[0, :] = np.nan
        scale = "log" if np.nanmin(values) > 0 and np.nanmax(values) / np.nanmin(values) > 100 and metric != "k_top_dim" else "linear"
        data, low, high, error = encode(values, options.bits, scale)
        last = [None if not math.isfinite(x) else float(x) for x in values[:, -1]]
        series.append({"metric": metric, "heads": count, "block": blocks.add(data), "codec": f"d{options.bits}", "bits": options.bits, "low": low,
                       "high": high, "scale": scale, "error": error, "last": last, **({"levels": LEVELS[metric]} if metric in LEVELS else {})})
        truth[(name, metric)] = values
    sink, induction = truth[(name, "sink")], truth[(name, "induction")]
    previous, entropy = truth[(name, "previous")], truth[(name, "entropy")]
    of_head = np.full((layers * heads, moments), NO_ROLE, np.uint8)
    of_head[entropy < 2.6] = 3
    of_head[sink > 0.3] = 2
    of_head[previous > 0.3] = 1
    of_head[np.nan_to_num(induction) > 0.3] = 0
    transitions = [{"step": int(step[m]), "tokens": int(tokens[m]), "layer": int(h // heads), "head": int(h % heads), "from": role_or_none(of_head[h, m - 1]),
                    "to": role_or_none(of_head[h, m])}
                   for m in range(1, moments) for h in np.flatnonzero(of_head[:, m] != of_head[:, m - 1])][:60]
    tests = [(0, "induction", 0.3), (1, "previous", 0.3), (2, "sink", 0.3), (2, "previous", 0.1), (3, "entropy", 2.6)]
    scores = []
    for h in range(layers * heads):
        last = [truth[(name, m)][h, -1] for _, m, _ in tests]
        scores.append({"layer": h // heads, "head": h % heads, "role": role_or_none(of_head[h, -1]), "since": int(step[moments // 2]),
                       "values": [float(value) if math.isfinite(value) else None for value in last]})
    rows = min(1000, 4 * moments)
    s = np.rint(np.linspace(1, max(1, step[-1]), rows)).astype(int)
    loss = 2.6 + 3 * np.exp(-6 * s / s[-1]) + random.normal(size=rows) * 0.04 + shift * 0.05
    high = loss + np.abs(random.normal(size=rows)) * 0.06
    high[rows // 2] += 1.8
    table = np.stack([s, s * 4096, loss, loss - np.abs(random.normal(size=rows)) * 0.06, high, 0.02 * np.minimum(1, (s[-1] - s) / (0.4 * s[-1])),
                      0.005 * np.minimum(1, (s[-1] - s) / (0.4 * s[-1])), 0.4 + np.abs(random.normal(size=rows)) * 0.1, 210000 + random.normal(size=rows) * 3000])
    gain = 1 + np.cumsum(random.normal(size=(2, layers, d_k, moments)), axis=-1) * 0.01
    gain_data, gain_low, gain_high, gain_error = encode(gain.reshape(-1, moments), 12, "linear")
    pieces = TEXT if not options.hostile else ["</script><img src=x onerror=alert(1)>"] + TEXT
    some = [[l, h] for l in range(min(layers, 4)) for h in range(min(heads, 4))]
    truth[(name, "attention")] = {(l, h): attention_bytes(random, len(pieces), 4.0 if h % 2 else 1.0) for l, h in some}
    every = max(1, moments // 20)
    return {
        "name": name, "label": f"{letter}, {name}", "command": "train", "status": "complete", "started": "2026-11-18T10:00:00Z", "ended": "2026-11-18T11:10:00Z",
        "condition": {"tag": {"A": "QK", "B": "QK_frozen", "C": "NoQK"}.get(letter, letter), "letter": letter}, "seed": 42, "layers": layers,
        "heads": {"q": heads, "k": key_heads}, "d_k": d_k, "same_heads": same_heads,
        "sources": [{"name": "probe", "step": step.tolist(), "tokens": tokens.tolist(), "of": moments,
                     "series": [one for one in series if options.metrics is None or one["metric"] in options.metrics]}],
        "roles": {"definition": "seeds-1", "source": "probe", "step": step.tolist(), "tokens": tokens.tolist(),
                  "of_head": {"block": blocks.add(np.ascontiguousarray(of_head.T).tobytes())}, "scores": scores, "transitions": transitions,
                  "tests": [{"role": role, "metric": m, "score": m, "minimum": minimum} for role, m, minimum in tests]},
        "steps": {"block": blocks.add(table.astype("<f4").tobytes()), "rows": rows,
                  "columns": ["step", "tokens", "loss", "loss_min", "loss_max", "lr", "adamw_lr", "grad_norm", "tokens_per_s"]},
        "probes": {"step": step[::every].tolist(), "tokens": tokens[::every].tolist(), "loss": [None] * len(step[::every]),
                   "val_loss": [None] + (2.7 + 3 * np.exp(-6 * step[every::every] / step[-1]) + shift * 0.05).tolist()},
        "levels": [{"name": "unigram entropy", "value": options.unigram}, {"name": "true entropy", "value": 2.55}],
        "events": [{"time": None, "step": int(x), "tokens": int(x) * 4096, "kind": kind, "text": text} for x, kind, text in
                   [(step[-1] // 3, "checkpoint", "checkpoint"), (step[-1] // 2, "spike", "loss rose by 1.8"), (step[-1] * 2 // 3, "checkpoint", "checkpoint"),
                    (step[-1] * 3 // 4, "resume", "resumed after a stop"), (step[-1], "end", "complete")]],
        "gains": {"block": blocks.add(gain_data), "codec": "d12", "bits": 12, "low": gain_low, "high": gain_high, "scale": "linear", "error": gain_error, "step": step.tolist(), "tokens": tokens.tolist(), "layers": layers, "d_k": d_k},
        "attention": {"texts": [{"pieces": pieces}], "heads": some,
                      "blocks": [[blocks.add(truth[(name, "attention")][(l, h)]) for l, h in some]]} if options.attention else None,
        "examples": {"blocks": {str(layer): blocks.add(json.dumps(examples(random, pieces, heads)).encode()) for layer in range(min(layers, 4))}},
        "plasticity": None, "comparison": None, "surgery": None}


def measured_plasticity(random, options):
    """A run without tracks."""
    places = [(layer, head) for layer in range(options.layers) for head in range(options.heads)]
    ap = random.random(len(places)) * 0.5
    return {"name": "plasticity", "label": "plasticity", "command": "plasticity", "status": "complete", "condition": None, "seed": None, "layers": options.layers,
            "heads": {"q": options.heads, "k": options.key_heads}, "d_k": 64, "same_heads": 99, "sources": [], "roles": None, "steps": None, "probes": None,
            "levels": None, "events": None, "gains": None, "attention": None, "examples": None, "comparison": None, "surgery": None,
            "plasticity": {"heads": {"layer": [p[0] for p in places], "head": [p[1] for p in places], "ap": ap.tolist(), "low": (ap - 0.05).tolist(),
                                     "high": (ap + 0.05).tolist()}, "cells": None}}


def by_layer(difference):
    return {"difference": difference.tolist(), "error": [0.2] * 6, "low": (difference - 0.4).tolist(), "high": (difference + 0.4).tolist()}


def study(random, tokens, more_effects):
    effects, over = [], {"tokens": tokens, "effects": {}, "conclusion": []}
    more = [(f"more_{i}", f"A − {i}", math.sin(i), 0.4) for i in range(more_effects)]
    for name, pair, d, e in [("gamma", "A − B", -0.1, 0.3), ("norm", "B − C", 1.9, 0.7), ("total", "A − C", 1.8, 0.8), *more]:
        effects.append({"name": name, "pair": pair, "difference": d, "standard_error": e / 2, "low": d - e, "high": d + e, "p_value": 0.02, "p_holm": 0.04,
                        "p_equivalence": 0.01, "seeds": 4, "outcome": "equivalent" if name == "gamma" else "positive",
                        "word": "does nothing" if name == "gamma" else "raises"})
        t = np.linspace(0, 1, len(tokens))
        line = d * t + random.normal(size=len(tokens)) * 0.05
        over["effects"][name] = {"difference": line.tolist(), "low": (line - e * t).tolist(), "high": (line + e * t).tolist()}
    over["conclusion"] = ["inconclusive"] * len(tokens)
    return {"tau": 1, "conclusion": "norm", "sentence": "Normalisation preserves rank; training γ does nothing.", "descriptive": False, "kill_criterion": True,
            "kill_supported": True, "seeds": ["42", "43", "44", "45"],
            "conditions": [{"tag": tag, "letter": letter, "name": name, "mean": m, "low": m - 0.6, "high": m + 0.6, "collapse": 20 - m,
                            "values": (m + random.normal(size=4) * 0.4).tolist()} for tag, letter, name, m in
                           [("QK", "A", "QK-Norm, γ learned", 11.2), ("QK_frozen", "B", "QK-Norm, γ frozen", 11.3), ("NoQK", "C", "no QK-Norm", 9.4)]],
            "effects": effects, "over_time": over,
            "by_layer": {e["name"]: by_layer(e["difference"] + random.normal(size=6) * 0.3) for e in effects},
            "measures": [{"name": "k_pr_centred", "effects": {e["name"]: e for e in effects}, "holds": True}]}


def bundle(folder):
    """report.js and style.css, as cmake/Web.cmake makes them."""
    command = ["esbuild", "web/report.ts", "web/style.css", "--bundle", "--minify", "--target=es2020", "--format=iife", "--charset=utf8",
               "--log-level=warning", f"--outdir={folder}"]
    nodes = os.environ.get("HEADSCOPE_NODE_MODULES", "/usr/share/nodejs")
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NODE_PATH": nodes})
    return (pathlib.Path(folder) / "report.js").read_text(), (pathlib.Path(folder) / "style.css").read_text()


def sha(text):
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def static_html(index, truth):
    view = lambda name: f'<div class="view" data-view="{name}"></div>'
    if not index["runs"]:
        return f"""<header><h1>{html.escape(index['title'])}</h1><button id="theme" type="button">Theme</button></header>{view('controls')}
<main><section id="compare"><h2>Compare</h2>{view('compare')}</section></main>"""
    first = next(run for run in index["runs"] if run["sources"])
    head_rows = []
    named = lambda role: "–" if role is None else index["roles"][role]["text"]
    for layer in range(first["layers"]):
        for head in range(first["heads"]["q"]):
            h = layer * first["heads"]["q"] + head
            cells = "".join(f"<td>{truth[(first['name'], m)][h, -1]:.3g}</td>" for m in ("entropy", "sink", "previous", "induction"))
            role = named(first["roles"]["scores"][h]["role"])
            head_rows.append(f'<tr data-head="q{layer}.{head}"><th scope="row">L{layer}H{head}</th>{cells}<td>{role}</td></tr>')
    table = ('<div class="frame"><table class="heads"><caption>Heads at the last moment</caption><thead><tr><th scope="col">head</th>'
             + "".join(f'<th scope="col">{m}</th>' for m in ("entropy", "sink", "previous", "induction", "role"))
             + "</tr></thead><tbody>" + "".join(head_rows) + "</tbody></table></div>")
    facts = "".join(f"<div><dt>{k}</dt><dd>{html.escape(v)}</dd></div>" for k, v in
                    [("status", "complete"), ("model", f"{first['layers']} layers × {first['heads']['q']} heads, d_k 64"), ("tokens", "12.3 M"),
                     ("loss", "2.612, validation 2.71"), ("seeds", "42"), ("device", "cpu"), ("version", "0.1.0"), ("date", "2026-11-18")])
    answers = "".join(f'<article class="answer"><h3>{q}</h3><p>{a}</p><details><summary>By which rule?</summary><p class="rule">{r}</p></details><button type="button" data-go="{go}">Show</button></article>'
                      for q, a, r, go in [
        ("Do key norms split?", "Differences between heads make 41 % of the variance of the key norm at the last step (0 % at step 0).",
         "More than half of the variance between heads, and a dip test below 5 %.", "m=k_norm&amp;h=1.1,2.0"),
        ("Does rank collapse?", "The mean participation ratio falls from 39.7 to 24.1 of 64 dimensions.", "A fall of a third or more.", "m=k_pr"),
        ("Are there sinks?", "Seven of the heads give the first token more than 30 % of their attention.", "sink ≥ 0.3 at the last moment.", "m=sink")])
    conditions = "".join(f'<tr><th scope="row">{c["letter"]}</th><td>{c["name"]}</td><td>{c["mean"]:.2f}</td></tr>' for c in (index["study"] or {}).get("conditions", []))
    changes = "".join(f'<tr><td>{t["step"]}</td><td>L{t["layer"]}H{t["head"]}</td><td>{named(t["from"])}</td><td>{named(t["to"])}</td></tr>'
                      for t in first["roles"]["transitions"])
    metrics = "".join(f'<tr><th scope="row">{m["name"]}</th><td>{html.escape(m["meaning"])}</td></tr>' for m in index["metrics"])
    nearest = '<div class="frame"><table class="nearest"><caption>Nearest heads</caption><tbody><tr data-head="q2.3"><th scope="row">induction</th><td>L2H3</td></tr></tbody></table></div>'
    return f"""<header><h1>{html.escape(index['title'])}</h1><p class="verdict">Key rank falls in every layer; seven heads became sinks.</p>
<dl class="facts">{facts}</dl><button id="theme" type="button">Dark</button></header>
{view('controls')}
<main>
<section id="what"><h2>What happened?</h2>{view('loss')}{answers}</section>
<section id="heads"><h2>Which heads?<span class="of-run"></span></h2>{view('map')}{view('scatter')}{nearest}{table}</section>
<section id="time"><h2>When?</h2>{view('curves')}{view('strips')}{view('role-timeline')}
<div class="frame"><table class="transitions"><caption>Changes of role</caption><thead><tr><th scope="col">step</th><th scope="col">head</th><th scope="col">from</th><th scope="col">to</th></tr></thead><tbody>{changes}</tbody></table></div></section>
<section id="why"><h2>Why?</h2>{view('cards')}</section>
<section id="compare"><h2>Compare</h2>{view('compare')}<div class="frame"><table class="conditions"><caption>Conditions</caption><thead><tr><th scope="col">letter</th><th scope="col">name</th><th scope="col">mean</th></tr></thead><tbody>{conditions}</tbody></table></div></section>
<section id="trust"><h2>Can I trust it?</h2><div class="frame"><table class="metrics"><caption>Metrics</caption><thead><tr><th scope="col">name</th><th scope="col">meaning</th></tr></thead><tbody>{metrics}</tbody></table></div></section>
</main>"""


def options_of(**given):
    defaults = dict(layers=4, heads=4, key_heads=2, moments=40, runs=2, bits=12, attention=True, study=True, hostile=False, other_seed=False, metrics=None, more_effects=0, plasticity_first=False, damaged=(), unigram=3.9,
                    seed=1)
    return argparse.Namespace(**{**defaults, **given})


def write(path, web=None, **given):
    """Writes the page; returns index and the values {(run, metric): [head][moment]}."""
    options = options_of(**given)
    random = np.random.default_rng(options.seed)
    blocks, truth = Blocks(), {}
    evil = "</script><img src=x onerror=alert(1)>"
    names = [evil if options.hostile else "first (tiny)", "frozen gain", "no norm", *(f"run {i}" for i in range(3, options.runs))][: options.runs]
    runs = [run(blocks, truth, random, name, options, string.ascii_uppercase[i], i if options.other_seed else 0, 0.4 * i) for i, name in enumerate(names)]
    if options.plasticity_first:
        runs.insert(0, measured_plasticity(random, options))
    tokens = [4096 * step for step in range(0, 10 * options.moments, 10 * max(1, options.moments // 20))]
    index = {"format": 1, "version": "0.1.0", "created": "2026-11-18T12:00:00Z", "title": names[0] if names else "a study", "themes": {n: theme(n) for n in ("light", "dark")},
             "metrics": [{"name": n, "group": g, "kind": k, "unit": u, "meaning": evil if options.hostile and n == "sink" else m, "averaged": n != "k_top_dim",
                          "index": n == "k_top_dim"} for n, g, k, u, m in METRICS],
             "roles": [{"name": n, "letter": l, "text": n.replace("_", " ")} for n, l in ROLES],
             "runs": runs, "study": study(random, tokens, options.more_effects) if options.study else None,
             "reduced": {"bits": options.bits, "moments": options.moments, "left_out": [], "max_size": 5, "exact": False}}
    if web is None:
        with tempfile.TemporaryDirectory() as folder:
            web = bundle(folder)
    script, style = web
    policy = (f"default-src 'none'; script-src 'sha256-{sha(script)}'; style-src 'sha256-{sha(style)}'; img-src data: blob:; base-uri 'none'; "
              "form-action 'none'; require-trusted-types-for 'script'")
    text = json.dumps(index, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    for series in [one for run in runs[:1] for source in run["sources"] for one in source["series"]]:
        if series["metric"] in options.damaged:      # the second half of its block is lost
            kept = blocks.texts[series["block"]]
            blocks.texts[series["block"]] = kept[:len(kept) // 8 * 4]
    data = "\n".join(f'<script type="application/x-headscope" id="{name}">{value}</script>' for name, value in blocks.texts.items())
    pathlib.Path(path).write_text(f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>{html.escape(index['title'])} — headscope</title>
<style>{style}</style></head><body>
{static_html(index, truth)}
<script type="application/json" id="index">{text}</script>
{data}
<script>{script}</script>
</body></html>
""")
    return index, truth


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    for flag, value in [("layers", 4), ("heads", 4), ("key-heads", 2), ("moments", 40), ("runs", 2), ("bits", 12)]:
        parser.add_argument(f"--{flag}", type=int, default=value)
    for flag in ("hostile", "other-seed"):
        parser.add_argument(f"--{flag}", action="store_true")
    arguments = vars(parser.parse_args())
    out = arguments.pop("out")
    write(out, **arguments)
    print(out, os.path.getsize(out))
