#!/usr/bin/env bash
# Trains both tasks on several numbers of processes and hosts, and compares the results.
# Uses 1, 2, 3, 4, 6 and 8 processes as replicas, pipeline stages and tensor ranks: plain, with
# --recompute, with --shard-optimizer and with micro-batches. Interrupts each run and continues it in
# another layout. Compares all weights, metrics and prediction files. Last line: "N of N equal".
#   scripts/nightly/matrix.sh [BUILD_DIRECTORY [PART/PARTS]] [--architecture NAME|all]
# PART/PARTS: 2/4 is the second quarter of the lines. NAME: bert (default), or a folder of tests/golden/family.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build
if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then
  build=$1
  shift
fi
export FINETUNE_BINARY=$build/finetune
exec python3 tests/mpi/matrix.py "$@"
