#!/usr/bin/env bash
# Builds in build-test, and runs tests.
# The last line is "N passed, N failed, N skipped"; exits 1 if a test failed or none ran. Does not touch other build
# folders.
#   scripts/test.sh                        the whole suite; CI runs this
#   scripts/test.sh unit|cli|mpi|format    only these suites
#   scripts/test.sh fast                   half a minute, after a change: units, each command once, two runs of mpirun
#   scripts/test.sh --changed [REVISION]   fast, and the suites of the files that differ from REVISION (default: HEAD)
# The whole suite first runs as in a fresh clone, without the folder of large data. If ../shared (or $FINETUNE_SHARED)
# exists, the test cases that were skipped without it then run with it.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
build="build-test"
export CCACHE_SLOPPINESS=pch_defines,time_macros  # lets ccache, if installed, cache precompiled headers, too
logs=$build/meson-logs
# Compiles only for the oldest GPUs: code that compiles for them compiles for all. nightly.sh builds for all.
scripts/configure.sh $build -Dgpu_architectures=80

chosen=()           # arguments of meson test; none: all tests
targets=()          # arguments of ninja; none: everything
runs_tests=yes      # no: only the format check
checks_format=
as_a_stranger=yes   # yes: first without large data
case "${1:-}" in
  '')
    checks_format=yes ;;
  fast|--changed)
    as_a_stranger=
    if [ "$1" = fast ]; then
      selected=$(tests/select_tests.py $build fast)
    else
      changed=$(git diff --name-only "${2:-HEAD}"; git ls-files --others --exclude-standard)
      selected=$(tests/select_tests.py $build changed <<< "$changed")
    fi
    mapfile -t chosen < <(sed -n 's/^test //p' <<< "$selected")
    mapfile -t targets < <(sed -n 's/^build //p' <<< "$selected")
    targets+=(finetune) ;;
  *)
    runs_tests=
    for suite in "$@"; do
      if [ "$suite" = format ]; then checks_format=yes; else chosen+=(--suite "$suite"); runs_tests=yes; fi
    done ;;
esac
build_failed() { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
if [ ${#targets[@]} -gt 0 ]; then
  ninja -C $build "${targets[@]}" || build_failed
else
  meson compile -C $build || build_failed
fi

rm -f $logs/testlog.json $logs/again.json $logs/format.log $logs/programs.log
status=0
if [ -n "$checks_format" ]; then
  if scripts/format.sh --check > $logs/format.log 2>&1; then result='1 passed | 0 failed'; else result='0 passed | 1 failed'; fi
  tail -n 20 $logs/format.log
  printf 'test cases: 1 | %s\nexit status: 0\n' "$result" >> $logs/format.log
fi
shared=$(realpath -m "${FINETUNE_SHARED:-../shared}")
lacking=$shared
[ -z "$as_a_stranger" ] || lacking=$PWD/$build/no-large-data
if [ -n "$runs_tests" ]; then
  # Runs wait for the disk after each file that they write, so the tests' files are in memory if they fit there. No test
  # mistakes this folder's name for a file that the program left.
  room=$(df --output=avail -BM /dev/shm 2> /dev/null | tail -n 1 | tr -dc 0-9) || true
  if [ -z "${TMPDIR:-}" ] && [ "${room:-0}" -ge 6000 ] && ! grep -q '^[^ ]* /dev/shm .*noexec' /proc/mounts; then
    TMPDIR=$(mktemp -d /dev/shm/test-suite.XXXXXX)
    chmod 711 "$TMPDIR"  # a test runs the program as another user
    export TMPDIR
    trap 'rm -rf "$TMPDIR"' EXIT
  fi
  # A test more than there are cores, because a quarter of the tests' time is waiting; four at most, because many have
  # several processes, which wait for each other with time limits.
  jobs=$(($(nproc) + 1))
  [ "$jobs" -le 4 ] || jobs=4
  FINETUNE_SHARED=$lacking meson test -C $build --no-rebuild --num-processes "$jobs" --print-errorlogs \
    ${chosen[@]+"${chosen[@]}"} || status=$?
  # If no test ran, the result is a failure, whatever the format check found.
  [ -s $logs/testlog.json ] || echo "exit status: 1" > $logs/programs.log
  if [ -n "$as_a_stranger" ] && [ -d "$shared" ] && [ -s $logs/testlog.json ]; then
    echo "Test cases that lacked large data, with $shared:"
    tests/test_again.py $logs/testlog.json "$lacking" "$shared" $logs/again.json
  fi
fi

# Counts single test cases: doctest's summaries and the black-box tests' lines are in meson's log.
python3 tests/count_tests.py --lacking "$lacking" $logs/testlog.json $logs/format.log $logs/programs.log \
  --again $logs/again.json || status=1
exit $((status != 0))
