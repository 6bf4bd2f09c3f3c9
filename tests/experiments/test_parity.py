"""What a user sees of `headscope parity`: a table, one object, exit codes 0, 1 and 2.

usage: python test_parity.py PATH_TO_HEADSCOPE [unittest options]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

DONE, DIFFERENT, WRONG_USAGE = 0, 1, 2
PUBLISHED = Path(__file__).resolve().parent.parent / "model" / "published"
headscope: Path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(headscope), "parity", *map(str, arguments)], capture_output=True, text=True, timeout=300)


class Parity(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope parity ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def model(self, name: str) -> Path:
        """A folder as it is published."""
        folder = self.folder / name
        folder.mkdir()
        shutil.copy(PUBLISHED / name / "default.json", folder / "config.json")
        shutil.copy(PUBLISHED / name / "model.safetensors", folder)
        return folder

    def test_AModelThatAgrees_GivesATableAndExitCode0(self):
        result = run(self.model("qwen3"), "--reference", PUBLISHED / "qwen3" / "default.npz")
        self.assertEqual((result.returncode, result.stderr), (DONE, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[1].split(), ["layer", "q_pre", "k_pre", "q_post", "k_post", "entropy"])
        self.assertEqual([line.split()[0] for line in lines[2:5]], ["0", "1", "logits"])
        self.assertTrue(lines[-1].startswith("all within tolerance"), lines[-1])

    def test_ADifference_IsThatOfTheArraysAndGivesExitCode1(self):
        arrays = dict(np.load(PUBLISHED / "qwen3" / "default.npz"))
        arrays["k_post"][1, 0, 1, 7, 3] += 0.25
        np.savez(self.folder / "other.npz", **arrays)
        result = run(self.model("qwen3"), "--reference", self.folder / "other.npz", "--json")
        self.assertEqual((result.returncode, result.stderr), (DIFFERENT, ""))
        parity = json.loads(result.stdout)
        self.assertFalse(parity["within"])
        self.assertEqual((parity["worst"]["name"], parity["worst"]["layer"]), ("k_post", 1))
        self.assertAlmostEqual(parity["worst"]["difference"], 0.25, delta=2e-5)
        wrong = [(row["name"], row["layer"]) for row in parity["rows"] if not row["within"]]
        self.assertEqual(wrong, [("k_post", 1)])
        size = np.sqrt((arrays["k_post"].astype(float) ** 2).mean())
        self.assertAlmostEqual(parity["worst"]["tolerance"], 2e-5 * max(1, size), delta=1e-9)
        table = run(self.folder / "qwen3", "--reference", self.folder / "other.npz").stdout
        self.assertIn("1 of 11 above the tolerance; farthest beyond it is k_post of layer 1: 0.25", table)

    def test_AReferenceOfSomeArrays_ComparesThose(self):
        arrays = dict(np.load(PUBLISHED / "gemma2" / "default.npz"))
        np.savez(self.folder / "some.npz", input_ids=arrays["input_ids"], entropy=arrays["entropy"].astype(np.float64))
        result = run(self.model("gemma2"), "--reference", self.folder / "some.npz", "--json")
        self.assertEqual(result.returncode, DONE, result.stderr)
        parity = json.loads(result.stdout)
        self.assertEqual([(row["name"], row["layer"]) for row in parity["rows"]], [("entropy", 0), ("entropy", 1)])
        self.assertEqual(parity["not_in_reference"], ["q_pre", "k_pre", "q_post", "k_post", "logits"])

    def test_UnusedTensors_AreAWarning(self):
        result = run(self.model("gemma3"), "--reference", PUBLISHED / "gemma3" / "default.npz")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertIn("tensors are not used", result.stderr)
        self.assertIn("vision", result.stderr)

    def test_BadInput_IsOneLine(self):
        model = self.model("qwen2")
        reference = PUBLISHED / "qwen2" / "default.npz"
        (self.folder / "text.npz").write_text("no archive")
        (self.folder / "empty").mkdir()
        for message, arguments in (
            ("--reference is required", [model]),
            ("nothing.npz", [model, "--reference", self.folder / "nothing.npz"]),
            ("text.npz", [model, "--reference", self.folder / "text.npz"]),
            ("is no checkpoint", [self.folder / "empty", "--reference", reference]),
            ("q_pre has shape", [model, "--reference", PUBLISHED / "qwen3" / "default.npz"]),
        ):
            result = run(*arguments)
            self.assertEqual(result.returncode, WRONG_USAGE, result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
