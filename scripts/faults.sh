#!/usr/bin/env bash
# Fails every file call that commands make, one in each run, and checks the files that are left.
# Compares them with those of an undisturbed run, and repeats the command. The ordinary test suite
# only tries a sample of the calls.
#   scripts/faults.sh [--binary FILE] [--counts FILE] [--report FOLDER] [--most N] [COMMAND...]
# COMMAND: train resume questions evaluate predict convert formats checkpoints ranks (default: all).
# --report writes faults.csv and a row of runs.csv to FOLDER (docs/reliability). --counts keeps the
# numbers in FILE, to which the next part adds its own. --most N fails at most N calls of each walk.
# Needs a build (meson compile -C build). Exits 1 if a run ended wrongly.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${FINETUNE_BINARY:-build/finetune}
counts= report= most=0
while [ $# -gt 0 ]; do
  case $1 in
    --binary) binary=$2 ;;
    --counts) counts=$2 ;;
    --report) report=$2 ;;
    --most) most=$2 ;;
    -*) echo "faults.sh: unknown option $1" >&2; exit 2 ;;
    *) break ;;
  esac
  shift 2
done
modules=${FINETUNE_FAULTS_MODULES:-$(dirname "$binary")/tests/faults}
if [ ! -e "$modules/fail_call.so" ]; then
  echo "faults.sh: $modules/fail_call.so is absent; meson compile -C build makes it" >&2
  exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
counts=${counts:-$work/counts}
touch "$counts"
export FINETUNE_FAULTS=$most FINETUNE_FAULTS_COUNTS=$counts FINETUNE_BINARY=$binary
export FINETUNE_FAIL_CALL=$modules/fail_call.so FINETUNE_JUMP_CLOCK=$modules/jump_clock.so
if [ $# -eq 0 ]; then set -- train resume questions evaluate predict convert formats checkpoints ranks; fi

status=0
for command in "$@"; do
  echo "== $command"
  case $command in
    train) test=(commands_test.py test_train test_train_over_a_run) ;;
    resume | evaluate | predict | convert) test=(commands_test.py "test_$command") ;;
    questions) test=(commands_test.py test_train_of_questions) ;;
    formats) test=(commands_test.py test_convert_from_other_formats) ;;
    checkpoints) test=(checkpoint_faults_test.py) ;;
    ranks) test=(../mpi/rank_faults_test.py) ;;
    *) echo "faults.sh: unknown command $command" >&2; exit 2 ;;
  esac
  python3 "tests/faults/${test[0]}" "${test[@]:1}" || status=1
done
if [ -n "$report" ]; then python3 tests/faults/report.py "$counts" "$report"; else python3 tests/faults/report.py "$counts"; fi
exit $status
