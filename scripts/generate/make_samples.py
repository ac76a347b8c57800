#!/usr/bin/env python3
"""Makes data/samples/ from the full data sets.

    scripts/generate/make_samples.py DATA [OUTPUT_DIR]

DATA/toronto holds train.csv and dev.csv with the columns named below (and others), DATA/squad train-v1.1.json and
dev-v1.1.json, DATA/banking77 train.csv. The samples are the first rows, a few whole articles, and the rows of some
intents.
"""
import csv
import json
import pathlib
import sys

COLUMNS = ["text", "amount", "category", "gl_category"]
ROWS = {"train": 4000, "dev": 1000}
ARTICLES = {"train": ["University_of_Notre_Dame", "Antibiotics"], "dev": ["Normans"]}


def sample_toronto(source, target, count):
    with open(source, newline="", encoding="utf-8") as rows, \
            open(target, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for _, row in zip(range(count), csv.DictReader(rows)):
            writer.writerow(row)


def sample_squad(source, target, titles):
    articles = json.loads(source.read_text(encoding="utf-8"))["data"]
    kept = [article for article in articles if article["title"] in titles]
    if len(kept) != len(titles):
        sys.exit(f"make_samples: {source} lacks one of the articles {titles}")
    text = json.dumps({"version": "1.1", "data": kept}, ensure_ascii=False)
    target.write_text(text + "\n", encoding="utf-8")


def sample_banking(source, target):
    """Copies the header and 1,000 rows byte for byte: lines end in CRLF, and some texts contain line ends."""
    with open(source, newline="", encoding="utf-8") as file:
        lines = file.readlines()
    reader = csv.reader(iter(lines))
    ends = [reader.line_num for _ in reader]
    target.write_text("".join(lines[:ends[0]] + lines[ends[1200]:ends[2200]]), encoding="utf-8", newline="")


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    data = pathlib.Path(sys.argv[1])
    toronto, squad = data / "toronto", data / "squad"
    output = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else "data/samples")
    output.mkdir(parents=True, exist_ok=True)
    sample_banking(data / "banking77/train.csv", output / "banking77.csv")
    for part in ("train", "dev"):
        sample_toronto(toronto / f"{part}.csv", output / f"toronto-{part}.csv", ROWS[part])
        sample_squad(squad / f"{part}-v1.1.json", output / f"squad-{part}.json", ARTICLES[part])


if __name__ == "__main__":
    main()
