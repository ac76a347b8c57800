#!/usr/bin/env python3
"""Runs the test cases that lacked large data once more, now with the folder that has it.

usage: test_again.py TESTLOG LACKING SHARED OUT

TESTLOG is meson-logs/testlog.json of a run with FINETUNE_SHARED=LACKING, a folder that does not exist. A test case that
was skipped since it found nothing below LACKING runs again with FINETUNE_SHARED=SHARED, and no other case does. OUT gets
one line for each program, in the form of TESTLOG; tests/count_tests.py counts both.
"""
import json
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

AT_ONCE = 2  # programs; the largest data need a gigabyte of memory


def lacking_cases(output, folder):
    """Names of the skipped test cases whose reason is a path below the folder."""
    return re.findall(rf"^SKIPPED: (.+?): {re.escape(folder)}/.* is absent$", output, re.MULTILINE)


def only(command, names):
    """The command that runs only these cases: doctest takes a list of patterns, our Python tests take names."""
    if command[-1].endswith(".py"):
        return [*command, *names]
    patterns = [re.sub(r'[,"*?\[\]\\]', "?", name) for name in names]
    return [*command, "--test-case=" + ",".join(patterns)]


def run_again(test, names, shared):
    began = time.time()
    command = only(test["command"], names)
    done = subprocess.run(command, env={**test["env"], "FINETUNE_SHARED": shared}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    print(f"{test['name']}: {len(names)} again, {time.time() - began:.1f} s", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return {"name": f"{test['name']}, with large data", "result": "OK" if done.returncode == 0 else "FAIL",
            "stdout": done.stdout}


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    log, lacking, shared, out = sys.argv[1:]
    with open(log, encoding="utf-8", errors="replace") as lines:
        tests = [(test, lacking_cases(test.get("stdout", ""), lacking)) for test in map(json.loads, lines)]
    with ThreadPoolExecutor(AT_ONCE) as pool, open(out, "w", encoding="utf-8") as file:
        for result in pool.map(lambda each: run_again(*each, shared), [each for each in tests if each[1]]):
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
