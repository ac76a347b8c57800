#!/usr/bin/env bash
# Measures finetune beside Hugging Face on the same rows, and writes docs/benchmarks.
# Runs in turn, and replaces its own rows only. The peer lives in build/peer, a virtual
# environment made here once, or in PEER_PYTHON's. Options are compare_hf.py's:
#   scripts/bench/compare_hf.sh --model DIR                     all parts, three runs a side
#   scripts/bench/compare_hf.sh --model DIR --parts tokenizer,shares
#   scripts/bench/compare_hf.sh --architecture roberta,modernbert --runs 2 --steps 4
#   scripts/bench/compare_hf.sh --model DIR --parts training --works minilm-bank --steps 10 --runs 1 --output /dev/stdout
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # on the CPU, whatever is there
project=$(cd "$(dirname "$0")/../.." && pwd)

. "$project/scripts/bench/peer_python.sh"
exec "$PEER_PYTHON" "$project/scripts/bench/compare_hf.py" --peer-python "$PEER_PYTHON" "$@"
