#!/usr/bin/env bash
# Measures finetune beside Hugging Face on the same rows, and writes docs/benchmarks.
# The sides run in turn; only this machine's rows are replaced. $PEER_PYTHON runs the peer; without it,
# a virtual environment in build/peer, made once. Options are those of compare_hf.py:
#   scripts/bench/compare_hf.sh --model DIR                     all parts, three runs a side
#   scripts/bench/compare_hf.sh --model DIR --parts tokenizer,shares
#   scripts/bench/compare_hf.sh --architecture roberta,modernbert --runs 2 --steps 4
#   scripts/bench/compare_hf.sh --model DIR --parts training --works minilm-bank --steps 10 --runs 1 --output /dev/stdout
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # use the CPU even if there is a GPU
project=$(cd "$(dirname "$0")/../.." && pwd)

. "$project/scripts/bench/peer_python.sh"
exec "$PEER_PYTHON" "$project/scripts/bench/compare_hf.py" --peer-python "$PEER_PYTHON" "$@"
