"""Runs `headscope plasticity` and reads what it wrote: shared by the scripts of this folder."""

from __future__ import annotations

import csv
import subprocess
import sys
import unittest
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracle"))

METRICS_CSV = "head_metrics.csv"
CELLS_CSV = "head_bucket_plasticity.csv"
COMPONENTS_CSV = "head_component_weights.csv"
CHECKS_CSV = "head_checks.csv"
REPLICATES_CSV = "head_replicates.csv"
CSV_FILES = (METRICS_CSV, CELLS_CSV, COMPONENTS_CSV, CHECKS_CSV)

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

_headscope: Path | None = None


@dataclass
class Finished:
    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.stdout[-2000:]}\n--- stderr\n{self.stderr[-2000:]}"


def command(*arguments: object) -> list[str]:
    """Tables only: figures have tests of their own."""
    return [str(_headscope), "plasticity", *map(str, arguments), "--no-figures"]


def plasticity(*arguments: object, timeout: float = 60) -> Finished:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout)
    return Finished(done.returncode, done.stdout, done.stderr)


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen, timeout: float = 60) -> Finished:
    stdout, stderr = process.communicate(timeout=timeout)
    return Finished(process.returncode, stdout, stderr)


def read_rows(file: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows, as text. The file must be plain: comma, LF, nothing quoted."""
    text = file.read_bytes().decode()
    if "\r" in text or '"' in text or not text.endswith("\n"):
        raise AssertionError(f"{file.name}: not plain comma and LF text")
    header, *rows = csv.reader(text.splitlines())
    return header, rows


def csv_bytes(folder: Path) -> dict[str, bytes]:
    """The content of every table of a run."""
    tables = {file.name: file.read_bytes() for file in sorted(folder.glob("*.csv"))}
    missing = set(CSV_FILES) - tables.keys()
    if missing:
        raise AssertionError(f"{folder}: no {', '.join(sorted(missing))}")
    return tables


def main(description: str) -> None:
    """Entry point of a test script: its first argument is the program, the rest are unittest's."""
    global _headscope
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(f"{description}\nusage: {Path(sys.argv[0]).name} PATH_TO_HEADSCOPE [unittest options]")
    _headscope = Path(sys.argv[1]).resolve()
    if not _headscope.is_file():
        sys.exit(f"{_headscope}: there is no such program")
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[2:]])
