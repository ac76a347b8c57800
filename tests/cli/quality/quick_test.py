"""Heads fitted to a frozen encoder: train --recipe quick, and as the start of --recipe auto."""
import csv
import json
import random
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


def on_two_processes(*line):
    subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BINARY,
                    *map(str, line)], check=True, capture_output=True)


def test_an_ordinary_run(directory):
    out, model = directory / "run", directory / "run/model"
    told = succeed(*arguments(out, "--eval", EVAL, "--ignore-unknown-labels", "--threads", 2))
    metrics = metrics_of(out)
    assert (metrics["train_steps"], metrics["train_epochs"], metrics["best_step"]) == (1, 1, 1), metrics
    assert [step["loss"] for step in steps_of(out)] == [metrics["train_loss"]]
    assert metrics["eval_accuracy"] > metrics["baseline_majority_accuracy"], metrics
    assert metrics["baseline_frozen_accuracy"] == metrics["baseline_unmixed_accuracy"], metrics
    assert f"frozen features {100 * metrics['baseline_frozen_accuracy']:.1f} %, words " in told.out, told
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
        on_two_processes(*arguments(directory / "two", "--virtual-shards", 1))
        digests.add(facts_of(directory / "two")["weights_sha256"])
    assert len(digests) == 1, digests
    # Other rows with the same config.toml: the number of rows at once is theirs.
    succeed("train", "--config", out / "config.toml", "--train", EVAL, "--ignore-unknown-labels", "--eval", TRAIN,
            "--reinit-head", "--output", directory / "other")


def test_training_goes_on(directory):
    out = directory / "run"
    succeed(*arguments(out, "--eval", TRAIN, "--ngram-mix", "no"))
    # --pooling cls reads the first token: no layer more.
    succeed(*arguments(directory / "cls", "--pooling", "cls", "--no-ngram-baseline"))
    assert json.loads((directory / "cls/model/config.json").read_text())["num_hidden_layers"] == 2
    assert "linear head reads its first token" in (directory / "cls/model/README.md").read_text()
    fail(2, *arguments(directory / "no", "--pooling", "cls", "--model", out), words=["--pooling cls", "takes the mean already"])
    # Fitted again: the layer that pools is not added again.
    again = succeed(*arguments(directory / "again", "--model", out)).err
    assert "2 layers and one that pools" in again, again
    for name in ("run", "again"):
        assert json.loads((directory / name / "model/config.json").read_text())["num_hidden_layers"] == 3
    # Trained further, it says nothing of pooling, and what was fitted is not lost.
    text = succeed("train", "--model", out, "--train", TRAIN, "--eval", TRAIN, "--label-column", "category",
                   "--recipe", "auto", "--ngram-mix", "no", "--max-steps", 20, "--output", directory / "more").err
    assert "its last layer, which pools, is kept and trained" in text, text
    fitted = succeed("train", "--model", out, "--reinit-head", "--train", TRAIN, "--label-column", "category",
                     "--recipe", "auto", "--ngram-mix", "no", "--max-steps", 1, "--output", directory / "anew").err
    assert "linear head was fitted to mean-pooled features" in fitted, fitted
    config = json.loads((directory / "more/model/config.json").read_text())
    assert "finetune_pooling" not in config and config["num_hidden_layers"] == 3, config
    before, after = metrics_of(out)["eval_loss"], metrics_of(directory / "more")["eval_loss"]
    assert after < 2 * before, (before, after)
    fail(2, "adapt", "--model", out, "--text", TRAIN, "--text-column", "text", "--output", directory / "words",
         words=["--model", "pools", "pretrained model"])


def test_auto_with_few_rows_of_each_label(directory):
    """Training loses to the fit then, so auto is quick; options of training still train."""
    rows = [(f"{label} payment {number}", label) for label in ("food", "fuel", "rent") for number in range(10)]
    for name, kept in (("few", rows[1:]), ("enough", rows)):
        with open(directory / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "category"), *kept])
    line = ["train", "--model", MODEL, "--reinit-head", "--label-column", "category", "--train"]
    told = succeed(*line, directory / "few.csv", "--output", directory / "quick").err
    assert "recipe: quick" in told and "29 rows are fewer than 10 for each of 3 labels; --epochs trains" in told, told
    assert 'recipe = "quick"' in (directory / "quick/config.toml").read_text()
    assert "linear head on the frozen" in (directory / "quick/model/README.md").read_text()
    for name, more in (("enough", ["--max-train-samples", 30]), ("few", ["--epochs", 1]), ("few", ["--dropout", 0.2]), ("few", ["--max-steps", 1])):
        told = succeed(*line, directory / f"{name}.csv", *more, "--output", directory / "auto", "--overwrite").err
        assert "recipe: quick" not in told and 'recipe = "auto"' in (directory / "auto/config.toml").read_text(), told
    planned = succeed("plan", *line[1:], directory / "few.csv").out
    assert "recipe auto:" in planned and "recipe: quick" in planned and "as is planned here" in planned, planned
    if shutil.which("mpirun"):
        on_two_processes(*line, directory / "few.csv", "--output", directory / "two", "--virtual-shards", 1)
        assert facts_of(directory / "two")["weights_sha256"] == facts_of(directory / "quick")["weights_sha256"]


def test_auto_begins_with_the_fit(directory):
    held = ["--eval", EVAL, "--ignore-unknown-labels", "--ngram-mix", "no"]
    auto = ["--recipe", "auto", "--max-steps", 4, "--reinit-head", *held]
    told = succeed(*arguments(directory / "fit", *auto, "--max-steps", 4, "--virtual-shards", 2,
                              "--assert", "baseline_frozen_accuracy>=0.1"))
    log = (directory / "fit/log.txt").read_text()
    assert "linear head was fitted to first-token features" in log and "recipe: a head is fitted" in log, log
    config = (directory / "fit/config.toml").read_text()
    assert 'head-init = "fit"' in config, config
    assert json.loads((directory / "fit/model/config.json").read_text())["num_hidden_layers"] == 2
    # What the frozen features reach is measured before the first step. It is a baseline, never the best.
    start = [json.loads(line) for line in (directory / "fit/metrics.jsonl").read_text().splitlines()][0]
    metrics = metrics_of(directory / "fit")
    assert start["step"] == 0 and start["eval_accuracy"] == metrics["baseline_frozen_accuracy"] > 0.1, (start, metrics)
    assert metrics["best_step"] > 0 and metrics["baseline_frozen_f1_macro"] == start["eval_f1_macro"], metrics
    figure = f"frozen features {100 * start['eval_accuracy']:.1f} %, words "
    assert figure in told.out, told
    # A random head begins with a loss of all labels alike, the fitted one far below it.
    succeed(*arguments(directory / "random", *auto, "--head-init", "random"))
    first = [steps_of(directory / name)[0]["loss"] for name in ("fit", "random")]
    assert first[0] < 0.9 * first[1], first
    assert 'head-init = "random"' in (directory / "random/config.toml").read_text()
    # With another recipe the run's own config.toml does not choose the head's beginning.
    succeed("train", "--config", directory / "random/config.toml", "--recipe", "quick", "--max-steps", 1,
            "--output", directory / "fitted")
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
    assert metrics_of(out)["baseline_frozen_accuracy"] == start["eval_accuracy"]
    digests = {facts_of(directory / name)["weights_sha256"] for name in ("fit", "stopped")}
    if shutil.which("mpirun"):
        for name, more in (("two", []), ("stages", ["--pp", 2, "--micro-batches", 1])):
            on_two_processes(*arguments(directory / name, *auto, "--virtual-shards", 2, *more))
            digests.add(facts_of(directory / name)["weights_sha256"])
    assert len(digests) == 1, digests


def test_names_of_labels(directory):
    """One row a label: the words of a label's name count, and codes as names do not."""
    with open(TRAIN, newline="") as file:
        words = [row["text"].split()[0] for row in csv.DictReader(file)]
    words = [word for word in dict.fromkeys(words) if word.isalpha() and len(word) > 2][:24]
    made = {"names": "{0}_{1}", "codes": "{2}"}
    for name, form in made.items():
        with open(directory / f"{name}.csv", "w", newline="") as file:
            labels = [form.format(words[2 * i], words[2 * i + 1], 100 + i * 37 % 89) for i in range(12)]
            csv.writer(file).writerows([("text", "category"), *((f"{words[2 * i]} {words[2 * i + 1]} {words[i]}", label)
                                                                for i, label in enumerate(labels))])

    def fitted(name, data, *more):
        line = arguments(directory / name, "--reinit-head", "--train", directory / f"{data}.csv", *more)
        return line, lambda: ("each label's name counts" in (directory / name / "log.txt").read_text(),
                              facts_of(directory / name)["weights_sha256"])

    found = {}
    for name, data, more in (("with", "names", ["--threads", 2]), ("without", "names", ["--no-label-names"]),
                             ("codes", "codes", []), ("folds", "names", ["--folds", 3])):
        line, told = fitted(name, data, *more)
        succeed(*line)
        found[name] = told()
    assert [found[name][0] for name in ("with", "without", "codes", "folds")] == [True, False, False, True], found
    assert found["with"][1] == found["folds"][1] != found["without"][1], found
    # The words of the name are also the row's, which has one more: without its fold, the name alone knows the label.
    assert metrics_of(directory / "folds")["eval_accuracy"] > 0.5, metrics_of(directory / "folds")
    if shutil.which("mpirun"):
        line, told = fitted("two", "names", "--virtual-shards", 1)
        on_two_processes(*line)
        assert told() == found["with"], (told(), found)


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
    for more in (["--multi-label", "|"], ["--regression", "--label-column", "amount"]):  # auto fits no such head
        log = succeed("train", "--model", MODEL, "--train", data, "--text-column", "text", "--recipe", "auto", "--reinit-head",
                      "--max-steps", 1, "--output", directory / "auto", "--overwrite", *more).err
        assert "linear head" not in log and "newly initialised" in log, log
    numbers = metrics_of(directory / "numbers")
    assert numbers["eval_r2"] > 0.9, numbers


def test_folds(directory):
    out, draw = directory / "run", random.Random(5)
    text = succeed(*arguments(out, "--folds", 4, "--keep-checkpoints", 1, "--threads", 2)).out
    metrics = metrics_of(out)
    assert metrics["eval_folds"] == 4 and metrics["eval_rows"] == metrics["train_rows"] == 960, metrics
    assert 0 < metrics["eval_accuracy_sd"] < 0.1 and metrics["eval_mix_ngrams"] > 0, metrics
    assert "960 out-of-fold rows right" in text and "over 4 folds: accuracy ± " in text, text
    with open(out / "predictions.csv", newline="") as file:
        answers = list(csv.DictReader(file))
    right = sum(row["label"] == row["category"] for row in answers) / 960
    assert abs(right - metrics["eval_accuracy"]) < 1e-9 and right < 0.95, (right, metrics)
    # The model is fitted to all rows, which it knows better than the folds did; other rows agree with the folds.
    told = succeed(*arguments(directory / "all")).err
    assert "--folds 5 measures each row by a fit that has not seen it" in told, told
    assert "--folds 5" not in (out / "log.txt").read_text()
    assert facts_of(directory / "all")["weights_sha256"] == facts_of(out)["weights_sha256"]
    for data, least, most in ((TRAIN, right + 0.05, 1), (EVAL, right - 0.05, right + 0.05)):
        told = json.loads(succeed("evaluate", "--model", out, "--data", data, "--label-column", "category", "--json",
                                  "--ignore-unknown-labels", "--no-ngram-baseline").out)
        assert least < told["eval_accuracy"] <= most, (data, right, told)
    # From its checkpoint, and with other threads and processes, the same.
    before = (out / "predictions.csv").read_bytes()
    (out / "metrics.json").unlink()
    succeed("train", "--config", out / "config.toml", "--output", out, "--resume", "--threads", 1)
    assert (out / "predictions.csv").read_bytes() == before and metrics_of(out)["eval_loss"] == metrics["eval_loss"]
    if shutil.which("mpirun"):
        on_two_processes(*arguments(directory / "two", "--folds", 4, "--virtual-shards", 1))
        assert (directory / "two/predictions.csv").read_bytes() == before
    # Labels that follow from nothing are guessed by chance, and none of several labels a row is remembered.
    data = directory / "rows.csv"
    with open(data, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "amount"), *((f"shop {n} {n * n}", draw.choice(["ab", "cd"]), n)
                                                                   for n in range(300))])
    for name, more in (("one", []), ("sets", ["--multi-label", "|"]), ("numbers", ["--regression", "--label-column", "amount"])):
        succeed("train", "--model", MODEL, "--train", data, "--text-column", "text", "--recipe", "quick", "--folds", 3,
                "--reinit-head", "--output", directory / name, *more)
    assert 0.4 < metrics_of(directory / "one")["eval_accuracy"] < 0.6, metrics_of(directory / "one")
    assert 0.3 < metrics_of(directory / "sets")["eval_f1_micro"] < 0.65, metrics_of(directory / "sets")
    assert metrics_of(directory / "numbers")["eval_mse_sd"] > 0 and "baseline_majority_mse" in metrics_of(directory / "numbers")
    few = ("text,label\n" + "a,x\nb,y\na,x\n").encode()
    (directory / "few.csv").write_bytes(few)
    fail(3, "train", "--model", MODEL, "--reinit-head", "--train", directory / "few.csv", "--recipe", "quick", "--folds", 4,
         "--output", directory / "no", words=["2 different texts", "--folds 4"])
    rows = ["text,label", *(f"text {n},{n % 4}" for n in range(20))]  # five of each label: at most eight folds have some
    (directory / "few.csv").write_text("\n".join(rows))
    for folds, words in ((9, ["fill only 8 folds of --folds 9", "at most 8"]), (8, None)):
        line = ["train", "--model", MODEL, "--reinit-head", "--train", directory / "few.csv", "--recipe", "quick",
                "--folds", folds, "--output", directory / "filled"]
        fail(3, *line, words=words) if words else succeed(*line)
    for more, word in ((("--recipe", "auto"), "is for --recipe quick"), (("--eval", EVAL), "--eval exclude"),
                       (("--eval-fraction", 0.1), "--eval-fraction exclude"), (("--long-text", "windows"), "--long-text")):
        fail(2, *arguments(directory / "no", "--folds", 4, *more), words=["--folds 4", word])


def test_what_it_does_not_take(directory):
    held = ("--eval", EVAL, "--ignore-unknown-labels")
    for option, value in (("epochs", 3), ("lr", "1e-4"), ("max-steps", 5), ("freeze", 1), ("dropout", 0.1), ("tp", 2),
                          ("batch-size", 8), ("weight-decay", 0.1), ("schedule", "cosine"), ("max-grad-norm", 2),
                          ("adam-beta1", 0.8), ("adam-epsilon", 1e-6), ("eval-every", 5), ("save-every", 5),
                          ("early-stopping", 2), ("micro-batches", 2), ("head-init", "random")):
        fail(2, *arguments(directory / "run", *held, f"--{option}", value), words=[f"--{option}", "--recipe auto"])
    for flag in ("no-shuffle", "recompute", "shard-optimizer"):
        fail(2, *arguments(directory / "run", f"--{flag}"), words=[f"--{flag}", "--recipe auto"])
    questions = PROJECT / "data/samples/squad-train.json"
    fail(2, "train", "--model", MODEL, "--train", questions, "--recipe", "quick", "--output", directory / "run",
         words=["quick", "question answering", "--recipe auto"])
    modernbert = GOLDEN / "family/modernbert/classification"
    fail(2, *arguments(directory / "run", "--model", modernbert), words=["ModernBert", "--recipe auto"])
    fail(2, "plan", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--recipe", "quick",
         words=["--recipe quick"])
    # The mean of all tokens is quick's alone, and not every encoder can have it.
    fail(2, *arguments(directory / "run", "--recipe", "auto", "--pooling", "mean"),
         words=["--pooling mean", "--recipe quick", "transformers"])
    fail(2, *arguments(directory / "run", "--model", GOLDEN / "family/deberta-v3/classification", "--pooling", "mean"),
         words=["--pooling mean", "--pooling cls"])
    assert not (directory / "run").exists()


main(globals())
