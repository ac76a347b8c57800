#!/usr/bin/env bash
# run.sh of a bundle (gpu_bundle.sh): unpacks it once and runs a command in it.
# It unpacks bundle.tar.xz, which is beside it, to ${TMPDIR:-/tmp}. The command finds the bundle's
# and CUDA's libraries. Give absolute paths for results.
#   run.sh scripts/gpu/gpu_check.sh [CHECK...]
#   run.sh build/finetune doctor
#   run.sh scripts/bench/compare_gpu.sh --works base-squad --output /tmp/section.md
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if [ $# = 0 ]; then
  sed -n '2,/^set/{s/^# //p}' "$0"
  exit 2
fi
place=${TMPDIR:-/tmp}/finetune-gpu-$(sha256sum "$here/bundle.tar.xz" | cut -c 1-12)
if [ ! -d "$place" ]; then
  rm -rf "$place.new"
  mkdir -p "$place.new"
  python3 -W ignore -m tarfile -e "$here/bundle.tar.xz" "$place.new"
  mv -T "$place.new" "$place"
fi
cd "$place/finetune"
. scripts/gpu/gpu_environment.sh
exec "$@"
