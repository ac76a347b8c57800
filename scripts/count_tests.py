#!/usr/bin/env python3
"""Adds up the test cases of a meson test run and prints "N passed, N failed, N skipped".

usage: count_tests.py build/meson-logs/testlog.json

doctest programs report "test cases: 5 | 5 passed | 0 failed", black-box programs print the same
line; each line that begins with "SKIPPED: " turns one passed case into a skipped one. A program that
ended without a summary counts as one failed case.
"""
import json
import re
import sys

SUMMARY = re.compile(r"test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def main():
    passed = failed = skipped = 0
    with open(sys.argv[1], encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            output = COLOUR.sub("", test.get("stdout", ""))
            skips = re.findall(r"^SKIPPED: .*$", output, re.MULTILINE)
            for skip in skips:
                print(f"{test['name']}: {skip}")
            found = SUMMARY.search(output)
            good = int(found.group(2)) if found else 0
            bad = int(found.group(3)) if found else 1
            if test["result"] not in ("OK", "SKIP") and bad == 0:
                bad = 1  # crashed or timed out after its summary
            skipped += min(len(skips), good)
            passed += good - min(len(skips), good)
            failed += bad
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed + failed == 0 else 0


sys.exit(main())
