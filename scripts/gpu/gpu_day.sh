#!/usr/bin/env bash
# Runs checks, then measurements, in one call of at most 560 s on a machine with a GPU.
# It builds nothing. Each step has a time limit and a result file of its own. The most important
# steps come first, because the last may be cut off. A step can be run again by its name.
#   scripts/gpu/gpu_day.sh [--build BUILD] [--rehearse] OUT [STEP...]
#   OUT_DIR/run.sh scripts/gpu/gpu_day.sh OUT          from a bundle (gpu_bundle.sh)
#   scripts/gpu/gpu_day_tables.py OUT                  prints the tables, or adds them to docs/benchmarks
# --rehearse: the same commands on the CPU with the smallest shapes, in seconds.
# $GPU_DAY_SECONDS (default: 560) limits all steps together. $PEER_PYTHON must have PyTorch.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
# The steps in order: SECONDS:NAME, where SECONDS is the time limit.
steps=(10:card 60:checks 45:memcheck 60:racecheck 95:train 40:switches 70:kernels 80:infer 90:peer 120:more-checks)
# Switches that turn one change off, or one choice on. Each is measured beside the defaults.
switches=(FINETUNE_CUDA_STREAMS=1 FINETUNE_CUDA_NORM=0 FINETUNE_CUDA_GRAPHS=0 FINETUNE_CUDA_ATTENTION=cudnn
  FINETUNE_CUDA_KEPT=0 FINETUNE_CUDA_ALGORITHMS=timed FINETUNE_CUDA_MASKS=0 FINETUNE_CUDA_SUMS=0
  FINETUNE_CUDA_LAUNCHES=programmatic)
# Such switches for prediction.
infer_switches=(FINETUNE_BATCHES_IN_FLIGHT=1)
fail() {
  echo "gpu_day: error: $*" >&2
  exit 2
}
build=build rehearse=''
while [[ ${1:-} == --* ]]; do
  case $1 in
    --build) build=$2 && shift 2 ;;
    --rehearse) rehearse=1 && shift ;;
    *) fail "there is no option $1" ;;
  esac
done
[ $# -gt 0 ] || fail "usage: scripts/gpu/gpu_day.sh [--build BUILD] [--rehearse] OUT [STEP...]"
out=$1 && shift
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
shared=${FINETUNE_SHARED:-$PWD/../shared}
. scripts/gpu/gpu_environment.sh  # finds CUDA's libraries
finetune=$build/finetune python=${PEER_PYTHON:-python3}
if [ -n "$rehearse" ]; then
  golden=tests/golden  # in a bundle it is in $shared
  [ -d $golden ] || golden=$shared/golden
  device=cpu bank=$golden/trajectory-classification-eval.csv squad=$golden/trajectory-qa-train.json
  tokenizer=$golden/tiny-bert-qa columns=(--text-column text --label-column category)
else
  device=cuda bank=$shared/data/toronto/train.csv squad=$shared/data/squad/dev-v1.1.json
  tokenizer=$shared/tokenizers/bert-base-uncased columns=(--text-column text --label-column category)
fi

# --- measuring: JSON lines {case, switches, seconds, status, result} in the step's .jsonl, the rest in its .txt

worst=0  # the exit status of the last command that failed
# measured CASE [NAME=VALUE...] -- COMMAND: `result` is the JSON object that the command prints, or null.
measured() {
  local case=$1 settings=() start status printed
  for shift_over in "${@:2}"; do
    [ "$shift_over" != -- ] || break
    settings+=("$shift_over")
  done
  shift $((2 + ${#settings[@]}))
  start=$EPOCHREALTIME
  printed=$(env "${settings[@]}" "$@")
  status=$?
  local seconds
  seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.3f", b - a}')
  [ $status = 0 ] || worst=$status
  local last
  last=$(tail -n 1 <<< "$printed")  # PyTorch's scripts print other lines before the result
  [[ $last != '{'* ]] || printed=$last
  [[ $printed == '{'* ]] || printed=null
  printf '{"case": "%s", "switches": "%s", "seconds": %s, "status": %d, "result": %s}\n' \
    "$case" "${settings[*]}" "$seconds" "$status" "$(tr -s '\n ' ' ' <<< "$printed")" >&3
}

# train_step CASE STEPS [NAME=VALUE...]: measures training steps; CASE names the model, the data and the batch size.
train_step() {
  local shape lengths batch steps=$2
  case $1 in
    minilm-bank-32) shape=minilm lengths=bank batch=32 ;;
    base-bank-256) shape=base lengths=bank batch=256 ;;
    base-squad-32) shape=base lengths=squad batch=32 ;;
    large-squad-32) shape=large lengths=squad batch=32 ;;
  esac
  [ -z "$rehearse" ] || shape=tiny batch=2 steps=1
  measured "$1" "${@:3}" -- "$finetune" bench step --device $device --precision bf16 --shape $shape \
    --lengths $lengths --batch-size $batch --steps "$steps" --json
}

sanitized() {  # TOOL OPERATIONS OPTION...
  command -v compute-sanitizer > /dev/null || { echo "compute-sanitizer is absent" >&2; return 3; }
  OP_TABLE_OPS=$2 FINETUNE_DEVICE=cuda compute-sanitizer --tool "$1" --error-exitcode 1 "${@:3}" \
    "$build/tests/unit/ops/test_ops" "--test-case=every op of the GPU*"
}

# Makes a model with random weights and a head, without PyTorch, and prints its folder.
model_of() {  # SHAPE TASK
  local made=$out/models/$1-$2 layers=2 hidden=32 heads=2 data=$bank
  [ ! -d "$made" ] || { echo "$made" && return; }
  [ "$2" = bank ] || data=$squad
  if [ -z "$rehearse" ]; then
    case $1 in
      minilm) layers=6 hidden=384 heads=12 ;;
      base) layers=12 hidden=768 heads=12 ;;
      large) layers=24 hidden=1024 heads=16 ;;
    esac
  fi
  local plain=$out/models/$1 train=("$finetune" train --device $device --max-steps 1 --max-train-samples 64
    --no-progress --quiet --overwrite)
  if [ ! -d "$plain" ]; then
    mkdir -p "$plain.new"
    cp "$tokenizer"/{vocab.txt,tokenizer*.json} "$plain.new"
    cat > "$plain.new/config.json" << JSON
{"model_type": "bert", "vocab_size": $(wc -l < "$tokenizer/vocab.txt"), "hidden_size": $hidden,
 "num_hidden_layers": $layers, "num_attention_heads": $heads, "intermediate_size": $((4 * hidden)),
 "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu"}
JSON
    cut -d, -f 1 "$bank" | head -n 100 > "$out/models/text.txt"
    "$finetune" adapt --device $device --model "$plain.new" --reinit --text "$out/models/text.txt" \
      --max-steps 1 --no-progress --quiet --overwrite --output "$plain.run" >&2 || return
    mv -T "$plain.run/model" "$plain"
  fi
  local task=(--recipe hf --train "$data")
  [ "$2" != bank ] || task+=("${columns[@]}")
  "${train[@]}" --model "$plain" "${task[@]}" --output "$made.run" >&2 || return
  mv -T "$made.run/model" "$made" && echo "$made"
}

# inference CASE: measures whole commands on all rows; the program prints when each of its phases ended.
inference() {
  local data=$bank model options=() baseline=--no-ngram-baseline
  [[ $1 == *-bank ]] || data=$squad baseline=
  model=$(model_of "${1%-*}" "${1#*-}") || return
  options=(--model "$model" --device $device --precision bf16 --no-progress)
  measured "$1 predict" FINETUNE_TIMES=1 -- "$finetune" predict "${options[@]}" --input "$data" \
    --output "$out/models/answers" --overwrite
  for each in "${infer_switches[@]}"; do
    measured "$1 predict" FINETUNE_TIMES=1 "$each" -- "$finetune" predict "${options[@]}" --input "$data" \
      --output "$out/models/answers" --overwrite
  done
  measured "$1 evaluate" FINETUNE_TIMES=1 -- "$finetune" evaluate "${options[@]}" --data "$data" \
    ${baseline:+$baseline} --json
}

# --- steps

step_card() {
  nvidia-smi -q -d CLOCK,POWER,MEMORY
  report_libraries
  "$finetune" doctor
}
step_checks() {
  [ -z "$rehearse" ] || { "$finetune" --version && return; }
  GPU_CHECK_AS_BUILT=1 GPU_CHECK_LOGS=$out/checks scripts/gpu/gpu_check.sh "$build" ops events model
}
step_memcheck() { sanitized memcheck attention,layer_norm,column,adamw --report-api-errors no; }
step_racecheck() { sanitized racecheck attention,layer_norm --kernel-name kns=finetune; }
step_train() {
  local off
  off=$(for each in "${switches[@]}"; do [[ $each =~ =(cudnn|timed|programmatic)$ ]] || echo "$each"; done)
  for work in base-squad-32:100 base-squad-32:100 base-bank-256:200 minilm-bank-32:1500 large-squad-32:60; do
    train_step "${work%:*}" "${work#*:}"  # the first work runs twice, which shows the spread
    train_step "${work%:*}" "${work#*:}" $off
  done
}
step_switches() {
  for each in "${switches[@]}"; do
    train_step base-squad-32 100 "$each"
    train_step base-bank-256 150 "$each"
  done
}
step_kernels() {
  command -v ncu > /dev/null || { echo "ncu is absent" >&2; return 3; }
  for work in "base 32 squad" "base 256 bank"; do
    read -r shape batch lengths <<< "$work"
    echo "# $shape $lengths $batch"
    FINETUNE_CUDA_GRAPHS=0 ncu --clock-control none --metrics gpu__time_duration.sum --launch-skip 2000 \
      --launch-count 460 --csv "$finetune" bench step --device cuda --precision bf16 --shape "$shape" \
      --lengths "$lengths" --batch-size "$batch" --steps 8
  done
}
step_infer() {
  local case
  for case in base-squad minilm-bank large-squad; do
    inference $case || worst=$?
    [ -z "$rehearse" ] || break
  done
}
step_peer() {
  "$python" -c 'import torch, transformers, accelerate' || return 3
  local model training=$shared/data/squad/train-v1.1-4000.json more=(--device cuda --bf16) steps=100
  [ -z "$rehearse" ] || training=$squad more=(--device cpu) steps=3
  model=$(model_of base squad) || return
  for each in evaluate predict; do
    measured "base-squad $each" HF_HUB_OFFLINE=1 -- "$python" scripts/bench/hf_inference.py --model "$model" \
      --data "$squad" --batch-sizes 64 --only $each "${more[@]}"
  done
  measured "base-squad-32 peer" HF_HUB_OFFLINE=1 -- "$python" scripts/bench/hf_peer.py --model "$model" \
    --data "$training" --batch-size 32 --max-steps $steps --uncounted $((steps * 2 / 5 + 1)) "${more[@]}"
}
step_more-checks() {
  [ -z "$rehearse" ] || return 0
  GPU_CHECK_AS_BUILT=1 GPU_CHECK_LOGS=$out/more-checks scripts/gpu/gpu_check.sh "$build" trajectory program resume
}

# --- the call

# The script starts itself for each step, so that the time limit can end the step's process.
if [ -n "${GPU_DAY_STEP:-}" ]; then
  "step_$GPU_DAY_STEP" || exit
  exit $worst
fi
[ -n "$rehearse" ] || [ -e /dev/nvidiactl ] || fail "there is no NVIDIA GPU here; --rehearse needs none"
[ -x "$finetune" ] || fail "$finetune is absent: this script builds nothing"
chosen=("$@")
for name in "${chosen[@]}"; do
  [[ " ${steps[*]} " == *":$name "* ]] || fail "there is no step '$name'; there are: ${steps[*]#*:}"
done
again=(--build "$build" ${rehearse:+--rehearse} "$out")
end=$((SECONDS + ${GPU_DAY_SECONDS:-560})) number=0 broken=''
for step in "${steps[@]}"; do
  name=${step#*:} limit=${step%%:*} left=$((end - SECONDS))
  printf -v file '%s/%02d-%s' "$out" $((number++)) "$name"
  [ ${#chosen[@]} = 0 ] || [[ " ${chosen[*]} " == *" $name "* ]] || continue
  if [ -n "$broken" ] && [[ $name != *check ]]; then
    echo "$name: skipped, since the checks failed" | tee "$file.txt"
    continue
  fi
  if [ $left -lt 5 ]; then
    echo "$name: skipped, since the time is over" | tee "$file.txt"
    continue
  fi
  start=$SECONDS
  GPU_DAY_STEP=$name timeout --kill-after=5 $((limit < left ? limit : left)) bash "$0" "${again[@]}" \
    > "$file.txt" 2>&1 3> "$file.jsonl"
  status=$?
  [ $status != 124 ] || echo "gpu_day: stopped at its time limit" >> "$file.txt"
  echo "exit status: $status" >> "$file.txt"
  [ -s "$file.jsonl" ] || rm -f "$file.jsonl"
  echo "$name: $((SECONDS - start)) s, exit status $status"
  [ "$name" != checks ] || [ $status = 0 ] || broken=1
done
