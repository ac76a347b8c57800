"""Measures heads that begin with the labels' names and heads that do not, with few rows a label."""
import csv
import random
import subprocess

from label_errors import rows_of, write

ROWS, TEST = (1, 3, 5, 10), 1000


def rows_a_label(path, count, seed):
    """Returns `count` random rows of each label."""
    rows, taken = rows_of(path), {}
    random.Random(seed).shuffle(rows)
    for row in rows:
        own = taken.setdefault(row["category"], [])
        if len(own) < count:
            own.append([row["text"], row["category"]])
    return [row for own in taken.values() for row in own]


def accuracy(binary, model, data, count, seed, recipe, options, directory):
    """Returns the accuracy on TEST test rows in per cent."""
    train = write(directory / "train.csv", ["text", "label"], rows_a_label(data / "train.csv", count, seed))
    test = rows_of(data / "test.csv")
    random.Random(0).shuffle(test)
    texts = write(directory / "test.csv", ["text", "label"], [[row["text"], row["category"]] for row in test[:TEST]])
    subprocess.run([binary, "train", "--model", model, "--train", train, "--recipe", recipe, "--seed", str(seed),
                    "--overwrite", "--quiet", "--output", directory / "run", *options], check=True, capture_output=True)
    subprocess.run([binary, "predict", "--model", directory / "run", "--input", texts, "--overwrite", "--output",
                    directory / "out.csv"], check=True, capture_output=True)
    with open(directory / "out.csv", encoding="utf-8", newline="") as file:
        answers = list(csv.DictReader(file))
    return 100 * sum(row["predicted_label"] == row["label"] for row in answers) / len(answers)
