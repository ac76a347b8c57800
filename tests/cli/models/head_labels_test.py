"""Label names of a classifier that config.json lacks, or that do not match its weights."""
import csv
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, Tensor, copied, read_safetensors, write, write_safetensors
from harness import fail, main, need, succeed

STEPS = ("--max-steps", 2, "--no-progress", "--no-ngram-baseline")


def model_with(directory, rows, **config):
    """The golden model with a head of the first `rows` labels; a key with value None is removed."""
    copied(MODEL, directory)
    values = {name: value for name, value in json.loads((MODEL / "config.json").read_text()).items()
              if name not in ("id2label", "label2id", "num_labels", "problem_type", "finetune")}
    values.update({name: value for name, value in config.items() if value is not None})
    (directory / "config.json").write_text(json.dumps(values))
    tensors = read_safetensors(MODEL / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        shape, data, _ = tensors[name]
        tensors[name] = Tensor((rows, *shape[1:]), data[:len(data) // shape[0] * rows])
    write_safetensors(directory / "model.safetensors", tensors)
    return directory


def labels_of(model):
    return json.loads(succeed("inspect", model, "--json").out)["config"]["labels"]


def predicted(model, directory):
    texts = write(directory / "texts.csv", "text\nPETROL 1\nRENT MAY\nCOFFEE\n")
    out = succeed("predict", "--model", model, "--input", texts, "--output", "-").out
    return [row["label"] for row in csv.DictReader(io.StringIO(out))]


def test_heads_for_other_tasks(directory):
    """A head for tokens or choices has a classifier's names; config.json's class tells them apart."""
    need(MODEL)
    data = write(directory / "t.csv", "text,label\n" + "".join(f"coffee {i},LABEL_{i % 2}\n" for i in range(24)))
    for kind in ("ForTokenClassification", "ForMultipleChoice"):
        model = model_with(directory / kind, 2, architectures=[f"Bert{kind}"])
        fail(4, "predict", "--model", model, "--input", data, "--output", "-", words=[f"'Bert{kind}'", "finetune train"])
        succeed("convert", "--model", model, "--output", directory / f"{kind}-out")
        assert json.loads((directory / f"{kind}-out/config.json").read_text())["architectures"] == [f"Bert{kind}"]
        assert "classifier.weight" in read_safetensors(directory / f"{kind}-out/model.safetensors")
        log = succeed("train", "--model", model, "--train", data, "--output", directory / f"run-{kind}", "--recipe", "hf",
                      *STEPS).err
        assert "the head (classifier) is newly initialised" in log, log
        fail(2, "train", "--model", model, "--train", data, "--extend-head", "--output", directory / "x",
             words=["--extend-head", "no trained head"])


def test_models_without_names(directory):
    """transformers omits two default names from config.json, and scripts may write only num_labels."""
    need("golden/tiny-bert-classification")
    for name, rows, config in (("defaults", 2, {}), ("number", 3, {"num_labels": 3}), ("google", 5, {})):
        model = model_with(directory / name, rows, **config)
        names = [f"LABEL_{i}" for i in range(rows)]
        assert labels_of(model) == names, name
        assert set(predicted(model, directory)) <= set(names), name
        data = write(directory / "rows.csv", "text,label\nPETROL 1,LABEL_0\nRENT MAY,LABEL_1\n")
        assert " % of 2 rows right" in succeed("evaluate", "--model", model, "--data", data).out
        out = directory / f"run-{name}"
        succeed("train", "--model", model, "--train", data, "--lr", "1e-3", *STEPS, "--output", out)
        assert "head (classifier) of the weights is kept" in (out / "log.txt").read_text()
        assert labels_of(out) == names
        converted = directory / f"converted-{name}"
        succeed("convert", "--model", model, "--output", converted)
        assert json.loads((converted / "config.json").read_text())["id2label"] == {str(i): n for i, n in enumerate(names)}
        assert predicted(converted, directory) == predicted(model, directory)


def test_problem_types_without_names(directory):
    need("golden/tiny-bert-classification")
    for name, config in (("named", {"problem_type": "regression"}), ("counted", {"num_labels": 1}), ("bare", {})):
        model = model_with(directory / name, 1, **config)
        assert len([float(value) for value in predicted(model, directory)]) == 3, name
    model = model_with(directory / "several", 3, problem_type="multi_label_classification")
    assert all(set(filter(None, row.split("|"))) <= {"LABEL_0", "LABEL_1", "LABEL_2"}
               for row in predicted(model, directory))


def test_names_that_are_numbers(directory):
    """run_glue.py writes numeric classes of a CSV as numbers."""
    need("golden/tiny-bert-classification")
    model = model_with(directory / "m", 3, id2label={"0": 0, "1": 1, "2": 5}, label2id={"0": 0, "1": 1, "5": 2})
    assert labels_of(model) == ["0", "1", "5"]
    assert set(predicted(model, directory)) <= {"0", "1", "5"}
    data = write(directory / "rows.csv", "text,label\nPETROL 1,0\nRENT MAY,5\n")
    succeed("evaluate", "--model", model, "--data", data)
    succeed("train", "--model", model, "--train", data, *STEPS, "--output", directory / "run")
    assert labels_of(directory / "run") == ["0", "1", "5"]
    succeed("convert", "--model", model, "--output", directory / "c")
    assert json.loads((directory / "c/config.json").read_text())["id2label"] == {"0": "0", "1": "1", "2": "5"}
    inverse = model_with(directory / "inverse", 2, label2id={"rent": 1, "fuel": 0})
    assert labels_of(inverse) == ["fuel", "rent"]
    flags = model_with(directory / "flags", 2, id2label={"0": False, "1": True})
    rows = write(directory / "rows.jsonl", '{"text": "a", "label": true}\n{"text": "b", "label": false}\n')
    succeed("evaluate", "--model", flags, "--data", rows)


def test_names_that_cannot_be_used(directory):
    """An error with the numbers for commands that keep the head, not for those that need only the encoder."""
    need("golden/tiny-bert-classification")
    data = write(directory / "rows.csv", "text,label\nPETROL 1,fuel\nRENT MAY,rent\n")
    texts = write(directory / "texts.txt", "PETROL 1\nRENT MAY\nCOFFEE\nTEA\n")
    cases = {"few": ({"id2label": {"0": "fuel", "1": "rent"}}, ["has 3 rows", "names 2 labels"]),
             "count": ({"num_labels": 4}, ["has 3 rows", "names 4 labels"]),
             "gap": ({"id2label": {"0": "a", "1": "b", "3": "c"}}, ["id2label has 3 but not 2"]),
             "twice": ({"id2label": {"0": "a", "1": "b", "2": "a"}}, ["0 and 2 have the same label, 'a'"]),
             "null": ({"id2label": {"0": "a", "1": None, "2": "b"}}, ["the label of 1 is null"]),
             "list": ({"id2label": ["a", "b", "c"]}, ["id2label is not an object"])}
    for name, (config, words) in cases.items():
        model = model_with(directory / name, 3, **config)
        fail(4, "predict", "--model", model, "--input", data, "--output", "-", words=words)
        fail(4, "evaluate", "--model", model, "--data", data, words=words)
        fail(4, "train", "--model", model, "--train", data, *STEPS, "--output", directory / "none",
             words=[*words, "--reinit-head"])
        succeed("train", "--model", model, "--reinit-head", "--train", data, *STEPS, "--output", directory / f"new-{name}")
        assert labels_of(directory / f"new-{name}") == ["fuel", "rent"]
        assert words[0] in succeed("inspect", model).out
        assert words[0] in succeed("convert", "--model", model, "--output", directory / f"c-{name}").err
        succeed("tokenize", "--model", model, texts)
    succeed("adapt", "--model", directory / "gap", "--text", texts, "--max-steps", 1, "--output", directory / "adapted")


main(globals())
