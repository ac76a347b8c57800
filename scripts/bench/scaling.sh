#!/usr/bin/env bash
# Measures training on several processes beside one process with as many threads, in turn.
#   scripts/bench/scaling.sh [--processes N] [--runs N] [--steps N] [--shapes minilm,base] [--precision auto|fp32|bf16]
# Prints samples per second and ratios (median of runs), and writes them into docs/benchmarks/scaling*.csv.
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # use the CPU even if there is a GPU
cd "$(dirname "$0")/../.."
exec python3 scripts/bench/scaling.py "$@"
