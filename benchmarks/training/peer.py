#!/usr/bin/env python3
"""The training step of `headscope bench train`, written in PyTorch from the description of the model alone.

  peer.py --preset tiny --device cpu --steps 20

Prints one JSON object: tokens_per_s (median over the timed steps), peak_memory_mb, loss_first, loss_last, and what was run.
The decoder: pre-norm RMSNorm, grouped-query attention with QK-Norm before RoPE (interleaved pairs), squared-ReLU feed-forward,
embeddings times sqrt(d_model), head tied to the embedding. Muon on the matrices (query, key, value and output of a layer
are one), AdamW on embedding and gains, gradients clipped to norm 1. Master weights are float32; on a GPU each forward pass
casts them to bfloat16, the residual stream is bfloat16, norms compute in float32.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import resource
import statistics
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

EPSILON = torch.finfo(torch.float32).eps
SEED = 1234
MAX_NORM = 1.0
POLAR_EXPRESS = (
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
)


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


PRESETS = {
    "tiny": Preset(128, 4, 4, 2, 32, 512, 256, 258, 16, 0.02, 0.005),
    "88m": Preset(512, 22, 8, 4, 64, 2048, 2048, 49152, 4, 0.024, 0.006),
}


# The model


class RMSNorm(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.gain.shape, self.gain.to(x.dtype), EPSILON)


class Linear(nn.Module):
    """No bias; the weight takes the type of the input."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs).normal_(0, 0.02))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype))


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
    def __init__(self, preset: Preset, compute: torch.dtype) -> None:
        super().__init__()
        self.compute, self.scale = compute, math.sqrt(preset.d_model)
        self.embedding = Linear(preset.vocab, preset.d_model)
        self.layers = nn.ModuleList(Layer(preset) for _ in range(preset.layers))
        self.final_norm = RMSNorm(preset.d_model)
        cos, sin = rotary_table(preset.sequence, preset.d_k)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = F.embedding(tokens, self.embedding.weight.to(self.compute)) * self.scale
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.embedding(self.final_norm(x))

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(self(tokens).float().flatten(0, 1), targets.flatten())


# The optimizer


def polar_express(u: Tensor) -> Tensor:
    """The nearest orthogonal matrices, nearly, of [matrices, short side, long side]; in bfloat16 on a GPU."""
    x = u.bfloat16() if u.is_cuda else u
    x = x / (1.01 * x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for a, b, c in POLAR_EXPRESS:
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.to(u.dtype)


class Muon:
    """Each group of parameters is one matrix, its rows one below the other. Matrices of one shape go together."""

    def __init__(self, groups: list[list[nn.Parameter]], rate: float, compiled: bool, momentum: float = 0.95) -> None:
        self.rate, self.momentum = rate, momentum
        self.polar = torch.compile(polar_express) if compiled else polar_express
        self.shapes: dict[tuple[int, int], list[list[nn.Parameter]]] = {}
        for group in groups:
            self.shapes.setdefault((sum(p.size(0) for p in group), group[0].size(1)), []).append(group)
        self.buffers = {shape: group[0][0].new_zeros(len(group), *shape) for shape, group in self.shapes.items()}

    @torch.no_grad()
    def step(self) -> None:
        for (rows, columns), groups in self.shapes.items():
            gradient = torch.stack([torch.cat([p.grad for p in group]) for group in groups])
            buffer = self.buffers[rows, columns].lerp_(gradient, 1 - self.momentum)
            update = gradient.lerp_(buffer, self.momentum)
            update = self.polar(update.mT).mT if rows > columns else self.polar(update)
            parameters = [p for group in groups for p in group]
            parts = [part for matrix, group in zip(update, groups) for part in matrix.split([p.size(0) for p in group])]
            torch._foreach_add_(parameters, parts, alpha=-self.rate * math.sqrt(max(1.0, rows / columns)))


class Optimizer:
    def __init__(self, model: Decoder, preset: Preset, compiled: bool) -> None:
        groups = []
        for layer in model.layers:
            groups += [[layer.attention.qkv.weight, layer.attention.output.weight]]
            groups += [[layer.feed_forward.up.weight], [layer.feed_forward.down.weight]]
        matrices = {id(p) for group in groups for p in group}
        others = [p for p in model.parameters() if id(p) not in matrices]
        self.parameters = list(model.parameters())
        self.muon = Muon(groups, preset.muon_lr, compiled)
        self.adamw = torch.optim.AdamW(others, lr=preset.adamw_lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.2,
                                       fused=True)

    def step(self) -> None:
        nn.utils.clip_grad_norm_(self.parameters, MAX_NORM)
        self.muon.step()
        self.adamw.step()
        for p in self.parameters:
            p.grad = None


# The measurement


def batches(preset: Preset, batch: int, sequence: int, device: torch.device):
    """Random tokens; the target of each is the next."""
    generator = torch.Generator().manual_seed(SEED)
    while True:
        text = torch.randint(preset.vocab, (batch, sequence + 1), generator=generator).to(device)
        yield text[:, :-1], text[:, 1:]


def attention_backend(device: torch.device):
    """cuDNN's where it is, which is the fastest on recent GPUs; the others stay as a fallback."""
    if device.type != "cuda":
        return contextlib.nullcontext()
    order = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(order, set_priority=True)


def peak_memory_mb(device: torch.device) -> float:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(options: argparse.Namespace) -> dict:
    device = torch.device(options.device)
    preset = PRESETS[options.preset]
    batch, sequence = options.batch or preset.batch, options.seq or preset.sequence
    preset = Preset(**{**vars(preset), "sequence": sequence})
    torch.manual_seed(SEED)
    model = Decoder(preset, torch.bfloat16 if device.type == "cuda" else torch.float32).to(device)
    optimizer = Optimizer(model, preset, options.compile)
    loss_of = torch.compile(model.loss) if options.compile else model.loss
    data = batches(preset, batch, sequence, device)
    losses, rates = [], []
    for step in range(options.warmup + options.steps):
        begin = time.perf_counter()
        total = 0.0
        for _ in range(options.accumulation):
            loss = loss_of(*next(data)) / options.accumulation
            loss.backward()
            total += loss.item()  # waits for the device
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
        losses.append(total)
        if step >= options.warmup:
            rates.append(batch * sequence * options.accumulation / (time.perf_counter() - begin))
    return {"tokens_per_s": statistics.median(rates), "peak_memory_mb": peak_memory_mb(device), "loss_first": losses[0],
            "loss_last": losses[-1], "preset": options.preset, "batch": batch, "seq": sequence,
            "accumulation": options.accumulation, "steps": options.steps, "device": options.device,
            "threads": torch.get_num_threads(), "compile": options.compile, "torch": torch.__version__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, help="sequences of a forward pass (default: the preset's)")
    parser.add_argument("--seq", type=int, help="tokens of a sequence (default: the preset's)")
    parser.add_argument("--accumulation", type=int, default=1, help="forward passes of a step")
    parser.add_argument("--steps", type=int, default=20, help="timed steps")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--threads", type=int, help="threads on the CPU (default: PyTorch's choice)")
    parser.add_argument("--compile", action="store_true", help="with torch.compile")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    with attention_backend(torch.device(options.device)):
        print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
