#!/usr/bin/env bash
# Measures the quality of fine-tuned models beside simpler models and Hugging Face.
# Each cell (data, system, seed) is run once and kept in quality/results.jsonl, from which
# docs/quality/results.csv is written. Options are those of quality.py:
#   scripts/bench/quality.sh --model DIR --list                         the cells that are missing
#   scripts/bench/quality.sh --model DIR --data toronto-4000 --systems ngrams,finetune-auto
#   scripts/bench/quality.sh --model DIR --minutes 120                  as many missing cells as fit
#   scripts/bench/quality.sh --scratch DIR --final                      evaluates the models in DIR on test rows
#   scripts/bench/quality.sh --document                                 only writes the CSV file
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # use the CPU even if there is a GPU
project=$(cd "$(dirname "$0")/../.." && pwd)

case " $* " in
  *" --document "* | *" --list "* | *" --final "*) exec python3 "$project/scripts/bench/quality.py" "$@" ;;
esac
. "$project/scripts/bench/peer_python.sh"
exec python3 "$project/scripts/bench/quality.py" --peer-python "$PEER_PYTHON" "$@"
