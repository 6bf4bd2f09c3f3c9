"""What the tests of `headscope train`, `inspect`, `roles` and `plot` share: a small run, its tables and their shapes.

A test program imports this module and ends with `program.main()`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet

DONE, FAILED, WRONG_USAGE = 0, 1, 2
LAYERS, HEADS, KEY_HEADS, D_K, TOKENS_PER_STEP = 2, 4, 2, 8, 4 * 32 * 2
# A run of seconds: updates of 2 x 4 sequences, probes and checkpoints every fifth.
SMALL = ("model.layers=2", "model.d_model=32", "model.heads=4", "model.kv_heads=2", "model.d_k=8", "model.d_ff=64",
         "train.seq_len=32", "train.batch=4", "train.accumulation=2", "train.probe_every=10",
         "train.checkpoint_every=5", "train.keep_checkpoints=10")
KEY_METRICS = {
    "norm": ("k_norm", "k_norm_std", "k_std", "k_token0_norm"),
    "outlier": ("k_max_abs_mean", "k_max_abs", "k_axis", "k_pr_vector", "k_top_dim", "k_top_energy", "k_top_share"),
    "rank": ("k_pr", "k_erank", "k_pr_eig", "k_stable_rank"),
    "redundancy": ("k_cosine",),
}
QUERY_METRICS = {
    "norm": ("q_norm", "qk_ratio"),
    "attention": ("entropy", "entropy_norm", "entropy_seed", "max_logit", "sink", "previous", "self"),
    "pattern": ("constancy", "consistency"),
    "induction": ("induction", "previous_random"),  # of probes
}
FIGURES = ("norm_divergence", "entropy_norm_scatter", "effective_rank", "gamma_heatmap", "key_norm_evolution",
           "outlier_magnitude", "latent_redundancy", "key_magnitude_profile", "qk_ratio", "role_map", "role_timeline")
INTEGER, NUMBER, TEXT = pa.int64(), pa.float64(), pa.string()
VECTOR = pa.list_(pa.field("element", NUMBER, nullable=False))
WHEN = {"step": INTEGER, "tokens": INTEGER}
TABLES = {
    "steps": {**WHEN, "loss": NUMBER, "lr": NUMBER, "adamw_lr": NUMBER, "grad_norm": NUMBER, "tokens_per_s": NUMBER},
    "probes": {**WHEN, "loss": NUMBER, "val_loss": NUMBER, "k_pr": NUMBER},
    "layers": {**WHEN, "source": TEXT, "layer": INTEGER, "metric": TEXT, "value": NUMBER},
    "heads": {**WHEN, "source": TEXT, "layer": INTEGER, "kind": TEXT, "head": INTEGER, "metric": TEXT, "value": NUMBER},
    "gamma": {**WHEN, "layer": INTEGER, "kind": TEXT, "vector": VECTOR},
}
SCORES = ("focused", "broad", "constant", "query_dependent", "axis_aligned", "high_norm", "low_norm", "consistent",
          "sink", "previous", "self", "induction")
# Tests may themselves be processes of a launcher.
for variable in list(os.environ):
    if variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK") or variable.startswith(("SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_")):
        del os.environ[variable]
headscope: Path
shared: Path  # of a file's tests: `run`, a finished run of 12 steps that no test may change


def settings(*more: str) -> list[str]:
    return [text for setting in (*SMALL, *more) for text in ("--set", setting)]


def steps(count: int) -> str:
    return f"train.tokens={count * TOKENS_PER_STEP}"


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(headscope), *map(str, arguments)], capture_output=True, text=True, timeout=300)


def start(*arguments: object) -> subprocess.Popen:
    command = [str(headscope), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def setUpModule() -> None:
    global shared
    temporary = tempfile.TemporaryDirectory(prefix="headscope train ")
    unittest.addModuleCleanup(temporary.cleanup)
    shared = Path(temporary.name)
    result = run("train", *settings(steps(12)), "--track-every", "1", "--out", shared / "run", "--json")
    assert result.returncode == DONE, result.stderr
    (shared / "stdout.json").write_text(result.stdout)


def read(folder: Path, table: str) -> pa.Table:
    return parquet.read_table(folder / f"{table}.parquet")


def rows(folder: Path, table: str) -> dict:
    columns = read(folder, table).to_pydict()
    columns.pop("tokens_per_s", None)  # a time, which is another in every run
    return columns


def head_values(folder: Path, source: str) -> dict[tuple, float]:
    """By (step, layer, kind, head, metric)."""
    table = rows(folder, "heads")
    keys = zip(table["step"], table["layer"], table["kind"], table["head"], table["metric"])
    return {key: value for key, value, of in zip(keys, table["value"], table["source"]) if of == source}


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def differing(a: dict[Path, bytes], b: dict[Path, bytes]) -> list[str]:
    """Files that are another, or only in one."""
    return sorted(str(name) for name in {*a, *b} if a.get(name) != b.get(name))


def newest_checkpoint(out: Path) -> str:
    return max((path.name for path in out.glob("checkpoints/step-*")), default="")


def metrics_of(source: str) -> tuple[list[str], list[str]]:
    keys = [metric for group in KEY_METRICS.values() for metric in group]
    queries = [metric for group in QUERY_METRICS.values() for metric in group]
    return keys, [metric for metric in queries if source == "probe" or metric not in QUERY_METRICS["induction"]]


def rows_of_a_moment(source: str) -> dict[str, int]:
    keys, queries = metrics_of(source)
    averaged = len(keys) + len(queries) - 1  # all but k_top_dim, an index
    return {"heads": LAYERS * (len(keys) * KEY_HEADS + len(queries) * HEADS), "layers": LAYERS * (averaged + 2)}


class Program(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory(prefix="headscope train ")
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def done(self, *arguments: object) -> str:
        result = run(*arguments)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return result.stdout

    def train(self, name: str, *arguments: object) -> Path:
        out = self.folder / name
        self.done("train", *settings(), "--out", out, *arguments)
        return out

    def copy_of_run(self, name: str) -> Path:
        return Path(shutil.copytree(shared / "run", self.folder / name))

    def assert_whole_moments(self, table: pa.Table, name: str) -> None:
        """Every (source, step) that is there has all its rows; every step of gains has all its vectors."""
        if table.num_rows == 0:
            return
        if name == "gamma":
            for step, count in Counter(table["step"].to_pylist()).items():
                self.assertEqual(count, LAYERS * 2, f"gains of step {step}")
            return
        for (source, step), count in Counter(zip(table["source"].to_pylist(), table["step"].to_pylist())).items():
            self.assertEqual(count, rows_of_a_moment(source)[name], f"{name}: {source}, step {step}")

    def assert_same_training(self, first: Path, second: Path) -> None:
        self.assertEqual(repr(rows(first, "steps")), repr(rows(second, "steps")))  # repr: NaN equals itself
        kept = sorted(path.name for path in (first / "checkpoints").iterdir())
        self.assertEqual(kept, sorted(path.name for path in (second / "checkpoints").iterdir()))
        for name in kept:
            for file in ("model.safetensors", "optimizer.safetensors"):
                one, other = (folder / "checkpoints" / name / file for folder in (first, second))
                self.assertEqual(one.read_bytes(), other.read_bytes(), f"{name}/{file}")


def main() -> None:
    global headscope
    headscope = Path(sys.argv.pop(1)).resolve()
    unittest.main()
