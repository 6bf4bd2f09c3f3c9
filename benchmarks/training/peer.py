#!/usr/bin/env python3
"""Training as headscope does it, written in PyTorch from the description of the model alone.

  peer.py --preset tiny --device cpu --steps 20                       the steps of `headscope bench train`, on random tokens
  peer.py --preset 88m --device cuda --compile reduce-overhead        the same with torch.compile
  peer.py --weights model.safetensors --tokens train.bin --validation val.bin --losses out.json --ranks-every 30
                                                                      the weights and batches of a run of `headscope train`

Prints one JSON object: tokens_per_s (median over blocks of ten steps), tflops, first_step_s, peak_memory_mb, losses, and what was run.
The decoder: pre-norm RMSNorm, grouped-query attention with QK-Norm before RoPE (interleaved pairs), squared-ReLU feed-forward,
embeddings times sqrt(d_model), head tied to the embedding. Muon on the matrices (query, key, value and output of a layer
are one), AdamW on embedding and gains, gradients clipped to norm 1. Master weights are float32. On a GPU, matrices and embedding have
bfloat16 copies, written once an update; the residual stream is bfloat16, norms compute in float32. Nothing waits for the GPU but the
ends of a block of steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import resource
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measure import Arguments, refuse, whole  # noqa: E402

EPSILON = torch.finfo(torch.float32).eps
SEED = 1234
MAX_NORM = 1.0
STEPS_PER_BLOCK = 10
POLAR_EXPRESS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)
COMPILE_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
ATTENTION = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION,
             "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}


@dataclass(frozen=True)
class Preset:
    d_model: int
    layers: int
    heads: int
    kv_heads: int
    d_k: int
    d_ff: int
    sequence: int
    vocab: int
    batch: int
    muon_lr: float
    adamw_lr: float

    def flops_per_token(self) -> float:
        """6 for each parameter in a matrix product (the head is one), and 3.5 times causal attention's forward pass, which is
        4 (T/2) heads d_k a layer: its backward pass has five products for the forward pass's two."""
        heads = self.heads * self.d_k
        layer = self.d_model * (2 * heads + 2 * self.kv_heads * self.d_k) + 2 * self.d_model * self.d_ff
        products = self.layers * layer + self.vocab * self.d_model
        return 6 * products + 3.5 * 4 * self.sequence / 2 * heads * self.layers


PRESETS = {
    "tiny": Preset(128, 4, 4, 2, 32, 512, 256, 258, 16, 0.02, 0.005),
    "88m": Preset(512, 22, 8, 4, 64, 2048, 2048, 49152, 4, 0.024, 0.006),
    "1.5b": Preset(2048, 32, 16, 8, 128, 8192, 2048, 49152, 4, 0.012, 0.003),
}


# The model. Parameters are in the type that it computes in, gains in float32.


class RMSNorm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + EPSILON) * self.gain).to(x.dtype)


class Linear(nn.Module):
    """No bias."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs).normal_(0, 0.02))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


def rotary_table(time: int, d_k: int, base: float = 10000.0) -> tuple[Tensor, Tensor]:
    """Cosine and sine, [T, 1, d_k / 2]."""
    frequency = base ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angle = torch.arange(time, dtype=torch.float64)[:, None] * frequency
    return angle.cos().float()[:, None, :], angle.sin().float()[:, None, :]


def rotate(x_bthd: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x_bthd.float().unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return turned.flatten(-2).to(x_bthd.dtype)


class Attention(nn.Module):
    def __init__(self, preset: Preset) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.d_k = preset.heads, preset.kv_heads, preset.d_k
        self.qkv = Linear((preset.heads + 2 * preset.kv_heads) * preset.d_k, preset.d_model)
        self.q_norm = RMSNorm(preset.d_k)
        self.k_norm = RMSNorm(preset.d_k)
        self.output = Linear(preset.d_model, preset.heads * preset.d_k)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        qkv = self.qkv(x).unflatten(-1, (-1, self.d_k))
        q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=-2)
        q, k = rotate(self.q_norm(q), cos, sin), rotate(self.k_norm(k), cos, sin)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.output(out.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self, preset: Preset) -> None:
        super().__init__()
        self.up = Linear(preset.d_ff, preset.d_model)
        self.down = Linear(preset.d_model, preset.d_ff)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.relu(self.up(x)).square())


class Layer(nn.Module):
    def __init__(self, preset: Preset) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(preset.d_model)
        self.attention = Attention(preset)
        self.feed_forward_norm = RMSNorm(preset.d_model)
        self.feed_forward = FeedForward(preset)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.feed_forward_norm(x))


class Decoder(nn.Module):
    """Names of parameters are those of headscope's checkpoints."""

    def __init__(self, preset: Preset) -> None:
        super().__init__()
        self.scale = math.sqrt(preset.d_model)
        self.embedding = Linear(preset.vocab, preset.d_model)
        self.layers = nn.ModuleList(Layer(preset) for _ in range(preset.layers))
        self.final_norm = RMSNorm(preset.d_model)
        cos, sin = rotary_table(preset.sequence, preset.d_k)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """The mean loss."""
        x = F.embedding(tokens, self.embedding.weight) * self.scale
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = self.embedding(self.final_norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


# The optimizers


def polar_express(x: Tensor) -> Tensor:
    """The nearest orthogonal matrices, nearly, of [matrices, short side, long side]; in bfloat16 on a GPU."""
    x = x / (1.01 * x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    x = x.bfloat16() if x.is_cuda else x
    for a, b, c in POLAR_EXPRESS:
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def muon_update(weights: Tensor, momentum: Tensor, gradient: Tensor, scale: Tensor, rate: float, decay: float) -> None:
    """Of matrices of one shape, all at once."""
    gradient = gradient.float() * scale
    momentum.lerp_(gradient, 1 - decay)
    update = gradient.lerp(momentum, decay)
    rows, columns = update.shape[-2:]
    update = polar_express(update.mT).mT if rows > columns else polar_express(update)
    weights.sub_(update.float() * (rate * math.sqrt(max(1.0, rows / columns))))


class Matrices:
    """The matrices of one shape: [matrices, rows, columns]. Each is one parameter or several, rows one below the other. Parameters
    become parts of `copies`, so that all copies are written at once."""

    def __init__(self, groups: list[list[nn.Parameter]], compute: torch.dtype) -> None:
        self.groups = groups
        self.master = torch.stack([torch.cat([p.data for p in group]) for group in groups])
        self.momentum = torch.zeros_like(self.master)
        self.copies = self.master if compute == torch.float32 else self.master.to(compute)
        for matrix, group in zip(self.copies, groups):
            for p, part in zip(group, matrix.split([p.size(0) for p in group])):
                p.data = part

    def gradient(self) -> Tensor:
        return torch.stack([torch.cat([p.grad for p in group]) if len(group) > 1 else group[0].grad for group in self.groups])

    def masters(self) -> dict[int, Tensor]:
        """By the id of the parameter."""
        return {id(p): part for matrix, group in zip(self.master, self.groups)
                for p, part in zip(group, matrix.split([p.size(0) for p in group]))}


class Optimizer:
    """Muon and AdamW with clipping. collect() takes the gradients of a forward and backward pass, step() makes the update."""

    def __init__(self, model: Decoder, preset: Preset, compute: torch.dtype, passes: int, compile_mode: str | None) -> None:
        shapes: dict[tuple[int, int], list[list[nn.Parameter]]] = {}
        for layer in model.layers:
            for group in ([layer.attention.qkv.weight, layer.attention.output.weight], [layer.feed_forward.up.weight],
                          [layer.feed_forward.down.weight]):
                shapes.setdefault((sum(p.size(0) for p in group), group[0].size(1)), []).append(group)
        of_muon = {id(p) for groups in shapes.values() for group in groups for p in group}
        self.matrices = [Matrices(groups, compute) for groups in shapes.values()]
        self.parameters = list(model.parameters())
        # The embedding, which has a copy, and the gains, which need none.
        self.others = [p for p in self.parameters if id(p) not in of_muon]
        assert self.others[0] is model.embedding.weight
        self.masters = [self.others[0].detach().clone(), *self.others[1:]]
        model.embedding.weight.data = model.embedding.weight.data.to(compute)
        self.rate, self.passes = preset.muon_lr, passes
        self.adamw = torch.optim.AdamW(self.masters, lr=preset.adamw_lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.2,
                                       fused=True)
        # With one pass an update the gradients are used as they come. Sums of several are float32 and stay in their place.
        self.gradients: list[Tensor] = []
        if passes > 1:
            self.gradients = [torch.zeros_like(m.master) for m in self.matrices]
            self.gradients += [torch.zeros_like(m, requires_grad=False) for m in self.masters]
        self.muon_update = muon_update
        if compile_mode:  # graphs would need copies of the gradients; the products are large
            mode = "max-autotune-no-cudagraphs" if "autotune" in compile_mode else "default"
            self.muon_update = torch.compile(muon_update, mode=mode, dynamic=False)

    @torch.no_grad()
    def collect(self, first: bool) -> None:
        found = [m.gradient() for m in self.matrices] + [p.grad for p in self.others]
        if self.passes == 1:
            self.gradients = found
        else:
            large = len(self.matrices) + 1  # the gains are many and small: all at once
            if first:
                torch._foreach_zero_(self.gradients)
            for total, part in zip(self.gradients[:large], found):
                total.add_(part)
            torch._foreach_add_(self.gradients[large:], found[large:])
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self) -> None:
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(self.gradients, 2, torch.float32)))
        scale = torch.clamp(MAX_NORM / (norm + 1e-6), max=1.0)
        for m, gradient in zip(self.matrices, self.gradients):
            self.muon_update(m.master, m.momentum, gradient, scale, self.rate, 0.95)
            if m.copies is not m.master:
                m.copies.copy_(m.master)
        gradients = [gradient.float() for gradient in self.gradients[len(self.matrices):]]
        torch._foreach_mul_(gradients, scale)
        for master, gradient in zip(self.masters, gradients):
            master.grad = gradient
        self.adamw.step()
        self.others[0].copy_(self.masters[0])
        for master in self.masters:
            master.grad = None
        if self.passes == 1:
            self.gradients = []

    def named_masters(self, model: Decoder) -> dict[str, Tensor]:
        masters = {id(p): master.detach() for p, master in zip(self.others, self.masters)}
        for m in self.matrices:
            masters |= m.masters()
        return {name: masters[id(p)] for name, p in model.named_parameters()}


# The data


def random_batches(preset: Preset, batch: int) -> Iterator[Tensor]:
    """[batch, T + 1]: the target of each token is the next."""
    generator = torch.Generator().manual_seed(SEED)
    while True:
        yield torch.randint(preset.vocab, (batch, preset.sequence + 1), generator=generator)


def read_tokens(file: Path, preset: Preset, batch: int) -> np.ndarray:
    """A token file of headscope, with at least one batch: x.bin, and x.json that says what the numbers are."""
    try:
        kind = {"u16": "<u2", "u32": "<u4"}[json.loads(file.with_suffix(".json").read_text())["type"]]
        tokens = np.fromfile(file, dtype=kind)
    except OSError as error:
        refuse(f"{error.filename or file}: {error.strerror or error}")
    except (ValueError, KeyError, TypeError):
        refuse(f"{file.with_suffix('.json')}: does not say that the tokens are u16 or u32")
    blocks = max(len(tokens) - 1, 0) // preset.sequence
    if blocks < batch:
        refuse(f"{file}: {blocks} blocks of {preset.sequence} tokens, fewer than the {batch} of a batch")
    if tokens.max() >= preset.vocab:
        refuse(f"{file}: token {tokens.max()} is beyond the vocabulary of {preset.vocab}")
    return tokens


def mixed_seed(seed: int, index: int) -> int:
    """One seed out of two numbers, by SplitMix64."""
    def splitmix(x: int) -> int:
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        return x ^ (x >> 31)
    return splitmix((splitmix(seed) + index) % 2**64)


def block(tokens: np.ndarray, index: int, sequence: int) -> Tensor:
    return torch.from_numpy(tokens[index * sequence : (index + 1) * sequence + 1].astype(np.int64))


def batches_of(tokens: np.ndarray, batch: int, sequence: int, seed: int) -> Iterator[Tensor]:
    """The blocks that `headscope train` takes, in its order (src/data/blocks.h), if it takes all tokens of the file."""
    def order() -> Iterator[int]:
        blocks, epoch = (len(tokens) - 1) // sequence, 0
        while True:
            yield from np.random.default_rng(mixed_seed(seed, epoch)).choice(blocks, blocks, replace=False)
            epoch += 1
    positions = order()
    while True:
        yield torch.stack([block(tokens, next(positions), sequence) for _ in range(batch)])


# The measurement


def load_weights(model: Decoder, file: Path) -> None:
    try:
        weights = read_weights(file)
    except OSError as error:
        refuse(f"{file}: {error.strerror or error}")
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OverflowError):
        refuse(f"{file}: not a whole safetensors file of float32")
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        refuse(f"{file}: not the weights of this preset")


def read_weights(file: Path) -> dict[str, Tensor]:
    """A safetensors file of float32: the size of a JSON header, the header, the values."""
    data = np.memmap(file, dtype=np.uint8, mode="r")
    begin = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(bytes(data[8:begin]))
    weights = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "F32":
            refuse(f"{file}: {name} is {entry['dtype']}, expected F32")
        first, last = (begin + offset for offset in entry["data_offsets"])
        weights[name] = torch.from_numpy(data[first:last].copy().view("<f4")).reshape(entry["shape"])
    return weights


@torch.no_grad()
def key_participation_ratio(model: Decoder, weights: dict[str, Tensor], text: Tensor) -> float:
    """Mean over all key heads of (sum s)^2 / sum s^2, s the singular values of the head's keys after QK-Norm and before RoPE, in float32."""
    ratios: list[Tensor] = []

    def measure(_module: nn.Module, _inputs: tuple, keys_bthd: Tensor) -> None:
        keys = keys_bthd.flatten(0, 1).transpose(0, 1).double()  # [heads, tokens, d_k]
        s = torch.linalg.eigvalsh(keys.mT @ keys).clamp(min=0).sqrt()
        ratios.append(s.sum(-1).square() / s.square().sum(-1))

    hooks = [layer.attention.k_norm.register_forward_hook(measure) for layer in model.layers]
    with sdpa_kernel(SDPBackend.MATH):  # others have no float32
        torch.func.functional_call(model, weights, (text[:, :-1], text[:, 1:]))
    for hook in hooks:
        hook.remove()
    return torch.cat(ratios).mean().item()


def seconds_since_process_start() -> float:
    """What the system says, to a hundredth of a second: the time of imports counts."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


def peak_memory_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Training:
    def __init__(self, preset: Preset, batch: int, options: argparse.Namespace) -> None:
        self.device, self.passes = torch.device(options.device), options.accumulation
        self.tokens_per_step = batch * preset.sequence * self.passes
        torch.manual_seed(SEED)
        self.model = Decoder(preset).to(self.device)
        if options.weights:
            load_weights(self.model, options.weights)
        compute = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.optimizer = Optimizer(self.model, preset, compute, self.passes, options.compile)
        self.loss_of = torch.compile(self.model, mode=options.compile, dynamic=False) if options.compile else self.model
        self.data = (batches_of(read_tokens(options.tokens, preset, batch), batch, preset.sequence, options.seed) if options.tokens
                     else random_batches(preset, batch))
        self.losses: list[Tensor] = []

    def to_device(self, text: Tensor) -> Tensor:
        return text.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else text

    def step(self) -> None:
        """One update. Its loss stays on the device until it is read."""
        total = torch.zeros((), device=self.device)
        for index in range(self.passes):
            text = self.to_device(next(self.data))
            if self.loss_of is not self.model:
                torch.compiler.cudagraph_mark_step_begin()  # a graph may write to the memory of its last results
            loss = self.loss_of(text[:, :-1].contiguous(), text[:, 1:].contiguous()) / self.passes
            loss.backward()
            total += loss.detach()
            self.optimizer.collect(first=index == 0)
        self.optimizer.step()
        self.losses.append(total)

    def steps(self, count: int) -> float:
        """Seconds of so many steps, without a wait between them."""
        self.wait()
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        self.wait()
        return time.perf_counter() - begin

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def measure(options: argparse.Namespace) -> dict:
    preset = PRESETS[options.preset]
    batch = options.batch or preset.batch
    preset = replace(preset, sequence=options.seq or preset.sequence)
    training = Training(preset, batch, options)
    ranks, held_out = {}, None
    if options.ranks_every:
        tokens = read_tokens(options.validation, preset, batch)
        held_out = training.to_device(torch.stack([block(tokens, index, preset.sequence) for index in range(batch)]))
        ranks[0] = key_participation_ratio(training.model, training.optimizer.named_masters(training.model), held_out)
    total, done, step_seconds, first_step_s = options.warmup + options.steps, 0, [], 0.0
    while done < total:
        # The first step alone, the other steps before the clock, then blocks.
        count = 1 if done == 0 else options.warmup - done if done < options.warmup else min(STEPS_PER_BLOCK, total - done)
        if options.ranks_every:  # none reaches beyond a measurement
            count = min(count, options.ranks_every - done % options.ranks_every)
        seconds = training.steps(count)
        first_step_s = first_step_s or seconds_since_process_start()
        step_seconds += [seconds / count] if done >= options.warmup else []
        done += count
        if options.ranks_every and (done % options.ranks_every == 0 or done == total):
            ranks[done] = key_participation_ratio(training.model, training.optimizer.named_masters(training.model), held_out)
    losses = torch.stack(training.losses).tolist()
    if options.losses:
        options.losses.write_text(json.dumps({"losses": losses, "key_pr": ranks}))
    rate = training.tokens_per_step / statistics.median(step_seconds)
    return {"tokens_per_s": rate, "step_ms_median": 1e3 * statistics.median(step_seconds),
            "tflops": 1e-12 * rate * preset.flops_per_token(), "first_step_s": first_step_s,
            "peak_memory_mb": peak_memory_mb(training.device), "loss_first": losses[0], "loss_last": losses[-1],
            "preset": options.preset, "batch": batch, "seq": preset.sequence, "accumulation": options.accumulation,
            "steps": options.steps, "device": options.device, "threads": torch.get_num_threads(),
            "compile": options.compile, "attention": options.attention, "torch": torch.__version__}


def attention_kernel(options: argparse.Namespace):
    """On a GPU cuDNN's unless another is named, which is the fastest on recent ones; the others stay as a fallback."""
    if options.attention:
        return sdpa_kernel(ATTENTION[options.attention])
    if options.device == "cuda":
        return sdpa_kernel(list(ATTENTION.values()), set_priority=True)
    return contextlib.nullcontext()


def main() -> None:
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=whole(1), help="sequences of a forward pass (default: the preset's)")
    parser.add_argument("--seq", type=whole(1), help="tokens of a sequence (default: the preset's)")
    parser.add_argument("--accumulation", type=whole(1), default=1, help="forward passes of a step")
    parser.add_argument("--steps", type=whole(1), default=20, help="timed steps")
    parser.add_argument("--warmup", type=whole(0), default=3, help="steps before them")
    parser.add_argument("--threads", type=whole(1, 1024), help="threads on the CPU (default: PyTorch's choice)")
    parser.add_argument("--compile", choices=COMPILE_MODES, nargs="?", const="default", help="with torch.compile in this mode")
    parser.add_argument("--attention", choices=ATTENTION, help="the only kernel for attention (default: cudnn first, PyTorch's choice on a CPU)")
    parser.add_argument("--weights", type=Path, help="model.safetensors of a checkpoint of headscope, to begin with")
    parser.add_argument("--tokens", type=Path, help="token file (.bin with .json beside) to train on, in the order of `headscope train`")
    parser.add_argument("--seed", type=int, default=42, help="of that order: train.seed")
    parser.add_argument("--validation", type=Path, help="token file; its first batch is what keys are measured on")
    parser.add_argument("--ranks-every", type=whole(0), default=0, metavar="N", help="measure the participation ratio of keys every N steps")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="write the loss of every step and the ratios, as JSON")
    options = parser.parse_args()
    if options.ranks_every and not options.validation:
        parser.error("--ranks-every needs --validation")
    if options.losses and not options.losses.parent.is_dir():
        parser.error(f"--losses: {options.losses.parent} is not a folder")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no GPU here")
    if options.threads:
        torch.set_num_threads(options.threads)
    with attention_kernel(options):
        print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
