#!/usr/bin/env python3
"""Compares `finetune tokenize` with the Python package tokenizers==0.22.2: ids and offsets.

  tests/peers/compare_tokenizer.py --tokenizer ../shared/tokenizers/bert-base-uncased FILE...

A text is a line of a text file or of a text file inside a .zip; SQuAD files (.json) give their
contexts and questions. --random N adds N texts of random Unicode that is hard on a tokenizer.
Exit status 1 if anything differs; the first differences are shown.
"""
import argparse
import importlib.metadata
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def lines_of(data):
    return data.decode("utf-8", errors="replace").split("\n")


def squad_texts(data):
    for article in json.loads(data)["data"]:
        for paragraph in article["paragraphs"]:
            yield paragraph["context"]
            for question in paragraph["qas"]:
                yield question["question"]


def texts_of(path):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    yield from lines_of(archive.read(name))
    elif path.suffix == ".json":
        yield from squad_texts(path.read_bytes())
    else:
        yield from lines_of(path.read_bytes())


# The grapheme clusters of tokenizers 0.22.2 are those of Unicode 16, which lacks the marks from U+1ACF on.
LAST_MARK = 0x1ACE if importlib.metadata.version("tokenizers") == "0.22.2" else 0x1AFF
# Blocks to draw often: spaces, controls, combining marks of many classes, ideographs, Hangul, punctuation, letters with
# special case mappings or decompositions.
BLOCKS = [(0x20, 0x7E)] * 6 + [
    (0x00, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF),
    (0x900, 0xDFF), (0xE00, 0xFFF), (0x1100, 0x11FF), (0x1AB0, LAST_MARK), (0x1DC0, 0x1FFF),
    (0x2000, 0x206F), (0x20D0, 0x218F), (0x3000, 0x30FF), (0x302A, 0x302F), (0x3400, 0x9FFF),
    (0xA640, 0xABFF), (0xAC00, 0xD7A3), (0xE000, 0xE010), (0xF900, 0xFAFF), (0xFB00, 0xFFFF),
    (0x10300, 0x10FFF), (0x11000, 0x11FFF), (0x1D100, 0x1D7FF), (0x1E000, 0x1E95F),
    (0x1F300, 0x1FAFF), (0x20000, 0x2FA1F), (0xE0001, 0xE01EF), (0x0, 0x10FFFF)]
# Characters whose combining class normalization keeps, and marks that are reordered with them.
REORDERED = [0x302E, 0x302F, 0x1D165, 0x1D166, 0x1D167, 0x1D16D, 0x1D172, 0xA953, 0x1B44, 0x8D4,
             0x8D5, 0x11442, 0x11446, 0x11C3F, 0x1E000, 0x1E944, 0x334, 0x345, 0x5B0, 0x301, 0x323,
             0x344, 0x1D15E, 0x1D160, 0xDDD, 0x1F82]
WORDS = ["the", "unaffable", "Straße", "İstanbul", "ΑΣ", "[MASK]", "[SEP]", "[UNK]", "[CLS]x", "##s",
         "don't", "e\u0301", "中国", "가각", "\u200b", "\u2028", "a" * 99, "a" * 100, "a" * 101]


def random_texts(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        out = []
        blocks = rng.sample(BLOCKS, rng.randint(1, 4))
        for _ in range(rng.randint(1, 60)):
            kind = rng.random()
            if kind < 0.08:
                out.append(rng.choice(WORDS))
            elif kind < 0.2:
                out.append(chr(rng.choice(REORDERED)))
            elif kind < 0.3:
                out.append(" ")
            else:
                code = rng.randint(*rng.choice(blocks))
                out.append(chr(code) if not 0xD800 <= code < 0xE000 else "\ud7ff")
        yield "".join(out)


# What byte-level BPE and Unigram treat in their own ways: spaces, contractions, added tokens, marks that compose, clusters.
PIECES = [" ", "  ", "   ", " " * 25, "\t", "\n", "\u00a0", "\u3000", " \t ", "<mask>", "[MASK]", "</s>", "<s>", "'s", "'re",
          "'", "\u2019s", "\u0301", "e\u0301", "\u1e69", "|||IP_ADDRESS|||", "the", "Hello", "don't", "12", "3.5", ".",
          "\U0001F600", "Word", " word", "\u4e2d\u6587", "\u00e9", " 7", "\u0660\u2167\u00bd", "\ufb01", "\u0600", "\u0600e\u0301", "\u2581", "\r\n", "\u200d", "\u0001", "\u0085",
          "\uff1cmask\uff1e", "\uff1cs\uff1e", "\u30ab\u3099", "\uff76\uff9e", "\u2026", "\u00ad"]


def texts_of_pieces(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choices(PIECES, k=rng.randint(0, 14)))


def batches(iterable, size):
    iterator = iter(iterable)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


def compare(name, texts, options, theirs):
    """Returns (texts, tokens, differences)."""
    count = tokens = differences = 0
    for batch in batches(texts, 20000):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as file:
            for text in batch:
                file.write(json.dumps({"text": text}) + "\n")
            file.flush()
            run = subprocess.run([options.binary, "tokenize", "--model", options.tokenizer, "--jsonl",
                                  file.name], capture_output=True, check=False)
        if run.returncode != 0:
            sys.exit(f"finetune tokenize failed: {run.stderr.decode()}")
        lines = run.stdout.split(b"\n")[:-1]
        if len(lines) != len(batch):
            sys.exit(f"{name}: {len(batch)} texts, but {len(lines)} lines")
        for text, line, expected in zip(batch, lines, theirs.encode_batch(batch)):
            ours = json.loads(line)
            offsets = [list(pair) for pair in expected.offsets]
            count += 1
            tokens += len(expected.ids)
            if ours["ids"] == expected.ids and ours["offsets"] == offsets:
                continue
            differences += 1
            if options.shown < options.show:
                options.shown += 1
                print(f"{name}: text {count}: {text!a}")
                for part, a, b in (("ids", ours["ids"], expected.ids),
                                   ("offsets", ours["offsets"], offsets)):
                    if a != b:
                        print(f"  {part} ours   {a}\n  {part} theirs {b}")
    print(f"{name}: {count} texts, {tokens} tokens, {differences} differences", flush=True)
    return count, tokens, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--tokenizer", required=True, metavar="DIR",
                        help="directory with a tokenizer.json")
    parser.add_argument("--binary", default=str(ROOT / "build" / "finetune"))
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--pieces", type=int, default=0, metavar="N", help="texts of pieces that are hard on BPE or Unigram")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="differences to show (5)")
    options = parser.parse_args()
    options.shown = 0
    import tokenizers
    if tokenizers.__version__ not in ("0.22.2", "0.23.3"):
        sys.exit(f"tokenizers {tokenizers.__version__} is installed; the references are 0.22.2 and 0.23.3")
    theirs = tokenizers.Tokenizer.from_file(os.path.join(options.tokenizer, "tokenizer.json"))
    theirs.no_truncation()
    theirs.no_padding()
    totals = [compare(str(path), texts_of(path), options, theirs) for path in options.files]
    if options.random:
        totals.append(compare(f"random, seed {options.seed}",
                              random_texts(options.random, options.seed), options, theirs))
    if options.pieces:
        totals.append(compare(f"pieces, seed {options.seed}",
                              texts_of_pieces(options.pieces, options.seed), options, theirs))
    texts, tokens, differences = (sum(column) for column in zip(*totals))
    print(f"total: {texts} texts, {tokens} tokens, {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
