#!/usr/bin/env python3
"""Writes the Evidence section of each technique's card from the records that equal_time.py left: bench/saving/write_evidence.py

A record belongs to a technique if one of its arms names it; techniques that the default recipe uses get the arms that replace them. Standard library only.
"""
import glob, json, os, re, statistics
from equal_time import welch

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BY_KEY = {"micro_rows": "accumulation", "recompute": "rematerialization", "precision": "mixed_precision"}  # recipe keys that are no table of their own
PARTS = {"optimizer", "schedule"}  # the default recipe has one of each: another one replaces it


def technique_of(arm):
    """Technique an arm tries, and which part of the recipe it replaces ("" : none)."""
    for setting in arm.split(","):
        key, _, value = setting.partition("=")
        table, _, name = key.partition(".")
        if table in PARTS and name == "name":
            return value.strip('"'), table
        for part in (name, table):
            if part in BY_KEY:
                return BY_KEY[part], ""
    return arm.partition(".")[0].partition("=")[0], ""


def rows_of(folder):
    results = {}
    with open(os.path.join(folder, "results.jsonl")) as file:
        for line in file:
            row = json.loads(line)
            results.setdefault(row["arm"], []).append(row)
    with open(os.path.join(folder, "README.md")) as file:
        metric = re.search(r"Metric: (\w+)", file.read())[1]
    base = [row[metric] for row in results.pop("baseline")]
    recipe = results[next(iter(results))][0]["recipe"]
    data, budget = (re.search(pattern, recipe)[1] for pattern in (r'path = ".*?([^/"]+)"', r'limit = "(.*?)"'))
    for arm, rows in results.items():
        values = [row[metric] for row in rows]
        effect, p = statistics.mean(values) - statistics.mean(base), welch(values, base)
        better = effect > 0 if metric == "val_accuracy" else effect < 0
        verdict = "no difference shown" if not p < 0.05 else "pays" if better else "loses"
        name, part = technique_of(arm)
        yield name, part, f"| [{os.path.basename(folder)}](ROOT/bench/records/{os.path.basename(folder)}) | {data}, {budget}, {len(values)} seeds | `{arm}` | " \
                          f"{metric} {statistics.mean(base):.4f} -> {statistics.mean(values):.4f} | {p:.3f} | {verdict} |"


def main():
    table, replaced = {}, {}
    for folder in sorted(glob.glob(os.path.join(ROOT, "bench/records/*_techniques_*"))):
        defaults = {part: None for part in PARTS}
        with open(os.path.join(folder, "results.jsonl")) as file:
            first = json.loads(file.readline())["recipe"]
        for part in PARTS:
            defaults[part] = re.search(r"\[" + part + r"\]\nname = \"(\w+)\"", first)[1]
        for name, part, line in rows_of(folder):
            table.setdefault(name, []).append(line)
            if part:
                replaced.setdefault(defaults[part], []).append(line)
    for card in glob.glob(os.path.join(ROOT, "src/huajin/*/*/*/README.md")):
        name, lines = os.path.basename(os.path.dirname(card)), []
        if name in table:
            lines += ["At equal time, against the default recipe; nobody tuned either side:", ""] + header() + table[name]
        if name in replaced:
            lines += ([""] if lines else []) + ["The default recipe uses it. What another in its place does, at equal time:", ""] + header() + replaced[name]
        if not lines:
            continue
        root = os.path.relpath(ROOT, os.path.dirname(card))
        with open(card) as file:
            text = file.read()
        text = re.sub(r"## Evidence\n.*", lambda _: "## Evidence\n\nEvidence: bench/records\n\n" + "\n".join(lines).replace("ROOT", root) + "\n", text, flags=re.S)
        with open(card, "w") as file:
            file.write(text)


def header():
    return ["| record | task | arm | baseline -> arm | p | verdict |", "|---|---|---|---|---|---|"]


if __name__ == "__main__":
    main()
