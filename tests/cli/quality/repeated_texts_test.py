"""Evaluation rows whose text was trained on: metrics of all rows and of the others."""
import csv
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, QA_MODEL, TRAIN, rows_of, squad, write
from harness import fail, main, metrics_in, metrics_of, need, run, succeed

WORDS = ["coffee", "rent", "fuel", "bread", "tax", "train", "card", "north"]


def table(path, rows, header="text,label"):
    return write(path, "\n".join([header, *rows]) + "\n")


def rows(count, seed, tag):
    draw = random.Random(seed)
    return [f"{draw.choice(WORDS)} {draw.choice(WORDS)} {tag}{i},{draw.choice('ab')}" for i in range(count)]


def train(out, *more, **options):
    return succeed("train", "--model", MODEL, "--reinit-head", "--recipe", "hf", "--max-steps", 2, "--threads", 1,
                   "--output", out, *more, **options)


def accuracy(predictions, keep):
    right = [row["label"] == row["predicted_label"] for row in predictions if keep(row["text"])]
    return sum(right) / len(right)


def test_both_figures_for_files(directory):
    need(*MODELS)
    seen, new = rows(30, 1, "s"), rows(50, 2, "n")
    # White space around a text is ignored; its label may differ.
    data = table(directory / "train.csv", rows(40, 3, "t") + seen)
    dev = table(directory / "dev.csv", [f"  {seen[0].split(',')[0]} ,b", *seen[1:], *new])
    out = directory / "run"
    result = train(out, "--train", data, "--eval", dev)
    metrics = metrics_of(out)
    with open(out / "predictions.csv", newline="") as file:
        predictions = list(csv.DictReader(file))
    assert metrics["eval_repeated"] == 30 and metrics["eval_rows"] == 80, metrics
    is_new = {line.split(",")[0] for line in new}
    assert abs(metrics["eval_accuracy"] - accuracy(predictions, lambda text: True)) < 1e-12, metrics
    assert abs(metrics["eval_accuracy_unseen"] - accuracy(predictions, lambda text: text in is_new)) < 1e-12, metrics
    assert {name for name in metrics if name.endswith("_unseen")} == {
        f"eval_{name}_unseen" for name in ("accuracy", "f1_macro", "f1_micro", "f1_weighted", "mcc")}, metrics
    warning = "warning: eval: 30 of 80 rows (37.5 %) have a text that is trained on, too"
    unseen_line = f"accuracy {100 * metrics['eval_accuracy_unseen']:.1f} % on texts that are not trained on (30 left out)"
    assert warning in result.err and unseen_line in result.out.splitlines(), result
    assert unseen_line in (out / "log.txt").read_text()
    # Evaluations during training are as short as before.
    assert "_unseen  " not in result.err and "_unseen" not in (out / "metrics.jsonl").read_text()
    # evaluate reads the run's own files again; under other names they must be given.
    unseen = {name: value for name, value in metrics.items() if "unseen" in name or name == "eval_repeated"}
    evaluated = succeed("evaluate", "--model", out, "--data", dev, "--json")
    found = metrics_in(evaluated.out)
    assert {name: found[name] for name in unseen} == unseen and warning in evaluated.err, (evaluated, unseen)
    data.rename(directory / "moved.csv")
    gone = succeed("evaluate", "--model", out, "--data", dev, "--json")
    assert "unseen" not in gone.out and "eval_repeated" not in gone.out, gone
    named = succeed("evaluate", "--model", out, "--data", dev, "--train", directory / "moved.csv", "--json")
    assert metrics_in(named.out) == found, named
    # They are ordinary metrics.
    gate = ["evaluate", "--model", out, "--data", dev, "--train", directory / "moved.csv", "--assert"]
    assert run(*gate, "eval_accuracy_unseen>=0", "--assert", "eval_repeated<=30").code == 0
    assert run(*gate, "eval_accuracy_unseen>=1.01").code == 7
    assert f">{unseen_line}<" in succeed("report", out, "--output", "-").out


def test_no_repeated_text_and_nothing_else(directory):
    need(*MODELS)
    data, dev = table(directory / "train.csv", rows(40, 3, "t")), table(directory / "dev.csv", rows(30, 4, "d"))
    result = train(directory / "none", "--train", data, "--eval", dev)
    metrics = metrics_of(directory / "none")
    assert metrics["eval_repeated"] == 0 and metrics["eval_accuracy_unseen"] == metrics["eval_accuracy"], metrics
    assert "trained on, too" not in result.err + result.out, result
    # If all texts are known there are no metrics of new texts, and a gate on them fails.
    result = train(directory / "all", "--train", data, "--eval", data)
    assert metrics_of(directory / "all")["eval_repeated"] == 40
    assert not any("unseen" in name for name in metrics_of(directory / "all"))
    assert "every evaluation text is trained on, too" in result.out, result
    gate = run("train", "--model", MODEL, "--reinit-head", "--max-steps", 1, "--train", data, "--eval", data, "--output",
               directory / "gate", "--assert", "eval_accuracy_unseen>=0", "--best-metric", "eval_accuracy_unseen")
    assert gate.code == 7, gate


def test_distinct_split(directory):
    need(*MODELS)
    draw = random.Random(5)
    repeated = [f"text {draw.randrange(40)},{draw.choice('ab')}" for _ in range(300)]
    data = table(directory / "train.csv", repeated)
    split = ["--train", data, "--eval-fraction", 0.2]
    result = train(directory / "default", *split)
    assert "--eval-split distinct keeps equal texts on one side" in result.err and "warning: eval: " in result.err, result
    assert metrics_of(directory / "default")["eval_repeated"] > 50
    result = train(directory / "distinct", *split, "--eval-split", "distinct")
    metrics = metrics_of(directory / "distinct")
    assert metrics["eval_repeated"] == 0 and 40 < metrics["eval_rows"] < 80, metrics
    assert metrics["train_rows"] + metrics["eval_rows"] == 300 and "of 40 texts" in result.err, (metrics, result)
    with open(directory / "distinct/predictions.csv", newline="") as file:
        held = {row["text"] for row in csv.DictReader(file)}
    assert sum(line.split(",")[0] in held for line in repeated) == metrics["eval_rows"]
    # evaluate of the whole file knows which of its rows the run held out.
    whole = succeed("evaluate", "--model", directory / "distinct", "--data", data, "--no-ngram-baseline", "--json")
    assert metrics_in(whole.out)["eval_repeated"] == metrics["train_rows"], (whole, metrics)
    assert metrics_in(whole.out)["eval_accuracy_unseen"] == metrics["eval_accuracy"], (whole, metrics)
    assert "have a text that is trained on, too" in whole.err, whole
    # A pair is known if both of its texts match.
    pairs = table(directory / "pairs.csv", [f"text {i % 7},other {i % 11},{'ab'[i % 2]}" for i in range(231)], "text,pair,label")
    train(directory / "pairs", "--train", pairs, "--text-pair-column", "pair", "--eval-fraction", 0.2, "--eval-split",
          "distinct")
    assert metrics_of(directory / "pairs")["eval_repeated"] == 0
    with open(directory / "pairs/predictions.csv", newline="") as file:
        held = {(row["text"], row["pair"]) for row in csv.DictReader(file)}
    assert len({text for text, _ in held}) == 7 and len(held) < 77, held
    line = ["train", "--model", MODEL, "--train", data, "--output", directory / "x", "--eval-split", "distinct"]
    fail(2, *line, words=["--eval-fraction"])
    fail(2, *line, "--eval-fraction", 0.2, "--eval-group", "text", words=["--eval-group"])
    # check reports it for held-out rows too.
    found = json.loads(succeed("check", "--train", data, "--json").out)["findings"]
    assert any(each["kind"] == "overlap" and each["level"] == "warning" and "distinct" in each["text"] for each in found)
    found = json.loads(succeed("check", "--train", data, "--eval-split", "distinct", "--json").out)["findings"]
    assert not any(each["kind"] == "overlap" for each in found), found


def test_numbers_and_several_labels(directory):
    need(*MODELS)
    numbers = [f"text {i},{i}.5" for i in range(40)]
    data, dev = table(directory / "n.csv", numbers), table(directory / "d.csv", numbers[:10] + [f"new {i},{i}" for i in range(30)])
    train(directory / "numbers", "--train", data, "--eval", dev, "--regression")
    metrics = metrics_of(directory / "numbers")
    with open(directory / "numbers/predictions.csv", newline="") as file:
        errors = [(float(row["label"]) - float(row["predicted_label"])) ** 2 for row in csv.DictReader(file)]
    assert metrics["eval_repeated"] == 10 and abs(metrics["eval_mse_unseen"] - sum(errors[10:]) / 30) < 1e-6 * sum(errors)
    sets = [f"text {i},{'a;b' if i % 3 else 'b'}" for i in range(40)]
    data, dev = table(directory / "s.csv", sets), table(directory / "sd.csv", sets[:10] + [f"new {i},a" for i in range(30)])
    train(directory / "sets", "--train", data, "--eval", dev, "--multi-label", ";")
    metrics = metrics_of(directory / "sets")
    assert metrics["eval_repeated"] == 10 and "eval_f1_micro_unseen" in metrics and "eval_mcc_unseen" not in metrics, metrics


def test_questions_with_their_contexts(directory):
    need(*MODELS)
    context = "The lazy dog sleeps in the warm sun all day long"
    other = "A brown fox jumps over one lazy dog in the field"
    data = write(directory / "train.json", squad([("1", "Who sleeps?", context, "lazy dog"), ("2", "Where?", context, "sun")]))
    # The same question about another context is a different text.
    dev = write(directory / "dev.json", squad([("a", "Who sleeps?", context, "lazy dog"), ("b", "Who jumps?", other, "fox"),
                                               ("c", "Where?", other, "field")]))
    out = directory / "run"
    result = succeed("train", "--model", QA_MODEL, "--train", data, "--eval", dev, "--max-steps", 1, "--output", out)
    metrics = metrics_of(out)
    assert metrics["eval_repeated"] == 1 and metrics["eval_rows"] == 3, metrics
    assert {"eval_f1_unseen", "eval_exact_match_unseen"} < set(metrics), metrics
    assert "warning: eval: 1 of 3 questions (33.3 %) have a text that is trained on, too" in result.err, result
    found = metrics_in(succeed("evaluate", "--model", out, "--data", dev, "--json").out)
    for name in ("eval_repeated", "eval_f1_unseen", "eval_exact_match_unseen"):
        assert found[name] == metrics[name], (name, found, metrics)
    answers = json.loads((out / "predictions.json").read_text())
    right = sum(answers[name] == text for name, text in (("b", "fox"), ("c", "field")))
    assert metrics["eval_exact_match_unseen"] == 100 * right / 2, (metrics, answers)


def test_texts_to_adapt_to(directory):
    need(*MODELS)
    texts = write(directory / "texts.txt", "".join(f"{WORDS[i % 8]} {WORDS[i % 5]}\n" for i in range(200)))
    adapt = ["adapt", "--model", MODEL, "--text", texts, "--eval-fraction", 0.2, "--max-steps", 1, "--output"]
    result = succeed(*adapt, directory / "run")
    assert "warning: eval: 40 of 40 texts (100.0 %) are trained on, too" in result.err and "--distinct" in result.err, result
    assert "trained on, too" not in succeed(*adapt, directory / "distinct", "--distinct").err


main(globals())
