#!/usr/bin/env bash
# Builds with AddressSanitizer and UndefinedBehaviorSanitizer, and runs tests with it.
# In build-sanitizers: the unit tests and the black-box tests of bad input and broken models. Its
# last line is "N passed, N failed, N skipped"; a report of a sanitizer ends its program, which is a
# failure.
#   scripts/test_sanitizers.sh [TEST...]     only these tests, as `meson test` names them
# Each file is compiled by itself (-Dunity=off): it must include what it uses.
# JOBS limits the compiler's processes; the build needs about 1 GB for each.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
build=build-sanitizers
scripts/configure.sh $build -Db_sanitize=address,undefined -Dbuildtype=debugoptimized -Dcuda=disabled -Dunity=off
meson compile -C $build ${JOBS:+-j "$JOBS"}

# A report must end the program with an exit code of its own (not one of finetune's), so that tests
# which expect a failure do not take it for the one they expect.
suppressions=$PWD/tests/sanitizers.supp
export ASAN_OPTIONS=halt_on_error=1:abort_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=suppressions=$suppressions:print_suppressions=0:exitcode=99

tests=("$@")
if [ ${#tests[@]} = 0 ]; then
  mapfile -t tests < <(meson test -C $build --no-rebuild --list | sed 's|.* / ||' | grep -E '^(unit-|cli-bad_)')
fi
rm -f $build/meson-logs/testlog.json
status=0
meson test -C $build --no-rebuild --print-errorlogs --timeout-multiplier 10 "${tests[@]}" || status=$?
python3 scripts/count_tests.py $build/meson-logs/testlog.json || status=1
exit $((status != 0))
