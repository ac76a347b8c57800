#!/usr/bin/env bash
# Does the main job from scratch: installs, builds, fetches a small BERT, fine-tunes it, predicts.
# It builds only the program (no tests, no CUDA) in build-quickstart and fetches a small pretrained BERT meanwhile.
# Then it fine-tunes the model on 4,000 real purchasing-card transactions, and prints metrics and a few predictions. On
# 2 idle cores training begins after about four minutes and takes a few more.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build-quickstart
run=runs/quickstart
work=$(mktemp -d)
fetching=
end() {
  [ -z "$fetching" ] || kill "$fetching" 2> /dev/null || true
  rm -rf "$work"
}
trap end EXIT

step() {
  printf '\n== %d s: %s\n' "$SECONDS" "$1"
}
# Shows a command's output only if it fails.
quietly() {
  "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

step "installing Debian's packages that the program needs"
scripts/install_deps.sh --quickstart

step "fetching a small BERT (85 MB) to .cache, once, while the program is built"
scripts/fetch_model.sh > "$work/model" 2> "$work/fetch-log" &
fetching=$!

step "configuring $build: the program alone, without tests and CUDA"
quietly scripts/configure.sh "$build" -Dcuda=disabled -Dtests=false

step "compiling $build/finetune, the longest part"
meson compile -C "$build" finetune

step "waiting for the model"
fetched=0
wait "$fetching" || fetched=$?
fetching=
if [ "$fetched" -ne 0 ]; then
  cat "$work/fetch-log" >&2
  echo "quickstart: error: the model could not be fetched, see above; scripts/fetch_model.sh tries again" >&2
  exit 1
fi
model=$(cat "$work/model")
echo "$model"

step "finetune train: 4,000 transactions, 23 categories, beside what a linear model makes of them"
"$build/finetune" train --model "$model" \
  --train data/samples/toronto-train.csv --eval data/samples/toronto-dev.csv \
  --label-column category \
  --output "$run" --overwrite

step "finetune predict: what it makes of new transactions"
printf '%s\n' 'HOME DEPOT #7081 PLYWOOD AND SCREWS' 'BELL CANADA MONTHLY PHONE BILL' \
  'PIZZA PIZZA LUNCH FOR VOLUNTEERS' 'AIR CANADA FLIGHT TO OTTAWA CONFERENCE' |
  "$build/finetune" predict --model "$run/model" --input - --output -

step "done"
echo "The program is $build/finetune, the fine-tuned model is in $run/model, its metrics in $run/metrics.json."
