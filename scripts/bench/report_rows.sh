#!/usr/bin/env bash
# Measures finetune report on a run with 100,000 evaluated rows: seconds, and the page's size.
# Trains a few steps of a tiny model first, on the rows in FINETUNE_SHARED (default ../shared).
#   scripts/bench/report_rows.sh [PROGRAM]          default: build/finetune
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${1:-build/finetune}
shared=${FINETUNE_SHARED:-../shared}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
grep -m1 'model name' /proc/cpuinfo | cut -d: -f2-
for column in category gl_category amount; do
  kind=(--ignore-unknown-labels)
  if [ "$column" = amount ]; then kind=(--regression); fi
  "$program" train --model "tests/golden/tiny-bert-classification" --reinit-head --max-steps 5 --quiet \
    --train "$shared/data/toronto/dev.csv" --eval "$shared/data/toronto/train.csv" --text-column text \
    --label-column "$column" "${kind[@]}" --output "$work/$column" > /dev/null
  TIMEFORMAT='%R s, %U s of the processor'
  seconds=$( { time "$program" report "$work/$column" --output "$work/$column.html" > /dev/null; } 2>&1)
  rows=$(($(wc -l < "$work/$column/predictions.csv") - 1))
  echo "$column: $rows rows, $seconds, $(($(stat -c %s "$work/$column.html") / 1024)) KiB"
done
