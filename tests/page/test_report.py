"""`headscope report` as a user meets it: every page is decoded by check_report.py and compared with the run's tables.

usage: python test_report.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import fcntl
import json
import math
import os
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
        for limit in (5, 0.6, 0.4):  # the code alone is 0.1
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

    def test_a_damaged_table_is_refused(self) -> None:
        run = make_run(self.folder / "run", command="inspect")
        rows = self.made(run)
        for damaged in (rows[1:], rows[:2] + rows[3:], [rows[0] | {"text": 9}], [rows[0] | {"weights": [0.5, 0.5]}]):
            pq.write_table(pa.Table.from_pylist(damaged), run / "attention.parquet")
            self.assertIn("attention.parquet: row", self.refused(run))


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
        columns = {"method": ["remove", "quantise"], "by": ["gain", "tensor"], "order": ["smallest", "smallest"]}
        columns |= {"share_removed": [0.5, math.nan], "dimensions": [16, 0], "bits": [0, 4], "repeat": [0, 0]}
        pq.write_table(pa.table(columns | {"loss": [1.25, 1.5], "loss_change": [0.25, 0.5]}), run / "surgery.parquet")
        summary = {"title": "x", "unmodified_loss": 1.0, "uniform_attention_loss": 3.0, "remove": {}, "quantise": {}}
        (run / "summary.json").write_text(json.dumps(summary))
        page = self.page(run)
        self.assertEqual(page.cells["surgery"][1:], [["remove", "gain", "50 %", "", "0", "1.250", "0.250"], ["quantise", "tensor", "", "4", "0", "1.500", "0.500"]])
        self.assertEqual(page.index["runs"][0]["surgery"], summary)


if __name__ == "__main__":
    PROGRAM = str(Path(sys.argv.pop(1)).resolve())
    unittest.main()
