#!/usr/bin/env python3
"""Makes the inputs that fuzzing begins with, and dictionaries of words that the formats have.

usage: make_seeds.py OUT [HDF5_SEEDS]

OUT/TARGET/NAME are the inputs of each target, OUT/dictionaries/TARGET.dict its words. HDF5_SEEDS is the program of
that name (a build's tests/fuzz/hdf5_seeds), without which the targets keras_hdf5 and checkpoint have none. Small real
files of tests/golden are inputs, too.
"""
import json
import subprocess
import sys
from pathlib import Path

from seeds import models, options, texts, weights

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
SEPARATOR = b"\n--8<--\n"
LARGEST = 64 << 10


def joined(parts):
    parts = [part.encode() if isinstance(part, str) else part for part in parts]
    return SEPARATOR.join(parts)


class Corpora:
    """The folders of inputs; each input is named after its special property."""

    def __init__(self, out):
        self.out = out

    def add(self, target, name, *parts):
        content = joined(parts)
        if len(content) <= LARGEST:
            (self.out / target).mkdir(parents=True, exist_ok=True)
            (self.out / target / name).write_bytes(content)

    def words(self, targets, words):
        """A dictionary in libFuzzer's form."""
        folder = self.out / "dictionaries"
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for word in sorted({word.encode() if isinstance(word, str) else word for word in words}):
            plain = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\x{c:02x}" for c in word)
            lines.append(f'"{plain}"\n')
        for target in targets:
            (folder / f"{target}.dict").write_text("".join(lines))


def add_golden(corpora):
    """Real files; large ones are omitted or truncated."""
    for path in sorted([*GOLDEN.glob("*/config.json"), *GOLDEN.glob("*/*/*config.json")]):
        corpora.add("config_json", f"{path.parent.name}-{path.name}", path.read_bytes())
    for path in sorted(GOLDEN.glob("tokenizers/*/tokenizer.json")):
        whole = json.loads(path.read_text())
        vocabulary = whole.get("model", {}).get("vocab")
        if isinstance(vocabulary, dict):
            named = {token["content"] for token in whole.get("added_tokens", [])}
            whole["model"]["vocab"] = {piece: id for piece, id in vocabulary.items() if id < 60 or piece in named}
            config = path.with_name("tokenizer_config.json")
            corpora.add("tokenizer_json", path.parent.name, json.dumps(whole),
                        config.read_bytes() if config.exists() else b"", "a text")
    for path in sorted(GOLDEN.glob("weights/*/*.index")):
        corpora.add("tensorflow_checkpoint", f"{path.parent.name}-{path.name}", path.read_bytes(), b"")
    for path in sorted(GOLDEN.glob("hostile/*/*.index.json")):
        corpora.add("shard_index", path.parent.name, path.read_bytes(), b"", b"")
    for path in sorted(GOLDEN.glob("hostile/*/tf_model.h5")):
        corpora.add("keras_hdf5", path.parent.name, path.read_bytes())


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    corpora = Corpora(out)
    for module in (weights, texts, models, options):
        module.add(corpora, ROOT)
    if len(sys.argv) == 3:
        folders = [out / "keras_hdf5", out / "checkpoint"]
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.argv[2], *folders], check=True)
    add_golden(corpora)


main()
