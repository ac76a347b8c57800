"""Plants wrong labels in rows of data/samples, and compares check's ranking with cleanlab's."""
import csv
import random
import subprocess
import time
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[3] / "data/samples"
SHARE = 0.05  # fraction of the rows that get another label


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path, names, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def planted(source, column, target, seed):
    """Writes the rows, some with a wrong label drawn evenly from the others. Returns the indices of the wrong ones."""
    rows = [[row["text"], row[column]] for row in rows_of(source)]
    choose, labels = random.Random(seed), sorted({label for _, label in rows})
    wrong = set(choose.sample(range(len(rows)), round(SHARE * len(rows))))
    for i in sorted(wrong):
        rows[i][1] = choose.choice([label for label in labels if label != rows[i][1]])
    write(target, ["text", "label"], rows)
    return wrong


def average_precision(order, wrong):
    found = total = 0
    for place, row in enumerate(order, 1):
        if row in wrong:
            found += 1
            total += found / place
    return total / len(wrong)


def cleanlab_order(probabilities, labels):
    """Returns the indices of all rows, the least trustworthy label first."""
    import numpy
    from cleanlab.rank import get_label_quality_scores
    names = list(dict.fromkeys(name for name in probabilities[0] if name.startswith("probability:")))
    ids = {name.removeprefix("probability:"): i for i, name in enumerate(names)}
    matrix = numpy.array([[float(row[name]) for name in names] for row in probabilities])
    scores = get_label_quality_scores(numpy.array([ids[label] for label in labels]), matrix)
    return [int(i) for i in numpy.argsort(scores, kind="stable")]


def compared(binary, name, column, seed, directory):
    """Returns our average precision over all rows, cleanlab's, and seconds. Our order: the rows that check lists, then
    the others by the probability of their label."""
    data, errors, everything = directory / "data.csv", directory / "errors.csv", directory / "all.csv"
    wrong = planted(SAMPLES / name, column, data, seed)
    start = time.monotonic()
    subprocess.run([binary, "check", "--train", data, "--label-errors", errors, "--out-of-fold", everything,
                    "--overwrite"], check=True, capture_output=True)
    seconds = time.monotonic() - start
    probabilities = rows_of(everything)
    own = {row["line"]: i for i, row in enumerate(probabilities)}
    listed = [own[row["line"]] for row in rows_of(errors)]
    rest = set(range(len(probabilities))) - set(listed)
    of_label = [float(row[f"probability:{row['label']}"]) for row in probabilities]
    order = listed + sorted(rest, key=lambda i: of_label[i])
    theirs = cleanlab_order(probabilities, [row["label"] for row in probabilities])
    return average_precision(order, wrong), average_precision(theirs, wrong), seconds
