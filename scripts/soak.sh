#!/usr/bin/env bash
# Trains, evaluates and predicts for hours, with kills, and finds leaks and changed results.
# Each round has its own data, drawn from the seed, and the same amount of work. Results must equal those of undisturbed
# runs. From the first third of the rounds to the last, memory may change by 1 %; the numbers of descriptors, shared
# memory segments, temporary files and processes must not change.
#   scripts/soak.sh HOURS [--seed S] [--binary FILE] [--report FOLDER]     HOURS may be a fraction; 0: one round
# --report FOLDER writes soak.csv and a row of runs.csv to FOLDER (docs/reliability). Last line: "N rounds, M
# findings"; exits 1 if there was a finding.
set -euo pipefail
cd "$(dirname "$0")/.."

binary=${FINETUNE_BINARY:-build/finetune}
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --binary) binary=${2:?soak.sh: --binary needs a file}; shift ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
export FINETUNE_BINARY=$binary
exec python3 tests/soak/soak.py ${arguments[@]+"${arguments[@]}"}
