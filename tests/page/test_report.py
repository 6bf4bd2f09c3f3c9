"""`headscope report` as a user meets it: every page is decoded by check_report.py and compared with the run's tables.

usage: python test_report.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import check_report
from check_report import Page
from synthetic import make_run, manifest, write_parts

PROGRAM = ""
WRONG_USAGE = 2
SMALL = "model.layers=2 model.d_model=16 model.heads=2 model.kv_heads=1 model.d_k=8 model.d_ff=32 train.seq_len=16".split()
SMALL += "train.batch=2 train.tokens=960 train.validation_batches=1".split()
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\"'&"


class Reports(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def report(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PROGRAM, "report", *map(str, arguments)], capture_output=True, text=True, errors="replace", cwd=self.folder, check=False
        )
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def page(self, run: Path, *arguments: object) -> Page:
        self.report(run, *arguments)
        text = (run / "report.html").read_text(encoding="utf-8")
        page = Page(text)
        check_report.check_alone(page)
        return page

    def refused(self, *arguments: object) -> str:
        error = self.report(*arguments, code=WRONG_USAGE).stderr
        self.assertEqual(error.count("\n"), 1, error)
        return error


class Values(Reports):
    def test_series_and_steps_are_those_of_the_tables(self) -> None:
        run = make_run(self.folder / "run", moments=40, parts=3, updates=2500)
        self.report(run)
        check_report.check(run / "report.html", run)

    def test_a_training_and_its_inspection(self) -> None:
        run = self.folder / "trained"
        train = [PROGRAM, "train", "--out", run, "--track-every", "2", "--probe-every", "3", "--set", *SMALL]
        subprocess.run(train, capture_output=True, check=True)
        self.report(run)
        page = check_report.check(run / "report.html", run)
        self.assertEqual({s["name"] for s in page.index["runs"][0]["sources"]}, {"probe", "train"})
        check_report.check_levels(page.index["runs"][0], length=16, d=8, tokens=32)
        gains = page.index["runs"][0]["gains"]
        table = pq.read_table(run / "gamma.parquet").to_pylist()
        decoded = page.series(gains, len(gains["step"]))
        for row in table:
            if row["step"] not in gains["step"]:
                continue
            kind = "qk".index(row["kind"])
            for i, value in enumerate(row["vector"]):
                place = (kind * gains["layers"] + row["layer"]) * gains["d_k"] + i
                shown = decoded[place][gains["step"].index(row["step"])]
                self.assertLessEqual(abs(shown - value), gains["error"])
        probes = pq.read_table(run / "probes.parquet").to_pydict()
        shown = page.index["runs"][0]["probes"]
        self.assertEqual(shown["step"], probes["step"])
        for value, expected in zip(shown["val_loss"], probes["val_loss"], strict=True):
            self.assertTrue(math.isnan(expected) if value is None else abs(value - expected) < 1e-6)
        summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
        for question in ("norm_split", "norm_entropy", "rank_collapse", "growth", "key_evolution"):
            self.assertIn(summary[question]["sentence"], page.text)
        rows = page.cells["heads"]
        values = {
            (row["layer"], row["head"]): row["value"]
            for row in pq.read_table(run / "heads.parquet").to_pylist()
            if (row["source"], row["metric"], row["step"]) == ("probe", "entropy", max(probes["step"]))
        }
        column = rows[0].index("entropy")
        self.assertEqual(len(rows), 1 + len(values))
        for row in rows[1:]:
            layer, head = map(int, row[0][1:].split("H"))
            # As many digits in all rows: four of the typical value.
            digits = 3 - math.floor(math.log10(statistics.median(values.values())))
            self.assertEqual(row[column], f"{values[layer, head]:.{digits}f}")
        self.assertNotIn("`", page.text)
        self.assertIn("q_norm / k_norm of its key head", page.text)  # formulas have names in <code>

    def test_roles_and_their_changes_are_those_of_the_tables(self) -> None:
        run = make_run(self.folder / "run", moments=60)
        subprocess.run([PROGRAM, "roles", run], capture_output=True, check=True)
        self.assertGreater(pq.read_table(run / "role_transitions.parquet").num_rows, 5)
        self.report(run)
        page = check_report.check(run / "report.html", run)
        changes = pq.read_table(run / "role_transitions.parquet").to_pylist()
        shown = [[f"L{c['layer']}H{c['head']}", str(c["step"]), f"{c['tokens']:,}", c["from"], c["to"]] for c in changes]
        self.assertEqual(sorted(page.cells["transitions"][1:]), sorted(shown))

    def test_nearest_heads_are_those_of_the_tables(self) -> None:
        kinds = set()
        for seed in range(6):  # some have heads with a role, some none, some heads that count as another role
            run = make_run(self.folder / f"run{seed}", layers=2, q=2 + seed % 3, k=1, moments=5, seed=seed)
            subprocess.run([PROGRAM, "roles", run], capture_output=True, check=True)
            page = self.page(run)
            check_report.check_nearest(page, run)
            kinds |= {"has" if row[1] != "0" else "other" if "counts as" in row[4] else "short" for row in page.cells["nearest"][1:]}
        self.assertEqual(kinds, {"has", "other", "short"})

    def test_a_role_that_was_not_measured_has_no_nearest_head(self) -> None:
        run = make_run(self.folder / "run")
        table = pq.read_table(run / "heads.parquet")
        shutil.rmtree(run / "heads.parquet")
        write_parts(run / "heads.parquet", table.filter(pc.not_equal(table["metric"], "induction")))
        subprocess.run([PROGRAM, "roles", run], capture_output=True, check=True)
        page = self.page(run)
        check_report.check_nearest(page, run)
        self.assertEqual(page.cells["nearest"][1], ["induction", "0", "–", "–", "not measured: induction", "–"])
        self.assertIn("Whether a head has the role induction is not known (not measured: induction).", page.text)

    def test_levels_are_absent_where_the_batch_is_not_known(self) -> None:
        def levels(run: Path) -> dict[str, list[str]]:
            series = self.page(run).index["runs"][0]["sources"][0]["series"]
            return {one["metric"]: [level["text"] for level in one.get("levels", [])] for one in series}

        unknown = levels(make_run(self.folder / "unknown"))
        self.assertEqual(unknown["sink"], ["static sink ≥ 0.3"])
        self.assertEqual(unknown["entropy"], [])
        self.assertEqual(unknown["entropy_norm"][0], "uniform attention 1")  # whatever the length
        config = manifest()["config"] | {"train": {"seq_len": 64, "batch": 4}}
        known = levels(make_run(self.folder / "known", config=config))
        self.assertEqual(known["sink"], [f"uniform attention {check_report.uniform_attention(64)['sink']:.3g}", "static sink ≥ 0.3"])
        windows = levels(make_run(self.folder / "windows", config=config, shortest_window=16))
        self.assertEqual(windows["sink"], ["static sink ≥ 0.3"])
        damaged = manifest()["config"] | {"train": {"seq_len": 1 << 60, "batch": 4}}
        self.assertEqual(levels(make_run(self.folder / "damaged", config=damaged))["sink"], ["static sink ≥ 0.3"])

    def test_chosen_metrics_and_heads(self) -> None:
        run = make_run(self.folder / "run")
        page = self.page(run, "--metrics", "k_norm,sink", "--heads", "L1H2")
        source = page.index["runs"][0]["sources"][0]
        self.assertEqual([s["metric"] for s in source["series"]], ["k_norm", "sink"])
        for series, head in zip(source["series"], (1, 2), strict=True):  # L1H2 reads key head 1
            for place, curve in enumerate(page.series(series, len(source["step"]))):
                chosen = place == series["heads"] + head
                self.assertEqual(chosen, any(value is not None for value in curve))
        self.assertTrue(page.index["reduced"]["left_out"])
        scores = page.index["runs"][0]["roles"]["scores"]
        self.assertEqual([(one["layer"], one["head"]) for one in scores], [(1, 2)])
        self.assertNotIn("nearest", page.cells)  # they could be other heads
        self.assertNotIn("metrics that were not chosen", self.report(run, "--metrics", "all").stdout)

    def test_answers_lead_to_metrics_that_the_page_has(self) -> None:
        run = make_run(self.folder / "run")
        shown = lambda *flags: re.findall(r'data-go="([^"]*)"', (self.report(run, *flags), (run / "report.html").read_text())[1])  # noqa: E731
        self.assertTrue(any("m=qk_ratio" in view for view in shown()))
        for view in shown("--metrics", "k_norm"):
            self.assertRegex(view, r"^m=k_norm(&amp;h=[0-9.,]+)?$")


class AtTheEnd(Reports):
    """Commands that compute write the page of their run."""

    def run_program(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder, check=True)

    def test_commands_write_a_report_unless_told_not_to(self) -> None:
        said = self.run_program("train", "--out", "trained", "--set", *SMALL).stdout
        self.assertIn(f"report: {self.folder / 'trained/report.html'}", said.splitlines()[-1])
        check_report.check(self.folder / "trained/report.html", self.folder / "trained")
        self.run_program("inspect", "trained", "--out", "inspected", "--json")
        check_report.check(self.folder / "inspected/report.html", self.folder / "inspected")
        self.run_program("study", "--out", "study", "--conditions", "QK,NoQK", "--set", *SMALL)
        page = Page((self.folder / "study/report.html").read_text(encoding="utf-8"))
        self.assertEqual([run["condition"]["tag"] for run in page.index["runs"]], ["QK", "NoQK"])
        self.assertEqual(page.sections()[:2], ["compare", "what"])
        a_less_c = page.index["study"]["conditions"][0]["mean"] - page.index["study"]["conditions"][1]["mean"]
        shown = f"{a_less_c:+.2f}".replace("-", "−")
        self.assertIn(f"QK-Norm as a whole: A − C = {shown} in mean key PR. One seed describes", page.text)
        for command in (["train", "--set", *SMALL], ["inspect", "trained"], ["plasticity", "--demo", "--no-figures"]):
            self.run_program(*command, "--no-report", "--out", "without")
            self.assertFalse((self.folder / "without/report.html").exists())
            shutil.rmtree(self.folder / "without")

    def test_heads_of_a_run_and_of_its_inspections_correspond(self) -> None:
        small = ["--no-report", "--set", *SMALL, "train.checkpoint_every=10"]
        for seed in (42, 43):
            self.run_program("train", "--out", f"run{seed}", *small, f"train.seed={seed}")
        first = min((self.folder / "run42/checkpoints").iterdir())
        self.run_program("inspect", first, "--out", "early", "--no-report")
        manifest_file = self.folder / "run42/manifest.json"
        manifest_file.write_text(manifest_file.read_text().replace('"status": "complete"', '"status": "interrupted"'))
        self.run_program("train", "--out", "run42", "--resume", "--no-report")
        self.run_program("inspect", "run42", "--out", "late", "--no-report")
        self.run_program("inspect", first, "run42", "--out", "both", "--no-report")
        self.run_program("inspect", "run43", "--out", "other", "--no-report")
        self.run_program("study", "--out", "study", "--seeds", "42,43", "--conditions", "NoQK", *small)
        self.run_program("inspect", "study/seed_43/NoQK", "--out", "condition", "--no-report")
        copies = self.folder / "mixed"  # of two trainings: which heads they are is not known
        shutil.copytree(first, copies / "step-1")
        shutil.copytree(max((self.folder / "run43/checkpoints").iterdir()), copies / "step-2")
        self.run_program("inspect", copies / "step-1", copies / "step-2", "--out", "two", "--no-report")
        names = ["run42", "early", "late", "both", "run43", "other", "condition", "two"]
        self.report(*names, "--out", "all.html")
        runs = Page((self.folder / "all.html").read_text(encoding="utf-8")).index["runs"]
        groups = {run["same_heads"]: [] for run in runs}
        for name, run in zip(names, runs, strict=True):
            groups[run["same_heads"]].append(name)
        self.assertEqual(list(groups.values()), [names[:4], names[4:7], ["two"]])

    def test_heads_of_the_same_published_weights_correspond(self) -> None:
        for name, weights in (("one", "a"), ("two", "a"), ("three", "b")):
            make_run(self.folder / name, command="inspect", moments=1, seeds=None, weights_xxh3_128=weights)
        self.report("one", "two", "three", "--out", "all.html")
        same = [run["same_heads"] for run in Page((self.folder / "all.html").read_text(encoding="utf-8")).index["runs"]]
        self.assertEqual(same[0], same[1])
        self.assertNotEqual(same[0], same[2])

    def test_a_report_is_ours_and_its_failure_is_a_warning(self) -> None:
        self.run_program("train", "--out", "run", "--set", *SMALL)
        report = self.folder / "run/report.html"
        before = report.read_bytes()
        self.run_program("train", "--out", "run", "--resume")
        self.assertEqual(report.read_bytes(), before)  # a complete run stays as it is
        self.run_program("train", "--out", "run", "--overwrite", "--no-report", "--set", *SMALL)
        self.assertFalse(report.exists())
        report.mkdir()
        manifest_file = self.folder / "run/manifest.json"
        manifest_file.write_text(manifest_file.read_text().replace('"status": "complete"', '"status": "interrupted"'))
        done = self.run_program("train", "--out", "run", "--resume")
        self.assertIn("has no report", done.stderr)


class Budget(Reports):
    def test_exact_has_every_moment_in_float32(self) -> None:
        run = make_run(self.folder / "run", layers=1, q=1, k=1, moments=1200)
        page = self.page(run, "--exact")
        source = page.index["runs"][0]["sources"][0]
        self.assertEqual(len(source["step"]), 1200)
        self.assertEqual({s["codec"] for s in source["series"]}, {"f32"})
        check_report.check_series(page, page.index["runs"][0], run)

    def test_moments_are_close_early_and_evenly_spread_late(self) -> None:
        run = make_run(self.folder / "run", moments=900)
        page = self.page(run)
        source = page.index["runs"][0]["sources"][0]
        self.assertLessEqual(len(source["step"]), 300)
        self.assertGreater(len(source["step"]), 280)
        self.assertEqual(source["step"][:4], [0, 10, 20, 30])
        gaps = [b - a for a, b in zip(source["step"], source["step"][1:], strict=False)]
        self.assertLessEqual(max(gaps), 2 * 10 * 900 / 100)
        changes = {t["step"] for t in page.index["runs"][0]["roles"]["transitions"]}
        kept = set(page.index["runs"][0]["roles"]["step"])
        self.assertGreaterEqual(len(changes & kept), min(len(changes), 140))
        self.assertIn("moments", self.report(run, "--moments", 50).stdout)
        page = Page((run / "report.html").read_text(encoding="utf-8"))
        self.assertEqual(len(page.index["runs"][0]["sources"][0]["step"]), 50)

    def test_the_file_stays_below_the_limit_and_says_what_is_missing(self) -> None:
        run = make_run(self.folder / "run", layers=8, q=8, k=8, moments=300)
        sizes, bits = [], []
        for limit in (5, 0.6, 0.4):  # the code alone is 0.13
            done = self.report(run, "--max-size", limit, "--json")
            said = json.loads(done.stdout)
            text = (run / "report.html").read_text(encoding="utf-8")
            self.assertEqual(said["bytes"], len(text.encode()))
            self.assertLessEqual(said["bytes"], limit * 1e6)
            page = Page(text)
            check_report.check_series(page, page.index["runs"][0], run, exact_last=False)
            self.assertEqual(page.index["reduced"]["left_out"], said["left_out"])
            for sentence in said["left_out"]:
                self.assertIn(sentence, page.text)
            sizes.append(said["bytes"])
            bits.append(page.index["reduced"]["bits"])
        self.assertEqual(bits[0], 12)
        self.assertLess(bits[-1], 12)
        self.assertEqual(sizes, sorted(sizes, reverse=True))


class LargeTexts(Reports):
    """Attention and examples that do not fit."""

    LAYERS, HEADS, TOKENS, EXAMPLES = 4, 10, 150, 40

    def made(self, *, with_tracks: bool) -> Path:
        model = {"layers": self.LAYERS, "heads": self.HEADS}
        sizes = {"layers": self.LAYERS, "q": self.HEADS, "k": 2, "moments": 1}
        run = make_run(self.folder / "run", **sizes, command="inspect", config={"preset": "tiny", "model": model})
        if not with_tracks:
            shutil.rmtree(run / "heads.parquet")
        rng = np.random.default_rng(0)
        rows, examples = [], []
        for layer, head in np.ndindex(self.LAYERS, self.HEADS):
            for query in range(self.TOKENS):
                weights = rng.dirichlet(np.full(query + 1, 0.3)).astype(np.float32)
                rows.append({"text": 0, "layer": layer, "head": head, "query": query, "weights": weights.tolist()})
            for i in range(self.EXAMPLES):
                pieces = ["".join(map(chr, rng.integers(97, 123, 5))) for _ in range(33)]
                examples.append({"layer": layer, "head": head, "quantile": 0.5, "strength": 1 - i / 100, "document": 0, "sequence": 0,
                                 "query": i, "key": 0, "pieces": pieces, "weights": rng.random(33).tolist(), "query_at": 3, "key_at": 0})
        pq.write_table(pa.Table.from_pylist(rows), run / "attention.parquet")
        pq.write_table(pa.Table.from_pylist([{"text": 0, "position": i, "piece": f"p{i}"} for i in range(self.TOKENS)]), run / "tokens.parquet")
        pq.write_table(pa.Table.from_pylist(examples), run / "examples.parquet")
        self.rows = rows
        return run

    def fitted(self, run: Path, limit: float) -> tuple[Page, dict]:
        said = json.loads(self.report(run, "--max-size", limit, "--json").stdout)
        page = Page((run / "report.html").read_text(encoding="utf-8"))
        check_report.check_alone(page)
        self.assertFalse(said["too_large"])
        self.assertLessEqual(said["bytes"], limit * 1e6)
        for sentence in said["left_out"]:
            self.assertIn(sentence, page.text)
        self.assertEqual(page.index["reduced"]["left_out"], said["left_out"])
        return page, said

    def shown_heads(self, page: Page) -> set:
        attention = page.index["runs"][0]["attention"]
        for head, block in zip(attention["heads"], attention["blocks"][0], strict=True):
            expected = [w for r in self.rows if [r["layer"], r["head"]] == head for w in r["weights"]]
            self.assertEqual(list(page.bytes(block)), [math.floor(255 * math.sqrt(w) + 0.5) for w in expected])
        return {tuple(head) for head in attention["heads"]}

    def shown_examples(self, page: Page) -> dict[tuple, list]:
        examples = {}
        for layer, block in page.index["runs"][0]["examples"]["blocks"].items():
            for one in json.loads(page.bytes(block)):
                examples.setdefault((int(layer), one["head"]), []).append(one["query"])
        return examples

    def test_fewer_heads_and_examples_are_kept(self) -> None:
        run = self.made(with_tracks=True)
        page, said = self.fitted(run, 5)
        self.assertEqual(said["left_out"], [])
        self.assertEqual(len(self.shown_heads(page)), 40)
        page, said = self.fitted(run, 0.9)
        heads, examples = self.shown_heads(page), self.shown_examples(page)
        self.assertIn(f"run (tiny): attention of {len(heads)} of 40 heads is kept", said["left_out"])
        self.assertIn(len(heads), range(2, 40))
        kept = {len(queries) for queries in examples.values()}
        self.assertEqual((len(examples), len(kept)), (40, 1))
        self.assertIn(f"run (tiny): {kept.pop()} of 40 examples of each head are kept", said["left_out"])
        for queries in examples.values():
            self.assertEqual((queries[0], queries[-1], queries), (0, self.EXAMPLES - 1, sorted(queries)))
        self.assertGreater(said["bytes"], 0.6e6)  # room is used
        roles = {(s["layer"], s["head"]): s["role"] for s in page.index["runs"][0]["roles"]["scores"]}
        with_role = {head for head, role in roles.items() if role is not None}
        self.assertLessEqual(heads, with_role if len(with_role) >= len(heads) else set(roles))

    def test_without_measurements_texts_have_the_whole_page(self) -> None:
        run = self.made(with_tracks=False)
        (run / "examples.parquet").unlink()
        page, said = self.fitted(run, 0.6)
        self.assertGreater(said["bytes"], 0.45e6)
        heads = self.shown_heads(page)
        self.assertEqual(min(heads)[0], 0)
        self.assertEqual(max(heads)[0], self.LAYERS - 1)

    def test_one_head_that_does_not_fit_is_said_with_a_way_out(self) -> None:
        self.TOKENS, self.LAYERS, self.HEADS = 800, 1, 2
        run = self.made(with_tracks=False)
        page, said = self.fitted(run, 0.2)
        self.assertIsNone(page.index["runs"][0]["attention"])
        [sentence] = [sentence for sentence in said["left_out"] if "attention" in sentence]
        self.assertRegex(sentence, r"that of one head has 0\.\d+ MB: inspect fewer --tokens, or give a larger --max-size")
        done = self.report(run, "--max-size", "0.2", "--heads", "L0H0")  # what was named is there
        page = Page((run / "report.html").read_text(encoding="utf-8"))
        self.assertEqual(page.index["runs"][0]["attention"]["heads"], [[0, 0]])
        self.assertRegex(done.stderr, r"the file has 0\.\d+ MB, more than 0\.2 MB; most of it: attention on texts \(0\.\d+ MB\); --heads keeps")
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertTrue(json.loads(self.report(run, "--max-size", "0.2", "--heads", "L0H0", "--json").stdout)["too_large"])

    def test_the_largest_part_is_named(self) -> None:
        run = make_run(self.folder / "values", layers=16, q=16, k=16, moments=100)
        self.assertIn("values over time", self.report(run, "--max-size", "0.3", "--moments", "100").stderr)
        self.assertEqual("", self.report(run, "--max-size", "0.3", "--exact").stderr)
        run = make_run(self.folder / "text", command_line="x" * 999_999)
        self.assertIn("text and tables", self.report(run, "--max-size", "0.5").stderr)


class Folders(Reports):
    def test_hostile_names_stay_text(self) -> None:
        run = make_run(self.folder / "<img src=x onerror=alert(1)>", title=HOSTILE, command_line=HOSTILE, device=HOSTILE)
        event = {"time": HOSTILE, "step": 1, "tokens": 2, "kind": HOSTILE, "text": HOSTILE}
        (run / "events.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
        page = self.page(run)
        text = (run / "report.html").read_text(encoding="utf-8")
        self.assertEqual(page.index["runs"][0]["name"], HOSTILE)
        self.assertEqual(page.index["runs"][0]["events"][0]["text"], HOSTILE)
        self.assertIn("</script><img src=x onerror=alert(1)>", page.text)
        self.assertNotIn("<img", text)
        self.assertEqual(text.count("</script>"), text.count("<script"))

    def test_names_that_are_not_utf8(self) -> None:
        run = Path(os.fsdecode(os.fsencode(self.folder) + b"/a\xff\xfeb"))
        os.rename(make_run(self.folder / "plain"), run)
        page = self.page(run)
        self.assertIn("\ufffd", page.index["title"])

    def test_a_run_that_goes_on_is_read_without_its_lock(self) -> None:
        run = make_run(self.folder / "run", parts=5, updates=30, status="running", ended=None)
        lines = [json.dumps({"time": "t", "step": i, "tokens": i, "kind": "checkpoint", "text": f"kept {i}"}) for i in range(3)]
        (run / "events.jsonl").write_text("\n".join(lines) + '\n{"time": "torn', encoding="utf-8")
        progress = {"time": "2026-11-18T12:00:00Z", "phase": "training", "step": 30, "tokens": 122880, "steps": 60, "loss": 2.5}
        (run / "progress.json").write_text(json.dumps(progress | {"tokens_per_s": 4096.0, "seconds_left": 30.0}))
        before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
        with open(run / ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            page = self.page(run)
        self.assertEqual([e["text"] for e in page.index["runs"][0]["events"]], ["kept 0", "kept 1", "kept 2"])
        self.assertIn("running, step 30 of 60 (training), 30.0 s left", page.text)
        check_report.check_series(page, page.index["runs"][0], run)
        after = {file: file.read_bytes() for file in run.rglob("*") if file.is_file() and file.name != ".lock"}
        self.assertEqual(after.pop(run / "report.html")[:9], b"<!doctype")
        self.assertEqual(after, before)

    def test_parts_that_are_merged_meanwhile(self) -> None:
        run = make_run(self.folder / "run", moments=60, parts=20)
        table = run / "heads.parquet"
        merged = pq.read_table(table)

        def merge_and_part(parts: int) -> None:
            write_parts(run / ".next", merged, parts)
            os.rename(table, run / "heads.parquet.parts")
            os.rename(run / ".next", table)
            shutil.rmtree(run / "heads.parquet.parts")

        for attempt in range(12):
            thread = threading.Thread(target=lambda n=attempt: (time.sleep(0.004 * n), merge_and_part(1 + n % 2 * 19)))
            thread.start()
            page = self.page(run)
            thread.join()
            check_report.check_series(page, page.index["runs"][0], run)

    def test_a_run_that_is_replaced_meanwhile_is_never_mixed(self) -> None:
        runs = {}
        for i, layers in enumerate((2, 5)):
            run = make_run(self.folder / f"run{i}", moments=60, layers=layers, updates=200 + i, started=f"2026-11-18T12:00:0{i}Z", seed=i)
            (run / "summary.json").write_text(json.dumps({"norm_split": {"sentence": f"That of run {i}."}}))
            runs[f"2026-11-18T12:00:0{i}Z"] = (run, layers, 200 + i)
        link, other = self.folder / "run", self.folder / "other"
        link.symlink_to(self.folder / "run0")
        started = time.monotonic()
        self.report(link, "--out", "x.html")
        seconds = time.monotonic() - started

        def exchange(attempt: int) -> None:
            time.sleep(seconds * (attempt % 10) / 10)
            other.symlink_to(self.folder / f"run{(attempt + 1) % 2}")
            os.replace(other, link)

        for attempt in range(30):
            thread = threading.Thread(target=exchange, args=(attempt,))
            thread.start()
            self.report(link, "--out", "x.html")
            thread.join()
            page = Page((self.folder / "x.html").read_text(encoding="utf-8"))
            shown = page.index["runs"][0]
            run, layers, updates = runs[shown["started"]]
            self.assertEqual((shown["layers"], shown["steps"]["rows"]), (layers, updates))
            self.assertIn(f"That of {run.name[:3]} {run.name[3:]}.", page.text)
            check_report.check_series(page, shown, run)

    def test_a_run_that_a_killed_process_left_half_replaced(self) -> None:
        run = make_run(self.folder / "run")
        (run / ".replaced").mkdir()
        os.rename(run / "heads.parquet", run / ".replaced/heads.parquet")  # its manifest would follow
        self.assertIn("another run takes its place", self.refused(run))
        os.rename(run / "manifest.json", run / ".replaced/manifest.json")
        self.assertIn("another run takes its place", self.refused(run))
        make_run(self.folder / "new", layers=2)
        for file in (self.folder / "new").iterdir():
            os.rename(file, run / file.name)
        self.assertEqual(self.page(run).index["runs"][0]["layers"], 2)  # the new run goes on

    def test_a_training_beside(self) -> None:
        run = self.folder / "run"
        command = [PROGRAM, "train", "--out", run, "--track-every", "1", "--probe-every", "2", "--no-report", "--set", *SMALL]
        pages = 0
        for more in ([], ["--overwrite"]):
            with subprocess.Popen([*command[:2], *more, *command[2:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    done = subprocess.run([PROGRAM, "report", run, "--out", self.folder / "x.html"], capture_output=True, text=True, check=False)
                    if done.returncode == WRONG_USAGE:
                        self.assertRegex(done.stderr, "is not there|nothing to show yet|not a run folder|takes its place")
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    pages += 1
                    page = Page((self.folder / "x.html").read_text(encoding="utf-8"))
                    for source in page.index["runs"][0]["sources"]:
                        self.assertEqual(source["step"], sorted(set(source["step"])))
                        for series in source["series"]:
                            page.series(series, len(source["step"]))
        self.assertGreater(pages, 1)
        self.report(run)
        check_report.check(run / "report.html", run)

    def test_several_runs(self) -> None:
        runs = [make_run(self.folder / name, seed=i) for i, name in enumerate(("one", "two"))]
        other = make_run(self.folder / "other", layers=2, seeds=[7])
        self.report(*runs, other, "--out", "all.html")
        text = (self.folder / "all.html").read_text(encoding="utf-8")
        page = Page(text)
        check_report.check_alone(page)
        for shown, run in zip(page.index["runs"], [*runs, other], strict=True):
            check_report.check_series(page, shown, run)
        same = [run["same_heads"] for run in page.index["runs"]]
        self.assertEqual(same[0], same[1])
        self.assertNotEqual(same[0], same[2])
        self.assertIn("different shapes", page.text)
        self.assertFalse((runs[0] / "report.html").exists())

    def test_refusals_are_one_line(self) -> None:
        run = make_run(self.folder / "run")
        self.assertIn("is not there", self.refused(self.folder / "nothing"))
        (self.folder / "empty").mkdir()
        self.assertIn("not a run folder", self.refused(self.folder / "empty"))
        self.assertIn("it holds runs: run", self.refused(self.folder))
        self.assertIn("is a file", self.refused(run / "manifest.json"))
        self.assertIn("did you mean 'k_norm'", self.refused(run, "--metrics", "k_nrom"))
        self.assertIn("--heads", self.refused(run, "--heads", "L0K1"))
        self.assertIn("no L9H9", self.refused(run, "--heads", "L9H9"))
        self.assertIn("--max-size", self.refused(run, "--max-size", "0"))
        self.assertIn("--moments", self.refused(run, "--moments", "1"))
        self.assertIn("lies in", self.refused(run, "--out", run / "mine.html"))
        self.assertIn("is a folder", self.refused(run, "--out", self.folder))
        self.assertIn("named twice", self.refused(run, run))
        part = next((run / "heads.parquet").iterdir())
        part.write_bytes(part.read_bytes()[:-100])
        self.assertIn("heads.parquet", self.refused(run))
        self.assertFalse((run / "report.html").exists())

    def test_out_replaces_reports_alone(self) -> None:
        run, mine = make_run(self.folder / "run"), self.folder / "mine.txt"
        mine.write_text("my notes about headscope")
        self.assertIn("is there and is no report", self.refused(run, "--out", mine))
        self.assertEqual(mine.read_text(), "my notes about headscope")
        for _ in range(2):  # an empty file, then a report
            mine.write_text("") if mine.stat().st_size < 100 else None
            self.report(run, "--out", mine)
        self.assertTrue(mine.read_text().startswith("<!doctype html>"))

    def test_what_is_no_table_is_named(self) -> None:
        run = make_run(self.folder / "run", updates=5)
        shutil.rmtree(run / "steps.parquet")
        os.mkfifo(run / "steps.parquet")
        self.assertIn("steps.parquet: is no table; left out", self.report(run).stderr)
        shutil.rmtree(run / "heads.parquet")
        self.assertIn("has nothing that a page shows", self.refused(run))

    def test_out_never_replaces_what_is_read_or_what_is_no_file(self) -> None:
        run, other = make_run(self.folder / "run"), make_run(self.folder / "other")
        (self.folder / "link").symlink_to(run / "heads.parquet")
        part = next((run / "heads.parquet").iterdir())
        before = part.read_bytes()
        self.assertIn("lies in the run", self.refused(other, "--out", self.folder / "link" / part.name))
        self.assertEqual(part.read_bytes(), before)
        results = self.folder / "study/QK/results.json"  # a study without a manifest
        results.parent.mkdir(parents=True)
        results.write_bytes(Path("docs/studies/qk_norm_tiny/seed_42/QK/results.json").read_bytes())
        before = results.read_bytes()
        self.assertIn("is read", self.refused(self.folder / "study", "--out", results))
        self.assertEqual(results.read_bytes(), before)
        os.mkfifo(self.folder / "fifo")
        self.assertIn("not a file", self.refused(run, "--out", self.folder / "fifo"))
        (self.folder / "null").symlink_to("/dev/null")
        self.assertIn("not a file", self.refused(run, "--out", self.folder / "null"))

    def test_out_is_looked_at_before_the_run_is_read(self) -> None:
        run = make_run(self.folder / "run")
        part = next((run / "heads.parquet").iterdir())
        part.write_bytes(b"damaged")  # who reads it says so
        self.assertIn("too long", self.refused(run, "--out", "x" * 300 + ".html"))
        self.assertIn("too long", self.refused(run, "--out", "x" * 240 + ".html"))  # the temporary name would be
        self.assertLess(len(self.refused(run, "--out", "d/" * 3000 + "x.html")), 1000)
        self.assertIn("is a folder", self.refused(run, "--out", "."))
        self.assertIn("nowhere is not there", self.refused(run, "--out", "nowhere/x.html"))
        (self.folder / "file").write_text("x")
        self.assertIn("file is not there", self.refused(run, "--out", "file/x.html"))
        (run / "report.html").mkdir()
        self.assertIn("report.html: is a folder", self.refused(run))
        for empty in ("", "run"), ("run", ""), ("",):
            self.assertIn("the name of a run is empty", self.refused(*empty))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_cannot_be_written_is_named_with_a_way_out(self) -> None:
        run = make_run(self.folder / "run")
        run.chmod(0o555)
        self.addCleanup(run.chmod, 0o755)
        self.assertIn("name another place with --out", self.refused(run))
        self.report(run, "--out", "x.html")

    def test_what_killed_reports_left_is_removed(self) -> None:
        run = make_run(self.folder / "run", moments=300, layers=8)
        started = time.monotonic()
        self.report(run)
        seconds = time.monotonic() - started
        for attempt in range(12):  # one of them may be killed while it writes
            with subprocess.Popen([PROGRAM, "report", run], stdout=subprocess.DEVNULL) as process:
                time.sleep(seconds * (0.6 + attempt / 20))
                process.kill()
        kept = [".report.html.1.tmp", ".report.html.1.0.tmp.txt", ".other.html.1.0.tmp", ".report.html.2.0.tmp"]
        for name in [*kept, ".report.html.1.0.tmp"]:
            (run / name).write_text("half")
        with open(run / kept[-1], encoding="utf-8") as written:
            fcntl.flock(written, fcntl.LOCK_EX)  # as a process does that writes it now
            self.report(run)
        self.assertEqual(sorted(file.name for file in run.iterdir() if ".tmp" in file.name), sorted(kept))
        self.report(run)
        self.assertFalse((run / kept[-1]).exists())
        check_report.check(run / "report.html", run)

    def test_a_huge_manifest_is_refused_before_it_is_read(self) -> None:
        run = make_run(self.folder / "run")
        os.truncate(run / "manifest.json", 1 << 31)
        self.assertIn("manifest.json", self.refused(run))


class Studies(Reports):
    def test_published_results(self) -> None:
        source = Path("docs/studies/qk_norm_88m").resolve()
        self.report(source, "--out", self.folder / "study.html")
        page = Page((self.folder / "study.html").read_text(encoding="utf-8"))
        study = page.index["study"]
        for condition in study["conditions"]:
            values = {}
            for seed in sorted(source.glob("seed_*")):
                file = seed / condition["tag"] / "results.json"
                if file.exists():
                    values[seed.name] = json.loads(file.read_text(encoding="utf-8"))["mean_pr"][-1]
            shown = {seed: v for seed, v in zip(study["seeds"], condition["values"], strict=True) if v is not None}
            self.assertEqual(shown.keys(), values.keys())
            self.assertAlmostEqual(condition["mean"], statistics.mean(shown.values()))
        effects = {effect["name"]: effect for effect in study["effects"]}
        by_tag = {c["tag"]: c["values"] for c in study["conditions"]}
        differences = [a - b for a, b in zip(by_tag["QK"], by_tag["QK_frozen"], strict=True) if None not in (a, b)]
        self.assertAlmostEqual(effects["gamma"]["difference"], statistics.mean(differences))
        error = statistics.stdev(differences) / math.sqrt(len(differences))
        self.assertAlmostEqual(effects["gamma"]["standard_error"], error)
        self.assertEqual(len(page.cells["effects"]), 1 + len(effects))
        self.assertIn(study["sentence"], page.text)
        self.quotes_the_total(page, by_tag)
        for row in page.cells["measures"][1:]:  # A − C by another measure
            end = {tag: [json.loads((seed / tag / "results.json").read_text())[row[0]][-1] for seed in sorted(source.glob("seed_*"))] for tag in ("QK", "NoQK")}
            total = statistics.mean(a - c for a, c in zip(end["QK"], end["NoQK"], strict=True))
            self.assertEqual(row[3].replace("−", "-"), f"{total:+.2f}")

    def quotes_the_total(self, page: Page, by_tag: dict[str, list[float]]) -> None:
        """The first sentence has A − C over the seeds, with its interval by Student's t; letters are explained before."""
        differences = [a - c for a, c in zip(by_tag["QK"], by_tag["NoQK"], strict=True)]
        self.assertEqual(len(differences), 5)
        half = 2.7764451 * statistics.stdev(differences) / math.sqrt(5)  # 97.5 % of t with 4 degrees of freedom
        mean = statistics.mean(differences)
        minus = lambda value: f"{value:+.2f}".replace("-", "−")  # noqa: E731
        sentence = f"A − C = {minus(mean)} in mean key PR (95 % interval {minus(mean - half)} to {minus(mean + half)}, 5 seeds"
        self.assertIn(sentence, page.text)
        before = page.text[: page.text.index(sentence)]
        for letter, name in (("A", "learned γ"), ("B", "γ = 1"), ("C", "no QK-Norm"), ("A₀", "γ without decay")):
            self.assertIn(f"{letter}{name}", before)
        self.assertNotIn(" − ", before)  # no pair of letters
        self.assertEqual(page.cells["effects"][1][:4], ["QK-Norm as a whole", "A − C", minus(mean), f"{minus(mean - half)} to {minus(mean + half)}"])
        self.assertEqual(page.sections()[0], "compare")

    def test_conditions_and_seeds_of_a_study_that_goes_on(self) -> None:
        study = self.folder / "study"
        study.mkdir()
        (study / "manifest.json").write_text(json.dumps(manifest(command="study", status="running", seeds=[1, 2])))
        for seed in (1, 2):
            for i, tag in enumerate(("QK", "NoQK")):
                run = make_run(study / f"seed_{seed}" / tag, seed=10 * seed + i, updates=20)
                (run / "manifest.json").unlink()
        page = self.page(study)
        names = [(run["condition"]["tag"], run["condition"]["letter"], run["seed"]) for run in page.index["runs"]]
        self.assertEqual(names, [("QK", "A", 1), ("QK", "A", 2), ("NoQK", "C", 1), ("NoQK", "C", 2)])
        for run in page.index["runs"]:
            check_report.check_series(page, run, study / f"seed_{run['seed']}" / run["condition"]["tag"])
        same = [run["same_heads"] for run in page.index["runs"]]
        self.assertEqual((same[0], same[1]), (same[2], same[3]))
        self.assertNotEqual(same[0], same[1])
        self.assertIsNone(page.index["study"])
        self.assertEqual([run["label"] for run in page.index["runs"]], ["A, seed 1", "A, seed 2", "C, seed 1", "C, seed 2"])
        for heading in ("Which heads? — A, seed 1", "When? — A, seed 1", "Why? — A, seed 1"):
            self.assertIn(heading, page.text)
        page = self.page(study / "seed_1" / "QK")
        self.assertNotIn("Which heads? —", page.text)
        self.assertEqual(len(page.index["runs"]), 1)


class Attention(Reports):
    def made(self, run: Path) -> list[dict]:
        """Two texts of five and seven tokens, four heads of two layers; two examples."""
        rng = np.random.default_rng(0)
        rows, tokens = [], []
        for text, length in enumerate((5, 7)):
            tokens += [{"text": text, "position": i, "id": i, "piece": HOSTILE if i == 1 else f"p{i}"} for i in range(length)]
            for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
                for query in range(length):
                    weights = rng.dirichlet(np.full(query + 1, 0.3)).astype(np.float32)
                    rows.append({"text": text, "layer": layer, "head": head, "query": query, "weights": weights.tolist()})
        schema = pa.schema([(n, pa.int64()) for n in ("text", "layer", "head", "query")] + [("weights", pa.list_(pa.float32()))])
        pq.write_table(pa.Table.from_pylist(rows, schema), run / "attention.parquet")
        pq.write_table(pa.Table.from_pylist(tokens), run / "tokens.parquet")
        example = {"layer": 1, "head": 0, "quantile": 0.5, "strength": 0.75, "document": 3, "sequence": 1, "query": 40, "key": 2}
        example |= {"pieces": [HOSTILE, "b"], "weights": [0.25, 1.0], "query_at": 1}
        examples = [example | {"key_at": 0}, example | {"key_at": None, "layer": 0}]
        pq.write_table(pa.Table.from_pylist(examples), run / "examples.parquet")
        return rows

    def compare(self, page: Page, rows: list[dict]) -> None:
        attention = page.index["runs"][0]["attention"]
        self.assertEqual([len(text["pieces"]) for text in attention["texts"]], [5, 7])
        self.assertEqual(attention["texts"][0]["pieces"][1], HOSTILE)
        for text in (0, 1):
            for head, block in zip(attention["heads"], attention["blocks"][text], strict=True):
                expected = [w for r in rows if [r["text"], r["layer"], r["head"]] == [text, *head] for w in r["weights"]]
                self.assertEqual(list(page.bytes(block)), [math.floor(255 * math.sqrt(w) + 0.5) for w in expected])

    def test_weights_and_examples_are_those_of_the_tables(self) -> None:
        run = make_run(self.folder / "run", layers=2, q=2, k=1, command="inspect", moments=1)
        rows = self.made(run)
        page = self.page(run)
        self.compare(page, rows)
        self.assertEqual(len(page.index["runs"][0]["attention"]["heads"]), 4)
        examples = page.index["runs"][0]["examples"]["blocks"]
        first = json.loads(page.bytes(examples["1"]))[0]
        self.assertEqual((first["head"], first["strength"], first["query_at"], first["key_at"]), (0, 0.75, 1, 0))
        self.assertEqual((first["pieces"], first["weights"]), ([HOSTILE, "b"], [128, 255]))
        self.assertIsNone(json.loads(page.bytes(examples["0"]))[0]["key_at"])
        page = self.page(run, "--heads", "L1H1")
        self.assertEqual(page.index["runs"][0]["attention"]["heads"], [[1, 1]])
        self.compare(page, rows)

    def test_attention_alone(self) -> None:
        run = make_run(self.folder / "run", command="inspect")
        shutil.rmtree(run / "heads.parquet")
        rows = self.made(run)
        self.compare(self.page(run), rows)

    def test_a_damaged_table_is_refused_by_row_and_value(self) -> None:
        run = make_run(self.folder / "run", layers=2, q=2, k=1, command="inspect", moments=1)
        rows = self.made(run)
        examples = pq.read_table(run / "examples.parquet").to_pylist()
        changed = lambda at, **values: [row | values if i == at else row for i, row in enumerate(rows)]  # noqa: E731
        for words, damaged in (
            ("row 0: query 1 of text 0", rows[1:]),
            ("row 2: query 3 of text 0", rows[:2] + rows[3:]),
            ("row 4: expected query 4 of text 0, layer 0, head 0", rows[:4] + rows[5:]),
            ("row 47: expected query 6 of text 1, layer 1, head 1", rows[:-1]),
            ("row 41: is not there, and text 1 of layer 1, head 1", rows[:-7]),
            ("row 48: a second attention of text 0", rows + rows[:5]),
            ("row 7: text 9", changed(7, text=9)),
            ("row 7: text -1", changed(7, text=-1)),
            ("row 7: layer 2, head 1: out of range, there are 2 layers of 2", changed(7, layer=2)),
            ("row 7: layer 0, head -1", changed(7, head=-1)),
            ("row 7: query 5 of text 0", changed(7, query=5)),
            ("row 7: 2 weights of query 2", changed(7, weights=[0.5, 0.5])),
            ("row 7: 0 weights of query 2", changed(7, weights=[])),
            ("row 7: weight nan", changed(7, weights=[0.5, math.nan, 0.5])),
            ("row 7: weight inf", changed(7, weights=[0.5, math.inf, 0.5])),
            ("row 7: weight -0.25", changed(7, weights=[0.5, -0.25, 0.5])),
            ("row 7: weight 1.5", changed(7, weights=[0.5, 1.5, 0.5])),
            ("row 7: weight nan", changed(7, weights=[0.5, None, 0.5])),
            ("row 7: 0 weights", changed(7, weights=None)),
            ("'layer'", changed(7, layer=None)),
        ):
            pq.write_table(pa.Table.from_pylist(damaged), run / "attention.parquet")
            self.assertIn(f"attention.parquet: {words}", self.refused(run).replace("column ", ""))
        self.made(run)
        for words, values in (
            ("layer 2, head 0", {"layer": 2}),
            ("layer 1, head 7", {"head": 7}),
            ("quantile nan", {"quantile": math.nan}),
            ("quantile 1.5", {"quantile": 1.5}),
            ("strength -1", {"strength": -1.0}),
            ("document -3", {"document": -3}),
            ("document 3, query 40, key 41", {"key": 41}),
            ("query -1", {"query": -1}),
            ("query_at 2: out of range, there are 2 pieces", {"query_at": 2}),
            ("query_at -1", {"query_at": -1}),
            ("key_at 2: out", {"key_at": 2}),
            ("key_at -9.22", {"key_at": -(2**63)}),
            ("key_at 0.5", {"key_at": 0.5}),
            ("2 weights of 1 pieces", {"pieces": ["a"], "query_at": 0}),
            ("3 weights of 2 pieces", {"weights": [0.25, 0.5, 0.25]}),
            ("weight nan", {"weights": [math.nan, 1.0]}),
            ("query_at 1: out of range, there are 0 pieces", {"pieces": [], "weights": []}),
        ):
            pq.write_table(pa.Table.from_pylist([examples[1], examples[0] | values]), run / "examples.parquet")
            said = self.refused(run)
            self.assertIn("examples.parquet: row 1: ", said)
            self.assertIn(words, said)
        (run / "examples.parquet").unlink()
        tokens = pq.read_table(run / "tokens.parquet").to_pylist()
        for damaged in (tokens[1:], tokens[:3] + tokens[4:], tokens[5:], [tokens[0] | {"text": 2**62}], tokens[::-1]):
            pq.write_table(pa.Table.from_pylist(damaged), run / "tokens.parquet")
            self.assertIn("tokens.parquet: row", self.refused(run))

    def test_heads_that_no_model_has_ask_for_no_page(self) -> None:
        run = make_run(self.folder / "run", command="inspect", config={})
        shutil.rmtree(run / "heads.parquet")
        rows = self.made(run)
        pq.write_table(pa.Table.from_pylist([row | {"layer": 65535, "head": 65535} for row in rows]), run / "attention.parquet")
        self.assertIn("row 0: layer 65535, head 65535: out of range", self.refused(run))


class DamagedTables(Reports):
    """Losses: rows in the order of training, whatever the numbers are."""

    def columns(self, rows: int = 30) -> dict:
        step = np.arange(1, rows + 1)
        columns = {name: np.linspace(1, 0.5, rows) for name in ("loss", "lr", "adamw_lr", "grad_norm", "tokens_per_s", "val_loss", "k_pr")}
        return {"step": step, "tokens": 64 * step} | columns

    def with_table(self, name: str, **changes: object) -> Path:
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        make_run(run)
        write_parts(run / name, pa.table(self.columns() | changes), parts=2)
        return run

    def test_rows_out_of_order_are_refused_by_row_and_value(self) -> None:
        for name in ("steps.parquet", "probes.parquet"):
            step = self.columns()["step"]
            for at, value, words in ((20, 3, "row 20: step 3 (1344 tokens) behind step 20"), (20, 20, "row 20: step 20 "),
                                     (7, -1, "row 7: step -1"), (29, 2**60, f"row 29: step {2**60}")):
                changed = step.copy()
                changed[at] = value
                self.assertIn(f"{name}: {words}", self.refused(self.with_table(name, step=changed)))
            tokens = 64 * step
            tokens[15] = 0
            self.assertIn(f"{name}: row 15: step 16 (0 tokens)", self.refused(self.with_table(name, tokens=tokens)))
            nan = step.astype(float)
            nan[4] = math.nan
            self.assertIn(name, self.refused(self.with_table(name, step=nan)))
            self.assertIn(name, self.refused(self.with_table(name, step=[str(i) for i in step])))

    def test_losses_that_are_no_numbers_are_missing(self) -> None:
        loss = np.linspace(1, 0.5, 30)
        loss[[3, 4, 5, 6]] = math.nan, math.inf, -math.inf, 1e308
        page = self.page(self.with_table("steps.parquet", loss=loss))
        shown = page.columns(page.index["runs"][0]["steps"])
        for name in ("loss", "loss_min", "loss_max"):
            self.assertEqual([i for i, value in enumerate(shown[name]) if not math.isfinite(value)], [3, 4, 5, 6])
            self.assertTrue(all(math.isnan(shown[name][i]) for i in (3, 4, 5, 6)), shown[name][3:7])
        page = self.page(self.with_table("probes.parquet", val_loss=loss))
        self.assertEqual([i for i, value in enumerate(page.index["runs"][0]["probes"]["val_loss"]) if value is None], [3, 4, 5, 6])

    def test_a_table_without_a_column_or_without_rows(self) -> None:
        for name in ("steps.parquet", "probes.parquet"):
            run = self.with_table(name)
            shutil.rmtree(run / name)
            columns = self.columns()
            del columns["loss"]
            write_parts(run / name, pa.table(columns))
            self.assertIn("loss", self.refused(run))
            shutil.rmtree(run / name)
            write_parts(run / name, pa.table(self.columns()).slice(0, 0))
            page = self.page(run)
            self.assertIsNone(page.index["runs"][0][name.removesuffix(".parquet")])


class DamagedFiles(Reports):
    """Files beside the tables: a page does without, and says so."""

    EVENT = {"time": "t", "step": 3, "tokens": 4, "kind": "spike", "text": "kept"}
    PROGRESS = {"time": "t", "phase": "training", "step": 30, "tokens": 4, "steps": 60, "loss": 2.5, "tokens_per_s": 1.0, "seconds_left": 30.0}

    def setUp(self) -> None:
        super().setUp()
        self.run_folder = make_run(self.folder / "run", status="running", ended=None)
        self.whole = {"events.jsonl": json.dumps(self.EVENT) + "\n", "progress.json": json.dumps(self.PROGRESS), "summary.json": "{}"}
        self.restore()

    def restore(self) -> None:
        for name, text in self.whole.items():
            file = self.run_folder / name
            if file.is_dir() and not file.is_symlink():
                file.rmdir()
            file.unlink(missing_ok=True)
            file.write_text(text)

    def said(self) -> str:
        """What the terminal says is what the page says."""
        done = self.report(self.run_folder)
        page = Page((self.run_folder / "report.html").read_text(encoding="utf-8"))
        check_report.check_alone(page)
        check_report.check_series(page, page.index["runs"][0], self.run_folder)
        notes = [line.removeprefix("headscope: warning: ") for line in done.stderr.splitlines()]
        for note in notes:
            self.assertIn("Note: " + note, page.text)
        self.shown = page
        return " | ".join(notes)

    def test_whole_files_leave_nothing_out(self) -> None:
        self.assertEqual(self.said(), "")
        self.assertEqual([event["text"] for event in self.shown.index["runs"][0]["events"]], ["kept"])
        self.assertIn("step 30 of 60 (training), 30.0 s left", self.shown.text)

    def test_damage_is_left_out_and_said(self) -> None:
        deep, long = "[" * 100_000 + "]" * 100_000 + "\n", '{"time": "' + "x" * (70 << 20) + '"}\n'
        for name, words in (("progress.json", "damaged"), ("summary.json", ""), ("events.jsonl", "")):
            file = self.run_folder / name
            for content in ("\0" * 999 + "\n", "[]\n", "3\n", '"text"\n', "{\n", "\ufeff{\n", deep, '{"time": 3}\n', long):
                if name == "summary.json" and content == '{"time": 3}\n':
                    continue  # an object without questions
                file.write_text(content)
                said = self.said()
                self.assertIn(name, said, content[:20])
                self.assertIn("left out", said)
                self.assertIn(words, said)
                self.restore()
            file.unlink()
            file.mkdir()
            self.assertIn(f"{name}", self.said())
            file.rmdir()
            os.mkfifo(file)
            self.assertIn(f"{name}", self.said())
            self.restore()
            os.truncate(file, 1 << 30)
            self.assertIn(name, self.said())
            self.restore()

    def test_numbers_that_no_run_has_are_left_out(self) -> None:
        for value in (-1, 1.5, 1e308, 2**63, 2**64 + 1, "3", None, True, [], {}):
            for key in ("step", "tokens"):
                lines = [json.dumps(self.EVENT | {key: value}), json.dumps(self.EVENT)]
                (self.run_folder / "events.jsonl").write_text("\n".join(lines) + "\n")
                self.assertIn("events.jsonl: 1 line is no event", self.said())
                self.assertEqual([event["step"] for event in self.shown.index["runs"][0]["events"]], [3])
            self.restore()
            for key in ("step", "tokens", "steps"):
                (self.run_folder / "progress.json").write_text(json.dumps(self.PROGRESS | {key: value}))
                self.assertIn("progress.json: is damaged and left out", self.said())
                self.assertNotIn("step 30 of", self.shown.text)
            self.restore()

    def test_answers_of_another_kind_are_left_out(self) -> None:
        heads = [{"layer": layer, "head": head} for layer, head in ((0, 0), (9, 0), (0, 99), (-1, 0), (2**63, 0), (1.5, 0), ("0", 0))]
        answers = {"growth": {"sentence": 3}, "norm_entropy": "text", "key_evolution": [1]}
        answers["norm_split"] = {"sentence": "A sentence.", "between_share": 1e308, "clusters": {"high_norm": {"heads": heads}}}
        for at in range(len(heads)):
            answers["norm_split"]["clusters"]["high_norm"]["heads"] = heads[at:]
            (self.run_folder / "summary.json").write_text(json.dumps(answers))
            said = self.said()
            for key in ("growth", "norm_entropy", "key_evolution"):
                self.assertIn(f"summary.json: '{key}' is damaged and left out", said)
            self.assertIn("A sentence.", self.shown.text)
            text = (self.run_folder / "report.html").read_text(encoding="utf-8")
            self.assertEqual(re.findall('data-go="([^"]*)"', text), ["m=k_norm&amp;h=0.0" if at == 0 else "m=k_norm"])
            self.assertNotIn("inf %", self.shown.text)

    def test_a_manifest_with_values_of_any_kind(self) -> None:
        file = self.run_folder / "manifest.json"
        whole = json.loads(file.read_text())
        for value in (None, True, -1, 1e308, 2**64, "\0", [], {}, [[[]]], {"a": {"b": 1}}):
            changes = {key: value for key in ("seeds", "entropy", "device", "version", "command_line", "title", "ended", "val_loss")}
            model = {key: value for key in whole["config"]["model"]}
            file.write_text(json.dumps(whole | changes | {"config": {"preset": value, "model": model, "train": value}}))
            self.said()
            file.write_text(json.dumps(whole | {"config": {"model": value}, "entropy": {"unigram": value}}))
            self.said()
            for level in self.shown.index["runs"][0]["levels"]:
                self.assertLess(level["value"], 100)
        for key in ("program", "command", "status", "started", "config"):
            file.write_text(json.dumps(whole | {key: 3}))
            self.assertIn("manifest.json: is damaged", self.refused(self.run_folder))
        for text in ("", "{", json.dumps(whole)[:-9], "[" * 100_000, "\0" * 100):
            file.write_text(text)
            self.assertIn("manifest.json", self.refused(self.run_folder))


class OtherCommands(Reports):
    def run_program(self, *arguments: object) -> None:
        subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=True, cwd=self.folder)

    def test_plasticity_and_its_comparison(self) -> None:
        for name, seed in (("one", 0), ("two", 3)):
            self.run_program("plasticity", "--demo", "--set", f"seed={seed}", "--out", name)
        self.run_program("plasticity", "compare", "one", "two", "--out", "both")
        page = self.page(self.folder / "one")
        table = [line.split(",") for line in (self.folder / "one/head_uncertainty.csv").read_text().splitlines()]
        column = table[0].index("ap_overall")
        shown = page.index["runs"][0]["plasticity"]
        self.assertEqual(shown["heads"]["ap"], [float(row[column]) for row in table[1:]])
        cells = page.columns(shown["cells"])
        rows = [line.split(",") for line in (self.folder / "one/head_bucket_plasticity.csv").read_text().splitlines()]
        expected = [float(row[5]) if row[5] else math.nan for row in rows[1:]]
        for value, wanted in zip(cells["value"], expected, strict=True):
            self.assertTrue(math.isnan(wanted) if math.isnan(value) else abs(value - wanted) < 1e-6)
        self.assertEqual(len(page.cells["plasticity"]), len(table))
        page = self.page(self.folder / "both")
        rows = [line.split(",") for line in (self.folder / "both/comparison.csv").read_text().splitlines()]
        self.assertEqual(len(page.cells["comparison"]), len(rows))
        significant = rows[0].index("significant")
        self.assertEqual(
            [row[-1] for row in page.cells["comparison"][1:]],
            ["yes" if row[significant] == "1" else "no" for row in rows[1:]],
        )
        self.assertNotIn("heads", page.cells)

    def test_surgery(self) -> None:
        run = self.folder / "surgery"
        run.mkdir()
        (run / "manifest.json").write_text(json.dumps(manifest(command="surgery")))
        columns = {"method": ["remove", "quantise"], "by": ["gain", "tensor"], "order": ["smallest", ""]}
        columns |= {"share_removed": [0.5, math.nan], "dimensions": [16, 0], "bits": [0, 4], "repeat": [0, 0]}
        pq.write_table(pa.table(columns | {"loss": [1.25, 1.5], "loss_change": [0.25, 0.5]}), run / "surgery.parquet")
        summary = {"title": "x", "unmodified_loss": 1.0, "uniform_attention_loss": 3.0, "remove": "damaged", "quantise": 3}
        (run / "summary.json").write_text(json.dumps(summary))
        page = self.page(run)
        self.assertEqual(page.cells["surgery"][1:], [["remove", "gain", "50 %", "", "0", "1.250", "0.250"], ["quantise", "tensor", "", "4", "0", "1.500", "0.500"]])
        curves = {"remove": {"gain": [{"share_removed": 0.5, "loss": 1.25, "loss_change": 0.25}]},
                  "quantise": {"tensor": [{"bits": 4, "loss": 1.5, "loss_change": 0.5}]}}  # of the table, not of summary.json
        self.assertEqual(page.index["runs"][0]["surgery"], {"unmodified_loss": 1.0, "uniform_attention_loss": 3.0} | curves)
        pq.write_table(pa.table(columns | {"by": ["gain", "mood"], "loss": [1.25, 1.5], "loss_change": [0.25, 0.5]}), run / "surgery.parquet")
        self.assertIn("surgery.parquet: column 'by' holds 'mood'", self.refused(run))
        os.truncate(run / "summary.json", 1 << 30)
        self.assertIn("summary.json: has 1073741824 bytes", self.refused(run))

    def test_tables_of_plasticity_with_heads_that_no_model_has(self) -> None:
        self.run_program("plasticity", "--demo", "--out", "one")
        for name, column in (("head_uncertainty.csv", "q_head"), ("head_bucket_plasticity.csv", "k_bucket")):
            file = self.folder / "one" / name
            before = file.read_text()
            lines = [line.split(",") for line in before.splitlines()]
            lines[3][lines[0].index(column)] = "-7"
            file.write_text("".join(",".join(line) + "\n" for line in lines))
            self.assertIn(f"{name}: row 2: {column} -7: out of range", self.refused(self.folder / "one"))
            file.write_text(before)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
