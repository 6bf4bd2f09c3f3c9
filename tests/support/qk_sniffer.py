"""Runs the public program viktor-shcherb/qk-sniffer, unmodified, on a .jsonl file of documents.

usage: scripts/peers tests/support/qk_sniffer.py CHECKOUT MODEL DOCUMENTS.jsonl OUT [options]

The program reads documents by the package `datasets` and settings of the hub by `dotenv`; small modules of those names take their place.
Prints, as JSON, the seconds of its loop over documents: tokens, passes and choice of rows, without the start and without writing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import types
from contextlib import contextmanager, redirect_stdout
from pathlib import Path


class Documents:
    """What sniff.py asks of a data set: its length, and slices by column."""

    def __init__(self, file: str) -> None:
        self.texts = [json.loads(line)["text"] for line in Path(file).read_text().splitlines()]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, of: slice) -> dict[str, list[str]]:
        return {"text": self.texts[of]}


def provide_modules() -> None:
    datasets, dotenv = types.ModuleType("datasets"), types.ModuleType("dotenv")
    datasets.Dataset, datasets.IterableDataset = Documents, type("IterableDataset", (), {})
    datasets.load_dataset = lambda path, name=None, split=None: Documents(path)
    dotenv.load_dotenv = lambda: None
    sys.modules.update(datasets=datasets, dotenv=dotenv)


def provide_old_mask() -> None:
    """The program is written for transformers 5.1, where the function for the causal mask has another name for an argument, and one more."""
    from transformers import masking_utils

    newer = masking_utils.create_causal_mask
    masking_utils.create_causal_mask = lambda input_embeds, cache_position, **named: newer(inputs_embeds=input_embeds, **named)


def settings(options: argparse.Namespace) -> dict:
    model = str(options.model.resolve())
    return {
        "dataset": {"path": str(options.documents.resolve())},
        "model": {"name": model, "dtype": "float32", "device_map": None},
        "tokenizer": {"name": model, "max_length": options.max_length},
        "inference": {"batch_size": 1, "autocast_dtype": "float32"},
        "capture": {"min_bucket_size": options.bucket_size, "capture_pre_rope": options.pre_rope,
                    "sampler": {"type": options.sampler, "base_rate": options.base_rate}, "capture_token_strings": options.token_str},
        "output": {"data_root": str(options.out.resolve())},
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("checkout", "model", "documents", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--sampler", choices=("log_uniform", "uniform", "all"), default="log_uniform")
    parser.add_argument("--bucket-size", type=int, default=128)
    parser.add_argument("--base-rate", type=float, default=1.0)
    parser.add_argument("--max-length", type=int, default=4096)
    parser.add_argument("--pre-rope", action="store_true")
    parser.add_argument("--token-str", action="store_true")
    return parser.parse_args()


def main() -> None:
    options = parse()
    config = settings(options)
    provide_modules()
    provide_old_mask()
    os.chdir(options.checkout)  # it looks for its models there
    sys.path.insert(0, os.getcwd())
    import sniff

    seconds = 0.0
    activate = sniff.activate_sniffer

    @contextmanager
    def timed(of):
        nonlocal seconds
        with activate(of) as sniffer:
            begin = time.perf_counter()
            yield sniffer
            seconds = time.perf_counter() - begin

    sniff.activate_sniffer = timed
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out.parent / f"{options.out.name}.json"  # YAML reads JSON
    file.write_text(json.dumps(config))
    with redirect_stdout(sys.stderr):
        sniff.run_inference(sniff.load_config(file))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main()
