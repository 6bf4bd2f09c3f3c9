"""Training beside the peer of the benchmarks, in a Python with torch (scripts/peers): the same weights and batches give the same losses."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks/training"
SMALL = ["--preset", "tiny", "--batch", "2", "--seq", "32"]


def run(*line, **environment):
    return subprocess.run([str(word) for word in line], capture_output=True, text=True,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, check=False)


class TrainingPeers(unittest.TestCase):
    def agree(self, *more):
        return run(sys.executable, BENCHMARKS / "agree", "--headscope", headscope, *SMALL, "--accumulation", "2", "--steps", "9", "--every", "4", *more)

    def test_LossesAndRanks_AreThoseOfThePeers(self):
        result = self.agree()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_OtherBatches_AreFound(self):
        flags = "--seed 43"  # of the order of the data
        result = self.agree("--peer-a", flags, "--peer-b", flags)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("loss of every step", result.stdout)
        self.assertIn("NOT within", result.stdout)

    def test_BothCountTheSameOperations(self):
        short = [*SMALL, "--steps", "1", "--warmup", "1", "--device", "cpu"]
        lines = [[sys.executable, BENCHMARKS / "peer.py", *short], [headscope, "bench", "train", *short, "--json"]]
        ours, peers = (json.loads(run(*line).stdout) for line in lines)
        self.assertAlmostEqual(ours["tflops"] / ours["tokens_per_s"] / (peers["tflops"] / peers["tokens_per_s"]), 1, places=12)


if __name__ == "__main__":
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
