#!/usr/bin/env bash
# Builds everything in build-test and runs the whole test suite, as CI does.
# A developer's build folder is left alone. The last line is "N passed, N failed, N skipped"; a test whose data (the
# folder ../shared, or $FINETUNE_SHARED) is absent is a skip. Exits 1 if a test failed.
#   scripts/test.sh [unit|cli|mpi|format] only these suites
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
build="build-test"
logs=$build/meson-logs
# Many files are compiled as one: compilers read their headers once.
scripts/configure.sh $build -Dunity=on -Dunity_size=32
meson compile -C $build || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

rm -f $logs/testlog.json $logs/format.log $logs/programs.log
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
  meson test -C $build --no-rebuild --num-processes "$jobs" --print-errorlogs ${suites[@]+"${suites[@]}"} || status=$?
  # Nothing that ran is a failure, whatever the format check has found.
  [ -s $logs/testlog.json ] || echo "exit status: 1" > $logs/programs.log
fi

# Counts single test cases: doctest's summaries and the black-box tests' lines are in meson's log.
python3 scripts/count_tests.py $logs/testlog.json $logs/format.log $logs/programs.log || status=1
exit $((status != 0))
