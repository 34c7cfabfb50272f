#!/usr/bin/env python3
"""Whether the best learning rate of a narrow model is that of a wide one, with muP and without: huajin trains each width at each rate for the same steps; final validation loss.

    bench/saving/mup_transfer.py --program build/release/huajin --data FILE --steps 80 --record 2026-12-01_mup_transfer

Everything but width, rate and mup is the same. Writes results.jsonl and the table of README.md into bench/records/RECORD. Python's standard library only; not needed to train.
--before 'CMD' is put in front of each run (a machine's job slot).
"""
import argparse, json, math, os, shlex, subprocess, tempfile

BASE = 64
MODEL = ["model.name=llama", "model.layers=2", "model.heads=2", "batch.rows=4", "batch.length=64", "data.tokenizer=characters", "optimizer=adamw", "schedule=linear",
         "precision=fp32", "evaluation.overlap=1", "checkpoint.every=never"]


def train(options, runs, width, rate, mup):
    name = f"{'mup' if mup else 'standard'}_{width}_{rate:g}"
    sets = MODEL + [f"model.width={width}", f"optimizer.learning_rate={rate}"] + ([f"mup.base_width={BASE}"] if mup else [])
    command = shlex.split(options.before) + [options.program, "train", "--data", options.data, "--budget", f"{options.steps}step", "--runs-dir", runs, "--run", name, "--quiet"]
    for text in sets:
        command += ["--set", text]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 4):  # 4: diverged
        raise SystemExit(done.stderr)
    loss = math.inf
    if done.returncode == 0:
        with open(os.path.join(runs, name, "result.json")) as file:
            loss = json.load(file).get("val_loss") or math.inf
    return {"width": width, "rate": rate, "mup": mup, "val_loss": loss if math.isfinite(loss) else None}


def table(rows, widths, rates):
    lines = ["| | width | " + " | ".join(f"{r:g}" for r in rates) + " | best |", "|---" * (len(rates) + 3) + "|"]
    for mup in (True, False):
        for width in widths:
            losses = {r["rate"]: r["val_loss"] for r in rows if r["width"] == width and (r["mup"] == mup or width == BASE)}
            best = min((l, rate) for rate, l in losses.items() if l is not None)[1]
            lines.append(f"| {'mup' if mup else 'standard'} | {width} | " + " | ".join("diverged" if losses[r] is None else f"{losses[r]:.4f}" for r in rates) + f" | {best:g} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--widths", default="64,512")
    parser.add_argument("--rates", default="0.001,0.002,0.004,0.008,0.016,0.032")
    parser.add_argument("--record", required=True)
    parser.add_argument("--before", default="")
    options = parser.parse_args()
    widths, rates = [int(w) for w in options.widths.split(",")], [float(r) for r in options.rates.split(",")]
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "records", options.record)
    os.makedirs(folder, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as runs, open(os.path.join(folder, "results.jsonl"), "w") as file:
        for width in widths:
            for mup in (True, False):
                if width == BASE and not mup:
                    continue  # the same run
                for rate in rates:
                    rows.append(train(options, runs, width, rate, mup))
                    file.write(json.dumps(rows[-1]) + "\n")
                    file.flush()
    command = f"bench/saving/mup_transfer.py --program huajin --data {os.path.basename(options.data)} --steps {options.steps} --widths {options.widths} --rates {options.rates}"
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write(f"# Best learning rate by width, with muP and without\n\nValidation loss (nats a character) after {options.steps} steps, one seed; columns: learning rates. Made by\n\n"
                   f"    {command}\n\nRecipe: {', '.join(MODEL)}; base width {BASE}.\n\n{table(rows, widths, rates)}\n")


if __name__ == "__main__":
    main()
