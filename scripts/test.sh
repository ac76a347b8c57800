#!/usr/bin/env bash
# Builds everything in build-test, as README says, and runs the whole test suite. CI runs this.
# A developer's build folder is left alone. The suite first runs as in a stranger's clone, without the folder of large
# data; where ../shared (or $FINETUNE_SHARED) exists, the test cases that lacked it then run once more with it. The last
# line is "N passed, N failed, N skipped". Exits 1 if a test failed.
#   scripts/test.sh [unit|cli|mpi|format] only these suites
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
build="build-test"
logs=$build/meson-logs
scripts/configure.sh $build
meson compile -C $build || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

rm -f $logs/testlog.json $logs/again.json $logs/format.log $logs/programs.log
status=0
suites=()
format=
for suite in "$@"; do
  if [ "$suite" = format ]; then format=yes; else suites+=(--suite "$suite"); fi
done
if [ -n "$format" ] || [ $# -eq 0 ]; then
  if scripts/format.sh --check > $logs/format.log 2>&1; then result='1 passed | 0 failed'; else result='0 passed | 1 failed'; fi
  tail -n 20 $logs/format.log
  printf 'test cases: 1 | %s\nexit status: 0\n' "$result" >> $logs/format.log
fi
shared=$(realpath -m "${FINETUNE_SHARED:-../shared}")
lacking=$PWD/$build/no-large-data
if [ ${#suites[@]} -gt 0 ] || [ $# -eq 0 ]; then
  # Runs wait for the disk after each file that they write: where memory can hold the tests' files, they are there.
  # Its name is not one that a test takes for something the program has left.
  room=$(df --output=avail -BM /dev/shm 2> /dev/null | tail -n 1 | tr -dc 0-9) || true
  if [ -z "${TMPDIR:-}" ] && [ "${room:-0}" -ge 6000 ] && ! grep -q '^[^ ]* /dev/shm .*noexec' /proc/mounts; then
    TMPDIR=$(mktemp -d /dev/shm/test-suite.XXXXXX)
    chmod 711 "$TMPDIR"  # a test runs the program as another user
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
  fi
  # A few at a time: many have several processes, and time limits that await each other.
  jobs=$(nproc)
  [ "$jobs" -le 4 ] || jobs=4
  FINETUNE_SHARED=$lacking meson test -C $build --no-rebuild --num-processes "$jobs" --print-errorlogs \
    ${suites[@]+"${suites[@]}"} || status=$?
  # If no test ran, this is a failure, whatever the format check has found.
  [ -s $logs/testlog.json ] || echo "exit status: 1" > $logs/programs.log
  if [ -d "$shared" ] && [ -s $logs/testlog.json ]; then
    echo "Test cases that lacked large data, with $shared:"
    tests/test_again.py $logs/testlog.json "$lacking" "$shared" $logs/again.json
  fi
fi

# Counts single test cases: doctest's summaries and the black-box tests' lines are in meson's log.
python3 scripts/count_tests.py --lacking "$lacking" $logs/testlog.json $logs/format.log $logs/programs.log \
  --again $logs/again.json || status=1
exit $((status != 0))
