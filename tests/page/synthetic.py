"""Run folders as the program writes them, made of random walks: for tests of pages, at any size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

KEY_METRICS = (
    "k_norm k_norm_std k_std k_token0_norm k_max_abs_mean k_max_abs k_axis k_pr_vector k_top_dim k_top_energy "
    "k_top_share k_pr k_erank k_pr_eig k_stable_rank k_cosine"
).split()
QUERY_METRICS = (
    "q_norm qk_ratio entropy entropy_norm max_logit sink previous self constancy consistency induction previous_random"
).split()
SHARES = {"entropy_norm", "sink", "previous", "self", "constancy", "consistency", "induction", "previous_random"}


def manifest(**changes: object) -> dict:
    model = {"layers": 4, "heads": 4, "kv_heads": 2, "d_k": 32, "d_model": 128, "vocabulary": 258, "d_ff": 512, "init_std": 0.02}
    values = {
        "program": "headscope",
        "version": "0.1.0",
        "command": "train",
        "command_line": "headscope train",
        "status": "complete",
        "started": "2026-11-18T12:00:00Z",
        "ended": "2026-11-18T12:10:00Z",
        "config": {"preset": "tiny", "model": model},
        "device": "cpu, 2 threads",
        "seeds": [42],
    }
    return values | changes


def walks(rng: np.random.Generator, metric: str, heads: int, moments: int) -> np.ndarray:
    """[moment, head]"""
    if metric == "k_top_dim":
        return rng.integers(0, 32, (moments, heads)).astype(float)
    walk = rng.normal(size=(1, heads)) + np.cumsum(rng.normal(scale=0.05, size=(moments, heads)), axis=0)
    return 1 / (1 + np.exp(-walk)) if metric in SHARES else np.exp(walk) if metric == "max_logit" else 5 + walk


def write_parts(folder: Path, table: pa.Table, parts: int = 1) -> None:
    folder.mkdir(parents=True)
    for part in range(parts):
        first, end = part * len(table) // parts, (part + 1) * len(table) // parts
        pq.write_table(table.slice(first, end - first), folder / f"part-{part:05}.parquet")


def heads_table(steps: list[int], tokens_of_a_step: int, layers: int, q: int, k: int, source: str, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    tables = []
    for kind, metrics, heads in (("k", KEY_METRICS, k), ("q", QUERY_METRICS, q)):
        for metric in metrics:
            values = walks(rng, metric, layers * heads, len(steps))
            values[0, 0] = np.nan
            n = values.size
            column = lambda what: pa.array(what, pa.int64())  # noqa: E731
            tables.append(
                pa.table(
                    {
                        "step": column(np.repeat(steps, layers * heads)),
                        "tokens": column(np.repeat(np.array(steps) * tokens_of_a_step, layers * heads)),
                        "source": pa.array([source] * n),
                        "layer": column(np.tile(np.repeat(np.arange(layers), heads), len(steps))),
                        "kind": pa.array([kind] * n),
                        "head": column(np.tile(np.arange(heads), layers * len(steps))),
                        "metric": pa.array([metric] * n),
                        "value": pa.array(values.reshape(-1)),
                    }
                )
            )
    return pa.concat_tables(tables).sort_by("step")


def make_run(
    folder: Path,
    *,
    layers: int = 4,
    q: int = 4,
    k: int = 2,
    moments: int = 20,
    every: int = 10,
    source: str = "probe",
    parts: int = 1,
    updates: int = 0,
    seed: int = 0,
    **changes: object,
) -> Path:
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps(manifest(**changes)), encoding="utf-8")
    steps = [i * every for i in range(moments)]
    write_parts(folder / "heads.parquet", heads_table(steps, 4096, layers, q, k, source, seed), parts)
    if updates:
        rng = np.random.default_rng(seed)
        step = np.arange(1, updates + 1)
        loss = 3 * step**-0.2 + rng.normal(scale=0.02, size=updates)
        columns = {"step": step, "tokens": step * 4096, "loss": loss, "lr": np.full(updates, 0.02), "adamw_lr": np.full(updates, 0.005)}
        columns |= {"grad_norm": np.abs(rng.normal(size=updates)), "tokens_per_s": np.full(updates, 4000.0)}
        write_parts(folder / "steps.parquet", pa.table(columns), parts)
    return folder


def write_attention(run: Path, layers: int, heads: int, length: int, seed: int = 0) -> None:
    """One text; the attention of every head, as scores that fall off with the distance."""
    rng = np.random.default_rng(seed)
    column = lambda what: pa.array(what, pa.int64())  # noqa: E731
    weights, places = [], np.arange(length)
    for _ in range(layers * heads):
        scores = rng.normal(scale=2, size=(length, length)) - np.abs(places[:, None] - places) * rng.exponential(0.1)
        for query in range(length):
            row = np.exp(scores[query, : query + 1])
            weights.append((row / row.sum()).astype(np.float32))
    number = np.arange(len(weights))
    table = {"text": column(np.zeros(len(weights), int)), "layer": column(number // (heads * length)), "head": column(number // length % heads)}
    table |= {"query": column(number % length), "weights": pa.array(weights, pa.list_(pa.float32()))}
    pq.write_table(pa.table(table), run / "attention.parquet")
    tokens = {"text": column(np.zeros(length, int)), "position": column(places), "id": column(places), "piece": [f" word{i}" for i in places]}
    pq.write_table(pa.table(tokens), run / "tokens.parquet")
