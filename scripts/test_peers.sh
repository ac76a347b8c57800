#!/usr/bin/env bash
# Runs the tests beside Hugging Face (tests/peers).
# They load exported models in transformers, compare training steps with torch and tokens with the package tokenizers,
# and read a run's files with TensorBoard, pandas, DVC and JUnit readers. The last line is "N passed, N failed, N
# skipped". The packages go into a virtual environment (2 GB), which is made once.
#   scripts/test_peers.sh [NAME...]          only tests/peers/NAME_test.py
#   PEER_PYTHON=python3 scripts/test_peers.sh     an interpreter with these packages (or transformers 5.24.0)
#   PEER_VENV=DIR                                 another place for the environment (.venv-peers)
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(torch transformers==4.57.1 tokenizers==0.22.2 accelerate numpy sentencepiece protobuf)
readers=(tensorboard pandas dvc junitparser lxml cleanlab)  # tests that need a missing one are skipped
check='import sys, torch, numpy, accelerate, transformers, tokenizers
sys.exit((transformers.__version__, tokenizers.__version__) not in (("4.57.1", "0.22.2"), ("5.24.0", "0.23.3")))'

if [ -n "${PEER_PYTHON:-}" ]; then
  python=$PEER_PYTHON
  "$python" -c "$check" || {
    echo "test_peers: error: $python lacks one of ${packages[*]}" >&2; exit 1; }
else
  venv=${PEER_VENV:-.venv-peers}
  python=$venv/bin/python
  if ! "$python" -c "$check" 2>/dev/null; then
    echo "test_peers: installing ${packages[*]} into $venv"
    python3 -m venv "$venv" || {
      echo "test_peers: error: python3 -m venv failed (apt-get install python3-venv)" >&2; exit 1; }
    "$python" -m pip install -q --disable-pip-version-check "${packages[@]}" "${readers[@]}"
    "$python" -c "$check"
  fi
fi

# If $FINETUNE_BINARY names a program, nothing is built.
if [ -z "${FINETUNE_BINARY:-}" ]; then
  scripts/install_deps.sh
  scripts/configure.sh build
  meson compile -C build finetune
fi
export FINETUNE_BINARY=${FINETUNE_BINARY:-$PWD/build/finetune}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in tests/peers/*_test.py; do names+=("$(basename "$file" _test.py)"); done
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for name in "${names[@]}"; do
  echo "== peers-$name"
  status=0
  timeout 1200 "$python" "tests/peers/${name}_test.py" 2>&1 | tee "$logs/peers-$name.log" || status=$?
  echo "exit status: $status" >> "$logs/peers-$name.log"
done
python3 tests/count_tests.py "$logs"/*.log
