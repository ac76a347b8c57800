"""Heads fitted to a frozen encoder: train --recipe quick, and as the start of --recipe auto."""
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, GOLDEN, PROJECT, facts_of, fail, main, metrics_of, steps_of, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def arguments(output, *more):
    return ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--recipe", "quick",
            "--output", output, *more]


def test_an_ordinary_run(directory):
    out, model = directory / "run", directory / "run/model"
    succeed(*arguments(out, "--eval", EVAL, "--ignore-unknown-labels", "--threads", 2))
    metrics = metrics_of(out)
    assert (metrics["train_steps"], metrics["train_epochs"], metrics["best_step"]) == (1, 1, 1), metrics
    assert [step["loss"] for step in steps_of(out)] == [metrics["train_loss"]]
    assert metrics["eval_accuracy"] > metrics["baseline_majority_accuracy"], metrics
    config = json.loads((model / "config.json").read_text())
    assert config["num_hidden_layers"] == 3 and "mean" in config["finetune_pooling"], config
    assert config["architectures"] == ["BertForSequenceClassification"], config
    card = (model / "README.md").read_text()
    assert "--recipe quick" in card and "linear head reads the mean of its tokens" in card, card
    assert "linear head on the frozen" in card and "fine-tuned on" not in card, card
    assert "2 layers and one that pools" in (out / "log.txt").read_text()
    evaluated = json.loads(succeed("evaluate", "--model", out, "--data", EVAL, "--label-column", "category", "--json",
                                   "--ignore-unknown-labels").out)
    alone = "baseline_unmixed_accuracy"  # the mix was fitted to the rows of evaluate, and to other rows in the run
    assert abs(evaluated[alone] - metrics[alone]) < 1e-12, (evaluated, metrics)
    assert abs(evaluated["eval_accuracy"] - metrics["eval_accuracy"]) < 0.01, (evaluated, metrics)
    # check tells these figures beforehand.
    checked = ["check", "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--model"]
    told = json.loads(succeed(*checked, MODEL, "--json", "--ignore-unknown-labels").out)
    assert told["baseline_frozen_f1_macro"] == metrics["baseline_unmixed_f1_macro"], (told, metrics)
    assert told["baseline_quick_f1_macro"] == metrics["eval_f1_macro"], (told, metrics)
    assert told["baseline_ngram_accuracy"] == metrics["baseline_ngram_accuracy"], (told, metrics)
    assert 0 < told["baseline_frozen_processor_seconds"] < 60, told
    table = succeed(*checked[:3], "--label-column", "category", "--model", MODEL).out
    assert "n-grams     features    features and n-grams\naccuracy " in table and " s of processor time" in table, table
    found = json.loads(succeed(*checked, GOLDEN / "family/modernbert/classification", "--json").out)["findings"]
    assert any(finding["kind"] == "no-frozen-baseline" and "ModernBert" in finding["text"] for finding in found), found
    predicted = succeed("predict", "--model", out, "--input", EVAL, "--output", "-").out
    assert len(list(csv.DictReader(predicted.splitlines()))) == metrics["eval_rows"]
    assert "nothing to resume" in succeed("train", "--config", out / "config.toml", "--output", out, "--resume").err
    # One thread, two processes and the run's own config.toml give the same weights.
    succeed(*arguments(directory / "one", "--threads", 1))
    lines = [["train", "--config", out / "config.toml", "--output", directory / "again"]]
    digests = {facts_of(out)["weights_sha256"], facts_of(directory / "one")["weights_sha256"]}
    succeed(*lines[0])
    digests.add(facts_of(directory / "again")["weights_sha256"])
    if shutil.which("mpirun"):
        subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BINARY,
                        *map(str, arguments(directory / "two", "--virtual-shards", 1))], check=True, capture_output=True)
        digests.add(facts_of(directory / "two")["weights_sha256"])
    assert len(digests) == 1, digests
    # Other rows with the same config.toml: the number of rows at once is theirs.
    succeed("train", "--config", out / "config.toml", "--train", EVAL, "--ignore-unknown-labels", "--eval", TRAIN,
            "--reinit-head", "--output", directory / "other")


def test_training_goes_on(directory):
    out = directory / "run"
    succeed(*arguments(out, "--eval", TRAIN, "--ngram-mix", "no"))
    # Fitted again: the layer that pools is not added again.
    again = succeed(*arguments(directory / "again", "--model", out)).err
    assert "2 layers and one that pools" in again, again
    for name in ("run", "again"):
        assert json.loads((directory / name / "model/config.json").read_text())["num_hidden_layers"] == 3
    # Trained further, it says nothing of pooling, and what was fitted is not lost.
    text = succeed("train", "--model", out, "--train", TRAIN, "--eval", TRAIN, "--label-column", "category",
                   "--recipe", "auto", "--ngram-mix", "no", "--max-steps", 20, "--output", directory / "more").err
    assert "its last layer, which pools, is kept and trained" in text, text
    config = json.loads((directory / "more/model/config.json").read_text())
    assert "finetune_pooling" not in config and config["num_hidden_layers"] == 3, config
    before, after = metrics_of(out)["eval_loss"], metrics_of(directory / "more")["eval_loss"]
    assert after < 2 * before, (before, after)
    fail(2, "adapt", "--model", out, "--text", TRAIN, "--text-column", "text", "--output", directory / "words",
         words=["--model", "pools", "pretrained model"])


def test_auto_begins_with_the_fit(directory):
    held = ["--eval", EVAL, "--ignore-unknown-labels", "--ngram-mix", "no"]
    auto = ["--recipe", "auto", "--max-steps", 4, "--reinit-head", *held]
    succeed(*arguments(directory / "fit", *auto, "--max-steps", 4, "--virtual-shards", 2))
    assert "linear head was fitted to first-token features" in (directory / "fit/log.txt").read_text()
    config = (directory / "fit/config.toml").read_text()
    assert 'head-init = "fit"' in config, config
    assert json.loads((directory / "fit/model/config.json").read_text())["num_hidden_layers"] == 2
    # A random head begins with a loss of all labels alike, the fitted one far below it.
    succeed(*arguments(directory / "random", *auto, "--head-init", "random"))
    first = [steps_of(directory / name)[0]["loss"] for name in ("fit", "random")]
    assert first[0] < 0.9 * first[1], first
    assert 'head-init = "random"' in (directory / "random/config.toml").read_text()
    # A trained head is kept, and a stopped run goes on without a second fit.
    kept = succeed(*arguments(directory / "kept", *held, "--recipe", "auto", "--max-steps", 1, "--model", directory / "fit"))
    assert "linear head" not in kept.err, kept.err
    fail(2, *arguments(directory / "x", *held, "--recipe", "auto", "--model", directory / "fit", "--head-init", "fit"),
         words=["--head-init fit", "trained head", "--reinit-head"])
    modernbert = GOLDEN / "family/modernbert/classification"
    fail(2, *arguments(directory / "x", "--recipe", "auto", "--reinit-head", "--model", modernbert, "--head-init", "fit"),
         words=["--head-init fit", "ModernBert", "--head-init random"])
    assert not (directory / "x").exists()
    out = directory / "stopped"
    stopped = arguments(out, *auto, "--virtual-shards", 2, "--save-every", 2, "--keep-checkpoints", 9)
    succeed(*stopped)
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    (out / "checkpoints/step-00000004.h5").unlink()
    assert "linear head" not in succeed(*stopped, "--resume").err
    digests = {facts_of(directory / name)["weights_sha256"] for name in ("fit", "stopped")}
    if shutil.which("mpirun"):
        for name, more in (("two", []), ("stages", ["--pp", 2, "--micro-batches", 1])):
            subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BINARY,
                            *map(str, arguments(directory / name, *auto, "--virtual-shards", 2, *more))],
                           check=True, capture_output=True)
            digests.add(facts_of(directory / name)["weights_sha256"])
    assert len(digests) == 1, digests


def test_several_labels_and_numbers(directory):
    rows = [("cafe coffee lunch", "food|small", 4), ("coffee cake", "food", 5), ("train ticket", "travel", 40),
            ("taxi small ride", "travel|small", 9)] * 8
    data = directory / "rows.csv"
    with open(data, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "amount"), *rows])
    for name, more in (("sets", ["--multi-label", "|"]), ("numbers", ["--regression", "--label-column", "amount"])):
        succeed("train", "--model", MODEL, "--train", data, "--eval", data, "--text-column", "text", "--recipe", "quick",
                "--reinit-head", "--output", directory / name, *more)
    assert metrics_of(directory / "sets")["eval_f1_micro"] > 0.9, metrics_of(directory / "sets")
    numbers = metrics_of(directory / "numbers")
    assert numbers["eval_r2"] > 0.9, numbers


def test_what_it_does_not_take(directory):
    held = ("--eval", EVAL, "--ignore-unknown-labels")
    for option, value in (("epochs", 3), ("lr", "1e-4"), ("max-steps", 5), ("freeze", 1), ("dropout", 0.1), ("tp", 2),
                          ("batch-size", 8), ("weight-decay", 0.1), ("schedule", "cosine"), ("max-grad-norm", 2),
                          ("adam-beta1", 0.8), ("adam-epsilon", 1e-6), ("eval-every", 5), ("save-every", 5),
                          ("early-stopping", 2), ("micro-batches", 2), ("head-init", "random")):
        fail(2, *arguments(directory / "run", *held, f"--{option}", value), words=[f"--{option}", "--recipe auto"])
    for flag in ("no-shuffle", "recompute"):
        fail(2, *arguments(directory / "run", f"--{flag}"), words=[f"--{flag}", "--recipe auto"])
    questions = PROJECT / "data/samples/squad-train.json"
    fail(2, "train", "--model", MODEL, "--train", questions, "--recipe", "quick", "--output", directory / "run",
         words=["quick", "question answering", "--recipe auto"])
    modernbert = GOLDEN / "family/modernbert/classification"
    fail(2, *arguments(directory / "run", "--model", modernbert), words=["ModernBert", "--recipe auto"])
    fail(2, "plan", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--recipe", "quick",
         words=["--recipe quick"])
    assert not (directory / "run").exists()


main(globals())
