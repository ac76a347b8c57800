#!/usr/bin/env bash
# Trains both tasks on several numbers of processes and hosts, and compares the results.
# On 1, 2, 3, 4, 6 and 8 processes, as replicas, stages of a pipeline and tensor ranks: plain, with
# --recompute, with --shard-optimizer and with micro-batches, each interrupted and continued in
# another layout. Compares weights, metrics and prediction files of all. Last line: "N of N equal".
#   scripts/nightly/matrix.sh [BUILD_DIRECTORY [PART/PARTS]]      2/4: the second quarter of the lines
set -euo pipefail
cd "$(dirname "$0")/../.."
export FINETUNE_BINARY=${1:-build}/finetune
exec python3 tests/mpi/matrix.py ${2:+"$2"}
