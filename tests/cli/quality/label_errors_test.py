"""finetune check --label-errors: wrong labels planted among real rows, files, and hostile data."""
import csv
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import PROJECT, SAMPLES, fail, main, succeed
sys.path.insert(0, str(PROJECT / "scripts/bench/loop"))
from label_errors import rows_of, write

NAMES = ["text", "label"]


def test_planted_errors_come_first(directory):
    rows = [[row["text"], row["category"]] for row in rows_of(SAMPLES / "banking77.csv")]
    labels = sorted({label for _, label in rows})
    choose = random.Random(3)
    wrong = choose.sample(range(len(rows)), 50)
    right = {i: rows[i][1] for i in wrong}
    for i in wrong:
        rows[i][1] = choose.choice([label for label in labels if label != rows[i][1]])
    data = write(directory / "data.csv", NAMES, rows)
    errors, all_rows = directory / "errors.csv", directory / "all.csv"
    check = ["check", "--train", data, "--no-ngram-baseline", "--label-errors", errors]
    told = succeed(*check, "--out-of-fold", all_rows).out
    found = rows_of(errors)
    place = {line: i for i, line in enumerate(line_numbers(data))}
    first = [place[int(row["line"])] for row in found[:50]]
    assert sum(i in right for i in first) >= 44, first
    for row in found[:20]:
        i = place[int(row["line"])]
        assert (row["file"], row["text"], row["label"]) == (str(data), *rows[i]), row
        assert float(row["likely_probability"]) > float(row["probability"])
        assert f"reads like '{row['likely_label']}' (" in row["reason"] and f"not like '{row['label']}' (" in row["reason"]
    assert sum(row["likely_label"] == right.get(place[int(row["line"])]) for row in found[:40]) >= 35
    confident = sum(row["confident"] == "yes" for row in found)
    assert re.search(rf"{confident} rows of {len(rows):,} \(\d+\.\d %\) may have a wrong label", told), told
    probabilities = rows_of(all_rows)
    assert len(probabilities) == len(rows)
    by_line = {row["line"]: row for row in probabilities}
    for row in probabilities[:50]:
        assert abs(sum(float(row[f"probability:{label}"]) for label in labels) - 1) < 1e-3
    for row in found:
        assert by_line[row["line"]][f"probability:{row['label']}"] == row["probability"]
    # The same again, to the byte; never over a file that exists, unless asked.
    before = errors.read_bytes()
    fail(2, *check, words=[str(errors), "--overwrite"])
    fail(2, *check[:-1], data, "--overwrite", words=["is the input"])
    for option in ("--label-errors", "--out-of-fold"):
        book = directory / "rows.xlsx"
        fail(2, *check[:-2], option, book, words=[option, str(book), "rows are written as CSV; name it .csv"])
        assert not book.exists()
    kept = write(directory / "dev.csv", NAMES, rows[:9])
    fail(2, *check[:-1], kept, "--eval", kept, "--overwrite", words=["is the input"])
    succeed(*check, "--overwrite")
    assert errors.read_bytes() == before


def line_numbers(path):
    """The line where each row begins."""
    with open(path, encoding="utf-8", newline="") as file:
        reader, lines, last = csv.reader(file), [], 0
        for _ in reader:
            lines.append(last + 1)
            last = reader.line_num
    return lines[1:]


def test_rows_that_cannot_be_judged(directory):
    check = ["check", "--no-ngram-baseline", "--label-errors", directory / "e.csv", "--train"]
    few = write(directory / "few.csv", NAMES, [["a cat", "x"], ["a dog", "y"], ["a cat", "y"]])
    fail(3, *check, few, words=["few.csv", "2 different texts", "--folds 5"])
    same = write(directory / "same.csv", NAMES, [[f"text {i}", "x"] for i in range(9)])
    fail(3, *check, same, words=["same.csv", "all rows have the label 'x'", "two labels"])
    numbers = write(directory / "numbers.csv", NAMES, [[f"text {i}", i] for i in range(9)])
    fail(2, *check, numbers, "--regression", words=["--label-errors", "one label a row", "--regression"])
    fail(2, *check, numbers, "--multi-label", "list", words=["--label-errors", "one label a row", "--multi-label"])
    one = fail(2, *check[:2], "--train", numbers, "--regression", "--out-of-fold", directory / "o.csv",
               words=["--out-of-fold needs one label a row", "--regression"])
    assert "--label-errors" not in one, one
    fail(2, *check[:2], "--train", numbers, "--out-of-fold", "-", words=["error: --out-of-fold needs the name of a file"])
    (directory / "link").symlink_to(directory)  # neither file exists: other names of one place
    fail(2, *check, numbers, "--out-of-fold", directory / "link" / "e.csv", words=["both", "two files"])
    assert not (directory / "e.csv").exists() and not (directory / "o.csv").exists()
    assert not list(directory.glob("*.tmp.*"))
    fail(2, *check, numbers, "--folds", 1, words=["--folds 1"])
    fail(2, *check[:2], "--train", few, "--folds", 3, words=["--folds", "--label-errors"])
    fail(3, *check, write(directory / "none.csv", NAMES, []), words=["none.csv"])
    # Rows without a label are skipped, as elsewhere in check; the only row of a label is not judged.
    rows = [[f"red paint {i}", "x"] for i in range(9)] + [[f"blue paint {i}", "y"] for i in range(9)]
    rows += [["red paint 3", "y"], ["green", "alone"], ["no label", ""]]
    told = succeed(*check, write(directory / "rows.csv", NAMES, rows)).out
    assert "1 row has a label that no other text has" in told, told
    found = rows_of(directory / "e.csv")
    assert [row["line"] for row in found][:1] == ["20"] and found[0]["likely_label"] == "x", found
    assert found[0]["reason"].endswith("; 1 row with the same text has the label 'x'"), found[0]
    assert all(row["label"] != "alone" for row in found)


main(globals())
