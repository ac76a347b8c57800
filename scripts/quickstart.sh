#!/usr/bin/env bash
# The main job from nothing: installs, builds, fetches a small pretrained BERT, fine-tunes it on 4,000
# real purchasing-card transactions, prints metrics and a few predictions. A few minutes on 2 cores.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
scripts/configure.sh build
meson compile -C build
model=$(scripts/fetch_model.sh)
run=runs/quickstart

echo
echo "== finetune train: 4,000 transactions, 23 categories"
build/finetune train --model "$model" \
  --train data/samples/toronto-train.csv --eval data/samples/toronto-dev.csv \
  --label-column category --epochs 3 --batch-size 32 --lr 2e-4 \
  --output "$run" --overwrite

echo
echo "== finetune predict: what it makes of new transactions"
printf '%s\n' 'HOME DEPOT #7081 PLYWOOD AND SCREWS' 'BELL CANADA MONTHLY PHONE BILL' \
  'PIZZA PIZZA LUNCH FOR VOLUNTEERS' 'AIR CANADA FLIGHT TO OTTAWA CONFERENCE' |
  build/finetune predict --model "$run/model" --input - --output -

echo
echo "The fine-tuned model is in $run/model, its metrics in $run/metrics.json."
