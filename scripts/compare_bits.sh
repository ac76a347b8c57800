#!/usr/bin/env bash
# Compares the bits of two versions: this tree's program and another commit's, which it builds.
# Trains both tasks in fp32 and bf16, on 1 and 2 processes: data parallel, --tp 2, --pp 2, each also with --recompute.
#   scripts/compare_bits.sh COMMIT [BUILD_DIRECTORY]      COMMIT: a commit, or a program already built
# Last line: "N of N equal"; exits 1 if not all are.
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # use the CPU even if there is a GPU
cd "$(dirname "$0")/.."
other=${1:?usage: scripts/compare_bits.sh COMMIT [BUILD_DIRECTORY]}
build=${2:-build}
ours=$(realpath "$build/finetune")

work=$(mktemp -d)
clean_up() {
  git worktree remove --force "$work/tree" 2> /dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
if [ -f "$other" ] && [ -x "$other" ]; then
  theirs=$(realpath "$other")
else
  echo "building $(git describe --always "$other")" >&2
  git worktree add --quiet --detach "$work/tree" "$other"
  meson setup "$work/build" "$work/tree" -Dcuda=disabled > "$work/setup.txt"
  meson compile -C "$work/build" finetune > "$work/compile.txt"
  theirs=$work/build/finetune
fi

golden=tests/golden
classification=(--model "$golden/tiny-bert-classification" --train "$golden/trajectory-classification-train.csv"
  --eval "$golden/trajectory-classification-eval.csv" --label-column category --lr 3e-3 --dropout 0.1
  --max-train-samples 150 --max-eval-samples 100)
qa=(--task qa --model "$golden/tiny-bert-qa" --train "$golden/trajectory-qa-train.json"
  --eval "$golden/trajectory-qa-train.json" --lr 1e-3 --max-length 128 --doc-stride 32 --max-train-samples 21
  --max-eval-samples 8 --batch-size 16 --dropout 0.1 --max-steps 5)

# sum PROGRAM PROCESSES ARGUMENTS...: prints the run's weights_sha256.
sum() {
  local program=$1 launcher=()
  [ "$2" = 1 ] || launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$2")
  shift 2
  rm -rf "$work/run"
  ${launcher[@]+"${launcher[@]}"} "$program" train "$@" --output "$work/run" --no-progress --quiet < /dev/null > /dev/null 2> "$work/err" ||
    { cat "$work/err" >&2; exit 1; }
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$work/run/run.json"
}

equal=0
compared=0
for task in classification qa; do
  declare -n data=$task
  for precision in fp32 bf16; do
    for layout in "" "--virtual-shards 2" "--tp 2" "--pp 2"; do
      processes=$([ -z "$layout" ] && echo 1 || echo 2)
      for recompute in "" --recompute; do
        # $layout is unquoted because it holds several words.
        line=("${data[@]}" --precision "$precision" $layout ${recompute:+"$recompute"})
        mine=$(sum "$ours" "$processes" "${line[@]}")
        its=$(sum "$theirs" "$processes" "${line[@]}")
        compared=$((compared + 1))
        if [ "$mine" = "$its" ]; then
          equal=$((equal + 1))
          verdict=same
        else
          verdict="OTHER BITS"
        fi
        echo "$task, $precision, $processes process(es)${layout:+, $layout}${recompute:+, recompute}: $verdict (${mine:0:16})"
      done
    done
  done
done
echo "$equal of $compared equal"
[ "$equal" = "$compared" ]
