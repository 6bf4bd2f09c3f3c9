"""Training beside the peer of the benchmarks, in a Python with torch (scripts/peers): the same weights and batches give the same losses."""

import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks/training"
SMALL = ["--preset", "tiny", "--batch", "2", "--seq", "32"]


def run(*line, **environment):
    return subprocess.run([str(word) for word in line], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, check=False)


class TrainingPeers(unittest.TestCase):
    def agree(self, *more):
        return run(sys.executable, BENCHMARKS / "agree", "--headscope", headscope, *SMALL, "--accumulation", "2", "--steps", "10",
                   "--every", "4", *more)

    def test_LossesAndRanks_AreThoseOfThePeers(self):
        result = self.agree()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_OtherBatches_AreFound(self):
        flags = "--seed 43"  # of the order of the data
        result = self.agree("--peer", flags, "--peer", flags)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("loss of every step", result.stdout)
        self.assertIn("NOT within", result.stdout)

    def test_BothCountTheSameOperations(self):
        short = [*SMALL, "--steps", "1", "--warmup", "1", "--device", "cpu"]
        lines = [[sys.executable, BENCHMARKS / "peer.py", *short], [headscope, "bench", "train", *short, "--json"]]
        ours, peers = (json.loads(run(*line).stdout) for line in lines)
        self.assertAlmostEqual(ours["tflops"] / ours["tokens_per_s"] / (peers["tflops"] / peers["tokens_per_s"]), 1, places=12)

    def test_LossesOfTheFirstStepThatDiffer_Fail(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            self.assertEqual(self.agree("--out", out).returncode, 0)
            for name in ("1", "2"):  # so far apart from each other that ours is within their spread
                peer = json.loads((out / f"peer-{name}.json").read_text())
                peer["losses"][0] *= 1.2 if name == "1" else 0.8
                (out / f"peer-{name}.json").write_text(json.dumps(peer))
            result = run(sys.executable, BENCHMARKS / "agree", "--compare", out)
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertNotIn("NOT within", result.stdout)
            self.assertIn("the losses of the first step differ", result.stdout)

    def refused(self, result, *words):
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(str(word), result.stderr)

    def test_Agree_RefusesBeforeItTrains(self):
        line = [sys.executable, BENCHMARKS / "agree", "--headscope", headscope]
        self.refused(run(*line, "--steps", "9"), "--steps")
        self.refused(run(*line, "--preset", "huge"), "--preset", "huge")
        self.refused(run(*line, "--compare", "/nowhere"), "/nowhere/ours-1-steps.parquet")

    def test_Agree_WithoutPyarrow_KeepsTheResultsOrRefuses(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "pyarrow.py").write_text("raise ModuleNotFoundError(name='pyarrow')")
            line = [sys.executable, BENCHMARKS / "agree", "--headscope", headscope, *SMALL, "--steps", "10"]
            hidden = {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
            self.refused(run(*line, **hidden), "--out", "pyarrow")
            result = run(*line, "--out", Path(folder) / "kept", **hidden)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(f"--compare {folder}/kept", result.stdout)
            self.assertEqual(run(sys.executable, BENCHMARKS / "agree", "--compare", Path(folder) / "kept").returncode, 0)

    def test_Run_RefusesWhatCannotWork(self):
        line = [sys.executable, BENCHMARKS / "run", "--headscope", headscope]
        for flags, word in ((["--repeat", "0"], "--repeat"), (["--steps", "0"], "--steps"), (["--peer-python", "/no/python"], "/no/python"),
                            (["--suite", "h200", "--batch", "4"], "--batch"), (["--suite", "h200", "--compile"], "--compile"),
                            (["--only", "88m-8"], "--suite")):
            self.refused(run(*line, *flags), word)

    def test_Run_ProgramsThatFailOrAreOlder_AreNamed(self):
        with tempfile.TemporaryDirectory() as folder:
            older = Path(folder) / "older"
            older.write_text("#!/bin/sh\necho '{\"tokens_per_s\": 1}'\n")
            older.chmod(0o755)
            result = run(sys.executable, BENCHMARKS / "run", "--headscope", older, "--peer-python", "/bin/false", "--repeat", "2")
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertIn("PyTorch failed", result.stdout)
            self.assertIn(f"{older} is older than this script", result.stdout)


class PeerArguments(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def refused(self, word, *flags):
        sys.path.insert(0, str(BENCHMARKS))
        import peer

        errors = io.StringIO()
        line = ["peer.py", *SMALL, "--steps", "1", "--warmup", "0", *(str(flag) for flag in flags)]
        with mock.patch.object(sys, "argv", line), contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as end:
            peer.main()
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(errors.getvalue().count("\n"), 1, errors.getvalue())
        self.assertIn(str(word), errors.getvalue())

    def tokens(self, values, about='{"type": "u16"}'):
        file = self.folder / "tokens.bin"
        file.write_bytes(struct.pack(f"<{len(values)}H", *values))
        file.with_suffix(".json").write_text(about)
        return file

    def test_Numbers_OutOfRange(self):
        for flag, value in (("--steps", 0), ("--steps", 10**30), ("--warmup", -1), ("--batch", 0), ("--seq", "x"), ("--ranks-every", -1)):
            self.refused(flag, flag, value)

    def test_Tokens_TooFewOrUnknown(self):
        for values in ([], [1] * 32, [1] * 64, [1] * 64 + [258]):  # two blocks of 32 and one target make a batch
            file = self.tokens(values)
            self.refused(file, "--tokens", file)
            self.refused(file, "--validation", file, "--ranks-every", 1)
        for about in ("", "{}", "[]", '{"type": "u8"}'):
            self.refused(self.folder / "tokens.json", "--tokens", self.tokens([1] * 65, about))
        self.refused("/nowhere.json", "--tokens", "/nowhere.bin")

    def test_Weights_CutOrGarbage(self):
        header = json.dumps({"embedding.weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
        whole = struct.pack("<Q", len(header)) + header + bytes(16)
        file = self.folder / "model.safetensors"
        for data in (b"", b"abc", bytes(100), b"\xff" * 100, whole[:20], whole[:-4], whole):
            file.write_bytes(data)
            self.refused(file, "--weights", file)
        self.refused(self.folder, "--weights", self.folder)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
