"""Honest splits and usable answers: held-out rows, slices, calibration."""
import csv
import json
import math
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, evaluate, predict, rows_of, write
from harness import DEVICE, fail, main, metrics_in, metrics_of, need, succeed

LABELS = ("fuel", "food", "rent", "travel")


def rows(count, seed=1):
    """(text, label, merchant, division): the label follows from the merchant, except in one row of eight."""
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        merchant = min(draw.randrange(40), draw.randrange(40))
        label = LABELS[merchant % 4] if draw.random() > 0.125 else draw.choice(LABELS)
        words = draw.sample(["card", "city", "north", "store", "payment", "fee"], 2)
        out.append((f"{'abcdefghij'[merchant % 10] * 2} {'klmn'[merchant % 4]} {' '.join(words)}", label,
                    f"merchant {merchant}", "east" if merchant < 8 else "west"))
    return out


def table(path, rows_, columns=("text", "label", "merchant", "division")):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows_])
    return path


def train(out, data, *more, fails=None, words=()):
    arguments = ["train", "--model", MODEL, "--reinit-head", "--train", data, "--output", out, "--quiet",
                 "--lr", "3e-3", "--text-column", "text", *DEVICE, *more]
    return fail(fails, *arguments, words=words) if fails else succeed(*arguments)


def saved(run):
    return rows_of((run / "predictions.csv").read_text(encoding="utf-8"))[1:]


def test_stratified_split(directory):
    need(*MODELS)
    data = rows(400) + [("rare once", "single", "merchant 90", "east"), ("rare twice", "double", "merchant 91", "east"),
                        ("rare again", "double", "merchant 92", "east")]
    file = table(directory / "data.csv", data)
    few = ["--max-steps", 1, "--eval-fraction", 0.1]
    train(directory / "a", file, *few)
    counts = {}
    for row in saved(directory / "a"):
        counts[row[1]] = counts.get(row[1], 0) + 1
    assert sum(counts.values()) == math.ceil(0.1 * 403)
    assert counts["double"] == 1 and "single" not in counts, counts
    for label in LABELS:
        share = 0.1 * sum(row[1] == label for row in data)
        assert abs(counts[label] - share) <= 1, (label, counts, share)
    train(directory / "b", file, *few, "--seed", 7)
    assert [row[0] for row in saved(directory / "a")] != [row[0] for row in saved(directory / "b")]
    # As before there were strata; --resume must not mix the two.
    log = succeed("train", "--model", MODEL, "--reinit-head", "--train", file, "--output", directory / "c",
                  "--text-column", "text", *few, "--eval-split", "random").err
    assert "held out 41 of 403 rows, by chance" in log, log
    assert len(saved(directory / "c")) == 41
    train(directory / "c", file, *few, "--resume", fails=2, words=["eval-split (random there, stratified now)"])


def test_groups_stay_together(directory):
    need(*MODELS)
    data = rows(500)
    file = table(directory / "data.csv", data)
    train(directory / "a", file, "--max-steps", 1, "--eval-fraction", 0.2, "--eval-group", "merchant")
    held = saved(directory / "a")
    merchants = {row[2] for row in held}
    assert sum(row[2] in merchants for row in data) == len(held), "a merchant is on both sides"
    assert 80 <= len(held) <= 120, len(held)
    assert 'eval-group = "merchant"' in (directory / "a" / "config.toml").read_text()
    log = (directory / "a" / "log.txt").read_text()
    assert f"whole groups: {len(merchants)} of {len({row[2] for row in data})} values of column 'merchant'" in log, log
    # The run again from its config, and invalid combinations.
    succeed("train", "--config", directory / "a" / "config.toml", "--output", directory / "b", "--quiet")
    assert saved(directory / "b") == held
    train(directory / "x", file, "--eval-group", "merchant", fails=2, words=["--eval-group", "--eval-fraction"])
    train(directory / "x", file, "--eval-fraction", 0.2, "--eval-group", "label", fails=2, words=["is the label column"])
    train(directory / "x", file, "--eval-fraction", 0.2, "--eval-group", "shop", fails=3, words=["no column 'shop'"])
    one = table(directory / "one.csv", [(*row[:2], "m", row[3]) for row in data])
    train(directory / "x", one, "--eval-fraction", 0.2, "--eval-group", "merchant", fails=3,
          words=["one value alone, 'm'", "two groups"])
    assert not (directory / "x").exists()
    # A label that occurs in only one group, and a group with half of the rows.
    odd = table(directory / "odd.csv", [(f"text {i}", f"of{i // 60}" if i < 120 else "c", f"m{i // 60}" if i < 120 else "big", "")
                                        for i in range(240)])
    train(directory / "odd", odd, "--max-steps", 1, "--eval-fraction", 0.25, "--eval-group", "merchant")
    log = (directory / "odd" / "log.txt").read_text()
    assert "warning: 60 held-out rows have a label that no training row has, 'of" in log, log
    checked = succeed("check", "--train", odd, "--eval-fraction", 0.25, "--eval-group", "merchant", "--no-ngram-baseline").out
    assert "60 held-out rows have a label that no training row has" in checked, checked
    large = table(directory / "large.csv", [(f"text {i}", "a" if i % 2 else "b", f"m{i // 100}", "") for i in range(200)])
    train(directory / "large", large, "--max-steps", 1, "--eval-fraction", 0.1, "--eval-group", "merchant")
    log = (directory / "large" / "log.txt").read_text()
    assert "100 rows are held out where 20 were asked for" in log, log


def trained_model(directory):
    file, dev = table(directory / "train.csv", rows(500)), table(directory / "dev.csv", rows(400, 2))
    train(directory / "run", file, "--eval", dev, "--epochs", 6)
    return directory / "run", file, dev


def softmax_scores(path, labels, truth_column=1):
    """ECE with ten bins and the Brier score from predict's --all-probabilities."""
    found = rows_of(path)
    first = found[0].index("probability:" + labels[0])
    bins, brier, right_ones = [[0, 0, 0.0] for _ in range(10)], 0, 0
    for row in found[1:]:
        p = [float(value) for value in row[first:first + len(labels)]]
        truth = labels.index(row[truth_column])
        best = max(range(len(p)), key=lambda c: p[c])
        cell = bins[min(9, int(p[best] * 10))]
        cell[0] += 1
        cell[1] += best == truth
        cell[2] += p[best]
        brier += sum((value - (c == truth)) ** 2 for c, value in enumerate(p))
        right_ones += best == truth
    n = len(found) - 1
    return sum(abs(right - p) for _, right, p in bins) / n, brier / n, right_ones / n


def test_calibration(directory):
    need(*MODELS)
    run, _, dev = trained_model(directory)
    metrics = metrics_of(run)
    config = json.loads((run / "model" / "config.json").read_text())
    labels = [config["id2label"][str(i)] for i in range(4)]
    temperature = metrics["eval_temperature"]
    assert 0.1 <= temperature <= 10 and metrics["eval_accuracy"] > 0.5, metrics
    stored = config["finetune"].get("calibration", {"temperature": 1})
    assert stored["temperature"] == temperature != 1, "the test's rows should need a calibration"
    # Scores of the model's own probabilities, computed here, equal evaluate's.
    own = predict(dev, "--all-probabilities", "--no-calibration", model=run).out
    ece, brier, accuracy = softmax_scores(own, labels)
    for name, value in (("eval_ece", ece), ("eval_brier", brier), ("eval_accuracy", accuracy)):
        assert abs(metrics[name] - value) < 1e-5, (name, metrics[name], value)
    again = metrics_in(evaluate(dev, "--json", "--no-calibration", model=run).out)
    assert abs(again["eval_ece"] - metrics["eval_ece"]) < 1e-5 and "eval_ece_calibrated" not in again
    # With the temperature log p changes accordingly, and the best label stays.
    found = rows_of(predict(dev, "--all-probabilities", model=run).out)
    first = found[0].index("probability:" + labels[0])
    for raw, row in zip(rows_of(own)[1:50], found[1:50]):
        heated = [math.log(float(value)) / temperature for value in raw[first:first + 4]]
        total = sum(math.exp(value) for value in heated)
        for value, got in zip(heated, row[first:first + 4]):
            assert abs(math.exp(value) / total - float(got)) < 1e-4, (raw, row)
        assert raw[4] == row[4]
    ece, brier, _ = softmax_scores(predict(dev, "--all-probabilities", model=run).out, labels)
    given = metrics_in(evaluate(dev, "--json", model=run).out)
    assert abs(given["eval_ece_calibrated"] - ece) < 1e-5 and abs(given["eval_brier_calibrated"] - brier) < 1e-5
    assert abs(given["eval_ece"] - metrics["eval_ece"]) < 1e-5
    # predictions.csv of the run has the model's own probabilities, as its metrics do.
    assert abs(float(saved(run)[0][5]) - float(rows_of(own)[1][5])) < 1e-5
    succeed("train", "--config", run / "config.toml", "--no-calibration", "--output", directory / "plain", "--quiet")
    assert "eval_temperature" not in metrics_of(directory / "plain")
    assert "calibration" not in json.loads((directory / "plain" / "model" / "config.json").read_text())["finetune"]
    # A calibration that no fit produced is refused.
    config["finetune"]["calibration"] = {"temperature": 0}
    (run / "model" / "config.json").write_text(json.dumps(config))
    fail(4, "predict", "--model", run, "--input", dev, "--output", "-", words=["finetune.calibration.temperature is 0"])


def test_unsure(directory):
    need(*MODELS)
    run, _, dev = trained_model(directory)
    plain = rows_of(predict(dev, model=run).out)
    least = sorted(float(row[5]) for row in plain[1:])[150]
    found = rows_of(predict(dev, "--min-probability", least, model=run).out)
    assert found[0] == [*plain[0], "best_label"]
    covered = right = 0
    for before, row in zip(plain[1:], found[1:]):
        sure = float(row[5]) >= least
        assert row[4:] == [before[4] if sure else "unsure", before[5], before[4]], (before, row)
        covered += sure
        right += sure and row[1] == row[6]
    assert 0 < covered < 400
    assert f"--min-probability {least}: " in (said := evaluate(dev, "--min-probability", least, model=run).out), said
    assert f" of {covered} rows right, " in said, said
    assert "--min-probability 1: no row has it" in evaluate(dev, "--min-probability", 1, model=run).out
    metrics = metrics_in(evaluate(dev, "--json", "--min-probability", least, model=run).out)
    assert metrics["eval_coverage"] == covered / 400
    assert abs(metrics["eval_accuracy_covered"] - right / covered) < 1e-12
    lines = predict(dev, "--min-probability", least, "--json-lines", model=run).out.splitlines()
    assert [json.loads(line)["predicted_label"] for line in lines] == [row[4] for row in found[1:]]
    assert json.loads(lines[0])["best_label"] == found[1][6]
    # A threshold for a required accuracy, which --min-probability then reaches.
    result = evaluate(dev, "--target-accuracy", 0.9, model=run)
    metrics = metrics_in(evaluate(dev, "--target-accuracy", 0.9, "--json", model=run).out)
    assert metrics["eval_accuracy_covered"] >= 0.9 > metrics["eval_accuracy"], metrics
    assert metrics["eval_accuracy_covered_lower"] < metrics["eval_accuracy_covered"]
    assert f"--min-probability {metrics['eval_threshold']}: " in result.out and "95 % confidence" in result.out
    same = metrics_in(evaluate(dev, "--json", "--min-probability", metrics["eval_threshold"], model=run).out)
    assert same["eval_coverage"] == metrics["eval_coverage"]
    assert same["eval_accuracy_covered"] == metrics["eval_accuracy_covered"]
    gate = evaluate(dev, "--target-accuracy", 0.9, "--assert", "eval_coverage>=0.1", model=run)
    assert "PASS" in gate.out
    for command in (["evaluate", "--data", dev], ["predict", "--input", dev, "--output", "-"]):
        fail(2, *command, "--model", run, "--min-probability", "1.5", words=["--min-probability", "between 0 and 1"])
    fail(2, "evaluate", "--data", dev, "--model", run, "--min-probability", 0.5, "--target-accuracy", 0.5,
         words=["exclude each other"])


def test_slices(directory):
    need(*MODELS)
    run, file, dev = trained_model(directory)
    result = evaluate(dev, "--slice", "division", "--slice", "merchant", "--slice", "seen:merchant", "--seen-in", file,
                      "--output", directory / "out", model=run)
    predicted = rows_of((directory / "out" / "predictions.csv").read_text())[1:]
    seen = {row[2] for row in rows(500)}
    slices = rows_of((directory / "out" / "slices.csv").read_text())
    assert slices[0] == ["slice", "value", "rows", "accuracy", "f1_macro"]
    counted = {"division": 0, "merchant": 0, "seen:merchant": 0}
    for name, value, count, accuracy, f1 in slices[1:]:
        own = [row for row in predicted
               if (row[3] if name == "division" else row[2] if name == "merchant" else
                   "seen" if row[2] in seen else "unseen") == value]
        assert len(own) == int(count), (name, value)
        assert abs(sum(row[1] == row[4] for row in own) / len(own) - float(accuracy)) < 1e-12
        scores = []
        for label in {row[1] for row in own} | {row[4] for row in own}:
            correct = sum(row[1] == row[4] == label for row in own)
            scores.append(2 * correct / (sum(row[1] == label for row in own) + sum(row[4] == label for row in own)))
        assert abs(sum(scores) / len(scores) - float(f1)) < 1e-12, (name, value)
        counted[name] += len(own)
    assert set(counted.values()) == {400}, counted
    assert [int(row[2]) for row in slices[1:3]] == sorted((int(row[2]) for row in slices[1:3]), reverse=True)
    assert "division" in result.out and "east" in result.out and "values with fewer rows" in result.out, result.out
    # With --json none of this is on standard output.
    metrics_in(evaluate(dev, "--slice", "division", "--json", model=run).out)
    fail(3, "evaluate", "--model", run, "--data", dev, "--slice", "shop", words=["no column 'shop'", "--slice"])
    fail(2, "evaluate", "--model", run, "--data", dev, "--slice", "seen:merchant", words=["--seen-in"])
    fail(2, "evaluate", "--model", run, "--data", dev, "--seen-in", file, words=["--slice seen:COLUMN"])


def test_several_labels(directory):
    need(*MODELS)
    draw = random.Random(3)
    data = []
    for text, label, merchant, division in rows(1100, 4):
        # Two of five texts with equal beginnings: less than half, but worth a hint.
        both = f"{label};tip" if text[0] in "aeh" and draw.random() < 0.4 else label
        data.append((text, both if draw.random() < 0.9 else "", merchant, division))
    file, dev = table(directory / "train.csv", data[:600]), table(directory / "dev.csv", data[600:])
    more = ["--eval", dev, "--multi-label", ";", "--epochs", 4]
    told = train(directory / "run", file, *more, "--tune-thresholds")
    metrics = metrics_of(directory / "run")
    # The headline of screen, card and report is of the labels that predict gives.
    headline = f"icro F1 {metrics['eval_f1_micro_tuned']:.3f} on 500 held-out rows, by tuned thresholds as in predict"
    card = (directory / "run/model/README.md").read_text()
    page = succeed("report", directory / "run", "--output", "-").out
    assert told.out.startswith(f"m{headline}\n") and f"\nmacro F1 {metrics['eval_f1_macro_tuned']:.3f}, " in told.out, told
    assert f"- m{headline}\n" in card and f"<h1>M{headline}</h1>" in page, card
    assert f"Macro F1 with tuned thresholds\"\n      value: {metrics['eval_f1_macro_tuned']}" in card, card
    assert "predict uses tuned thresholds" in page
    config = json.loads((directory / "run" / "model" / "config.json").read_text())
    labels = [config["id2label"][str(i)] for i in range(5)]
    thresholds = config["finetune"]["calibration"]["thresholds"]
    tip = labels.index("tip")
    assert len(thresholds) == 5 and 0.1 < thresholds[tip] < 0.4, thresholds
    log = (directory / "run" / "log.txt").read_text()
    tuned = sum(threshold != 0.5 for threshold in thresholds)
    assert f"; thresholds of {tuned} of 5 labels, macro F1 {metrics['eval_f1_macro']:.4f} -> " in log, log
    assert metrics["eval_f1_macro_tuned"] > metrics["eval_f1_macro"] + 0.05, metrics
    assert {"eval_ece", "eval_brier", "eval_f1_macro_tuned", "eval_f1_micro_tuned"} <= set(metrics)
    found = rows_of(predict(dev, "--all-probabilities", model=directory / "run").out)
    for row in found[1:]:
        expected = [label for label, p, least in zip(labels, row[6:], thresholds) if float(p) >= least]
        assert row[4] == ";".join(expected), row
    tuned = metrics_in(evaluate(dev, "--json", model=directory / "run").out)
    own = metrics_in(evaluate(dev, "--json", "--no-calibration", model=directory / "run").out)
    assert abs(own["eval_f1_macro"] - metrics["eval_f1_macro"]) < 1e-9
    assert tuned["eval_f1_macro"] > own["eval_f1_macro"]
    found = rows_of(predict(dev, "--all-probabilities", "--no-calibration", model=directory / "run").out)[1:]
    brier = sum((float(p) - (label in row[1].split(";"))) ** 2 for row in found for label, p in zip(labels, row[6:]))
    brier /= 5 * len(found)
    assert abs(brier - metrics["eval_brier"]) < 1e-5
    fail(2, "predict", "--model", directory / "run", "--input", dev, "--output", "-", "--min-probability", 0.5,
         words=["--min-probability", "one label a row"])
    fail(2, "predict", "--model", directory / "run", "--input", dev, "--output", "-", "--explain",
         words=["--explain needs a model that gives one label a row", "this model gives several labels a row"])
    fail(2, "evaluate", "--model", directory / "run", "--data", dev, "--target-accuracy", 0.5,
         words=["one label a row"])
    train(directory / "x", file, "--eval", dev, "--tune-thresholds", fails=2, words=["--multi-label"])


def test_regression_in_units_of_its_own(directory):
    need(*MODELS)
    draw = random.Random(5)
    level = {label: 1000 + 300 * i for i, label in enumerate(LABELS)}
    data = [(text, round(level[label] + draw.gauss(0, 20), 2)) for text, label, _, _ in rows(400, 6)]
    file = table(directory / "train.csv", data[:300], ("text", "label"))
    dev = table(directory / "dev.csv", data[300:], ("text", "label"))
    more = ["--eval", dev, "--regression", "--epochs", 3]
    train(directory / "raw", file, *more, "--no-standardize")
    train(directory / "run", file, *more)
    metrics = metrics_of(directory / "run")
    variance = sum((n - sum(v for _, v in data[300:]) / 100) ** 2 for _, n in data[300:]) / 100
    assert metrics["eval_mse"] < variance < metrics_of(directory / "raw")["eval_mse"], (metrics, variance)
    assert metrics["eval_loss"] == metrics["eval_mse"] and metrics["train_loss"] < 10
    # The exported head gives numbers in the original unit, so evaluate needs no scale.
    again = metrics_in(evaluate(dev, "--json", model=directory / "run").out)
    assert abs(again["eval_mse"] / metrics["eval_mse"] - 1) < 1e-4
    for before, row in zip(saved(directory / "run"), rows_of(predict(dev, model=directory / "run").out)[1:]):
        assert abs(float(before[2]) - float(row[2])) < 0.05, (before, row)
    fail(2, "predict", "--model", directory / "run", "--input", dev, "--output", "-", "--explain",
         words=["--explain needs a model that gives one label a row", "this model gives numbers"])
    # A run that starts from such a model continues where it ended, whatever its own rows' scale.
    other = table(directory / "other.csv", [row for row in data[:300] if row[1] > 1100], ("text", "label"))
    succeed("train", "--model", directory / "run", "--train", other, "--eval", dev, "--regression", "--text-column",
            "text", "--lr", 0, "--max-steps", 1, "--output", directory / "next", "--quiet", *DEVICE)
    assert abs(metrics_of(directory / "next")["eval_mse"] / metrics["eval_mse"] - 1) < 1e-3
    train(directory / "run", file, *more, "--no-standardize", "--resume", fails=2, words=["no-standardize"])


def test_cut_texts_are_told(directory):
    need(*MODELS)
    draw = random.Random(7)
    short = [(" ".join(draw.choice("abcdefgh") for _ in range(5)), LABELS[i % 4]) for i in range(36)]
    long = [(" ".join(draw.choice("abcdefgh") for _ in range(14)), LABELS[i % 4]) for i in range(12)]
    file = table(directory / "train.csv", short + long, ("text", "label"))
    few = table(directory / "few.csv", short + long[:4], ("text", "label"))  # a tenth, no more
    train(directory / "run", file, "--eval", few, "--max-length", 8, "--max-steps", 1)
    log = (directory / "run" / "log.txt").read_text()
    # 36 rows of 7 tokens, 12 of 8, and 12 times 8 that are cut off
    expected = "25.0 % of the texts are cut at 8 tokens, which loses 21.6 % of all tokens"
    assert f"warning: train: {expected}" in log and log.count("of the texts are cut") == 1, log
    assert f"warning: eval: {expected}" in evaluate(file, model=directory / "run").err
    assert f"warning: input: {expected}" in predict(file, model=directory / "run").err
    assert "4 of 40 texts were cut at 8 tokens" in predict(few, model=directory / "run").err


main(globals())
