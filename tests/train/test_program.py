"""What a user sees of `headscope train`, `inspect`, `roles` and `plot`: tables that can be read at any time and agree
with each other, a run that is killed and goes on, and what is refused.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
HEADSCOPE_KILLS=50 kills a run that often; the default is a few times.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

DONE, FAILED, WRONG_USAGE = 0, 1, 2
LAYERS, HEADS, KEY_HEADS, D_K, TOKENS_PER_STEP = 2, 4, 2, 8, 4 * 32 * 2
# A run of seconds: updates of 2 x 4 sequences, probes and checkpoints every fifth.
SMALL = ("model.layers=2", "model.d_model=32", "model.heads=4", "model.kv_heads=2", "model.d_k=8", "model.d_ff=64",
         "train.seq_len=32", "train.batch=4", "train.accumulation=2", "train.probe_every=10",
         "train.checkpoint_every=5", "train.keep_checkpoints=10")
KEY_METRICS = {
    "norm": ("k_norm", "k_norm_std", "k_std", "k_token0_norm"),
    "outlier": ("k_max_abs_mean", "k_max_abs", "k_axis", "k_pr_vector", "k_top_dim", "k_top_energy", "k_top_share"),
    "rank": ("k_pr", "k_erank", "k_pr_eig", "k_stable_rank"),
    "redundancy": ("k_cosine",),
}
QUERY_METRICS = {
    "norm": ("q_norm", "qk_ratio"),
    "attention": ("entropy", "entropy_norm", "entropy_seed", "max_logit", "sink", "previous", "self"),
    "pattern": ("constancy", "consistency"),
    "induction": ("induction",),  # of probes
}
FIGURES = ("norm_divergence", "entropy_norm_scatter", "effective_rank", "gamma_heatmap", "key_norm_evolution",
           "outlier_magnitude", "latent_redundancy", "key_magnitude_profile", "qk_ratio", "role_map", "role_timeline")
INTEGER, NUMBER, TEXT = pa.int64(), pa.float64(), pa.string()
VECTOR = pa.list_(pa.field("element", NUMBER, nullable=False))
WHEN = {"step": INTEGER, "tokens": INTEGER}
TABLES = {
    "steps": {**WHEN, "loss": NUMBER, "lr": NUMBER, "adamw_lr": NUMBER, "grad_norm": NUMBER, "tokens_per_s": NUMBER},
    "probes": {**WHEN, "loss": NUMBER, "val_loss": NUMBER, "k_pr": NUMBER},
    "layers": {**WHEN, "source": TEXT, "layer": INTEGER, "metric": TEXT, "value": NUMBER},
    "heads": {**WHEN, "source": TEXT, "layer": INTEGER, "kind": TEXT, "head": INTEGER, "metric": TEXT, "value": NUMBER},
    "gamma": {**WHEN, "layer": INTEGER, "kind": TEXT, "vector": VECTOR},
}
SCORES = ("focused", "broad", "constant", "query_dependent", "axis_aligned", "high_norm", "low_norm", "consistent",
          "sink", "previous", "self", "induction")
headscope: Path
shared: Path  # of this file's tests: `run`, a finished run of 12 steps that no test may change


def settings(*more: str) -> list[str]:
    return [text for setting in (*SMALL, *more) for text in ("--set", setting)]


def steps(count: int) -> str:
    return f"train.tokens={count * TOKENS_PER_STEP}"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(headscope), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def start(*arguments: object) -> subprocess.Popen:
    command = [str(headscope), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def setUpModule() -> None:
    global shared
    temporary = tempfile.TemporaryDirectory(prefix="headscope train ")
    unittest.addModuleCleanup(temporary.cleanup)
    shared = Path(temporary.name)
    result = run("train", *settings(steps(12)), "--track-every", "1", "--out", shared / "run", "--json")
    assert result.returncode == DONE, result.stderr
    (shared / "stdout.json").write_text(result.stdout)


def read(folder: Path, table: str) -> pa.Table:
    return parquet.read_table(folder / f"{table}.parquet")


def rows(folder: Path, table: str) -> dict:
    columns = read(folder, table).to_pydict()
    columns.pop("tokens_per_s", None)  # a time, which is another in every run
    return columns


def head_values(folder: Path, source: str) -> dict[tuple, float]:
    """By (step, layer, kind, head, metric)."""
    table = rows(folder, "heads")
    keys = zip(table["step"], table["layer"], table["kind"], table["head"], table["metric"])
    return {key: value for key, value, of in zip(keys, table["value"], table["source"]) if of == source}


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differing(a: dict[Path, bytes], b: dict[Path, bytes]) -> list[str]:
    """Files that are another, or only in one."""
    return sorted(str(name) for name in {*a, *b} if a.get(name) != b.get(name))


def newest_checkpoint(out: Path) -> str:
    return max((path.name for path in out.glob("checkpoints/step-*")), default="")


def metrics_of(source: str) -> tuple[list[str], list[str]]:
    keys = [metric for group in KEY_METRICS.values() for metric in group]
    queries = [metric for group in QUERY_METRICS.values() for metric in group]
    return keys, [metric for metric in queries if source == "probe" or metric != "induction"]


def rows_of_a_moment(source: str) -> dict[str, int]:
    keys, queries = metrics_of(source)
    averaged = len(keys) + len(queries) - 1  # all but k_top_dim, an index
    return {"heads": LAYERS * (len(keys) * KEY_HEADS + len(queries) * HEADS), "layers": LAYERS * (averaged + 2)}


class Program(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope train ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def done(self, *arguments: object) -> str:
        result = run(*arguments)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result.stdout

    def train(self, name: str, *arguments: object) -> Path:
        out = self.folder / name
        self.done("train", *settings(), "--out", out, *arguments)
        return out

    def copy_of_run(self, name: str) -> Path:
        return Path(shutil.copytree(shared / "run", self.folder / name))

    def assert_whole_moments(self, table: pa.Table, name: str) -> None:
        """Every (source, step) that is there has all its rows; every step of gains has all its vectors."""
        if table.num_rows == 0:
            return
        if name == "gamma":
            for step, count in Counter(table["step"].to_pylist()).items():
                self.assertEqual(count, LAYERS * 2, f"gains of step {step}")
            return
        for (source, step), count in Counter(zip(table["source"].to_pylist(), table["step"].to_pylist())).items():
            self.assertEqual(count, rows_of_a_moment(source)[name], f"{name}: {source}, step {step}")

    def assert_same_training(self, first: Path, second: Path) -> None:
        self.assertEqual(repr(rows(first, "steps")), repr(rows(second, "steps")))  # repr: NaN equals itself
        kept = sorted(path.name for path in (first / "checkpoints").iterdir())
        self.assertEqual(kept, sorted(path.name for path in (second / "checkpoints").iterdir()))
        for name in kept:
            for file in ("model.safetensors", "optimizer.safetensors"):
                one, other = (folder / "checkpoints" / name / file for folder in (first, second))
                self.assertEqual(one.read_bytes(), other.read_bytes(), f"{name}/{file}")


class Tables(Program):
    def test_TheFolder_HoldsEverything(self):
        out = shared / "run"
        manifest = json.loads((out / "manifest.json").read_text())
        self.assertEqual((manifest["command"], manifest["status"]), ("train", "complete"))
        self.assertEqual(manifest["val_loss"], rows(out, "probes")["val_loss"][-1])
        printed = json.loads((shared / "stdout.json").read_text())
        self.assertEqual(printed["val_loss"], manifest["val_loss"])
        self.assertEqual(printed["findings"], json.loads((out / "summary.json").read_text()))
        self.assertEqual(printed["roles"], json.loads((out / "roles.json").read_text()))
        self.assertIn("accumulation: 2", (out / "config.yaml").read_text())
        self.assertIn("# Heads in training", (out / "summary.md").read_text())
        for figure in FIGURES:
            for suffix, first in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".gp", b"")):
                content = (out / "plots" / f"{figure}{suffix}").read_bytes()
                self.assertTrue(content.startswith(first) and len(content) > 200, f"{figure}{suffix}")
        self.assertEqual(sorted(path.name for path in (out / "checkpoints").iterdir()),
                         ["step-000005", "step-000010", "step-000012"])
        hidden = [path for path in out.rglob(".*") if path.name != ".lock"]
        self.assertEqual(hidden, [])

    def test_ColumnsAndTypes(self):
        for name, columns in TABLES.items():
            schema = read(shared / "run", name).schema
            self.assertEqual(dict(zip(schema.names, (field.type for field in schema))), columns, name)
        for name, first in (("roles", ["layer", "head", "key_head", "role", "clarity", *SCORES]),
                            ("role_timeline", ["step", "tokens", "role", "share"]),
                            ("role_transitions", ["layer", "head", "step", "tokens", "from", "to"])):
            self.assertEqual(read(shared / "run", name).schema.names, [*first, "definition", "definition_hash"])

    def test_Moments_OfTrainingAreEveryStepAndOfProbesTheirInterval(self):
        for name in ("heads", "layers"):
            table = rows(shared / "run", name)
            for source, moments in (("train", range(12)), ("probe", (0, 5, 10, 12))):
                found = Counter(step for step, of in zip(table["step"], table["source"]) if of == source)
                self.assertEqual(found, {step: rows_of_a_moment(source)[name] for step in moments}, f"{name}, {source}")
        self.assertEqual(rows(shared / "run", "probes")["step"], [0, 5, 10, 12])
        # A row of `steps` is an update that was made; a moment is a number of updates made before it.
        self.assertEqual(rows(shared / "run", "steps")["step"], list(range(1, 13)))
        for name in TABLES:
            table = rows(shared / "run", name)
            self.assertEqual(table["tokens"], [step * TOKENS_PER_STEP for step in table["step"]], name)

    def test_EveryMetric_IsThereOfEveryHead(self):
        for source, last in (("train", 11), ("probe", 12)):
            keys, queries = metrics_of(source)
            expected = {(last, layer, kind, head, metric) for layer in range(LAYERS)
                        for kind, heads, names in (("k", KEY_HEADS, keys), ("q", HEADS, queries))
                        for head in range(heads) for metric in names}
            values = head_values(shared / "run", source)
            self.assertEqual({key for key in values if key[0] == last}, expected)
            self.assertEqual([key for key, value in values.items() if not math.isfinite(value)], [])

    def test_HeadsOfOneMoment_AgreeWithEachOther(self):
        for source in ("train", "probe"):
            values = head_values(shared / "run", source)
            for (step, layer, kind, head, metric), value in values.items():
                where = f"{source} {step} {layer} {kind}{head} {metric} {value}"
                if metric in ("k_pr", "k_erank", "k_pr_eig", "k_stable_rank", "k_pr_vector"):
                    self.assertTrue(1 <= value <= D_K + 1e-6, where)
                if metric in ("entropy_norm", "sink", "previous", "self", "constancy", "consistency", "induction",
                              "k_top_energy", "k_top_share", "k_axis"):
                    self.assertTrue(0 <= value <= 1 + 1e-6, where)
                if metric == "qk_ratio":
                    key = values[step, layer, "k", head * KEY_HEADS // HEADS, "k_norm"]
                    self.assertAlmostEqual(value, values[step, layer, "q", head, "q_norm"] / key, places=12)
                if metric == "k_max_abs_mean":
                    self.assertLessEqual(value, values[step, layer, "k", head, "k_max_abs"])

    def test_Layers_AreMeansOfTheirHeads(self):
        heads = {}
        for source in ("train", "probe"):
            for (step, layer, _, _, metric), value in head_values(shared / "run", source).items():
                heads.setdefault((source, step, layer, metric), []).append(value)
        compared = set()
        for row in read(shared / "run", "layers").to_pylist():
            if row["metric"].startswith("gamma"):
                continue
            key = row["source"], row["step"], row["layer"], row["metric"]
            compared.add(key)
            self.assertAlmostEqual(row["value"], np.mean(heads[key]), places=12)
        self.assertEqual({key for key in heads if key[3] != "k_top_dim"}, compared)

    def test_Gains_AreThereOnceAndGiveTheirVariation(self):
        table = rows(shared / "run", "gamma")
        keys = list(zip(table["step"], table["layer"], table["kind"]))
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(set(keys), {(s, layer, kind) for s in range(13) for layer in range(LAYERS) for kind in "qk"})
        gains = {key: np.array(vector) for key, vector in zip(keys, table["vector"])}
        self.assertTrue(all(gain.shape == (D_K,) for gain in gains.values()))
        self.assertTrue(all((gains[0, layer, kind] == 1).all() for layer in range(LAYERS) for kind in "qk"))
        self.assertFalse(np.array_equal(gains[0, 0, "k"], gains[12, 0, "k"]))
        layers = rows(shared / "run", "layers")
        for step, layer, metric, value in zip(layers["step"], layers["layer"], layers["metric"], layers["value"]):
            kind = {"gamma_cv": "k", "gamma_q_cv": "q"}.get(metric)
            if kind is not None:
                gain = gains[step, layer, kind]
                self.assertAlmostEqual(value, gain.std(ddof=1) / abs(gain.mean()), places=12)

    def test_Probes_SumUpStepsAndLayers(self):
        losses, probes = rows(shared / "run", "steps")["loss"], rows(shared / "run", "probes")
        self.assertTrue(math.isnan(probes["loss"][0]) and math.isnan(probes["val_loss"][0]))
        for row, (begin, end) in enumerate(((0, 5), (5, 10), (10, 12)), start=1):
            self.assertAlmostEqual(probes["loss"][row], np.mean(losses[begin:end]), places=12)
        values = head_values(shared / "run", "probe")
        for step, pr in zip(probes["step"], probes["k_pr"]):
            of_step = [value for key, value in values.items() if key[0] == step and key[4] == "k_pr"]
            self.assertAlmostEqual(pr, np.mean(of_step), places=12)

    def test_Roles_AreOfTheLastProbe(self):
        roles, values = rows(shared / "run", "roles"), head_values(shared / "run", "probe")
        every_head = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
        self.assertEqual(list(zip(roles["layer"], roles["head"])), every_head)
        self.assertEqual(roles["key_head"], [0, 0, 1, 1] * LAYERS)
        for row, (layer, head) in enumerate(zip(roles["layer"], roles["head"])):
            for score, metric in (("broad", "entropy_norm"), ("sink", "sink"), ("constant", "constancy"),
                                  ("induction", "induction")):
                self.assertAlmostEqual(roles[score][row], values[12, layer, "q", head, metric], places=12)
        timeline = rows(shared / "run", "role_timeline")
        for step in (0, 5, 10, 12):
            self.assertAlmostEqual(sum(s for s, of in zip(timeline["share"], timeline["step"]) if of == step), 1)


class Tracking(Program):
    def test_ChosenMetrics_AreTheOnlyOnes(self):
        out = self.train("run", "--track", "norm,rank,sink", "--track-every", "2", "--set", steps(5))
        expected = {*KEY_METRICS["norm"], *KEY_METRICS["rank"], *QUERY_METRICS["norm"], "sink"}
        table = rows(out, "heads")
        for source, moments in (("train", {0, 2, 4}), ("probe", {0, 5})):
            of_source = [(step, metric) for step, metric, of in zip(table["step"], table["metric"], table["source"])
                         if of == source]
            self.assertEqual({metric for _, metric in of_source}, expected)
            self.assertEqual({step for step, _ in of_source}, moments)
        self.assertEqual(set(rows(out, "layers")["metric"]), expected)
        self.assertFalse((out / "gamma.parquet").exists())
        self.assertFalse((out / "roles.json").exists())  # there are none without attention

    def test_Tracking_ChangesNothingInTraining(self):
        out = self.train("run", "--track-every", "0", "--set", steps(12))
        self.assertEqual(set(rows(out, "heads")["source"]), {"probe"})
        self.assertEqual(set(rows(out, "gamma")["step"]), {0, 5, 10, 12})
        self.assert_same_training(shared / "run", out)
        self.assertEqual(repr(rows(shared / "run", "probes")), repr(rows(out, "probes")))
        self.assertEqual(head_values(shared / "run", "probe"), head_values(out, "probe"))

    def test_ItsOwnConfiguration_GivesTheSameRunAgain(self):
        out = self.folder / "run"
        self.done("train", "--config", shared / "run" / "config.yaml", "--out", out)
        again, first = files_of(out), files_of(shared / "run")
        timed = {"manifest.json", "steps.parquet/part-00000.parquet"}
        self.assertEqual(set(differing(first, again)) - timed, set())
        self.assertEqual(repr(rows(shared / "run", "steps")), repr(rows(out, "steps")))


class Running(Program):
    LONG = (steps(60), "train.checkpoint_every=2", "train.keep_checkpoints=2")

    def read_or_again(self, out: Path, name: str) -> pa.Table:
        for _ in range(20):
            try:
                return read(out, name)
            except FileNotFoundError:  # merged between the list of its files and their opening
                self.merges[name] += 1
        self.fail(f"{name} can not be read")

    def test_ReadingWhileItIsWritten_GivesWholeMomentsAndNeverFewer(self):
        out, names = self.folder / "run", ("steps", "heads", "layers", "gamma")
        self.merges: Counter = Counter()
        process = start("train", *settings(*self.LONG), "--track-every", "1", "--out", out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not list(out.glob("checkpoints/step-*")):
            self.assertIsNone(process.poll())
            time.sleep(0.005)
        seen: dict[str, list[int]] = {name: [0] for name in names}
        running = True
        while running:
            running = process.poll() is None  # once more after the end
            for name in names:
                table = self.read_or_again(out, name)
                # Polars reads every file of the folder, also hidden ones.
                strange = [file for file in os.listdir(out / f"{name}.parquet")
                           if not (file.startswith("part-") and file.endswith(".parquet"))]
                self.assertEqual(strange, [])
                self.assertGreaterEqual(table.num_rows, seen[name][-1], name)
                seen[name].append(table.num_rows)
                if name == "steps":
                    self.assertEqual(table["step"].to_pylist(), list(range(1, table.num_rows + 1)))
                else:
                    self.assert_whole_moments(table, name)
        self.assertEqual(process.returncode, DONE)
        for name in names:
            self.assertGreater(len(set(seen[name])), 3, "it was too fast to be seen growing")
            self.assertLessEqual(self.merges[name], 1, name)
        self.assertEqual(seen["steps"][-1], 60)

    def test_ManyRowsBetweenCheckpoints_AreSeenAsWholeMoments(self):
        out = self.folder / "run"  # a flush every 26 steps: 2,592 rows of heads a moment, 65,536 may wait
        wide = settings("model.layers=12", "model.heads=8", "model.kv_heads=8", "model.d_k=4", "train.seq_len=8",
                        "train.batch=1", "train.tokens=16000", "train.checkpoint_every=10000",
                        "train.probe_every=10000")
        process = start("train", *wide, "--track-every", "1", "--out", out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while not list(out.glob("steps.parquet/part-*")):  # the last table of a flush
            self.assertIsNone(process.poll())
            time.sleep(0.005)
        process.kill()
        process.wait()
        self.assertFalse((out / "checkpoints").exists())
        for name in ("heads", "layers"):
            table = rows(out, name)
            moments = Counter(step for step, source in zip(table["step"], table["source"]) if source == "train")
            self.assertEqual(len(set(moments.values())), 1, moments)

    def test_AFailureInTheFirstStep_IsResumedWithoutASecondFirstProbe(self):
        out = self.folder / "run"
        flags = ["train", *settings(steps(2), "train.max_abs_penalty=1e300"), "--out", out]
        for more in ([], ["--resume"], ["--resume"]):
            result = run(*flags, *more)
            self.assertEqual(result.returncode, FAILED, result.stderr)
            self.assertIn("not finite", result.stderr.splitlines()[-1])
            self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "failed")
            self.assertEqual(rows(out, "probes")["step"], [0])

    def test_KilledAtRandomMomentsAndResumed_EndsBitForBitTheSame(self):
        kills = int(os.environ.get("HEADSCOPE_KILLS", "5"))
        flags = [*settings(*self.LONG), "--track-every", "1"]
        whole, killed = self.folder / "whole", self.folder / "killed"
        begin = time.monotonic()
        self.done("train", *flags, "--out", whole)
        seconds = time.monotonic() - begin
        moments, read_after_a_kill = random.Random(11), 0
        for attempt in range(kills):
            saved = newest_checkpoint(killed)
            process = start("train", *flags, "--out", killed, *(["--resume"] if killed.exists() else []))
            while attempt % 2 == 0 and process.poll() is None and newest_checkpoint(killed) == saved:
                time.sleep(0.002)  # every other one gets on before it is killed
            try:
                process.wait(moments.uniform(0, 2) * seconds / kills)
                break  # it was done before we were
            except subprocess.TimeoutExpired:
                process.kill()
            finally:
                process.wait()
            if not (killed / "manifest.json").exists():  # killed before it had begun
                shutil.rmtree(killed, ignore_errors=True)
                continue
            for name in ("heads", "layers", "gamma"):
                if list((killed / f"{name}.parquet").glob("part-*")):
                    self.assert_whole_moments(read(killed, name), name)
                    read_after_a_kill += 1
        self.assertGreater(read_after_a_kill, 0, "no kill hit a run that had rows")
        self.done("train", *flags, "--out", killed, "--resume")
        self.assert_same_training(whole, killed)
        again, first = files_of(killed), files_of(whole)
        timed = {"manifest.json", "steps.parquet/part-00000.parquet"}
        self.assertEqual(set(differing(first, again)) - timed, set())

    def test_ACompleteRun_IsShownAgainAndLeftAsItIs(self):
        out = self.copy_of_run("run")
        mine = self.folder / "mine.yaml"
        mine.write_text("id: mine-1\nroles:\n  any: {broad: 0}\n")
        self.done("roles", out, "--definition", mine)
        before = files_of(out)
        printed = self.done("train", "--config", out / "config.yaml", "--out", out, "--resume")
        self.assertIn("validation loss ", printed)
        self.assertEqual(differing(files_of(out), before), [])


class Inspect(Program):
    def test_ACheckpoint_IsMeasuredAsTheProbeWas(self):
        for step in (5, 12):
            out = self.folder / str(step)
            printed = json.loads(
                self.done("inspect", shared / f"run/checkpoints/step-{step:06}", "--out", out, "--json"))
            self.assertEqual((printed["step"], printed["tokens"]), (step, step * TOKENS_PER_STEP))
            probed = {key: value for key, value in head_values(shared / "run", "probe").items() if key[0] == step}
            self.assertEqual(head_values(out, "probe"), probed)  # bit for bit
            self.assertEqual(len(probed), rows_of_a_moment("probe")["heads"])
            for name in ("layers", "gamma"):
                table = read(shared / "run", name).to_pylist()
                expected = [row for row in table if row["step"] == step and row.get("source") != "train"]
                self.assertEqual(read(out, name).to_pylist(), expected, name)
            (row,) = [row for row in read(shared / "run", "probes").to_pylist() if row["step"] == step]
            self.assertEqual(printed["val_loss"], row["val_loss"])
            (measured,) = read(out, "probes").to_pylist()
            self.assertEqual((measured["val_loss"], measured["k_pr"]), (row["val_loss"], row["k_pr"]))
            self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "complete")

    def test_ARun_StandsForItsNewestCheckpointAndAMetricIsShown(self):
        before = files_of(shared / "run")
        printed = self.done("inspect", shared / "run", "--show", "k_pr", "--out", self.folder / "out")
        self.assertIn("step-000012: step 12", printed)
        lines = printed.splitlines()
        (top,) = [i for i, line in enumerate(lines) if line.split() == ["k_pr", "K0", "K1"]]
        values = head_values(shared / "run", "probe")
        for layer in range(LAYERS):
            shown = [f"{values[12, layer, 'k', head, 'k_pr']:.2f}" for head in range(KEY_HEADS)]
            self.assertEqual(lines[top + 1 + layer].split(), ["layer", str(layer), *shown])
        self.assertEqual(differing(files_of(shared / "run"), before), [])

    def test_ChosenMetrics_NeedNoShow(self):
        out = self.folder / "out"
        self.assertIn("k_norm", self.done("inspect", shared / "run", "--track", "norm", "--out", out))
        self.assertEqual(set(rows(out, "heads")["metric"]), {*KEY_METRICS["norm"], *QUERY_METRICS["norm"]})


class Roles(Program):
    def definition(self, text: str = "id: mine-1\nroles:\n  wide: {broad: 0.1}\n") -> Path:
        file = self.folder / "mine.yaml"
        file.write_text(text)
        return file

    def test_ARun_GivesTheSameBytesAgain(self):
        out = self.copy_of_run("run")
        before = files_of(out)
        first = self.done("roles", out)
        self.assertIn("definition seeds-1", first)
        maps = [line.split() for line in first.splitlines() if line[:5].strip().isdigit()]
        self.assertEqual([(layer, len(heads)) for layer, heads in maps], [("0", HEADS), ("1", HEADS)])
        self.assertEqual(self.done("roles", out), first)
        self.assertEqual(differing(files_of(out), before), [])

    def test_AnotherDefinition_GivesOtherLabelsElsewhere(self):
        before, out = files_of(shared / "run"), self.folder / "out"
        printed = json.loads(
            self.done("roles", shared / "run", "--definition", self.definition(), "--out", out, "--json"))
        self.assertEqual(differing(files_of(shared / "run"), before), [])
        self.assertEqual(printed["definition"]["id"], "mine-1")
        table, original = rows(out, "roles"), rows(shared / "run", "roles")
        self.assertEqual(set(table["definition"]), {"mine-1"})
        self.assertTrue(set(table["definition_hash"]).isdisjoint(original["definition_hash"]))
        self.assertEqual(table["role"], ["wide" if broad >= 0.1 else "mixed" for broad in table["broad"]])
        self.assertNotEqual(table["role"], original["role"])
        for score in SCORES:
            self.assertEqual(table[score], original[score], score)
        self.assertTrue((out / "plots" / "role_map.png").exists())
        drawn = (out / "plots" / "role_map.svg").read_bytes()
        (out / "plots" / "role_map.svg").unlink()
        self.done("plot", out)  # the folder stands for itself
        self.assertEqual((out / "plots" / "role_map.svg").read_bytes(), drawn)
        self.done("roles", out, "--out", out, "--overwrite")  # replaces roles, not what they come from
        self.assertEqual((out / "roles.parquet").read_bytes(), (shared / "run" / "roles.parquet").read_bytes())

    def test_ACheckpoint_IsMeasuredFirst(self):
        out = self.folder / "out"
        self.done("roles", shared / "run/checkpoints/step-000012", "--out", out)
        self.assertEqual((out / "roles.parquet").read_bytes(), (shared / "run/roles.parquet").read_bytes())
        self.assertEqual(set(rows(out, "role_timeline")["step"]), {12})

    def test_OfTrainingBatches_IsDrawnAgainFromThem(self):
        out = self.copy_of_run("run")
        self.assertIn("train rows", self.done("roles", out, "--source", "train"))
        self.assertEqual(set(rows(out, "role_timeline")["step"]), set(range(12)))
        before = files_of(out)
        self.done("plot", out)
        self.assertEqual(differing(files_of(out), before), [])

    def test_Plot_GivesTheSameFiguresAgainOrOthersInTheDark(self):
        out = self.copy_of_run("run")
        before = files_of(out)
        shutil.rmtree(out / "plots")
        self.done("plot", out)
        self.assertEqual(differing(files_of(out), before), [])
        self.done("plot", out, "--theme", "dark")
        changed = {Path(name).name for name in differing(files_of(out), before)}
        self.assertLessEqual({f"{figure}{suffix}" for figure in FIGURES for suffix in (".png", ".svg", ".gp")}, changed)


class BadInput(Program):
    def refused(self, message: str, *arguments: object) -> None:
        result = run(*arguments)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("headscope: data:")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(message, lines[0])
        self.assertEqual(result.stdout, "")

    def test_EachHasItsLine_AndLeavesNothing(self):
        ran, out = shared / "run", ["--out", self.folder / "out"]
        before = files_of(ran)
        missing, empty = self.folder / "missing", self.folder / "empty"
        empty.mkdir()
        definition = self.folder / "unknown.yaml"
        definition.write_text("id: mine-1\nroles:\n  wide: {brod: 0.1}\n")
        for message, arguments in (
            ("there is no metric or group 'nrom'; did you mean 'norm'?", ["train", "--track", "nrom", *out]),
            ("there is no metric or group 'k_pt'; did you mean 'k_pr'?", ["train", "--track", "rank,k_pt", *out]),
            ("there is no metric or group 'rnk'; did you mean 'rank'?", ["inspect", ran, "--track", "rnk", *out]),
            ("--show: there is no metric 'k_nrm'; did you mean 'k_norm'?", ["inspect", ran, "--show", "k_nrm", *out]),
            ("--show sink: is not among --track norm",
             ["inspect", ran, "--track", "norm", "--show", "sink", *out]),
            ("--track gain: measures nothing of heads", ["inspect", ran, "--track", "gain", *out]),
            ("track.every is -1; expected 0 or more", ["train", "--track-every", "-1", *out]),
            ("unknown theme 'nonsense'; known: light, dark", ["train", "--theme", "nonsense", *out]),
            ("unknown theme 'nonsense'; known: light, dark", ["roles", ran, "--theme", "nonsense", *out]),
            ("unknown theme 'nonsense'; known: light, dark", ["plot", ran, "--theme", "nonsense"]),
            ("'model.d_k' belongs to the checkpoint", ["inspect", ran, "--set", "model.d_k=16", *out]),
            ("--source both: expected probe or train", ["roles", ran, "--source", "both", *out]),
            ("there is no score 'brod'; did you mean 'broad'?", ["roles", ran, "--definition", definition, *out]),
            (str(missing), ["roles", ran, "--definition", missing, *out]),
            (f"{missing}: ", ["inspect", missing, *out]),
            (f"{missing}: ", ["roles", missing, *out]),
            (f"{missing}: is not a run folder", ["plot", missing]),
            (f"{empty}: is no checkpoint", ["inspect", empty, *out]),
            (f"{empty}: is no checkpoint", ["roles", empty, *out]),
            (f"{empty}: is not a run folder", ["plot", empty]),
            (f"{ran}: exists; go on with --resume", ["train", *settings(steps(12)), "--out", ran]),
            ("track.every (was 1, now 2)",
             ["train", *settings(steps(12)), "--track-every", "2", "--out", ran, "--resume"]),
            ("is a run of 'train', not of 'inspect'", ["inspect", ran, "--out", ran, "--overwrite"]),
        ):
            with self.subTest(message):
                self.refused(message, *arguments)
                self.assertFalse((self.folder / "out").exists())
        self.assertEqual(differing(files_of(ran), before), [])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["empty", "unknown.yaml"])

    def test_WithoutItsTables_ARunIsRefused(self):
        out = self.copy_of_run("run")
        shutil.rmtree(out / "heads.parquet")
        for command in ("roles", "plot"):
            self.refused(f"{out}: has no heads.parquet", command, out)
        shutil.rmtree(out / "checkpoints")
        self.refused("is no checkpoint", "inspect", out, "--out", self.folder / "out")
        self.assertFalse((self.folder / "out").exists())

    def test_ADamagedTable_IsNamed(self):
        out = self.copy_of_run("run")
        file = out / "heads.parquet" / "part-00000.parquet"
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 1
        file.write_bytes(content)
        for command in ("roles", "plot"):
            self.refused("heads.parquet", command, out)

    # Tensors of other shapes than the configuration says, with the right hash: tests/train/loop_test.cpp.
    def test_WeightsOfAnotherModel_AreNotThoseOfTheCheckpoint(self):
        other = self.train("other", "--set", "model.d_model=48", "--set", steps(1), "--track-every", "0")
        out = self.copy_of_run("run")
        mixed = out / "checkpoints" / "step-000012"
        shutil.copy(other / "checkpoints" / "step-000001" / "model.safetensors", mixed)
        for command in ("inspect", "roles"):
            self.refused("model.safetensors: its content does not match the hash", command, mixed, "--out",
                         self.folder / "out")
            self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
