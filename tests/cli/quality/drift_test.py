"""predict says when its rows differ from those that the model was trained on."""
import csv
import json
import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS
from harness import fail, main, need, succeed

OTHERS = ["Überweisung", "Miete", "Bäckerei", "Tankstelle"]
WORDS = ["card", "city", "north", "store", "payment", "fee", "coffee", "rent", "fuel", "bread", "tax", "train"]


def rows(count, seed, words=WORDS):
    """(text, label, tags, number) of three to five words."""
    draw = random.Random(seed)
    chosen = [[draw.choice(words) for _ in range(draw.randrange(3, 6))] for _ in range(count)]
    return [(" ".join(row), "ab"[row[0] > "f"], ";".join(sorted({word[0] for word in row})), len(row) + 0.5) for row in chosen]


def table(path, rows_):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "tags", "number"), *rows_])
    return path


def trained(directory, name, *options):
    train, dev = table(directory / "train.csv", rows(400, 1)), table(directory / "dev.csv", rows(300, 2))
    held_out = [] if "--folds" in options or "--eval-fraction" in options else ["--eval", dev]
    succeed("train", "--model", MODEL, "--reinit-head", "--train", train, *held_out, "--quiet", "--output", directory / name,
            *options)
    return directory / name


def drift(directory, model, data, *options, **more):
    told = succeed("predict", "--model", model, "--input", data, "--output", directory / "out.csv", "--overwrite", "--json",
                   "--quiet", *options, **more)
    return json.loads(told.out)["drift"], told.err


def test_rows_of_another_kind_are_said(directory):
    need(*MODELS)
    run = trained(directory, "run", "--recipe", "quick")
    same = table(directory / "same.csv", rows(300, 3))
    other = table(directory / "other.csv", rows(200, 4, OTHERS))
    found, err = drift(directory, run, same)
    assert not found["differs"] and found["p"] > 0.01 and not err, (found, err)
    assert (found["rows"], found["training_rows"]) == (300, 300), found
    assert set(found["tests"]) == {"words", "characters", "new_tokens", "answer", "labels"}, found
    found, err = drift(directory, run, other)
    assert found["differs"] and found["p"] < 1e-6, found
    assert found["tests"]["new_tokens"]["input"] > 0.5 > found["tests"]["new_tokens"]["training"], found
    assert err.count("\n") == 1 and "note: the rows differ from those of training (p below 0.000001): " in err, err
    assert " % of their word pieces and pairs are new (" in err and "training: " in err, err
    succeed("predict", "--model", run, "--input", other, "--output", directory / "out.csv", "--overwrite", "--fail-on-warning")
    # From a pipe, explained, and in a stream it is the same.
    for options in (["--input-format", "csv"], ["--explain", "--input-format", "csv"]):
        assert drift(directory, run, "-", *options, stdin=other.read_text())[0]["tests"] == found["tests"], options
    streamed = succeed("predict", "--model", run, "--input", other, "--output", "-", "--stream")
    assert "the rows differ from those of training" in streamed.err, streamed
    # Answers that are made in another way are not compared.
    assert len(drift(directory, run, other, "--max-length", 5)[0]["tests"]) == 2
    few = table(directory / "few.csv", rows(40, 4) * 5)
    assert drift(directory, run, few) == (None, "")
    fail(2, "predict", "--model", run, "--input", same, "--output", "-", "--json", words=["--json and --output -"])


def test_the_file_belongs_to_the_model(directory):
    need(*MODELS)
    run = trained(directory, "run", "--recipe", "quick", "--ngram-mix", "no")
    model, other = run / "model", table(directory / "other.csv", rows(100, 4, OTHERS))
    assert drift(directory, run, other)[0]["differs"]
    copy = directory / "copy"
    succeed("convert", "--model", model, "--output", copy, "--dtype", "bf16")
    assert (copy / "drift.json").read_bytes() == (model / "drift.json").read_bytes()
    text = (copy / "drift.json").read_text()
    for broken in (text[:-100], text.replace('"rows":300', '"rows":301'), ""):
        (copy / "drift.json").write_text(broken)
        fail(4, "predict", "--model", copy, "--input", other, "--output", directory / "x.csv", words=["drift.json"])
    (copy / "drift.json").unlink()
    assert drift(directory, copy, other) == (None, "")
    # A run on the same place without rows to compare with leaves none.
    shutil.rmtree(copy)
    trained(directory, "run", "--eval-fraction", 0, "--max-steps", 1, "--overwrite")
    assert not (model / "drift.json").exists()


def test_numbers_and_several_labels_but_no_folds(directory):
    need(*MODELS)
    other = table(directory / "other.csv", rows(100, 4, OTHERS))
    same = table(directory / "same.csv", rows(300, 3))
    folds = trained(directory, "folds", "--recipe", "quick", "--folds", 3)
    assert not (folds / "model" / "drift.json").exists()  # its figures are of heads that know less
    for name, count, options in (("tags", 4, ["--label-column", "tags", "--multi-label", ";", "--max-steps", 5]),
                                 ("number", 4, ["--label-column", "number", "--regression", "--max-steps", 5])):
        run = trained(directory, name, *options)
        found, err = drift(directory, run, same)
        assert len(found["tests"]) == count and not found["differs"] and not err, (name, found, err)
        assert drift(directory, run, other)[0]["differs"], name


main(globals())
