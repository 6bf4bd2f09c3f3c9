"""The peers of `run`, in a Python with torch and transformers (scripts/peers).

  peer.py documents MODEL CORPUS OUT.jsonl --count 8 --tokens 2048   texts of exactly so many tokens
  peer.py random MODEL OUT                                           a model of the same shape with random weights
  peer.py forward MODEL DOCUMENTS.jsonl --batch 1                    passes of transformers' model without logits
  peer.py bound MODEL --tokens 2048                                  the machine's matrix products and those of a pass

The last two print JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Callable

import torch
import transformers
from tokenizers import Tokenizer


def texts_of(file: Path) -> list[str]:
    if file.suffix == ".jsonl":
        lines = file.read_text().splitlines()
    else:
        import pyarrow as pa  # a GPU machine may have none, and gets texts that are not packed

        lines = pa.input_stream(str(file), compression="detect").read().decode().splitlines()
    return [json.loads(line)["text"] for line in lines]


def documents(options: argparse.Namespace) -> None:
    """Documents of the corpus, one after another, cut where the tokens are full. A cut inside a word can change the tokens before it:
    then one document is left out, and the next text begins one later."""
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    corpus, found, first = texts_of(options.corpus), [], 0
    while len(found) < options.count:
        text, last = "", first
        while len(ends := [end for _, end in tokenizer.encode(text).offsets]) < options.tokens:
            if last == len(corpus):
                raise SystemExit(f"{options.corpus} has less than {options.count} texts of {options.tokens} tokens")
            text, last = text + corpus[last] + "\n\n", last + 1
        cut = text[:ends[options.tokens - 1]]
        if len(tokenizer.encode(cut).ids) == options.tokens:
            found.append(cut)
            first = last
        else:
            first += 1
    options.out.write_text("".join(json.dumps({"text": text}) + "\n" for text in found))


def random(options: argparse.Namespace) -> None:
    """From the configuration alone: the speed does not depend on the weights, and they need not travel to another machine."""
    config = transformers.AutoConfig.from_pretrained(options.model)
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(options.out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(options.model / name, options.out / name)


def forward(options: argparse.Namespace) -> dict:
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    model = transformers.AutoModel.from_pretrained(options.model, dtype=getattr(torch, options.dtype), attn_implementation="sdpa")
    model = model.to(options.device).eval()
    ids = torch.tensor([tokenizer(text)["input_ids"] for text in texts_of(options.documents)], device=options.device)
    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    with torch.inference_mode():
        model(input_ids=ids[:options.batch], use_cache=False)  # memory is allocated, threads are started
        wait()
        begin = time.perf_counter()
        for batch in ids.split(options.batch):
            model(input_ids=batch, use_cache=False)
        wait()
        seconds = time.perf_counter() - begin
    peak = torch.cuda.max_memory_allocated() / 2**20 if options.device == "cuda" else None
    return {"tokens": ids.numel(), "tokens_per_second": ids.numel() / seconds, "peak_memory_mb": peak}


def products(config, rows: int) -> dict[str, tuple[int, int, int]]:
    """Rows, inner and outer size of the products of a layer, apart and as one can join them."""
    width, ff = config.hidden_size, config.intermediate_size
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    q, kv = config.num_attention_heads * head, config.num_key_value_heads * head
    sizes = {"q, o": (width, q), "k, v": (width, kv), "q, k, v joined": (width, q + 2 * kv), "gate, up": (width, ff),
             "gate, up joined": (width, 2 * ff), "down": (ff, width)}
    return {name: (rows, *size) for name, size in sizes.items()}


def product_rate(product: Callable[[], object], multiply_adds: int, options: argparse.Namespace) -> float:
    """Multiply-adds per second, the best of some stretches."""
    best = 0.0
    for _ in range(options.repeats):
        count, begin = 0, time.perf_counter()
        while (passed := time.perf_counter() - begin) < options.seconds:
            product()
            count += 1
        best = max(best, count * multiply_adds / passed)
    return best


def product_rates(rows: int, inner: int, outer: int, options: argparse.Namespace) -> dict[str, float]:
    """Of x w^T by torch's ordinary product, and by oneDNN's with weights in an order of its own, where torch has it."""
    x, w, out = torch.randn(rows, inner), torch.randn(outer, inner), torch.empty(rows, outer)
    ways = {"ordinary": lambda: torch.mm(x, w.t(), out=out)}
    if torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        reordered = torch.ops.mkldnn._reorder_linear_weight(w, rows)
        ways["reordered"] = lambda: torch.ops.mkldnn._linear_pointwise(x, reordered, None, "none", [], "")
    return {name: product_rate(way, rows * inner * outer, options) for name, way in ways.items()}


def multiply_adds(config, tokens: int) -> dict[str, int]:
    """Of a pass over one document, without logits: linear layers, and attention where the query may look. A capture needs of the last
    layer the queries and keys alone."""
    width, ff, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    q, kv = config.num_attention_heads * head, config.num_key_value_heads * head
    linear = tokens * (2 * width * q + 2 * width * kv + 3 * width * ff)
    attention = 2 * q * tokens * (tokens + 1) // 2
    behind_keys = tokens * (width * q + width * kv + 3 * width * ff) + attention
    return {"linear": layers * linear, "attention": layers * attention, "capture": layers * (linear + attention) - behind_keys}


def bound(options: argparse.Namespace) -> dict:
    config = transformers.AutoConfig.from_pretrained(options.model)
    with torch.inference_mode():
        rates = {name: product_rates(*sizes, options) for name, sizes in products(config, options.tokens).items()}
    work = multiply_adds(config, options.tokens)
    best = max(rate for of_size in rates.values() for rate in of_size.values())
    return {"rates": rates, "multiply_adds": work, "rate": best,
            "tokens_per_second": options.tokens * best / (work["linear"] + work["attention"]),
            "capture_tokens_per_second": options.tokens * best / work["capture"]}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    of = commands.add_parser("documents")
    for name in ("model", "corpus", "out"):
        of.add_argument(name, type=Path)
    of.add_argument("--count", type=int, default=8)
    of.add_argument("--tokens", type=int, default=2048)
    of = commands.add_parser("random")
    of.add_argument("model", type=Path)
    of.add_argument("out", type=Path)
    of = commands.add_parser("forward")
    of.add_argument("model", type=Path)
    of.add_argument("documents", type=Path)
    of.add_argument("--batch", type=int, default=1)
    of.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    of.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    of = commands.add_parser("bound")
    of.add_argument("model", type=Path)
    of.add_argument("--tokens", type=int, default=2048)
    of.add_argument("--seconds", type=float, default=0.3, help="of a stretch of products of one size")
    of.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    options = parse()
    result = {"documents": documents, "random": random, "forward": forward, "bound": bound}[options.command](options)
    if result:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
