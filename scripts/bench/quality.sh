#!/usr/bin/env bash
# Measures how good the models are that come out, beside simpler ones and Hugging Face.
# Each cell (data, system, seed) is run once and kept in quality/results.jsonl; docs/quality/results.csv
# is written from there, nothing by hand. Options are quality.py's:
#   scripts/bench/quality.sh --model DIR --list                         the cells that are missing
#   scripts/bench/quality.sh --model DIR --data toronto-4000 --systems ngrams,finetune-auto
#   scripts/bench/quality.sh --model DIR --minutes 120                  as many missing cells as fit
#   scripts/bench/quality.sh --scratch DIR --final                      the models kept in DIR on the test rows
#   scripts/bench/quality.sh --document                                 the CSV file alone
set -euo pipefail
export CUDA_VISIBLE_DEVICES=  # on the CPU, whatever is there
project=$(cd "$(dirname "$0")/../.." && pwd)

case " $* " in
  *" --document "* | *" --list "* | *" --final "*) exec python3 "$project/scripts/bench/quality.py" "$@" ;;
esac
. "$project/scripts/bench/peer_python.sh"
exec python3 "$project/scripts/bench/quality.py" --peer-python "$PEER_PYTHON" "$@"
