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


CASES = [
    (constant, {"warmup_steps": 4}), (constant, {"warmup": 0.1}),
    (linear, {}), (linear, {"warmup": 0.1, "final": 0.1}), (linear, {"warmup_steps": 5}),
    (cosine, {"warmup": 0.2}), (cosine, {"final": 0.05, "warmup_steps": 3}),
    (wsd, {"warmup": 0.05, "cooldown": 0.25}), (wsd, {"cooldown": 0.5, "shape": "one_minus_sqrt", "final": 0.02}),
]


def main():
    cases = []
    for shape, options in CASES:
        points = [[step, step / TOTAL, rise(options, step, step / TOTAL) * shape(options, step / TOTAL)] for step in range(TOTAL + 1)]
        cases.append({"name": shape.__name__, "options": options, "points": points})
    print(json.dumps({"schedules": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
