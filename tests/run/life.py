"""Every command that writes a run folder, as data, and what two folders must have in common. Shared by the tests of this folder.

A test program imports this module and ends with `life.main()`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet

DONE, FAILED, WRONG_USAGE = 0, 1, 2
SMALL = ("model.layers=2", "model.d_model=16", "model.heads=2", "model.kv_heads=1", "model.d_k=8", "model.d_ff=32",
         "train.seq_len=16", "train.batch=2", "train.probe_every=2", "train.checkpoint_every=2", "train.tokens=192",
         "train.validation_batches=1")
SETTINGS = tuple(text for setting in SMALL for text in ("--set", setting))
RUNS = {}  # finished runs to start from, by name; no test may change them
headscope: Path
environment: dict[str, str]


@dataclass(frozen=True)
class Command:
    """A command line without --out. `inputs` are folders of RUNS; `into`: it adds to a copy of this run instead of a new folder."""

    name: str
    words: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    into: str = ""
    again: tuple[str, ...] = ("--resume",)  # how it goes on after it was stopped

    def line(self, out: Path, *more: str) -> list[str]:
        inputs = [str(out)] if self.into else [str(RUNS[name]) for name in self.inputs]
        place = [] if self.into else ["--out", str(out)]
        return [str(headscope), *self.words, *inputs, *self.flags, *place, *more]

    def prepare(self, out: Path) -> None:
        """What must be there before the command starts."""
        if self.into:
            shutil.copytree(RUNS[self.into], out)


# A report is written when the run is finished: whatever happens to it then is a warning (tests/page).
COMMANDS = (
    Command("plasticity", ("plasticity",), ("data",), ("--no-figures", "--no-report", "--workers", "1")),
    Command("compare", ("plasticity", "compare"), ("plasticity", "plasticity")),
    Command("analyze", ("study", "--analyze"), ("study",), ("--no-report",)),
    Command("train", ("train",), (), SETTINGS + ("--no-report",)),
    Command("study", ("study",), (), SETTINGS + ("--conditions", "QK,NoQK", "--no-report")),
    Command("capture", ("capture",), ("train",), ("--max-documents", "8", "--sampler", "all", "--set", "part_tokens=40")),
    Command("inspect", ("inspect",), ("train",), ("--no-report",)),
    Command("surgery", ("surgery",), ("train",), ("--shares", "0,0.5", "--repeats", "1", "--bits", "4")),
    Command("roles of a checkpoint", ("roles",), ("checkpoint",), again=("--overwrite",)),
    Command("roles elsewhere", ("roles",), ("train",), again=("--overwrite",)),
    Command("roles", ("roles",), into="train", again=()),
    Command("plot", ("plot",), into="train", flags=("--theme", "dark"), again=()),
)


def run(*line: object, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in line], capture_output=True, text=True, timeout=300, env=environment,
                          **options)


# Figures have tests of their own. This stands in for gnuplot: it gives every script its two images at once.
GNUPLOT = """#!/bin/sh
for script; do
  case $script in *.gp)
    name=$(basename "$script" .gp)
    { cksum <"$script"; printf 'IEND\\256\\102\\140\\202'; } >"$name.png"
    { cksum <"$script"; printf '</svg>'; } >"$name.svg" ;;
  esac
done
"""


def setUpModule() -> None:
    global environment
    temporary = tempfile.TemporaryDirectory(prefix="headscope life ")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = Path(temporary.name)
    (folder / "bin").mkdir()
    (folder / "bin" / "gnuplot").write_text(GNUPLOT)
    (folder / "bin" / "gnuplot").chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    for line in (
        ["plasticity", "--demo", "--no-figures", "--no-report", "--out", folder / "plasticity"],
        ["train", *SETTINGS, "--no-report", "--track-every", "1", "--out", folder / "train"],
        ["study", *SETTINGS, "--no-report", "--out", folder / "study"],
    ):
        done = run(headscope, *line)
        assert done.returncode == DONE, done.stderr
    RUNS.update(plasticity=folder / "plasticity", data=folder / "plasticity" / "data", train=folder / "train",
                study=folder / "study", checkpoint=folder / "train" / "checkpoints" / "step-000006")


def files(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes; the lock aside."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.name != ".lock"}


def differing(a: dict, b: dict) -> list[str]:
    """Names of what is another, or only in one."""
    return sorted(name for name in {*a, *b} if a.get(name) != b.get(name))


# Times, speeds, dates and paths differ from run to run.
VOLATILE = {"time", "seconds_left", "started", "ended", "seconds", "elapsed_s", "tokens_per_s", "tokens_per_second", "peak_memory_mb", "stages", "command_line", "error", "analyze"}


def without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_times(member) for key, member in value.items() if key not in VOLATILE}
    return [without_times(member) for member in value] if isinstance(value, list) else value


def content(folder: Path) -> dict[str, object]:
    """What must be the same in two folders of the same run."""
    result: dict[str, object] = {}
    for name, data in files(folder).items():
        if name.endswith(".json"):
            result[name] = without_times(json.loads(data))
        elif Path(name).name == "events.jsonl":  # one that was stopped says so
            result[name] = "events"
        elif "steps.parquet/" in name:
            result[name] = parquet.read_table(folder / name).drop_columns(["tokens_per_s"]).to_pylist().__repr__()
        else:
            result[name] = data
    return result


class Life(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope life ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def assert_same(self, out: Path, expected: dict[str, object]) -> None:
        self.assertEqual(differing(content(out), expected), [])

    def assert_one_line(self, done: subprocess.CompletedProcess) -> None:
        for sign in ("terminate called", "Segmentation", "what():", "Sanitizer"):
            self.assertNotIn(sign, done.stderr)
        self.assertTrue(done.stderr.splitlines()[-1].startswith("headscope: "), done.stderr)


def main() -> None:
    global headscope
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
