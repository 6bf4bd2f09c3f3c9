"""Runs a command and measures it: seconds, processor seconds, peak memory of the whole process tree. Linux, no packages."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.05


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
