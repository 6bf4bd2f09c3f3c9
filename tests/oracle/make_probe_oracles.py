"""Reference values for the measurements of heads, by numpy in float64, straight from their definitions.

    python make_probe_oracles.py FOLDER

writes FOLDER/probe_CASE.safetensors for each case: `q` [B, T, H, D], `k` [B, T, Hk, D] (float32 values), `scale`, `window`, `cap` and
`expected.METRIC`, one value for each head. Attention matrices are built whole, pairs of keys are compared one by one: nothing here
is shared with the program under test. Queries and keys count as being after RoPE where attention is measured.
"""

import math
import pathlib
import sys

import numpy as np

from make_model_oracles import write_safetensors


def single(array):
    """Values that float32 holds."""
    return np.asarray(array, np.float32).astype(np.float64)


def cases():
    rng = np.random.default_rng(7)

    def normal(*shape, size=1.0):
        return single(rng.normal(0, size, shape))

    yield "random", normal(3, 70, 4, 8), normal(3, 70, 2, 8)
    yield "sharp", normal(2, 131, 2, 16, size=3), normal(2, 131, 2, 16, size=3)
    yield "one_sequence", normal(1, 40, 2, 4), normal(1, 40, 1, 4)
    yield "one_token", normal(4, 1, 2, 4), normal(4, 1, 2, 4)
    yield "one_key", normal(1, 1, 1, 4), normal(1, 1, 1, 4)
    yield "constant_keys", normal(2, 20, 2, 4), single(np.broadcast_to(rng.normal(0, 1, (1, 1, 2, 4)), (2, 20, 2, 4)))
    yield "one_hot_keys", normal(2, 33, 4, 8), single(5 * np.eye(8)[rng.choice(8, (2, 33, 2), p=[.65] + [.05] * 7)])
    yield "zero_keys", normal(2, 20, 2, 4), np.zeros((2, 20, 2, 4))
    some = normal(2, 20, 2, 4)
    some[:, ::3] = 0
    yield "some_zero_keys", normal(2, 20, 2, 4), some
    yield "huge_keys", normal(2, 20, 2, 4), normal(2, 20, 2, 4, size=1e15)
    first = normal(2, 20, 1, 4, size=0.1)
    first[:, 0] = 30
    yield "sink", single(np.abs(normal(2, 20, 2, 4)) + 1), first
    yield "window", normal(2, 150, 4, 8), normal(2, 150, 2, 8), {"window": 20}
    yield "wide_window", normal(2, 40, 2, 8), normal(2, 40, 2, 8), {"window": 200}
    yield "capped", normal(2, 70, 2, 16, size=3), normal(2, 70, 1, 16, size=3), {"cap": 5.0}
    yield "window_and_cap", normal(3, 131, 2, 16, size=3), normal(3, 131, 2, 16, size=3), {"window": 70, "cap": 10.0}


def ranks(keys):
    s = np.linalg.svd(keys, compute_uv=False)
    if s.max() == 0:
        return dict.fromkeys(("k_pr", "k_erank", "k_pr_eig", "k_stable_rank"), math.nan)
    p = s / s.sum()
    p = p[p > 0]
    return {"k_pr": s.sum() ** 2 / (s**2).sum(), "k_erank": math.exp(-(p * np.log(p)).sum()),
            "k_pr_eig": (s**2).sum() ** 2 / (s**4).sum(), "k_stable_rank": (s**2).sum() / s.max() ** 2}


def mean(values):
    return sum(values) / len(values) if values else math.nan


def key_metrics(k):
    """k: [B, T, D] of one head."""
    keys = k.reshape(-1, k.shape[-1])
    norms = [math.sqrt(sum(x * x for x in key)) for key in keys]
    alive = [key for key, norm in zip(keys, norms) if norm > 0]
    energy = (keys**2).sum(0)
    top = int(energy.argmax())
    cosines = [np.dot(a, b) / math.sqrt(np.dot(a, a) * np.dot(b, b)) for i, a in enumerate(alive) for b in alive[:i]]
    return {
        "k_norm": np.mean(norms), "k_norm_std": np.std(norms), "k_std": np.std(keys),
        "k_token0_norm": np.mean([np.linalg.norm(sequence[0]) for sequence in k]),
        "k_max_abs_mean": np.mean([np.abs(key).max() for key in keys]), "k_max_abs": np.abs(keys).max(),
        "k_axis": mean([np.abs(key).max() / np.linalg.norm(key) for key in alive]),
        "k_pr_vector": mean([(key**2).sum() ** 2 / (key**4).sum() for key in alive]),
        "k_top_dim": float(top) if energy.sum() > 0 else math.nan,
        "k_top_energy": energy[top] / energy.sum() if energy.sum() > 0 else math.nan,
        "k_top_share": mean([float(abs(key[top]) == np.abs(key).max()) for key in alive]),
        "k_cosine": mean(cosines), **ranks(keys)}


def entropy(p):
    p = p[p > 0]
    return max(0.0, -(p * np.log(p)).sum())


def softmax(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def capped(scores, cap):
    return cap * np.tanh(scores / cap) if cap else scores


def attention_metrics(q, k, scale, window, cap):
    """q, k: [B, T, D] of one query head and its key head. Query i sees key j if j <= i and, under a window, i - j < window."""
    batch, time, _ = q.shape
    scores = capped(np.einsum("btd,bsd->bts", q, k) * scale, cap)
    causal = np.array([[j <= i and (window == 0 or i - j < window) for j in range(time)] for i in range(time)])
    seen = causal.sum(1)
    a = softmax(np.where(causal, scores, -np.inf))
    entropies = np.array([[entropy(row) for row in sequence] for sequence in a])
    profile = [entropy(sequence.mean(0)) for sequence in a]
    information = np.mean(profile) - entropies.mean()
    divergence = [max(0.0, entropy(a[:, i].mean(0)) - entropies[:, i].mean()) / min(math.log(batch), math.log(seen[i]))
                  for i in range(1, time)] if batch > 1 else []
    first = min(time, 128)
    unmasked = softmax(capped(np.einsum("btd,bsd->bts", q[:, :first], k[:, :first]) * scale, cap))
    later = range(1, time)
    return {
        "entropy": entropies.mean(), "max_logit": scores[:, causal].max(),
        "entropy_norm": mean([entropies[b, i] / math.log(seen[i]) for b in range(batch) for i in later]),
        "sink": mean([a[b, i, 0] for b in range(batch) for i in later]),
        "previous": mean([a[b, i, i - 1] for b in range(batch) for i in later]),
        "self": np.mean([a[b, i, i] for b in range(batch) for i in range(time)]),
        "constancy": 1 - information / np.mean(profile) if np.mean(profile) > 1e-6 else 1.0,
        "consistency": 1 - mean(divergence),
        "entropy_seed": np.mean([entropy(row) for sequence in unmasked for row in sequence])}


def in_second_half(q, k, scale, window, cap, to):
    """The mean attention of positions half + i to position to(i, half)."""
    half = q.shape[1] // 2
    scores = capped(np.einsum("btd,bsd->bts", q, k) * scale, cap)
    values = []
    for sequence in scores:
        for i in range(half):
            first = max(0, half + i + 1 - window) if window else 0
            row = softmax(sequence[half + i, first:half + i + 1])
            values.append(row[to(i, half) - first] if to(i, half) >= first else 0.0)
    return mean(values)


def participation_ratio(matrix):
    s = np.linalg.svd(matrix, compute_uv=False)
    return s.sum() ** 2 / (s**2).sum()


def other_ranks(q, k, q_rotated, k_rotated, gain):
    """Of vectors [B, T, heads, D]: the participation ratio of each head by each measure. QKᵀ is built whole."""
    rows = lambda x, head: x[:, :, head].reshape(-1, x.shape[-1])
    key_heads, of_query = range(k.shape[2]), [(h, h * k.shape[2] // q.shape[2]) for h in range(q.shape[2])]
    return {
        "k_pr": [participation_ratio(rows(k, h)) for h in key_heads],
        "k_pr_centred": [participation_ratio(rows(k, h) - rows(k, h).mean(0)) for h in key_heads],
        "k_pr_rotated": [participation_ratio(rows(k_rotated, h)) for h in key_heads],
        "k_pr_before_gain": [participation_ratio(rows(k, h) / gain[h]) for h in key_heads],
        "qk_pr": [participation_ratio(rows(q, h) @ rows(k, of).T) for h, of in of_query],
        "qk_pr_rotated": [participation_ratio(rows(q_rotated, h) @ rows(k_rotated, of).T) for h, of in of_query],
    }


def score_std(q, k, scale):
    """The scores are built whole."""
    values = []
    for h in range(q.shape[2]):
        scores = scale * np.einsum("btd,bsd->bts", q[:, :, h], k[:, :, h * k.shape[2] // q.shape[2]])
        values.append(math.sqrt(scores.var(axis=2).mean()))
    return values


def ranks_oracle():
    """Values, and jackknife errors over sequences of their mean over heads."""
    rng = np.random.default_rng(12)
    mixed = lambda *shape: rng.normal(0, 1, shape) @ rng.normal(0, 1, (6, 6)) + rng.normal(0, 1, 6)
    vectors = {"q": mixed(5, 17, 4, 6), "k": mixed(5, 17, 2, 6), "q_rotated": mixed(5, 17, 4, 6), "k_rotated": mixed(5, 17, 2, 6)}
    gain = np.exp(rng.normal(0, 1, (2, 6)))
    tensors = {**vectors, "gain": gain.flatten()}
    tensors.update({f"expected.{name}": np.array(values) for name, values in other_ranks(**vectors, gain=gain).items()})
    without = [other_ranks(**{name: np.delete(x, s, 0) for name, x in vectors.items()}, gain=gain) for s in range(5)]
    tensors["scale"] = np.array(0.3)
    tensors["expected.score_std"] = np.array(score_std(vectors["q_rotated"], vectors["k_rotated"], 0.3))
    for name in without[0]:
        means = np.array([np.mean(values[name]) for values in without])
        tensors[f"jackknife.{name}"] = np.array(math.sqrt(4 / 5 * ((means - means.mean()) ** 2).sum()))
    return tensors


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "ranks.safetensors", ranks_oracle(), {})
    for name, q, k, *more in cases():
        rule = {"window": 0, "cap": 0.0, **(more[0] if more else {})}
        scale = 1 / math.sqrt(q.shape[-1])
        heads, key_heads = q.shape[2], k.shape[2]
        per_head = [key_metrics(k[:, :, h]) for h in range(key_heads)]
        tensors = {"q": q, "k": k}
        tensors.update({f"expected.{m}": np.array([float(v[m]) for v in per_head]) for m in per_head[0]})
        q_norm = np.linalg.norm(q, axis=-1).mean((0, 1))
        of_query = [h * key_heads // heads for h in range(heads)]
        per_query = [attention_metrics(q[:, :, h], k[:, :, of_query[h]], scale, **rule) for h in range(heads)]
        tensors.update({f"expected.{m}": np.array([float(v[m]) for v in per_query]) for m in per_query[0]})
        tensors["expected.q_norm"] = q_norm
        with np.errstate(divide="ignore"):
            tensors["expected.qk_ratio"] = q_norm / np.array([per_head[h]["k_norm"] for h in of_query])
        if q.shape[1] > 1:
            for name_of, to in (("induction", lambda i, half: i + 1), ("previous_random", lambda i, half: half + i - 1)):
                tensors[name_of] = np.array(
                    [in_second_half(q[:, :, h], k[:, :, of_query[h]], scale, **rule, to=to) for h in range(heads)])
        numbers = {key: repr(float(value)) for key, value in {"scale": scale, **rule}.items()}
        write_safetensors(folder / f"probe_{name}.safetensors", tensors, numbers)


if __name__ == "__main__":
    main()
