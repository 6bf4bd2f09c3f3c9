"""`headscope capture` and `headscope plasticity MODEL --data`: what they write, and what they do when things go wrong.

usage: python test_capture.py PATH_TO_HEADSCOPE [unittest options]

The model is a small run of ours, which reads bytes; published ones are compared with transformers (test_capture_peers.py).
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

sys.path.insert(0, str(Path(__file__).resolve().parent))

import program  # noqa: E402
from program import DONE, FAILED, WRONG_USAGE, Program, differing, files_of, run, setUpModule  # noqa: E402

PUBLISHED = Path(__file__).resolve().parent.parent / "model/published/qwen3"
LAYERS, HEADS, KEY_HEADS = program.LAYERS, program.HEADS, program.KEY_HEADS
LENGTH = 32  # of the sequences that the run was trained on
SMALL_PARTS = ("--set", "part_tokens=300", "--set", "batch_tokens=120")
INTERRUPTED = 130


def texts(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choice("abcdefgh ,.") for _ in range(rng.randrange(1, 90))) for _ in range(count)]


def write_texts(file: Path, documents: list[str]) -> Path:
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return file


def captured(folder: Path, name: str) -> dict:
    return parquet.read_table(folder / name / "data.parquet").to_pydict()


def heads_in(folder: Path) -> list[str]:
    return sorted(path.parent.name for path in folder.glob("*/data.parquet"))


def results(folder: Path) -> dict[Path, bytes]:
    """All files but those that hold times."""
    return {name: content for name, content in files_of(folder).items() if name.name not in ("manifest.json", "report.html", ".lock")}


class Captured(Program):
    def setUp(self) -> None:
        super().setUp()
        self.model = program.shared / "run"
        self.text = write_texts(self.folder / "text.jsonl", texts(40))

    def capture(self, out: Path, *arguments: object, code: int = DONE) -> subprocess.CompletedProcess:
        result = run("capture", self.model, "--data", self.text, "--out", out, *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def error(self, *arguments: object, code: int = WRONG_USAGE) -> str:
        """The one line that a failure prints, beside warnings and what it needs."""
        result = run(*arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("headscope: warning") and "memory: at most" not in line and "capturing:" not in line]
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]


class Files(Captured):
    def test_EveryHead_HasAFileInThePublicFormat(self):
        out = self.folder / "out"
        said = json.loads(self.capture(out, "--sampler", "all", "--bucket-size", "16", "--json").stdout)
        expected = [f"l{layer:02}h{head:02}{kind}" for layer in range(LAYERS) for kind, heads in (("q", HEADS), ("k", KEY_HEADS)) for head in range(heads)]
        self.assertEqual(heads_in(out), sorted(expected))
        documents = [json.loads(line)["text"] for line in self.text.read_text().splitlines()]
        rows = [(i, t) for i, text in enumerate(documents) for t in range(min(LENGTH, len(text) + 1))]  # the byte tokenizer begins with a token
        for name in expected:
            columns = captured(out, name)
            self.assertEqual(list(columns), ["bucket", "example_id", "position", "vector", "sliding_window"])
            self.assertEqual(list(zip(columns["example_id"], columns["position"])), rows)
            self.assertEqual(columns["bucket"], [t // 16 for _, t in rows])
            self.assertEqual(set(columns["sliding_window"]), {None})
            self.assertTrue(np.isfinite(np.array(columns["vector"])).all())
        schema = parquet.read_schema(out / "l00h00q/data.parquet")
        self.assertEqual([str(schema.field(name).type) for name in ("bucket", "example_id", "position", "sliding_window")], ["int32", "int32", "int32", "null"])
        self.assertTrue(str(schema.field("vector").type).startswith("fixed_size_list<"))
        self.assertEqual((said["tokens"], said["texts"], said["rope"]), (len(rows), 40, "after"))
        self.assertEqual(said["rows"], len(rows) * len(expected))
        manifest = json.loads((out / "manifest.json").read_text())
        self.assertEqual((manifest["rope"], manifest["status"], manifest["command"]), ("after", "complete", "capture"))
        state = json.loads((out / "_saver_state.json").read_text())
        self.assertEqual(state["model_metadata"]["sampling_strategy"], "all")
        self.assertEqual(sum(state["bucket_counts"].values()), said["rows"])
        self.assertFalse((out / "parts").exists())

    def test_Batches_DoNotChangeWhatIsKept(self):
        """Vectors of other batches differ by rounding alone; rows do not."""
        for name, more in (("one", ()), ("other", SMALL_PARTS)):
            self.capture(self.folder / name, "--sampler", "uniform", "--bucket-size", "3", *more)
        for head in heads_in(self.folder / "one"):
            one, other = (captured(self.folder / name, head) for name in ("one", "other"))
            self.assertEqual(one["position"], other["position"])
            np.testing.assert_allclose(one["vector"], other["vector"], atol=2e-5)

    def test_LayersAndHeads_AreThoseAskedFor(self):
        out = self.folder / "out"
        result = self.capture(out, "--layers", "1", "--heads", f"{HEADS - 1}", "--sampler", "all", "--token-str")
        self.assertEqual(heads_in(out), [f"l01h{HEADS - 1:02}q"])
        self.assertIn("reads key head", result.stderr)
        columns = captured(out, f"l01h{HEADS - 1:02}q")
        documents = [json.loads(line)["text"] for line in self.text.read_text().splitlines()]
        first = documents[0][:LENGTH - 1]
        self.assertEqual(columns["token_str"][1:1 + len(first)], [f"<0x{ord(c):02X}>" for c in first])
        whole = self.folder / "whole"
        self.capture(whole, "--sampler", "all")
        self.assertEqual(columns["vector"], captured(whole, f"l01h{HEADS - 1:02}q")["vector"])
        self.assertIn("there is no layer 99", self.error("capture", self.model, "--data", self.text, "--layers", "99", "--out", self.folder / "no"))
        self.assertFalse((self.folder / "no").exists())

    def test_BeforeRope_ThePositionsDoNotTurnTheVectors(self):
        """The first layer's keys of one token are the same at every position before RoPE, and differ after it."""
        self.text = write_texts(self.folder / "same.jsonl", ["aaaaaaaa"])
        for name, more in (("before", ("--pre-rope",)), ("after", ())):
            self.capture(self.folder / name, "--sampler", "all", *more)
            vectors = np.array(captured(self.folder / name, "l00h00k")["vector"])[1:]
            spread = np.abs(vectors - vectors[0]).max()
            self.assertTrue(spread < 1e-6 if name == "before" else spread > 1e-2, (name, spread))
            self.assertEqual(json.loads((self.folder / name / "manifest.json").read_text())["rope"], name)
            self.assertAlmostEqual(np.linalg.norm(vectors[3]), np.linalg.norm(vectors[0]), delta=1e-5)

    def test_EmptyTexts_CountInTheNumbers(self):
        documents = texts(6)
        self.text = write_texts(self.folder / "some.jsonl", [documents[0], "", *documents[1:]])
        self.capture(self.folder / "out", "--sampler", "all", "--max-documents", "4")
        columns = captured(self.folder / "out", "l00h00q")
        lengths = [min(LENGTH, len(text) + 1) for text in (documents[0], "", documents[1], documents[2])]
        self.assertEqual(columns["example_id"], [i for i, length in enumerate(lengths) for _ in range(length)])

    def test_ARunOfOurs_IsCapturedOnWhatItHeldOut(self):
        out = self.folder / "out"
        self.done("capture", program.shared / "run", "--max-documents", "5", "--sampler", "all", "--out", out)
        self.assertEqual(len(heads_in(out)), program.LAYERS * (program.HEADS + program.KEY_HEADS))
        self.assertLess(max(captured(out, "l00h00q")["position"]), 32)  # the run's sequences
        self.assertIn("never ends", self.error("capture", program.shared / "run", "--out", self.folder / "no"))

    def test_ARunOnAFile_IsCapturedOnTheTextsThatItHeldOut(self):
        documents = write_texts(self.folder / "train.jsonl", [text + str(i) for i, text in enumerate(texts(400, seed=5))])
        out = self.folder / "trained"
        self.done("train", *program.settings("train.tokens=512", "train.checkpoint_every=1"), "--data", documents, "--set", "data.validation_share=0.2", "--out", out)
        said = json.loads(self.done("capture", out, "--sampler", "all", "--json", "--out", self.folder / "held"))
        self.assertTrue(40 < said["texts"] < 130, said["texts"])

    def test_Bfloat16_IsNearFloat32(self):
        for name in ("float32", "bfloat16"):
            self.capture(self.folder / name, "--dtype", name, "--sampler", "all")
        one, other = (np.array(captured(self.folder / name, "l00h00k")["vector"]) for name in ("float32", "bfloat16"))
        relative = np.linalg.norm(one - other) / np.linalg.norm(one)
        self.assertTrue(1e-5 < relative < 2e-2, relative)


class Plasticity(Captured):
    def test_OneGo_GivesTheTablesOfTwoSteps(self):
        flags = ("--sampler", "uniform", "--bucket-size", "8", "--base-rate", "4")
        self.capture(self.folder / "captured", *flags)
        self.done("plasticity", self.folder / "captured", "--no-figures", "--out", self.folder / "two")
        said = json.loads(self.done("plasticity", self.model, "--data", self.text, *flags, "--no-figures", "--json", "--out", self.folder / "one"))
        self.assertEqual(said["rope"], "after")
        tables = {path.name for path in (self.folder / "two").glob("*.csv")}
        self.assertGreater(len(tables), 4)
        for name in tables:
            self.assertEqual((self.folder / "one" / name).read_bytes(), (self.folder / "two" / name).read_bytes(), name)
        for folder in ("one", "two"):
            self.assertEqual(json.loads((self.folder / folder / "manifest.json").read_text())["rope"], "after")
        self.assertIn("is complete", self.done("plasticity", "--resume", "--out", self.folder / "one"))
        self.assertIn("before RoPE", self.done("plasticity", self.model, "--data", self.text, *flags, "--pre-rope", "--no-figures", "--out", self.folder / "pre"))

    def test_OneGo_GoesOnAfterAKill(self):
        line = ("plasticity", self.model, "--data", self.text, "--sampler", "all", "--bucket-size", "8", "--no-figures")
        whole = self.folder / "whole"
        self.done(*line, "--out", whole)
        for attempt, sign in enumerate(("manifest.json", "data/parts", "data/l00h00q/data.parquet", "data/_saver_state.json")):
            out = self.folder / f"killed{attempt}"
            child = program.start(*line, "--out", out)
            while not (out / sign).exists() and child.poll() is None:
                time.sleep(0.001)
            child.kill()
            child.wait()
            self.done("plasticity", "--resume", "--no-figures", "--out", out)
            differ = [name for name in differing(results(out), results(whole)) if name != "config.yaml"]  # it names its folder
            self.assertEqual(differ, [])

    def test_ItsConfiguration_GivesTheSameTablesAgain(self):
        self.done("plasticity", self.model, "--data", self.text, "--sampler", "uniform", "--bucket-size", "8", "--base-rate", "4", "--no-figures", "--out", self.folder / "one")
        self.done("plasticity", "--config", self.folder / "one/config.yaml", "--no-figures", "--out", self.folder / "again")
        for table in (self.folder / "one").glob("*.csv"):
            self.assertEqual(table.read_bytes(), (self.folder / "again" / table.name).read_bytes(), table.name)
        self.capture(self.folder / "c1", "--sampler", "all")
        self.done("capture", "--config", self.folder / "c1/config.yaml", "--out", self.folder / "c2")
        self.assertEqual(differing(results(self.folder / "c1"), results(self.folder / "c2")), [])

    def test_HeadsOfWhichNothingWasKept_AreLeftOut(self):
        self.text = write_texts(self.folder / "few.jsonl", texts(2))
        result = run("plasticity", self.model, "--data", self.text, "--bucket-size", "16", "--base-rate", "0.5", "--no-figures", "--out", self.folder / "few")
        self.assertNotIn("cannot read", result.stderr)
        self.assertIn(result.returncode, (DONE, WRONG_USAGE), result.stderr)

    def test_RunsThatMeasureSomethingElse_AreComparedWithAWarning(self):
        for name, more in (("one", ()), ("other", ("--pre-rope",))):
            self.done("plasticity", self.model, "--data", self.text, "--sampler", "uniform", "--bucket-size", "8", "--base-rate", "4", "--no-figures", "--out", self.folder / name, *more)
        result = run("plasticity", "compare", self.folder / "one", self.folder / "other", "--out", self.folder / "compared")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn("rope: after, before", result.stderr)

    def test_AnUnfinishedCapture_IsRefused(self):
        out = self.folder / "out"
        self.capture(out)
        manifest = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**manifest, "status": "interrupted"}))
        self.assertIn("capture is not finished", self.error("plasticity", out, "--out", self.folder / "no"))
        self.assertFalse((self.folder / "no").exists())


class Trouble(Captured):
    def test_KilledAtAnyMoment_ItGoesOnToTheSameBytes(self):
        flags = ("--sampler", "all", *SMALL_PARTS)
        self.text = write_texts(self.folder / "long.jsonl", texts(300))
        whole = self.folder / "whole"
        self.capture(whole, *flags)
        expected, resumed = results(whole), 0
        # When a part, a file of a head or the last of them appears.
        for attempt, sign in enumerate(("parts/part-00000.safetensors", "parts/part-00004.safetensors", "parts/part-00009.safetensors",
                                        "l00h00q/data.parquet", "l01h00q/data.parquet", "l01h01k/data.parquet", "_saver_state.json")):
            out = self.folder / f"killed{attempt}"
            child = program.start("capture", self.model, "--data", self.text, "--out", out, *flags)
            while not (out / sign).exists() and child.poll() is None:
                time.sleep(0.001)
            child.kill()
            child.wait()
            resumed += json.loads((out / "manifest.json").read_text())["status"] != "complete"
            for _ in range(2):  # once more: nothing is left to do
                result = run("capture", "--resume", "--out", out) if (out / "manifest.json").is_file() else self.capture(out, *flags)
                self.assertEqual(result.returncode, DONE, result.stderr)
            self.assertEqual(differing(results(out), expected), [])
        self.assertGreater(resumed, 0)

    def test_Interrupted_ItSaysHowToGoOn(self):
        self.text = write_texts(self.folder / "long.jsonl", texts(4000))
        out = self.folder / "out"
        child = subprocess.Popen([str(word) for word in (program.headscope, "capture", self.model, "--data", self.text, "--sampler", "all", "--out", out, *SMALL_PARTS)],
                                 stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        while not (out / "parts/part-00003.safetensors").is_file():
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        self.assertEqual(child.returncode, INTERRUPTED, said)
        hint = said.strip().splitlines()[-1].partition("go on with: headscope ")[2]
        self.assertTrue(hint, said)
        self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "interrupted")
        self.assertEqual(heads_in(out), [])

    def test_OtherTextOrWeights_AreNotMixedIn(self):
        out = self.folder / "out"
        child = program.start("capture", self.model, "--data", self.text, "--sampler", "all", "--out", out, *SMALL_PARTS)
        while not (out / "parts/part-00001.safetensors").is_file() and child.poll() is None:
            time.sleep(0.002)
        child.kill()
        child.wait()
        if json.loads((out / "manifest.json").read_text())["status"] == "complete":
            self.skipTest("the capture was finished before it could be killed")
        original = self.text.read_bytes()
        write_texts(self.text, texts(40, seed=2))
        self.assertIn("is not the text that the capture began with", self.error("capture", "--resume", "--out", out))
        self.text.write_bytes(original)
        self.assertIn("max_length is 7", self.error("capture", "--resume", "--out", out, "--max-length", "7"))
        self.done("capture", "--resume", "--out", out)

    def test_OtherWeights_AreRefused(self):
        checkpoint = Path(shutil.copytree(self.model / "checkpoints" / program.newest_checkpoint(self.model), self.folder / "checkpoint"))
        older = min((self.model / "checkpoints").glob("step-*"))
        out, self.model = self.folder / "out", checkpoint
        self.text = write_texts(self.folder / "long.jsonl", texts(2000))
        child = program.start("capture", self.model, "--data", self.text, "--sampler", "all", "--out", out, *SMALL_PARTS)
        while not (out / "parts/part-00001.safetensors").is_file() and child.poll() is None:
            time.sleep(0.001)
        child.kill()
        child.wait()
        self.assertNotEqual(json.loads((out / "manifest.json").read_text())["status"], "complete")
        shutil.copytree(older, checkpoint, dirs_exist_ok=True)
        result = run("capture", "--resume", "--out", out)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        self.assertIn("weights or its configuration changed", result.stderr)

    def test_EmptyData_IsOneLine(self):
        empty = self.folder / "empty.jsonl"
        empty.write_text("")
        self.assertIn("holds no text", self.error("capture", self.model, "--data", empty, "--out", self.folder / "no"))
        self.assertFalse((self.folder / "no").exists())
        self.assertIn("is not there", self.error("capture", self.model, "--data", self.folder / "absent.jsonl", "--out", self.folder / "no"))
        self.assertIn("no model", self.error("capture", "--data", self.text, "--out", self.folder / "no"))

    def test_ATextOfOneToken(self):
        self.text = write_texts(self.folder / "one.jsonl", [""])  # the byte tokenizer's start alone
        self.capture(self.folder / "all", "--sampler", "all")
        self.assertEqual(captured(self.folder / "all", "l00h00q")["position"], [0])
        out = self.folder / "none"
        message = self.error("capture", self.model, "--data", self.text, "--base-rate", "1e-9", "--out", out)
        self.assertIn("would be kept", message)
        self.assertFalse(out.exists())

    def test_ADamagedLineAtTheEnd_ShowsBeforeAnythingIsComputed(self):
        with self.text.open("a") as file:
            file.write("{\"text\": 3}\n")
        self.assertIn("text.jsonl: line 41", self.error("capture", self.model, "--data", self.text, "--out", self.folder / "no"))
        self.assertFalse((self.folder / "no").exists())

    def test_AFullDisk_LeavesNothingThatLooksComplete(self):
        """Files may not grow beyond a limit: parts first, then the files of heads."""
        for limit in (2_000, 20_000):
            out = self.folder / f"out{limit}"
            command = [str(word) for word in (program.headscope, "capture", self.model, "--data", self.text, "--sampler", "all", "--out", out)]
            result = subprocess.run(command, capture_output=True, text=True, timeout=120,
                                    preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
            self.assertEqual(result.returncode, FAILED, result.stderr)
            self.assertIn("File too large", result.stderr.splitlines()[-1])
            self.assertEqual(heads_in(out), [])
            self.done("capture", "--resume", "--out", out)
            self.capture(self.folder / f"whole{limit}", "--sampler", "all")
            self.assertEqual(differing(results(out), results(self.folder / f"whole{limit}")), [])

    def test_AVocabularyThatIsTooSmall(self):
        model = self.folder / "published"
        model.mkdir()
        shutil.copy(PUBLISHED / "model.safetensors", model)
        shutil.copy(PUBLISHED / "default.json", model / "config.json")
        no = ("--data", self.text, "--out", self.folder / "no")
        self.assertIn("the model's vocabulary is 61", self.error("capture", model, "--tokenizer", "bytes", *no))
        self.assertIn("has no tokenizer of its own", self.error("capture", model, *no))
        self.assertIn("no data of its own", self.error("capture", model, "--tokenizer", "bytes", "--out", self.folder / "no"))
        self.assertFalse((self.folder / "no").exists())

    def test_Memory_IsNotMoreThanWasSaid(self):
        self.text = write_texts(self.folder / "long.jsonl", texts(3000))
        command = [str(word) for word in (program.headscope, "capture", self.model, "--data", self.text, "--sampler", "all", "--out", self.folder / "out")]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = child.stderr.read()
        child.stderr.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, DONE, said)
        number, unit = said.partition("memory: at most ")[2].split()[:2]
        most = float(number) * {"MB": 1e6, "GB": 1e9}[unit]
        self.assertLess(usage.ru_maxrss * 1024, most)


if __name__ == "__main__":
    program.main()
