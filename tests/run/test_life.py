"""The life of a run folder as a user meets it: somebody's files in it, a kill, a full disk, a second process, links.

usage: python test_life.py PATH_TO_HEADSCOPE [unittest options]

strace makes a system call fail, or kills the program at it: `HEADSCOPE_FAULTS=20` tries so many of them for every command
(a few by default), `HEADSCOPE_PAIRS=all` every pair of commands on one folder.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import life
from life import COMMANDS, DONE, FAILED, WRONG_USAGE, Command, Life, content, files, run, setUpModule

FAULTS = int(os.environ.get("HEADSCOPE_FAULTS", "2"))
CHANGES = "rename,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,pwrite64,ftruncate,link"
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
WRITES = "pwrite64,fsync,mkdir,mkdirat,rename,renameat2"  # what a full disk refuses


@dataclass(frozen=True)
class Moment:
    """The number-th call of a system call, counted in the main thread."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call} {self.number}"


def strace(calls: str, inject: str, log: Path) -> list[str]:
    words = ["strace", "-qq", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(log)]
    return words + (["-e", f"inject={calls}:{inject}"] if inject else [])


def can_trace() -> bool:
    return shutil.which("strace") is not None and run("strace", "-qq", "-o", os.devnull, "true").returncode == 0


class Traced(Life):
    def setUp(self) -> None:
        super().setUp()
        if not can_trace():
            self.skipTest("strace is not installed, or may not trace here")

    def moments(self, command: Command, calls: str) -> list[Moment]:
        """Some of the system calls that the command makes, each kind of call as likely as another."""
        out, log = self.place("counted"), self.folder / "log"
        command.prepare(out)
        done = run(*strace(calls, "", log), *command.line(out))
        self.assertEqual(done.returncode, DONE, done.stderr)
        made = Counter(re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE))
        chance = random.Random(command.name + calls + os.environ.get("HEADSCOPE_FAULTS", ""))
        chosen = set()
        while len(chosen) < min(FAULTS, made.total()):
            call = chance.choice(sorted(made))
            chosen.add(Moment(call, chance.randint(1, made[call])))
        return sorted(chosen, key=str)

    def try_each(self, calls: str, attempt: Callable[[Command, Moment, dict[str, object]], None]) -> None:
        """Calls attempt(command, moment, what an undisturbed run gives), with the undisturbed run in folder/undisturbed."""
        for command in COMMANDS:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            out = self.place("undisturbed")
            command.prepare(out)
            done = run(*command.line(out))
            self.assertEqual(done.returncode, DONE, done.stderr)
            expected = content(out)
            for moment in self.moments(command, calls):
                with self.subTest(f"{command.name}, {moment}"):
                    attempt(command, moment, expected)

    def place(self, name: str) -> Path:
        """For a run; always of one name, since titles of figures name the run's folder."""
        (self.folder / name).mkdir(exist_ok=True)
        return self.folder / name / "run"

    def go_on(self, command: Command, out: Path) -> subprocess.CompletedProcess:
        begun = any((out / name).exists() for name in ("manifest.json", ".replaced/manifest.json"))
        return run(*command.line(out, *(command.again if begun else ())))


class Killed(Traced):
    def test_AtAnyChangeOfAFile_AnotherTryGivesTheSame(self):
        def attempt(command: Command, moment: Moment, expected: dict[str, object]) -> None:
            out = self.place(str(moment))
            command.prepare(out)
            killer = strace(moment.call, f"signal=KILL:when={moment.number}", self.folder / "log")
            self.assertIn(run(*killer, *command.line(out)).returncode, KILLED)
            done = self.go_on(command, out)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assert_same(out, expected)

        self.try_each(CHANGES, attempt)

    def test_WhileItReplacesARun_TheOldOneOrTheNewIsThere(self):
        def attempt(command: Command, moment: Moment, expected: dict[str, object]) -> None:
            if command.into:
                return
            out = self.place(f"over {moment}")
            shutil.copytree(self.place("undisturbed"), out)
            killer = strace(moment.call, f"signal=KILL:when={moment.number}", self.folder / "log")
            run(*killer, *command.line(out, "--overwrite"))  # it may make fewer such calls than a new run, and end
            done = run(*command.line(out, "--overwrite"))
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assert_same(out, expected)

        self.try_each(CHANGES, attempt)


class FullDisk(Traced):
    def test_AtAnyWrite_OneLineAndAnotherTryGivesTheSame(self):
        def attempt(command: Command, moment: Moment, expected: dict[str, object]) -> None:
            out = self.place(str(moment))
            command.prepare(out)
            before = files(out) if command.into else {}
            full = strace(moment.call, f"error=ENOSPC:when={moment.number}+", self.folder / "log")
            done = run(*full, *command.line(out))
            if done.returncode != DONE:
                self.assertIn(done.returncode, (FAILED, WRONG_USAGE), done.stderr)
                self.assert_one_line(done)
                if command.into and not (out / ".publishing").exists():
                    self.assertEqual(sorted(life.differing(files(out), before)), [])
                done = self.go_on(command, out)
                self.assertEqual(done.returncode, DONE, done.stderr)
            if "warning" not in done.stderr:  # figures that could not be drawn are a warning
                self.assert_same(out, expected)

        self.try_each(WRITES, attempt)


class SecondProcess(Traced):
    """The first command is stopped at its first change of the folder; the second must be refused."""

    def test_OnTheSameFolder_IsRefused(self):
        pairs = [(first, second) for first in COMMANDS for second in COMMANDS]
        if os.environ.get("HEADSCOPE_PAIRS") != "all":
            pairs = [(first, COMMANDS[(i + 1) % len(COMMANDS)]) for i, first in enumerate(COMMANDS)]
        for number, (first, second) in enumerate(pairs):
            with self.subTest(f"{first.name}, then {second.name}"):
                out, log = self.folder / f"out {number}", self.folder / f"log {number}"
                first.prepare(out)
                process = subprocess.Popen(strace("fsync", "signal=STOP:when=1", log) + first.line(out),
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=life.environment)
                try:
                    child = self.stopped_child(process, log)
                    for flags in ((), ("--overwrite",)) if not second.into else ((),):
                        done = run(*second.line(out, *flags))
                        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
                        self.assert_one_line(done)
                    os.kill(child, signal.SIGCONT)
                    self.assertEqual(process.wait(timeout=120), DONE)
                finally:
                    process.kill()
                    process.wait()

    def stopped_child(self, process: subprocess.Popen, log: Path) -> int:
        seen = 0
        for _ in range(2000):
            for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
                stopped = re.search(r"^State:\s+[tT]", Path(f"/proc/{child}/status").read_text(), re.MULTILINE)
                seen = seen + 1 if stopped and log.exists() and "fsync" in log.read_text() else 0
                if seen > 5:
                    return int(child)
            time.sleep(0.01)
        self.fail("the first command did not stop")


class SomebodysFiles(Life):
    def test_AFolderThatHoldsThem_IsRefusedAndStays(self):
        for command in (command for command in COMMANDS if not command.into):
            for name in (".git/HEAD", "thesis.tex"):
                with self.subTest(f"{command.name}, {name}"):
                    out = self.folder / command.name / name.replace("/", "")
                    (out / name).parent.mkdir(parents=True)
                    (out / name).write_text("years of work")
                    for flags in ((), ("--overwrite",)):
                        done = run(*command.line(out, *flags))
                        self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
                        self.assertIn("not a run folder", done.stderr)
                    self.assertEqual(files(out), {name: b"years of work"})

    def test_InARun_TheyStay(self):
        for command in COMMANDS:
            with self.subTest(command.name):
                out = self.folder / command.name
                command.prepare(out)
                self.assertEqual(run(*command.line(out)).returncode, DONE)
                for name in (".git/HEAD", "plots/.git/HEAD", "notes.txt"):
                    (out / name).parent.mkdir(parents=True, exist_ok=True)
                    (out / name).write_text("mine")
                before = files(out)
                done = run(*command.line(out, *command.again))
                self.assertEqual(done.returncode, WRONG_USAGE if "--overwrite" in command.again else DONE, done.stderr)
                self.assertEqual(content(out).keys(), before.keys())
                self.assertEqual(files(out)[".git/HEAD"], b"mine")
                if "--resume" not in command.again:
                    continue
                manifest = out / "manifest.json"
                manifest.write_text(manifest.read_text().replace('"status": "complete"', '"status": "interrupted"'))
                done = run(*command.line(out, "--resume"))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(content(out).keys(), before.keys())
                for name in (".git/HEAD", "plots/.git/HEAD", "notes.txt"):
                    self.assertEqual(files(out)[name], b"mine")

    def test_OverwriteKnowsEveryNameThatACommandMakes(self):
        for command in (command for command in COMMANDS if not command.into):
            with self.subTest(command.name):
                out = self.folder / command.name
                self.assertEqual(run(*command.line(out)).returncode, DONE)
                expected = content(out)
                done = run(*command.line(out, "--overwrite"))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assert_same(out, expected)


# "$0" read-only, for one command and what it starts.
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


class ReadOnly(Life):
    def test_AFolder_IsNamedInOneLine_AndStays(self):
        if run("unshare", "-m", "sh", "-c", READ_ONLY, self.folder, "true").returncode != DONE:
            self.skipTest("needs the right to mount")
        for command in COMMANDS:
            with self.subTest(command.name):
                out = self.folder / command.name
                if not command.into:  # the folder above it
                    done = run("unshare", "-m", "sh", "-c", READ_ONLY, self.folder, *command.line(out))
                    self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
                    self.assert_one_line(done)
                    self.assertFalse(out.exists())
                command.prepare(out)
                self.assertEqual(run(*command.line(out)).returncode, DONE)
                before = files(out)
                for flags in ((), ("--overwrite",)) if not command.into else ((),):
                    done = run("unshare", "-m", "sh", "-c", READ_ONLY, out, *command.line(out, *flags))
                    self.assertEqual(done.returncode, WRONG_USAGE, done.stderr)
                    self.assert_one_line(done)
                    self.assertEqual(files(out), before)


class Resumed(Life):
    def test_ACompleteRun_StaysAsItIs(self):
        for command in (command for command in COMMANDS if "--resume" in command.again):
            with self.subTest(command.name):
                out = self.folder / command.name
                self.assertEqual(run(*command.line(out)).returncode, DONE)
                before = files(out)
                done = run(*command.line(out, "--resume"))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(files(out), before)


class Links(Life):
    def test_InPlaceOfAFile_NothingOutsideIsWritten(self):
        for command in COMMANDS:
            out = self.folder / command.name
            command.prepare(out)
            self.assertEqual(run(*command.line(out)).returncode, DONE)
            names = sorted(path.relative_to(out) for path in out.rglob("*"))
            for name in names[:: 1 if FAULTS > 2 else max(1, len(names) // 3)]:
                with self.subTest(f"{command.name}, {name}"):
                    copy, outside = self.folder / "copy", self.folder / "outside"
                    for folder in (copy, outside):
                        shutil.rmtree(folder, ignore_errors=True)
                    shutil.copytree(out, copy)
                    outside.mkdir()
                    shutil.move(copy / name, outside / name.name)
                    (copy / name).symlink_to(outside / name.name)
                    before = files(outside)
                    for flags in ((), ("--overwrite",), ("--resume",)) if not command.into else ((),):
                        if flags == ("--resume",) and command.again == ("--overwrite",):
                            continue
                        done = run(*command.line(copy, *flags))
                        self.assertEqual(done.returncode, WRONG_USAGE, f"{flags}: {done.stderr}")
                        self.assertEqual(files(outside), before, flags)


if __name__ == "__main__":
    life.main()
