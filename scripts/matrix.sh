#!/usr/bin/env bash
# Trains both tasks on several numbers of processes and hosts, and compares the results.
# On 1, 2, 3, 4, 6 and 8 processes, some of them stages of a pipeline: plain, with --recompute, with --shard-optimizer and with
# micro-batches, each interrupted and continued at another number of processes. Compares weights,
# metrics and prediction files of all. Last line: "N of N equal".
#   scripts/matrix.sh [BUILD_DIRECTORY]
set -euo pipefail
cd "$(dirname "$0")/.."
export FINETUNE_BINARY=${1:-build}/finetune FINETUNE_SHARED_DEFAULT=${FINETUNE_SHARED:-../shared}
exec python3 tests/mpi/matrix.py
