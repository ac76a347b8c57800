"""train --extend-head and --drop-labels: a model learns labels and keeps what it knows."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, kill_when, read_safetensors, write
from harness import DEVICE, fail, main, need, succeed

STEP = ["--max-steps", 1, "--batch-size", 4, "--quiet", "--precision", "fp32", *DEVICE]


def table(path, labels):
    return write(path, "text,label\n" + "".join(f"{label} memo {i},{label}\n" for i, label in enumerate(labels * 6)))


def names(run):
    labels = json.loads((run / "model" / "config.json").read_text())["id2label"]
    return [labels[str(i)] for i in range(len(labels))]


def head(run):
    """The rows of the head's weights and its biases."""
    tensors = read_safetensors(run / "model" / "model.safetensors")
    out = []
    for name in ("classifier.weight", "classifier.bias"):
        shape, data, _ = tensors[name]
        size = len(data) // shape[0]
        out.append([data[i * size:(i + 1) * size] for i in range(shape[0])])
    return out


def test_a_head_gains_and_loses_labels(directory):
    need(*MODELS)
    first, more = table(directory / "first.csv", ["rent", "food", "tax"]), table(directory / "more.csv", ["food", "zoo", "bus"])
    run = directory / "run"
    succeed("train", "--model", MODEL, "--reinit-head", "--train", first, "--output", run, *STEP, "--lr", "1e-2")
    line = ["train", "--model", run, "--train", more, "--lr", "1e-30", *STEP, "--output"]
    said = fail(4, *line, directory / "no", words=["2 labels: 'bus', 'zoo', which it lacks", "--extend-head"])
    assert "--reinit-head" in said
    fail(4, *line, directory / "no", "--drop-labels", words=["'bus', 'zoo'", "--extend-head"])
    assert names(run) == ["food", "rent", "tax"]
    # The rows of known labels keep their bits; a new row is initialised as in a new head.
    extended, renewed, both = directory / "extended", directory / "renewed", directory / "both"
    line.remove("--quiet")
    log = succeed(*line, extended, "--extend-head").err
    assert "it gets 2 new labels: 'bus', 'zoo'; the data lacks 2 labels: 'rent', 'tax' (kept; --drop-labels" in log, log
    assert names(extended) == ["food", "rent", "tax", "bus", "zoo"]
    (old, old_bias), (now, bias) = head(run), head(extended)
    assert now[:3] == old and bias[:3] == old_bias
    log = succeed(*line, both, "--extend-head", "--drop-labels").err
    assert "it gets 2 new labels: 'bus', 'zoo'; it loses 2 labels: 'rent', 'tax'" in log, log
    assert names(both) == ["food", "bus", "zoo"] and head(both)[0][0] == old[0] and head(both)[1][0] == old_bias[0]
    succeed(*line, renewed, "--reinit-head")
    assert names(renewed) == ["bus", "food", "zoo"] and head(renewed)[0][1:] == head(both)[0][1:]
    # A label that is not in the data; none of the labels.
    line[4] = table(directory / "one.csv", ["rent", "food"])
    log = succeed(*line, directory / "one", "--extend-head").err
    assert "the data lacks 1 label: 'tax' (kept; --drop-labels leaves it out)" in log and "none of the head's" not in log, log
    line[4] = table(directory / "none.csv", ["Rent", "zoo"])
    log = succeed(*line, directory / "none", "--extend-head").err
    assert "--extend-head: the data has none of the head's labels" in log, log
    line[4] = more
    # The model answers with all labels, and training on known labels alone changes no name.
    answered = succeed("predict", "--model", extended, "--input", first, "--output", "-", "--all-probabilities").out
    assert "probability:tax,probability:bus,probability:zoo" in answered.splitlines()[0]
    succeed("train", "--model", extended, "--train", first, *STEP, "--extend-head", "--drop-labels", "--output",
            directory / "known")
    assert names(directory / "known") == ["food", "rent", "tax"]
    # A run that goes on ends as one that was never stopped.
    line[line.index("1e-30")] = "1e-3"
    line[line.index("--max-steps") + 1] = 12
    succeed(*line, directory / "whole", "--extend-head")
    cut = [*line, directory / "cut", "--extend-head", "--save-every", 1]
    log = directory / "cut/metrics.jsonl"
    assert kill_when(lambda: log.exists() and log.read_bytes().count(b"\n") > 2, *cut) != 0, "it had ended before"
    succeed(*cut, "--resume")
    assert head(directory / "cut") == head(directory / "whole") and names(directory / "cut") == names(extended)
    for given, words in ((["--reinit-head"], ["--reinit-head"]), (["--regression"], ["--regression"])):
        fail(2, *line, directory / "no", "--extend-head", *given, words=["--extend-head", *words])
    # A model of numbers.
    numbers = write(directory / "numbers.csv", "text,label\n" + "".join(f"memo {i},{i}.5\n" for i in range(12)))
    succeed("train", "--model", MODEL, "--reinit-head", "--regression", "--train", numbers, "--output", directory / "number",
            *STEP)
    line[2] = directory / "number"
    said = fail(4, *line, directory / "no", "--extend-head", words=["trained for numbers", "--reinit-head"])
    assert "another number of labels" not in said


def test_several_labels_a_row(directory):
    need(*MODELS)
    run, line = directory / "run", ["train", "--multi-label", ";", *STEP, "--train"]
    succeed(*line, table(directory / "a.csv", ["x;y", "y"]), "--model", MODEL, "--reinit-head", "--output", run)
    data = table(directory / "b.csv", ["x;a", "b"])
    succeed(*line, data, "--model", run, "--extend-head", "--lr", "1e-30", "--output", directory / "more")
    assert names(directory / "more") == ["x", "y", "a", "b"] and head(directory / "more")[0][:2] == head(run)[0]
    fail(4, "train", *STEP, "--train", data, "--model", run, "--extend-head", "--output", directory / "no",
         words=["another number of labels a row", "--reinit-head"])


main(globals())
