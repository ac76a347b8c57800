#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in one report: the machine, the op table on the GPU in fp32
# and bf16 against the double-precision reference, two runs with the same bits, the model's tests on the
# GPU, and compute-sanitizer over the op table where it is installed. Its last line is
# "N passed, N failed, N skipped"; without a GPU all are skips.
#   scripts/gpu_check.sh [BUILD_DIRECTORY]
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
logs=$build/gpu-check
mkdir -p "$logs"
rm -f "$logs"/*.log

build_all() {
  scripts/configure.sh "$build" -Dcuda=enabled &&
    meson compile -C "$build" finetune finetune_cuda test_ops test_model
}
if ! build_all > "$logs/build.txt" 2>&1; then
  tail -n 20 "$logs/build.txt"
  echo "gpu_check: error: the build failed ($logs/build.txt)"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
export FINETUNE_SHARED=${FINETUNE_SHARED:-$PWD/../shared}

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

check ops "$build/tests/unit/ops/test_ops" "--test-case=*GPU*" --duration=true
if [ -e /dev/nvidiactl ]; then
  check model "$build/tests/unit/model/test_model" --duration=true
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
