"""Labels of real data: unseen ones, lists of labels, and ones with invisible differences."""
import json
import random
import sys
import unicodedata
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


# Labels that look equal; --normalize-labels uses the most frequent spelling.
ALIKE = [("Food", ["Food", "Food", "food", "FOOD", "Food ", " Food", "Food\u00a0", "F\u200bood"]),
         ("1", ["1", "1", "1.0", "1.00", "\ufeff1"]), ("-3", ["-3.0", "-3", "-3"]),
         ("Café au lait", ["Café au lait", "Cafe\u0301 au lait", "Cafe\u0301  au\u2003lait", "CAFÉ AU LAIT"]),
         ("007", ["007", "007"]), ("7", ["7", "7"]), ("1.10", ["1.10", "1.10"])]


def alike_rows(path):
    labels = [spelling for _, spellings in ALIKE for spelling in spellings]
    return write(path, "text\tlabel\n" + "".join(f"memo {i}\t{label}\n" for i, label in enumerate(labels)))


def test_labels_that_a_person_takes_for_one_are_said(directory):
    need("golden/tiny-bert-classification")
    data = alike_rows(directory / "a.tsv")
    _, said = train(directory, "run", data)
    lines = [line for line in said.splitlines() if "takes for one" in line]
    assert len(lines) == 1 and lines[0].startswith("warning: ") and "--normalize-labels" in lines[0], said
    for word in ("'1' and '1.0'", "'Food'", "\\u00a0", "'Cafe\\u0301 au lait'"):
        assert word in said, (word, lines)
    found = json.loads(succeed("check", "--train", data, "--json", "--no-ngram-baseline").out)["findings"]
    similar = [finding for finding in found if finding["kind"] == "similar-labels"]
    assert len(similar) == 1 and similar[0]["level"] == "warning" and similar[0]["count"] == 17, found
    assert "'1.0'" in similar[0]["text"] and "--normalize-labels" in similar[0]["text"], similar
    # Only in the evaluation data.
    plain = table(directory / "b.csv", ["Food", "Rent"] * 4)
    other = table(directory / "c.csv", ["Food\u00a0", "Rent"] * 4)
    fail(3, "train", "--model", MODEL, "--reinit-head", *TRAINING, "--train", plain, "--eval", other,
         "--output", directory / "no", words=("'Food\\u00a0' is like 'Food', --normalize-labels joins them",))
    said = train(directory, "ignoring", plain, "--eval", other, "--ignore-unknown-labels")[1]
    assert "'Food' and 'Food\\u00a0'" in said, said
    tags = table(directory / "d.csv", ["Food;Rent", "food;Rent", "Food"] * 2)
    assert "'Food' and 'food'" in train(directory, "tags", tags, "--multi-label", ";")[1]


def test_labels_for_missing_values_are_said(directory):
    need("golden/tiny-bert-classification")
    data = table(directory / "a.csv", ["Food", "Rent", "nan", "None"] * 12)
    said = "'None', 'nan' are labels here, and what programs write for a missing value"
    assert f"warning: {said}" in train(directory, "run", data)[1]
    findings = json.loads(succeed("check", "--train", data, "--json").out)["findings"]
    found = [each for each in findings if each["kind"] == "missing-labels"]
    assert len(found) == 1 and found[0]["level"] == "warning" and said in found[0]["text"], findings
    _, said = train(directory, "several", table(directory / "b.csv", ["Food|nan", "Rent"] * 12), "--multi-label", "|")
    assert "'nan' is a label here" in said, said
    _, said = train(directory, "plain", table(directory / "c.csv", ["Food", "none", "NA", "Nancy"] * 12))
    assert "missing value" not in said, said  # words that people use for classes


def test_normalize_labels_joins_them(directory):
    need("golden/tiny-bert-classification")
    data = alike_rows(directory / "a.tsv")
    run, said = train(directory, "run", data, "--normalize-labels", "--eval", data)
    assert set(names(run)) == {name for name, _ in ALIKE}, names(run)
    assert "takes for one" not in said and "--normalize-labels changes 13 labels" in said, said
    assert "normalize-labels = true" in (run / "config.toml").read_text()
    header, *lines = (run / "predictions.csv").read_text().splitlines()
    expected = [name for name, spellings in ALIKE for _ in spellings]
    assert [line.split(",")[1] for line in lines] == expected, lines
    # The model stores the option, and evaluate does as train did.
    scored = evaluate(data, "--json", "--precision", "fp32", model=run / "model")
    metrics = json.loads((run / "metrics.json").read_text())
    assert json.loads(scored.out)["eval_accuracy"] == metrics["eval_accuracy"]
    assert abs(json.loads(scored.out)["eval_loss"] - metrics["eval_loss"]) < 1e-6
    # The same data with one spelling gives the same bits.
    clean = write(directory / "clean.tsv", "text\tlabel\n" + "".join(f"memo {i}\t{label}\n" for i, label in
                                                                   enumerate(expected)))
    same, _ = train(directory, "same", clean)
    sums = [json.loads((directory / name / "run.json").read_text())["weights_sha256"] for name in ("run", "same")]
    assert sums[0] == sums[1]
    # For a model without the option: evaluate's own option.
    fail(3, "evaluate", "--model", same / "model", "--data", data, words=("is like", "--normalize-labels"))
    evaluate(data, "--normalize-labels", "--slice", "label", model=same / "model")
    found = json.loads(succeed("check", "--train", data, "--normalize-labels", "--json", "--no-ngram-baseline").out)
    assert found["labels"] == len(ALIKE), found
    assert [f["level"] for f in found["findings"] if f["kind"] == "joined-labels"] == ["note"], found
    fail(2, "train", "--model", MODEL, *TRAINING, "--train", data, "--output", run, "--resume", "--reinit-head", "--eval",
         data, words=("normalize-labels",))
    fail(2, "train", "--model", MODEL, *TRAINING, "--train", data, "--regression", "--normalize-labels", "--output",
         directory / "no", words=("--normalize-labels",))


def test_a_model_that_goes_on_keeps_its_names(directory):
    need("golden/tiny-bert-classification")
    run, _ = train(directory, "run", table(directory / "a.csv", ["Food", "Rent"] * 4))
    more = table(directory / "b.csv", ["food ", "RENT", "food "] * 3)
    fail(4, "train", "--model", run / "model", *TRAINING, "--train", more, "--output", directory / "no",
         words=("'RENT' is like 'Rent'", "--normalize-labels joins them"))
    on, said = train(directory, "on", more, "--normalize-labels", model=run / "model")
    assert names(on) == ["Food", "Rent"] and "head fits and is kept" in said, said


def test_normal_forms_are_those_of_unicode(directory):
    need("golden/tiny-bert-classification")
    draw = random.Random(5)
    letters = [chr(c) for c in range(0xA1, 0x3000) if unicodedata.decomposition(chr(c)) and chr(c).isalpha()]
    letters += [chr(0xAC00 + draw.randrange(11172)) for _ in range(200)]
    marks = [chr(c) for c in (*range(0x300, 0x315), *range(0x323, 0x332), 0x345, 0x5B4, 0x93C, 0x3099)]
    labels = []
    for i in range(400):
        drawn = "".join(draw.choice(letters) + "".join(draw.sample(marks, draw.randrange(3))) for _ in range(3))
        labels.append(f"{i} " + unicodedata.normalize(draw.choice(["NFC", "NFD"]), drawn) + draw.choice(marks))
    data = write(directory / "a.tsv", "text\tlabel\n" + "".join(f"memo {i}\t{label}\n" for i, label in
                                                                enumerate(labels)))
    run, _ = train(directory, "run", data, "--normalize-labels", "--max-steps", 1)
    assert set(names(run)) == {unicodedata.normalize("NFC", label) for label in labels}


def test_lists_in_cells(directory):
    need("golden/tiny-bert-classification")
    lists = ["['food', 'big']", '["food", "big"]', "('food', 'big')", "['big' 'food']", "food;big", " [ 'food' ,\"big\" ] "]
    plain, _ = train(directory, "plain", table(directory / "p.csv", ["food;big", "fuel", "", "it's"] * 3), "--multi-label", ";")
    for number, cell in enumerate(lists):
        cells = [cell, "['fuel']", "[]", '["it\'s"]']
        quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
        data = table(directory / f"{number}.csv", quoted * 3)
        run, said = train(directory, f"run{number}", data, "--multi-label", ";", "--eval", data)
        assert names(run) == ["big", "food", "fuel", "it's"], (cell, names(run))
        sums = [json.loads((r / "run.json").read_text())["weights_sha256"] for r in (run, plain)]
        assert sums[0] == sums[1], cell
    scored = evaluate(data, "--json", "--precision", "fp32", model=run / "model")
    assert json.loads(scored.out)["eval_f1_micro"] == json.loads((run / "metrics.json").read_text())["eval_f1_micro"]
    assert json.loads(succeed("check", "--train", data, "--multi-label", ";", "--json", "--no-ngram-baseline").out)["labels"] == 4
    wrong = table(directory / "wrong.csv", ['"[\'a;b\', \'c\']"', "d"] * 3)
    fail(3, "train", "--model", MODEL, "--reinit-head", *TRAINING, "--train", wrong, "--multi-label", ";", "--output",
         directory / "no", words=("wrong.csv:2", "lists the label 'a;b'", "separator"))


def test_lists_that_are_not_read_are_said(directory):
    need("golden/tiny-bert-classification")
    data = table(directory / "a.csv", ['"[\'food\', \'big\']"', '"[\'fuel\']"'] * 3)
    said = train(directory, "one", data)[1]
    assert "is a list of labels, and one class here; --multi-label SEP reads lists" in said, said
    bare = table(directory / "b.csv", ['"[food, big]"', '"[fuel, big]"'] * 3)
    said = train(directory, "bare", bare, "--multi-label", ",")[1]
    assert "is a part of a list that is not understood" in said, said


def json_lines(path, *objects):
    return write(path, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects))


def test_what_predict_writes_is_read_back(directory):
    need("golden/tiny-bert-classification")
    tags = ["food;big", "fuel", "", "food"] * 6
    run, _ = train(directory, "run", table(directory / "a.csv", tags), "--multi-label", ";", "--max-steps", 30, "--lr", "5e-3")
    texts = write(directory / "new.csv", "text\n" + "".join(f"memo {i}\n" for i in range(12)))
    predict(texts, "--json-lines", model=run / "model")
    succeed("predict", "--model", run / "model", "--input", texts, "--output", directory / "p.jsonl")
    read = [json.loads(line) for line in (directory / "p.jsonl").read_text().splitlines()]
    assert all(isinstance(row["label"], list) and isinstance(row["probability"], list) for row in read)
    assert any(row["label"] for row in read), read
    again, _ = train(directory, "again", directory / "p.jsonl", "--multi-label", ";")
    assert set(names(again)) == {label for row in read for label in row["label"]}
    scored = evaluate(directory / "p.jsonl", "--json", model=run / "model")
    assert json.loads(scored.out)["eval_accuracy"] == 1
    found = json.loads(succeed("check", "--train", directory / "p.jsonl", "--multi-label", ";", "--json",
                               "--no-ngram-baseline").out)
    assert found["labels"] == len(names(again)) and found["train_rows"] == 12, found
    predict(directory / "p.jsonl", model=run / "model")
    # An array of objects is read in the same way.
    whole = write(directory / "p.json", json.dumps(read))
    assert evaluate(whole, "--json", model=run / "model").out.split('"eval_')[1:] == scored.out.split('"eval_')[1:]


def test_arrays_that_are_not_labels(directory):
    need("golden/tiny-bert-classification")
    line = ("--model", MODEL, "--reinit-head", *TRAINING, "--output", directory / "no", "--train")
    lists = json_lines(directory / "a.jsonl", *({"text": f"memo {i}", "label": ["food"]} for i in range(4)))
    fail(3, "train", *line, lists, words=("a.jsonl:1", "key 'label' has a list of labels; --multi-label SEP reads lists"))
    deep = json_lines(directory / "b.jsonl", {"text": "memo", "label": [["food"]]})
    fail(3, "train", *line, deep, "--multi-label", ";", words=("b.jsonl:1", "a list that holds something other than names"))
    texts = json_lines(directory / "c.jsonl", {"text": ["memo"], "label": "food"})
    fail(3, "train", *line, texts, words=("c.jsonl:1", "key 'text' has a nested value"))
    only = json_lines(directory / "d.jsonl", {"memo": ["memo"], "label": "food"})
    fail(3, "train", *line, only, words=("d.jsonl:1", "key 'memo' has a nested value"))
    wrapped = write(directory / "e.json", json.dumps({"data": [{"text": "memo", "label": "food"}]}))
    fail(3, "train", *line, wrapped, words=("e.json:1", "all rows under 'data'", "jq -c '.data[]'"))


if __name__ == "__main__":
    main(globals())
