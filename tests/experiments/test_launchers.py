"""torchrun, mpirun of Open MPI, mpiexec of MPICH and Slurm themselves, on this machine. The reference is a run of one process, or
a study of one process: the same bytes. What is not installed is skipped.

usage: scripts/peers tests/experiments/test_launchers.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import program
import slurm_here
import test_ranks
import test_study_jobs
from program import DONE, Program
from test_ranks import LONG, ONE_THREAD, SETTINGS, messages, results, setUpModule
from test_study_jobs import Jobs, checkpoints, owner_of

TRAIN = ("train", *SETTINGS, *ONE_THREAD, "--track-every", "3")
AS_ROOT = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python", "--nproc-per-node")


def is_open_mpi() -> bool:
    found = shutil.which("mpirun")
    return found is not None and "Open MPI" in subprocess.run([found, "--version"], capture_output=True, text=True).stdout


def ranks_of(out: Path) -> dict[int, int]:
    """The processes that train there, by rank, whoever started them."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if os.readlink(folder / "exe") != str(program.headscope) or str(out).encode() not in words:
                continue
            variables = dict(line.split(b"=", 1) for line in (folder / "environ").read_bytes().split(b"\0") if b"=" in line)
        except OSError:
            continue
        for name in (b"RANK", b"OMPI_COMM_WORLD_RANK", b"PMI_RANK", b"SLURM_PROCID"):
            if name in variables:
                found[int(variables[name])] = int(folder.name)
                break
    return found


class Started:
    """A command with what it says. A terminal of its own where it is asked for."""

    def __init__(self, folder: Path, *command: object, environment: dict | None = None) -> None:
        self.file = folder / f"said-{time.monotonic_ns()}"
        with self.file.open("w") as file:
            self.process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=file, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **(environment or {})}, start_new_session=True)

    def ends(self) -> int:
        return self.process.wait(timeout=180)

    def said(self) -> str:
        return self.file.read_text()

    def messages(self) -> list[str]:
        return [line for line in messages(self.said()) if line.startswith("headscope: ") and line != "headscope: drawing figures"]

    def wait_until(self, is_so) -> None:
        while not is_so():
            assert self.process.poll() is None, self.said()
            time.sleep(0.02)


class Launched(Program):
    """What holds for every launcher. A class below says how it is called, and what it makes of exit codes."""

    environment: dict = {}
    code_of_a_killed_rank = code_of_a_stopped_run = 0
    says_why_a_rank_is_missing = True  # the launcher leaves the other ranks the time for it

    @staticmethod
    def launch(count: int) -> tuple:
        raise NotImplementedError

    def start(self, count: int, out: Path, *arguments: object) -> Started:
        return Started(self.folder, *self.launch(count), program.headscope, *arguments, "--out", out,
                       environment=self.environment)

    def stop(self, started: Started) -> None:
        started.process.send_signal(signal.SIGTERM)

    def same(self, out: Path) -> None:
        found, expected = results(out), results(test_ranks.reference)
        self.assertEqual([name for name in expected if found[name] != expected[name]], [])

    def none_is_left(self, out: Path) -> None:
        end = time.monotonic() + 60
        while ranks_of(out) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(ranks_of(out), {})


class EveryLauncher:
    def test_NumbersOfProcesses_GiveTheBytesOfOneAndOneSetOfMessages(self) -> None:
        for count in (1, 2, 4):
            out = self.folder / str(count)
            started = self.start(count, out, *TRAIN)
            self.assertEqual(started.ends(), DONE, started.said())
            self.same(out)
            said = started.said()
            self.assertEqual([said.count(text) for text in ("headscope: data:", "drawing figures", "validation loss ")],
                             [1, 1, 1], said)

    def test_AKilledRank_EndsAllAndTheRunGoesOnWithAnotherNumber(self) -> None:
        out = self.folder / "run"
        started = self.start(4, out, *TRAIN, *LONG)
        started.wait_until(lambda: checkpoints(out) and len(ranks_of(out)) == 4)
        os.kill(ranks_of(out)[3], signal.SIGKILL)
        self.assertEqual(started.ends(), self.code_of_a_killed_rank, started.said())
        self.none_is_left(out)
        if self.says_why_a_rank_is_missing:
            self.assertEqual(len(started.messages()), 1, started.said())
            self.assertIn(": rank 3 of 4 does not answer", started.messages()[0])
        self.assertTrue(checkpoints(out))
        self.goes_on(out)

    def test_Term_SavesAndTheRunGoesOnWithAnotherNumber(self) -> None:
        out = self.folder / "run"
        started = self.start(4, out, *TRAIN, *LONG)
        started.wait_until(lambda: checkpoints(out) and len(ranks_of(out)) == 4)
        self.stop(started)
        self.assertEqual(started.ends(), self.code_of_a_stopped_run, started.said())
        self.none_is_left(out)
        self.assertEqual(len(started.messages()), 1, started.said())
        step = int(program.newest_checkpoint(out).removeprefix("step-"))
        self.assertIn(f"interrupted at step {step} of 4000, state saved; go on with: ", started.messages()[0])
        self.goes_on(out)

    def goes_on(self, out: Path) -> None:
        before = program.newest_checkpoint(out)
        started = self.start(2, out, "train", "--resume", *ONE_THREAD)
        started.wait_until(lambda: program.newest_checkpoint(out) > before)
        self.stop(started)
        started.ends()
        self.none_is_left(out)
        self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "interrupted")


class Torchrun(EveryLauncher, Launched):
    code_of_a_killed_rank = code_of_a_stopped_run = 1

    @staticmethod
    def launch(count: int) -> tuple:
        return (*TORCHRUN, count)

    def test_ARestart_GoesOnFromTheLastCheckpoint(self) -> None:
        out = self.folder / "run"
        length = ("--set", f"train.tokens={600 * 2 * 32 * 4}", "--set", "train.checkpoint_every=60")
        expected = self.folder / "expected"
        self.done(*TRAIN, *length, "--out", expected)
        started = Started(self.folder, *TORCHRUN, 2, "--max-restarts", 1, program.headscope, *TRAIN, *length, "--resume", "--out", out)
        started.wait_until(lambda: checkpoints(out) and len(ranks_of(out)) == 2)
        os.kill(ranks_of(out)[1], signal.SIGKILL)
        self.assertEqual(started.ends(), DONE, started.said())
        self.assertIn("headscope: goes on from checkpoints/step-", started.said())
        self.assertEqual(results(out), results(expected))


@unittest.skipUnless(is_open_mpi(), "mpirun of Open MPI is not installed")
class OpenMpi(EveryLauncher, Launched):
    code_of_a_killed_rank, code_of_a_stopped_run = 128 + signal.SIGKILL, 1
    says_why_a_rank_is_missing = False  # it stops the others first

    @staticmethod
    def launch(count: int) -> tuple:
        # The processes have so many seconds to save.
        return ("mpirun", *AS_ROOT, "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "5", "-n", count)


@unittest.skipUnless(shutil.which("mpiexec.hydra"), "mpiexec of MPICH is not installed")
class Mpich(EveryLauncher, Launched):
    code_of_a_killed_rank, code_of_a_stopped_run = signal.SIGKILL, 130
    says_why_a_rank_is_missing = False  # it kills the others first

    @staticmethod
    def launch(count: int) -> tuple:
        return ("mpiexec.hydra", "-n", count)


class OnSlurm:
    """One cluster for the tests of a class."""

    @classmethod
    def setUpClass(cls) -> None:
        slurm = slurm_here.Slurm()
        cls.addClassCleanup(slurm.stop)
        cls.slurm, cls.environment = slurm, slurm.environment


needs_slurm = unittest.skipUnless(slurm_here.is_installed(), "slurmctld, slurmd and Slurm's commands are not installed")


@needs_slurm
class Srun(OnSlurm, EveryLauncher, Launched):
    code_of_a_killed_rank, code_of_a_stopped_run = 128 + signal.SIGKILL, 130

    @staticmethod
    def launch(count: int) -> tuple:
        return ("srun", "--quiet", "--ntasks", count)

    def stop(self, started: Started) -> None:
        self.slurm.said("scancel", "--signal=TERM", "--me")

    def test_ACancelledBatchJob_IsSavedAndGoesOn(self) -> None:
        out = self.folder / "run"
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n"
                          "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                          "srun \"$@\"\n")
        started = Started(self.folder, "sbatch", "--wait", "--ntasks", 4, "--output", self.folder / "job.out", script,
                          program.headscope, *TRAIN, *LONG, "--out", out, environment=self.environment)
        started.wait_until(lambda: checkpoints(out) and len(ranks_of(out)) == 4)
        self.slurm.said("scancel", "--me")
        self.assertNotEqual(started.ends(), DONE)
        self.none_is_left(out)
        self.assertEqual((self.folder / "job.out").read_text().count("state saved; go on with: "), 1)
        self.goes_on(out)

    def test_WithoutSrun_ItIsOneProcess(self) -> None:
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n\"$@\"\n")
        for name, command in (("salloc", ("salloc", "--ntasks", 4)),
                              ("sbatch", ("sbatch", "--wait", "--ntasks", 4, "--output", self.folder / "job.out", script))):
            out = self.folder / name
            started = Started(self.folder, *command, program.headscope, *TRAIN, "--out", out, environment=self.environment)
            self.assertEqual(started.ends(), DONE, started.said())
            self.same(out)
            self.assertNotIn("ranks", json.loads((out / "manifest.json").read_text()))

    def test_InAShellOfSrun_ItIsOneProcess(self) -> None:
        out = self.folder / "run"
        words = " ".join(f"'{word}'" for word in (program.headscope, *TRAIN, "--out", out))
        # Only the first task of four is at the terminal. The others read nothing, so that their shells end.
        process, terminal = pty.fork()
        if process == 0:
            os.execvpe("srun", ["srun", "--ntasks", "4", "--pty", "bash", "--norc"], {**os.environ, **self.environment})
        os.write(terminal, f"{words} </dev/null; exit\n".encode())
        said = b""
        while select.select([terminal], [], [], 120)[0]:
            try:
                said += os.read(terminal, 4096)
            except OSError:
                break
        os.waitpid(process, 0)
        self.assertIn(b"summary.md, tables and plots", said)
        self.same(out)

    def test_AnotherLauncherInASlurmJob_SaysTheRanks(self) -> None:
        launchers = {"torchrun": ("srun", "--ntasks", 1, *Torchrun.launch(4))}
        if is_open_mpi():
            launchers["mpirun"] = ("salloc", "--quiet", "--ntasks", 4, *OpenMpi.launch(4))
        if shutil.which("mpiexec.hydra"):
            launchers["mpiexec"] = ("salloc", "--quiet", "--ntasks", 4, *Mpich.launch(4))
        for name, command in launchers.items():
            out = self.folder / name
            started = Started(self.folder, *command, program.headscope, *TRAIN, "--out", out, environment=self.environment)
            self.assertEqual(started.ends(), DONE, (name, started.said()))
            self.same(out)
            self.assertEqual(json.loads((out / "manifest.json").read_text())["ranks"], 4, name)


class SharedStudy(Jobs):
    """Four runs, which processes of a launcher share."""

    SEEDS = ("--seeds", "42,43", "--conditions", "QK,NoQK")
    PLACES = tuple(f"seed_{seed}/{tag}" for seed in (42, 43) for tag in ("QK", "NoQK"))
    settings = test_study_jobs.settings(*test_study_jobs.LONG)

    def serial_study(self) -> Path:
        out = self.folder / "serial"
        self.done(*self.settings, *self.SEEDS, "--out", out)
        return out

    def command(self, out: Path) -> tuple:
        return (*test_study_jobs.words(*self.settings, *self.SEEDS), "--out", out)


class Study(SharedStudy):
    def test_ProcessesOfALauncher_ShareTheRuns(self) -> None:
        serial = self.serial_study()
        for launch in (Torchrun.launch, *((OpenMpi.launch,) if is_open_mpi() else ())):
            out = self.folder / launch(3)[0].replace("/", "_")
            started = Started(self.folder, *launch(3), *self.command(out))
            self.assertEqual(started.ends(), DONE, started.said())
            self.assert_same_study(serial, out, self.PLACES)
            self.assertEqual(started.said().count("report.html"), 1, started.said())


@needs_slurm
class StudyOnSlurm(OnSlurm, SharedStudy):
    def test_TasksOfAJob_ShareTheRuns(self) -> None:
        serial, out = self.serial_study(), self.folder / "shared"
        started = Started(self.folder, "srun", "--ntasks", 3, *self.command(out), environment=self.environment)
        self.assertEqual(started.ends(), DONE, started.said())
        self.assert_same_study(serial, out, self.PLACES)
        self.assertEqual(started.said().count("report.html"), 1, started.said())

    def test_AKilledTask_LeavesItsRunToTheOthers(self) -> None:
        serial, out = self.serial_study(), self.folder / "shared"
        started = Started(self.folder, "srun", "--ntasks", 3, *self.command(out), environment=self.environment)
        first = out / self.PLACES[0]
        started.wait_until(lambda: checkpoints(first) and owner_of(first))
        os.kill(owner_of(first), signal.SIGKILL)
        self.assertEqual(started.ends(), 128 + signal.SIGKILL, started.said())
        self.assert_same_study(serial, out, self.PLACES)

    def test_TasksOfAnArray_ShareTheRuns(self) -> None:
        serial, out = self.serial_study(), self.folder / "shared"
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n\"$@\"\n")
        started = Started(self.folder, "sbatch", "--wait", "--array", "0-2", "--ntasks", 2, "--output",
                          self.folder / "job-%a.out", script, *self.command(out), environment=self.environment)
        said = [self.folder / f"job-{task}.out" for task in range(3)]
        self.assertEqual(started.ends(), DONE, [path.read_text() for path in said])
        self.assert_same_study(serial, out, self.PLACES)

    def test_OutsideOfSrun_ABatchScriptIsOneProcess(self) -> None:
        out = self.folder / "run"
        script = self.folder / "job.sh"
        script.write_text("#!/bin/bash\n\"$@\"\n")
        for more in ((), ("--overwrite",)):  # which tasks that share a study may not give
            started = Started(self.folder, "sbatch", "--wait", "--ntasks", 4, "--output", self.folder / "job.out", script,
                              *test_study_jobs.words(*test_study_jobs.settings(), "--out", out, *more),
                              environment=self.environment)
            self.assertEqual(started.ends(), DONE, (self.folder / "job.out").read_text())


if __name__ == "__main__":
    test_study_jobs.headscope = Path(sys.argv[1]).resolve()
    program.main()
