#!/usr/bin/env bash
# Trains, evaluates and predicts for hours, with kills: nothing may grow or change.
# Each round has data of its own, drawn from the seed, and the same work as all others. Results are compared with
# those of undisturbed runs; memory may change by 1 % from the first third of the rounds to the last, descriptors,
# shared memory, temporary files and processes not at all.
#   scripts/soak.sh HOURS [--seed S] [--binary FILE] [--report FOLDER]     HOURS may be a fraction; 0: one round
# --report FOLDER writes soak.csv and a row of runs.csv into FOLDER (docs/reliability). Last line: "N rounds, M
# findings"; exit 1 if there was one.
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
