#!/usr/bin/env bash
# Fails every call of the C library that a test of tests/faults walks over, one a run.
# Compares what is left with an undisturbed run. An ordinary run of these tests takes a sample.
#   scripts/faults.sh [--binary FILE] [TEST...]     TEST: functions of these tests, test_a_write_that_fails
# Needs a build (meson compile -C build). Exits 1 if one run ended wrongly; the counts are printed.
set -euo pipefail
cd "$(dirname "$0")/.."

export FINETUNE_FAULTS=all FINETUNE_BINARY=${FINETUNE_BINARY:-build/finetune}
export FINETUNE_FAIL_CALL=${FINETUNE_FAIL_CALL:-build/tests/faults/fail_call.so}
if [ "${1:-}" = --binary ]; then
  FINETUNE_BINARY=$2
  shift 2
fi
if [ ! -e "$FINETUNE_FAIL_CALL" ]; then
  echo "faults.sh: $FINETUNE_FAIL_CALL is absent; meson compile -C build makes it" >&2
  exit 2
fi
status=0
for test in tests/faults/*_test.py; do
  echo "$test"
  python3 "$test" "$@" || status=1
done
exit $status
