#!/usr/bin/env bash
# Builds with sanitizers and runs tests with them.
# AddressSanitizer and UndefinedBehaviorSanitizer, in build-sanitizers: the unit tests, the black-box tests of bad input
# and broken models, the communicator and training under mpirun. With --threads ThreadSanitizer, in build-threads: the
# pool of threads, the communicator, training. The last line is "N passed, N failed, N skipped". A sanitizer's report
# ends the program, which is a failure.
#   scripts/test_sanitizers.sh [--threads] [TEST...]     only these tests, as `meson test` names them
# $JOBS limits the compiler's processes; the build needs about 1 GB for each. For named tests, meson
# builds only the targets that they need, with all cores.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-sanitizers
kinds=address,undefined
chosen='^(unit-|cli-bad_|mpi-comm$|mpi-groups$|mpi-train$)'
if [ "${1:-}" = --threads ]; then
  shift
  build=build-threads
  kinds=thread
  chosen='^(unit-core|unit-comm|unit-distributed|unit-inference|unit-train|unit-experiments|mpi-comm|mpi-groups|mpi-train|cli-resume)$'
fi
scripts/install_deps.sh
scripts/configure.sh $build -Db_sanitize=$kinds -Dbuildtype=debugoptimized -Dcuda=disabled

# A report must end the program with an exit code that finetune does not use, so that tests that
# expect a failure do not mistake the report for it.
export ASAN_OPTIONS=halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$PWD/tests/sanitizers.supp:print_suppressions=0:exitcode=99
# ThreadSanitizer cannot see how libraries that are not compiled for it (Open MPI, OpenSSL) synchronise.
export TSAN_OPTIONS=halt_on_error=1:exitcode=99:ignore_noninstrumented_modules=1:second_deadlock_stack=1

tests=("$@")
how=()
if [ ${#tests[@]} = 0 ]; then
  how=(--no-rebuild)
  meson compile -C $build ${JOBS:+-j "$JOBS"}
  mapfile -t tests < <(meson test -C $build --no-rebuild --list | sed 's|.* / ||' | grep -E "$chosen")
fi

# run TEST...: runs tests, and keeps meson's log for the count.
logs=()
status=0
run() {
  [ $# -gt 0 ] || return 0
  rm -f $build/meson-logs/testlog.json
  # ThreadSanitizer needs a fixed memory layout, which newer kernels' randomization may not give.
  setarch --addr-no-randomize meson test -C $build ${how[@]+"${how[@]}"} --print-errorlogs \
    --timeout-multiplier 10 "$@" || status=$?
  logs+=("$build/meson-logs/sanitized-${#logs[@]}.json")
  mv $build/meson-logs/testlog.json "${logs[-1]}" || true
}
alone=()
together=()
for test in "${tests[@]}"; do
  case $test in mpi-*) together+=("$test") ;; *) alone+=("$test") ;; esac
done
run ${alone[@]+"${alone[@]}"}
# Open MPI leaks at exit, in plugins that are unloaded by then, so that suppressions cannot name them.
ASAN_OPTIONS+=:detect_leaks=0
run ${together[@]+"${together[@]}"}
python3 tests/count_tests.py "${logs[@]}" || status=1
exit $((status != 0))
