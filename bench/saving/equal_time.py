#!/usr/bin/env python3
"""What a technique is worth at equal time: huajin runs it and the baseline, interleaved, with the same budget in seconds, and writes the record that cards quote.

    bench/saving/equal_time.py --program build/release/huajin --data FILE --budget 20s --seeds 1,2,3 --record 2026-12-01_first_techniques \\
        ema 'ema.decay=0.99' sam clip

Each argument is one arm: a technique's name, or settings key=value separated by commas; a technique's own keys enable it. The baseline is the same command without it.
Everything is the recipe's own choice otherwise, also for the arms: nobody tuned them, and the record says so. p-values: Welch's t-test, two-sided.
Python's standard library only; not needed to train.
"""
import argparse, json, math, os, statistics, subprocess, sys, tempfile


def run(program, arguments, runs, name):
    subprocess.run([program, "train", *arguments, "--runs-dir", runs, "--run", name, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(runs, name, "result.json")) as file:
        return json.load(file)


def settings_of(arm):
    if "=" not in arm:
        return ["--set", f"techniques=[\"{arm}\"]"]
    return [part for setting in arm.split(",") for part in ("--set", setting)]


def beta_fraction(a, b, x):
    """Continued fraction of the incomplete beta function (Lentz)."""
    tiny, c, d = 1e-300, 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 300):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= d * c
    return h


def incomplete_beta(a, b, x):
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def welch(x, y):
    if len(x) < 2 or len(y) < 2:
        return float("nan")
    vx, vy = statistics.variance(x) / len(x), statistics.variance(y) / len(y)
    if vx + vy == 0:
        return 1.0 if statistics.mean(x) == statistics.mean(y) else 0.0
    t = (statistics.mean(x) - statistics.mean(y)) / math.sqrt(vx + vy)
    freedom = (vx + vy) ** 2 / (vx ** 2 / (len(x) - 1) + vy ** 2 / (len(y) - 1))
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def main():
    arg = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arg.add_argument("--program", default="./huajin")
    arg.add_argument("--data", required=True)
    arg.add_argument("--budget", default="20s")
    arg.add_argument("--seeds", default="1,2,3")
    arg.add_argument("--metric", default="val_bits_per_byte", help="of result.json; val_accuracy: larger is better")
    arg.add_argument("--base", default="", help="settings of all arms, separated by commas")
    arg.add_argument("--record", required=True, help="folder name below bench/records")
    arg.add_argument("arms", nargs="+")
    a = arg.parse_args()
    seeds = [int(s) for s in a.seeds.split(",")]
    common = ["--data", a.data, "--budget", a.budget] + (settings_of(a.base) if a.base else [])
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "records", a.record)
    os.makedirs(folder, exist_ok=True)
    results = {arm: [] for arm in ["baseline", *a.arms]}
    with tempfile.TemporaryDirectory() as runs:
        for seed in seeds:  # interleaved: what the machine does meanwhile meets all arms
            for i, arm in enumerate(results):
                extra = [] if arm == "baseline" else settings_of(arm)
                result = run(a.program, [*common, "--seed", str(seed), *extra], runs, f"{i}-{seed}")
                results[arm].append(result)
                print(f"seed {seed}  {arm:40} {a.metric} {result[a.metric]}  steps {result['steps']}", flush=True)
    with open(os.path.join(folder, "results.jsonl"), "w") as file:
        for arm, rows in results.items():
            for row in rows:
                row = {key: value for key, value in row.items() if key not in ("checkpoint", "run")}
                file.write(json.dumps({"arm": arm, **row}) + "\n")
    base = [row[a.metric] for row in results["baseline"]]
    sign = -1 if a.metric == "val_accuracy" else 1
    lines = [f"# {a.record}", "", f"`{' '.join(['bench/saving/equal_time.py', *sys.argv[1:]])}`", "",
             f"{os.cpu_count()} cores, {len(seeds)} seeds, equal time ({a.budget}, all in), arms interleaved, nobody tuned. Metric: {a.metric}.", "",
             "| arm | mean | against baseline | p | steps | peak MB | verdict |", "|---|---|---|---|---|---|---|"]
    for arm, rows in results.items():
        values = [row[a.metric] for row in rows]
        mean, p = statistics.mean(values), welch(values, base)
        gain = sign * (statistics.mean(base) - mean)
        verdict = "" if arm == "baseline" else "pays" if gain > 0 and p < 0.05 else "loses" if gain < 0 and p < 0.05 else "no difference shown"
        lines.append(f"| {arm} | {mean:.4f} | {mean - statistics.mean(base):+.4f} | {p:.3f} | {statistics.mean(r['steps'] for r in rows):.0f} | "
                     f"{max(r['peak_rss_mb'] for r in rows):.0f} | {verdict} |")
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
