"""What a user sees of `headscope surgery`: tables, figures, and one line for bad input.

usage: python test_program.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import math
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import pyarrow.parquet as parquet

DONE, WRONG_USAGE, INTERRUPTED = 0, 2, 130
SMALL = ("train.tokens=2560", "train.batch=4", "train.seq_len=64", "train.probe_every=5", "model.layers=2",
         "model.d_model=64", "model.heads=4", "model.d_k=16", "model.d_ff=128")
QUICK = ("--shares", "0,0.5,1", "--repeats", "2", "--bits", "8,3", "--device", "cpu")
headscope: Path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(headscope), *map(str, arguments)], capture_output=True, text=True, timeout=300)


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="headscope surgery ")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        settings = [text for setting in SMALL for text in ("--set", setting)]
        result = run("study", *settings, "--conditions", "QK,QK_frozen", "--out", cls.folder / "study")
        assert result.returncode == DONE, result.stderr

    def refused(self, message: str, *arguments: object) -> None:
        out = self.folder / "refused"
        result = run("surgery", *arguments, "--out", out)
        self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertFalse(out.exists())

    def test_AfterAnInterruption_TheHintFinishesIt(self):
        # So many operations that the signal comes before the last of them.
        many = ["--repeats", "900", "--by", "random", "--bits", "8", "--shares", "0.5", "--device", "cpu"]
        out = self.folder / "stopped"
        command = [str(headscope), "surgery", str(self.folder / "study" / "QK"), *many, "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while "operations" not in process.stderr.readline():  # they have begun
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        last = process.communicate(timeout=60)[1].splitlines()[-1]
        self.assertEqual(process.returncode, INTERRUPTED, last)
        hint = shlex.split(last.split("go on with: headscope ")[1])
        self.assertEqual(hint, ["surgery", "--resume", "--out", str(out)])
        self.assertEqual(run(*hint).returncode, DONE)
        self.assertEqual(len(parquet.read_table(out / "surgery.parquet")), 900)

    def test_ARun_GivesTablesFiguresAndOneObject(self):
        out = self.folder / "surgery"
        result = run("surgery", self.folder / "study" / "QK", *QUICK, "--out", out, "--json", "--quiet")
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))
        summary = json.loads(result.stdout)
        probes = parquet.read_table(self.folder / "study" / "QK" / "probes.parquet").to_pydict()
        self.assertEqual(summary["unmodified_loss"], probes["val_loss"][-1])
        rows = parquet.read_table(out / "surgery.parquet").to_pylist()
        self.assertEqual(len(rows), 3 * (1 + 1 + 2) + 2 * 2)
        for row in rows:
            if row["share_removed"] == 0:
                self.assertEqual(row["loss"], summary["unmodified_loss"])
            if row["share_removed"] == 1:
                self.assertEqual(row["loss"], summary["uniform_attention_loss"])
            self.assertEqual(math.isnan(row["share_removed"]), row["method"] == "quantise")
        for name in ("surgery_removal", "surgery_quantisation"):
            for suffix in ("png", "svg", "gp"):
                self.assertTrue((out / "plots" / f"{name}.{suffix}").exists())
        self.assertEqual(json.loads((out / "manifest.json").read_text())["status"], "complete")
        (out / "plots" / "surgery_removal.png").unlink()
        self.assertEqual(run("plot", out, "--theme", "dark").returncode, DONE)
        self.assertTrue((out / "plots" / "surgery_removal.png").exists())
        again = run("surgery", "--config", out / "config.yaml", "--out", self.folder / "again")
        self.assertEqual(again.returncode, DONE, again.stderr)
        self.assertEqual((out / "surgery.csv").read_bytes(), (self.folder / "again" / "surgery.csv").read_bytes())

    def test_BadInput_HasItsLine(self):
        checkpoint = self.folder / "study" / "QK"
        self.refused("holds several models; give one of them", self.folder)
        self.refused("is no checkpoint", checkpoint / "probes.parquet")
        self.refused("no checkpoint is named")
        self.refused("unknown operation 'size'; known are gain, singular", checkpoint, "--by", "size")
        self.refused("expected numbers from 0 to 1", checkpoint, "--shares", "0,50")
        self.refused("expected whole numbers from 2 to 16", checkpoint, "--bits", "1")
        self.refused("the model has no layer 7", checkpoint, "--layers", "0,7")
        self.refused("has no learned key gains", self.folder / "study" / "QK_frozen", "--by", "gain")


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
