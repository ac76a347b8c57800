#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in one report:
#   the machine: finetune doctor
#   ops          the op table on the GPU in fp32 and bf16 against the double-precision reference, twice: same bits
#   model        forward pass and gradients against golden values
#   program      train, predict, plan and bench with --device cuda beside the CPU; two runs, same bits
#   trajectory   Hugging Face's loss trajectories, fp32 and bf16
#   resume       interrupted and continued runs end with the same bits
#   sanitizer-*  compute-sanitizer over the op table, where it is installed
# Its last line is "N passed, N failed, N skipped"; without a GPU all are skips, and it exits 0.
#   scripts/gpu_check.sh [BUILD_DIRECTORY]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
logs=$build/gpu-check
mkdir -p "$logs"
rm -f "$logs"/*.log

has_gpu() { [ -e /dev/nvidiactl ]; }
build_all() {
  local cuda=auto targets=(finetune test_ops test_model)
  if has_gpu; then
    cuda=enabled
    targets+=(finetune_cuda)
  fi
  scripts/configure.sh "$build" -Dcuda=$cuda && meson compile -C "$build" "${targets[@]}"
}
if ! build_all > "$logs/build.txt" 2>&1; then
  tail -n 20 "$logs/build.txt"
  echo "gpu_check: error: the build failed ($logs/build.txt)"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
export FINETUNE_SHARED=${FINETUNE_SHARED:-$PWD/../shared} FINETUNE_BINARY=$build/finetune

echo "== machine"
"$build/finetune" doctor

# name, then the command; its output is shown and counted
check() {
  local name=$1
  shift
  echo "== $name"
  "$@" > "$logs/$name.log" 2>&1
  local status=$?
  echo "exit status: $status" >> "$logs/$name.log"
  tail -n 40 "$logs/$name.log"
}
on_gpu() {
  env -u FINETUNE_HOST_CUDA_MODULE FINETUNE_DEVICE=cuda python3 "tests/cli/$1_test.py" "${@:2}"
}

check ops "$build/tests/unit/ops/test_ops" "--test-case=*GPU*" --duration=true
if has_gpu; then
  check model "$build/tests/unit/model/test_model" --duration=true
else
  echo "there is no NVIDIA GPU here: what needs one is skipped"
fi
check program on_gpu cuda
check trajectory on_gpu trajectory
# The others of resume_test.py send signals at times that suit a CPU's start.
check resume on_gpu resume test_no_checkpoint_yet test_finished test_stop_during_the_last_evaluation \
  test_changed_data_and_model test_best_checkpoint_gone
if has_gpu; then
  if sanitizer=$(command -v compute-sanitizer); then
    for tool in memcheck racecheck; do
      check "sanitizer-$tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
        "$build/tests/unit/ops/test_ops" "--test-case=*GPU*"
    done
  else
    echo "compute-sanitizer is not installed: not run"
  fi
fi

echo "== result"
python3 scripts/count_tests.py "$logs"/*.log
