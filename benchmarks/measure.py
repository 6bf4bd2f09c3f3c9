"""Runs a command and measures it: seconds, processor seconds, peak memory of the whole process tree. Linux, no packages.

Also what the benchmarks of training share: arguments, and the program that they run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, NoReturn

POLL_SECONDS = 0.05
BUILD = Path(__file__).resolve().parent.parent / "build"


def refuse(message: str) -> NoReturn:
    """One line and exit code 2, for what only the user can change."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


class Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        refuse(message)


def whole(least: int, most: int = 1_000_000) -> Callable[[str], int]:
    """The type of an argument."""
    def number(text: str) -> int:
        if text.strip("0123456789") or not text or not least <= int(text[:20]) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least:,} to {most:,}")
        return int(text)
    return number


def built_program(on_gpu: bool) -> Path:
    """The one that ./headscope builds."""
    for_gpus = BUILD / "cuda" / "gpu" / "headscope"
    return for_gpus if on_gpu and for_gpus.is_file() else BUILD / "release" / "headscope"


@dataclass
class Measured:
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    stdout: str


def run(command: list[str], **environment: str) -> Measured:
    """Fails loudly, with the command's own words, when it does."""
    with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=os.environ | environment)
        watcher = MemoryWatcher(process.pid)
        _, status, usage = os.wait4(process.pid, 0)  # its usage includes the workers it waited for
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        # The sampled sum can miss a short peak; the kernel's figure is exact but for the largest process alone.
        peak = max(watcher.stop(), usage.ru_maxrss * 1024)
        stdout.seek(0)
        stderr.seek(0)
        if process.returncode != 0:
            sys.exit(f"{' '.join(command)}\nexit code {process.returncode}:\n{stderr.read()[-3000:]}")
        return Measured(seconds, usage.ru_utime + usage.ru_stime, peak, stdout.read())


class MemoryWatcher:
    """The largest sum over the process tree, sampled. Proportional set size: pages shared by workers count once."""

    def __init__(self, root: int) -> None:
        self._root, self._peak, self._stopped = root, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._peak = max(self._peak, sum(_memory(pid) for pid in _tree(self._root)))
            self._stopped.wait(POLL_SECONDS)


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            # "pid (any name) state parent ...": the name may hold anything but a last parenthesis
            fields = _read(folder / "stat").rpartition(")")[2].split()
            if fields:
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [root]
    for pid in found:  # grows while it is walked
        found += children.get(pid, [])
    return found


def _memory(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the process ended in the meantime
        return ""
