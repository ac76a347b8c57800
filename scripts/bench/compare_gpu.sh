#!/usr/bin/env bash
# Measures finetune on this machine's NVIDIA GPU beside PyTorch and transformers on the same GPU.
# The sides run in turn; the results go to docs/benchmarks. Without a GPU it says so, writes
# nothing and exits 0.
# $PEER_PYTHON (default: python3) runs the peer and must have torch, transformers and accelerate:
# nothing is installed. Options are those of compare_gpu.py:
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
