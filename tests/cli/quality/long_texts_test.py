"""--long-text windows with texts whose label depends on their end, from training to prediction."""
import csv
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, evaluate, predict, rows_of
from harness import DEVICE, facts_of, fail, main, metrics_in, metrics_of, need, succeed

FILLER = "bank card city north south payment fee store mail order".split()
LABELS = {"fuel": "gas", "food": "mart", "rent": "home"}
WINDOWS = ["--long-text", "windows", "--window-stride", 2]


def texts(count, seed, least=20, most=40):
    """(text, label): the last word determines the label; the words before it do not."""
    draw = random.Random(seed)
    out = []
    for i in range(count):
        label = list(LABELS)[i % 3]
        out.append((" ".join(draw.choices(FILLER, k=draw.randint(least, most)) + [LABELS[label]]), label))
    return out


def table(path, rows, columns=("text", "label")):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def train(out, data, *more, fails=None, words=()):
    arguments = ["train", "--model", MODEL, "--reinit-head", "--train", data, "--output", out, "--quiet", "--lr",
                 "3e-3", "--max-length", 16, "--no-ngram-baseline", "--threads", 1, *DEVICE, *more]
    return fail(fails, *arguments, words=words) if fails else succeed(*arguments)


def log_of(run):
    return (run / "log.txt").read_text(encoding="utf-8")


def test_what_the_end_tells_is_learnt_in_windows(directory):
    need(*MODELS)
    data, dev = table(directory / "train.csv", texts(150, 1)), table(directory / "dev.csv", texts(60, 2))
    train(directory / "cut", data, "--eval", dev, "--epochs", 8)
    assert metrics_of(directory / "cut")["eval_accuracy"] < 0.6, metrics_of(directory / "cut")
    assert "100.0 % of the texts are cut at 16 tokens" in log_of(directory / "cut"), log_of(directory / "cut")
    assert "--long-text windows" in log_of(directory / "cut")
    run = directory / "windows"
    train(run, data, "--eval", dev, "--epochs", 8, *WINDOWS)
    metrics = metrics_of(run)
    assert metrics["eval_accuracy"] > 0.95, metrics
    assert "60 texts have several windows" in log_of(run) and "warning" not in log_of(run), log_of(run)
    stored = json.loads((run / "model" / "config.json").read_text())["finetune"]
    assert (stored["long_text"], stored["window_stride"], stored["max_windows"]) == ("windows", 2, 16), stored

    # evaluate and predict use windows as training did, and report per text.
    out = directory / "evaluation"
    again = metrics_in(evaluate(dev, "--json", "--output", out, model=run).out)
    for name in ("eval_accuracy", "eval_f1_macro", "eval_loss"):
        assert abs(again[name] - metrics[name]) < 1e-6, (name, again, metrics)
    kept = (run / "predictions.csv").read_text()
    assert len(rows_of(kept)) == 61
    evaluated = (out / "predictions.csv").read_text()
    assert [row[:3] for row in rows_of(evaluated)] == [row[:3] for row in rows_of(kept)]
    predicted = predict(dev, model=run)
    assert "60 texts have several windows" in predicted.err, predicted.err
    assert predicted.out == evaluated
    assert predict(dev, "--stream", model=run).out == predicted.out
    assert predict(dev, "--batch-size", 3, "--precision", "fp32", model=run).out.count("\n") == 61
    # Unless their own options differ.
    short = metrics_in(evaluate(dev, "--long-text", "cut", "--json", model=run).out)
    assert short["eval_accuracy"] < 0.6, short
    assert predict(dev, "--max-windows", 1, model=run).out == predict(dev, "--long-text", "cut", model=run).out


def test_one_window_is_a_cut_text(directory):
    """Also with short texts only: windows change nothing there."""
    need(*MODELS)
    data = table(directory / "train.csv", texts(30, 3, 4, 40))
    short = table(directory / "short.csv", texts(30, 4, 4, 9))
    few = ["--max-steps", 3, "--batch-size", 8, "--eval-fraction", 0.2, "--dropout", 0.1]
    for name, file, more in (("data", data, [*WINDOWS, "--max-windows", 1]), ("short", short, WINDOWS)):
        train(directory / f"{name}-cut", file, *few)
        train(directory / f"{name}-windows", file, *few, *more)
        a, b = (facts_of(directory / f"{name}-{kind}")["weights_sha256"] for kind in ("cut", "windows"))
        assert a == b, name
        a, b = ((directory / f"{name}-{kind}" / "predictions.csv").read_text() for kind in ("cut", "windows"))
        assert a == b, name


def test_a_bound_on_windows(directory):
    need(*MODELS)
    data = table(directory / "train.csv", texts(20, 5))
    train(directory / "run", data, "--max-steps", 1, "--eval", data, *WINDOWS, "--max-windows", 2)
    assert "warning: train: 80.0 % of the texts are cut at 2 windows of 16 tokens" in log_of(directory / "run"), (
        log_of(directory / "run"))
    assert "a larger --max-windows keeps more" in log_of(directory / "run")
    assert "cut at 2 windows of 16 tokens" in predict(data, model=directory / "run").err


def test_pairs_several_labels_and_numbers(directory):
    need(*MODELS)
    rows = texts(24, 6)
    pairs = table(directory / "pairs.csv", [(f"note {i % 2}", *row) for i, row in enumerate(rows)], ("a", "b", "label"))
    several = table(directory / "several.csv", [(text, f"{label};x") for text, label in rows])
    numbers = table(directory / "numbers.csv", [(text, len(text) / 4) for text, _ in rows])
    few = ["--max-steps", 2, "--batch-size", 8, *WINDOWS]
    for name, file, more in (("pairs", pairs, ["--text-column", "a", "--text-pair-column", "b"]),
                             ("several", several, ["--multi-label", ";", "--tune-thresholds"]),
                             ("numbers", numbers, ["--regression"])):
        run = directory / name
        train(run, file, "--eval", file, *few, *more)
        assert "24 texts have several windows" in log_of(run), log_of(run)
        again = metrics_in(evaluate(file, "--json", model=run).out)
        for metric in set(again) & set(metrics_of(run)):
            if metric.startswith("eval_") and "second" not in metric and "runtime" not in metric:
                ours = metrics_of(run)[metric]
                assert abs(again[metric] - ours) < 1e-4 * (1 + abs(ours)) or name == "several", (name, metric)
        assert len(rows_of(predict(file, model=run).out)) == 25


def test_plan_resume_and_bad_values(directory):
    need(*MODELS)
    data = table(directory / "train.csv", texts(20, 7))
    arguments = ["plan", "--model", MODEL, "--reinit-head", "--train", data, "--max-length", 16, "--no-time", "--json",
                 "--threads", 1]
    plan = json.loads(succeed(*arguments, *WINDOWS).out)
    cut = json.loads(succeed(*arguments).out)
    assert cut["samples"] == 20 and plan["samples"] > 50, (cut, plan)
    run = directory / "run"
    train(run, data, "--max-steps", 2, "--save-every", 1, "--keep-checkpoints", 2, *WINDOWS)
    train(run, data, "--max-steps", 2, "--keep-checkpoints", 2, "--resume", fails=2, words=["long-text"])
    for more in (["--long-text", "parts"], ["--window-stride", -1], ["--max-windows", 0]):
        train(directory / "bad", data, *more, fails=2, words=[more[0]])
    for more in (["--window-stride", 4], ["--max-windows", 3]):
        train(directory / "bad", data, *more, fails=2, words=[more[0], "is for --long-text windows"])


main(globals())
