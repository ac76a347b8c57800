"""Measures how often predict reports drift for nights, which are batches of real rows.

Predicting thousands of nights would take days. So each row is predicted once, and the comparison with drift.json is
computed here, as tasks/classification/drift does it. `check` compares the result for some nights with the program's.
"""
import csv
import json
import math
import random
import subprocess
from functools import cache

import numpy
from label_errors import rows_of, write
from scipy.special import chdtrc, kolmogorov

MASK, BLOCK, MOST, LEAST, LEVEL = (1 << 64) - 1, 64, 2000, 50, 0.01
NEW_LABELS = ("Hardware & building materials", "Discount & department stores", "IT, telecom & online services",
              "Office supplies & books")
TRAITS = ("words", "characters", "new_tokens", "answer")


@cache
def extended(value, more):
    value ^= (more + 0x632BE59BD9B4E019) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Reference:
    def __init__(self, model):
        stored = json.loads((model / "drift.json").read_text())
        self.values = [numpy.array(stored[trait]) for trait in TRAITS]
        self.labels, self.distinct = numpy.array(stored["labels"]), stored["distinct"]
        self.seen = stored["seen"]
        names = json.loads((model / "config.json").read_text())["id2label"]
        self.ids = {names[i]: int(i) for i in names}

    def knows(self, value):
        place = value % (4 * len(self.seen))
        return int(self.seen[place // 4], 16) >> place % 4 & 1

    def new(self, tokens):
        hashes = [extended(0xC2B2AE3D27D4EB4F, token) for token in tokens]
        pairs = [extended(hashes[i - 1], tokens[i]) for i in range(1, len(tokens))]
        return sum(not self.knows(value) for value in hashes + pairs) / max(1, len(hashes) + len(pairs))


def train(binary, model, rows, dev, label, directory):
    files = [write(directory / name, ["text", "label"], [[row["text"], row[label]] for row in part])
             for name, part in (("train.csv", rows), ("dev.csv", dev))]
    subprocess.run([binary, "train", "--model", model, "--train", files[0], "--eval", files[1], "--recipe", "quick",
                    "--ignore-unknown-labels", "--overwrite", "--quiet", "--output", directory / "run"], check=True,
                   capture_output=True)
    return directory / "run/model"


def predict(binary, model, texts, directory, *options):
    source = write(directory / "rows.csv", ["text"], [[text] for text in texts])
    done = subprocess.run([binary, "predict", "--model", model, "--input", source, "--output", directory / "out.csv",
                           "--overwrite", "--quiet", "--no-progress", *options], check=True, capture_output=True)
    return done.stdout


class Pool:
    """Rows from which nights are drawn, with the values of each row that the drift test compares."""

    def __init__(self, binary, model, texts, directory):
        self.texts, reference = texts, Reference(model)
        predict(binary, model, texts, directory, "--all-probabilities")
        found = subprocess.run([binary, "tokenize", "--model", model, "--max-length", "128", "--text-column", "text",
                                directory / "rows.csv"], check=True, capture_output=True).stdout.splitlines()
        values = []
        with open(directory / "out.csv", encoding="utf-8", newline="") as file:
            for text, row, tokens in zip(texts, csv.DictReader(file), found, strict=True):
                chances = sorted((float(row[name]) for name in row if name.startswith("probability:")), reverse=True)
                numbers = (len(text.split()), len(text), reference.new(json.loads(tokens)["ids"][1:-1]),
                           math.log(chances[0] / chances[1]))
                values.append([*(float(f"{number:.5g}") for number in numbers), reference.ids[row["label"]]])
        self.values, self.reference = numpy.array(values), reference
        numbers = {text.strip(): i for i, text in enumerate(texts)}
        self.equal = numpy.array([numbers[text.strip()] for text in texts])

    def p(self, rows):
        """Returns the corrected p-value of a night of these rows, which are in random order."""
        rows = rows[:MOST]
        chosen, distinct = [], len(set(self.equal[rows]))
        for begin in range(0, len(rows), BLOCK):
            block = rows[begin:begin + BLOCK]
            chosen.extend(block[numpy.unique(self.equal[block], return_index=True)[1]])
        if distinct < LEAST:
            return 1.0
        found, other = self.values[chosen], self.reference
        root = (distinct * other.distinct / (distinct + other.distinct)) ** 0.5
        least = 1.0
        for trait, before in enumerate(other.values):
            after = numpy.sort(found[:, trait])
            both = numpy.concatenate([before, after])
            distance = numpy.abs(numpy.searchsorted(before, both, side="right") / len(before)
                                 - numpy.searchsorted(after, both, side="right") / len(after)).max()
            least = min(least, kolmogorov((root + 0.12 + 0.11 / root) * distance))
        counts = numpy.bincount(found[:, 4].astype(int), minlength=len(other.labels))
        table = numpy.array([other.labels * other.distinct / other.labels.sum(), counts * distinct / counts.sum()])
        sizes = table.sum(1, keepdims=True)
        rare = table.sum(0) * sizes.min() / sizes.sum() < 5 - 1e-9
        table = numpy.column_stack([table[:, ~rare], table[:, rare].sum(1)])
        table = table[:, table.sum(0) > 0]
        expected = sizes * table.sum(0) / sizes.sum()
        if table.shape[1] > 1:
            least = min(least, chdtrc(table.shape[1] - 1, ((table - expected) ** 2 / expected).sum()))
        return min(1.0, 5 * least)

    def noticed(self, size, nights, draw, others=None):
        """Draws nights and returns how many show drift. With `others`, a fifth of each night is from those rows."""
        known = numpy.arange(len(self.texts)) if others is None else numpy.flatnonzero(~others)
        count = 0
        for _ in range(nights):
            if others is None:
                rows = draw.choice(known, size, replace=False)
            else:
                more = draw.choice(numpy.flatnonzero(others), size // 5, replace=False)
                rows = draw.permutation(numpy.concatenate([draw.choice(known, size - len(more), replace=False), more]))
            count += self.p(rows) < LEVEL
        return count

    def check(self, binary, model, directory, draw):
        """Asserts that the program reports the p-values that are computed here."""
        for size in (100, 500):
            rows = draw.choice(len(self.texts), size, replace=False)
            told = json.loads(predict(binary, model, [self.texts[i] for i in rows], directory, "--json"))["drift"]["p"]
            here = self.p(rows[sorted(range(size), key=lambda row: extended(0x9FB21C651E98DF25, row))])
            assert abs(told - here) <= 0.02 * here, (size, told, here)


def data_sets(shared):
    """Yields name, training rows, evaluation rows, rows of the same kind, rows of another kind, label column."""
    toronto = {name: [row for row in rows_of(shared / f"data/toronto/{name}.csv") if row["text"].strip()]
               for name in ("train", "dev", "test")}
    bank = rows_of(shared / "data/banking77/train.csv")
    random.Random(1).shuffle(bank)
    yield "Toronto-4000", toronto["train"][:4000], toronto["dev"][:2000], toronto["test"], bank[6000:], "category"
    yield "banking77", bank[:4000], bank[4000:6000], bank[6000:], toronto["test"], "category"


def new_label(shared, label):
    """Returns training and evaluation rows without `label`, all later rows, and a mask of those that have it."""
    toronto = {name: [row for row in rows_of(shared / f"data/toronto/{name}.csv") if row["text"].strip()]
               for name in ("train", "dev", "test")}
    known = [[row for row in toronto[name] if row["category"] != label] for name in ("train", "dev")]
    later = toronto["test"]
    return known[0][:4000], known[1][:2000], later, numpy.array([row["category"] == label for row in later])
