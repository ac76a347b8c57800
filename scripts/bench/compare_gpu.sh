#!/usr/bin/env bash
# Measures finetune on this machine's NVIDIA GPU beside PyTorch and transformers on the same one.
# Runs in turn, and writes its rows in docs/benchmarks. Without a GPU it says so, writes
# nothing and exits 0.
# The peer is PEER_PYTHON's (default: python3), which must have torch, transformers and accelerate:
# nothing is installed. Options are compare_gpu.py's:
#   scripts/bench/compare_gpu.sh                                    all works, three runs a side
#   scripts/bench/compare_gpu.sh --works base-squad --steps 60 --runs 1 --output /dev/stdout
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
if [ ! -e /dev/nvidiactl ]; then
  echo "compare_gpu: there is no NVIDIA GPU here: nothing is measured"
  exit 0
fi
python=${PEER_PYTHON:-python3}
exec "$python" "$project/scripts/bench/compare_gpu.py" --peer-python "$python" "$@"
