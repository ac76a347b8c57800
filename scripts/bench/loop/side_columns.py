"""Measures the mixed model's accuracy with and without columns beside the text."""
import json
import random
import subprocess

from label_errors import rows_of, write

COLUMNS = ["text", "amount", "mcc_description", "label"]
TRAIN, EVAL = 4000, 2000


def accounts(row, _):
    return row["amount"], row["gl_category"]


def ledger(row, draw):
    """Makes half of the rows credits, with a negative amount and a label of their own."""
    amount = abs(float(row["amount"]))
    return (f"-{amount:.2f}", row["category"] + " (credit)") if draw.random() < 0.5 else (f"{amount:.2f}", row["category"])


def table(source, target, count, made):
    draw = random.Random(1)
    rows = [row for row in rows_of(source) if row["text"].strip() and row["gl_category"].strip()][:count]
    made_rows = [made(row, draw) for row in rows]
    return write(target, COLUMNS, [[row["text"], amount, row["mcc_description"], label]
                                   for row, (amount, label) in zip(rows, made_rows, strict=True)])


def accuracy(binary, model, shared, made, options, directory):
    """Returns the accuracy in per cent of the mix, and of the linear model of words and columns alone."""
    train = table(shared / "data/toronto/train.csv", directory / "train.csv", TRAIN, made)
    dev = table(shared / "data/toronto/dev.csv", directory / "dev.csv", EVAL, made)
    subprocess.run([binary, "train", "--model", model, "--train", train, "--eval", dev, "--text-column", "text", "--recipe",
                    "quick", "--ignore-unknown-labels", "--overwrite", "--quiet", "--output", directory / "run", *options],
                   check=True, capture_output=True)
    metrics = json.loads((directory / "run/metrics.json").read_text())
    return 100 * metrics["eval_accuracy"], 100 * metrics["baseline_ngram_accuracy"]
