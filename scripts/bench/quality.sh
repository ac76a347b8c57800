#!/usr/bin/env bash
# Measures how good the models are that come out, beside simpler ones and Hugging Face.
# Each cell (data, system, seed) is run once and kept in quality/results.jsonl; docs/quality.md is
# written from there, nothing by hand. Options are quality.py's:
#   scripts/bench/quality.sh --model DIR --list                         the cells that are missing
#   scripts/bench/quality.sh --model DIR --data toronto-4000 --systems ngrams,finetune-auto
#   scripts/bench/quality.sh --model DIR --minutes 120                  as many missing cells as fit
#   scripts/bench/quality.sh --document                                 the document alone
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)

case " $* " in
  *" --document "* | *" --list "*) exec python3 "$project/scripts/bench/quality.py" "$@" ;;
esac
if [ -z "${PEER_PYTHON:-}" ]; then
  venv=$project/build/peer
  if [ ! -e "$venv/complete" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch transformers==4.57.1 tokenizers==0.22.2 accelerate >&2
    touch "$venv/complete"
  fi
  PEER_PYTHON=$venv/bin/python
fi
exec python3 "$project/scripts/bench/quality.py" --peer-python "$PEER_PYTHON" "$@"
