"""Reference values for the tests of the model, its measurements and its optimizers, by numpy in float64.

    python make_model_oracles.py FOLDER

writes FOLDER/model_qk.safetensors, model_noqk.safetensors, optimizers.safetensors and polar.safetensors. The model is the
study's own ("minimal"), spelled out operation by operation: nothing here is shared with the program under test.

The model files hold parameters by name, `tokens` and `targets` [B, T], and
    expected.logits [B, T, V], expected.loss [], expected.layers.{i}.keys [B, T, Hkv, d_k] after QK-Norm and before RoPE,
    expected.layers.{i}.key_pr [Hkv].
The metadata hold the sizes as decimal numbers.
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np

SIZES = {"batch": 2, "sequence": 24, "d_model": 48, "layers": 3, "heads": 6, "kv_heads": 3, "d_k": 8, "d_ff": 96,
         "vocab": 61, "rope_base": 10000}
EPSILON = 1.1920929e-07  # float32's machine epsilon
POLAR_EXPRESS = [
    (8.156554524902461, -22.48329292557795, 15.878769915207462),
    (4.042929935166739, -2.808917465908714, 0.5000178451051316),
    (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
    (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
    (2.3465413258596377, -1.7097828382687081, 0.42323551169305323),
]


def write_safetensors(file, tensors, metadata):
    """Little-endian float64 and int64 tensors, one behind the other."""
    names, header, place = {"f": "F64", "i": "I64"}, {"__metadata__": {k: str(v) for k, v in metadata.items()}}, 0
    arrays = {name: np.asarray(value) for name, value in tensors.items()}  # keeps a shape without dimensions
    for name, array in arrays.items():
        assert array.dtype in (np.float64, np.int64), (name, array.dtype)
        header[name] = {"dtype": names[array.dtype.kind], "shape": list(array.shape),
                        "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


# The model


def parameters(rng, qk_norm):
    """Gains away from 1, and weights of a size that makes attention neither flat nor one-hot."""
    s = SIZES
    d, d_k, heads, kv_heads = s["d_model"], s["d_k"], s["heads"], s["kv_heads"]

    def gain(size):
        return rng.uniform(0.5, 1.8, size)

    def matrix(rows, cols):
        return rng.normal(0, 1 / math.sqrt(cols), (rows, cols))

    p = {"embedding.weight": rng.normal(0, 0.2, (s["vocab"], d))}
    for i in range(s["layers"]):
        p[f"layers.{i}.attention_norm.gain"] = gain(d)
        p[f"layers.{i}.attention.qkv.weight"] = matrix((heads + 2 * kv_heads) * d_k, d)
        if qk_norm:
            p[f"layers.{i}.attention.q_norm.gain"] = gain(d_k)
            p[f"layers.{i}.attention.k_norm.gain"] = gain(d_k)
        p[f"layers.{i}.attention.output.weight"] = matrix(d, heads * d_k)
        p[f"layers.{i}.feed_forward_norm.gain"] = gain(d)
        p[f"layers.{i}.feed_forward.up.weight"] = matrix(s["d_ff"], d)
        p[f"layers.{i}.feed_forward.down.weight"] = matrix(d, s["d_ff"])
    p["final_norm.gain"] = gain(d)
    return p


def rms_norm(x, gain):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON) * gain


def rotate(x):
    """RoPE of [B, T, H, d_k], a rotation of each pair (2i, 2i + 1) as a complex number."""
    time, d_k = x.shape[1], x.shape[3]
    frequency = float(SIZES["rope_base"]) ** (-np.arange(0, d_k, 2) / d_k)
    turn = np.exp(1j * np.arange(time)[:, None] * frequency)[None, :, None, :]
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * turn
    out = np.empty_like(x)
    out[..., 0::2], out[..., 1::2] = turned.real, turned.imag
    return out


def attention(p, layer, h, qk_norm):
    """The layer's contribution to the residual stream, and its keys before RoPE."""
    heads, kv_heads, d_k = SIZES["heads"], SIZES["kv_heads"], SIZES["d_k"]
    batch, time, _ = h.shape
    qkv = h @ p[f"layers.{layer}.attention.qkv.weight"].T
    q, k, v = np.split(qkv, [heads * d_k, (heads + kv_heads) * d_k], axis=-1)
    q = q.reshape(batch, time, heads, d_k)
    k = k.reshape(batch, time, kv_heads, d_k)
    v = v.reshape(batch, time, kv_heads, d_k)
    if qk_norm:
        q = rms_norm(q, p[f"layers.{layer}.attention.q_norm.gain"])
        k = rms_norm(k, p[f"layers.{layer}.attention.k_norm.gain"])
    q_turned, k_turned = rotate(q), rotate(k)
    out = np.empty_like(q)
    future = np.triu(np.ones((time, time), bool), 1)
    for b in range(batch):
        for head in range(heads):
            kv = head // (heads // kv_heads)
            scores = q_turned[b, :, head] @ k_turned[b, :, kv].T / math.sqrt(d_k)
            scores[future] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[b, :, head] = weights / weights.sum(axis=1, keepdims=True) @ v[b, :, kv]
    return out.reshape(batch, time, heads * d_k) @ p[f"layers.{layer}.attention.output.weight"].T, k


def participation_ratio(k_nd):
    s = np.linalg.svd(k_nd, compute_uv=False)
    return s.sum() ** 2 / (s * s).sum()


def forward(p, tokens, targets, qk_norm):
    expected = {}
    x = p["embedding.weight"][tokens] * math.sqrt(SIZES["d_model"])
    for i in range(SIZES["layers"]):
        change, keys = attention(p, i, rms_norm(x, p[f"layers.{i}.attention_norm.gain"]), qk_norm)
        x = x + change
        h = rms_norm(x, p[f"layers.{i}.feed_forward_norm.gain"]) @ p[f"layers.{i}.feed_forward.up.weight"].T
        x = x + np.maximum(h, 0) ** 2 @ p[f"layers.{i}.feed_forward.down.weight"].T
        expected[f"expected.layers.{i}.keys"] = keys
        expected[f"expected.layers.{i}.key_pr"] = np.array(
            [participation_ratio(keys[:, :, head].reshape(-1, SIZES["d_k"])) for head in range(SIZES["kv_heads"])])
    logits = rms_norm(x, p["final_norm.gain"]) @ p["embedding.weight"].T
    top = logits.max(axis=-1, keepdims=True)
    log_sum = (top + np.log(np.exp(logits - top).sum(axis=-1, keepdims=True)))[..., 0]
    loss = np.mean(log_sum - np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0])
    return expected | {"expected.logits": logits, "expected.loss": np.array(loss)}


def model_oracle(folder, name, qk_norm):
    rng = np.random.default_rng([2024, int(qk_norm)])
    p = parameters(rng, qk_norm)
    tokens, targets = rng.integers(0, SIZES["vocab"], (2, SIZES["batch"], SIZES["sequence"]))
    inputs = {"tokens": tokens, "targets": targets}
    write_safetensors(folder / name, p | inputs | forward(p, tokens, targets, qk_norm),
                      SIZES | {"qk_norm": str(qk_norm).lower(), "epsilon": repr(EPSILON)})


# Optimizers


def polar_express(u):
    """The nearest orthogonal matrix, nearly: a polynomial of the singular values, the vectors stay."""
    x = u / (1.01 * np.linalg.norm(u) + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for a, b, c in POLAR_EXPRESS:
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if tall else x


def lerp(start, end, weight):
    return start + weight * (end - start)


def muon(values, gradients, rate, momentum=0.95):
    """Values after every step."""
    buffer, after = np.zeros_like(values), []
    rows, cols = values.shape
    for gradient in gradients:
        buffer = lerp(buffer, gradient, 1 - momentum)
        update = polar_express(lerp(gradient, buffer, momentum))
        values = values - rate * math.sqrt(max(1, rows / cols)) * update
        after.append(values)
    return np.stack(after)


def adamw(values, gradients, rate, betas=(0.9, 0.999), epsilon=1e-8, decay=0.2):
    first, second, after = np.zeros_like(values), np.zeros_like(values), []
    for step, gradient in enumerate(gradients, 1):
        values = values * (1 - rate * decay)
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient**2
        unbiased_first, unbiased_second = first / (1 - betas[0] ** step), second / (1 - betas[1] ** step)
        values = values - rate * unbiased_first / (np.sqrt(unbiased_second) + epsilon)
        after.append(values)
    return np.stack(after)


def optimizer_oracle(folder, steps=10, muon_rate=0.02, adamw_rate=0.005):
    """NAME.initial, NAME.gradients [steps, ...], NAME.after [steps, ...]. The merged matrix is also given in its two
    pieces, merged.qkv (rows first) and merged.output, as a layer holds them."""
    rng = np.random.default_rng(7)
    d, qkv_rows = SIZES["d_model"], (SIZES["heads"] + 2 * SIZES["kv_heads"]) * SIZES["d_k"]
    tensors = {}

    def keep(name, shape, optimizer, rate):
        initial = rng.normal(0, 0.02, shape)
        gradients = rng.normal(0, 1e-3, (steps, *shape)) * np.exp(rng.normal(0, 1, (steps,) + (1,) * len(shape)))
        after = optimizer(initial, gradients, rate)
        tensors.update({f"{name}.initial": initial, f"{name}.gradients": gradients, f"{name}.after": after})

    keep("merged", (qkv_rows + d, d), muon, muon_rate)
    keep("up", (SIZES["d_ff"], d), muon, muon_rate)
    keep("down", (d, SIZES["d_ff"]), muon, muon_rate)
    keep("embedding", (SIZES["vocab"], d), adamw, adamw_rate)
    keep("gain", (d,), adamw, adamw_rate)
    for part in ("initial", "gradients", "after"):
        tensors[f"merged.qkv.{part}"], tensors[f"merged.output.{part}"] = np.split(
            tensors[f"merged.{part}"], [qkv_rows], axis=-2)
    write_safetensors(folder / "optimizers.safetensors", tensors,
                      {"steps": steps, "muon_lr": muon_rate, "adamw_lr": adamw_rate, "momentum": 0.95, "beta1": 0.9,
                       "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.2})


def composed(s):
    """What Polar Express makes of a singular value of the divided matrix."""
    for a, b, c in POLAR_EXPRESS:
        s = a * s + b * s**3 + c * s**5
    return s


def matrix_of_condition(rng, rows, cols, condition):
    """Singular values spread evenly in the logarithm from 1 to 1 / condition."""
    short = min(rows, cols)
    left = np.linalg.qr(rng.normal(size=(rows, short)))[0]
    right = np.linalg.qr(rng.normal(size=(cols, short)))[0]
    return left * np.logspace(0, -math.log10(condition), short) @ right.T


def polar_oracle(folder):
    """{k}.input, {k}.output and {k}.singular_values of the output, for several shapes and conditions; `bound`: smallest
    and largest singular value that an output can have when those of the divided input lie in [0.001, 1]."""
    rng = np.random.default_rng(11)
    grid = composed(np.concatenate([np.logspace(-3, 0, 400_001), np.linspace(1e-3, 1, 400_001)]))
    tensors = {"bound": np.array([grid.min(), grid.max()])}
    shapes, conditions = [(16, 16), (48, 96), (96, 48), (144, 48), (1, 32), (128, 16)], [1, 10, 100]
    cases = 0
    for rows, cols in shapes:
        for condition in conditions:
            given = matrix_of_condition(rng, rows, cols, condition) * 10.0 ** rng.uniform(-4, 2)
            out = polar_express(given)
            singular = np.linalg.svd(out, compute_uv=False)
            # The same by another way: the polynomial of the singular values of the input.
            scaled = np.linalg.svd(given, compute_uv=False) / (1.01 * np.linalg.norm(given) + 1e-7)
            assert np.allclose(np.sort(singular), np.sort(composed(scaled)), rtol=1e-9, atol=0)
            assert grid.min() * (1 - 1e-6) <= singular.min() and singular.max() <= grid.max() * (1 + 1e-6), (rows, cols)
            tensors |= {f"{cases}.input": given, f"{cases}.output": out, f"{cases}.singular_values": singular}
            cases += 1
    write_safetensors(folder / "polar.safetensors", tensors, {"cases": cases, "smallest": 1e-3})


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    model_oracle(folder, "model_qk.safetensors", qk_norm=True)
    model_oracle(folder, "model_noqk.safetensors", qk_norm=False)
    optimizer_oracle(folder)
    polar_oracle(folder)


if __name__ == "__main__":
    main()
