#!/usr/bin/env bash
# Fails if the CUDA module is larger than 40 MB for six GPUs, or a sixth of that for each of fewer.
# What the GPUs share (about a sixth of a module for one) counts in each part, so fewer GPUs have the narrower limit.
#   scripts/gpu/module_size.sh MODULE GPUS       GPUS: their number (meson_options.txt, gpu_architectures)
set -euo pipefail
[ $# -eq 2 ] || { sed -n 4p "$0" >&2; exit 2; }
size=$(stat -L -c %s "$1")
limit=$((40000000 * $2 / 6))
echo "$1: $size bytes with native code for $2 GPUs, at most $limit"
[ "$size" -le "$limit" ] || { echo "module_size: error: $1 is too large" >&2; exit 1; }
