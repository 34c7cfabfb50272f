#!/usr/bin/env python3
"""Reference numbers for schedules, in float64, from the papers' formulas.

Run in this folder: python3 schedules.py > schedules.json
Each case is a run of 40 updates: [step, fraction of the budget, factor] before each, and at the end of the budget.
"""
import json
import math

TOTAL = 40


def rise(o, step, f):
    """Linear warm-up, never zero: in updates from 1 / warmup_steps, in fractions from 0.01."""
    if o.get("warmup_steps"):
        return min(1.0, (step + 1) / o["warmup_steps"])
    return min(1.0, max(0.01, f / o["warmup"])) if o.get("warmup") else 1.0


def left(o, f):
    """What is left of that part of the budget which follows the warm-up: 1 to 0."""
    w = o.get("warmup", 0.0)
    return min(1.0, max(0.0, (1 - f) / (1 - w)))


def to_final(o, x):
    return o.get("final", 0.0) * (1 - x) + x


def constant(o, f):
    return 1.0


def linear(o, f):
    """Budgeted Training (1905.04753), table 1."""
    return to_final(o, left(o, f))


def cosine(o, f):
    """SGDR (1608.03983), equation 5, one cycle."""
    return to_final(o, (1 + math.cos(math.pi * (1 - left(o, f)))) / 2)


def wsd(o, f):
    """2405.18392's section on cool-down shapes: n steps since its start of m."""
    n, m = f - (1 - o["cooldown"]), o["cooldown"]
    if n <= 0:
        return 1.0
    return to_final(o, 1 - math.sqrt(n / m) if o.get("shape") == "one_minus_sqrt" else 1 - n / m)


def step(o, f):
    """He et al. 2015, section 3.4: divided at each milestone; counted one by one."""
    rate = 1.0
    for milestone in o["milestones"].split(","):
        if f >= float(milestone):
            rate *= o["factor"]
    return rate


def exponential(o, f):
    """gamma = final^(1 / n), once for each of the n = (1 - warm-up) 40 updates, also a broken number of them."""
    updates = TOTAL * (1 - o.get("warmup", 0.0))
    gamma = math.exp(math.log(o["final"]) / updates)
    return math.exp(math.log(gamma) * updates * (1 - left(o, f)))


def polynomial(o, f):
    """DeepLab (1606.00915), section 4.3: (1 - iter / max_iter)^power."""
    return to_final(o, left(o, f) ** o["power"])


def cosine_restarts(o, f):
    """SGDR (1608.03983), equation 5 and section 3: T_cur since the last restart of T_i; T_i grows by T_mult at each."""
    budget = 1 - o.get("warmup", 0.0)
    t = budget * (1 - left(o, f))
    t_i = budget / sum(o["growth"] ** i for i in range(o["cycles"]))
    for i in range(o["cycles"]):
        if i == o["cycles"] - 1 or t < t_i - 1e-12:
            break
        t -= t_i
        t_i *= o["growth"]
    return to_final(o, (1 + math.cos(math.pi * max(t, 0.0) / t_i)) / 2)


def one_cycle(o, f):
    """1708.07120: from start up to 1, then down to final; half cosines or straight lines, by the end points of each part."""
    (f0, y0), (f1, y1) = ((0.0, o["start"]), (o["rise"], 1.0)) if f < o["rise"] else ((o["rise"], 1.0), (1.0, o["final"]))
    x = (f - f0) / (f1 - f0)
    if o.get("shape") != "linear":
        x = math.sin(math.pi * x / 2) ** 2
    return y0 * (1 - x) + y1 * x


def cyclic(o, f):
    """CLR (1506.01186), section 3.2: cycle = floor(1 + it / (2 stepsize)), x = |it / stepsize - 2 cycle + 1|."""
    stepsize = TOTAL / o["cycles"] / 2
    iteration = f * TOTAL
    cycle = math.floor(1 + iteration / (2 * stepsize))
    x = abs(iteration / stepsize - 2 * cycle + 1)
    scale = 1 / 2 ** (cycle - 1) if o.get("shape") == "triangular2" else 1.0
    return o["least"] + (1 - o["least"]) * max(0.0, 1 - x) * scale


def rex(o, f):
    """REX (2107.04197), section 4: z = t / T, (1 - z) / (1/2 + 1/2 (1 - z))."""
    z = 1 - left(o, f)
    return to_final(o, (1 - z) / (1 / 2 + 1 / 2 * (1 - z)))


CASES = [
    (constant, {"warmup_steps": 4}), (constant, {"warmup": 0.1}),
    (linear, {}), (linear, {"warmup": 0.1, "final": 0.1}), (linear, {"warmup_steps": 5}),
    (cosine, {"warmup": 0.2}), (cosine, {"final": 0.05, "warmup_steps": 3}),
    (wsd, {"warmup": 0.05, "cooldown": 0.25}), (wsd, {"cooldown": 0.5, "shape": "one_minus_sqrt", "final": 0.02}),
    (step, {"milestones": "0.3,0.6, 0.9", "factor": 0.1}), (step, {"milestones": "0.5", "factor": 0.25, "warmup": 0.1}),
    (exponential, {"final": 0.01}), (exponential, {"final": 0.2, "warmup": 0.15}),
    (polynomial, {"power": 0.9}), (polynomial, {"power": 2.0, "final": 0.1, "warmup_steps": 4}), (polynomial, {"power": 0.5, "warmup": 0.25}),
    (cosine_restarts, {"cycles": 3, "growth": 2.0}), (cosine_restarts, {"cycles": 5, "growth": 1.0, "final": 0.1, "warmup_steps": 2}),
    (cosine_restarts, {"cycles": 2, "growth": 3.0, "warmup": 0.2}),
    (one_cycle, {"start": 0.04, "rise": 0.3, "final": 0.0}), (one_cycle, {"start": 0.1, "rise": 0.45, "final": 0.01, "shape": "linear"}),
    (cyclic, {"cycles": 4, "least": 0.1}), (cyclic, {"cycles": 5, "least": 0.25, "shape": "triangular2"}),
    (rex, {}), (rex, {"final": 0.1, "warmup": 0.1}),
]


def plateau(o, losses):
    """Written from the words: count evaluations since the best by more than the threshold; those of a cool-down count as none."""
    best, since, free_until, rate, rates = math.inf, 0, -1, 1.0, []
    for i, loss in enumerate(losses):
        better = loss < best - best * o["threshold"] if best < math.inf else loss < math.inf
        best = loss if better else best
        since = 0 if better or i <= free_until else since + 1
        if since == o["patience"] + 1:
            rate, since, free_until = max(o["least"], rate * o["factor"]), 0, i + o["cooldown"]
        rates.append(rate)
    return rates


PLATEAU_LOSSES = [3.0, 2.5, 2.4995, 2.499, 2.4999, 2.2, 2.3, 2.2, 2.1999, 2.25, 2.19, 2.5, 2.4, 2.3, 2.2, 2.19, 2.1, 2.1, 2.1, 2.1, 2.1, 2.1, 2.1, 2.1, 1.0, 1.0, 1.0, 1.0]
PLATEAU_CASES = [
    {"factor": 0.5, "patience": 2, "cooldown": 0, "threshold": 1e-3, "least": 0.001},
    {"factor": 0.1, "patience": 0, "cooldown": 3, "threshold": 1e-2, "least": 0.02},
    {"factor": 0.3, "patience": 1, "cooldown": 1, "threshold": 0.0, "least": 0.0},
]


def main():
    cases = []
    for shape, options in CASES:
        points = [[step, step / TOTAL, rise(options, step, step / TOTAL) * shape(options, step / TOTAL)] for step in range(TOTAL + 1)]
        cases.append({"name": shape.__name__, "options": options, "points": points})
    plateaus = [{"options": o, "losses": PLATEAU_LOSSES, "factors": plateau(o, PLATEAU_LOSSES)} for o in PLATEAU_CASES]
    print(json.dumps({"schedules": cases, "plateau": plateaus}, separators=(",", ":")))


if __name__ == "__main__":
    main()
