"""Simulates rounds of labelling, with rows that `finetune next` chooses and with random rows."""
import json
import random
import subprocess
from pathlib import Path

from label_errors import rows_of, write

START, ROUNDS, BATCH, TIMES = 500, 3, 200, 1.3
POOL, DEV, TEST = 10000, 300, 5000
# Trains only a new head, mixed with the linear model: a run takes seconds instead of minutes.
TRAIN = ["--freeze", "6", "--epochs", "3", "--quiet", "--overwrite"]


class Trial:
    """One seed: a pool of rows whose labels are hidden, a development set and a test set. The test rows come from
    train.csv, because test.csv was used to choose among strategies."""

    def __init__(self, binary, model, shared, text, label, seed, directory):
        self.binary, self.model, self.text, self.label, self.directory = binary, model, text, label, directory
        draw = random.Random(seed)
        drawn = draw.sample(self.rows(shared / "train.csv"), POOL + TEST)
        self.pool = drawn[:POOL]
        self.dev = self.file("dev", draw.sample(self.rows(shared / "dev.csv"), DEV))
        self.test = self.file("test", drawn[POOL:])
        self.start = draw.sample(range(POOL), START)
        self.others = draw.sample(sorted(set(range(POOL)) - set(self.start)), POOL - START)

    def rows(self, path):
        return [(row[self.text].strip(), row[self.label]) for row in rows_of(path) if row[self.text].strip()]

    def file(self, name, rows, columns=("text", "label")):
        return write(self.directory / f"{name}.csv", list(columns), rows)

    def run(self, *command):
        return subprocess.run([self.binary, *map(str, command)], check=True, capture_output=True, text=True).stdout

    def train(self, rows):
        self.run("train", "--model", self.model, "--train", self.file("train", rows), "--eval", self.dev, "--output",
                 self.directory / "run", "--ignore-unknown-labels", *TRAIN)

    def accuracy(self):
        told = self.run("evaluate", "--model", self.directory / "run", "--data", self.test, "--json", "--quiet",
                        "--no-ngram-baseline", "--ignore-unknown-labels")
        return 100 * json.loads(told)["eval_accuracy"]

    def of_random(self, count):
        self.train([self.pool[i] for i in self.start + self.others[:count - START]])
        return self.accuracy()

    def of_next(self):
        """Returns rows and accuracy after all rounds. As a stand-in for a person, labels a text like its first row."""
        rows = [self.pool[i] for i in self.start]
        unlabelled, chosen = self.file("pool", [[text] for text, _ in self.pool], ["text"]), self.directory / "next.csv"
        first = dict(reversed(self.pool))
        for _ in range(ROUNDS):
            self.train(rows)
            self.run("next", "--model", self.directory / "run", "--input", unlabelled, "--rows", BATCH, "--output", chosen,
                     "--overwrite", "--quiet")
            rows += [(row["text"], first[row["text"]]) for row in rows_of(chosen)]
        self.train(rows)
        return len(rows), self.accuracy()


def compared(binary, model, shared, text, label, seed, directory):
    """Returns rows, accuracy with next, accuracy with as many random rows, TIMES as many rows, accuracy with those."""
    trial = Trial(binary, model, shared, text, label, seed, Path(directory))
    rows, accuracy = trial.of_next()
    more = round(TIMES * rows)
    return rows, accuracy, trial.of_random(rows), more, trial.of_random(more)
