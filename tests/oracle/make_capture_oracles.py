"""Which rows a capture keeps, by numpy's Mersenne twister and Python's integers, straight from the description of the format.

    python make_capture_oracles.py FOLDER

writes FOLDER/capture.json: a list of cases with the sampler's options, the text, layer and side, the bucket of every position and
the positions that are kept.
"""

import json
import math
import pathlib
import sys

import numpy as np

MASK = 2**64 - 1


def mix(value):
    value &= MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def uniform(example, layer, kind, count):
    seed = 0x243F6A8885A308D3
    for value in (example, layer, ord(kind)):
        seed = ((seed ^ mix(value)) * 0x9E3779B97F4A7C15) & MASK
        seed ^= seed >> 32
    draws = np.random.RandomState(seed & 0xFFFFFFFF).randint(0, 2**32, count, dtype=np.uint32)  # one word of the twister each
    return (draws & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)


def bucket_of(sampler, size, position):
    if sampler != "log":
        return position // size
    return max(math.floor(math.log2(position + 1)), math.ceil(math.log2(size)))


def probability(sampler, size, rate, bucket):
    if sampler == "all":
        return np.float32(1)
    if sampler == "uniform":
        return np.float32(min(1.0, rate / size))
    return min(np.float32(1), np.float32(rate) / np.float32(2.0**bucket))


def cases():
    for sampler, size, rate in (("log", 128, 1.0), ("log", 1, 1.0), ("log", 100, 3.7), ("log", 4, 1e9), ("uniform", 128, 1.0),
                                ("uniform", 7, 2.5), ("uniform", 3, 5.0), ("all", 10, 1.0)):
        for example, layer, kind, length in ((0, 0, "q", 4096), (17, 3, "k", 1000), (2**31 - 1, 29, "q", 130), (5, 1, "k", 1)):
            buckets = [bucket_of(sampler, size, position) for position in range(length)]
            u = uniform(example, layer, kind, length)
            kept = [p for p in range(length) if u[p] < probability(sampler, size, rate, buckets[p])]
            yield {"sampler": sampler, "bucket_size": size, "base_rate": rate, "example": example, "layer": layer, "kind": kind,
                   "length": length, "buckets": buckets, "kept": kept}


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "capture.json").write_text(json.dumps(list(cases())))
