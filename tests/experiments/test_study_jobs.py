"""Several runs of a study at once: `study --jobs`, several commands on one folder, and what is left when a process dies.

usage: python test_study_jobs.py PATH_TO_HEADSCOPE [unittest options]
HEADSCOPE_KILLS=6 kills so many workers at random moments; the default is a few.
"""

from __future__ import annotations

import collections
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as parquet

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130
TAGS = ("QK", "QK_frozen", "NoQK")
TABLES = ("steps", "probes", "layers", "heads", "gamma")
TIMES = ("elapsed_s", "tokens_per_s", "seconds")
# 10 steps of 4 x 64 tokens in less than a second, a checkpoint every second step.
SMALL = ("model.layers=2", "model.d_model=64", "model.heads=4", "model.d_k=16", "model.d_ff=128", "train.tokens=2560",
         "train.batch=4", "train.seq_len=64", "train.probe_every=5", "train.checkpoint_every=2")
LONG = ("train.tokens=38400", "train.checkpoint_every=5")  # 150 steps: long enough to be stopped on the way
THREADS = ("--threads", "1")
NO_SLURM = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
headscope: Path


def words(*arguments: object) -> list[str]:
    return [str(headscope), "study", *THREADS, *map(str, arguments)]


def settings(*more: str) -> list[str]:
    return [text for setting in (*SMALL, *more) for text in ("--set", setting)]


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(words(*arguments), capture_output=True, text=True, timeout=600, env={**NO_SLURM, **environment})


def start(*arguments: object, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(words(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**NO_SLURM, **environment})


def workers_of(process: subprocess.Popen) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def owner_of(place: Path) -> int | None:
    """The process that trains there, dead or alive."""
    try:
        return json.loads((place / "claim.json").read_text())["process"]
    except FileNotFoundError:
        return None


def trainer_of(place: Path) -> int | None:
    """The process that trains there now: it is alive, and its model is there."""
    try:
        owner = owner_of(place)
        has_begun = os.stat(place / "progress.json").st_mtime > os.stat(place / "claim.json").st_mtime
    except FileNotFoundError:  # nobody has begun, or the claim was released just now
        return None
    return owner if owner is not None and has_begun and is_running(owner) else None


def stopped_in(out: Path, *tags: str) -> list[str]:
    """The phases of runs that have no results."""
    return [json.loads((out / tag / "progress.json").read_text())["phase"] for tag in tags
            if not (out / tag / "results.json").exists()]


def checkpoints(out: Path) -> list[Path]:
    try:
        return [path for places in ("", "*/", "*/*/") for path in out.glob(places + "checkpoints/step-*")]
    except FileNotFoundError:  # a folder got its name just now
        return []


def without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return value


def status(out: Path) -> str:
    return json.loads((out / "manifest.json").read_text())["status"]


class Jobs(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope jobs ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def wait_until(self, is_so: Callable[[], object], *processes: subprocess.Popen) -> None:
        """Fails when one of the processes ends before, and after three minutes."""
        limit = time.monotonic() + 180
        while not is_so():
            if time.monotonic() > limit:
                self.fail("three minutes passed")
            for process in processes:
                if process.poll() is not None:
                    self.fail(process.stderr.read())
            time.sleep(0.01)

    def started(self, *arguments: object, **environment: str) -> subprocess.Popen:
        process = start(*arguments, **environment)

        def end() -> None:
            if process.poll() is None:
                process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def ended(self, process: subprocess.Popen, code: int) -> tuple[str, str]:
        output, errors = process.communicate(timeout=600)
        self.assertEqual(process.returncode, code, errors)
        return output, errors

    def done(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess:
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result

    def refused(self, message: str, *arguments: object, **environment: str) -> None:
        result = run(*arguments, **environment)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("headscope: data:")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(message, lines[0])

    def serial(self, *more: str, **environment: str) -> Path:
        out = self.folder / "serial"
        self.done(*settings(*more), "--out", out, **environment)
        return out

    def assert_same_study(self, first: Path, second: Path, places: tuple[str, ...] = TAGS) -> None:
        """All that is not a time: files, tables, weights."""
        def names(out: Path) -> list[str]:
            return sorted(str(path.relative_to(out)) for path in out.rglob("*"))
        changed = {name: os.stat(second / name).st_ctime for name in set(names(second)) - set(names(first))}
        self.assertEqual(names(first), names(second), f"changed at {changed}, the manifest at "
                         f"{os.stat(second / 'manifest.json').st_ctime}")
        combined = [without_times(json.loads((out / "combined.json").read_text())) for out in (first, second)]
        self.assertEqual(json.dumps(combined[0]), json.dumps(combined[1]))
        for place in places:
            one, other = first / place, second / place
            self.assertEqual((one / "results.json").read_bytes(), (other / "results.json").read_bytes(), place)
            for table in TABLES:
                if not (one / f"{table}.parquet").exists():
                    continue
                rows = []
                for folder in (one, other):
                    columns = parquet.read_table(folder / f"{table}.parquet").to_pydict()
                    rows.append(repr({name: values for name, values in columns.items() if name not in TIMES}))
                self.assertEqual(*rows, f"{place} {table}")
            for file in sorted(one.glob("checkpoints/*/*.safetensors")):
                self.assertEqual(file.read_bytes(), (other / file.relative_to(one)).read_bytes(), file)
        self.assertEqual(status(second), "complete")


class SideBySide(Jobs):
    def test_TwoJobs_GiveTheBytesOfOneAfterAnother(self) -> None:
        serial, jobs = self.serial(), self.folder / "jobs"
        result = self.done(*settings(), "--jobs", 2, "--out", jobs)
        self.assert_same_study(serial, jobs)
        self.assertIn("verdict: ", result.stdout)
        for label in ("A QK", "B QK_frozen", "C NoQK"):
            self.assertEqual(result.stderr.count(f"{label}: 10/10 steps"), 1, result.stderr)
        self.assertEqual(result.stderr.count("headscope: data:"), 1, result.stderr)
        self.assertTrue((jobs / "report.html").exists())

    def test_SeedsAndJson_AreAsOneAfterAnother(self) -> None:
        out = [self.folder / name for name in ("serial", "jobs")]
        printed = [json.loads(self.done(*settings(), "--seeds", "1,2", "--conditions", "QK,NoQK", "--json", "--out", folder,
                                        *jobs).stdout) for folder, jobs in zip(out, ((), ("--jobs", "3")))]
        self.assert_same_study(*out, tuple(f"seed_{seed}/{tag}" for seed in (1, 2) for tag in ("QK", "NoQK")))
        for one in printed:
            one.pop("out")
        self.assertEqual(without_times(printed[0]), without_times(printed[1]))
        again = self.done("--out", out[1], "--resume", "--jobs", 2)
        self.assertIn("verdict: ", again.stdout)

    def test_ThreadsAreDivided_UnlessTheyAreGiven(self) -> None:
        cores = len(os.sched_getaffinity(0))
        command = [str(headscope), "study", *settings(), "--no-report"]
        for arguments, environment, threads in (((), {}, max(1, cores // 2)), (("--threads", "3"), {}, 3),
                                                ((), {"OMP_NUM_THREADS": "2"}, 2)):
            out = self.folder / f"{len(arguments)}{len(environment)}"
            outside = {name: value for name, value in NO_SLURM.items() if name != "OMP_NUM_THREADS"}
            result = subprocess.run([*command, *arguments, "--jobs", "2", "--conditions", "QK,NoQK", "--out", str(out)],
                                    capture_output=True, text=True, env={**outside, **environment})
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assertEqual(json.loads((out / "manifest.json").read_text())["threads"], threads)
            self.assertEqual("each: the bytes of a serial study" in result.stderr, not arguments and not environment)

    def test_OtherThreadsThanBefore_AreSaidOnce(self) -> None:
        cores, out = len(os.sched_getaffinity(0)), self.folder / "run"
        before, divided = {"OMP_NUM_THREADS": str(cores // 2 + 1)}, max(1, cores // 2)
        outside = {name: value for name, value in NO_SLURM.items() if name != "OMP_NUM_THREADS"}
        command = [str(headscope), "study", "--no-report", "--out"]
        process = subprocess.Popen([*command, str(out), *settings(*LONG), "--conditions", "QK,NoQK"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env={**outside, **before})
        self.addCleanup(process.kill)
        self.wait_until(lambda: checkpoints(out), process)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        kept = shutil.copytree(out, self.folder / "kept")
        changed = f"was trained with {cores // 2 + 1} threads until now, with {divided} from here on: sums may be rounded differently"
        for folder, environment, is_said in ((out, {}, 1), (out, {}, 0), (kept, before, 0)):
            result = subprocess.run([*command, str(folder), "--resume", "--jobs", "2"], capture_output=True, text=True,
                                    env={**outside, **environment})
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assertEqual(result.stderr.count(changed), is_said, result.stderr)
            self.assertEqual(f"2 at once, with {divided} thread" in result.stderr, bool(is_said), result.stderr)
            self.assertNotIn("the bytes of a serial study", result.stderr)

    def test_WhatALibraryPrints_IsTextAndNoMessage(self) -> None:
        out = self.folder / "run"
        result = self.done(*settings(), "--jobs", 2, "--no-report", "--out", out, MKL_VERBOSE="1", ONEDNN_VERBOSE="1")
        self.assertIn("verdict: ", result.stdout)
        self.assertIn("headscope: MKL_VERBOSE", result.stderr)

    def test_AFailedRun_IsReportedAndTheOthersFinish(self) -> None:
        for jobs in ((), ("--jobs", "2")):
            out = self.folder / f"jobs{len(jobs)}"
            process = self.started(*settings(*LONG), "--out", out)
            self.wait_until(lambda: checkpoints(out / "QK"), process)
            process.kill()
            process.wait()
            shutil.rmtree(out / "QK" / "checkpoints")
            (out / "QK" / "checkpoints").touch()  # a file where the folder is to be
            result = run("--out", out, "--resume", *jobs)
            self.assertEqual(result.returncode, FAILED, result.stderr)
            self.assertEqual(result.stderr.count("A QK failed, the other runs go on"), 1, result.stderr)
            self.assertIn("1 of 3 runs failed: ", result.stderr.splitlines()[-1])
            self.assertIn("Not a directory", result.stderr.splitlines()[-1])
            self.assertEqual([tag for tag in TAGS if (out / tag / "results.json").exists()], ["QK_frozen", "NoQK"])
            self.assertFalse((out / "combined.json").exists())
            self.assertEqual(status(out), "failed")
            (out / "QK" / "checkpoints").unlink()
            self.assertEqual(self.done("--out", out, "--resume", *jobs).stderr.count("2 of 3 runs are done"), 1)
            self.assert_same_study(self.serial(*LONG), out)
            shutil.rmtree(self.folder / "serial")

    def test_ALinkInThePlaceOfARun_IsNotFollowed(self) -> None:
        out, elsewhere = self.folder / "run", self.folder / "elsewhere"
        elsewhere.mkdir()
        process = self.started(*settings(*LONG), "--conditions", "QK,NoQK", "--jobs", 2, "--out", out)
        self.wait_until(lambda: len({path.parent for path in checkpoints(out)}) == 2, process)
        workers = workers_of(process)
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        (out / "QK").rename(self.folder / "QK")
        (out / "QK").symlink_to(elsewhere)
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
        _, errors = self.ended(process, FAILED)
        self.assertIn("a symbolic link took its place", errors)
        self.assertEqual(list(elsewhere.iterdir()), [])
        self.assertTrue((out / "NoQK" / "results.json").exists())

    def test_NamesThatAreNoText_AreRefused(self) -> None:
        self.refused("is no UTF-8, which --jobs and --devices need", *settings(), "--jobs", 2, "--out",
                     os.fsdecode(bytes(self.folder / "o") + b"\xff"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_BadInput_IsRefusedInOneLine(self) -> None:
        out = ("--out", self.folder / "out")
        for message, arguments in (
            ("--jobs", ("--jobs", "0")),
            ("--jobs is 'x'; expected a whole number", ("--jobs", "x")),
            ("--jobs is for the CPU, --devices for GPUs; give one of them", ("--jobs", "2", "--devices", "all")),
            ("--jobs is for the CPU, and the device is cuda", ("--jobs", "2", "--device", "cuda")),
            ("'x' is no number of a GPU; expected all, or numbers such as 0,1,3", ("--devices", "0,x")),
            ("'' is no number of a GPU", ("--devices", "")),
            ("--devices 1,1: 1 is there twice", ("--devices", "1,1")),
            ("--devices is for GPUs, and the device is cpu", ("--devices", "0", "--device", "cpu")),
            ("unknown preset '7b'", ("--jobs", "2", "--preset", "7b")),
            ("missing.txt", ("--jobs", "2", "--data", self.folder / "missing.txt")),
        ):
            self.refused(message, *settings(), *arguments, *out)
        if run("--dry-run", "--device", "cuda").returncode != DONE:
            self.refused("--devices 0: ", *settings(), "--devices", "all", *out)
        self.assertFalse((self.folder / "out").exists())


class Stopped(Jobs):
    def test_WorkersKilledAtRandomMoments_AreReplacedAndTheStudyIsTheSame(self) -> None:
        kills = int(os.environ.get("HEADSCOPE_KILLS", "4"))
        most_of_a_run = 2  # at the third, the run has failed
        serial, killed = self.serial(*LONG), self.folder / "killed"
        moments, deaths = random.Random(5), collections.Counter()
        process = self.started(*settings(*LONG), "--jobs", 2, "--out", killed)
        self.wait_until(lambda: checkpoints(killed), process)
        for _ in range(kills):
            time.sleep(moments.uniform(0, 1.2))
            owners = {tag: owner_of(killed / tag) for tag in TAGS if deaths[tag] < most_of_a_run}
            victims = [tag for tag, owner in owners.items() if owner in workers_of(process)]
            if not victims:
                continue
            tag = moments.choice(victims)
            deaths[tag] += 1
            try:
                os.kill(owners[tag], signal.SIGKILL)
            except ProcessLookupError:
                pass
        _, errors = self.ended(process, DONE)
        self.assertIn("was killed by signal 9", errors)
        self.assert_same_study(serial, killed)

    def test_AWorkerThatIsStopped_IsReplacedWhenItsRunIsTakenOver(self) -> None:
        serial, out = self.serial(*LONG), self.folder / "stopped"
        process = self.started(*settings(*LONG), "--jobs", 2, "--out", out)
        self.wait_until(lambda: trainer_of(out / "QK") and checkpoints(out / "QK"), process)
        worker = owner_of(out / "QK")
        os.kill(worker, signal.SIGSTOP)
        then = time.time() - 121  # as if two minutes had passed
        os.utime(out / "QK" / "claim.json", (then, then))
        _, errors = self.ended(process, DONE)
        self.assertRegex(errors, rf"warning: worker \d \(process {worker}\) was silent for 120 s, or its claim.json was removed; A QK is taken over")
        self.assertFalse(is_running(worker))
        self.assert_same_study(serial, out)

    def test_AStoppedWorker_SavesWhenTheStudyIsStopped(self) -> None:
        out = self.folder / "run"
        process = self.started(*settings(*LONG), "--jobs", 2, "--out", out)
        self.wait_until(lambda: len({path.parent for path in checkpoints(out)}) == 2, process)
        os.kill(workers_of(process)[0], signal.SIGSTOP)
        process.send_signal(signal.SIGTERM)
        _, errors = self.ended(process, INTERRUPTED)
        self.assertIn("interrupted, state saved", errors.splitlines()[-1])

    def test_ARunThatKillsItsWorkersAgainAndAgain_FailsAndTheOthersFinish(self) -> None:
        out = self.folder / "run"
        process = self.started(*settings(*LONG), "--conditions", "QK,NoQK", "--jobs", 2, "--out", out)
        killed: set[int | None] = {None}
        for _ in range(3):
            self.wait_until(lambda: trainer_of(out / "QK") not in killed, process)
            worker = owner_of(out / "QK")
            os.kill(worker, signal.SIGKILL)
            killed.add(worker)
        _, errors = self.ended(process, FAILED)
        self.assertEqual(errors.count("A QK is taken over"), 2, errors)
        self.assertIn("1 of 2 runs failed: A QK: worker", errors.splitlines()[-1])
        self.assertTrue((out / "NoQK" / "results.json").exists())
        self.assertFalse((out / "QK" / "results.json").exists())

    def test_DeathsWithoutARun_CountInARowAndByWorker(self) -> None:
        out = self.folder / "run"
        process = self.started(*settings("train.tokens=76800", "train.checkpoint_every=5"), "--conditions", "QK,NoQK", "--seeds", "1,2",
                               "--jobs", 2, "--no-report", "--out", out)

        def training() -> set[int]:
            places = [out / seed / tag for seed in ("seed_1", "seed_2") for tag in ("QK", "NoQK")]
            return {trainer_of(place) for place in places} - {None}

        for _ in range(3):  # the first worker, the second, the first
            self.wait_until(lambda: len(training()) == 2, process)
            others = {max(training())}
            for _ in range(3):  # with its run, and twice before it has one
                self.wait_until(lambda: set(workers_of(process)) - others, process)
                (worker,) = set(workers_of(process)) - others
                os.kill(worker, signal.SIGKILL)
                others.add(worker)
        _, errors = self.ended(process, DONE)
        self.assertEqual(errors.count("; it is started again"), 6, errors)
        self.assertEqual(errors.count(" is taken over"), 3, errors)

    def test_Signals_StopAllWorkersWhichSave(self) -> None:
        serial = self.serial(*LONG)
        for kind in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / kind.name
            process = self.started(*settings(*LONG), "--jobs", 2, "--out", out)
            self.wait_until(lambda: len({path.parent for path in checkpoints(out)}) == 2, process)
            workers = workers_of(process)
            process.send_signal(kind)
            _, errors = self.ended(process, INTERRUPTED)
            self.assertIn("interrupted, state saved; go on with: headscope study --resume --out", errors.splitlines()[-1])
            self.assertFalse(any(map(is_running, workers)))
            self.assertEqual(status(out), "interrupted")
            self.assertEqual(list(out.rglob("claim.json")), [])
            self.assertEqual(set(stopped_in(out, "QK", "QK_frozen")), {"interrupted"})
            self.done("--out", out, "--resume", "--jobs", 2)
            self.assert_same_study(serial, out)

    def test_AStopBeforeTheOldStudyIsReplaced_LeavesIt(self) -> None:
        out = self.serial()
        before = (out / "manifest.json").read_bytes()
        process = self.started(*settings(), "--jobs", 2, "--out", out, "--overwrite")
        self.wait_until(lambda: workers_of(process), process)
        process.send_signal(signal.SIGINT)
        output, errors = self.ended(process, INTERRUPTED)
        self.assertEqual(output, "")
        self.assertIn("interrupted before this command trained anything; start it again", errors.splitlines()[-1])
        self.assertEqual((out / "manifest.json").read_bytes(), before)

    def test_IgnoredEndsOfChildren_AreSeen(self) -> None:
        process = subprocess.Popen(words(*settings(), "--jobs", 2, "--conditions", "QK", "--seeds", "1,2", "--no-report", "--out",
                                         self.folder / "run"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=NO_SLURM,
                                   preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.addCleanup(process.kill)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, DONE, errors)

    def test_AStudyThatIsMovedAway_EndsAndDoesNotBeginAgain(self) -> None:
        out, elsewhere = self.folder / "run", self.folder / "elsewhere"
        process = self.started(*settings(*LONG), "--conditions", "QK,NoQK", "--jobs", 2, "--out", out)
        self.wait_until(lambda: len({path.parent for path in checkpoints(out)}) == 2, process)
        out.rename(elsewhere)
        _, errors = self.ended(process, FAILED)
        self.assertIn("was moved away", errors)
        self.assertFalse(out.exists())

    def test_AStudyThatIsMovedAwayWhileAWorkerIsReplaced_DoesNotBeginAgain(self) -> None:
        out, elsewhere = self.folder / "run", self.folder / "elsewhere"
        process = self.started(*settings(*LONG, "train.checkpoint_every=1000"), "--conditions", "QK,NoQK", "--jobs", 2, "--out", out)
        self.wait_until(lambda: trainer_of(out / "QK") and trainer_of(out / "NoQK"), process)
        out.rename(elsewhere)
        os.kill(workers_of(process)[0], signal.SIGKILL)
        _, errors = self.ended(process, FAILED)
        self.assertIn("was moved away", errors)
        self.assertFalse(out.exists())

    def test_AnotherStudyInItsPlace_IsNotTakenForIt(self) -> None:
        for name, jobs in (("one", ()), ("two", ("--jobs", 2))):
            out, other = self.folder / name, self.folder / f"other {name}"
            self.done(*settings(), "--out", other)
            before = {path: path.stat().st_mtime_ns for path in other.iterdir()}
            process = self.started(*settings(*LONG), *jobs, "--out", out)
            self.wait_until(lambda: checkpoints(out), process)
            out.rename(self.folder / f"{name} elsewhere")
            other.rename(out)
            output, errors = self.ended(process, FAILED)
            self.assertIn("was moved away", errors.splitlines()[-1])
            self.assertNotIn("all else is there", errors)
            self.assertEqual(output, "")
            self.assertEqual(before, {other / path.name: path.stat().st_mtime_ns for path in out.iterdir()})

    def test_AFirstWorkerThatIsKilled_IsStartedAgain(self) -> None:
        for kills, code, said in ((2, DONE, "; it is started again"), (3, FAILED, "as were 2 before; ")):
            for attempt in range(5):
                out = self.folder / f"{kills} {attempt}"
                process = self.started(*settings(), "--jobs", 2, "--out", out)
                killed: set[int] = set()
                for _ in range(kills):
                    self.wait_until(lambda: set(workers_of(process)) - killed, process)
                    worker = min(set(workers_of(process)) - killed)
                    os.kill(worker, signal.SIGKILL)
                    killed.add(worker)
                if not (out / "manifest.json").exists():  # in time: it had not opened the study
                    break
                self.ended(process, DONE)
            _, errors = self.ended(process, code)
            self.assertIn(said, errors)
            if code == DONE:
                self.assert_same_study(self.serial(), out)

    def test_ASignalBeforeAWorkerCanTakeIt_StopsTheStudyAndSaysHowToGoOn(self) -> None:
        out = self.folder / "run"
        process = self.started(*settings(*LONG), "--jobs", 2, "--out", out)
        self.wait_until(lambda: workers_of(process), process)
        os.kill(workers_of(process)[0], signal.SIGTERM)
        _, errors = self.ended(process, INTERRUPTED)
        self.assertIn("interrupted", errors.splitlines()[-1])
        process = self.started(*settings(*LONG), "--out", out, "--resume")
        self.wait_until(lambda: checkpoints(out), process)
        process.send_signal(signal.SIGTERM)
        self.ended(process, INTERRUPTED)
        process = self.started("--resume", "--out", out, "--jobs", 2)
        self.wait_until(lambda: workers_of(process), process)
        process.send_signal(signal.SIGTERM)
        _, errors = self.ended(process, INTERRUPTED)
        self.assertIn("go on with: headscope study --resume --out", errors.splitlines()[-1])

    def test_APageThatAKillPrevented_IsWrittenByResume(self) -> None:
        for jobs in ((), ("--jobs", 2)):
            out = self.folder / f"jobs{len(jobs)}"
            self.done(*settings(), "--no-report", "--out", out)
            for is_written in (True, False):
                result = self.done("--resume", "--out", out, *jobs)
                self.assertEqual("report.html" in result.stdout, is_written)
                self.assertTrue((out / "report.html").exists())

    def test_WorkersThatCannotBeStarted_EndTheStudy(self) -> None:
        reasons = []
        for files in range(9, 14):  # how many a process has open is not the same everywhere
            command = shlex.join(words(*settings(), "--jobs", 2, "--out", self.folder / str(files)))
            process = subprocess.Popen(["bash", "-c", f"ulimit -n {files}; exec {command}"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=NO_SLURM)
            self.addCleanup(process.kill)
            _, errors = process.communicate(timeout=120)
            self.assertIn(process.returncode, (DONE, FAILED, WRONG_USAGE), errors)
            if process.returncode != DONE:
                reasons.append(errors.splitlines()[-1])
        self.assertTrue(any("cannot start a worker: Too many open files" in reason for reason in reasons), reasons)

    def test_WithoutTheirParent_WorkersSaveAndStop(self) -> None:
        out = self.folder / "run"
        process = self.started(*settings(*LONG), "--jobs", 2, "--out", out)
        self.wait_until(lambda: len({path.parent for path in checkpoints(out)}) == 2, process)
        workers = workers_of(process)
        process.kill()
        self.wait_until(lambda: not any(map(is_running, workers)))
        self.assertEqual(list(out.rglob("claim.json")), [])
        self.assertEqual(set(stopped_in(out, "QK", "QK_frozen")), {"interrupted"})
        self.done("--out", out, "--resume", "--jobs", 2)
        self.assert_same_study(self.serial(*LONG), out)


class Together(Jobs):
    def test_ACommandThatResumes_JoinsOneThatIsAtWork(self) -> None:
        serial, out = self.serial(*LONG), self.folder / "shared"
        first = self.started(*settings(*LONG), "--out", out)
        self.wait_until((out / "QK" / "claim.json").exists, first)
        claim = json.loads((out / "QK" / "claim.json").read_text())
        self.assertEqual((claim["host"], claim["process"]), (os.uname().nodename, first.pid))
        joining = f"; process {first.pid} on {os.uname().nodename} trains it: --resume joins"
        self.refused("exists; go on with --resume, or choose another folder" + joining, *settings(*LONG), "--out", out)
        self.refused(joining, *settings(*LONG), "--out", out, "--overwrite")
        report = subprocess.run([str(headscope), "report", str(out)], capture_output=True, text=True, timeout=60, env=NO_SLURM)
        self.assertIn("warning: no verdict yet: no run of the study is complete", report.stderr)
        self.refused("--tau: study.tau is 9.0, and 1.0 in the run", "--resume", "--tau", 9, "--out", out)
        second = self.started("--resume", "--out", out)
        texts = [self.ended(process, DONE) for process in (first, second)]
        self.assertEqual(sum("report.html" in output for output, _ in texts), 1)  # written by one of them
        self.assertTrue(all("verdict: " in output for output, _ in texts))
        self.assertIn("150/150 steps", texts[1][1])  # it had a part in it
        self.assert_same_study(serial, out)

    def test_TasksOfSlurm_BeginAndJoinByThemselves(self) -> None:
        serial, out = self.serial(*LONG), self.folder / "shared"
        tasks = [{"SLURM_PROCID": str(task), "SLURM_NTASKS": "3", "SLURM_LOCALID": str(task)} for task in range(3)]
        processes = [self.started(*settings(*LONG), "--out", out, **task) for task in tasks]
        texts = [self.ended(process, DONE) for process in processes]
        self.assertEqual(sum("report.html" in output for output, _ in texts), 1)
        self.assert_same_study(serial, out)
        self.assertIn("verdict: ", self.done(*settings(*LONG), "--out", out, SLURM_ARRAY_TASK_ID="7").stdout)  # too late
        self.refused("is a run of another configuration: study.tau (was 1.0, now 3.0)", *settings(*LONG), "--tau", 3, "--out", out,
                     **tasks[0])
        self.refused("name its folder with --out", *settings(), **tasks[0])
        self.refused("--overwrite", *settings(), "--out", out, "--overwrite", **tasks[0])
        self.refused("exists and is complete", *settings(*LONG), "--out", out, SLURM_PROCID="0", SLURM_NTASKS="1")

    def test_WhatAProcessElsewhereClaimed_IsTakenOverWhenItIsSilent(self) -> None:
        out = self.folder / "shared"
        process = self.started(*settings(*LONG), "--out", out)
        self.wait_until(lambda: checkpoints(out), process)
        process.kill()
        process.wait()
        elsewhere = {"host": "elsewhere", "process": 1, "time": "2026-11-18T12:00:00Z", "machine": "another", "started": 1,
                     "token": "17"}
        for tag in TAGS:
            (out / tag).mkdir(exist_ok=True)
            (out / tag / "claim.json").write_text(json.dumps(elsewhere))
        second = self.started("--resume", "--out", out)
        line = ""
        while "waits for A QK, which process 1 on elsewhere trains" not in line:
            line = second.stderr.readline()
            self.assertNotEqual(line, "")
        self.assertIn("it is taken over when nothing was heard of that process for 120 s", line)
        self.assertEqual(status(out), "running")
        self.assertEqual(json.loads((out / "QK" / "claim.json").read_text())["host"], "elsewhere")
        for tag in TAGS:  # as if two minutes had passed
            then = time.time() - 121
            os.utime(out / tag / "claim.json", (then, then))
        self.ended(second, DONE)
        self.assert_same_study(self.serial(*LONG), out)

    def test_WhoeverIsStoppedWhileItConcludes_WritesNothingAfterAnotherDidIt(self) -> None:
        for attempt in range(5):
            out = self.folder / f"shared {attempt}"
            first = self.started(*settings(), "--out", out)
            self.wait_until(lambda: list(out.glob(".drawing-*")), first)
            first.send_signal(signal.SIGSTOP)
            if status(out) != "complete" and owner_of(out) == first.pid:  # in time
                break
            first.send_signal(signal.SIGCONT)
            self.ended(first, DONE)
        then = time.time() - 121  # as if two minutes had passed
        os.utime(out / "claim.json", (then, then))
        self.assertIn("verdict: ", self.done("--resume", "--out", out).stdout)
        before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
        first.send_signal(signal.SIGCONT)
        output, errors = self.ended(first, DONE)
        self.assertIn("verdict: ", output)
        self.assertNotIn("warning", errors)
        self.assertEqual(before, {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()})

    def test_ACommandThatIsKilled_LeavesItsRunToTheOther(self) -> None:
        serial, out = self.serial(*LONG), self.folder / "shared"
        first = self.started(*settings(*LONG), "--out", out)
        self.wait_until(lambda: checkpoints(out / "QK"), first)
        second = self.started("--resume", "--jobs", 2, "--out", out)
        self.wait_until((out / "NoQK" / "claim.json").exists, first, second)
        first.kill()
        self.ended(second, DONE)
        self.assert_same_study(serial, out)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
