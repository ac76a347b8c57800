"""compare: means and spread over seeds, differing options, and significance."""
import csv
import io
import json
import math
import os
import shutil
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, tagged_rows, write
from harness import fail, main, metrics_of, need, succeed

DATA = "golden/trajectory-classification-train.csv"


def train(out, *more, model=MODEL):
    succeed("train", "--model", model, "--quiet", "--output", out, *more)
    return out


def rows_runs(directory):
    for lr in ("1e-3", "3e-3"):
        for seed in (1, 2, 3):
            train(directory / f"lr-{lr}-seed-{seed}", "--train", TRAIN, "--eval", EVAL, "--label-column", "category",
                  "--max-steps", 45, "--lr", lr, "--seed", seed)
    return directory


def compared(*arguments):
    result = succeed("compare", *arguments, "--json")
    assert result.out.count("\n") == 1, result
    return json.loads(result.out)


def accuracy_rows(run):
    with open(run / "predictions.csv", encoding="utf-8", newline="") as file:
        return [float(row["category"] == row["label"]) for row in csv.DictReader(file)]


def twin(run, copy, *changes):
    shutil.copytree(run, copy)
    config = (copy / "config.toml").read_text()
    for old, new in changes:
        assert old in config, (old, config)
        config = config.replace(old, new)
    (copy / "config.toml").write_text(config)
    return copy


def changed_metrics(run, **values):
    metrics = {**metrics_of(run), **values}
    (run / "metrics.json").write_text(json.dumps({name: value for name, value in metrics.items() if value is not None}))
    return run


def test_means_and_noise(directory):
    need(DATA)
    runs = rows_runs(directory / "runs")
    line = compared(runs, "--by", "lr", "--metric", "eval_f1_macro,accuracy")
    assert line["options"] == ["lr"] and line["metric"] == "eval_f1_macro" and line["larger_is_better"], line
    assert [group["options"]["lr"] for group in line["groups"]] == ["0.001", "0.003"], "in order of the value"
    for group in line["groups"]:
        assert group["seeds"] == [1, 2, 3] and len(group["runs"]) == 3, group
        for metric in ("eval_f1_macro", "eval_accuracy"):
            values = [metrics_of(run)[metric] for run in group["runs"]]
            assert math.isclose(group["metrics"][metric]["mean"], statistics.mean(values)), (metric, group)
            assert math.isclose(group["metrics"][metric]["sd"], statistics.stdev(values), abs_tol=1e-15), (metric, group)
    assert line["best"] == 1 and "difference" not in line["groups"][1], line
    difference = line["groups"][0]["difference"]
    assert difference["more_than_noise"] and difference["noise_of"] == "rows and seeds", difference
    low, high = difference["interval"]
    assert low < difference["mean"] < high < 0, difference
    # Without --by, every option that differs except the seed makes a group: the same groups, best first.
    assert compared(runs)["groups"][0]["options"] == {"lr": "0.003"}
    table = list(csv.DictReader(io.StringIO(succeed("compare", runs, "--csv").out)))
    assert [row["lr"] for row in table] == ["0.003", "0.001"] and table[1]["more_than_noise"] == "true", table
    assert float(table[0]["eval_accuracy"]) == compared(runs)["groups"][0]["metrics"]["eval_accuracy"]["mean"]
    text = succeed("compare", runs, "--metric", "eval_accuracy").out
    assert "±" in text and "\nbest eval_accuracy: lr 0.003" in text and "more than noise of rows and seeds" in text, text
    lines = succeed("compare", runs, "--markdown").out.splitlines()
    assert lines[0].count("|") == lines[2].count("|") and set(lines[1]) == {"|", "-"}, lines
    # The table for people fits a terminal; the metric that decides comes first.
    text = succeed("compare", runs).out
    header = text.splitlines()[0].split()
    assert header[:3] == ["lr", "runs", "eval_accuracy"] and set(header[3:5]) == {"eval_loss", "eval_f1_macro"}, header
    assert "eval_brier" in table[0] and "eval_brier" not in header, header
    metrics = [name for name in table[0] if name.startswith("eval_") and not name.endswith("_sd")]
    assert text.splitlines()[-1] == f"not shown: {len(metrics) - 3} other metrics, which finetune compare --csv has", text
    # A copy of a run is not another seed: it counts once and is reported.
    again = twin(runs / "lr-1e-3-seed-1", directory / "again", ("", ""))
    line = compared(runs / "lr-1e-3-seed-1", again, runs / "lr-3e-3-seed-1", "--metric", "eval_accuracy")
    assert line["groups"][1]["difference"]["noise_of"] == "rows" and line["groups"][1]["seeds"] == [1], line
    assert line["repeated"] == [{"run": str(again), "of": str(runs / "lr-1e-3-seed-1")}], line
    plain = compared(runs, "--metric", "eval_accuracy")
    more = compared(runs, again, "--metric", "eval_accuracy")
    assert more.pop("repeated") and not plain.pop("repeated") and more == plain, (more, plain)
    assert "again repeats " in succeed("compare", runs, again).out
    # With one seed each there are only the rows, whose variance has a formula.
    pair = [runs / "lr-1e-3-seed-1", runs / "lr-3e-3-seed-1"]
    difference = compared(*pair, "--metric", "eval_accuracy")["groups"][1]["difference"]
    assert difference["noise_of"] == "rows", difference
    a, b = (accuracy_rows(run) for run in pair)
    expected = statistics.pvariance([y - x for x, y in zip(a, b)]) / len(a)
    low, high = difference["interval"]
    assert abs(((high - low) / 2 / 1.96) ** 2 / expected - 1) < 0.15, (difference, expected)
    # A run with the mix and one without never form one group, whatever was requested; nor does one that lost its mix.
    asked = [("recipe = \"hf\"", "recipe = \"auto\"")]
    mixed = changed_metrics(twin(pair[0], directory / "mixed", *asked), eval_mix_model=1.0)
    unmixed = twin(pair[0], directory / "unmixed", *asked)
    lost = changed_metrics(twin(pair[0], directory / "lost", *asked), baseline_ngram_runtime=None)
    for more in ([], ["--by", "lr"]):
        groups = compared(mixed, unmixed, *more)["groups"]
        assert {group["options"]["ngram-mix"] for group in groups} == {"no", "yes"}, groups
        groups = compared(unmixed, lost, *more)["groups"]
        assert {group["options"]["incomplete"] for group in groups} == {"", "ngrams"}, groups
    assert "incomplete" in succeed("compare", unmixed, lost).out.splitlines()[0]
    facts = json.loads((unmixed / "run.json").read_text())
    (unmixed / "run.json").write_text(json.dumps({**facts, "incomplete": ["calibration: memory is too small"]}))
    groups = compared(unmixed, lost)["groups"]
    assert {group["options"]["incomplete"] for group in groups} == {"calibration", "ngrams"}, groups
    # Holding out without strata, as in earlier versions, is a different option.
    held_out = ("eval-fraction = 0.0", "eval-fraction = 0.5")
    old = twin(pair[0], directory / "old", held_out, ('eval-split = "stratified"\n', ""), ('ngram-mix = "auto"\n', ""))
    assert compared(twin(pair[0], directory / "new", held_out), old)["options"] == ["eval-split"]
    # Data used for fitting measures nothing.
    assert "eval_temperature" in metrics_of(pair[0]) and "eval_temperature" not in compared(pair[0])["groups"][0]["metrics"]
    # Averaging over learning rates adds noise beyond the seeds'.
    line = compared(runs, "--by", "seed", "--metric", "eval_accuracy")
    noise = {group["difference"]["noise_of"] for group in line["groups"] if "difference" in group}
    assert noise == {"rows and runs"}, line
    assert not any(group["difference"]["more_than_noise"] for group in line["groups"] if "difference" in group)
    assert "differ in lr beside the seed" in succeed("compare", runs, "--by", "seed").out


def test_what_is_no_run(directory):
    need(DATA)
    out = train(directory / "a", "--train", TRAIN, "--label-column", "category", "--max-steps", 2)
    fail(4, "compare", directory / "absent", words=["absent", "no such directory"])
    (directory / "empty").mkdir()
    fail(4, "compare", out, directory / "empty", words=["empty", "holds none"])
    fail(2, "compare", out, out, words=["twice"])
    fail(2, "compare", out, "--by", "lrr", words=["--by", "'lrr'", "did you mean lr?"])
    fail(2, "compare", out, "--metric", "eval_f1", words=["--metric", "'eval_f1'", "train_loss"])
    fail(2, "compare", out, "--metric", "train_los", words=["did you mean train_loss?"])
    fail(2, "compare", out, "--csv", "--json", words=["exclude"])
    fail(2, "compare", words=["required"])
    # One run is not a comparison, but not an error either.
    assert "train_loss" in succeed("compare", out).out
    # Unfinished runs are left out, with a message.
    unfinished = directory / "b"
    shutil.copytree(out, unfinished)
    (unfinished / "metrics.json").unlink()
    result = succeed("compare", out, unfinished)
    assert "left out" in result.err and str(unfinished) in result.err, result
    fail(4, "compare", unfinished, words=["no finished run"])
    os.mkfifo(out / "predictions.csv")
    fail(4, "compare", out, words=["predictions.csv", "is a pipe"])
    (out / "predictions.csv").unlink()
    assert "next:  finetune predict --model" in succeed("train", "--resume", "--output", out).out
    shutil.rmtree(out / "model")
    text = succeed("train", "--resume", "--output", out).out
    assert "model is gone; finetune train --overwrite makes it again\nnext:  finetune report" in text, text
    assert "predict" not in text and "evaluate" not in text, text
    fail(4, "evaluate", "--model", out, "--data", TRAIN, words=["has ended", "its model/ is gone"])
    metrics = (out / "metrics.json").read_bytes()
    (out / "metrics.json").write_text("[]")
    fail(4, "compare", out, words=["metrics.json"])
    (out / "metrics.json").write_bytes(metrics)
    (out / "run.json").unlink()
    fail(4, "compare", out, words=["run.json", "missing"])


def test_runs_at_any_depth(directory):
    need(DATA)
    runs = directory / "runs"
    short = ["--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--no-ngram-baseline", "--max-steps", 2]
    train(runs / "a", *short, "--lr", "1e-3")
    shutil.copytree(runs / "a", runs / "2026/11/b")
    grid = write(directory / "grid.toml", f"model = '{MODEL}'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\n"
                 "no-ngram-baseline = true\nmax-steps = 2\n[sweep]\nlr = [1e-3, 2e-3]\nseed = [1, 2]\n")
    succeed("sweep", grid, "--output", runs / "sweep")
    (runs / "best").symlink_to("a")
    result = succeed("compare", runs, "--json")
    line = json.loads(result.out)
    assert sum(len(group["runs"]) for group in line["groups"]) == 5, line
    assert line["repeated"] == [{"run": str(runs / "a"), "of": str(runs / "2026/11/b")}], line
    assert "best: is a link to a run" in result.err, result
    assert "6 runs" in succeed("report", runs, "--output", directory / "report.html").out
    (runs / "sweep/lr=0.001,seed=2/config.toml").write_text("")
    for command in ("compare", "report"):
        fail(4, command, runs, words=["lr=0.001,seed=2/config.toml", "damaged"])
    fail(4, "report", directory / "nothere", words=["nothere", "no such directory"])  # the page exists already
    fail(2, "compare", runs / "a", "--metric", "f1", words=["did you mean eval_f1_macro?"])
    fail(2, "compare", runs / "a", "--metric", "eval_acc", words=["did you mean eval_accuracy?"])
    fail(2, "train", "--model", MODEL, *short, "--output", directory / "none", "--assert", "f1>=0.5",
         words=["did you mean eval_f1_macro?"])
    # Huge empty files are refused or skipped at once.
    for name, size in (("metrics.jsonl", 20 << 30), ("config.toml", 20 << 30), ("run.json", 20 << 30), ("metrics.json", 20 << 30)):
        run = directory / f"sparse-{name}"
        shutil.copytree(runs / "a", run)
        with open(run / name, "r+b") as file:
            file.truncate(size)
        fail(4, "report", run, words=[name, "holds more than"])


def noise_of(directory, metric, *runs):
    line = compared(*runs, "--metric", metric)
    differences = [group["difference"] for group in line["groups"] if "difference" in group]
    assert len(differences) == len(runs) - 1, line
    return differences[0]


def test_other_tasks(directory):
    need(DATA, "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    data = tagged_rows(directory / "d.csv")
    rows = ["--train", data, "--eval", data, "--reinit-head", "--max-steps", 12, "--text-column", "text"]
    for name, metrics, more in (
            ("regression", ("eval_mse", "eval_mae", "eval_r2", "eval_pearson"), ["--regression", "--label-column", "number"]),
            ("labels", ("eval_accuracy", "eval_f1_macro", "eval_f1_micro"), ["--multi-label", ";", "--label-column",
                                                                             "tags"])):
        runs = [train(directory / f"{name}-{lr}", *rows, *more, "--lr", lr) for lr in ("1e-2", "1e-4")]
        for metric in metrics:
            assert noise_of(directory, metric, *runs)["noise_of"] == "rows", metric
        unknown = noise_of(directory, "eval_loss", *runs)
        assert "interval" not in unknown and "eval_loss" in unknown["unknown"], unknown
    classification = directory / "labels-1e-2"
    questions = ["--train", SQUAD, "--eval", SQUAD, "--max-eval-samples", 40, "--max-steps", 4, "--batch-size", 8]
    runs = [train(directory / f"qa-{lr}", *questions, "--lr", lr, model=QA_MODEL) for lr in ("1e-3", "1e-9")]
    fail(2, "compare", classification, runs[0], words=["multi-label classification", "of qa", "one task"])
    succeed("compare", classification, runs[0], "--metric", "train_loss")
    for metric in ("eval_f1", "eval_exact_match"):
        assert noise_of(directory, metric, *runs)["noise_of"] == "rows", metric
    # Identical predictions: no difference, no noise.
    twin = directory / "twin"
    shutil.copytree(runs[0], twin)
    config = (twin / "config.toml").read_text()
    (twin / "config.toml").write_text(config.replace("n-best = 20", "n-best = 10"))
    same = noise_of(directory, "eval_f1", runs[0], twin)
    assert same["mean"] == 0 and same["interval"] == [0, 0] and not same["more_than_noise"], same
    # Predictions of other data do not count.
    (twin / "predictions.json").write_text((runs[1] / "predictions.json").read_text())
    assert "metrics.json says" in noise_of(directory, "eval_f1", runs[0], twin)["unknown"]
    (twin / "predictions.json").unlink()
    assert "cannot be scored" in noise_of(directory, "eval_f1", runs[0], twin)["unknown"]


main(globals())
