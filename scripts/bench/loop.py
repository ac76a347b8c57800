#!/usr/bin/env python3
"""Measures what the commands after a first run gain, and writes docs/quality/loop.csv.

usage: loop.py [PART...] [--binary build/finetune]       PART: label-errors, promise, explain, next,
                                                         columns, drift, names (default: all)

label-errors needs cleanlab and numpy (scripts/test_peers.sh installs them), drift numpy and scipy. promise, next,
columns, drift and names need FINETUNE_SHARED and FINETUNE_MINILM (scripts/fetch_model.sh), explain only the latter.
scripts/plots/draw.py makes sentences in docs/quality.md from the CSV file.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts/bench/loop"), str(ROOT / "scripts/plots")]
from csv_files import update  # noqa: E402
from label_errors import SAMPLES, compared, rows_of, write  # noqa: E402

SHARED = Path(os.environ.get("FINETUNE_SHARED") or ROOT.parent / "shared")
MINILM = Path(os.environ.get("FINETUNE_MINILM") or ROOT / ".cache/all-minilm-l6-v2")


def spent():
    """Returns the processor seconds of all child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def label_errors(binary, directory):
    for data, name in (("Toronto-4000", "toronto-train.csv"), ("banking77, 1,000 rows", "banking77.csv")):
        before = spent()
        found = [compared(binary, name, "category", seed, directory) for seed in range(4)]
        used = (spent() - before) / len(found)
        ours, theirs, seconds = zip(*found)
        for quantity, value in (("average precision", f"{mean(ours):.3f}"),
                                ("average precision, cleanlab", f"{mean(theirs):.3f}"),
                                ("seconds", f"{min(seconds):.1f}"), ("processor seconds", f"{used:.1f}")):
            yield data, quantity, value, len(found)


def promise(binary, directory):
    import promise
    run = directory / "run"
    train = rows_of(SHARED / "data/toronto/train.csv")
    write(directory / "rows.csv", ["text", "category"], [[row["text"], row["category"]] for row in train[4000:64000]])
    subprocess.run([binary, "train", "--model", MINILM, "--train", SAMPLES / "toronto-train.csv", "--eval",
                    SAMPLES / "toronto-dev.csv", "--label-column", "category", "--output", run, "--quiet"], check=True)
    subprocess.run([binary, "predict", "--model", run, "--input", directory / "rows.csv", "--output",
                    directory / "predicted.csv"], check=True)
    rows, count = promise.predictions(directory / "predicted.csv", "category"), 1000
    for calibration in (2000, 10000):
        broken, none, covered, best = promise.splits(rows, calibration, count, 0.05, 0.95)
        data = f"Toronto-4000, {calibration:,} rows"
        for quantity, value in (("splits", count), ("broken, %", f"{100 * broken / count:.1f}"), ("without a promise", none),
                                ("coverage, %", f"{100 * covered:.1f}"), ("best coverage, %", f"{100 * best:.1f}")):
            yield data, quantity, value, 1


def processor_seconds(command):
    before = spent()
    subprocess.run(command, check=True, capture_output=True)
    return spent() - before


def explain(binary, directory):
    rows = rows_of(SAMPLES / "toronto-dev.csv")[:800]
    texts = write(directory / "rows.csv", ["text"], [[row["text"]] for row in rows])
    subprocess.run([binary, "train", "--model", MINILM, "--train", SAMPLES / "toronto-train.csv", "--label-column", "category",
                    "--max-steps", "1", "--eval-fraction", "0.1", "--output", directory / "run", "--quiet"], check=True)
    predict = [binary, "predict", "--model", directory / "run", "--input", texts, "--overwrite", "--output",
               directory / "out.csv"]
    plain, explained = processor_seconds(predict), processor_seconds([*predict, "--explain"])
    words = mean(len(row["text"].split()) for row in rows)
    yield "Toronto", "words a row", f"{words:.1f}", 1
    yield "Toronto", "rows a processor second", f"{len(rows) / explained:.0f}", 1
    yield "Toronto", "times the prediction", f"{explained / plain:.1f}", 1


def next_rows(binary, directory):
    import next_rows
    for name, text, label in (("Toronto", "text", "category"), ("Toronto merchants", "merchant", "category"),
                              ("Toronto accounts", "text", "gl_category")):
        found = [next_rows.compared(binary, MINILM, SHARED / "data/toronto", text, label, seed, directory)
                 for seed in (1, 2, 3)]
        rows, chosen, drawn, more, drawn_more = zip(*found)
        for quantity, value in (("rows", rows[0]), ("more rows", more[0]), ("chosen, %", f"{mean(chosen):.1f}"),
                                ("random, %", f"{mean(drawn):.1f}"), ("more random, %", f"{mean(drawn_more):.1f}"),
                                ("seeds at least as accurate", sum(a >= b for a, b in zip(chosen, drawn_more)))):
            yield name, quantity, value, len(found)


def columns(binary, directory):
    import side_columns
    for name, made, more in (("Toronto accounts", side_columns.accounts, ["amount", "amount, merchant's class"]),
                             ("Toronto debits and credits", side_columns.ledger, ["amount"])):
        for columns in ["none", *more]:
            options = [] if columns == "none" else ["--number-columns", "amount"]
            options += ["--category-columns", "mcc_description"] if "class" in columns else []
            mixed, alone = side_columns.accuracy(binary, MINILM, SHARED, made, options, directory)
            yield name, f"{columns}: mixed, %", f"{mixed:.1f}", 1
            yield name, f"{columns}: linear model alone, %", f"{alone:.1f}", 1


def drift(binary, directory):
    import drift
    import numpy
    draw, nights = numpy.random.default_rng(1), 1000
    for name, train, dev, later, others, label in drift.data_sets(SHARED):
        model = drift.train(binary, MINILM, train, dev, label, directory)
        pool = drift.Pool(binary, model, [row["text"] for row in later], directory)
        pool.check(binary, model, directory, draw)
        yield name, "nights", nights, 1
        for size in (100, 500, 2000):
            yield name, f"false alarms, {size:,} rows", pool.noticed(size, nights, draw), 1
        other = drift.Pool(binary, model, [row["text"] for row in others], directory)
        yield name, "another kind noticed, 100 rows, %", other.noticed(100, 100, draw), 1
    for label in drift.NEW_LABELS:
        train, dev, later, new = drift.new_label(SHARED, label)
        model = drift.train(binary, MINILM, train, dev, "category", directory)
        pool = drift.Pool(binary, model, [row["text"] for row in later], directory)
        for size in (100, 500, 2000):
            yield label, f"a fifth noticed, {size:,} rows, %", pool.noticed(size, 100, draw, new), 1


def names(binary, directory):
    import label_names
    for rows in label_names.ROWS:
        for recipe in ("quick", "auto"):
            for name, options in (("with names", []), ("without", ["--no-label-names"])):
                found = [label_names.accuracy(binary, MINILM, SHARED / "data/banking77", rows, seed, recipe, options, directory)
                         for seed in (1, 2, 3)]
                yield "banking77", f"{rows} a label: {recipe} {name}, %", f"{mean(found):.1f}", len(found)
                yield "banking77", f"{rows} a label: {recipe} {name}, deviation", f"{stdev(found):.1f}", len(found)


PARTS = {"label-errors": label_errors, "promise": promise, "explain": explain, "next": next_rows, "columns": columns,
         "drift": drift, "names": names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--binary", default=ROOT / "build/finetune", type=Path)
    options = parser.parse_args()
    for part in options.parts or PARTS:
        if part not in PARTS:
            parser.error(f"{part}: choose from {', '.join(PARTS)}")
        with tempfile.TemporaryDirectory() as directory:
            rows = [{"part": part, "data": data, "quantity": quantity, "value": value, "seeds": seeds}
                    for data, quantity, value, seeds in PARTS[part](options.binary.resolve(), Path(directory))]
        for row in rows:
            print(*row.values(), sep=", ")
        update(ROOT / "docs/quality/loop.csv", rows, ["part", "data", "quantity"])


main()
