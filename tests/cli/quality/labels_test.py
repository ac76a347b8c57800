"""Labels as people have them: new ones, lists of them, and ones that differ in what nobody sees."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, evaluate, predict, write  # noqa: E402
from harness import fail, main, need, succeed  # noqa: E402

TRAINING = ("--max-steps", 3, "--batch-size", 4, "--lr", "1e-3", "--no-shuffle", "--recipe", "hf", "--precision", "fp32",
            "--threads", 1, "--no-progress", "--no-ngram-baseline")


def table(path, labels, column="label"):
    return write(path, f"text,{column}\n" + "".join(f"memo {i},{label}\n" for i, label in enumerate(labels)))


def train(directory, name, data, *more, model=MODEL):
    out = directory / name
    result = succeed("train", "--model", model, *TRAINING, "--train", data, "--output", out,
                     *([] if "--reinit-head" in more or model != MODEL else ["--reinit-head"]), *more)
    return out, result.err


def names(run):
    labels = json.loads((run / "model" / "config.json").read_text())["id2label"]
    return [labels[str(i)] for i in range(len(labels))]


def test_a_new_label_is_named(directory):
    need("golden/tiny-bert-classification")
    run, _ = train(directory, "run", table(directory / "a.csv", ["Food", "Rent", "Fuel", "Tax"] * 3))
    more = table(directory / "b.csv", ["Food", "Rent", "Fuel", "Crypto", "Food\u202e"] * 3)
    fail(4, "train", "--model", run / "model", *TRAINING, "--train", more, "--output", directory / "no",
         words=("head for other labels: the data has 2 labels: 'Crypto', 'Food\\u202e', which it lacks",
                "it has 1 label: 'Tax', which the data lacks", "--reinit-head"))
    fail(4, "train", "--model", run / "model", *TRAINING, "--train", table(directory / "c.csv", [1, 2, 3]), "--regression",
         "--output", directory / "no", words=("head for other labels: it has 4 labels", "the data's are numbers"))
    fail(4, "train", "--model", run / "model", *TRAINING, "--train", table(directory / "d.csv", ["Food", "Rent;Tax"]),
         "--multi-label", ";", "--output", directory / "no", words=("another number of labels a row",))
    fail(3, "evaluate", "--model", run / "model", "--data", more, words=("b.csv:5", "'Crypto'", "the model does not know"))
    fail(3, "train", "--model", MODEL, "--reinit-head", *TRAINING, "--train", directory / "a.csv", "--eval", more,
         "--output", directory / "no", words=("b.csv:5", "'Crypto'", "the training data lacks"))


if __name__ == "__main__":
    main(globals())
