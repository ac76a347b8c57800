"""Models mixed with n-grams: trained, evaluated, used for prediction, copied, damaged."""
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, QA_MODEL, SQUAD, evaluate, linear_model_of, predict, rows_of
from harness import BINARY, PATIENCE, facts_of, fail, main, metrics_in, metrics_of, need, run, succeed

LABELS = ("fuel", "food", "rent", "travel")
FIGURES = ("accuracy", "f1_macro", "f1_micro", "f1_weighted", "mcc", "ece", "brier")


def rows(count, seed):
    """(text, label): mostly determined by the merchant's name, partly by a word."""
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        merchant = min(draw.randrange(60), draw.randrange(60))
        label = LABELS[merchant % 4] if draw.random() > 0.1 else draw.choice(LABELS)
        words = draw.sample(["card", "city", "north", "store", "payment", "fee"], 2)
        out.append((f"{'bcdfghjklm'[merchant % 10]}{'aeiou'[merchant // 12]}{'npqrst'[merchant % 6]} {' '.join(words)}", label))
    return out


def table(path, rows_):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows_])
    return path


def arguments(directory, count=600):
    train, dev = table(directory / "train.csv", rows(count, 1)), table(directory / "dev.csv", rows(400, 2))
    return ["train", "--model", MODEL, "--reinit-head", "--train", train, "--eval", dev, "--lr", "2e-3", "--epochs", 2,
            "--quiet"]


def mixed_run(directory):
    out = directory / "run"
    result = succeed(*arguments(directory), "--ngram-mix", "yes", "--output", out)
    return out, directory / "dev.csv", result


def test_the_mix_is_what_the_run_says(directory):
    need(*MODELS)
    out, dev, result = mixed_run(directory)
    metrics = metrics_of(out)
    assert metrics["eval_mix_ngrams"] > 0 and metrics["eval_mix_model"] >= 0, metrics
    assert metrics["eval_accuracy"] > metrics["baseline_unmixed_accuracy"] + 0.02, metrics
    right, beside = result.out.splitlines()[:2]
    rows = int(metrics["eval_rows"])
    assert right == f"{100 * metrics['eval_accuracy']:.1f} % of {rows:,} held-out rows right", result
    assert beside == (f"BERT alone {100 * metrics['baseline_unmixed_accuracy']:.1f} %, "
                      f"words {100 * metrics['baseline_ngram_accuracy']:.1f} %, "
                      f"commonest label {100 * metrics['baseline_majority_accuracy']:.1f} %"), result
    stored = json.loads((out / "model" / "config.json").read_text())["finetune"]["ngram_mix"]
    assert (out / "model" / "ngrams.bin").read_bytes()[-64:].decode() == stored["sha256"]
    assert stored["model"] == metrics["eval_mix_model"] and stored["ngrams"] == metrics["eval_mix_ngrams"]
    # Log and report name the source of each figure: the curve belongs to the model without n-grams.
    alone = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines() if "eval_accuracy" in line]
    figures = (f"eval_accuracy {metrics['baseline_unmixed_accuracy']:.4f} of the model alone, as in the evaluations above, "
               f"{metrics['eval_accuracy']:.4f} together with a linear model on n-grams")
    logged = (out / "log.txt").read_text()
    assert figures in logged and f"{stored['model']:.3f} of the model's logits and {stored['ngrams']:.3f} of" in logged
    # People read one short line of it; it was 300 columns of digits.
    plain = re.search(r"^\S+ (mixed with n-grams: .*)$", logged, re.M)[1]
    assert plain == (f"mixed with n-grams: {100 * metrics['baseline_unmixed_accuracy']:.1f} % alone, "
                     f"{100 * metrics['eval_accuracy']:.1f} % together; calibrated: error "
                     f"{metrics['baseline_unmixed_ece']:.3f} before, {metrics['eval_ece']:.3f} after"), plain
    assert max(line["eval_accuracy"] for line in alone) == metrics["baseline_unmixed_accuracy"]
    # The card names both, first what transformers computes.
    card = (out / "model/README.md").read_text()
    listed = [f'    - type: accuracy\n      name: "Accuracy{whose}"\n      value: {metrics[name]}\n' for whose, name in (
        (", the model alone, as transformers loads it", "baseline_unmixed_accuracy"),
        (" with n-grams, as finetune predicts", "eval_accuracy"))]
    assert 0 < card.index(listed[0]) < card.index(listed[1]) and "name: \"Accuracy\"" not in card, card
    page = succeed("report", out, "--output", "-").out
    assert "run, with n-grams" in page and "The curve is the model alone; the single mark is" in page
    # evaluate has the stored weights, which all rows fitted: it says so, its likelihood is a little higher.
    again = evaluate(dev, "--json", model=out)
    used = (f"dev.csv chose this model's best epoch and fitted its mix with n-grams: these figures are a little too good; in "
            f"{out}/metrics.json only by the epoch\n")
    assert used in again.err, again
    found = metrics_in(again.out)
    for name in FIGURES:
        assert abs(found["eval_" + name] - metrics["eval_" + name]) < 0.02, (name, found, metrics)
        if name not in ("ece", "brier"):
            assert abs(found["baseline_unmixed_" + name] - metrics["baseline_unmixed_" + name]) < 2e-5, (name, found)
    assert 0.9 * metrics["eval_loss"] < found["eval_loss"] < metrics["eval_loss"], (found, metrics)
    assert "rows; each row's mix was fitted on other rows\n" in result.out, result
    # predictions.csv has what was measured; predict has evaluate's. Rows of one text share the weights.
    given, measured = rows_of(predict(dev, model=out).out)[1:], rows_of((out / "predictions.csv").read_text())[1:]
    for answers, figures in ((given, found), (measured, metrics)):
        assert abs(sum(row[1] == row[2] for row in answers) / 400 - figures["eval_accuracy"]) < 1e-9, figures
        of_text = {row[0]: row[2:] for row in answers}
        assert all(of_text[row[0]] == row[2:] for row in answers)
    near = [abs(float(ours[3]) - float(theirs[3])) for ours, theirs in zip(measured, given, strict=True)]
    assert 1e-4 < max(near) < 0.1 and all(ours[:2] == theirs[:2] for ours, theirs in zip(measured, given)), near
    # A gate on the model alone needs no baseline.
    assert "PASS" in evaluate(dev, "--no-ngram-baseline", "--assert", "baseline_unmixed_accuracy>=0", model=out).out
    # Without the n-grams it is the model alone; neither threads nor batches change a bit.
    for option in ("--no-ngram-mix", "--no-calibration"):
        alone = metrics_in(evaluate(dev, "--json", option, model=out).out)
        assert abs(alone["eval_accuracy"] - metrics["baseline_unmixed_accuracy"]) < 1e-9, (option, alone)
        assert "baseline_unmixed_accuracy" not in alone and abs(alone["eval_ece"] - metrics["baseline_unmixed_ece"]) < 2e-5
    assert alone["eval_accuracy"] == sum(
        row[1] == row[2] for row in rows_of(predict(dev, "--no-ngram-mix", model=out).out)[1:]) / 400
    assert predict(dev, "--threads", 1, model=out).out == predict(dev, "--threads", 3, model=out).out
    # Options about probabilities use the mix's probabilities.
    sure = succeed("evaluate", "--model", out, "--data", dev, "--target-accuracy", 0.95, "--slice", "label", "--json")
    assert metrics_in(sure.out)["eval_accuracy_covered"] >= 0.95, sure
    # Programs get the slices too; metric names are those of training.
    line = json.loads(sure.out)
    assert sum(part["rows"] for part in line["slices"]) == 400 and line["options"]["slice"] == ["label"], line
    assert {part["value"] for part in line["slices"]} == set(LABELS), line
    assert line["eval_ece_calibrated"] == line["eval_ece"] and "eval_ece_calibrated" in metrics, line
    log = evaluate(dev, model=out).err
    assert "\nlabels come from the model and its n-grams (--no-ngram-mix: the model alone)\n" in "\n" + log, log


def test_evaluate_says_what_its_rows_were_used_for(directory):
    need(*MODELS)
    line = arguments(directory, 100)
    for name, *more in (("many", "--ngram-mix", "no"), ("once", "--ngram-mix", "no", "--epochs", 1)):
        succeed(*line, *more, "--output", directory / name)
    copy = directory / "copy.csv"
    shutil.copy(directory / "dev.csv", copy)
    for data in (directory / "dev.csv", copy):
        told = evaluate(data, model=directory / "many").out
        assert f"{data.name} chose this model's best epoch: these figures are a little too good\n" in told, told
        assert "too good" not in evaluate(data, model=directory / "once").out
    other = table(directory / "other.csv", rows(50, 3))
    assert "too good" not in evaluate(other, model=directory / "many").out


def test_files_that_do_not_belong_together(directory):
    need(*MODELS)
    out, dev, _ = mixed_run(directory)
    model = out / "model"

    def refused(*words):
        for command in (["predict", "--input", dev, "--output", "-"], ["evaluate", "--data", dev]):
            fail(4, command[0], "--model", model, *command[1:], words=["ngrams.bin", *words])

    whole = (model / "ngrams.bin").read_bytes()
    config = (model / "config.json").read_text()
    for content, word in ((whole[:-1], "bytes"), (whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "damaged"),
                          (b"", "not a file of n-grams"), (b"ftngrams" + b"\xff" * 200, "version")):
        (model / "ngrams.bin").write_bytes(content)
        refused(word)
        fail(4, "convert", "--model", model, "--output", directory / "copy", words=["ngrams.bin"])
    (model / "ngrams.bin").unlink()
    refused("missing", "--no-ngram-mix")
    fail(4, "convert", "--model", model, "--output", directory / "copy", words=["ngrams.bin", "missing"])
    succeed("predict", "--model", model, "--input", dev, "--output", "-", "--no-ngram-mix")
    (model / "ngrams.bin").write_bytes(whole)
    stored = json.loads(config)
    stored["finetune"]["ngram_mix"]["sha256"] = "0" * 64
    (model / "config.json").write_text(json.dumps(stored))
    refused("another model")
    stored["finetune"]["ngram_mix"] = 5
    (model / "config.json").write_text(json.dumps(stored))
    fail(4, "convert", "--model", model, "--output", directory / "copy", words=["ngrams.bin"])
    del stored["finetune"]["ngram_mix"]
    (model / "config.json").write_text(json.dumps(stored))
    refused("finetune.ngram_mix")
    for weight in (-1, "x", 1e9):
        stored["finetune"]["ngram_mix"] = {"model": weight, "ngrams": 1, "sha256": ""}
        (model / "config.json").write_text(json.dumps(stored))
        fail(4, "predict", "--model", model, "--input", dev, "--output", "-", words=["finetune.ngram_mix"])


def test_what_follows_a_mixed_model(directory):
    need(*MODELS)
    out, dev, _ = mixed_run(directory)
    answers = predict(dev, model=out).out
    succeed("convert", "--model", out, "--output", directory / "copy")
    assert predict(dev, model=directory / "copy").out == answers
    assert "n-grams to mix with: " in succeed("inspect", directory / "copy").out
    # Training from it starts with the model alone, and the result is not a mix unless requested.
    plain = ["train", "--recipe", "hf", "--model", out / "model", "--train", dev, "--eval-fraction", 0.5, "--max-steps", 1, "--quiet"]
    succeed(*plain, "--output", directory / "next")
    assert not (directory / "next" / "model" / "ngrams.bin").exists()
    assert "ngram_mix" not in (directory / "next" / "model" / "config.json").read_text()
    assert "the model's n-grams are not kept, and none are" in (directory / "next" / "log.txt").read_text()
    # Exporting another model into the run's directory removes earlier n-grams; a finished run reports the same again.
    again = succeed(*arguments(directory), "--ngram-mix", "yes", "--output", out, "--resume")
    assert "\nBERT alone " in again.out, again
    fail(2, *arguments(directory), "--ngram-mix", "no", "--output", out, "--resume", words=["ended with a mix"])
    succeed(*arguments(directory), "--output", out, "--overwrite")
    assert not (out / "model" / "ngrams.bin").exists()
    assert "baseline_unmixed_accuracy" not in metrics_of(out) and "baseline_ngram_accuracy" in metrics_of(out)


def test_processes_and_resume_change_no_bit(directory):
    need(*MODELS)
    given = [*arguments(directory), "--ngram-mix", "yes", "--virtual-shards", 2, "--batch-size", 16]
    succeed(*given, "--output", directory / "one")
    # Stopped after the first epoch; missing options are the run's.
    run(*given, "--output", directory / "two", "--time-limit", "1s")
    given[given.index("yes")] = "auto"
    succeed(*given, "--output", directory / "two", "--resume")
    if shutil.which("mpirun"):
        given[given.index("auto")] = "yes"
        subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BINARY,
                        *map(str, given), "--output", str(directory / "mpi")], check=True, capture_output=True)
    for name in ("two", "mpi"):
        if not (directory / name).exists():
            continue
        for file in ("model/ngrams.bin", "model/config.json", "predictions.csv", "confusion.csv"):
            ours, theirs = (directory / run_ / file for run_ in ("one", name))
            assert ours.read_bytes() == theirs.read_bytes(), (name, file)


def kill_linear_model(job):
    """The first child process of the training that computes it."""
    while job.poll() is None:
        child = linear_model_of(job.pid)
        if child:
            os.kill(child, signal.SIGKILL)
            return
        time.sleep(0.001)


def test_a_linear_model_that_was_killed(directory):
    need(*MODELS)
    given = [word for word in arguments(directory, 3000) if word != "--quiet"]
    given = [*given, "--max-steps", 1, "--threads", 1, "--no-progress", "--output"]

    def trained(*more):
        job = subprocess.Popen([BINARY, *map(str, [*given, *more])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
        kill_linear_model(job)
        return job.communicate(timeout=PATIENCE)[1], job.returncode
    # Neither the mix nor the baseline is skipped: --resume computes them from the last checkpoint.
    for name, more, without in (("auto", ("--recipe", "auto"), "--no-ngram-baseline"),
                                ("yes", ("--ngram-mix", "yes"), "--ngram-mix no --no-ngram-baseline"),
                                ("baseline", ("--ngram-mix", "no"), "--no-ngram-baseline")):
        out = directory / name
        log, code = trained(out, *more)
        errors = [line for line in log.splitlines() if "finetune: error:" in line]
        assert code == 5 and len(errors) == 1, (code, log)
        assert f"--resume tries again, and with {without}" in errors[0] and "signal 9" in errors[0], log
        assert not (out / "metrics.json").exists() and not (out / "model").exists()
        resumed = succeed(*given, out, *more, "--resume")
        assert "step 1/1" not in resumed.err and "baseline_ngram_accuracy" in metrics_of(out), resumed
        if name == "auto":
            assert (out / "model" / "ngrams.bin").exists() and " of theirs" in facts_of(out)["ngram_mix"], facts_of(out)
    # Without the mix, if it is impossible.
    trained(directory / "not", "--ngram-mix", "yes")
    succeed(*given, directory / "not", "--ngram-mix", "no", "--no-ngram-baseline", "--resume")
    assert "eval_accuracy" in metrics_of(directory / "not") and "ngram_mix" not in facts_of(directory / "not")


def test_a_linear_model_without_its_training_ends_at_once(directory):
    foreign = os.getppid()  # as if the parent had died before the child could request a signal
    done = run("ngram-baseline-process", 0, 2, 1, 0, 0, "without-model", foreign)
    assert done.code == 1 and done.out == done.err == "", done


def test_when_there_is_a_mix(directory):
    need(*MODELS)
    given = [*arguments(directory, 60), "--max-steps", 1, "--output", directory / "x"]
    for more, words in ((["--regression"], ["--regression"]), (["--multi-label", "|"], ["--multi-label"]),
                        (["--no-calibration"], ["--no-calibration"]), (["--no-ngram-baseline"], ["--no-ngram-baseline"])):
        fail(2, *given, "--ngram-mix", "yes", *more, words=["--ngram-mix", *words])
    without = [word for word in given if word not in ("--eval", directory / "dev.csv")]
    fail(2, *without, "--ngram-mix", "yes", words=["--ngram-mix yes needs evaluation data"])
    fail(2, *given, "--ngram-mix", "maybe", words=["--ngram-mix"])
    fail(2, "train", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--ngram-mix", "yes", "--output", directory / "x",
         words=["--ngram-mix", "classification"])
    assert not (directory / "x").exists()
    # Too few rows for fitting.
    few = [*arguments(directory, 60), "--max-steps", 1, "--max-eval-samples", 50]
    log = succeed(*[word for word in few if word != "--quiet"], "--ngram-mix", "yes", "--output", directory / "few").err
    assert "no mix with n-grams" in log and "there are 50 and " in log, log
    assert "warning: --ngram-mix yes: there is no mix: this needs 200 evaluation rows" in log, log
    for fact in ("ngram_mix", "calibration"):
        assert facts_of(directory / "few")[fact].startswith("none: this needs 200 evaluation rows"), facts_of(directory / "few")
    assert not (directory / "few" / "model" / "ngrams.bin").exists()
    # --recipe auto includes a mix unless it is unwanted or impossible.
    auto = [*arguments(directory, 60), "--max-steps", 1, "--recipe", "auto"]
    succeed(*auto, "--output", directory / "auto")
    assert (directory / "auto" / "model" / "ngrams.bin").exists()
    succeed(*auto, "--ngram-mix", "no", "--output", directory / "no")
    assert not (directory / "no" / "model" / "ngrams.bin").exists()
    succeed(*auto, "--no-ngram-baseline", "--output", directory / "none")
    assert not (directory / "none" / "model" / "ngrams.bin").exists()


main(globals())
