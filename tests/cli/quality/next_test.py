"""finetune next: which rows are worth labelling."""
import csv
import io
import json
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, QA_MODEL, predict, tagged_rows, write
from harness import BINARY, DEVICE, fail, main, need, succeed


def labelled(path, count, seed):
    draw, lines = random.Random(seed), ["text,label"]
    for i in range(count):
        label = draw.choice(["fuel", "food", "rent"])
        lines.append(f"{label} {label[0] * 2} {seed}{i:04},{label}")
    return write(path, "\n".join(lines) + "\n")


def table(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_rows_are_chosen(directory):
    need(*MODELS)
    train, dev = labelled(directory / "train.csv", 200, 1), labelled(directory / "dev.csv", 60, 2)
    model, out = directory / "run", directory / "next.csv"
    succeed("train", "--model", MODEL, "--reinit-head", "--train", train, "--eval", dev, "--output", model, "--quiet",
            "--lr", "3e-3", "--epochs", 1, *DEVICE)
    known = [row["text"] for row in table(train.read_text())[:3] + table(dev.read_text())[:2]]
    often, texts = "tea or fuel 77", [f"{word} {other} {i}" for i, (word, other) in enumerate(
        [("fuel", "food"), ("rent", "tax"), ("food", "rent"), ("car", "bus"), ("tea", "milk")] * 6)]
    rows = known + [often] * 9 + texts + [f" {often} ", '"=1+1 ; x"', "  ", known[0] + " "]
    write(directory / "new.csv", "text,amount,count\n" + "".join(f"{text},1.50,{i}\n" for i, text in enumerate(rows)))
    line = ["next", "--model", model, "--input", directory / "new.csv", "--output"]
    done = succeed(*line, out, "--rows", 6, "--json")
    assert json.loads(done.out) == {"rows": 48, "rows_labelled": 0, "rows_trained": 6, "texts": 32, "chosen": 6,
                                    "chosen_rows": sum(int(row["next_count"]) for row in table(out.read_text()))}, done.out
    assert "chose 6 of 32 texts" in done.err and "left out: 6 rows whose text has a label already" in done.err, done
    assert "1 text is empty" in done.err, done
    found = table(out.read_text())
    assert list(found[0]) == ["text", "amount", "count", "next_count", "likely_label", "confidence", "reason"]
    # One of each kind, none with a known text, and equal texts are one candidate.
    assert {" ".join(row["text"].split()[:2]) for row in found} == {
        "fuel food", "food rent", "rent tax", "car bus", "tea milk", "tea or"}, found
    chosen = {row["text"]: row for row in found}
    assert chosen[often]["next_count"] == "10" and "10 rows have this text" in chosen[often]["reason"], found
    # Labels and probabilities are those of predict.
    predicted = table(predict(out, model=model).out)
    for row, other in zip(found, predicted):
        assert (row["likely_label"], row["confidence"]) == (other["label"], other["probability"]), (row, other)
        assert f"'{row['likely_label']}'" in row["reason"] and " %" in row["reason"], row
    # As many as there are; the first are the same, whatever the number of threads.
    fail(2, *line, out, words=["next.csv", "--overwrite"])
    whole = succeed(*line, "-", "--rows", 2000, "--threads", 1, "--spreadsheet-safe", "--quiet")
    assert len(table(whole.out)) == 32 and "'=1+1" in whole.out and whole.err.count("\n") == 1, whole
    assert whole.out.startswith(out.read_text()), whole
    # Rows that have a label already, and texts of their tokens, wherever they are; other names than those of training.
    pool = write(directory / "pool.csv", f"a,b,label\ntea,bus 1,\nTea,  bus 1,\nmilk,2,\nMILK,2,tax\n{known[0]},,\n,MILK 2,\n")
    done = succeed("next", "--model", model, "--input", pool, "--text-column", "a", "b", "--json", "--train", train,
                   "--output", directory / "pool.out.csv")
    assert json.loads(done.out) == {"rows": 6, "rows_labelled": 1, "rows_trained": 3, "texts": 1, "chosen": 1,
                                    "chosen_rows": 2}, done
    assert "chose 1 of 1 text, which 2 rows have" in done.err, done
    assert "left out: 1 row that has a label in the column 'label'" in done.err, done
    # Nothing is left to choose: it says why, instead of "chose 0 rows of 0 texts".
    full = write(directory / "full.csv", "text,label\nsome tea,milk\nsome bus,car\n")
    trained = write(directory / "trained.csv", "text\n" + "".join(row["text"] + "\n" for row in table(train.read_text())[:9]))
    for pool, words in ((full, "every row has a label already"), (trained, "the model's run read every row's text")):
        done = succeed("next", "--model", model, "--input", pool, "--output", directory / f"{pool.name}.out")
        assert words in done.err and "chose" not in done.err, done
    # Labelled files are never replaced.
    (directory / "link.csv").symlink_to(train)
    before = train.read_bytes(), dev.read_bytes()
    for name, given, words in ((train, ["--train", train], "--train names"), (dev, [], "the run was trained on"),
                               (directory / "link.csv", [], "the run was trained on")):
        fail(2, *line, name, *given, "--overwrite", words=[name.resolve().name, f"is a file that {words}"])
    fail(2, "predict", *line[1:], train, "--overwrite", words=["train.csv: is a file that the run was trained on"])
    assert (train.read_bytes(), dev.read_bytes()) == before
    scores = ["evaluate", "--model", model, "--data", dev, "--output", directory / "scores"]
    succeed(*scores, "--quiet")
    fail(2, *scores, "--train", directory / "scores/predictions.csv", "--overwrite", words=["would remove", "predictions.csv"])
    # Of a model whose run is not there the labelled files are named.
    model = (model / "model").rename(directory / "moved")
    line = ["next", "--model", model, "--input", directory / "new.csv", "--output", "-"]
    assert "is not known" in succeed(*line).err
    moved = succeed(*line, "--train", train, dev)
    assert moved.out.replace("'=", "=") == whole.out.replace("'=", "=") and "is not known" not in moved.err, moved


def test_hostile_inputs(directory):
    need(*MODELS)
    line = ["next", "--model", MODEL, "--output", "-", "--input"]
    one, same = write(directory / "one.csv", "text\nrent\n"), write(directory / "same.csv", "text\n" + "fuel 1\n" * 50)
    assert len(table(succeed(*line, one).out)) == 1
    rows = table(succeed(*line, same).out)
    assert len(rows) == 1 and rows[0]["count"] == "50", rows
    for name, text in (("header", "text\n"), ("empty", "")):
        none = succeed(*line, write(directory / f"{name}.csv", text))
        assert none.out == "text,count,likely_label,confidence,reason\n" and "holds no rows" in none.err, none
    fail(3, *line, write(directory / "columns.csv", "a,b\n1,2\n"), words=["columns.csv", "'text'"])
    fail(3, *line, directory / "none.csv", words=["none.csv"])
    fail(2, *line, one, "--rows", 0, words=["--rows", "0"])
    fail(2, *line, one, "--rows", 2001, words=["--rows", "2001"])
    fail(2, *line, one, "--json", words=["--json", "--output -"])
    fail(2, "next", "--model", MODEL, "--output", directory / "new.csv", "--input", "-", "--train", "-",
         words=["--input - and --train - both read standard input"])
    line[4] = one
    fail(2, *line, one, "--overwrite", words=["one.csv", "is the input"])
    line[4] = directory / "out.jsonl"
    fail(2, *line, one, words=["out.jsonl", ".csv"])
    # A reader that goes away.
    gone = subprocess.run(f"'{BINARY}' next --model '{MODEL}' --input '{same}' --output - --quiet | :", shell=True,
                          capture_output=True, text=True)
    assert "error" not in gone.stderr, gone


def test_models_that_give_other_answers(directory):
    need(*MODELS)
    data = tagged_rows(directory / "rows.csv")
    train = ["train", "--model", MODEL, "--reinit-head", "--max-steps", 1, "--quiet", "--train", data, *DEVICE, "--output"]
    line = ["next", "--input", write(directory / "new.csv", "text\nbus\ncoffee rent tax tea\n"), "--output", "-", "--model"]
    succeed(*train, directory / "several", "--label-column", "tags", "--multi-label", ";")
    rows = table(succeed(*line, directory / "several").out)
    assert len(rows) == 2 and all(row["reason"].startswith("has '") for row in rows), rows
    none = write(directory / "none.csv", "text,tags\nbus,\n")  # a row without any of several labels is labelled
    assert len(table(succeed(*line, directory / "several", "--train", none).out)) == 1
    succeed(*train, directory / "number", "--label-column", "number", "--regression")
    fail(2, *line, directory / "number", words=["finetune next", "gives numbers"])
    fail(2, *line, QA_MODEL, words=["finetune next is for classification", "question answering"])


main(globals())
