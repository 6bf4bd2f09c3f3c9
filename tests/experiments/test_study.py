"""What a user sees of `headscope study`: what it writes, what it refuses, and that nothing is lost when it is stopped.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
HEADSCOPE_KILLS=20 HEADSCOPE_KILL_SET= kills a whole `tiny` study twenty times; the default is a shorter one.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import pyarrow.parquet as parquet

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
TAGS = ("QK", "QK_frozen", "NoQK")
FIGURES = ("1_loss", "2_key_pr_causal", "3_per_layer", "4_causal_decomposition", "5_gamma_cv", "6_effects_over_time", "7_effects_by_layer",
           "8_score_spread")
# A study of seconds: 10 steps of 4 x 64 tokens, a checkpoint every second step.
SMALL = ("train.tokens=2560", "train.batch=4", "train.seq_len=64", "train.probe_every=5", "train.checkpoint_every=2",
         "model.layers=2", "model.d_model=64", "model.heads=4", "model.d_k=16", "model.d_ff=128")
headscope: Path


def settings(*more: str) -> list[str]:
    return [text for setting in (*SMALL, *more) for text in ("--set", setting)]


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    command = [str(headscope), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, **environment})


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen([str(headscope), *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True)


def rows(folder: Path, table: str) -> dict:
    columns = parquet.read_table(folder / f"{table}.parquet").to_pydict()
    columns.pop("tokens_per_s", None)  # a time, which is another in every run
    return columns


class Program(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="headscope study ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def study(self, name: str, *arguments: object) -> Path:
        out = self.folder / name
        result = run("study", *settings(), "--out", out, *arguments)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return out

    def refused(self, message: str, *arguments: object) -> None:
        result = run(*arguments)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("headscope: data:")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(message, lines[0])
        self.assertEqual(result.stdout, "")

    def assert_same_study(self, first: Path, second: Path) -> None:
        for tag in TAGS:
            self.assertEqual((first / tag / "results.json").read_bytes(), (second / tag / "results.json").read_bytes(), tag)
            for folder in (first, second):  # a table without rows is absent
                self.assertEqual((folder / tag / "gamma.parquet").exists(), tag != "NoQK")
            for table in ("steps", "probes", "layers", "heads", *(("gamma",) if tag != "NoQK" else ())):
                a, b = rows(first / tag, table), rows(second / tag, table)
                self.assertEqual(repr(a), repr(b), f"{tag} {table}")  # repr: NaN equals itself
            (last,) = sorted((first / tag / "checkpoints").iterdir())[-1:]
            for file in ("model.safetensors", "optimizer.safetensors"):
                other = second / tag / "checkpoints" / last.name / file
                self.assertEqual((last / file).read_bytes(), other.read_bytes(), f"{tag} {file}")


class Output(Program):
    def test_OneSeed_IsTheFolderOfTheSourceStudy(self):
        out = self.study("run")
        for tag in TAGS:
            results = json.loads((out / tag / "results.json").read_text())
            self.assertEqual(results["tag"], tag)
            self.assertEqual(results["tokens"], [0, 1280, 2560])
            self.assertEqual((results["loss"][0], results["val_loss"][0]), (None, None))
            self.assertEqual(sorted(results["layer_pr"]), ["0", "1"])
            means = [sum(layer) / 2 for layer in zip(*results["layer_pr"].values())]
            for mean, expected in zip(results["mean_pr"], means):
                self.assertAlmostEqual(mean, expected, places=12)
            self.assertEqual("gamma_final" in results, tag == "QK")
            self.assertEqual(sorted(results["gamma_cv"]), [] if tag == "NoQK" else ["0", "1"])
            if tag == "QK_frozen":
                self.assertEqual(results["gamma_cv"]["0"], [0.0, 0.0, 0.0])
        for figure in FIGURES:
            for suffix in (".png", ".svg"):
                self.assertGreater((out / f"{figure}{suffix}").stat().st_size, 1000)
        combined = json.loads((out / "combined.json").read_text())
        self.assertEqual(list(combined), ["A", "B", "C", "elapsed_s", "verdict"])
        verdict = combined["verdict"]
        final = {letter: combined[letter]["mean_pr"][-1] for letter in "ABC"}
        self.assertEqual(verdict["mean_pr"], final)
        self.assertAlmostEqual(verdict["gamma_effect"], final["A"] - final["B"], places=12)
        self.assertAlmostEqual(verdict["norm_effect"], final["B"] - final["C"], places=12)
        self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "complete")

    def test_TheSameInitialWeightsAndBatches_ForAllConditions(self):
        out = self.study("run", "--set", "train.tokens=256", "--set", "train.probe_every=1")
        first = {tag: rows(out / tag, "steps")["loss"][0] for tag in TAGS}
        self.assertEqual(first["QK"], first["QK_frozen"])  # the gain is 1 in both at the start
        self.assertAlmostEqual(first["QK"], first["NoQK"], delta=0.05)

    def test_SeveralSeeds_GiveIntervalsAndTests(self):
        out = self.study("run", "--seeds", "42,43")
        for seed in ("seed_42", "seed_43"):
            self.assertTrue((out / seed / "QK" / "results.json").exists())
        combined = json.loads((out / "combined.json").read_text())
        self.assertEqual([seed["seed"] for seed in combined["seeds"]], ["seed_42", "seed_43"])
        self.assertEqual(combined["verdict"]["seeds"]["A"]["n"], 2)
        gamma = combined["verdict"]["effects"]["gamma"]
        self.assertEqual(gamma["seeds"], 2)
        self.assertGreater(gamma["p_value"], 0)
        one, two = (json.loads((out / seed / "QK" / "results.json").read_text()) for seed in ("seed_42", "seed_43"))
        self.assertNotEqual(one["mean_pr"][0], two["mean_pr"][0])

    def test_ARunThatDiverges_IsAnOutcome(self):
        out = self.folder / "run"
        result = run("study", *settings("optim.muon_lr=1e30"), "--conditions", "QK,NoQK", "--seeds", "1,2", "--out", out)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn("not finite", result.stderr)
        verdict = json.loads((out / "combined.json").read_text())["verdict"]
        self.assertEqual(verdict["conclusion"], "inconclusive")
        self.assertEqual([(run["seed"], run["tag"]) for run in verdict["diverged"]],
                         [(seed, tag) for seed in ("seed_1", "seed_2") for tag in ("NoQK", "QK")])
        self.assertIsNone(json.loads((out / "seed_1/QK/results.json").read_text())["mean_pr"][-1])

    def test_SomeConditions_AreInconclusive(self):
        out = self.study("run", "--conditions", "QK,NoQK")
        verdict = json.loads((out / "combined.json").read_text())["verdict"]
        self.assertEqual(verdict["conclusion"], "inconclusive")
        self.assertIsNone(verdict["gamma_effect"])

    def test_Controls_AreTrainedToo(self):
        out = self.study("run", "--controls")
        verdict = json.loads((out / "combined.json").read_text())["verdict"]
        self.assertEqual(set(verdict["effects"]),
                         {"gamma", "norm", "total", "gamma_learning", "gamma_decay", "decay_target", "gamma_scale", "gamma_shape",
                          "temperature", "norm_matched"})
        # 10 updates of lr 0.005 with decay 0.2: without the gradient, γ falls by 1 %.
        gains = {tag: json.loads((out / tag / "results.json").read_text())["gamma_final"]["0"]
                 for tag in ("QK", "QK_nodecay", "QK_decay_to_one", "QK_scalar")}
        self.assertEqual(len({tuple(gain) for gain in gains.values()}), 4)
        self.assertEqual(len(gains["QK_scalar"]), 16)
        self.assertEqual(len(set(gains["QK_scalar"])), 1)
        self.assertLess(sum(gains["QK"]), sum(gains["QK_nodecay"]))
        model = {tag: json.loads(next((out / tag / "checkpoints").glob("*/state.json")).read_text())["config"]["model"]
                 for tag in ("NoQK", "NoQK_scaled")}
        self.assertEqual((model["NoQK"]["qk_scale"], model["NoQK_scaled"]["qk_scale"]), (1, "matched"))
        # What takes a condition takes a control.
        for command in (("inspect", out / "QK_scalar"), ("surgery", out / "QK_scalar"), ("inspect", out / "NoQK_scaled"),
                        ("plot", out)):
            place = () if command[0] == "plot" else ("--out", self.folder / f"{command[0]}-{command[1].name}")
            result = run(*command, *place)
            self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(run("study", "--out", out, "--resume").returncode, DONE)

    def test_OwnConditions_AreTrainedAndComparedWithA(self):
        own = self.folder / "own.yaml"
        own.write_text("half:\n  letter: H\n  changes: {optim.gain_decay: 0.1}\n  isolates: the dose of decay\n")
        out = self.study("run", "--conditions", f"QK,{own}")
        own.unlink()
        verdict = json.loads((out / "combined.json").read_text())["verdict"]
        self.assertEqual([*verdict["effects"]], ["half"])
        state = json.loads(next((out / "half" / "checkpoints").glob("*/state.json")).read_text())
        self.assertEqual(state["config"]["optim"]["gain_decay"], 0.1)
        again = run("study", "--config", out / "config.yaml", "--out", self.folder / "again")
        self.assertEqual(again.returncode, DONE, again.stderr)
        self.assertIn("H half", again.stdout)
        for tag in ("QK", "half"):
            self.assertEqual((out / tag / "results.json").read_text(), (self.folder / "again" / tag / "results.json").read_text())
        self.assertEqual(run("study", "--out", out, "--resume").returncode, DONE)
        analysed = run("study", "--analyze", out, "--out", self.folder / "analysed")
        self.assertIn("H half", analysed.stdout)
        self.assertEqual(run("study", *settings(), "--conditions", "NoQK", "--out", out, "--overwrite").returncode, DONE)
        self.assertFalse((out / "half").exists())

    def test_AnUnknownCondition_ListsThoseThereAre(self):
        self.refused("known are QK, QK_frozen, NoQK, QK_nodecay, QK_decay_to_one, QK_scalar, NoQK_scaled", "study", "--conditions",
                     "xyz", "--dry-run")

    def test_DryRun_RunsNothing(self):
        out = self.folder / "never"
        result = run("study", "--preset", "88m", "--dry-run", "--json", "--out", out)
        self.assertEqual(result.returncode, DONE, result.stderr)
        estimate = json.loads(result.stdout)
        self.assertAlmostEqual(estimate["parameters"] / 1e6, 88.6, delta=0.1)
        self.assertEqual((estimate["runs"], estimate["steps"]), (3, 50_000_000 // 16_384))
        self.assertFalse(out.exists())

    def test_ItsOwnConfiguration_GivesTheSameStudyAgain(self):
        first = self.study("first")
        second = self.folder / "second"
        result = run("study", "--config", first / "config.yaml", "--out", second)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assert_same_study(first, second)

    def test_Plot_DrawsItAgain(self):
        out = self.study("run")
        (out / "1_loss.png").unlink()
        self.assertEqual(run("plot", out, "--theme", "dark").returncode, DONE)
        self.assertTrue((out / "1_loss.png").exists())

    def test_AFile_IsTrainedOnAndSaysHowOftenItIsSeen(self):
        text = self.folder / "text.txt"
        words = random.Random(1)
        text.write_text("\n<|endoftext|>\n".join(" ".join(words.choices(["a", "bee", "sea"], k=40)) for _ in range(60)))
        result = run("study", *settings("train.tokens=12800", "data.validation_share=0.3"), "--data", text,
                     "--conditions", "NoQK", "--out", self.folder / "run")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertRegex(result.stderr, r"it is read \d+\.\d times")


class Stopped(Program):
    def test_ACompleteRun_IsShownAgainAndLeftAsItIs(self):
        out = self.study("run")
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        result = run("study", *settings(), "--out", out, "--resume")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn("verdict: ", result.stdout)
        self.assertEqual({path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, before)

    def test_ACompleteRun_GetsTheFiguresThatAreMissing(self):
        out = self.study("run")
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        (out / "2_key_pr_causal.png").unlink()
        (out / "5_gamma_cv.svg").write_bytes(before[out / "5_gamma_cv.svg"][:100])  # a full disk left a part
        result = run("study", "--out", out, "--resume")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual({path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, before)

    def test_KilledAtRandomMomentsAndResumed_EndsBitForBitTheSame(self):
        kills = int(os.environ.get("HEADSCOPE_KILLS", "8"))
        chosen = os.environ.get("HEADSCOPE_KILL_SET")
        flags = settings("train.tokens=15360") if chosen is None else [t for s in chosen.split() for t in ("--set", s)]
        whole, killed = self.folder / "whole", self.folder / "killed"
        begin = time.monotonic()
        self.assertEqual(run("study", *flags, "--out", whole).returncode, DONE)
        seconds = time.monotonic() - begin
        moments = random.Random(7)
        for attempt in range(kills):
            process = start("study", *flags, "--out", killed, *(["--resume"] if killed.exists() else []))
            try:
                process.wait(moments.uniform(0.1, 1.0) * 2 * seconds / kills + 0.3)
                break  # it was done before we were
            except subprocess.TimeoutExpired:
                process.kill()
            finally:
                process.wait()
                process.stderr.close()
            if (killed / "manifest.json").exists():
                continue
            shutil.rmtree(killed, ignore_errors=True)  # killed before it had begun
        result = run("study", *flags, "--out", killed, "--resume")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assert_same_study(whole, killed)

    def test_Signals_SaveOnceAndSayHowToGoOn(self):
        whole = self.study("whole", "--set", "train.tokens=51200")
        for kind in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / kind.name
            process = start("study", *settings("train.tokens=51200"), "--out", out)
            while not list(out.glob("QK/checkpoints/step-*")):
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(kind)
            errors = process.stderr.read()
            process.stderr.close()
            self.assertEqual(process.wait(60), INTERRUPTED, errors)
            hint = shlex.split(errors.splitlines()[-1].split("go on with: headscope ")[1])
            self.assertEqual(hint, ["study", "--resume", "--out", str(out)])
            self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "interrupted")
            self.refused("--tau: study.tau is 9.0, and 1.0 in the run", *hint, "--tau", "9")
            result = run(*hint)
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assert_same_study(whole, out)

    def test_AChangedConfiguration_IsRefusedByName(self):
        out = self.study("run")
        self.refused("--set: optim.muon_lr is 0.5, and ", "study", *settings("optim.muon_lr=0.5"), "--out", out, "--resume")

    def test_ASecondProcess_IsRefused(self):
        out = self.folder / "run"
        first = start("study", *settings("train.tokens=256000"), "--out", out)
        while not list(out.glob("QK/checkpoints/step-*")):
            self.assertIsNone(first.poll())
            time.sleep(0.01)
        self.refused("exists; go on with --resume", "study", *settings("train.tokens=256000"), "--out", out)
        self.refused("another process", "study", *settings("train.tokens=256000"), "--out", out, "--overwrite")
        self.refused("another process", "plot", out)
        first.kill()
        first.wait()
        first.stderr.close()

    def test_AFullDisk_LeavesTheLastGoodCheckpoint(self):
        disk = self.folder / "disk"
        disk.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True)
        if mount.returncode != 0:
            self.skipTest("needs the right to mount a small disk")
        try:
            result = run("study", *settings("train.keep_checkpoints=50"), "--out", disk / "run")
            self.assertEqual(result.returncode, FAILED, result.stderr)
            self.assertIn("No space left on device", result.stderr.splitlines()[-1])
            kept = sorted((disk / "run" / "QK" / "checkpoints").iterdir())
            self.assertTrue(kept)
            self.assertTrue(all(path.name.startswith("step-") for path in kept), kept)
            subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
            again = run("study", *settings("train.keep_checkpoints=50"), "--out", disk / "run", "--resume")
            self.assertEqual(again.returncode, DONE, again.stderr)
            self.assert_same_study(self.study("whole"), disk / "run")
        finally:
            # Lazy: Arrow's threads may close the last table a moment after it was read.
            subprocess.run(["umount", "--lazy", disk], check=True)


class BadInput(Program):
    def test_EachHasItsLine(self):
        out = ["--out", self.folder / "out"]
        missing = self.folder / "missing.txt"
        empty = self.folder / "empty.txt"
        empty.touch()
        for message, arguments in (
            ("unknown preset '7b'; known are tiny, 88m, 1.5b", ["--preset", "7b"]),
            ("unknown key 'train.bach'; did you mean 'train.batch'?", ["--set", "train.bach=1"]),
            ("'train.batch' is 'many'; expected a whole number", ["--set", "train.batch=many"]),
            ("expected heads divisible by kv_heads", ["--set", "model.heads=3"]),
            (str(missing), ["--data", missing]),
            (str(empty), ["--data", empty]),
            ("unknown device 'tpu'; did you mean 'cpu'?", ["--device", "tpu"]),
            ("built without CUDA", ["--device", "cuda"]),
        ):
            self.refused(message, "study", *arguments, *out)
        self.assertFalse((self.folder / "out").exists())

    def test_ATokenBeyondTheVocabulary(self):
        tokens = self.folder / "tokens.bin"
        tokens.write_bytes(struct.pack("<600H", *([1] * 298), 0, *([1] * 300), 500))
        tokens.with_suffix(".json").write_text(
            json.dumps({"type": "u16", "vocabulary": 300, "tokenizer": "none", "end_of_text": 0}))
        self.refused("500", "study", *settings(), "--data", tokens, "--out", self.folder / "out")
        tokens.with_suffix(".json").write_text(
            json.dumps({"type": "u16", "vocabulary": 600, "tokenizer": "none", "end_of_text": 0}))
        self.refused("model.vocabulary is 258", "study", *settings("train.validation_batches=1", "train.batch=1"), "--data",
                     tokens, "--out", self.folder / "out")

    def test_AnUnwritableOutput(self):
        (self.folder / "file").touch()
        result = run("study", *settings(), "--out", self.folder / "file" / "run")
        self.assertIn(result.returncode, (FAILED, WRONG_USAGE), result.stderr)
        self.assertIn(str(self.folder / "file" / "run"), result.stderr)

    def test_ADamagedCheckpoint(self):
        out = self.folder / "run"
        process = start("study", *settings("train.tokens=25600"), "--out", out)
        while len(list(out.glob("QK/checkpoints/step-*"))) < 2:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.kill()
        process.wait()
        process.stderr.close()
        kept = sorted(out.glob("QK/checkpoints/step-*"))
        advice = f"the checkpoint is damaged; remove the folder {kept[-1]} to go on from {kept[-2].name}"
        for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
            damaged = kept[-1] / name
            content = damaged.read_bytes()
            middle = len(content) // 2
            for change in (content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:], content[:middle], b""):
                damaged.write_bytes(change)
                self.refused(advice, "study", "--out", out, "--resume")
            damaged.unlink()
            self.refused(advice, "study", "--out", out, "--resume")
            damaged.write_bytes(content)
        for checkpoint in kept[:-1]:
            shutil.rmtree(checkpoint)
        (kept[-1] / "state.json").write_text("{}")
        self.refused("to go on from the start, since there is no earlier one", "study", "--out", out, "--resume")
        shutil.rmtree(kept[-1])
        self.assertEqual(run("study", "--out", out, "--resume").returncode, DONE)

    def test_TooLittleMemory_SaysWhatWasNeededAndWhatHelps(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

        def run_in_little(*arguments: object) -> subprocess.CompletedProcess:
            return subprocess.run([str(headscope), *map(str, arguments)], capture_output=True, text=True, timeout=300,
                                  preexec_fn=limit)
        if run_in_little("study", "--dry-run").returncode != DONE:
            self.skipTest("the program itself needs more address space, as with a sanitizer")
        result = run_in_little("study", *settings("train.batch=32768", "train.tokens=2097152", "train.validation_batches=1"),
                               "--conditions", "NoQK", "--out", self.folder / "run")
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.assertRegex(result.stderr.splitlines()[-1],
                         r"C NoQK: out of memory on .*: [0-9.]+ GiB more were needed at once; a smaller train\.batch")

    def test_ADamagedResult(self):
        out = self.study("run")
        file = out / "QK" / "results.json"
        file.write_text(file.read_text()[:-40])
        self.refused(str(file), "study", "--analyze", out, "--out", self.folder / "verdict")


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
