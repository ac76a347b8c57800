#!/usr/bin/env bash
# Runs every check that needs an NVIDIA GPU, and reports on the machine and on the checks.
# The machine: libraries and finetune doctor. Each check has a time limit and prints its wall time:
#   ops         the op table on the GPU in fp32 and bf16 against the double-precision reference, twice: same bits
#   events      a feature of CUDA on which the exchange between GPUs relies: events in graphs
#   library     attention by cuDNN (FINETUNE_CUDA_ATTENTION=cudnn) instead of our own kernels: the same table, and
#               masks that forward and backward pass share; a step of SQuAD with each of the two
#   model       forward pass and gradients against golden values
#   program     train, predict, plan and bench with --device cuda beside the CPU; two runs, same bits
#   trajectory  Hugging Face's loss trajectories, fp32 and bf16
#   resume      interrupted and continued runs end with the same bits
#   processes   two and more processes on one GPU have the bits of one
#   memcheck    compute-sanitizer over the op table, where it is installed
#   racecheck   the same, for shared memory; takes longest
# The last line is "N passed, N failed, N skipped". Without a GPU all are skipped, and it exits 0.
#   scripts/gpu/gpu_check.sh [BUILD_DIRECTORY] [CHECK...]
# Brings BUILD_DIRECTORY (default: build) up to date, except in a bundle (gpu_bundle.sh) or with
# GPU_CHECK_AS_BUILT=1. Without a CHECK all run.
# Whole outputs are in $GPU_CHECK_LOGS (default: BUILD_DIRECTORY/gpu-check).
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
all=(ops events library model program trajectory resume processes memcheck racecheck)
is_check() { [[ " ${all[*]} " == *" $1 "* ]]; }
build=build
if [ $# -gt 0 ] && ! is_check "$1" && { [ -d "$1" ] || [[ $1 == */* || $1 == build* ]]; }; then
  build=$1
  shift
fi
chosen=("$@")
[ $# -gt 0 ] || chosen=("${all[@]}")
for name in "${chosen[@]}"; do
  if ! is_check "$name"; then
    echo "gpu_check: error: there is no check '$name'; there are: ${all[*]}" >&2
    exit 2
  fi
done
logs=${GPU_CHECK_LOGS:-$build/gpu-check}
mkdir -p "$logs" || exit 2
rm -f "$logs"/*.log

has_gpu() { [ -e /dev/nvidiactl ]; }
build_all() {
  local cuda=auto targets=(finetune test_ops test_model)
  if has_gpu; then
    cuda=enabled
    targets+=(finetune_cuda test_graph_events)
  fi
  scripts/configure.sh "$build" -Dcuda=$cuda && meson compile -C "$build" "${targets[@]}"
}
# Test programs look for the module in their own folder. A bundle has these links already.
link_module() {
  local folder
  for folder in ops model; do
    ln -sfn ../../../finetune_cuda.so "$build/tests/unit/$folder/finetune_cuda.so" || return
  done
}
make_ready() {
  [ ! -f bundle.txt ] || return 0
  [ -n "${GPU_CHECK_AS_BUILT:-}" ] || build_all || return
  link_module
}
if ! make_ready > "$logs/build.txt" 2>&1; then
  tail -n 20 "$logs/build.txt"
  echo "gpu_check: error: the build failed ($logs/build.txt)"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
export FINETUNE_SHARED=${FINETUNE_SHARED:-$PWD/../shared} FINETUNE_BINARY=$build/finetune

echo "== machine"
[ ! -f bundle.txt ] || cat bundle.txt
. scripts/gpu/gpu_environment.sh
report_libraries
"$build/finetune" doctor
has_gpu || echo "there is no NVIDIA GPU here: what needs one is skipped"

# within SECONDS COMMAND...: shows and logs the output. The limit sends an interrupt, so that tests end their programs.
within() {
  local seconds=$1 start=$SECONDS status
  shift
  FINETUNE_DEVICE=cuda timeout --signal=INT --kill-after=20 "$seconds" "$@" > "$logs/$name.log" 2>&1
  status=$?
  [ $status != 124 ] || echo "gpu_check: stopped after $seconds seconds" >> "$logs/$name.log"
  echo "exit status: $status" >> "$logs/$name.log"
  tail -n 40 "$logs/$name.log"
  echo "$name: $((SECONDS - start)) s"
}
python_test() {
  within "$1" env -u FINETUNE_HOST_CUDA_MODULE python3 "tests/$2_test.py" "${@:3}"
}
skip() {
  printf 'SKIPPED: %s\ntest cases: 1 | 1 passed | 0 failed\nexit status: 0\n' "$1" | tee "$logs/$name.log"
}
# For programs that do not themselves report a missing GPU as a skip.
on_gpu() {
  if has_gpu; then
    within "$@"
  else
    skip "there is no NVIDIA GPU here"
  fi
}
sanitizer() {
  if has_gpu && ! command -v compute-sanitizer > /dev/null; then
    skip "compute-sanitizer is not installed"
  else
    on_gpu "$1" compute-sanitizer --tool "$name" --error-exitcode 1 "${@:2}" \
      "$build/tests/unit/ops/test_ops" "--test-case=*GPU*"
  fi
}

for name in "${chosen[@]}"; do
  echo "== $name"
  case $name in
    ops) within 120 "$build/tests/unit/ops/test_ops" "--test-case=*GPU*" --duration=true ;;
    events) on_gpu 30 "$build/tests/unit/ops/test_graph_events" ;;
    library)
      within 240 env FINETUNE_CUDA_ATTENTION=cudnn bash -c '
        "$1/tests/unit/ops/test_ops" "--test-case=*library*" --duration=true || exit
        [ -e /dev/nvidiactl ] || exit 0
        for attention in own cudnn; do
          FINETUNE_CUDA_ATTENTION=$attention "$1/finetune" bench step --device cuda --precision bf16 --shape base \
            --lengths squad --batch-size 32 || exit
        done' - "$build"
      ;;
    model) on_gpu 120 "$build/tests/unit/model/test_model" --duration=true ;;
    program) python_test 240 cli/gpu/cuda ;;
    trajectory) python_test 240 cli/trajectory ;;
    # Other tests in resume_test.py send signals at times that suit a run on a CPU, or expect the CPU's best step.
    resume)
      python_test 120 cli/resume test_no_checkpoint_yet test_finished test_stop_during_the_last_evaluation \
        test_changed_data_and_model
      ;;
    processes) python_test 300 mpi/cuda ;;
    # memcheck would report "not ready" of cudaEventQuery as an error, which the module expects. The module itself
    # checks every call's status.
    memcheck) sanitizer 300 --report-api-errors no ;;
    # Our kernels only: in cuBLASLt's, racecheck is slow and reports races at barriers.
    racecheck) sanitizer 540 --kernel-name kns=finetune ;;
  esac
done

echo "== result"
python3 tests/count_tests.py "$logs"/*.log
