#!/usr/bin/env python3
"""Reference numbers for optimizers, in float64, from the papers' formulas (numpy only; nothing of torch.optim).

Run in this folder: python3 optimizers.py > optimizers.json
Five steps; the rate changes after the second; some tensors decay and some don't; one gradient is missing in the third step and counts as zero.
"""
import json
import math

import numpy as np

SHAPES = {"hidden_wide": (4, 10), "hidden_tall": (6, 4), "embedding": (8, 3), "bias": (5,)}
DECAYS = {"hidden_wide", "hidden_tall", "embedding"}
HIDDEN = {"hidden_wide", "hidden_tall"}
FACTORS = [1.0, 1.0, 0.25, 0.25, 0.125]
STEPS = 5


def inputs():
    rng = np.random.default_rng(20240607)
    w = {k: rng.standard_normal(s) for k, s in SHAPES.items()}
    g = [{k: rng.standard_normal(s) * 10.0 ** rng.integers(-3, 2) for k, s in SHAPES.items()} for _ in range(STEPS)]
    g[2]["embedding"] = None
    return w, g


def grad(g, w):
    return np.zeros_like(w) if g is None else g


def adamw(names, w, g, rate, beta1, beta2, epsilon, weight_decay):
    """Loshchilov & Hutter 2019, algorithm 2 (the schedule multiplies the decay as well)."""
    w = {k: w[k].copy() for k in names}
    m = {k: np.zeros_like(w[k]) for k in names}
    v = {k: np.zeros_like(w[k]) for k in names}
    trace = []
    for t in range(STEPS):
        for k in names:
            d = grad(g[t][k], w[k])
            m[k] = beta1 * m[k] + (1 - beta1) * d
            v[k] = beta2 * v[k] + (1 - beta2) * d**2
            m_hat = m[k] / (1 - beta1 ** (t + 1))
            v_hat = v[k] / (1 - beta2 ** (t + 1))
            decay = weight_decay if k in DECAYS else 0.0
            eta = rate * FACTORS[t]
            w[k] = w[k] - eta * m_hat / (np.sqrt(v_hat) + epsilon) - eta * decay * w[k]
        trace.append({k: w[k].copy() for k in names})
    return trace


def sgd(w, g, rate, momentum, nesterov, weight_decay):
    """Velocity without the rate; L2 penalty in the gradient; Nesterov as gradient plus momentum times the new velocity."""
    w = {k: w[k].copy() for k in SHAPES}
    u = {k: np.zeros_like(w[k]) for k in SHAPES}
    trace = []
    for t in range(STEPS):
        for k in SHAPES:
            d = grad(g[t][k], w[k]) + (weight_decay if k in DECAYS else 0.0) * w[k]
            u[k] = momentum * u[k] + d
            w[k] = w[k] - rate * FACTORS[t] * (d + momentum * u[k] if nesterov else u[k])
        trace.append({k: w[k].copy() for k in SHAPES})
    return trace


def lion(w, g, rate, beta1, beta2, weight_decay):
    """Chen et al. 2023, algorithm 2: the step's mixture and the momentum have shares of their own."""
    w = {k: w[k].copy() for k in SHAPES}
    m = {k: np.zeros_like(w[k]) for k in SHAPES}
    trace = []
    for t in range(STEPS):
        for k in SHAPES:
            d = grad(g[t][k], w[k])
            update = np.sign(beta1 * m[k] + (1 - beta1) * d)
            w[k] = w[k] - rate * FACTORS[t] * (update + (weight_decay if k in DECAYS else 0.0) * w[k])
            m[k] = beta2 * m[k] + (1 - beta2) * d
        trace.append({k: w[k].copy() for k in SHAPES})
    return trace


def newton_schulz(x, steps):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = x / (np.sqrt((x**2).sum()) + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + b * gram @ x + c * gram @ gram @ x
    return x


def muon(w, g, rate, momentum, nesterov, steps, scale, weight_decay, adamw_rate, adamw_decay):
    """kellerjordan.github.io/posts/muon; the mean is a convex combination, as its author's code has it. X^T gives the transposed result."""
    rest = adamw([k for k in SHAPES if k not in HIDDEN], w, g, adamw_rate, 0.8, 0.95, 1e-10, adamw_decay)
    w = {k: w[k].copy() for k in SHAPES}
    mean = {k: np.zeros_like(w[k]) for k in HIDDEN}
    trace = []
    for t in range(STEPS):
        for k in HIDDEN:
            d = grad(g[t][k], w[k])
            mean[k] = momentum * mean[k] + (1 - momentum) * d
            update = (1 - momentum) * d + momentum * mean[k] if nesterov else mean[k]
            rows, cols = update.shape
            size = math.sqrt(max(1, rows / cols)) if scale == "spectral" else 0.2 * math.sqrt(max(rows, cols))
            eta = rate * FACTORS[t]
            w[k] = w[k] - eta * weight_decay * w[k] - eta * size * newton_schulz(update, steps)
        trace.append({k: (w[k].copy() if k in HIDDEN else rest[t][k]) for k in SHAPES})
    return trace


def flat(x):
    return None if x is None else [float(v) for v in np.asarray(x).reshape(-1)]


def main():
    w, g = inputs()
    cases = []

    def add(name, options, trace):
        cases.append({"name": name, "options": options, "trace": [{k: flat(v) for k, v in t.items()} for t in trace]})

    for o in [dict(learning_rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1), dict(learning_rate=0.03, beta1=0.5, beta2=0.999, epsilon=1e-3, weight_decay=0.0)]:
        add("adamw", o, adamw(list(SHAPES), w, g, o["learning_rate"], o["beta1"], o["beta2"], o["epsilon"], o["weight_decay"]))
    for o in [dict(learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.01), dict(learning_rate=0.1, momentum=0.8, nesterov=False, weight_decay=0.0),
              dict(learning_rate=0.05, momentum=0.0, nesterov=False, weight_decay=0.1)]:
        add("sgd", o, sgd(w, g, o["learning_rate"], o["momentum"], o["nesterov"], o["weight_decay"]))
    for o in [dict(learning_rate=0.01, beta1=0.9, beta2=0.99, weight_decay=0.5), dict(learning_rate=0.1, beta1=0.5, beta2=0.8, weight_decay=0.0)]:
        add("lion", o, lion(w, g, o["learning_rate"], o["beta1"], o["beta2"], o["weight_decay"]))
    for o in [dict(learning_rate=0.02, momentum=0.95, nesterov=True, newton_schulz_steps=5, scale="spectral", weight_decay=0.1, adamw_learning_rate=0.003, adamw_weight_decay=0.05),
              dict(learning_rate=0.02, momentum=0.9, nesterov=False, newton_schulz_steps=3, scale="rms", weight_decay=0.0, adamw_learning_rate=0.01, adamw_weight_decay=0.0)]:
        add("muon", o, muon(w, g, o["learning_rate"], o["momentum"], o["nesterov"], o["newton_schulz_steps"], o["scale"], o["weight_decay"], o["adamw_learning_rate"],
                            o["adamw_weight_decay"]))
    head = {"shapes": {k: list(s) for k, s in SHAPES.items()}, "decays": sorted(DECAYS), "hidden": sorted(HIDDEN), "factors": FACTORS,
            "weights": {k: flat(v) for k, v in w.items()}, "gradients": [{k: flat(v) for k, v in x.items()} for x in g]}
    # A case a line, so that two branches that add cases merge.
    print(json.dumps(head, separators=(",", ":"))[:-1] + ',"optimizers":[')
    print(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]}")


if __name__ == "__main__":
    main()
