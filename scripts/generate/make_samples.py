#!/usr/bin/env python3
"""Makes data/samples/ from the full data sets.

    scripts/generate/make_samples.py TORONTO_DIR SQUAD_DIR [OUTPUT_DIR]

TORONTO_DIR holds train.csv and dev.csv with the columns named below (and others), SQUAD_DIR holds
train-v1.1.json and dev-v1.1.json. The samples are the first rows and a few whole articles.
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


def main():
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    toronto, squad = map(pathlib.Path, sys.argv[1:3])
    output = pathlib.Path(sys.argv[3] if len(sys.argv) == 4 else "data/samples")
    output.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev"):
        sample_toronto(toronto / f"{part}.csv", output / f"toronto-{part}.csv", ROWS[part])
        sample_squad(squad / f"{part}-v1.1.json", output / f"squad-{part}.json", ARTICLES[part])


if __name__ == "__main__":
    main()
