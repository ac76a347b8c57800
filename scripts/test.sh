#!/usr/bin/env bash
# Builds and runs the whole test suite; its last line is "N passed, N failed, N skipped".
# A test whose data (the folder ../shared, or $FINETUNE_SHARED) is absent is a skip. Exits 1 if a
# test failed.
#   scripts/test.sh [unit|cli|mpi] only these suites
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
scripts/configure.sh build
meson compile -C build || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

rm -f build/meson-logs/testlog.json
status=0
suites=()
for suite in "$@"; do suites+=(--suite "$suite"); done
# A few at a time: many have several processes, and time limits that await each other.
jobs=$(nproc)
[ "$jobs" -le 4 ] || jobs=4
meson test -C build --no-rebuild --num-processes "$jobs" --print-errorlogs ${suites[@]+"${suites[@]}"} || status=$?

# Counts single test cases: doctest's summaries and the black-box tests' lines are in meson's log.
python3 scripts/count_tests.py build/meson-logs/testlog.json || status=1
exit $((status != 0))
