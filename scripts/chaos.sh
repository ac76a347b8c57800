#!/usr/bin/env bash
# Kills random processes of a small training run at random moments and resumes it, again and again.
# It resumes at random numbers of processes and hosts, and compares the end with that of an
# undisturbed run.
#   scripts/chaos.sh N [--seed S] [--model DIR] [--binary FILE]     N trials; the seed is printed
# Last line: "N of N equal"; exit 1 if one is not. Nothing is left behind. Open MPI 4's mpirun can
# hang when a process dies in the very moment in which it reports to it: ended here, and counted.
set -euo pipefail
cd "$(dirname "$0")/.."

trials=${1:?usage: scripts/chaos.sh N [--seed S] [--model DIR] [--binary FILE]}
shift
seed=$(($(date +%s) % 100000))
model=${FINETUNE_SHARED:-../shared}/golden/tiny-bert-classification
binary=build/finetune
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seed=$2 ;;
    --model) model=$2 ;;
    --binary) binary=$2 ;;
    *) echo "chaos.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
binary=$(realpath "$binary")
RANDOM=$seed
echo "seed $seed"

work=$(mktemp -d)
job=
end() {
  if [ -n "$job" ]; then kill "$job" 2> /dev/null || true; fi
  rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

counts=(1 2 3 4 8)
declare -A duration

# start OUTPUT PROCESSES HOSTS: a run in the background, which a time limit keeps from hanging.
start() {
  local launcher=()
  if [ "$2" -gt 1 ]; then
    launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$2")
  fi
  FINETUNE_HOSTS=$3 timeout -k 5 600 ${launcher[@]+"${launcher[@]}"} "$binary" train --model "$model" \
    --train data/samples/toronto-train.csv --eval data/samples/toronto-dev.csv \
    --label-column category --reinit-head --max-train-samples 400 --max-eval-samples 100 \
    --max-steps 40 --eval-every 10 --save-every 3 --virtual-shards 8 --dropout 0.1 --lr 1e-3 \
    --seed 7 --output "$1" --resume --no-progress > "$work/log" 2>&1 < /dev/null &
  job=$!
}

# finish OUTPUT: waits for the run. Its exit code in $code; in $hung whether the launcher was still
# there 20 seconds after the last of its processes.
finish() {
  local looks=0
  hung=
  code=0
  {  # bash would tell of every kill
    while kill -0 "$job"; do
      sleep 0.1
      looks=$((looks + 1))
      if [ -n "$(processes_of "$1")" ]; then looks=0; fi
      if [ "$looks" -eq 200 ]; then
        hung=yes
        kill "$job"
      fi
    done
    wait "$job" || code=$?
  } 2> /dev/null
  job=
}

processes_of() {
  local pid
  for pid in $(pgrep -f -- "--output $1 " || true); do
    if [ "$(readlink "/proc/$pid/exe" || true)" = "$binary" ]; then echo "$pid"; fi
  done
}

sums() {
  (cd "$1" && grep -h weights_sha256 run.json && sha256sum model/model.safetensors predictions.csv confusion.csv)
}

milliseconds() {
  echo $(($(date +%s%N) / 1000000))
}

# choose: a number of processes in $p and of hosts in $h.
choose() {
  p=${counts[RANDOM % ${#counts[@]}]}
  h=1
  if [ "$p" -gt 1 ] && [ $((RANDOM % 3)) -eq 0 ]; then h=2; fi
}

# die OUTPUT: a run in which one process is killed at any moment, the start and the end included.
# In $died whether one was; a run that ends before it must have succeeded.
die() {
  local pids delay begun
  choose
  delay=$(((RANDOM * 32768 + RANDOM) % duration[$p]))
  start "$1" "$p" "$h"
  sleep "$((delay / 1000)).$(printf %03d $((delay % 1000)))"
  pids=()
  while kill -0 "$job" 2> /dev/null; do
    mapfile -t pids < <(processes_of "$1")
    if [ ${#pids[@]} -gt 0 ]; then break; fi
  done
  died=
  begun=$(milliseconds)
  if [ ${#pids[@]} -gt 0 ] && kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2> /dev/null; then died=yes; fi
  finish "$1"
  story+=" $p/$h:${delay}ms:$code"
  if [ -z "$died" ] && [ "$code" -ne 0 ]; then fault="ended with $code, unharmed"; fi
  if [ -n "$hung" ]; then hangs=$((hangs + 1)); fi
  begun=$(($(milliseconds) - begun))
  if [ "$begun" -gt 60000 ]; then fault="it took $begun ms to end"; fi
  if [ -n "$(processes_of "$1")" ]; then fault="processes are left"; fi
}

for p in "${counts[@]}"; do
  begun=$(milliseconds)
  start "$work/straight-$p" "$p" 1
  finish "$work/straight-$p"
  if [ "$code" -ne 0 ]; then cat "$work/log"; exit 1; fi
  duration[$p]=$(($(milliseconds) - begun))
  if [ "$p" -eq 1 ]; then expected=$(sums "$work/straight-1"); fi
  if [ "$(sums "$work/straight-$p")" != "$expected" ]; then echo "$p processes: other results"; exit 1; fi
  echo "undisturbed on $p: ${duration[$p]} ms"
done

equal=0
deaths=0
hangs=0
for ((trial = 1; trial <= trials; ++trial)); do
  out=$work/trial
  rm -rf "$out"
  fault=
  story=
  more=$((1 + RANDOM % 4))
  for ((death = 0; death < more; ++death)); do
    die "$out"
    if [ -n "$fault" ] || [ "$code" -eq 0 ]; then break; fi
    if [ -n "$died" ]; then deaths=$((deaths + 1)); fi
  done
  if [ -z "$fault" ]; then
    choose
    start "$out" "$p" "$h"
    finish "$out"
    story+=" $p/$h:$code"
    if [ "$code" -ne 0 ]; then fault="could not be completed"
    elif [ "$(sums "$out")" != "$expected" ]; then fault="other results"
    elif [ -n "$(find "$out" -name '*.tmp.*')" ]; then fault="temporary files are left"
    fi
  fi
  if [ -z "$fault" ]; then
    equal=$((equal + 1))
  else
    echo "trial $trial: $fault; processes/hosts:delay:exit code$story"
    cat "$work/log"
    for pid in $(processes_of "$out"); do kill -9 "$pid" 2> /dev/null || true; done
  fi
done
echo "$deaths deaths; $hangs times mpirun was still there when all its processes had gone"
echo "$equal of $trials equal"
[ "$equal" -eq "$trials" ]
