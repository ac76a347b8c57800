"""Columns beside the text: a ledger whose accounts depend on debit or credit and on division."""
import csv
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, evaluate, predict, rows_of
from harness import fail, main, metrics_in, metrics_of, need, succeed

MERCHANTS = {"edf facture": ("606100", "409100"), "orange mobile": ("626000", "409600"), "sncf billet": ("625100", "409800")}
COLUMNS = ("--number-columns", "amount", "--category-columns", "division,currency")


def ledger(path, count, seed, header=("text", "amount", "division", "currency", "label")):
    """The account is the merchant's, of debits or of credits; the division "siege" has accounts of its own."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        merchant = draw.choice(sorted(MERCHANTS))
        is_credit, division = draw.random() < 0.5, draw.choice(["nord", "sud", "siege"])
        amount = f"{draw.lognormvariate(5, 1):,.2f}"
        written = (amount, "€ " + amount) if not is_credit else ("-" + amount, f"({amount})", amount + "-")
        label = MERCHANTS[merchant][is_credit] + ("9" if division == "siege" else "")
        row = (f"{merchant} {draw.randrange(100, 999)}", draw.choice(written), division, draw.choice(["EUR", "CHF"]), label)
        rows.append(dict(zip(("text", "amount", "division", "currency", "label"), row, strict=True)))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *([row[name] for name in header] for row in rows)])
    return path


def test_the_ledger(directory):
    need(*MODELS)
    train, dev = ledger(directory / "train.csv", 600, 1), ledger(directory / "dev.csv", 300, 2)
    line = ["train", "--model", MODEL, "--reinit-head", "--train", train, "--eval", dev, "--max-steps", 1, "--ngram-mix", "yes",
            "--overwrite", "--output", directory / "run"]
    result = succeed(*line, *COLUMNS)
    out = directory / "run"
    accuracy = metrics_of(out)["eval_accuracy"]
    # Twelve accounts, four for each merchant: the text alone is right once in three at most.
    assert accuracy > 0.95, result
    checked = succeed("check", "--train", train, "--eval", dev, *COLUMNS, "--json").out
    assert metrics_in(checked)["baseline_ngram_accuracy"] == metrics_of(out)["baseline_ngram_accuracy"] > 0.95, checked
    assert "words and columns 1" in result.out and "words and columns 1" in (out / "model/README.md").read_text(), result
    assert '"contradictions"' not in checked, checked
    words = succeed("check", "--train", train, "--eval", dev, "--text-column", "text", "--json").out
    assert metrics_in(words)["baseline_ngram_accuracy"] < 0.5, words
    stored = json.loads((out / "model" / "config.json").read_text())["finetune"]
    assert stored["number_columns"] == ["amount"] and stored["category_columns"] == ["division", "currency"], stored
    card = (out / "model" / "README.md").read_text()
    assert "cannot take the columns beside the text" in card and "| numbers | amount |" in card, card
    assert 'category-columns = ["division", "currency"]' in (out / "config.toml").read_text()
    # evaluate finds the columns by name, in whatever order they stand.
    turned = ledger(directory / "turned.csv", 300, 2, ("label", "currency", "amount", "text", "division"))
    found = metrics_in(evaluate(turned, "--json", model=out).out)
    assert abs(found["eval_accuracy"] - accuracy) < 0.02, (found, accuracy)
    assert found["baseline_ngram_accuracy"] == metrics_of(out)["baseline_ngram_accuracy"], found
    # Empty and unreadable numbers and new categories are counted; JSON numbers are read.
    odd = directory / "odd.jsonl"
    odd.write_text("".join(json.dumps({"text": "edf facture 100", "amount": amount, "division": division, "currency": "EUR"}) + "\n"
                           for amount, division in ((-120.5, "nord"), (120.5, "nord"), ("1.120,50", "siege"), ("", "nord"),
                                                    ("?", "est"))))
    told = predict(odd, "--explain", model=out)
    rows = [dict(zip(rows_of(told.out)[0], row, strict=True)) for row in rows_of(told.out)[1:]]
    assert [row["label"] for row in rows[:3]] == ["409100", "606100", "6061009"], rows
    assert "amount=-120.5" in rows[0]["ngrams"] and "division=siege" in rows[2]["ngrams"], rows
    assert told.err.count("column 'amount': 2 of 5 rows have no number and count as the mean of training") == 1, told.err
    assert told.err.count("column 'division': 1 of 5 rows has a value that training had not; it is ignored") == 1, told.err
    succeed("next", "--model", out, "--input", odd, "--rows", 2, "--output", directory / "next.csv")
    # A key that a row lacks is an empty value; a key that no row has is an error.
    lacks = directory / "lacks.jsonl"
    lacks.write_text(json.dumps({"text": "edf facture 100", "division": "nord", "currency": "EUR"}) + "\n" + odd.read_text())
    assert "column 'amount': 3 of 6 rows have no number" in predict(lacks, model=out).err
    lacks.write_text(lacks.read_text().splitlines()[0] + "\n")
    fail(3, "predict", "--model", out, "--input", lacks, "--output", "-", words=["no column 'amount'"])
    # A column that is missing is named; the model alone does not need it.
    lacking = directory / "lacking.csv"
    lacking.write_text("text,division,currency\nedf facture 1,nord,EUR\n")
    asked = ["predict", "--model", out, "--input", lacking, "--output", "-"]
    fail(3, *asked, words=["lacking.csv: no column 'amount'", "--number-columns"])
    fail(2, *asked, "--number-columns", "division,currency", words=["1 column of numbers", "names 2"])
    succeed(*asked, "--no-ngram-mix")
    fail(3, "predict", "--model", out, "--input", "-", "--input-format", "text", "--output", "-", stdin="a\n", words=["amount"])


def test_columns_without_effect_are_told(directory):
    need(*MODELS)
    train = ledger(directory / "train.csv", 200, 1)
    line = ["train", "--model", MODEL, "--reinit-head", "--train", train, "--eval-fraction", 0.2, "--max-steps", 1]
    told = succeed(*line, *COLUMNS, "--output", directory / "run").err
    warnings = [text for text in told.splitlines() if "warning: " in text and "beside the text" in text]
    assert len(warnings) == 1 and "have no effect (amount, division, currency)" in warnings[0], told
    assert "there are 40 and " in warnings[0] and "--eval-fraction" in warnings[0], told
    assert "The columns beside the text have no effect" in (directory / "run/model/README.md").read_text()
    # With folds all rows decide on the mix.
    told = succeed("train", "--model", MODEL, "--reinit-head", "--train", train, "--recipe", "quick", "--folds", 3, *COLUMNS,
                   "--output", directory / "folds")
    assert "beside the text have no effect" not in told.err and "words and columns" in told.out, told
    succeed(*line, "--output", directory / "text")
    assert "beside the text" not in (directory / "text/model/README.md").read_text()


def test_columns_that_cannot_be_used(directory):
    train = ledger(directory / "train.csv", 30, 1)
    line = ["train", "--model", MODEL, "--train", train, "--output", directory / "run"]
    fail(2, *line, *COLUMNS, words=["--number-columns", "--eval-fraction"])
    line += ["--eval-fraction", 0.3]
    for more, word in ((["--recipe", "hf"], "--ngram-mix yes"), (["--regression"], "--regression"), (["--no-calibration"], "leave out")):
        fail(2, *line, *COLUMNS, *more, words=["linear model", word])
    fail(2, *line, "--category-columns", "label", words=["label column"])
    fail(2, *line, "--number-columns", "amount,amount", words=["given twice"])
    fail(3, *line, "--number-columns", "cost", words=["no column 'cost'"])
    fail(3, *line, "--number-columns", "division", words=["train.csv:2: column 'division' has no numbers", "--category-columns"])


main(globals())
