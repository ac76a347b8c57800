#!/usr/bin/env python3
"""Adds up the test cases of test programs and prints "N passed, N failed, N skipped".

usage: count_tests.py [--lacking FOLDER] FILE... [--again FILE...]

A FILE is meson-logs/testlog.json, or the output of one program followed by "exit status: N".
doctest programs report "test cases: 5 | 5 passed | 0 failed", black-box programs print the same
line; each line that begins with "SKIPPED: " turns one passed case into a skipped one. A program that
ended without a summary, without a single case, or badly for all its good summary counts as one
failed case; a FILE that is absent holds no program. Exit status 1 if a case failed or nothing ran.

Files after --again hold cases that were skipped in the others and ran once more: they are counted in place of the skips.
--lacking FOLDER: tests found nothing in this folder. If they had to skip more than one case in twenty for that, this is
a failure: a clone must be able to test itself.
"""
import json
import os
import re
import sys

SUMMARY = re.compile(r"^.*test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed", re.MULTILINE)
MOST_LACKING = 20
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def programs(path):
    """(name, succeeded, output) of each program in a log; nothing if the log does not exist."""
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


class Counts:
    """Test cases of the programs in these files."""

    def __init__(self, paths):
        self.passed = self.failed = self.skipped = 0
        self.reasons = []
        for path in paths:
            for program in programs(path):
                self.add(*program)

    def add(self, name, ended_well, output):
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
        self.reasons += skips
        self.skipped += min(len(skips), good)
        self.passed += good - min(len(skips), good)
        self.failed += bad


def main():
    arguments, lacking = sys.argv[1:], None
    if arguments[:1] == ["--lacking"]:
        lacking, arguments = arguments[1], arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    split = arguments.index("--again") if "--again" in arguments else len(arguments)
    first = Counts(arguments[:split])
    again = Counts(arguments[split + 1:])
    passed, failed = first.passed + again.passed, first.failed + again.failed
    skipped = first.skipped - again.passed - again.failed
    if lacking:
        lack = sum(f"{lacking}/" in reason for reason in first.reasons)
        cases = first.passed + first.failed + first.skipped
        print(f"without large data: {first.passed} passed, {first.failed} failed, {first.skipped} skipped, "
              f"{lack} of them for lack of it")
        if lack * MOST_LACKING > cases:
            print(f"FAILED: more than one test case in {MOST_LACKING} cannot run in a clone without large data")
            failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed + skipped == 0 else 0


sys.exit(main())
