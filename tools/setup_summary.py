"""Sums up the JUnit files of ctest: python3 setup_summary.py FILE...  Last line "N passed, N failed", with ", N skipped" where some were.

A ctest test that is a GoogleTest program counts as its cases; one that crashed counts as one more failure. Exit 0 only if something passed and nothing failed.
"""
import re
import sys
import xml.etree.ElementTree as tree


def count(case):
    """passed, failed, skipped, names of what failed"""
    name, status = case.get("name"), case.get("status")
    text = "".join(case.itertext())
    passed = len(re.findall(r"^\[       OK \] ", text, re.M))
    # At its end GoogleTest lists failures again, without a time: "[  FAILED  ] Suite.Name (3 ms)" is the first mention.
    failures = re.findall(r"^\[  FAILED  \] (\S+?)(?:, where .*)? \(\d+ ms\)", text, re.M)
    skipped = len(re.findall(r"^\[  SKIPPED \] \S+ \(\d+ ms\)", text, re.M))
    if status == "fail":
        return passed, max(1, len(failures)), skipped, [f"{name}: {f}" for f in failures] or [name]
    if status in ("notrun", "disabled") or case.find("skipped") is not None:
        if case.find("skipped") is not None and case.find("skipped").get("message", "").startswith("Unable to find"):
            return 0, 1, 0, [f"{name}: its program was not built"]
        return 0, 0, 1, []
    return (passed, 0, skipped, []) if passed or skipped else (1, 0, 0, [])


def main():
    passed = failed = skipped = 0
    wrong = []
    slowest = []
    for path in sys.argv[1:]:
        for case in tree.parse(path).getroot().iter("testcase"):
            p, f, s, names = count(case)
            passed, failed, skipped = passed + p, failed + f, skipped + s
            wrong += names
            slowest.append((float(case.get("time") or 0), case.get("name")))
    print("slowest: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(slowest, reverse=True)[:8]))
    for name in wrong:
        print(f"FAILED {name}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 0 if failed == 0 and passed > 0 else 1


sys.exit(main())
