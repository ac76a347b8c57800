"""The n-gram baseline beside the metrics of train and evaluate, and `finetune check`."""
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN, computing_seconds, trained
from harness import BINARY, PATIENCE, SAMPLES, fail, main, metrics_in, metrics_of, need, run, succeed

ARGUMENTS = ["--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--recipe", "hf"]


def baselines(metrics):
    return {name: value for name, value in metrics.items() if name.startswith("baseline_") and "runtime" not in name}


def write_rows(path, rows, header=("text", "label")):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def test_train_and_evaluate_have_the_same_baselines(directory):
    need(*MODELS)
    out = directory / "run"
    result = succeed("train", *ARGUMENTS, "--max-steps", 2, "--output", out)
    metrics = metrics_of(out)
    assert {name.split("_", 2)[1] for name in baselines(metrics)} == {"majority", "ngram"}, metrics
    for name in ("accuracy", "f1_macro", "f1_micro", "f1_weighted", "mcc"):
        assert f"baseline_majority_{name}" in metrics and f"baseline_ngram_{name}" in metrics, metrics
    assert metrics["baseline_ngram_accuracy"] > 2 * metrics["baseline_majority_accuracy"], metrics
    # Two steps of a tiny model learn nothing, and the line says so.
    line = result.out.splitlines()[1]
    assert line.startswith("words ") and ", commonest label " in line, result
    assert "warning: the majority's answer to every text is better than this model" in result.err, result
    # evaluate trains the same baseline from the run's files; it also scores another --data.
    evaluated = succeed("evaluate", "--model", out / "model", "--data", EVAL, "--json")
    assert baselines(metrics_in(evaluated.out)) == baselines(metrics), evaluated
    plain = succeed("evaluate", "--model", out, "--data", EVAL, "--no-ngram-baseline", "--json")
    assert "baseline_ngram" not in plain.out, plain
    # The majority class is still that of the training rows.
    majority = {name: value for name, value in baselines(metrics).items() if name.startswith("baseline_majority")}
    assert baselines(metrics_in(plain.out)) == majority, (plain, majority)
    # For a finished run it is not computed again, but reported.
    again = succeed("train", *ARGUMENTS, "--max-steps", 2, "--output", out, "--resume")
    assert again.out == result.out, (again, result)


def test_a_model_that_knows_less_than_nothing_is_told(directory):
    need(*MODELS)
    # The majority is 9 of 10; after one step with a large rate the model answers differently.
    rows = write_rows(directory / "rows.csv", [(f"item {i} {'x' if i % 10 else 'y'}", "big" if i % 10 else "small")
                                               for i in range(60)])
    for more in ([], ["--no-ngram-baseline"]):
        result = succeed("train", "--model", MODEL, "--reinit-head", "--train", rows, "--eval", rows, "--max-steps", 1, "--lr",
                         "1e-9", "--class-weights", "balanced", "--output", directory / f"run{len(more)}", *more)
        metrics = metrics_of(directory / f"run{len(more)}")
        assert metrics["baseline_majority_accuracy"] == 0.9 >= metrics["eval_accuracy"], metrics
        better = "as good as" if metrics["eval_accuracy"] == 0.9 else "better than"
        assert f"warning: the majority's answer to every text is {better} this model" in result.err, result


def test_threads_and_cores_change_no_figure(directory):
    need(*MODELS)
    one = trained(directory, "one", *ARGUMENTS, "--threads", 1)
    other = directory / "other"
    first = min(os.sched_getaffinity(0))
    code = f"import os, sys; os.sched_setaffinity(0, {{{first}}}); os.execv(sys.argv[1], sys.argv[1:])"
    subprocess.run([sys.executable, "-c", code, BINARY, "train", *map(str, ARGUMENTS), "--lr", "1e-3", "--max-steps",
                    "6", "--quiet", "--output", str(other)], check=True, capture_output=True)
    assert baselines(metrics_of(one)) == baselines(metrics_of(other))


def test_without_the_rows_there_is_the_majority(directory):
    need(*MODELS)
    rows = directory / "train.csv"
    rows.write_bytes(TRAIN.read_bytes())
    arguments = [word if word != TRAIN else rows for word in ARGUMENTS]
    out = trained(directory, "run", *arguments)
    rows.write_text(rows.read_text() + "one more row,Automotive\n")
    changed = succeed("evaluate", "--model", out, "--data", EVAL)
    assert "no n-gram baseline: its run's data are no longer what they were" in changed.err, changed
    assert "\ncommonest label " in changed.out and "words " not in changed.out, changed
    named = succeed("evaluate", "--model", out, "--data", EVAL, "--train", TRAIN, "--json")
    assert baselines(metrics_in(named.out)) == baselines(metrics_of(out)), named
    # Naming other rows than the model's, or unreadable ones, is an error.
    other = write_rows(directory / "other.csv", [("a", "x"), ("b", "y")], ("text", "category"))
    fail_at_the_end(3, "evaluate", "--model", out, "--data", EVAL, "--train", other, words=["other.csv", "labels"])
    fail(3, "evaluate", "--model", out, "--data", EVAL, "--train", directory / "absent.csv")
    no_label = write_rows(directory / "no_label.csv", [("a", "x")], ("text", "other"))
    fail(3, "evaluate", "--model", out, "--data", EVAL, "--train", TRAIN, no_label)
    fail(2, "check", "--train", TRAIN, "--label-column", "category", "--eval-group", "category", words=["label column"])
    assert "held out" in succeed("check", "--train", TRAIN, "--label-column", "category", "--eval-group", "text").out
    # So are bad rows further down.
    bad = write_rows(directory / "bad.csv", [("a text", "Utilities"), ("", "Utilities")], ("text", "category"))
    fail_at_the_end(3, "evaluate", "--model", out, "--data", EVAL, "--train", bad, words=["bad.csv:3"])


def fail_at_the_end(code, *arguments, words=(), **options):
    """Like fail() for a command with a log: its last line is the error."""
    result = run(*arguments, **options)
    errors = [line for line in result.err.splitlines() if line.startswith("finetune: error: ")]
    assert result.code == code and len(errors) == 1 and errors[0] == result.err.splitlines()[-1], result
    assert all(word in errors[0] for word in words) and result.out == "", result


def test_without_room_for_their_rows_baselines_are_an_error(directory):
    need(*MODELS)
    nowhere = {"TMPDIR": str(directory / "absent")}
    run_directory = trained(directory, "run", *ARGUMENTS)
    # Before the first step, with nothing left behind.
    fail(4, "train", *ARGUMENTS, "--max-steps", 1, "--output", directory / "nowhere", env=nowhere,
         words=["n-gram baseline cannot be written", "TMPDIR"])
    assert not (directory / "nowhere").exists()
    fail(4, "evaluate", "--model", run_directory, "--data", EVAL, env=nowhere, words=["TMPDIR"])
    # Without evaluation data there are no baselines.
    without = [word for word in ARGUMENTS if word not in ("--eval", EVAL)]
    succeed("train", *without, "--max-steps", 1, "--output", directory / "no eval", env=nowhere)
    # check's findings are correct without baselines; it says that they are missing, and why.
    check = ["check", "--train", TRAIN, "--eval", EVAL, "--label-column", "category"]
    text = succeed(*check, env=nowhere)
    assert "warning: no " in text.out and "TMPDIR" in text.out and "worth a warning" not in text.out, text
    found = json.loads(succeed(*check, "--json", env=nowhere).out)
    assert [(finding["kind"], finding["level"]) for finding in found["findings"] if "TMPDIR" in finding["text"]] == [
        ("no-baselines", "warning")], found
    assert run(*check, "--fail-on", "warning", env=nowhere).code == 7
    # A single row cannot be held out.
    one = write_rows(directory / "one.csv", [("a", 1.5)])
    found = json.loads(succeed("check", "--train", one, "--regression", "--json").out)
    assert any(finding["kind"] in ("no-baselines", "one-value") for finding in found["findings"]), found


def test_it_can_be_left_out_and_asserted(directory):
    need(*MODELS)
    out = trained(directory, "plain", *ARGUMENTS, "--no-ngram-baseline")
    assert {name for name in baselines(metrics_of(out)) if "ngram" in name} == set()
    fail(2, "train", *ARGUMENTS, "--no-ngram-baseline", "--output", directory / "none", "--assert",
         "baseline_ngram_accuracy>=0.1", words=["no metric 'baseline_ngram_accuracy'"])
    gated = run("train", *ARGUMENTS, "--max-steps", 1, "--output", directory / "gated", "--assert",
                "baseline_ngram_accuracy>=1")
    assert gated.code == 7 and "FAIL" in gated.out, gated


def test_regression_and_several_labels(directory):
    need(*MODELS)
    model = ["--model", MODEL, "--reinit-head"]
    numbers = write_rows(directory / "numbers.csv",
                         [(f"{'large' if i % 2 else 'small'} thing {i}", 90 + i % 7 if i % 2 else i % 5)
                          for i in range(80)])
    out = trained(directory, "numbers", *model, "--train", numbers, "--eval", numbers, "--regression")
    metrics = metrics_of(out)
    assert metrics["baseline_ngram_mse"] < 0.1 * metrics["baseline_majority_mse"], metrics
    assert metrics["baseline_majority_pearson"] == 0 and metrics["baseline_ngram_pearson"] > 0.95, metrics
    tags = write_rows(directory / "tags.csv",
                      [(f"{'red ' * (i % 2)}{'blue ' * (i % 3 == 0)}ball {i}",
                        "|".join(["red"] * (i % 2) + ["blue"] * (i % 3 == 0))) for i in range(60)])
    out = trained(directory, "tags", *model, "--train", tags, "--eval", tags, "--multi-label", "|")
    metrics = metrics_of(out)
    assert metrics["baseline_ngram_f1_micro"] > 0.95 > metrics["baseline_majority_f1_micro"], metrics
    evaluated = metrics_in(succeed("evaluate", "--model", out, "--data", tags, "--json").out)
    assert baselines(evaluated) == baselines(metrics), evaluated


def test_a_sweep_computes_them_once(directory):
    need(*MODELS)
    grid = directory / "grid.toml"
    grid.write_text(f'model = "{MODEL}"\ntrain = "{TRAIN}"\neval = "{EVAL}"\nlabel-column = "category"\n'
                    "max-steps = 2\nthreads = 1\n[sweep]\nlr = [1e-4, 1e-3]\n")
    for more in ([], ["--jobs", 2]):
        out = directory / f"sweep{len(more)}"
        succeed("sweep", grid, "--output", out, *more)
        metrics = [metrics_of(run) for run in sorted(out.glob("lr=*"))]
        # Two timings would not agree to the last digit.
        times = {each["baseline_ngram_runtime"] for each in metrics}
        assert len(metrics) == 2 and len(times) == 1 and baselines(metrics[0]) == baselines(metrics[1]), metrics


def test_signals_leave_it_whole(directory):
    """Ctrl-C goes to all processes of a terminal; a completed run still has its baseline."""
    need(*MODELS)
    out = directory / "run"
    process = subprocess.Popen([BINARY, "train", *map(str, ARGUMENTS), "--max-steps", "1", "--output", str(out)],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.time() + PATIENCE
    while not (out / "run.json").exists() and process.poll() is None and time.time() < deadline:
        if (out / "model" / "config.json").exists():
            os.killpg(process.pid, signal.SIGINT)
            break
        time.sleep(0.0005)
    process.communicate(timeout=PATIENCE)
    if process.returncode == 0:  # otherwise it came before the last step
        assert "baseline_ngram_accuracy" in metrics_of(out)


def test_questions_have_none(directory):
    need(*MODELS)
    out = trained(directory, "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--max-eval-samples", 8)
    assert not baselines(metrics_of(out))
    fail(2, "train", "--model", QA_MODEL, "--train", SQUAD, "--no-ngram-baseline", "--output", directory / "x",
         words=["--no-ngram-baseline", "classification"])


def test_check_finds_what_is_wrong(directory):
    rows = [(f"item {i} {'x' if i % 2 else 'y'}", "odd" if i % 2 else "even", f"code {i % 2}") for i in range(200)]
    train = write_rows(directory / "train.csv", rows + [("item 3 x", "even", "code 0"), ("lonely", "single", "q")],
                       ("text", "label", "code"))
    dev = write_rows(directory / "dev.csv", rows[:30] + [(f"new {i} x", "odd", "code 1") for i in range(20)],
                     ("text", "label", "code"))
    result = succeed("check", "--train", train, "--eval", dev, "--json")
    found = json.loads(result.out)
    kinds = {finding["kind"]: finding for finding in found["findings"]}
    assert kinds["overlap"]["count"] == 30 and kinds["contradictions"]["count"] == 2, kinds
    assert kinds["rare-labels"]["count"] == 1 and kinds["telling-column"]["level"] == "note", kinds
    assert kinds["label-shift"]["level"] == "warning", kinds
    assert found["baseline_ngram_accuracy"] > 0.9 and found["train_rows"] == 202 and found["eval_rows"] == 50, found
    text = succeed("check", "--train", train, "--eval", dev, "--no-ngram-baseline")
    assert "majority" in text.out and "overlap" not in text.out and text.out.count("warning: ") >= 3, text
    assert text.out == succeed("check", "--train", train, "--eval", dev, "--no-ngram-baseline").out
    # A text with several labels counts for each; one row in a thousand is only a note.
    many = write_rows(directory / "many.csv", [(f"text {i}", "a" if i % 2 else "b") for i in range(1000)] + [("foo", "a")]
                      + [("foo", "b")] * 9)
    few = write_rows(directory / "few.csv", [(f"other {i}", "a" if i % 2 else "b") for i in range(2000)] + [("foo", "b")])
    overlap = next(f for f in json.loads(succeed("check", "--train", many, "--eval", few, "--no-ngram-baseline", "--json").out)[
        "findings"] if f["kind"] == "overlap")
    assert overlap["level"] == "note" and "too, 1 with the same label" in overlap["text"], overlap
    # Labels that people would regard as equal.
    alike = write_rows(directory / "alike.csv", [(f"text {i}", ["Food", "food ", "fo od", "Rent"][i % 4]) for i in range(80)])
    found = succeed("check", "--train", alike, "--no-ngram-baseline").out
    assert "2 classes differ only in case, white space" in found and "'Food' and 'food '" in found, found
    # With the option, warnings alone determine the exit code.
    plain = ["check", "--train", train, "--eval", dev, "--no-ngram-baseline", "--fail-on"]
    assert succeed(*plain, "error").out == text.out
    failed = run(*plain, "warning")
    assert failed.code == 7 and failed.out == text.out, failed
    fail(2, *plain, "note", words=["--fail-on", "error"])


def test_check_of_long_labels(directory):
    """Searching a label in its text takes linear time, even if the text contains all its prefixes."""
    def seconds_of(half):
        long = write_rows(directory / "long.csv", [(f"{'a' * 2 * half} {i}", "a" * half + "bc"[i % 2]) for i in range(8)])
        start = computing_seconds()
        succeed("check", "--train", long, "--no-ngram-baseline")
        return computing_seconds() - start

    assert seconds_of(400_000) < 8 * seconds_of(100_000) + 0.3, "16 times as long where time grows with the square"


def test_check_of_numbers_and_sets(directory):
    def findings(*arguments):
        found = json.loads(succeed("check", *arguments, "--json").out)["findings"]
        return {finding["kind"]: finding for finding in found}

    train = write_rows(directory / "train.csv", [(f"thing {i % 50}", i % 7 + i % 2) for i in range(200)])
    near = write_rows(directory / "near.csv", [(f"new {i}", i % 7 + i % 2) for i in range(90)])
    far = write_rows(directory / "far.csv", [(f"new {i}", 5 + i % 7) for i in range(90)])
    assert "label-shift" not in findings("--train", train, "--eval", near, "--regression")
    shifted = findings("--train", train, "--eval", far, "--regression")
    assert "label-shift" in shifted, shifted
    # Each text has four different numbers: no model gets nearer than their spread.
    values = [[i % 7 + i % 2 for i in range(text, 200, 50)] for text in range(50)]
    least = sum(sum((v - sum(of) / 4) ** 2 for v in of) for of in values) / 200
    assert f"at least {least:.4f}" in shifted["contradictions"]["text"], (least, shifted)
    # Equal numbers are equal, however they are written and their mean is rounded.
    equal = write_rows(directory / "equal.csv", [("same", "0.9")] * 3 + [("as", "3"), ("as", "3.0")]
                       + [(f"other {i}", i % 5) for i in range(9)])
    assert "contradictions" not in findings("--train", equal, "--regression")
    assert "label-shift" not in findings("--train", write_rows(directory / "tenth.csv", [(f"a {i}", "0.1") for i in range(50)]),
                                         "--eval", write_rows(directory / "tenths.csv", [(f"b {i}", "0.1") for i in range(37)]),
                                         "--regression")
    written = [write_rows(directory / f"{name}.csv", [("same", value)] + [(f"{name} {i}", i) for i in range(5)])
               for name, value in (("one", "1"), ("point", "1.0"))]
    overlap = findings("--train", written[0], "--eval", written[1], "--regression")["overlap"]["text"]
    assert "too, 1 with the same label" in overlap, overlap
    constant = write_rows(directory / "constant.csv", [(f"thing {i}", 3) for i in range(50)])
    assert findings("--train", constant, "--regression")["one-value"]["level"] == "warning"
    # A mean that is rounded says nothing of how far the numbers lie apart.
    tenths = write_rows(directory / "tenths.csv", [(f"thing {i}", 0.1) for i in range(50)])
    assert "coarse-numbers" not in findings("--train", tenths, "--regression")
    for number, words in ((0.1, True), (None, False)):
        rows = write_rows(directory / "numbers.csv", [(f"thing {i}", number or 1 + i) for i in range(50)])
        said = succeed("train", "--model", MODEL, "--reinit-head", "--regression", "--train", rows, "--max-steps", 1,
                       "--no-ngram-baseline", "--threads", 1, "--overwrite", "--output", directory / "numbers").err
        assert ("warning: every training row has the number 0.1000: there is nothing to learn" in said) == words, said
    # Numbers beyond single precision.
    large = ["--train", write_rows(directory / "large.csv", [(f"thing {i}", "1e308" if i % 2 else "-1e308") for i in range(50)]),
             "--regression"]
    assert findings(*large)["large-numbers"] == {
        "level": "error", "kind": "large-numbers", "count": 50,
        "text": "50 rows have numbers beyond 1e30, of which training takes none: divide all by a constant"}
    seconds = write_rows(directory / "seconds.csv", [(f"thing {i}", 1700000000 + i) for i in range(50)])
    assert "128.0000 apart" in findings("--train", seconds, "--regression")["coarse-numbers"]["text"]
    assert "coarse-numbers" not in findings("--train", write_rows(directory / "days.csv", [(f"thing {i}", 20000 + i) for i in
                                                                                          range(50)]), "--regression")
    assert not any(word in succeed("check", *large).out for word in ("inf", "nan"))
    # The order of a row's labels does not matter.
    sets = write_rows(directory / "sets.csv", [("same text", "x|y" if i % 2 else "y|x") for i in range(20)]
                      + [(f"other {i}", "x") for i in range(100)])
    assert "contradictions" not in findings("--train", sets, "--multi-label", "|")
    # Rows that train refuses are an error here too.
    amounts = write_rows(directory / "amounts.csv", [(f"text {i}", f"{i}.{i % 90 + 10}") for i in range(60)])
    assert findings("--train", amounts)["amounts"]["level"] == "error"
    fail(2, "check", "--train", train, "--regression", "--eval-fraction", 1.5, words=["--eval-fraction 1.5", "below 1"])


def test_the_linear_model_of_numbers_is_trained_to_its_end(directory):
    """One text with many numbers: their mean has the smallest error, and one pass of the solver is far from it."""
    rows = [("same text", i) for i in range(54)]
    found = json.loads(succeed("check", "--train", write_rows(directory / "a.csv", rows), "--eval",
                               write_rows(directory / "b.csv", rows), "--regression", "--json").out)
    assert found["baseline_ngram_mse"] < 1.02 * found["baseline_majority_mse"], found


def test_check_of_the_samples(directory):
    result = succeed("check", "--train", SAMPLES / "toronto-train.csv", "--eval", SAMPLES / "toronto-dev.csv",
                     "--label-column", "category", "--text-column", "text", "--json")
    found = json.loads(result.out)
    # scikit-learn's vectorizer and LinearSVC with the same settings reach 84.0 %.
    assert abs(found["baseline_ngram_accuracy"] - 0.84) < 0.003, found
    held_out = json.loads(succeed("check", "--train", SAMPLES / "toronto-train.csv", "--label-column", "category",
                                  "--text-column", "text", "--json").out)
    assert held_out["held_out_rows"] == 400 and held_out["baseline_ngram_accuracy"] > 0.75, held_out


def test_check_counts_what_is_cut(directory):
    need(*MODELS)
    check = ["check", "--train", TRAIN, "--label-column", "category", "--model", MODEL, "--max-length", 8,
             "--no-ngram-baseline"]
    text = succeed(*check)
    assert "are cut at 8 tokens" in text.out, text
    windows = [*check, "--long-text", "windows", "--window-stride", 2]
    assert "cut at" not in succeed(*windows).out
    # As many as train warns about.
    cut = [*windows, "--max-windows", 2]
    found = json.loads(succeed(*cut, "--json").out)["findings"]
    count = next(finding["count"] for finding in found if finding["kind"] == "cut-texts")
    log = succeed("train", *cut[1:], "--max-steps", 1, "--output", directory / "run").err
    assert f", {count} cut at 2 windows of 8 tokens" in log, (count, log)


def test_check_refuses_what_it_cannot_read(directory):
    fail(3, "check", "--train", directory / "absent.csv", words=["absent.csv"])
    rows = write_rows(directory / "rows.csv", [("a", "x"), ("b", "y")])
    fail(3, "check", "--train", rows, "--label-column", "kind", words=["'kind'", "--label-column"])
    fail(2, "check", words=["--train"])
    fail(2, "check", "--train", rows, "--max-length", 8, words=["--max-length", "--model"])
    fail(2, "check", "--train", rows, "--long-text", "windows", words=["--long-text", "--model"])
    fail(2, "check", "--train", rows, "--eval", rows, "--eval-fraction", "0.1", words=["exclude"])
    fail(2, "check", "--train", rows, "--epochs", 3, words=["--epochs"])
    if SQUAD.exists():
        fail(2, "check", "--train", SQUAD, words=["questions"])
    # Rows that training would refuse are findings.
    one = write_rows(directory / "one.csv", [("a", "x"), ("b", "x"), ("", "x")])
    result = succeed("check", "--train", one)
    assert "error: " in result.out and "'text' is empty" in result.out and "1 class;" in result.out, result
    assert run("check", "--train", one, "--fail-on", "error").code == 7


main(globals())
