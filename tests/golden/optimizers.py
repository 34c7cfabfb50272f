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


def run(w, g, step):
    """Runs step(t, name, gradient, weight, state) -> new weight for every tensor; `state` is a dict that starts empty. t counts from 1."""
    w = {k: w[k].copy() for k in SHAPES}
    state = {k: {} for k in SHAPES}
    trace = []
    for t in range(STEPS):
        w = {k: step(t + 1, k, grad(g[t][k], w[k]), w[k], state[k]) for k in SHAPES}
        trace.append({k: w[k].copy() for k in SHAPES})
    return trace


def average(state, name, x, beta):
    state[name] = beta * state.get(name, 0.0) + (1 - beta) * x
    return state[name]


def decay_of(k, weight_decay):
    return weight_decay if k in DECAYS else 0.0


def adam(w, g, learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad):
    """Kingma & Ba 2015, algorithm 1, L2 penalty in the gradient; Reddi et al. 2018: the largest v so far takes v's place."""

    def step(t, k, d, x, s):
        d = d + decay_of(k, weight_decay) * x
        m, v = average(s, "m", d, beta1), average(s, "v", d**2, beta2)
        if amsgrad:
            v = s["largest"] = np.maximum(s.get("largest", 0.0), v)
        return x - learning_rate * FACTORS[t - 1] * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)

    return run(w, g, step)


def rmsprop(w, g, learning_rate, beta, epsilon, momentum, weight_decay, centered):
    """Hinton's lecture 6.5 slide 29; Graves 2013, equations 38 to 41, with epsilon outside the root and the rate outside the velocity."""

    def step(t, k, d, x, s):
        d = d + decay_of(k, weight_decay) * x
        n, mean = average(s, "n", d**2, beta), average(s, "mean", d, beta)
        s["u"] = momentum * s.get("u", 0.0) + d / (np.sqrt(n - mean**2 if centered else n) + epsilon)
        return x - learning_rate * FACTORS[t - 1] * s["u"]

    return run(w, g, step)


def adagrad(w, g, learning_rate, epsilon, initial_sum, weight_decay):
    """Duchi, Hazan & Singer 2011, figure 1, diagonal: G_t is the sum of all squared gradients."""

    def step(t, k, d, x, s):
        d = d + decay_of(k, weight_decay) * x
        s["sum"] = s.get("sum", initial_sum) + d**2
        return x - learning_rate * FACTORS[t - 1] * d / (np.sqrt(s["sum"]) + epsilon)

    return run(w, g, step)


def nadamw(w, g, learning_rate, beta1, beta2, epsilon, weight_decay):
    """Choi et al. 2019, table 1, NAdam: the step takes (b1 m_t + (1 - b1) g_t); corrected with 1 - b1^t; decay as in AdamW."""

    def step(t, k, d, x, s):
        m, v = average(s, "m", d, beta1), average(s, "v", d**2, beta2)
        ahead = (beta1 * m + (1 - beta1) * d) / (1 - beta1**t)
        eta = learning_rate * FACTORS[t - 1]
        return x - eta * decay_of(k, weight_decay) * x - eta * ahead / (np.sqrt(v / (1 - beta2**t)) + epsilon)

    return run(w, g, step)


def adabelief(w, g, learning_rate, beta1, beta2, epsilon, weight_decay):
    """Zhuang et al. 2020, algorithm 2; decay as in AdamW."""

    def step(t, k, d, x, s):
        m = average(s, "m", d, beta1)
        s["s"] = beta2 * s.get("s", 0.0) + (1 - beta2) * (d - m) ** 2 + epsilon
        eta = learning_rate * FACTORS[t - 1]
        return x - eta * decay_of(k, weight_decay) * x - eta * (m / (1 - beta1**t)) / (np.sqrt(s["s"] / (1 - beta2**t)) + epsilon)

    return run(w, g, step)


def schedule_free(w, g, learning_rate, beta1, beta2, epsilon, weight_decay):
    """Defazio et al. 2024, algorithm 1, with x kept; the trace is y, where gradients are taken."""

    def step(t, k, d, y, s):
        z, x = s.get("z", y), s.get("x", y)
        v = average(s, "v", d**2, beta2)
        gamma = learning_rate * FACTORS[t - 1] * math.sqrt(1 - beta2**t)
        s["squares"] = s.get("squares", 0.0) + gamma**2
        c = gamma**2 / s["squares"]
        s["z"] = z - gamma * d / (np.sqrt(v) + epsilon) - gamma * decay_of(k, weight_decay) * y
        s["x"] = (1 - c) * x + c * s["z"]
        return (1 - beta1) * s["z"] + beta1 * s["x"]

    return run(w, g, step)


def radam(w, g, learning_rate, beta1, beta2, epsilon, weight_decay):
    """Liu et al. 2020, algorithm 2; decay as in AdamW."""

    def step(t, k, d, x, s):
        m, v = average(s, "m", d, beta1), average(s, "v", d**2, beta2)
        rho_max = 2 / (1 - beta2) - 1
        rho = rho_max - 2 * t * beta2**t / (1 - beta2**t)
        update = m / (1 - beta1**t)
        if rho > 4:
            r = math.sqrt((rho - 4) * (rho - 2) * rho_max / ((rho_max - 4) * (rho_max - 2) * rho))
            update = r * update / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        eta = learning_rate * FACTORS[t - 1]
        return x - eta * decay_of(k, weight_decay) * x - eta * update

    return run(w, g, step)


def adan(w, g, learning_rate, beta1, beta2, beta3, epsilon, weight_decay):
    """Xie et al. 2022, algorithm 1 without restart; beta_i here is 1 - beta_i there; means corrected for their start at zero; the first change is zero."""

    def step(t, k, d, x, s):
        change = d - s.get("before", d)
        s["before"] = d
        m, v = average(s, "m", d, beta1), average(s, "v", change, beta2)
        n = average(s, "n", (d + beta2 * change) ** 2, beta3)
        eta = learning_rate * FACTORS[t - 1] / (np.sqrt(n / (1 - beta3**t)) + epsilon)
        return (x - eta * (m / (1 - beta1**t) + beta2 * v / (1 - beta2**t))) / (1 + learning_rate * FACTORS[t - 1] * decay_of(k, weight_decay))

    return run(w, g, step)


def norm(x):
    return math.sqrt((x**2).sum())


def lars(w, g, learning_rate, trust, momentum, weight_decay):
    """You, Gitman & Ginsburg 2017, equation 6 and algorithm 1; plain momentum for what does not decay."""

    def step(t, k, d, x, s):
        local = 1.0
        if k in DECAYS:
            if norm(x) > 0 and norm(d) > 0:
                local = trust * norm(x) / (norm(d) + weight_decay * norm(x))
            d = d + weight_decay * x
        s["v"] = momentum * s.get("v", 0.0) + learning_rate * FACTORS[t - 1] * local * d
        return x - s["v"]

    return run(w, g, step)


def lamb(w, g, learning_rate, beta1, beta2, epsilon, weight_decay, normalize_gradient, bias_correction, trust_clip):
    """You et al. 2020, algorithm 2, phi the identity; plain Adam for what does not decay."""
    if normalize_gradient:
        totals = [math.sqrt(sum(norm(x) ** 2 for x in one.values() if x is not None)) for one in g]
        g = [{k: None if x is None else x / total for k, x in one.items()} for one, total in zip(g, totals)]

    def step(t, k, d, x, s):
        m, v = average(s, "m", d, beta1), average(s, "v", d**2, beta2)
        if bias_correction:
            m, v = m / (1 - beta1**t), v / (1 - beta2**t)
        update, ratio = m / (np.sqrt(v) + epsilon), 1.0
        if k in DECAYS:
            update = update + weight_decay * x
            ratio = norm(x) / norm(update)
            ratio = min(ratio, 1.0) if trust_clip else ratio
        return x - learning_rate * FACTORS[t - 1] * ratio * update

    return run(w, g, step)


def adafactor(w, g, learning_rate, decay_exponent, clip, epsilon, relative_step, least_scale, weight_decay):
    """Shazeer & Stern 2018, algorithms 4 and 5 with sums of rows and columns; decay as in AdamW with the rate before the relative scale."""

    def rms(x):
        return math.sqrt((x**2).mean())

    def step(t, k, d, x, s):
        beta = 1 - t ** (-decay_exponent)
        square = d**2 + epsilon
        if x.ndim == 2:
            r, c = average(s, "r", square.sum(1), beta), average(s, "c", square.sum(0), beta)
            v = np.outer(r, c) / r.sum()
        else:
            v = average(s, "v", square, beta)
        u = d / np.sqrt(v)
        u = u / max(1.0, rms(u) / clip) if clip else u
        rho = learning_rate * FACTORS[t - 1]
        return x - rho * decay_of(k, weight_decay) * x - (max(least_scale, rms(x)) if relative_step else 1.0) * rho * u

    return run(w, g, step)


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
    for function, options in [
        (adam, dict(learning_rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1, amsgrad=False)),
        (adam, dict(learning_rate=0.03, beta1=0.5, beta2=0.8, epsilon=1e-3, weight_decay=0.01, amsgrad=True)),
        (rmsprop, dict(learning_rate=0.01, beta=0.9, epsilon=1e-8, momentum=0.0, weight_decay=0.0, centered=False)),
        (rmsprop, dict(learning_rate=0.01, beta=0.6, epsilon=1e-3, momentum=0.8, weight_decay=0.1, centered=True)),
        (rmsprop, dict(learning_rate=0.01, beta=0.6, epsilon=1e-3, momentum=0.0, weight_decay=0.1, centered=True)),
        (rmsprop, dict(learning_rate=0.01, beta=0.6, epsilon=1e-6, momentum=0.5, weight_decay=0.0, centered=False)),
        (adagrad, dict(learning_rate=0.1, epsilon=1e-10, initial_sum=0.0, weight_decay=0.1)),
        (adagrad, dict(learning_rate=0.1, epsilon=1e-3, initial_sum=0.1, weight_decay=0.0)),
        (nadamw, dict(learning_rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1)),
        (nadamw, dict(learning_rate=0.03, beta1=0.5, beta2=0.999, epsilon=1e-3, weight_decay=0.0)),
        (adabelief, dict(learning_rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1)),
        (adabelief, dict(learning_rate=0.03, beta1=0.5, beta2=0.999, epsilon=1e-3, weight_decay=0.0)),
        (schedule_free, dict(learning_rate=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8, weight_decay=0.1)),
        (schedule_free, dict(learning_rate=0.03, beta1=0.5, beta2=0.999, epsilon=1e-3, weight_decay=0.0)),
        (radam, dict(learning_rate=0.01, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.1)),
        (radam, dict(learning_rate=0.01, beta1=0.5, beta2=0.9, epsilon=1e-3, weight_decay=0.0)),
        (radam, dict(learning_rate=0.01, beta1=0.5, beta2=0.6, epsilon=1e-3, weight_decay=0.0)),
        (adan, dict(learning_rate=0.05, beta1=0.98, beta2=0.92, beta3=0.99, epsilon=1e-8, weight_decay=0.1)),
        (adan, dict(learning_rate=0.05, beta1=0.5, beta2=0.0, beta3=0.8, epsilon=1e-3, weight_decay=0.0)),
        (lars, dict(learning_rate=1.0, trust=0.01, momentum=0.9, weight_decay=0.01)),
        (lars, dict(learning_rate=0.5, trust=0.1, momentum=0.0, weight_decay=0.0)),
        (lamb, dict(learning_rate=0.05, beta1=0.9, beta2=0.95, epsilon=1e-6, weight_decay=0.1, normalize_gradient=False, bias_correction=True, trust_clip=False)),
        (lamb, dict(learning_rate=0.05, beta1=0.9, beta2=0.99, epsilon=1e-3, weight_decay=0.0, normalize_gradient=True, bias_correction=False, trust_clip=True)),
        (lamb, dict(learning_rate=0.05, beta1=0.5, beta2=0.8, epsilon=1e-6, weight_decay=0.5, normalize_gradient=True, bias_correction=True, trust_clip=False)),
        (adafactor, dict(learning_rate=0.05, decay_exponent=0.8, clip=1.0, epsilon=1e-30, relative_step=True, least_scale=1e-3, weight_decay=0.1)),
        (adafactor, dict(learning_rate=0.05, decay_exponent=0.5, clip=0.0, epsilon=1e-4, relative_step=False, least_scale=1e-3, weight_decay=0.0)),
        (adafactor, dict(learning_rate=0.05, decay_exponent=1.0, clip=0.3, epsilon=1e-8, relative_step=True, least_scale=0.9, weight_decay=0.0)),
    ]:
        add(function.__name__, options, function(w, g, **options))
    head = {"shapes": {k: list(s) for k, s in SHAPES.items()}, "decays": sorted(DECAYS), "hidden": sorted(HIDDEN), "factors": FACTORS,
            "weights": {k: flat(v) for k, v in w.items()}, "gradients": [{k: flat(v) for k, v in x.items()} for x in g]}
    # A case a line, so that two branches that add cases merge.
    print(json.dumps(head, separators=(",", ":"))[:-1] + ',"optimizers":[')
    print(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]}")


if __name__ == "__main__":
    main()
