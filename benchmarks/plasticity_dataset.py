"""Writes a folder of captured queries and keys of realistic shape for the plasticity benchmark.

Needs numpy, scipy and pyarrow (an environment that can run the peer has them).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))

from plasticity_datasets import Capture, head_file, log_bucket, write_capture  # noqa: E402

LAST_POSITION = 4095
EXAMPLES = 40
HEAVY_TAILED_SHARE = 0.1  # of the components: heads with outlier dimensions are the rule


def sampled_positions(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and example ids: half spread evenly over a text, half favouring its beginning, as samplers that fill
    logarithmic buckets do."""
    positions = np.arange(LAST_POSITION + 1)
    early = 1 / (positions + 1)
    weight = 0.5 / len(positions) + 0.5 * early / early.sum()
    share = np.full(EXAMPLES, rows // EXAMPLES) + (np.arange(EXAMPLES) < rows % EXAMPLES)
    # A text longer than the share allows no more rows than it has positions.
    if share.max() > len(positions):
        raise ValueError(f"{rows} rows do not fit into {EXAMPLES} texts of {len(positions)} tokens")
    chosen = [np.sort(rng.choice(positions, n, replace=False, p=weight)) for n in share]
    return np.concatenate(chosen), np.repeat(np.arange(EXAMPLES), share)


def vectors(rng: np.random.Generator, position: np.ndarray, d: int) -> np.ndarray:
    """A mean, a drift with position along one direction, and correlated noise with a decaying spectrum."""
    spectrum = (1 + np.arange(d)) ** -0.5
    basis, _ = np.linalg.qr(rng.normal(size=(d, d)))
    source = rng.normal(size=(len(position), d))
    heavy = rng.random(d) < HEAVY_TAILED_SHARE
    source[:, heavy] = rng.standard_t(3, size=(len(position), heavy.sum()))
    drift = rng.normal(size=d) / np.sqrt(d)
    return rng.normal(size=d) + np.outer(position / LAST_POSITION, 2 * drift) + (source * spectrum) @ basis.T


def write_dataset(folder: Path, layers: int, q_heads: int, k_heads: int, rows: int, d: int, seed: int = 0) -> None:
    for layer in range(layers):
        for kind, heads in (("q", q_heads), ("k", k_heads)):
            for head in range(heads):
                rng = np.random.default_rng([seed, layer, head, ord(kind)])
                position, example = sampled_positions(rng, rows)
                side = Capture(log_bucket(position), position, vectors(rng, position, d), example)
                write_capture(head_file(folder, layer, head, kind), side)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    for name, default in (("layers", 4), ("q-heads", 8), ("k-heads", 4), ("rows", 20000), ("dims", 128)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    write_dataset(options.folder, options.layers, options.q_heads, options.k_heads, options.rows, options.dims)


if __name__ == "__main__":
    main()
