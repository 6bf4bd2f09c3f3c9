"""What `headscope plasticity` does when things go wrong: killed, interrupted, damaged input, full disk, wrong usage.

usage: python test_robustness.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import program
from plasticity_datasets import Capture, Shape, head_file, of_n_rows, write_capture
from program import DONE, FAILED, INTERRUPTED, WRONG_USAGE, Finished

LAYERS, Q_HEADS, K_HEADS = 4, 10, 5
KILLS = 15


def write_heads(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for layer in range(LAYERS):
        for kind, heads in (("q", Q_HEADS), ("k", K_HEADS)):
            for head in range(heads):
                side = of_n_rows(rng, Shape(d=16, length=200), 1500, examples=8)
                write_capture(head_file(folder, layer, head, kind), side)


def one_side(rows: int = 60, d: int = 4, seed: int = 2) -> Capture:
    return of_n_rows(np.random.default_rng(seed), Shape(d=d), rows, examples=3)


@dataclass(frozen=True)
class Undisturbed:
    """A folder of 40 small heads, and what a run without trouble makes of it."""

    data: Path
    out: Path
    seconds: float
    tables: dict[str, bytes]


undisturbed: Undisturbed = None  # made by setUpModule


def setUpModule() -> None:
    global undisturbed
    scratch = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(scratch.cleanup)
    folder = Path(scratch.name)
    write_heads(folder / "data")
    begin = time.monotonic()
    done = program.plasticity(folder / "data", "--out", folder / "out", "--workers", 2)
    seconds = time.monotonic() - begin
    if done.code != DONE:
        raise AssertionError(f"the undisturbed run failed: {done}")
    undisturbed = Undisturbed(folder / "data", folder / "out", seconds, program.csv_bytes(folder / "out"))


class Robustness(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.out = self.folder / "out"
        self.data, self.expected, self.seconds = undisturbed.data, undisturbed.tables, undisturbed.seconds

    def damaged_copy(self) -> Path:
        """The 40 heads again, for a test that spoils some of them."""
        return Path(shutil.copytree(self.data, self.folder / "data"))

    def assert_calm(self, done: Finished) -> None:
        """No crash, no stack trace, whatever the exit code."""
        for sign in ("terminate called", "Traceback", "Segmentation", "what():", "Sanitizer", "core dumped"):
            self.assertNotIn(sign, done.stderr, str(done))
        self.assertIn(done.code, (DONE, FAILED, WRONG_USAGE, INTERRUPTED), str(done))

    def assert_one_line(self, done: Finished, code: int, *words: str) -> None:
        self.assert_calm(done)
        self.assertEqual(done.code, code, str(done))
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, f"expected one line on stderr: {done}")
        self.assertTrue(lines[0].startswith("headscope: "), str(done))
        for word in words:
            self.assertIn(word, lines[0], str(done))

    def assert_resumes(self, *flags: object) -> None:
        done = program.plasticity(self.data, "--out", self.out, "--workers", 2, "--resume", *flags)
        self.assert_calm(done)
        self.assertEqual(done.code, DONE, str(done))
        self.assertEqual(program.csv_bytes(self.out), self.expected, "the resumed run differs from an undisturbed one")

    def assert_no_part_of_a_table(self) -> None:
        """A table under its name is a whole one."""
        for name, expected in self.expected.items():
            if (self.out / name).exists():
                self.assertEqual((self.out / name).read_bytes(), expected, f"{name} is half written")

    def assert_heads_equal_undisturbed(self, missing: set[tuple[int, int]]) -> None:
        """Every table holds the rows of all heads but the missing ones, as in an undisturbed run."""
        for name in program.CSV_FILES:
            header, rows = program.read_rows(undisturbed.out / name)
            kept = [row for row in rows if (int(row[0]), int(row[1])) not in missing]
            self.assertEqual(program.read_rows(self.out / name), (header, kept), name)


class Stopped(Robustness):
    JOURNAL = "finished_heads.journal"  # there while heads are analysed, gone when all are done

    def start(self, *flags: object) -> subprocess.Popen:
        return program.start(self.data, "--out", self.out, "--workers", 2, "--quiet", *flags)

    def start_and_wait_for_first_heads(self, *flags: object) -> subprocess.Popen:
        process = self.start(*flags)
        while process.poll() is None and not (self.out / self.JOURNAL).exists():
            os.sched_yield()
        return process

    def kill_after(self, seconds: float, *flags: object) -> bool:
        """Whether the run was still going."""
        process = self.start(*flags)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=seconds)
        process.kill()
        done = program.finish(process)
        self.assertIn(done.code, (DONE, -signal.SIGKILL), str(done))
        return done.code != DONE

    def test_killed_at_any_moment_then_resumed_gives_the_same_bytes(self) -> None:
        moments = random.Random(3)
        whole, killed = self.seconds, 0
        for attempt in range(3 * KILLS):
            moment = moments.uniform(0, whole)
            with self.subTest(attempt=attempt, seconds=round(moment, 4)):
                shutil.rmtree(self.out, ignore_errors=True)
                if self.kill_after(moment):
                    killed += 1
                else:
                    whole = moment  # other work had slowed the run that was timed
                if self.out.exists():
                    self.assert_no_part_of_a_table()
                self.assert_resumes()
            if killed == KILLS:
                return
        self.fail(f"only {killed} of {3 * KILLS} runs were killed before their end")

    def test_killed_again_and_again_while_resuming_gives_the_same_bytes(self) -> None:
        for _ in range(4):
            process = self.start_and_wait_for_first_heads("--resume")
            process.kill()
            program.finish(process)
        self.assert_resumes()
        leftovers = [path.name for path in self.out.rglob("*") if "tmp" in path.name]
        self.assertEqual(leftovers, [], "temporary files stay behind")

    def test_interrupted_exits_130_and_resumes(self) -> None:
        for stop in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=stop.name):
                shutil.rmtree(self.out, ignore_errors=True)
                process = self.start_and_wait_for_first_heads()
                process.send_signal(stop)
                stopped = program.finish(process)
                self.assert_one_line(stopped, INTERRUPTED, "--resume", str(self.out))
                self.assert_no_part_of_a_table()
                command, *hint = shlex.split(stopped.stderr.splitlines()[-1].split("go on with: headscope ")[1])
                self.assertEqual(command, "plasticity")
                done = program.plasticity(*hint, "--workers", 2)
                self.assertEqual(done.code, DONE, done)
                self.assertEqual(program.csv_bytes(self.out), self.expected, "the resumed run differs")

    def test_a_second_process_on_the_same_folder_is_refused(self) -> None:
        first = self.start_and_wait_for_first_heads()
        first.send_signal(signal.SIGSTOP)  # holds the folder for as long as the second one needs
        try:
            self.assertIsNone(first.poll(), "the first process ended before the second could start")
            for flag in ("--resume", "--overwrite"):
                second = program.plasticity(self.data, "--out", self.out, flag)
                self.assert_one_line(second, WRONG_USAGE, str(self.out))
        finally:
            first.send_signal(signal.SIGCONT)
        self.assertEqual(program.finish(first).code, DONE)
        self.assertEqual(program.csv_bytes(self.out), self.expected)


class BadHeads(Robustness):
    def test_damaged_and_missing_heads_are_named_and_the_others_finished(self) -> None:
        data = self.damaged_copy()
        damaged, missing = head_file(data, 1, 2, "q"), head_file(data, 2, 3, "k")
        content = bytearray(damaged.read_bytes())
        content[len(content) // 3 :] = bytes(len(content) - len(content) // 3)
        damaged.write_bytes(content)
        missing.unlink()
        done = program.plasticity(data, "--out", self.out)
        self.assert_calm(done)
        self.assertEqual(done.code, FAILED, str(done))
        self.assertIn("l01h02q", done.stderr)
        self.assertIn("l02h03k", done.stderr)
        group = Q_HEADS // K_HEADS
        self.assert_heads_equal_undisturbed({(1, 2), *((2, 3 * group + i) for i in range(group))})

    def test_when_every_head_fails_the_common_reason_is_said_once(self) -> None:
        data = self.folder / "data"
        for head in range(3):
            for side in "qk":
                write_capture(head_file(data, 0, head, side), one_side())
            head_file(data, 0, head, "q").write_bytes(b"PAR1 not a table PAR1")
        done = program.plasticity(data, "--out", self.out)
        self.assertEqual(done.code, FAILED, str(done))
        self.assertEqual(done.stdout, "")
        [line] = [line for line in done.stderr.splitlines() if line.startswith("headscope: none of")]
        self.assertIn("none of the 3 heads could be analysed, so there are no tables: ", line)
        self.assertIn("l00h00q/data.parquet: ", line)
        self.assertIn("(the same for every head)", line)
        self.assertEqual(done.stderr.count("data.parquet"), 1, done.stderr)
        self.assertEqual(list(self.out.glob("*.csv")), [])
        again = program.plasticity(*shlex.split(line.split("go on with: headscope plasticity ")[1]), "--json")
        answer = json.loads(again.stdout)
        self.assertEqual((answer["exit"], answer["heads"], len(answer["failed"])), (FAILED, 0, 3))
        self.assertIn("none of the 3 heads", answer["error"])
        self.assertIn("--resume", answer["hint"])

    def test_a_named_pipe_is_named_and_not_waited_for(self) -> None:
        data = self.damaged_copy()
        pipe = head_file(data, 1, 2, "q")
        pipe.unlink()
        os.mkfifo(pipe)
        done = program.plasticity(data, "--out", self.out)
        self.assertEqual(done.code, FAILED, str(done))
        self.assertIn("l01h02q/data.parquet: not a regular file", done.stderr)
        self.assert_heads_equal_undisturbed({(1, 2)})

    def test_a_repaired_head_is_done_by_resume(self) -> None:
        data = self.damaged_copy()
        spoiled = head_file(data, 0, 0, "q")
        content = spoiled.read_bytes()
        spoiled.write_bytes(content[: len(content) // 2])
        done = program.plasticity(data, "--out", self.out)
        self.assertEqual(done.code, FAILED, str(done))
        spoiled.write_bytes(content)
        done = program.plasticity(data, "--out", self.out, "--resume")
        self.assertEqual(done.code, DONE, str(done))
        self.assertEqual(program.csv_bytes(self.out), self.expected)

    def test_fail_fast_stops_at_the_first_bad_head(self) -> None:
        data = self.damaged_copy()
        head_file(data, 0, 0, "q").write_bytes(b"PAR1 not a table PAR1")
        done = program.plasticity(data, "--out", self.out, "--workers", 1, "--fail-fast", "--quiet")
        self.assert_one_line(done, FAILED, "l00h00q")
        for name in program.CSV_FILES:
            if (self.out / name).exists():
                self.assertEqual(program.read_rows(self.out / name)[1], [], f"{name}: went on after the first bad head")

    def bad_head(self, query: Capture, key: Capture, *words: str) -> None:
        """Head 1 of two is bad: named, exit code 1, and head 0 is in the tables."""
        data = self.folder / "data"
        for head, (q, k) in enumerate([(one_side(), one_side()), (query, key)]):
            write_capture(head_file(data, 0, head, "q"), q)
            write_capture(head_file(data, 0, head, "k"), k)
        done = program.plasticity(data, "--out", self.out)
        self.assert_calm(done)
        self.assertEqual(done.code, FAILED, str(done))
        for word in words:
            self.assertIn(word, done.stderr, str(done))
        rows = program.read_rows(self.out / program.METRICS_CSV)[1]
        self.assertEqual([row[:2] for row in rows], [["0", "0"]])

    def test_key_dimension_unlike_query_dimension(self) -> None:
        self.bad_head(one_side(d=4), one_side(d=6), "l00h01", "4", "6")

    def test_mixed_sliding_windows(self) -> None:
        query = one_side()
        window = pa.array([2] * (len(query.bucket) - 1) + [3], type=pa.int32())
        self.bad_head(replace(query, sliding_window=window), one_side(), "l00h01", "sliding_window")

    def test_a_window_on_some_rows_only(self) -> None:
        query = one_side()
        window = pa.array([2] * (len(query.bucket) - 1) + [None], type=pa.int32())
        self.bad_head(replace(query, sliding_window=window), one_side(), "l00h01", "sliding_window")

    def test_a_head_without_rows(self) -> None:
        empty = Capture(*(np.zeros(0, dtype=int),) * 2, np.zeros((0, 4)), np.zeros(0, dtype=int))
        self.bad_head(empty, one_side(), "l00h01q")
        shutil.rmtree(self.out)
        self.bad_head(one_side(), empty, "l00h01k")

    def test_values_that_are_not_finite_are_an_error_unless_dropped(self) -> None:
        data, clean = self.folder / "data", self.folder / "clean"
        for kind, rows in (("q", [3, 17, 59]), ("k", [0, 30])):
            side = one_side(seed=ord(kind))
            spoiled = side.vector.copy()
            spoiled[rows, 1] = [np.nan, np.inf, -np.inf][: len(rows)]
            write_capture(head_file(data, 0, 0, kind), replace(side, vector=spoiled))
            keep = np.setdiff1d(np.arange(len(side.bucket)), rows)
            kept = Capture(side.bucket[keep], side.position[keep], side.vector[keep], side.example_id[keep])
            write_capture(head_file(clean, 0, 0, kind), kept)

        refused = program.plasticity(data, "--out", self.folder / "refused")
        self.assert_calm(refused)
        self.assertEqual(refused.code, FAILED, str(refused))
        self.assertIn("l00h00", refused.stderr)

        dropped = program.plasticity(data, "--out", self.out, "--drop-nonfinite")
        self.assertEqual(dropped.code, DONE, str(dropped))
        self.assertRegex(dropped.stderr, r"\b5 vectors\b", f"the number of dropped rows: {dropped}")
        self.assertEqual(program.plasticity(clean, "--out", self.folder / "clean_out").code, DONE)
        self.assertEqual(program.csv_bytes(self.out), program.csv_bytes(self.folder / "clean_out"))
        manifest = json.loads((self.out / "manifest.json").read_text())
        self.assertEqual(manifest["dropped_nonfinite"], 5)


class WrongUsage(Robustness):
    """Exit code 2, one line, nothing written."""

    def refuse(self, *arguments: object, words: tuple[str, ...] = ()) -> None:
        self.assert_one_line(program.plasticity(*arguments), WRONG_USAGE, *words)

    def config_file(self, text: str) -> Path:
        file = self.folder / "config.yaml"
        file.write_text(text)
        return file

    REQUIRED = "model_dir: m\nnum_layers: 4\nnum_q_heads: 10\nnum_k_heads: 5\n"

    def test_a_folder_without_heads(self) -> None:
        (self.folder / "empty").mkdir()
        self.refuse(self.folder / "empty", "--out", self.out, words=(str(self.folder / "empty"),))

    def test_a_folder_that_does_not_exist(self) -> None:
        self.refuse(self.folder / "nowhere", "--out", self.out, words=("nowhere",))

    def test_a_file_instead_of_a_folder(self) -> None:
        self.refuse(head_file(self.data, 0, 0, "q"), "--out", self.out, words=("data.parquet",))

    def test_query_heads_not_a_multiple_of_key_heads(self) -> None:
        self.refuse(self.data, "--out", self.out, "--num_q_heads", 4, "--num_k_heads", 3, words=("4", "3"))

    def test_an_unknown_configuration_key_names_the_nearest(self) -> None:
        config = self.config_file(self.REQUIRED + "max_token_per_head: 10\n")
        self.refuse(
            self.data, "--config", config, "--out", self.out, words=("max_token_per_head", "max_tokens_per_head")
        )

    def test_an_unknown_flag(self) -> None:
        self.refuse(self.data, "--out", self.out, "--max-token-per-head", 10, words=("max-token-per-head",))

    def test_a_configuration_value_of_the_wrong_type(self) -> None:
        config = self.config_file(self.REQUIRED + "max_tokens_per_head: many\n")
        self.refuse(self.data, "--config", config, "--out", self.out, words=("max_tokens_per_head", "many"))

    def test_a_missing_required_key(self) -> None:
        config = self.config_file("model_dir: m\nnum_layers: 4\nnum_k_heads: 5\n")
        self.refuse(self.data, "--config", config, "--out", self.out, words=("num_q_heads",))

    def test_a_configuration_that_is_not_yaml(self) -> None:
        self.refuse(self.data, "--config", self.config_file("a: [1,\n  b: }"), "--out", self.out, words=("config.yaml",))

    def test_a_configuration_that_does_not_exist(self) -> None:
        self.refuse(self.data, "--config", self.folder / "none.yaml", "--out", self.out, words=("none.yaml",))

    def test_an_unknown_variant(self) -> None:
        self.refuse(self.data, "--out", self.out, "--variant", "triangular", words=("triangular", "seed", "diagonal"))

    def test_bad_lists_of_layers(self) -> None:
        for text in ("1-", "a", "3-1", "0,,2", "-1", "1,", "0x1"):
            with self.subTest(layers=text):
                self.refuse(self.data, "--out", self.out, f"--layers={text}", words=("layers",))

    def test_layers_and_heads_that_are_not_there(self) -> None:
        self.refuse(self.data, "--out", self.out, "--layers", "2-7", words=("--layers", "4"))
        self.refuse(self.data, "--out", self.out, "--heads", "10", words=("--heads", "10"))

    def test_values_out_of_range(self) -> None:
        for flag, value in (
            ("max_tokens_per_head", 0), ("normality_max_dims", 0), ("pairs_per_bucket", 0), ("p_alpha", 1.5),
            ("p_alpha", "nan"), ("workers", 0), ("seed", -1), ("num_layers", 0), ("max_tokens_per_head", "1e99"),
            ("pairs_per_bucket", "99999999999999999999"),
        ):
            with self.subTest(flag=flag, value=value):
                self.refuse(self.data, "--out", self.out, f"--{flag}={value}")

    def test_nothing_is_written_on_wrong_usage(self) -> None:
        self.refuse(self.data, "--out", self.out, "--variant", "triangular")
        self.assertFalse(self.out.exists())

    def test_an_existing_run_is_kept_unless_told_otherwise(self) -> None:
        shutil.copytree(undisturbed.out, self.out)
        self.refuse(self.data, "--out", self.out, words=(str(self.out), "--overwrite"))
        self.assertEqual(program.csv_bytes(self.out), self.expected)
        done = program.plasticity(self.data, "--out", self.out, "--overwrite")
        self.assertEqual(done.code, DONE, str(done))
        self.assertEqual(program.csv_bytes(self.out), self.expected)

    def test_an_existing_folder_of_other_files_is_kept(self) -> None:
        self.out.mkdir()
        (self.out / "thesis.tex").write_text("years of work")
        self.refuse(self.data, "--out", self.out, words=(str(self.out),))
        program.plasticity(self.data, "--out", self.out, "--overwrite")
        self.assertEqual((self.out / "thesis.tex").read_text(), "years of work")

    def test_resuming_with_other_settings_is_refused(self) -> None:
        shutil.copytree(undisturbed.out, self.out)
        self.refuse(self.data, "--out", self.out, "--resume", "--seed", 7, words=("--seed: seed is 7, and 0 in the run",))
        self.assertEqual(program.csv_bytes(self.out), self.expected)


class FullDisk(Robustness):
    @contextlib.contextmanager
    def small_disk(self, size: str) -> Iterator[Path]:
        disk = self.folder / "disk"
        disk.mkdir(exist_ok=True)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk], capture_output=True)
        if mount.returncode != 0:
            self.skipTest(f"cannot mount a small disk here: {mount.stderr.decode().strip()}")
        try:
            yield disk
        finally:
            # Lazy: Arrow's threads may close the last table a moment after it was read.
            subprocess.run(["umount", "--lazy", disk], check=True)

    def fill(self, disk: Path, free: int) -> Path:
        filler = disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(disk).free - free))
        return filler

    def test_a_full_disk_is_reported_and_resume_goes_on_after_space_is_made(self) -> None:
        with self.small_disk("4m") as disk:
            self.out = disk / "out"
            for free in (0, 8192, 65536, 131072):
                with self.subTest(free_bytes=free):
                    shutil.rmtree(self.out, ignore_errors=True)
                    filler = self.fill(disk, free)
                    done = program.plasticity(self.data, "--out", self.out, "--workers", 2, "--quiet")
                    self.assert_one_line(done, FAILED, str(self.out), "No space left")
                    self.assert_no_part_of_a_table()
                    filler.unlink()
                    self.assert_resumes()


if __name__ == "__main__":
    program.main(__doc__)
