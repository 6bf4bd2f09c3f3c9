"""One run on several processes: `headscope train --ranks 4`, and processes that a launcher's variables make ranks. The
reference is a run of one process: the same bytes of weights, state and tables, also after a rank was killed.

usage: python test_ranks.py PATH_TO_HEADSCOPE [unittest options]
HEADSCOPE_KILLS=50 kills a rank that often; the default is a few times.
"""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import program
from program import DONE, FAILED, Program, rows, run, WRONG_USAGE

INTERRUPTED = 130
STEPS = 24
# Updates of 4 forward steps of 2 sequences. 4 validation batches: one for each of 4 ranks.
SETTINGS = [text for setting in (
    "model.layers=3", "model.d_model=32", "model.heads=4", "model.kv_heads=2", "model.d_k=8", "model.d_ff=64",
    "train.seq_len=32", "train.batch=2", "train.accumulation=4", "train.probe_every=24", "train.checkpoint_every=6",
    "train.keep_checkpoints=10", f"train.tokens={STEPS * 2 * 32 * 4}") for text in ("--set", setting)]
ONE_THREAD = ("--threads", "1", "--no-report")
LONG = ("--set", f"train.tokens={4000 * 2 * 32 * 4}")  # minutes, unless it is stopped
reference: Path


def setUpModule() -> None:
    global reference
    temporary = tempfile.TemporaryDirectory(prefix="headscope ranks ")
    unittest.addModuleCleanup(temporary.cleanup)
    reference = Path(temporary.name) / "one"
    result = run("train", *SETTINGS, *ONE_THREAD, "--track-every", "3", "--out", reference)
    assert result.returncode == DONE, result.stderr


def results(out: Path) -> dict:
    """What must not depend on the number of ranks."""
    last = out / "checkpoints" / program.newest_checkpoint(out)
    found = {name: (last / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors")}
    for table in ("heads", "layers", "gamma", "probes"):
        found[table] = (out / f"{table}.parquet" / "part-00000.parquet").read_bytes()
    return found | {"steps": rows(out, "steps")}


def messages(text: str) -> list[str]:
    """Lines that say how a run ended."""
    on_the_way = re.compile(r"headscope: (data: .*|waits for rank .*|\d+ ranks through .*|goes on from .*|warning: rank \d+ of \d+ (took|\(process \d+\) was ended by) .*|warning: \d+ ranks share .*|train: \d+/\d+ steps.*|saving|the data is shorter .*)")
    return [line for line in text.splitlines() if line and not on_the_way.fullmatch(line)]


class Processes:
    """A launched run: the process, its ranks, and what they said."""

    def __init__(self, test: Program, *arguments: object, environment: dict | None = None,
                 place: Path | None = None, before: Callable[[], object] | None = None) -> None:
        self.errors = test.folder / f"errors-{random.random()}"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen([str(program.headscope), "train", *map(str, arguments)],
                                            stdout=subprocess.DEVNULL, stderr=errors, cwd=place,
                                            preexec_fn=before, env={**os.environ, **(environment or {})})

        test.addCleanup(self.end)

    def end(self) -> None:
        """Its ranks end with it."""
        self.process.kill()
        self.process.wait()

    def ranks(self, count: int) -> list[int]:
        while True:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if len(children) == count:
                return [int(child) for child in children]
            assert self.process.poll() is None, self.said()
            time.sleep(0.01)

    def wait_for_checkpoint(self, out: Path, after: str = "") -> None:
        while not any(path.name > after for path in out.glob("checkpoints/step-*")):
            assert self.process.poll() is None, self.said()
            time.sleep(0.01)

    def ends(self) -> int:
        return self.process.wait(timeout=120)

    def said(self) -> list[str]:
        return messages(self.errors.read_text(errors="replace"))


def handles(process: int, number: int) -> bool:
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text(), re.M)
    return bool(caught and int(caught[1], 16) >> (number - 1) & 1)


def state(process: int) -> str:
    """Of proc(5): T is stopped, Z dead; X where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


def alive(process: int) -> bool:
    return state(process) not in "XZ"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class SameResults(Program):
    def test_NumbersOfRanks_GiveTheBytesOfOne(self):
        for ranks in (2, 4):
            out = self.folder / str(ranks)
            self.done("train", *SETTINGS, *ONE_THREAD, "--track-every", "3", "--ranks", ranks, "--out", out)
            found, expected = results(out), results(reference)
            self.assertEqual([name for name in expected if found[name] != expected[name]], [], f"{ranks} ranks")

    def test_AModelWhoseGradientsTravelInPieces_WithThreads_GivesTheBytesOfOne(self):
        # The layers have matrices of 66 MiB: two pieces and the rest (src/plan/deal.cpp; the plan says so, too).
        wide = [text for setting in (
            "model.layers=6", "model.d_model=512", "model.heads=8", "model.kv_heads=4", "model.d_k=64", "model.d_ff=2048",
            "train.seq_len=32", "train.batch=1", "train.accumulation=4", "train.probe_every=8", "train.checkpoint_every=2",
            "train.tokens=256", "track.every=0") for text in ("--set", setting)]
        outs = [self.folder / str(ranks) for ranks in (1, 2)]
        for ranks, out in zip((1, 2), outs):
            self.done("train", *wide, "--threads", "2", "--no-report", "--ranks", ranks, "--out", out)
        for name in ("model.safetensors", "optimizer.safetensors"):
            one, two = ((out / "checkpoints" / program.newest_checkpoint(out) / name).read_bytes() for out in outs)
            self.assertTrue(one == two, name)

    def test_ResumeOf4_With1_Then2_IsTheSameRun(self):
        out = self.folder / "run"
        begin = ("--track-every", "3", "--out", out, "--ranks", 4)
        last = ""
        for arguments in ((*SETTINGS, *begin), ("--resume", "--out", out, "--ranks", 1)):
            processes = Processes(self, *arguments, *ONE_THREAD)
            processes.wait_for_checkpoint(out, last)
            processes.process.send_signal(signal.SIGTERM)
            self.assertEqual(processes.ends(), INTERRUPTED, processes.said())
            self.assertGreater(program.newest_checkpoint(out), last)
            last = program.newest_checkpoint(out)
        self.assertLess(last, f"step-{STEPS:06d}", "the test stopped nothing")
        self.done("train", "--resume", "--out", out, "--ranks", 2, *ONE_THREAD)
        self.assertEqual(results(out), results(reference))

    def test_Ring_IsTheSameUpToRounding(self):
        out = self.folder / "ring"
        self.done("train", *SETTINGS, *ONE_THREAD, "--track-every", "3", "--ranks", 4, "--set", "ranks.reduce=ring",
                  "--out", out)
        found, expected = rows(out, "steps")["loss"], rows(reference, "steps")["loss"]
        # float32 sums in another order, over 24 updates.
        self.assertLess(max(abs(a - b) for a, b in zip(found, expected)), 1e-3)
        self.assertEqual(len(found), STEPS)


class Launchers(Program):
    """Processes that somebody else starts."""

    def start_all(self, names: tuple[str, str, str], count: int, arguments, place=lambda _: None) -> list:
        port = free_port()
        rank_name, size_name, local_name = names
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), size_name: str(count)}
        return [Processes(self, *arguments(rank), place=place(rank),
                          environment={**common, rank_name: str(rank), local_name: str(rank)})
                for rank in range(count)]

    def test_VariablesOfEveryLauncher_MakeRanks(self):
        for names in (("RANK", "WORLD_SIZE", "LOCAL_RANK"), ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
                      ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
                      ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")):
            out = self.folder / names[0]
            ranks = self.start_all(names, 2, lambda _: (*SETTINGS, *ONE_THREAD, "--track-every", "3", "--out", out))
            self.assertEqual([rank.ends() for rank in ranks], [DONE, DONE], [rank.said() for rank in ranks])
            self.assertEqual(results(out), results(reference), names[0])
            self.assertEqual(ranks[1].errors.read_text(), "")

    def test_OneRankThatIsAskedFor_IgnoresTheVariables(self):
        out = self.folder / "run"
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--track-every", "3", "--ranks", 1, "--out", out,
                              environment={"RANK": "1", "WORLD_SIZE": "4", "MASTER_PORT": "1"})
        self.assertEqual(processes.ends(), DONE, processes.said())
        self.assertEqual(results(out), results(reference))

    def test_ABatchScriptOfSlurm_IsNoTask(self):
        environment = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"}
        out = self.folder / "run"
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--track-every", "3", "--out", out,
                              environment=environment)
        self.assertEqual(processes.ends(), DONE, processes.said())
        self.assertEqual(results(out), results(reference))

    def test_OtherConfigurationOrData_IsRefusedOnceAndLeavesNothing(self):
        out = self.folder / "run"
        for folder, text in (("here", "a text. "), ("there", "another one. ")):
            (self.folder / folder).mkdir()
            (self.folder / folder / "text.txt").write_text(text * 5000)
        for own, expected in ((("--set", "train.clip=0.5"), "config.train.clip is 0.5, and 1.0 on rank 0"),
                              ((), 'data is "')):  # the same name in another folder
            ranks = self.start_all(
                ("RANK", "WORLD_SIZE", "LOCAL_RANK"), 4,
                lambda rank: (*SETTINGS, *ONE_THREAD, "--data", "text.txt", "--out", out, *(own if rank == 2 else ())),
                lambda rank: self.folder / ("there" if rank == 2 and not own else "here"))
            self.assertEqual([rank.ends() for rank in ranks], [WRONG_USAGE] * 4, [rank.said() for rank in ranks])
            said = [line for rank in ranks for line in rank.said()]
            self.assertEqual(len(said), 1, said)
            self.assertIn("rank 2 of 4: ", said[0])
            self.assertIn(expected, said[0])
            self.assertFalse(out.exists())

    def test_AnotherNumberOfThreads_IsRefused(self):
        out = self.folder / "run"
        ranks = self.start_all(("RANK", "WORLD_SIZE", "LOCAL_RANK"), 2,
                               lambda rank: (*SETTINGS, "--threads", rank + 1, "--no-report", "--out", out))
        self.assertEqual([rank.ends() for rank in ranks], [WRONG_USAGE] * 2, [rank.said() for rank in ranks])
        self.assertEqual([len(rank.said()) for rank in ranks], [1, 0])
        self.assertIn("rank 1 of 2: threads is 2, and 1 on rank 0", ranks[0].said()[0])
        self.assertFalse(out.exists())

    def test_DataWhoseNameIsNoText_IsTheSameOnAllRanks(self):
        data = os.fsdecode(bytes(self.folder) + b"/\xff.txt")
        Path(data).write_text("The heads of a model attend to what was said before. " * 400)
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--data", data, "--ranks", 2, "--out", self.folder / "run")
        self.assertEqual(processes.ends(), DONE, processes.said())

    def test_VariablesThatMakeNoSense_AreNamed(self):
        for environment, flags, expected in (
                ({"RANK": "0"}, (), "RANK is set and WORLD_SIZE is not"),
                ({"RANK": "4", "WORLD_SIZE": "4"}, (), "RANK is '4'; expected a whole number from 0 to 3, as WORLD_SIZE is 4"),
                ({"RANK": "0", "WORLD_SIZE": "3"}, (), "WORLD_SIZE is 3: 3 ranks cannot share train.accumulation=4 evenly"),
                ({"RANK": "0", "WORLD_SIZE": "four"}, (), "WORLD_SIZE is 'four'"),
                ({"RANK": "0", "WORLD_SIZE": "2", "MASTER_PORT": "x"}, (), "MASTER_PORT is 'x'"),
                ({"RANK": "0", "WORLD_SIZE": "2"}, ("--ranks", "4"), "--ranks is 4, and WORLD_SIZE is 2"),
                ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, (),
                 "MASTER_ADDR is not set")):
            out = self.folder / "run"
            processes = Processes(self, *SETTINGS, "--out", out, *flags, environment=environment)
            self.assertEqual(processes.ends(), WRONG_USAGE)
            self.assertEqual(len(processes.said()), 1)
            self.assertIn(expected, processes.said()[0])
            self.assertFalse(out.exists())

    def test_RanksThatCannotShareAnUpdate_AreRefusedWithWhatCan(self):
        result = run("train", *SETTINGS, "--ranks", 8, "--out", self.folder / "run")
        self.assertEqual(result.returncode, WRONG_USAGE)
        self.assertIn("8 ranks cannot share train.accumulation=4 evenly; take 1, 2, 4 ranks, or --set train.batch=1 "
                      "train.accumulation=8, which keep the 256 tokens of an update", result.stderr)
        result = run("train", *SETTINGS, "--ranks", 3, "--out", self.folder / "run")
        self.assertEqual(result.returncode, WRONG_USAGE)
        self.assertIn("a multiple of 3 (8 now)", result.stderr)
        self.assertFalse((self.folder / "run").exists())
        result = run("train", *SETTINGS, "--ranks", 1025, "--out", self.folder / "run")
        self.assertEqual(result.returncode, WRONG_USAGE)
        self.assertIn("--ranks is 1025; expected 1 to 1024", result.stderr)
        run_of_one = self.folder / "one"
        self.done("train", *SETTINGS, *ONE_THREAD, "--out", run_of_one)
        result = run("train", "--resume", "--out", run_of_one, "--ranks", 3)
        self.assertEqual(result.returncode, WRONG_USAGE)
        self.assertIn("3 ranks cannot share train.accumulation=4 evenly, with which the run began; it goes on with 1, 2, 4 ranks\n", result.stderr)
        result = run("train", *SETTINGS, "--ranks", 2, "--seeds", "1,2", "--out", self.folder / "run")
        self.assertEqual(result.returncode, WRONG_USAGE)


class Starts(Program):
    """Processes that do not come together."""

    PATIENT = ("--set", "ranks.timeout=60")  # where the start ends for another reason; processes may begin seconds apart

    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.out = self.folder / "run"

    def rank(self, rank: int, size: int, *arguments: object, **environment: str) -> Processes:
        return Processes(self, *SETTINGS, *ONE_THREAD, "--set", "ranks.timeout=3", "--out", self.out, *arguments,
                         environment={"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                                      "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port), **environment})

    def end(self, ranks: list[Processes], codes: list[int], *expected: str) -> None:
        """They end so, one of them says it, and nothing is written."""
        self.assertEqual([rank.ends() for rank in ranks], codes, [rank.errors.read_text() for rank in ranks])
        said = [line for rank in ranks for line in rank.said()]
        self.assertEqual(len(said), 1, said)
        for text in expected:
            self.assertIn(text, said[0])
        self.assertFalse(self.out.exists())

    def test_RanksThatDoNotCome_AreNamed(self):
        early = self.rank(2, 4, *self.PATIENT)
        while not handles(early.process.pid, signal.SIGTERM):  # from here on it looks for rank 0
            self.assertIsNone(early.process.poll(), early.errors.read_text())
            time.sleep(0.01)
        self.end([self.rank(0, 4), early], [FAILED] * 2,
                 f"rank 1, rank 3 of 4 did not come to 127.0.0.1:{self.port} within 3 s; start all of them, look whether they ended, or see WORLD_SIZE")

    def test_WithoutRank0_Rank1SaysIt(self):
        self.end([self.rank(rank, 4) for rank in (1, 2, 3)], [FAILED] * 3,
                 f"rank 1 of 4: cannot reach rank 0 at 127.0.0.1:{self.port} within 3 s")

    def test_ARankThatComesTwice_EndsTheStart(self):
        self.end([self.rank(rank, 4, *self.PATIENT) for rank in (0, 1, 1, 2)], [WRONG_USAGE] * 4,
                 f"two processes at 127.0.0.1:{self.port} are rank 1 of 4; number them from 0 to 3")

    def test_AnotherNumberOfRanks_EndsTheStart(self):
        self.end([self.rank(0, 4, *self.PATIENT), self.rank(1, 2, *self.PATIENT)], [WRONG_USAGE] * 2, "rank 1 of 2: WORLD_SIZE is 2, and 4 on rank 0")

    def test_AWrongCommandLineOfOneMachine_IsSaidThere(self):
        wrong = ("--set", "train.batch=x")
        for variables, says in (({}, True), ({"LOCAL_RANK": "1"}, False)):  # the first rank of a machine, the second one of it
            rank = self.rank(1, 2, *wrong, **{"LOCAL_RANK": "0", **variables})
            self.assertEqual(rank.ends(), WRONG_USAGE)
            self.assertEqual(["rank 1 of 2: " in line and "train.batch" in line for line in rank.said()], [True] * says)

    def test_AHostThatIsNotKnown_IsNamed(self):
        ranks = [self.rank(rank, 2, *self.PATIENT, MASTER_ADDR="no.such.host.invalid") for rank in range(2)]
        self.end(ranks, [WRONG_USAGE] * 2, "rank 0 of 2: MASTER_ADDR is 'no.such.host.invalid': ")

    def test_APortInUse_IsNamed(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", self.port))
            other.listen()
            self.end([self.rank(0, 2)], [FAILED], f"rank 0 of 2: port {self.port} of this machine is in use; give each run")

    def test_WhatAnswersAtThePortAndIsNoStore_EndsTheStartInTime(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", self.port))
            silent.listen()
            begin = time.monotonic()
            self.end([self.rank(1, 2)], [FAILED], "rank 1 of 2: cannot reach rank 0 at ")
            self.assertLess(time.monotonic() - begin, 30)

    def test_TwoRunsAtOnePort_DoNotMix(self):
        jobs = []
        for name in ("first", "second"):
            ranks = [Processes(self, *SETTINGS, *ONE_THREAD, "--track-every", "3", *LONG, "--out", self.folder / name,
                               environment={"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2",
                                            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "PMIX_NAMESPACE": name,
                                            "MASTER_PORT": str(self.port)}) for rank in range(2)]
            jobs.append(ranks)
            if name == "first":
                ranks[0].wait_for_checkpoint(self.folder / name)
        self.end(jobs[1], [FAILED, WRONG_USAGE], f"rank 0 of 2: port {self.port} of this machine is in use")
        jobs[0][0].process.send_signal(signal.SIGTERM)
        self.assertEqual([rank.ends() for rank in jobs[0]], [INTERRUPTED] * 2)

    def test_ARankWithAnotherFolder_IsRefusedAndTheFirstSaysIt(self):
        def rank(number: int, out: str) -> Processes:
            return Processes(self, *SETTINGS, *ONE_THREAD, "--track-every", "3", *self.PATIENT, "--out", out,
                             environment={"RANK": str(number), "WORLD_SIZE": "2", "LOCAL_RANK": str(number),
                                          "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)})
        first, other = rank(0, str(self.out)), rank(1, str(self.folder / "other"))
        self.assertEqual(other.ends(), WRONG_USAGE)
        text = f"rank 1 of 2 came to 127.0.0.1:{self.port} with another --out, or from another run: it was refused"
        limit = time.monotonic() + 30
        while text not in first.errors.read_text():
            self.assertIsNone(first.process.poll(), first.errors.read_text())
            self.assertLess(time.monotonic(), limit, first.errors.read_text())
            time.sleep(0.01)
        second = rank(1, f"{self.out}//")  # the same folder
        self.assertEqual([first.ends(), second.ends()], [DONE] * 2, first.errors.read_text())

    def test_CtrlC_EndsTheStart(self):
        first = self.rank(0, 4, "--set", "ranks.timeout=300")
        second = self.rank(1, 4, "--set", "ranks.timeout=300")
        while True:  # until rank 0 serves the store
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except ConnectionRefusedError:
                self.assertIsNone(first.process.poll(), first.errors.read_text())
                time.sleep(0.01)
        for rank in (first, second):
            while not handles(rank.process.pid, signal.SIGINT):
                self.assertIsNone(rank.process.poll(), rank.errors.read_text())
                time.sleep(0.01)
        for rank in (first, second):
            rank.process.send_signal(signal.SIGINT)
        self.end([first, second], [INTERRUPTED] * 2, "interrupted before all ranks had come")

    def test_TooFewFiles_AreSaidOnce(self):
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--ranks", 4, "--out", self.out,
                              before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
        self.end([processes], [FAILED], "rank 0 of 4: may open 20 files at once, and 4 ranks need ", "ulimit -n")

    def test_ALowLimitOfFiles_IsRaisedAsFarAsTheUserMay(self):
        self.assertEqual(Processes(self, *SETTINGS, *ONE_THREAD, "--ranks", 4, "--out", self.out,
                                   before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 64))).ends(), DONE)

    def test_IgnoredEndsOfChildren_AreSeen(self):
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--ranks", 2, "--out", self.out,
                              before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(processes.ends(), DONE, processes.said())


class Failures(Program):
    def started(self, ranks: int, *arguments: object) -> tuple[Processes, Path, list[int]]:
        out = self.folder / f"run-{random.random()}"
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--track-every", "3", "--ranks", ranks, "--out", out,
                              *arguments)
        return processes, out, processes.ranks(ranks)

    def ended(self, processes: Processes, ranks: list[int], code: int) -> str:
        """The one message of a run that ended so."""
        self.assertEqual(processes.ends(), code, processes.said())
        self.assertFalse([rank for rank in ranks if alive(rank)])
        self.assertEqual(len(processes.said()), 1, processes.said())
        return processes.said()[0]

    def test_AKilledRank_EndsAllAndTheRunGoesOn(self):
        # At a moment within the run, which has checkpoints every 6 updates and takes some seconds.
        length = ("--set", f"train.tokens={240 * 2 * 32 * 4}", "--set", "train.keep_checkpoints=2")
        expected = self.folder / "expected"
        self.done("train", *SETTINGS, *length, *ONE_THREAD, "--track-every", "3", "--out", expected)
        moments = random.Random(5)
        for i in range(int(os.environ.get("HEADSCOPE_KILLS", "3"))):
            victim = i % 4 if i < 4 else moments.randrange(4)
            processes, out, ranks = self.started(4, *length)
            processes.wait_for_checkpoint(out)
            time.sleep(moments.uniform(0, 0.2))
            os.kill(ranks[victim], signal.SIGKILL)
            message = self.ended(processes, ranks, FAILED)
            self.assertRegex(message, rf"step \d+: rank {victim} of 4 does not answer")
            self.assertRegex(processes.errors.read_text().splitlines()[-1],
                             rf"headscope: warning: rank {victim} of 4 \(process {ranks[victim]}\) was ended by signal 9 "
                             rf"\(Killed\); go on with: headscope train --resume --out .* --ranks 4")
            self.done("train", "--resume", "--out", out, "--ranks", 2, *ONE_THREAD)
            self.assertEqual(results(out), results(expected))

    def test_TermToOneRank_SavesAllAtOneStep(self):
        processes, out, ranks = self.started(4, *LONG)
        processes.wait_for_checkpoint(out)
        os.kill(ranks[2], signal.SIGTERM)
        message = self.ended(processes, ranks, INTERRUPTED)
        step = int(program.newest_checkpoint(out).removeprefix("step-"))
        self.assertIn(f"interrupted at step {step} of 4000, state saved; go on with: ", message)

    def test_ARankThatHangs_IsNamedAfterTheTimeout(self):
        for victim in (0, 3):
            processes, out, ranks = self.started(4, *LONG, "--set", "ranks.timeout=8")
            processes.wait_for_checkpoint(out)
            os.kill(ranks[victim], signal.SIGSTOP)
            begin = time.monotonic()
            self.assertRegex(self.ended(processes, ranks, FAILED), rf"step \d+: rank {victim} of 4 does not answer")
            self.assertLess(time.monotonic() - begin, 60)

    def test_ARankZeroThatHangsAtTheStart_IsNamedAfterTheTimeout(self):
        processes, out, ranks = self.started(2, *LONG, "--set", "ranks.timeout=8")
        while "headscope: data: " not in processes.errors.read_text():
            self.assertIsNone(processes.process.poll(), processes.errors.read_text())
            time.sleep(0.001)
        os.kill(ranks[0], signal.SIGSTOP)  # it has the store
        begin = time.monotonic()
        self.assertRegex(self.ended(processes, ranks, FAILED), r"rank 0 of 2 does not answer")
        self.assertLess(time.monotonic() - begin, 60)

    def test_NumbersThatAreNotFinite_AreNamedOnceAndTheStateIsSaved(self):
        processes, out, ranks = self.started(2, "--set", "optim.adamw_lr=1e38", "--set", "optim.muon_lr=1e38")
        message = self.ended(processes, ranks, FAILED)
        self.assertRegex(message, r"step \d+: loss .*: not finite on rank 0 of 2; the largest gradient is that of ")
        self.assertTrue(program.newest_checkpoint(out))

    def test_CtrlZ_PausesAllRanks(self):
        processes, out, ranks = self.started(2, *LONG)
        processes.wait_for_checkpoint(out)
        everyone = [processes.process.pid, *ranks]
        os.kill(processes.process.pid, signal.SIGTSTP)
        end = time.monotonic() + 30
        while any(state(one) != "T" for one in everyone) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual([state(one) for one in everyone], ["T"] * 3)
        last = program.newest_checkpoint(out)
        os.kill(processes.process.pid, signal.SIGCONT)
        processes.wait_for_checkpoint(out, last)
        processes.process.send_signal(signal.SIGTERM)
        self.assertIn("interrupted at step ", self.ended(processes, ranks, INTERRUPTED))

    def test_RanksEnd_WhenTheirLauncherIsKilled(self):
        processes, out, ranks = self.started(2, *LONG)
        processes.wait_for_checkpoint(out)
        processes.process.kill()
        processes.ends()
        end = time.monotonic() + 30
        while any(alive(rank) for rank in ranks) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse([rank for rank in ranks if alive(rank)])

    def test_ASignalToAllProcesses_SavesAllAtOneStep(self):
        processes, out, ranks = self.started(4, *LONG)
        processes.wait_for_checkpoint(out)
        for process in (processes.process.pid, *ranks):  # as pkill, systemd and timeout do
            os.kill(process, signal.SIGTERM)
        self.assertIn("state saved; go on with: ", self.ended(processes, ranks, INTERRUPTED))

    def test_ASignalThatIsIgnored_IsNoRequest(self):
        out = self.folder / "run"
        processes = Processes(self, *SETTINGS, *ONE_THREAD, *LONG, "--ranks", 2, "--out", out,
                              before=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup does
        ranks = processes.ranks(2)
        processes.wait_for_checkpoint(out)
        processes.process.send_signal(signal.SIGHUP)
        time.sleep(0.6)
        processes.process.send_signal(signal.SIGTERM)
        self.assertIn("state saved; go on with: ", self.ended(processes, ranks, INTERRUPTED))

    def test_ASecondRequest_EndsAllAtOnce(self):
        processes, out, ranks = self.started(2, *LONG, "--set", "train.checkpoint_every=1")
        processes.wait_for_checkpoint(out)
        os.kill(ranks[1], signal.SIGSTOP)  # so that nobody can save
        for _ in range(100):  # core/interrupt.h: signals at once are one request, as they are seen
            processes.process.send_signal(signal.SIGINT)
            time.sleep(0.6)
            if processes.process.poll() is not None:
                break
        self.assertIn("interrupted before the ranks could save", self.ended(processes, ranks, INTERRUPTED))

    def test_ARankThatIsKilledBeforeAllHaveCome_IsNamed(self):
        processes, out, ranks = self.started(4)
        os.kill(ranks[3], signal.SIGSTOP)  # so that not all come
        while not handles(ranks[0], signal.SIGTERM):
            self.assertIsNone(processes.process.poll(), processes.errors.read_text())
            time.sleep(0.01)
        os.kill(ranks[2], signal.SIGKILL)
        os.kill(ranks[3], signal.SIGKILL)
        self.assertIn(f"rank 2 of 4 (process {ranks[2]}) was ended by signal 9 (Killed)", self.ended(processes, ranks, FAILED))
        self.assertFalse(out.exists())

    def test_TheFirstRankThatIsKilledBeforeAllHaveCome_IsNamed(self):
        processes, out, ranks = self.started(4)
        os.kill(ranks[3], signal.SIGSTOP)
        while not handles(ranks[1], signal.SIGTERM):
            self.assertIsNone(processes.process.poll(), processes.errors.read_text())
            time.sleep(0.01)
        os.kill(ranks[0], signal.SIGKILL)
        os.kill(ranks[3], signal.SIGCONT)
        self.assertIn("rank 0 of 4 (process ", self.ended(processes, ranks, FAILED))

    def test_TermToOneRankBeforeAllHaveCome_EndsAllSoon(self):
        processes, out, ranks = self.started(4)
        os.kill(ranks[3], signal.SIGSTOP)
        while not handles(ranks[0], signal.SIGTERM):
            self.assertIsNone(processes.process.poll(), processes.errors.read_text())
            time.sleep(0.01)
        begin = time.monotonic()
        os.kill(ranks[0], signal.SIGTERM)
        time.sleep(1)
        os.kill(ranks[3], signal.SIGCONT)
        self.assertIn("interrupted before the ranks could save", self.ended(processes, ranks, INTERRUPTED))
        self.assertLess(time.monotonic() - begin, 60)

    def test_WithoutRoomForACheckpoint_TheFirstRankSaysItOnce(self):
        limit = 30_000  # bytes of a file: what is written before a checkpoint is smaller
        processes = Processes(self, *SETTINGS, *ONE_THREAD, "--ranks", 4, "--out", self.folder / "small",
                              before=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                              resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        begin = time.monotonic()
        message = self.ended(processes, processes.ranks(4), FAILED)
        self.assertRegex(message, r"rank 0 of 4, step \d+: .*File too large")
        self.assertLess(time.monotonic() - begin, 60)

    def test_AFolderThatIsMovedAway_EndsAllWithTheMessageOfTheFirstRank(self):
        processes, out, ranks = self.started(2, *LONG)
        processes.wait_for_checkpoint(out)
        os.rename(out, self.folder / "elsewhere")
        message = self.ended(processes, ranks, FAILED)
        self.assertRegex(message, r"rank 0 of 2, step \d+: ")


if __name__ == "__main__":
    program.main()
