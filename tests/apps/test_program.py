"""What a user sees of every command when something is wrong: one line and an exit code, whatever was given.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

DONE, FAILED, WRONG_USAGE = 0, 1, 2
PATIENCE = 60  # seconds; nothing here takes more than a few
# A run of a second.
SMALL = ("model.layers=1", "model.d_model=16", "model.heads=2", "model.kv_heads=1", "model.d_k=8", "model.d_ff=32",
         "train.seq_len=16", "train.batch=2", "train.tokens=128", "train.validation_batches=1")
headscope: Path


def settings(*more: str) -> list[str]:
    return [text for setting in (*SMALL, *more) for text in ("--set", setting)]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": PATIENCE, **options}
    return subprocess.run([str(headscope), *map(str, arguments)], **options)


def shell(redirection: str, *arguments: object) -> subprocess.CompletedProcess:
    """With a redirection of the shell: "2>&-"."""
    command = ["bash", "-c", f'"$@" {redirection}', "bash", str(headscope), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)


class Program(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope apps ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.out = self.folder / "out"
        self.text = self.folder / "a.txt"
        self.text.write_text("short")
        self.tokens = self.folder / "a.bin"

    def assert_one_line(self, result: subprocess.CompletedProcess, code: int, *words: str) -> None:
        self.assertEqual(result.returncode, code, result)
        lines = [line for line in result.stderr.splitlines() if "tokenizing: " not in line]
        self.assertEqual(len(lines), 1, result)
        for word in ("headscope: ", *words):
            self.assertIn(word, lines[0], result)
        for word in ("filesystem error", "terminate", "internal", "basic_string", "vector::", "json.exception"):
            self.assertNotIn(word, result.stderr, result)

    def refused(self, *arguments: object, words: tuple[str, ...] = ()) -> str:
        result = run(*arguments)
        self.assert_one_line(result, WRONG_USAGE, *words)
        self.assertEqual(result.stdout, "")
        return result.stderr


class Streams(Program):
    def test_StandardErrorThatIsClosedOrFull_IsNoFailure(self):
        commands = {
            "tokenize": ["tokenize", self.text, "--out", self.tokens, "--overwrite"],
            "train": ["train", *settings(), "--out", self.out, "--overwrite"],
            "study": ["study", *settings(), "--conditions", "NoQK", "--out", self.folder / "study", "--overwrite"],
            "inspect": ["inspect", self.out, "--out", self.folder / "inspect", "--overwrite"],
            "roles": ["roles", self.out],
            "plot": ["plot", self.out],
            "surgery": ["surgery", self.out, "--shares", "0,1", "--bits", "8", "--repeats", "1", "--out",
                        self.folder / "surgery", "--overwrite"],
            "bench": ["bench", "train", *settings(), "--steps", "1", "--warmup", "0"],
            "plasticity": ["plasticity", "--demo", "--layers", "0", "--heads", "0", "--no-figures", "--out",
                           self.folder / "plasticity", "--overwrite"],
        }
        for redirection in ("2>&-", "2>/dev/full"):
            for name, command in commands.items():
                result = shell(redirection, *command)
                self.assertEqual(result.returncode, DONE, f"{name} {redirection} {result}")
                self.assertTrue(result.stdout, name)
            self.assertEqual(shell(redirection, "train", "--preset", "7b").returncode, WRONG_USAGE)

    def test_AClosedStandardError_IsNotTheFileThatIsWritten(self):
        self.assertEqual(run("tokenize", self.text, "--out", self.tokens).returncode, DONE)
        expected = self.tokens.read_bytes()
        self.assertEqual(shell("2>&-", "tokenize", self.text, "--out", self.tokens, "--overwrite").returncode, DONE)
        self.assertEqual(self.tokens.read_bytes(), expected)

    def test_AReaderOfStandardErrorThatWentAway_DoesNotEndARun(self):
        reader, writer = os.pipe()
        os.close(reader)
        result = run("train", *settings(), "--out", self.out, stderr=writer)
        os.close(writer)
        self.assertEqual(result.returncode, DONE)
        self.assertEqual(json.loads((self.out / "manifest.json").read_text())["status"], "complete")

    def test_StandardOutputThatIsClosedOrFull_IsAFailure(self):
        for redirection, reason in ((">&-", "Bad file descriptor"), (">/dev/full", "No space left on device")):
            for command in (["--version"], ["--help"], ["study", "--help"], [], ["train", "--dry-run", "--json"],
                            ["tokenize", self.text, "--out", self.tokens, "--overwrite", "--json"]):
                self.assert_one_line(shell(redirection, *command), FAILED, f"cannot write to standard output: {reason}")
            quiet = shell(redirection, "tokenize", self.text, "--out", self.tokens, "--overwrite", "--quiet")
            self.assertEqual(quiet.returncode, DONE, quiet)  # nothing was to be written


class Files(Program):
    def no_regular_files(self, name: str) -> list[Path]:
        """A pipe that no one writes, a socket, a device and a folder, each in place of a file `name`."""
        places = [self.folder / kind / name for kind in ("pipe", "socket", "device", "folder")]
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(places[0])
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(str(places[1]))
        places[2].symlink_to("/dev/zero")
        places[3].mkdir()
        return places

    def test_WhatIsNoRegularFile_IsRefusedAtOnceWhereverAFileIsNamed(self):
        out = ["--out", self.out]
        for file in self.no_regular_files("x.yaml"):
            self.refused("study", "--config", file, *out, words=(str(file),))
            self.refused("roles", self.folder, "--definition", file, *out, words=(str(file),))
        for name in ("x.txt.gz", "x.parquet", "x.bin"):
            for file in self.no_regular_files(name):
                self.refused("train", *settings(), "--data", file, *out, words=(str(file),))
        for file in self.no_regular_files("x.jsonl"):
            self.refused("tokenize", file, "--out", self.tokens, words=(str(file),))
        text = self.folder / "long.txt"
        text.write_text("\n<|endoftext|>\n".join("text" * 20 for _ in range(20)))
        for file in self.no_regular_files("validation.txt"):
            self.refused("train", *settings(), "--data", text, "--set", f"data.validation={file}", *out,
                         words=(str(file),))
        for file in self.no_regular_files("y.json"):
            (file.parent / "y.bin").write_bytes(b"ab")
            self.refused("train", "--data", file.with_suffix(".bin"), *out, words=(str(file),))
        for file in self.no_regular_files("state.json"):
            self.refused("inspect", file.parent, *out, words=(str(file),))
        self.assertFalse(self.out.exists())

    def test_APathThatCannotBe_HasAPlainLine(self):
        long = "x" * 300
        for command in (["train", "--data"], ["train", "--config"], ["inspect"], ["surgery"], ["plot"], ["plasticity"],
                        ["roles"], ["tokenize", "--out", self.tokens], ["study", "--analyze"]):
            self.refused(*command, self.folder / long, words=("File name too long",) if command[0] == "train" else ())
        self.refused("plasticity", words=("no data: give the folder", "--demo"))
        self.refused("study", "--analyze", "")


class Folders(Program):
    """--out and what is in it. tests/run has the rest."""

    def train(self, *more: object, **options: object) -> subprocess.CompletedProcess:
        return run("train", *settings(), "--out", self.out, *more, **options)

    def test_AnEmptyName_IsNotTheDefault(self):
        for command in (["train", *settings()], ["roles", self.out]):
            self.refused(*command, "--out", "", words=("the name of a folder is empty",))

    def test_WhatIsRead_IsNotReplaced(self):
        self.assertEqual(run("plasticity", "--demo", "--no-figures", "--out", self.out).returncode, DONE)
        before = {path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
        self.refused("plasticity", self.out / "data", "--out", self.out, "--overwrite", words=("which is to be read",))
        self.assertEqual({path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}, before)

    def test_TheDryRun_LooksAtTheFolder(self):
        self.assertEqual(self.train().returncode, DONE)
        self.refused("train", *settings(), "--out", self.out, "--dry-run", words=("exists and is complete",))

    def test_ALimitOnTheSizeOfFiles_IsOneLineAndAStatus(self):
        result = subprocess.run(["bash", "-c", 'ulimit -f 8; "$@"', "bash", str(headscope), "train", *settings(),
                                 "--out", str(self.out), "-q"], capture_output=True, text=True, timeout=PATIENCE)
        self.assert_one_line(result, FAILED, "File too large")
        self.assertEqual(json.loads((self.out / "manifest.json").read_text())["status"], "failed")
        self.assertEqual(self.train("--resume").returncode, DONE)

    def test_AFailureIsOneObjectToo(self):
        for line, code in ((["train", "--set", "model.layers=0", "--json", "--out", self.out], WRONG_USAGE),
                           (["inspect", self.folder / "nothing", "--json"], WRONG_USAGE),
                           (["fly", "--json"], WRONG_USAGE)):
            result = run(*line)
            said = json.loads(result.stdout)
            self.assertEqual((result.returncode, said["exit"]), (code, code))
            self.assertEqual(f"headscope: {said['error']}", result.stderr.strip())
            self.assertTrue(said["error"].endswith(said["hint"]))
        self.assertEqual(json.loads(run("train", "--set", "model.layers=0", "--json").stdout)["hint"], "expected 1 to 4096")

    def test_ConfigListsEveryKeyThatARunWrites(self):
        self.assertEqual(self.train().returncode, DONE)
        listed = {key["key"]: key for key in json.loads(run("config", "--json").stdout)["keys"]
                  if "train" in key["commands"].split(", ")}
        def keys(part, prefix=""):
            for name, value in part.items():
                yield from keys(value, f"{prefix}{name}.") if isinstance(value, dict) else [prefix + name]
        written = json.loads((self.out / "manifest.json").read_text())["config"]
        self.assertEqual(set(keys(written)), set(listed))
        self.assertEqual(run("config", "optim.muon_lr", "--preset", "88m", "--json").stdout.count('"0.024"'), 1)
        of_train = {key["key"] for key in json.loads(run("config", "train", "--json").stdout)["keys"]}  # a command, and a part of keys
        self.assertLessEqual({"train.tokens", "model.d_k", "ranks.timeout"}, of_train)
        self.assertFalse([key for key in of_train if key.startswith("study.")])

    def test_TheDocsHaveTheTablesOfConfig(self):
        page = (Path(__file__).resolve().parents[2] / "docs" / "config.md").read_text()
        self.assertEqual(page[page.index("## train"):], run("config", "--markdown").stdout)

    def test_AWrongKeyNamesTheLikelyOnes(self):
        for key, likely in {"layers": "'model.layers'", "optim.lr": "'optim.muon_lr' or 'optim.adamw_lr'",
                            "optim.learning_rate": "'optim.muon_lr' or 'optim.adamw_lr'", "trian.tokens": "'train.tokens'",
                            "model.n_layer": "'model.layers'", "final_share": "'optim.final_share'"}.items():
            self.refused("train", "--dry-run", "--set", f"{key}=1", words=(f"did you mean {likely}?",))
        self.refused("train", "--dry-run", "--set", "xyzzy=1", words=("'headscope config' lists all keys",))
        self.refused("train", "--dry-run", "--set", "model=6", words=("'model' is a part that holds keys",))
        self.refused("train", "--layers", "6", words=("say '--set model.layers=…'",))
        self.refused("train", "--lr", "6", words=("say '--set optim.muon_lr=… or --set optim.adamw_lr=…'",))
        self.refused("train", *settings(), "--device", "gpu", "--out", self.out, words=("did you mean 'cuda'?",))

    def test_AFileSaysWhereItIsWrong(self):
        file = self.folder / "mine.yaml"
        for text, words in (("model:\n  layers: 99999\n", (f"{file}:2: model.layers is 99999; expected",)),
                            ("model:\n\tlayers: 2\n", ("indent with spaces",)),
                            ("seed: 1\n---\nseed: 2\n", ("several YAML documents",))):
            file.write_text(text)
            self.refused("train", "--dry-run", "--config", file, words=words)
        for choice, then in (("True", True), ("off", False)):
            file.write_text(f"model:\n  qk_norm: {choice}\n")
            self.assertEqual(run("train", *settings(), "--config", file, "--out", self.out, "--overwrite").returncode, DONE)
            self.assertEqual(json.loads((self.out / "manifest.json").read_text())["config"]["model"]["qk_norm"], then)

    def test_AnInspectionWithoutItsConfigurationIsRefused(self):
        self.assertEqual(run("train", *settings(), "--out", self.out).returncode, DONE)
        inspected = self.folder / "inspected"
        self.assertEqual(run("inspect", self.out, "--out", inspected).returncode, DONE)
        manifest = json.loads((inspected / "manifest.json").read_text())
        (inspected / "manifest.json").write_text(json.dumps({**manifest, "config": {}}))
        self.refused("inspect", "--resume", "--out", inspected, words=("no checkpoint",))
        (inspected / "manifest.json").write_text(json.dumps(manifest))
        again = run("inspect", "--resume", "--out", inspected, cwd="/")  # it finds the checkpoint from anywhere
        self.assertEqual(again.returncode, DONE, again.stderr)
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused("train", "--resume", "--out", empty, words=("is empty; leave --resume out",))

    def test_NumbersHaveShortFormsAndWhatIsLeftOutIsSaid(self):
        self.refused("train", "--dry-run", "--set", "train.tokens=1e5k", words=("expected a whole number",))
        for text in ("1e5", "100k", "0.1M", "100000", "100_000"):
            said = run("train", "--dry-run", "--set", f"train.tokens={text}")
            self.assertIn("100,000 → 98,304 tokens: 24 whole updates", said.stdout)  # 24 x 16 x 256
        self.assertIn("model.heads x model.d_k is 128, model.d_model is 96: the heads together are wider",
                      run("train", "--dry-run", "--set", "model.d_model=96").stdout)

    def test_AModelThatNoMemoryHolds_IsRefusedBeforeAFolderIsMade(self):
        self.refused("train", *settings("model.d_model=1048576", "model.d_ff=16777216"), "--out", self.out,
                     words=("parameters", "the machine has"))
        self.assertFalse(self.out.exists())

    def test_ControlCharactersInAName_DoNotReachTheTerminal(self):
        self.out = self.folder / "a\x1b[31m\x07\nb"
        self.assertEqual(self.train("-q").returncode, DONE)
        for line in (["plot", self.out], ["roles", self.out], ["inspect", self.out, "--out", f"{self.out}2"],
                     ["train", *settings(), "--out", self.out, "--resume"]):
            result = run(*line)
            self.assertEqual(result.returncode, DONE, result)
            for character in "\x1b\x07":
                self.assertNotIn(character, result.stdout + result.stderr, line)


class Gnuplot(Program):
    """One that never ends."""

    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(run("train", *settings(), "--out", self.out, "-q").returncode, DONE)
        (self.folder / "bin").mkdir()
        program = self.folder / "bin" / "gnuplot"
        program.write_text(f"#!/bin/sh\necho $$ >>'{self.folder}/pids'\nexec sleep 300\n")
        program.chmod(0o755)
        environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        self.before = {path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}
        self.plot = subprocess.Popen([str(headscope), "plot", str(self.out)], env=environment, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.plot.kill)
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / "pids").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def assert_all_end(self) -> None:
        deadline = time.monotonic() + PATIENCE
        for pid in (self.folder / "pids").read_text().split():
            while Path("/proc", pid).exists() and "sleep" in Path("/proc", pid, "cmdline").read_text():
                self.assertLess(time.monotonic(), deadline, "gnuplot goes on without its parent")
                time.sleep(0.02)

    def test_CtrlC_EndsIt(self):
        self.plot.send_signal(signal.SIGINT)
        _, printed = self.plot.communicate(timeout=PATIENCE)
        self.assertEqual((self.plot.returncode, printed), (130, "headscope: interrupted while drawing figures\n"))
        self.assert_all_end()
        self.assertEqual({path: path.read_bytes() for path in self.out.rglob("*") if path.is_file()}, self.before)

    def test_KilledWithItsParent_ItWritesNoMore(self):
        self.plot.kill()
        self.plot.communicate(timeout=PATIENCE)
        self.assert_all_end()


class Numbers(Program):
    def keys(self, command: str) -> list[str]:
        return [key["key"] for key in json.loads(run("config", "--json").stdout)["keys"]
                if command in key["commands"].split(", ")]

    def test_TheLargestNumber_IsRefusedOrEstimatedForEveryKey(self):
        """tests/settings/options_test.cpp tries more values, faster."""
        for command, skipped in (("train", ()), ("study", ("model.", "train.", "optim.", "data."))):
            for key in self.keys(command):
                if skipped and key.startswith(skipped):
                    continue
                result = run(command, "--dry-run", "--json", "--set", f"{key}=9223372036854775807")
                name = "is not there" if key == "data.path" else key.removeprefix("study.")
                if result.returncode == DONE:
                    self.assertGreater(json.loads(result.stdout)["seconds"], 0, key)
                else:
                    self.assert_one_line(result, WRONG_USAGE, name)

    def test_Products_AreChecked(self):
        self.refused("study", "--dry-run", "--set", "train.batch=4294967296", "train.seq_len=4294967296",
                     words=("train.batch is 4294967296; expected 1 to 1048576",))
        self.refused("train", "--dry-run", "--set", "train.batch=1048576", "train.seq_len=1048576",
                     "train.validation_batches=1024", "train.tokens=1000000000000000",
                     words=("train.validation_batches 1024 x train.batch 1048576 x train.seq_len 1048576 is too much",))

    def test_FlagsOfBenchmarksAndTokens_HaveAnUpperEnd(self):
        for value in ("9223372036854775807", "-1", "99999999999999999999", "1e30", "", "many"):
            for flag in ("--steps", "--warmup", "--track-every", "--threads"):
                self.refused("bench", "train", flag, value, words=(flag.removeprefix("--"), value))
            self.refused("bench", "track", "--rounds", value, words=("--rounds is ", value))
            self.refused("tokenize", "--language", value, "--out", self.tokens, words=("--language is ", value))
        self.refused("bench", "train", "--steps", "1000000", words=("random tokens",))

    def test_MeasuredSteps_AreTimed(self):
        line = ("bench", "train", *settings(), "--warmup", "1", "--steps", "12", "--json")
        plain, measured = (json.loads(run(*line, *more).stdout) for more in ((), ("--track-every", "1", "--track", "rank")))
        self.assertEqual(plain["loss_last"], measured["loss_last"])
        for result in plain, measured:
            self.assertGreater(result["first_step_s"], 0)
            self.assertGreater(result["tflops"], 0)
            self.assertGreater(result["step_ms_median"], 0)
        self.refused("bench", "train", "--track-every", "1", "--track", "rnk", words=("did you mean 'rank'",))

    def test_Numbers_AreFinite(self):
        for value in ("nan", "inf", "0", "1e999"):
            self.refused("study", "--dry-run", "--tau", value, words=("tau is ",))
            self.refused("study", "--analyze", self.folder, "--tau", value, words=("--tau ",))
            self.refused("plasticity", self.folder, "--p-alpha", value, words=("p_alpha",))

    def test_ALossThatIsNotFinite_IsOneLine(self):
        result = run("bench", "train", *settings(), "--warmup", "0", "--steps", "5", "--set", "optim.muon_lr=1e30")
        self.assert_one_line(result, FAILED, "not finite; the largest gradient is that of ")


class Names(Program):
    def test_TheNearestOne_IsNamed(self):
        for message, arguments in (
            ("unknown subcommand 'plasticty'; did you mean 'plasticity'?", ["plasticty"]),
            ("unknown subcommand 'tran'; did you mean 'train'?", ["bench", "tran"]),
            ("unknown subcommand 'fly'; known are train, study", ["fly"]),
            ("unexpected argument 'fly'", ["train", "fly"]),
            ("unknown flag '--presett'; did you mean '--preset'?", ["train", "--presett", "tiny"]),
            ("unknown flag '--dry'; did you mean '--dry-run'?", ["train", "--dry"]),
            ("unknown flag '--jsn'; did you mean '--json'?", ["--jsn", "train"]),
            ("flag '--preset' belongs behind 'headscope train'", ["--preset", "tiny", "train"]),
            ("flag '--demo' belongs behind 'headscope plasticity'", ["plasticity", "compare", "a", "b", "--demo"]),
            ("it belongs to 'headscope surgery'", ["train", "--repeats", "3"]),
            ("unknown preset '88n'; did you mean '88m'?", ["train", "--preset", "88n"]),
            ("unknown preset '7b'; known are tiny, 88m, 1.5b", ["study", "--preset", "7b"]),
            ("unknown key 'train.bach'; did you mean 'train.batch'?", ["train", "--set", "train.bach=1"]),
            ("unknown optim.schedule 'cosin'; did you mean 'cosine'?", ["train", "--set", "optim.schedule=cosin"]),
            ("unknown variant 'sed'; did you mean 'seed'?", ["plasticity", self.folder, "--variant", "sed"]),
            ("unknown order 'smalest'; did you mean 'smallest'?", ["surgery", "x", "--order", "smalest"]),
            ("unknown operation 'gian'; did you mean 'gain'?", ["surgery", "x", "--by", "gian"]),
            ("unknown theme 'drak'; did you mean 'dark'?", ["train", "--theme", "drak"]),
            ("unknown device 'cud'; did you mean 'cuda'?", ["bench", "train", "--device", "cud"]),
            ("unknown device 'cuda:one'; a GPU is 'cuda:' and its number", ["bench", "device", "--device", "cuda:one"]),
            ("--device cuda: this program was built without CUDA; ./headscope builds", ["train", "--device", "cuda"]),
            ("--device cuda:1: this program was built without CUDA", ["bench", "device", "--device", "cuda:1"]),
            ("unknown condition 'QK_frozn'; did you mean 'QK_frozen'?", ["study", "--conditions", "QK_frozn"]),
            ("unknown metric or group 'nrom'; did you mean 'norm'?", ["train", "--track", "nrom"]),
            ("unknown metric 'k_nrm'; did you mean 'k_norm'?", ["inspect", "x", "--show", "k_nrm"]),
            ("byte: is not there; expected bytes, a tokenizer.json, a folder that holds one, or a GGUF file",
             ["tokenize", self.text, "--out", self.tokens, "--tokenizer", "byte"]),
        ):
            self.refused(*arguments, words=(message,))


class DryRun(Program):
    def test_ItRefuses_WhatTheRunRefuses(self):
        markdown, empty, long = self.folder / "a.md", self.folder / "empty.txt", self.folder / "long.txt"
        markdown.write_text("text")
        empty.touch()
        long.write_text("\n<|endoftext|>\n".join("text" * 20 for _ in range(40)))
        wide = self.folder / "wide.bin"
        wide.write_bytes(bytes([1, 0] * 5000))
        wide.with_suffix(".json").write_text(
            json.dumps({"type": "u16", "vocabulary": 600, "tokenizer": "none", "end_of_text": 0}))
        for arguments in (
            ["--data", markdown], ["--data", empty], ["--data", self.text], ["--data", self.folder / "absent"],
            ["--data", wide], ["--data", long, "--set", f"data.validation={markdown}"],
            ["--data", long, "--set", f"data.validation={empty}"],
            ["--data", long, "--set", f"data.validation={self.text}"],
            ["--data", long, "--set", "train.validation_batches=500"],
            ["--data", long, "--set", "train.seq_len=20000", "train.tokens=40000"],
            ["--set", "model.vocabulary=200"], ["--set", f"data.validation={long}"],
            ["--theme", "drak"], ["--device", "tpu"], ["--device", "cuda"], ["--threads", "-1"], ["--resume"],
        ):
            for command in ("train", "study"):
                message = self.refused(command, *settings(), *arguments, *(["--out", self.out] * ("--resume" not in arguments)))
                self.assertEqual(self.refused(command, *settings(), *arguments, "--dry-run"), message)
        self.assertFalse(self.out.exists())

    def test_ATrainingAndAStudyOfOneRun_TakeTheSame(self):
        counts = [json.loads(run(*command, "--dry-run", "--json", "--preset", "88m", "--threads", "1").stdout)
                  for command in (["train"], ["study", "--conditions", "QK"])]
        for counted in counts:
            self.assertGreater(counted.pop("seconds"), 0)  # timed just now
            self.assertAlmostEqual(counted["parameters"] / 1e6, 88.6, delta=0.1)
            self.assertEqual((counted["runs"], counted["steps"], counted["threads"]), (1, 50_000_000 // 16_384, 1))
        self.assertEqual(*counts)
        self.assertRegex(run("train", "--dry-run").stdout, r"time +about .* on cpu")

    def test_ItReadsLittleOfALargeFile(self):
        large = self.folder / "large.jsonl"
        with large.open("w") as file:
            line = json.dumps({"text": "x" * (1 << 20)}) + "\n"
            for _ in range(200):
                file.write(line)
            file.write("damaged\n")
        result = run("train", "--dry-run", "--data", large)
        self.assertEqual(result.returncode, DONE, result.stderr)


class Device(Program):
    def test_BenchDevice_SaysWhatItIsAndHowFast(self):
        result = run("bench", "device", "--device", "cpu", "--threads", "1", "--json")
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))
        device = json.loads(result.stdout)
        for key in ("gpu", "driver", "cudnn", "nccl", "capability", "memory_gb"):  # a CPU has none
            self.assertIsNone(device.pop(key))
        for key in ("gemm_tflops", "copy_gb_s"):
            self.assertGreater(device.pop(key), 0)
        self.assertEqual(device, {"gemm": "2048^3 float32", "device": "cpu, 1 thread"})


class Threads(Program):
    def test_IdleThreads_SleepUnlessTheUserChose(self):
        def spins(**environment: str) -> list[str]:
            result = run("bench", "train", "--steps", "1", "--warmup", "0",
                         env={**os.environ, "OMP_DISPLAY_ENV": "verbose", **environment})
            self.assertEqual(result.returncode, DONE, result.stderr)
            return re.findall(r"(?:OMP_WAIT_POLICY|GOMP_SPINCOUNT) = '(.*)'", result.stderr)

        os.environ.pop("OMP_WAIT_POLICY", None)
        self.assertEqual(spins(), ["PASSIVE", "0"])  # once: the library is loaded once
        self.assertEqual(spins(OMP_WAIT_POLICY="active")[0], "ACTIVE")

    def test_Torch_IsLoadedOnlyToCompute(self):
        for line in (["--version"], ["--help"], ["train", "--help"], ["train", "--set", "train.batch=0"], ["study", "--analyze", "."]):
            result = run(*line, env={**os.environ, "OMP_DISPLAY_ENV": "verbose"})
            self.assertNotIn("OPENMP DISPLAY ENVIRONMENT", result.stderr, line)
        result = run("bench", "train", "--steps", "1", "--warmup", "0", env={**os.environ, "OMP_DISPLAY_ENV": "verbose"})
        self.assertIn("OPENMP DISPLAY ENVIRONMENT", result.stderr)

    def test_WithoutTheLibraryWithTorch_OneLineSaysSo(self):
        alone = Path(shutil.copy(headscope, self.folder))
        done = subprocess.run([alone, "train", "--out", self.out], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^headscope: cannot load the part with torch: .*headscope_torch.so.*\n$")
        self.assertFalse(self.out.exists())

    def test_TheirNumber_IsUsedAndRecordedAndMayChange(self):
        self.assertEqual(run("train", *settings(), "--threads", "3", "--out", self.out).returncode, DONE)
        manifest = json.loads((self.out / "manifest.json").read_text())
        self.assertEqual((manifest["threads"], manifest["config"]["threads"], manifest["device"]), (3, 3, "cpu, 3 threads"))
        manifest["status"] = "interrupted"
        (self.out / "manifest.json").write_text(json.dumps(manifest))
        again = run("train", *settings(), "--threads", "1", "--out", self.out, "--resume")
        self.assertEqual(again.returncode, DONE, again.stderr)
        manifest = json.loads((self.out / "manifest.json").read_text())
        self.assertEqual((manifest["threads"], manifest["device"]), (1, "cpu, 1 thread"))
        result = run("study", *settings(), "--conditions", "NoQK", "--out", self.folder / "study")
        self.assertEqual(result.returncode, DONE, result.stderr)
        manifest = json.loads((self.folder / "study" / "manifest.json").read_text())
        self.assertEqual((manifest["threads"], manifest["config"]["threads"]), (len(os.sched_getaffinity(0)), 0))

    def test_ARunningProgram_HasAsManyThreads(self):
        for threads in (1, 3):
            process = subprocess.Popen([headscope, "bench", "train", "--threads", str(threads), "--steps", "1000"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            tasks = Path(f"/proc/{process.pid}/task")
            most, before, end = 0, 0, time.monotonic() + 20
            while time.monotonic() < end and (most < threads or threads == 1 and time.monotonic() < end - 17):
                names = [(task / "comm").read_text() for task in tasks.iterdir()]
                count = names.count("headscope\n")  # an allocator's thread takes a name of its own, once it has begun
                most, before = max(most, min(before, count)), count
                time.sleep(0.05)
            process.kill()
            process.wait()
            self.assertEqual(most, threads)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
