#!/usr/bin/env python3
"""Adds up the test cases of test programs and prints "N passed, N failed, N skipped".

usage: count_tests.py FILE...

A FILE is meson-logs/testlog.json, or the output of one program followed by "exit status: N".
doctest programs report "test cases: 5 | 5 passed | 0 failed", black-box programs print the same
line; each line that begins with "SKIPPED: " turns one passed case into a skipped one. A program that
ended without a summary, without a single case, or badly for all its good summary counts as one
failed case; a FILE that is absent holds no program. Exit status 1 if a case failed or nothing ran.
"""
import json
import os
import re
import sys

SUMMARY = re.compile(r"^.*test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def programs(path):
    """(name, ended well, output) of each program in a log; of none where there is no log."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8", errors="replace") as log:
        if path.endswith(".json"):
            for test in map(json.loads, log):
                yield test["name"], test["result"] == "OK", test.get("stdout", "")
        else:
            output = log.read()
            name = os.path.splitext(os.path.basename(path))[0]
            yield name, output.rstrip().endswith("exit status: 0"), output


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        for name, ended_well, output in programs(path):
            output = COLOUR.sub("", output)
            skips = re.findall(r"^SKIPPED: .*$", output, re.MULTILINE)
            for skip in skips:
                print(f"{name}: {skip}")
            found = SUMMARY.findall(output)
            good, bad = (int(found[-1][1]), int(found[-1][2])) if found else (0, 0)
            if bad == 0 and (good == 0 or not ended_well):
                bad = 1
            if bad:
                print(f"{name}: FAILED")
            skipped += min(len(skips), good)
            passed += good - min(len(skips), good)
            failed += bad
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed + skipped == 0 else 0


sys.exit(main())
