#!/usr/bin/env python3
"""Prints the tests of a build folder that a change needs, and the files that they must have built.

usage: select_tests.py BUILD fast
       select_tests.py BUILD changed < FILES      (paths from the project's root, one a line)

Output: a line "test NAME" for each test, then a line "build FILE" for each program. `fast` means the tests that
tests/*/meson.build puts into the suite `fast`; a change needs these, and what NEEDS names for its files.
"""
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

ALL = "*"
# Of several lines that fit a changed file, the first counts. A pattern is of a test's name, or of its script's path.
NEEDS = [
    ("src/core/*", "unit-*"),
    ("src/ops/cuda/*", "unit-cu* *cuda*"),
    ("src/ops/*", "unit-ops* unit-tile* unit-cuda-kernels* unit-model cli-trajectory"),
    ("src/model/*", "unit-model unit-cuda-model unit-engine unit-stage-passes cli-trajectory cli-late_updates mpi-tensor*"),
    ("src/weights/*", "unit-weights unit-engine cli-convert cli-tensor_shards cli-hub cli-bad_hdf5 tests/cli/models/*"),
    ("src/comm/*", "unit-comm mpi-*"),
    ("src/distributed/*", "unit-distributed mpi-*"),
    ("src/engine/*", "unit-engine unit-cuda-model cli-train cli-convert tests/cli/models/*"),
    ("src/inference/*", "unit-inference cli-predict cli-evaluate cli-memory mpi-*inference"),
    ("src/experiments/report/*", "unit-experiments cli-report cli-results"),
    ("src/experiments/compare/*", "unit-experiments cli-compare cli-sweep_results cli-report"),
    ("src/experiments/*", "unit-experiments cli-sweep* mpi-sweep"),
    ("src/train/plan/*", "unit-train cli-plan cli-layout_plan cli-bench"),
    ("src/train/*", "unit-train unit-stage-passes cli-train cli-resume cli-options cli-late_updates cli-checkpoint* "
                    "tests/cli/experiments/* mpi-train mpi-pipeline cli-reference"),
    ("src/bench/*", "cli-bench mpi-layout-bench"),
    ("src/cli/*", "unit-cli cli-command_line cli-options cli-completion cli-reference cli-tools "
                  "cli-first_contact"),
    ("tasks/*", "unit-tasks cli-train cli-evaluate cli-predict cli-tables tests/cli/quality/*"),
    ("data/samples/*", "cli-guide"),
    ("data/*", "unit-data unit-tasks cli-tables cli-pipe tests/cli/hostile/* cli-bank_exports"),
    ("tokenizer/*", "unit-tokenizer unit-tasks cli-tools"),
    ("tests/unit/*/*", "unit-{1}*"),
    ("tests/cli/*_test.py", "{path}"),
    ("tests/cli/*", "cli-*"),
    ("tests/mpi/*", "mpi-*"),
    ("tests/golden/*", ALL),
    ("tests/*", "cli-suite"),
    ("docs/guide/*", "cli-guide cli-reference"),
    ("docs/troubleshooting.md", "cli-first_contact cli-reference"),
    ("docs/layouts.md", "cli-layout_plan"),
    ("scripts/*", "tests/cli/shipped/* cli-demo"),
    ("*.md", "tests/cli/shipped/*"),
    (".*", "cli-suite"),
    ("*", ALL),
]


def patterns_for(path):
    """The patterns of tests that a change to `path` needs."""
    for files, tests in NEEDS:
        if fnmatch.fnmatch(path, files):
            folder = path.split("/")[2] if path.count("/") > 2 else ""
            return [test.replace("{1}", folder).replace("{path}", path) for test in tests.split()]
    return []


def chosen(tests, root, patterns):
    """The tests that are fast, or that a pattern fits."""
    for test in tests:
        scripts = [str(Path(word).resolve().relative_to(root)) for word in test["cmd"]
                   if Path(word).resolve().is_relative_to(root)]
        fits = any(fnmatch.fnmatch(name, pattern) for pattern in patterns for name in [test["name"], *scripts])
        if fits or any(suite.endswith(":fast") for suite in test["suite"]):
            yield test


def introspected(build, what):
    done = subprocess.run(["meson", "introspect", build, what], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(build, which):
    root = Path(__file__).resolve().parents[1]
    paths = sys.stdin.read().splitlines() if which == "changed" else []
    patterns = {pattern for path in paths for pattern in patterns_for(path)}
    tests = list(chosen(introspected(build, "--tests"), root, patterns))
    files = {target["id"]: target["filename"][0] for target in introspected(build, "--targets")}
    for test in tests:
        print("test", test["name"])
    for name in sorted({files[target] for test in tests for target in test["depends"] if target in files}):
        print("build", Path(name).relative_to(Path(build).resolve()))


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("fast", "changed"):
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
