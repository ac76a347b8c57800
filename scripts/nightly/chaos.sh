#!/usr/bin/env bash
# Kills random processes of a small training run at random moments and resumes it, again and again.
# Each time it uses a random number of processes and hosts and a random layout (replicas, stages, tensor
# ranks, placement, schedule, --recompute). The final result must equal that of an undisturbed run.
#   scripts/nightly/chaos.sh N [--seed S] [--architecture NAME|all] [--model DIR] [--binary FILE]
# N trials of each architecture: bert (default), or a folder of tests/golden/family. The seed is printed.
# Last line: "N of N equal"; exits 1 if not all are. Leaves no files. Open MPI 4's mpirun can hang if
# a process dies just while it reports to mpirun: this script then ends mpirun, and counts the hangs.
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # use the CPU even if there is a GPU
cd "$(dirname "$0")/../.."

trials=${1:?usage: scripts/nightly/chaos.sh N [--seed S] [--architecture NAME|all] [--model DIR] [--binary FILE]}
shift
seed=$(($(date +%s) % 100000))
architecture=bert
model=
binary=build/finetune
while [ $# -gt 0 ]; do
  case $1 in
    --seed) seed=$2 ;;
    --architecture) architecture=$2 ;;
    --model) model=$2 ;;
    --binary) binary=$2 ;;
    *) echo "chaos.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
binary=$(realpath "$binary")
models=tests/mpi/stages/encoder_models.py
if [ "$architecture" = all ]; then
  failed=0
  for architecture in $(python3 "$models"); do
    echo "$architecture"
    scripts/nightly/chaos.sh "$trials" --seed "$seed" --architecture "$architecture" --binary "$binary" || failed=1
  done
  exit "$failed"
fi
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

if [ -z "$model" ]; then  # a model of four layers, for four stages
  model=$work/model
  FINETUNE_BINARY=$binary python3 "$models" "$architecture" "$model"
fi

counts=(1 2 3 4 8)
# For each number of processes, the undisturbed run uses the slowest layout.
declare -A duration slowest=([1]="" [2]="--tp 2" [3]="" [4]="--pp 2 --tp 2" [8]="--pp 4 --tp 2")

# start OUTPUT PROCESSES HOSTS LAYOUT...: starts a run in the background, with a time limit in case
# it hangs.
start() {
  local output=$1 processes=$2 hosts=$3
  shift 3
  local launcher=()
  if [ "$processes" -gt 1 ]; then
    launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none -n "$processes")
  fi
  FINETUNE_HOSTS=$hosts timeout -k 5 600 ${launcher[@]+"${launcher[@]}"} "$binary" train --model "$model" \
    --train data/samples/toronto-train.csv --eval data/samples/toronto-dev.csv \
    --label-column category --reinit-head --max-train-samples 400 --max-eval-samples 100 \
    --max-steps 40 --eval-every 10 --save-every 3 --virtual-shards 2 --tensor-shards 2 \
    --micro-batches 4 --dropout 0.1 --lr 1e-3 --seed 7 --output "$output" "$@" --resume --no-progress > "$work/log" 2>&1 < /dev/null &
  job=$!
}

# finish OUTPUT: waits for the run. Sets $code to its exit code, and $hung if the launcher was still
# running 20 seconds after the last of its processes.
finish() {
  local looks=0
  hung=
  code=0
  {  # redirected below, so that bash does not report every kill
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

# are_gone OUTPUT: whether the processes end soon after mpirun, which does not wait for those it killed.
are_gone() {
  local looks
  for ((looks = 0; looks < 50; ++looks)); do
    if [ -z "$(processes_of "$1")" ]; then return 0; fi
    sleep 0.1
  done
  return 1
}

sums() {
  (cd "$1" && grep -h weights_sha256 run.json && sha256sum model/model.safetensors predictions.csv confusion.csv)
}

milliseconds() {
  echo $(($(date +%s%N) / 1000000))
}

# any WORD...: sets $word to one of the words at random.
any() {
  shift $((RANDOM % $#))
  word=$1
}

# choose: sets $p to a number of processes, $h to a number of hosts, $layout to a layout for them.
# There are two virtual shards, two tensor shards and four layers.
choose() {
  local pp tp placements=(DPT PDT DTP TDP PTD TPD cluster spread) schedules=(1f1b gpipe simple)
  p=${counts[RANDOM % ${#counts[@]}]}
  h=1
  if [ "$p" -gt 1 ] && [ $((RANDOM % 3)) -eq 0 ]; then h=2; fi
  any 1 1 2; tp=$word
  any 1 2 2 4; pp=$word
  if [ $((p % tp)) -ne 0 ]; then tp=1; fi
  while [ $((p % (pp * tp))) -ne 0 ]; do pp=$((pp / 2)); done
  layout=()
  if [ $((RANDOM % 2)) -eq 0 ]; then layout+=(--recompute); fi
  if [ "$tp" -gt 1 ]; then
    layout+=(--tp "$tp")
  fi
  if [ "$pp" -gt 1 ]; then
    if [ "$pp" -eq 2 ] && [ $((p / pp / tp)) -gt 1 ]; then schedules+=(interleaved interleaved); fi
    any "${schedules[@]}"
    layout+=(--pp "$pp" --pipeline-schedule "$word")
  fi
  if [ $((pp * tp)) -gt 1 ]; then
    any "${placements[@]}"
    layout+=(--placement "$word")
  fi
}

# die OUTPUT: runs, and kills one process at a random moment, which may be at the start or the end.
# Sets $died if a process was killed; a run that ended before that must have succeeded.
die() {
  local pids delay begun
  choose
  delay=$(((RANDOM * 32768 + RANDOM) % duration[$p]))
  start "$1" "$p" "$h" ${layout[@]+"${layout[@]}"}
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
  story+="; $p/$h ${layout[*]-}:${delay}ms:$code"
  if [ -z "$died" ] && [ "$code" -ne 0 ]; then fault="ended with $code, unharmed"; fi
  if [ -n "$hung" ]; then hangs=$((hangs + 1)); fi
  begun=$(($(milliseconds) - begun))
  if [ "$begun" -gt 60000 ]; then fault="it took $begun ms to end"; fi
  if ! are_gone "$1"; then fault="processes are left"; fi
}

for p in "${counts[@]}"; do
  begun=$(milliseconds)
  # shellcheck disable=SC2086  # several words
  start "$work/straight-$p" "$p" 1 ${slowest[$p]}
  finish "$work/straight-$p"
  if [ "$code" -ne 0 ]; then cat "$work/log"; exit 1; fi
  duration[$p]=$(($(milliseconds) - begun))
  if [ "$p" -eq 1 ]; then expected=$(sums "$work/straight-1"); fi
  if [ "$(sums "$work/straight-$p")" != "$expected" ]; then echo "$p processes: other results"; exit 1; fi
  echo "undisturbed on $p ${slowest[$p]}: ${duration[$p]} ms"
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
    start "$out" "$p" "$h" ${layout[@]+"${layout[@]}"}
    finish "$out"
    story+="; $p/$h ${layout[*]-}:$code"
    if [ "$code" -ne 0 ]; then fault="could not be completed"
    elif [ "$(sums "$out")" != "$expected" ]; then fault="other results"
    elif [ -n "$(find "$out" -name '*.tmp.*')" ]; then fault="temporary files are left"
    fi
  fi
  if [ -z "$fault" ]; then
    equal=$((equal + 1))
  else
    echo "trial $trial: $fault; processes/hosts layout:delay:exit code$story"
    cat "$work/log"
    for pid in $(processes_of "$out"); do kill -9 "$pid" 2> /dev/null || true; done
  fi
done
echo "$deaths deaths; $hangs times mpirun was still there when all its processes had gone"
echo "$equal of $trials equal"
[ "$equal" -eq "$trials" ]
