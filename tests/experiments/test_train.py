"""What a user sees of `headscope train`: tables that can be read at any time and agree with each other, and a run that
is killed and goes on.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
HEADSCOPE_KILLS=50 kills a run that often; the default is a few times.
"""

from __future__ import annotations

import json
import math
import os
import random
import shlex
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

import program
from program import (
    D_K, DONE, FAILED, FIGURES, HEADS, KEY_HEADS, KEY_METRICS, LAYERS, QUERY_METRICS, SCORES, TABLES,
    TOKENS_PER_STEP, differing, files_of, head_values, metrics_of, newest_checkpoint, Program, read, rows,
    rows_of_a_moment, run, settings, setUpModule, start, steps, WRONG_USAGE,
)


class Tables(Program):
    def test_TheFolder_HoldsEverything(self):
        out = program.shared / "run"
        manifest = json.loads((out / "manifest.json").read_text())
        self.assertEqual((manifest["command"], manifest["status"]), ("train", "complete"))
        self.assertRegex(manifest["torch"], r"^\d+\.\d+\.\d+")
        on_gpu = not manifest["device"].startswith("cpu")
        self.assertEqual([*(manifest["gpu"] or {})], ["name", "driver", "cuda", "cudnn"] if on_gpu else [])
        self.assertEqual(manifest["val_loss"], rows(out, "probes")["val_loss"][-1])
        printed = json.loads((program.shared / "stdout.json").read_text())
        self.assertEqual(printed["val_loss"], manifest["val_loss"])
        self.assertEqual(printed["findings"], json.loads((out / "summary.json").read_text()))
        self.assertEqual(printed["roles"], json.loads((out / "roles.json").read_text()))
        self.assertIn("accumulation: 2", (out / "config.yaml").read_text())
        self.assertEqual((out / "summary.md").read_text().splitlines()[0],
                         "# Heads of run (tiny) over training, measured on the fixed held-out batch (probe)")
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
            schema = read(program.shared / "run", name).schema
            self.assertEqual(dict(zip(schema.names, (field.type for field in schema))), columns, name)
        for name, first in (("roles", ["layer", "head", "key_head", "role", "clarity", *SCORES]),
                            ("role_timeline", ["step", "tokens", "role", "share"]),
                            ("role_transitions", ["layer", "head", "step", "tokens", "from", "to"])):
            self.assertEqual(read(program.shared / "run", name).schema.names, [*first, "definition", "definition_hash"])

    def test_Moments_OfTrainingAreEveryStepAndOfProbesTheirInterval(self):
        for name in ("heads", "layers"):
            table = rows(program.shared / "run", name)
            for source, moments in (("train", range(12)), ("probe", (0, 5, 10, 12))):
                found = Counter(step for step, of in zip(table["step"], table["source"]) if of == source)
                self.assertEqual(found, {step: rows_of_a_moment(source)[name] for step in moments}, f"{name}, {source}")
        self.assertEqual(rows(program.shared / "run", "probes")["step"], [0, 5, 10, 12])
        # A row of `steps` is an update that was made; a moment is a number of updates made before it.
        self.assertEqual(rows(program.shared / "run", "steps")["step"], list(range(1, 13)))
        for name in TABLES:
            table = rows(program.shared / "run", name)
            self.assertEqual(table["tokens"], [step * TOKENS_PER_STEP for step in table["step"]], name)

    def test_EveryMetric_IsThereOfEveryHead(self):
        for source, last in (("train", 11), ("probe", 12)):
            keys, queries = metrics_of(source)
            expected = {(last, layer, kind, head, metric) for layer in range(LAYERS)
                        for kind, heads, names in (("k", KEY_HEADS, keys), ("q", HEADS, queries))
                        for head in range(heads) for metric in names}
            values = head_values(program.shared / "run", source)
            self.assertEqual({key for key in values if key[0] == last}, expected)
            self.assertEqual([key for key, value in values.items() if not math.isfinite(value)], [])

    def test_HeadsOfOneMoment_AgreeWithEachOther(self):
        for source in ("train", "probe"):
            values = head_values(program.shared / "run", source)
            for (step, layer, kind, head, metric), value in values.items():
                where = f"{source} {step} {layer} {kind}{head} {metric} {value}"
                if metric in ("k_pr", "k_erank", "k_pr_eig", "k_stable_rank", "k_pr_vector"):
                    self.assertTrue(1 <= value <= D_K + 1e-6, where)
                if metric in ("entropy_norm", "sink", "previous", "self", "constancy", "consistency", "induction", "previous_random",
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
            for (step, layer, _, _, metric), value in head_values(program.shared / "run", source).items():
                heads.setdefault((source, step, layer, metric), []).append(value)
        compared = set()
        for row in read(program.shared / "run", "layers").to_pylist():
            if row["metric"].startswith("gamma"):
                continue
            key = row["source"], row["step"], row["layer"], row["metric"]
            compared.add(key)
            self.assertAlmostEqual(row["value"], np.mean(heads[key]), places=12)
        self.assertEqual({key for key in heads if key[3] != "k_top_dim"}, compared)

    def test_Gains_AreThereOnceAndGiveTheirVariation(self):
        table = rows(program.shared / "run", "gamma")
        keys = list(zip(table["step"], table["layer"], table["kind"]))
        self.assertEqual(len(set(keys)), len(keys))
        self.assertEqual(set(keys), {(s, layer, kind) for s in range(13) for layer in range(LAYERS) for kind in "qk"})
        gains = {key: np.array(vector) for key, vector in zip(keys, table["vector"])}
        self.assertTrue(all(gain.shape == (D_K,) for gain in gains.values()))
        self.assertTrue(all((gains[0, layer, kind] == 1).all() for layer in range(LAYERS) for kind in "qk"))
        self.assertFalse(np.array_equal(gains[0, 0, "k"], gains[12, 0, "k"]))
        layers = rows(program.shared / "run", "layers")
        for step, layer, metric, value in zip(layers["step"], layers["layer"], layers["metric"], layers["value"]):
            kind = {"gamma_cv": "k", "gamma_q_cv": "q"}.get(metric)
            if kind is not None:
                gain = gains[step, layer, kind]
                self.assertAlmostEqual(value, gain.std(ddof=1) / abs(gain.mean()), places=12)

    def test_Probes_SumUpStepsAndLayers(self):
        losses, probes = rows(program.shared / "run", "steps")["loss"], rows(program.shared / "run", "probes")
        self.assertTrue(math.isnan(probes["loss"][0]) and math.isnan(probes["val_loss"][0]))
        for row, (begin, end) in enumerate(((0, 5), (5, 10), (10, 12)), start=1):
            self.assertAlmostEqual(probes["loss"][row], np.mean(losses[begin:end]), places=12)
        values = head_values(program.shared / "run", "probe")
        for step, pr in zip(probes["step"], probes["k_pr"]):
            of_step = [value for key, value in values.items() if key[0] == step and key[4] == "k_pr"]
            self.assertAlmostEqual(pr, np.mean(of_step), places=12)

    def test_Roles_AreOfTheLastProbe(self):
        roles, values = rows(program.shared / "run", "roles"), head_values(program.shared / "run", "probe")
        every_head = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
        self.assertEqual(list(zip(roles["layer"], roles["head"])), every_head)
        self.assertEqual(roles["key_head"], [0, 0, 1, 1] * LAYERS)
        for row, (layer, head) in enumerate(zip(roles["layer"], roles["head"])):
            for score, metric in (("broad", "entropy_norm"), ("sink", "sink"), ("constant", "constancy"),
                                  ("induction", "induction")):
                self.assertAlmostEqual(roles[score][row], values[12, layer, "q", head, metric], places=12)
        timeline = rows(program.shared / "run", "role_timeline")
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
        self.assert_same_training(program.shared / "run", out)
        self.assertEqual(repr(rows(program.shared / "run", "probes")), repr(rows(out, "probes")))
        self.assertEqual(head_values(program.shared / "run", "probe"), head_values(out, "probe"))

    def test_ItsOwnConfiguration_GivesTheSameRunAgain(self):
        out = self.folder / "run"
        self.done("train", "--config", program.shared / "run" / "config.yaml", "--out", out)
        again, first = files_of(out), files_of(program.shared / "run")
        timed = {"manifest.json", "steps.parquet/part-00000.parquet", "progress.json", "events.jsonl", "report.html"}
        self.assertEqual(set(differing(first, again)) - timed, set())
        self.assertEqual(repr(rows(program.shared / "run", "steps")), repr(rows(out, "steps")))


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

    def test_SeveralSeeds_AreTheRunsOfEachSeed(self):
        self.done("train", *settings(steps(2)), "--seeds", "3,4", "--out", self.folder / "both")
        self.done("train", *settings(steps(2)), "--seed", "4", "--out", self.folder / "one")
        self.assertEqual(sorted(path.name for path in (self.folder / "both").iterdir()), ["seed_3", "seed_4"])
        for table in ("heads", "probes"):
            one, three, four = (repr(rows(self.folder / name, table)) for name in ("one", "both/seed_3", "both/seed_4"))
            self.assertEqual(four, one)
            self.assertNotEqual(three, one)
        refused = run("train", *settings(steps(2)), "--seeds", "3,3", "--out", self.folder / "twice")
        self.assertEqual((refused.returncode, refused.stderr), (2, "headscope: --seeds 3,3: 3 is there twice\n"))
        both = run("train", *settings(steps(2)), "--seeds", "3", "--seed", "4", "--out", self.folder / "twice")
        self.assertEqual((both.returncode, both.stderr), (2, "headscope: --seed and --seeds: give one of them\n"))

    def test_ASeedThatIsAddedByResume_IsTrainedLikeTheOthers(self):
        out = self.folder / "both"
        self.done("train", *settings(steps(2)), "--seeds", "3", "--out", out)
        before = files_of(out)
        self.done("train", "--seeds", "3,4", "--resume", "--out", out)
        after = files_of(out)
        self.assertEqual({name: after[name] for name in before}, before)
        self.done("train", *settings(steps(2)), "--seed", "4", "--out", self.folder / "one")
        self.assertEqual(repr(rows(out / "seed_4", "heads")), repr(rows(self.folder / "one", "heads")))
        refused = run("train", "--seeds", "3,5", "--set", "model.layers=1", "--resume", "--out", out)
        self.assertEqual(refused.returncode, WRONG_USAGE)
        self.assertIn("model.layers is 1, and 2 in the run", refused.stderr)
        self.done("train", *settings(steps(3)), "--seed", "5", "--out", out / "seed_5")
        mixed = run("train", "--resume", "--out", out)
        self.assertEqual(mixed.returncode, WRONG_USAGE)
        self.assertRegex(mixed.stderr, r"seed_5: train.tokens is \d+, and \d+ in .*seed_3; remove the one")
        nothing = run("train", "--seeds", "3", "--resume", "--out", self.folder / "nowhere")
        self.assertEqual(nothing.returncode, WRONG_USAGE)
        self.assertIn("none of the seeds has begun", nothing.stderr)

    def test_AfterAnInterruption_TheHintOfSeveralSeedsFinishesAll(self):
        out = self.folder / "both"
        command = [str(program.headscope), "train", *settings(steps(60)), "--seeds", "3,4", "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "train: " not in process.stderr.readline():
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        last = process.communicate(timeout=60)[1].splitlines()[-1]
        self.assertEqual(process.returncode, 130, last)
        hint = shlex.split(last.split("go on with: headscope ")[1])
        self.assertEqual(hint, ["train", "--seeds", "3,4", "--resume", "--out", str(out)])
        shutil.copytree(out, self.folder / "copy")
        self.done(*hint)
        self.done("train", "--resume", "--out", self.folder / "copy")  # those that have begun
        self.assertEqual(repr(rows(self.folder / "copy/seed_3", "heads")), repr(rows(out / "seed_3", "heads")))
        self.assertEqual({path.name for path in out.iterdir()}, {"seed_3", "seed_4"})

    def test_AFailureInTheFirstStep_IsResumedWithoutASecondFirstProbe(self):
        out = self.folder / "run"
        flags = ["train", *settings(steps(2), "train.max_abs_penalty=3e38"), "--out", out]
        for more in ([], ["--resume"], ["--resume"]):
            result = run(*flags, *more)
            self.assertEqual(result.returncode, FAILED, result.stderr)
            self.assertIn("not finite", result.stderr.splitlines()[-1])
            self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "failed")
            self.assertEqual(rows(out, "probes")["step"], [0])

    def test_KilledAtRandomMomentsAndResumed_EndsBitForBitTheSame(self):
        kills = int(os.environ.get("HEADSCOPE_KILLS", "5"))
        flags = [*settings(*self.LONG), "--track-every", "1"]
        whole, killed = self.folder / "whole" / "run", self.folder / "killed" / "run"  # titles name the run
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
        timed = {"manifest.json", "steps.parquet/part-00000.parquet", "progress.json", "events.jsonl", "report.html"}
        self.assertEqual(set(differing(first, again)) - timed, set())

    def test_ARunOfAnEarlierVersion_GoesOnWithTheFirstBlocks(self):
        # The keys that a configuration did not have then. Validation and probes took the first blocks, no sample.
        later = {"data": ["validation_sample"], "train": ["deterministic", "recompute"],
                 "model": ["qk_gain", "qk_scale"], "optim": ["gain_decay", "gain_decay_target", "embedding_decay"]}
        flags, of_first = settings(*self.LONG), ("--set", "data.validation_sample=false")
        whole, sampled, old = (self.folder / name / "run" for name in ("whole", "sampled", "old"))
        self.done("train", *flags, *of_first, "--out", whole)
        self.done("train", *flags, "--out", sampled)
        self.assertNotEqual(repr(rows(whole, "probes")), repr(rows(sampled, "probes")))
        process = start("train", *flags, *of_first, "--out", old)
        while not newest_checkpoint(old):
            self.assertIsNone(process.poll())
            time.sleep(0.002)
        process.kill()
        process.wait()
        manifest = json.loads((old / "manifest.json").read_text())
        self.assertEqual(manifest["status"], "running")
        del manifest["held_out"]
        for part, keys in later.items():
            for key in keys:
                del manifest["config"][part][key]
        (old / "manifest.json").write_text(json.dumps(manifest))
        (old / "config.yaml").unlink()  # written again
        self.done("train", "--resume", "--out", old)
        self.assert_same_training(whole, old)
        for table in ("probes", "heads"):
            self.assertEqual(repr(rows(old, table)), repr(rows(whole, table)), table)
        before, after = (json.loads((out / "manifest.json").read_text()) for out in (whole, old))
        for key in ("config", "held_out", "val_loss"):
            self.assertEqual(after[key], before[key])
        self.assertEqual(after["held_out"]["blocks"], "first")
        self.assertEqual((old / "config.yaml").read_text(), (whole / "config.yaml").read_text())

    def test_ACompleteRun_IsShownAgainAndLeftAsItIs(self):
        out = self.copy_of_run("run")
        mine = self.folder / "mine.yaml"
        mine.write_text("id: mine-1\nroles:\n  any: {broad: 0}\n")
        self.done("roles", out, "--definition", mine)
        before = files_of(out)
        printed = self.done("train", "--config", out / "config.yaml", "--out", out, "--resume")
        self.assertIn("validation loss ", printed)
        self.assertEqual(differing(files_of(out), before), [])


if __name__ == "__main__":
    program.main()
