"""Decodes a report with Python's own zlib, base64 and HTML parser, and compares it with the tables of the run.

usage: python check_report.py REPORT.html RUN [MEGABYTES]
"""

from __future__ import annotations

import array
import base64
import hashlib
import json
import math
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

FORBIDDEN = {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "source", "svg"}
NO_ROLE = 255


class Page(HTMLParser):
    """Elements, text and scripts of a page, as a browser without script sees it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self.code: list[str] = []
        self.style = ""
        self.text = ""
        self.cells: dict[str, list[list[str]]] = {}  # of each table, by its class
        self._inside: tuple[str, dict[str, str | None]] | None = None
        self._table = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag in ("script", "style"):
            self._inside = (tag, attributes)
            if tag == "script" and "type" in attributes:
                self.blocks[str(attributes["id"])] = ""
            elif tag == "script":
                self.code.append("")
        if tag == "table":
            self._table = str(attributes["class"])
            self.cells.setdefault(self._table, [])
        if tag == "tr" and self._table:
            self.cells[self._table].append([])
        if tag in ("td", "th") and self._table:
            self.cells[self._table][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None
        if tag == "table":
            self._table = ""
            self.cells = {name: [[cell.strip() for cell in row] for row in rows] for name, rows in self.cells.items()}

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            self.text += data
            if self._table and self.cells[self._table] and self.cells[self._table][-1]:
                self.cells[self._table][-1][-1] += data
        elif self._inside[0] == "style":
            self.style += data
        elif "type" in self._inside[1]:
            self.blocks[str(self._inside[1]["id"])] += data
        else:
            self.code[-1] += data

    def sections(self) -> list[str]:
        return [str(attributes["id"]) for tag, attributes in self.tags if tag == "section"]

    @property
    def index(self) -> dict:
        return json.loads(self.blocks["index"])

    def bytes(self, block: str) -> bytes:
        return zlib.decompress(base64.b64decode(self.blocks[block], validate=True))

    def floats(self, block: str) -> list[float]:
        return array.array("f", self.bytes(block)).tolist()

    def columns(self, described: dict) -> dict[str, list[float]]:
        rows, values = described["rows"], self.floats(described["block"])
        return {name: values[i * rows : (i + 1) * rows] for i, name in enumerate(described["columns"])}

    def series(self, described: dict, moments: int) -> list[list[float]]:
        """[head][moment]; None where missing."""
        raw = self.bytes(described["block"])
        if described["codec"] == "f32":
            flat = [None if math.isnan(v) else v for v in array.array("f", raw)]
            return [flat[i : i + moments] for i in range(0, len(flat), moments)]
        bits = described["bits"]
        assert described["codec"] == f"d{bits}"
        n = len(raw) if bits == 8 else len(raw) // 2
        words = list(raw) if bits == 8 else [raw[i] | raw[n + i] << 8 for i in range(n)]
        low, high, top = described["low"], described["high"], 2**bits - 2
        heads = []
        for start in range(0, n, moments):
            code, values = 0, []
            for i, word in enumerate(words[start : start + moments]):
                if bits == 8:
                    code = (code + word) % 256
                elif i == 0:
                    code = word
                else:
                    code += word // 2 if word % 2 == 0 else -(word // 2) - 1
                assert 0 <= code <= top + 1
                value = low + code * (high - low) / top
                values.append(None if code == top + 1 else math.exp(value) if described["scale"] == "log" else value)
            heads.append(values)
        return heads


def check_alone(page: Page) -> None:
    """Nothing is fetched, the policy allows the page's own code and style alone, and a reader without scripts is told."""
    assert [tag for tag, _ in page.tags].count("noscript") == 1 and "Pictures and controls need scripts" in page.text
    for tag, attributes in page.tags:
        assert tag not in FORBIDDEN, tag
        for name, value in attributes.items():
            assert name not in ("src", "srcset", "action", "data", "style"), (tag, name)
            assert not name.startswith("on"), (tag, name)
            assert name != "href" or str(value).startswith("#"), (tag, value)
    assert len(page.code) == 1
    policy = next(str(a["content"]) for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    for kind, content in (("script", page.code[0]), ("style", page.style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy, kind
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "url(" not in page.style and "@import" not in page.style
    assert not set("<\u2028\u2029") & set("".join(page.blocks.values()))


Values = dict[tuple[str, str], dict[tuple[int, int, int], float]]


def table_values(run: Path) -> tuple[Values, dict[str, dict[int, int]]]:
    """By source and metric, then step, layer and head; and tokens by source and step."""
    values: Values = {}
    tokens: dict[str, dict[int, int]] = {}
    table = pq.read_table(run / "heads.parquet").to_pydict()
    for step, seen, source, layer, head, metric, value in zip(
        *(table[name] for name in ("step", "tokens", "source", "layer", "head", "metric", "value")), strict=True
    ):
        values.setdefault((source, metric), {})[step, layer, head] = value
        tokens.setdefault(source, {})[step] = seen
    return values, tokens


def check_series(page: Page, run: dict, folder: Path, *, all_metrics: bool = True, exact_last: bool = True) -> int:
    """Every value within its stated error; the last moment equal. Returns how many values there were."""
    values, tokens = table_values(folder)
    seen = set()
    compared = 0
    for source in run["sources"]:
        steps, of_source = source["step"], tokens[source["name"]]
        assert steps == sorted(steps) and set(steps) <= set(of_source)
        assert steps[0] == min(of_source) and steps[-1] == max(of_source)
        assert source["tokens"] == [of_source[step] for step in steps]
        assert source["of"] == len(of_source)
        for series in source["series"]:
            seen.add((source["name"], series["metric"]))
            truth = values[source["name"], series["metric"]]
            decoded = page.series(series, len(steps))
            assert len(decoded) == run["layers"] * series["heads"] == len(series["last"])
            for place, curve in enumerate(decoded):
                layer, head = divmod(place, series["heads"])
                assert len(curve) == len(steps)
                for step, value in zip(steps, curve, strict=True):
                    expected = truth.get((step, layer, head), math.nan)
                    assert (value is None) == (not math.isfinite(expected)), (series["metric"], step, layer, head)
                    if value is None:
                        continue
                    distance = (
                        abs(math.log(value) - math.log(expected)) if series["scale"] == "log" else abs(value - expected)
                    )
                    assert distance <= series["error"], (series["metric"], step, layer, head, value, expected)
                    compared += 1
                expected = truth.get((steps[-1], layer, head), math.nan)
                last = series["last"][place]
                if not math.isfinite(expected):
                    assert last is None
                elif exact_last:
                    assert last == expected, (series["metric"], layer, head)
                else:
                    assert array.array("f", [last]) == array.array("f", [expected])
    known = {metric["name"] for metric in page.index["metrics"]}
    if all_metrics:
        assert seen == {key for key in values if key[0] in {s["name"] for s in run["sources"]}}, seen ^ set(values)
    assert {metric for _, metric in seen} <= known
    return compared


def check_steps(page: Page, run: dict, folder: Path) -> None:
    if run["steps"] is None:
        assert not (folder / "steps.parquet").exists()
        return
    table = pq.read_table(folder / "steps.parquet").to_pydict()
    columns = page.columns(run["steps"])
    n = len(table["step"])
    assert run["steps"]["rows"] == min(n, 1000)
    ends = [(i + 1) * n // run["steps"]["rows"] for i in range(run["steps"]["rows"])]
    first = 0
    for row, end in enumerate(ends):
        losses = [v for v in table["loss"][first:end] if math.isfinite(v)]
        assert columns["step"][row] == table["step"][end - 1]
        for name, expected in (("loss", table["loss"][end - 1]), ("grad_norm", table["grad_norm"][end - 1])):
            assert array.array("f", [columns[name][row]]) == array.array("f", [expected]) or math.isnan(expected)
        if losses:
            assert columns["loss_min"][row] == array.array("f", [min(losses)])[0]
            assert columns["loss_max"][row] == array.array("f", [max(losses)])[0]
        first = end


def check_roles(page: Page, run: dict, folder: Path) -> None:
    """The labels at the end as roles.parquet has them, the changes as role_transitions.parquet."""
    if not (folder / "roles.parquet").exists():
        return
    names = [role["name"] for role in page.index["roles"]]
    roles = run["roles"]
    heads = run["layers"] * run["heads"]["q"]
    labels = page.bytes(roles["of_head"]["block"])
    assert len(labels) == heads * len(roles["step"])
    table = pq.read_table(folder / "roles.parquet").to_pydict()
    place_of = {place: row for row, place in enumerate(zip(table["layer"], table["head"], strict=True))}
    for layer, head, role in zip(table["layer"], table["head"], table["role"], strict=True):
        place = layer * run["heads"]["q"] + head
        label = labels[len(labels) - heads + place]
        assert (names[label] if label != NO_ROLE else "mixed") == role
        score = roles["scores"][place]
        assert (score["layer"], score["head"]) == (layer, head)
        assert (names[score["role"]] if score["role"] is not None else "mixed") == role
        row = place_of[layer, head]
        for test, value in zip(roles["tests"], score["values"], strict=True):
            expected = table[test["score"]][row]
            assert value is None if math.isnan(expected) else abs(value - expected) < 1e-6 and (value >= test["minimum"]) == (expected >= test["minimum"])
        failed = {test["role"] for test, value in zip(roles["tests"], score["values"], strict=True) if value is None or value < test["minimum"]}
        first = next((name for i, name in enumerate(names) if i not in failed), "mixed")
        assert first == role, (layer, head, first, role)
    changes = pq.read_table(folder / "role_transitions.parquet").to_pylist()
    name = lambda place: "mixed" if place is None else names[place]  # noqa: E731
    shown = [(t["layer"], t["head"], t["step"], name(t["from"]), name(t["to"])) for t in roles["transitions"]]
    assert sorted(shown) == sorted((t["layer"], t["head"], t["step"], t["from"], t["to"]) for t in changes)


SEEDS = {  # configs/roles/seeds.yaml
    "induction": {"induction": 0.5},
    "previous_token": {"previous": 0.5},
    "current_token": {"self": 0.5},
    "static_sink": {"focused": 0.5, "constant": 0.5, "sink": 0.3, "axis_aligned": 0.25, "high_norm": 0.474},
    "semantic_retrieval": {"focused": 0.5, "query_dependent": 0.5, "high_norm": 0.526},
    "syntactic_gatherer": {"broad": 0.7, "low_norm": 0.526, "consistent": 0.7},
}


def check_nearest(page: Page, folder: Path) -> None:
    """The table of the nearest heads against roles.parquet, role_timeline.parquet and role_transitions.parquet."""
    heads = pq.read_table(folder / "roles.parquet").to_pylist()
    changes = pq.read_table(folder / "role_transitions.parquet").to_pylist()
    steps = pq.read_table(folder / "role_timeline.parquet")["step"].to_pylist()
    rows = {row[0]: row for row in page.cells["nearest"][1:]}
    assert list(rows) == [name.replace("_", " ") for name in SEEDS]
    for role, minimums in SEEDS.items():
        _, count, name, passes, fails, since = rows[role.replace("_", " ")]
        have = [head for head in heads if head["role"] == role]
        assert int(count) == len(have)
        measured = [head for head in heads if all(math.isfinite(head[score]) for score in minimums)]
        if not measured:
            assert name == since == "–" and fails.startswith("not measured")
            continue
        order = []
        for head in have or measured:
            gaps = [max(0, least - head[score]) for score, least in minimums.items()]
            order.append((max(gaps), sum(gaps), -math.prod(head[score] for score in minimums), head["layer"], head["head"], head))
        best = min(order)[-1]
        assert name == f"L{best['layer']}H{best['head']}", (role, name, best)
        passed = {score for score, least in minimums.items() if best[score] >= least}
        other = f"counts as {best['role'].replace('_', ' ')}, which comes first"
        assert {text.split(" ")[0] for text in passes.split(", ") if text != "–"} == passed
        for text in fails.split(", ") if fails not in ("–", other) else []:
            score, value, _, least, _, _, gap = text.rstrip(")").split(" ")
            assert score not in passed and float(least) == minimums[score]
            assert abs(float(value) - best[score]) < 5e-4 and math.isclose(float(gap), minimums[score] - best[score], rel_tol=5e-3)
        assert fails == (other if not have else "–") or len(passed) < len(minimums)
        own = [c["step"] for c in changes if (c["layer"], c["head"]) == (best["layer"], best["head"])]
        assert since == (str(max(own, default=min(steps))) if have else "–"), (role, since, own)


def uniform_attention(length: int) -> dict[str, float]:
    """The metrics of docs/measurements.md of a head that attends to all keys alike, from the matrix itself."""
    a = np.tril(np.ones((length, length))) / np.arange(1, length + 1)[:, None]
    entropy = -np.sum(a * np.log(np.where(a > 0, a, 1)), axis=1)
    rows = np.arange(1, length)
    mean_row = a.mean(axis=0)
    of_mean_row = -np.sum(mean_row * np.log(mean_row))
    n = min(64, length // 2)
    second = np.arange(n, 2 * n)  # rows of the tokens that come the second time
    return {
        "entropy": entropy.mean(),
        "entropy_norm": (entropy[1:] / np.log(rows + 1)).mean(),
        "entropy_seed": np.log(min(length, 128)),
        "sink": a[rows, 0].mean(),
        "previous": a[rows, rows - 1].mean(),
        "self": np.diag(a).mean(),
        "constancy": 1 - (of_mean_row - entropy.mean()) / of_mean_row,
        "consistency": 1,
        "max_logit": 0,
        "induction": np.mean([1 / (row + 1) for row in second]),
        "previous_random": np.mean([1 / (row + 1) for row in second]),
    }


def gaussian_keys(n: int, d: int) -> dict[str, float]:
    """The mean over draws of n keys of d independent components."""
    ranks = []
    rng = np.random.default_rng(7)
    for _ in range(max(20, 20_000 // n)):
        keys = rng.normal(size=(n, d))
        s = np.linalg.svd(keys, compute_uv=False)
        share = s / s.sum()
        sizes = np.abs(keys)
        axis = (sizes.max(axis=1) / np.linalg.norm(keys, axis=1)).mean()
        vector = ((keys**2).sum(axis=1) ** 2 / (keys**4).sum(axis=1)).mean()
        ranks.append((s.sum() ** 2 / (s**2).sum(), np.exp(-(share * np.log(share)).sum()), (s**2).sum() ** 2 / (s**4).sum(), axis, vector))
    return dict(zip(("k_pr", "k_erank", "k_pr_eig", "k_axis", "k_pr_vector"), np.mean(ranks, axis=0), strict=True)) | {"k_cosine": 0}


def role_bounds(d: int) -> dict[str, list[tuple[str, float]]]:
    """What the roles of configs/roles/seeds.yaml ask of single metrics."""
    flat = 1 / math.sqrt(d)
    return {
        "sink": [("static sink ≥", 0.3)],
        "previous": [("previous token ≥", 0.5)],
        "self": [("current token ≥", 0.5)],
        "induction": [("induction ≥", 0.5)],
        "entropy_norm": [("static sink, semantic retrieval ≤", 0.5), ("syntactic gatherer ≥", 0.7)],
        "constancy": [("static sink ≥", 0.5), ("semantic retrieval ≤", 0.5)],
        "consistency": [("syntactic gatherer ≥", 0.7)],
        "k_axis": [("static sink ≥", flat + 0.25 * (1 - flat))],
    }


def check_levels(run: dict, length: int, d: int, tokens: int) -> None:
    """A series has the value of a head that does nothing where it is known, and the bounds of roles."""
    uniform, gaussian, bounds = uniform_attention(length), gaussian_keys(tokens, d), role_bounds(d)
    for source in run["sources"]:
        for series in source["series"]:
            metric, levels = series["metric"], series.get("levels", [])
            if metric in uniform or metric in gaussian:
                expected = uniform.get(metric, gaussian.get(metric))
                # Ranks are by a law for many keys and dimensions, directions are drawn: about one percent.
                assert math.isclose(levels[0]["value"], expected, rel_tol=1e-6 if metric in uniform else 0.03, abs_tol=1e-9), (metric, levels, expected)
                name = "uniform attention" if metric in uniform else "Gaussian keys"
                assert levels[0]["text"] == f"{name} {levels[0]['value']:.3g}" and "role" not in levels[0], levels[0]
                levels = levels[1:]
            elif metric == "k_stable_rank":  # its largest singular value is that of the law's edge
                levels = levels[1:]
            shown = [(level["text"].rsplit(" ", 1)[0], level["value"]) for level in levels]
            wanted = bounds.get(metric, [])
            assert [text for text, _ in shown] == [text for text, _ in wanted], (metric, shown)
            for (_, value), (_, least) in zip(shown, wanted, strict=True):
                assert math.isclose(value, least, rel_tol=1e-6)
            assert all(level["role"] for level in levels)


def check(report: Path, run: Path, megabytes: float = 5) -> Page:
    text = report.read_text(encoding="utf-8")
    assert report.stat().st_size <= megabytes * 1e6, report.stat().st_size
    page = Page(text)
    check_alone(page)
    first = page.index["runs"][0]
    assert check_series(page, first, run) > 0
    check_steps(page, first, run)
    check_roles(page, first, run)
    return page


if __name__ == "__main__":
    check(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]) if len(sys.argv) > 3 else 5)
    print("as the tables say")
