"""Evaluation of a finished model: its inputs, and that it repeats its run's final results."""
import json
import re
import resource
import signal
import subprocess
from pathlib import Path

from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN, evaluate, kill_when, predict, rows_of, squad, trained, write
from harness import BINARY, fail, main, metrics_in, metrics_of, need, succeed

DATA = "golden/trajectory-classification-train.csv"


def scores(data, *more, **options):
    return metrics_in(evaluate(data, "--label-column", "category", "--json", *more, **options).out)


def test_a_signal_leaves_nothing_behind(directory):
    need(*MODELS)
    lines = open(EVAL, encoding="utf-8").readlines()
    rows = write(directory / "rows.csv", lines[0] + "".join(lines[1:]) * 300)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        code = kill_when(lambda: list(directory.glob("out.tmp.*")), "evaluate", "--model", MODEL, "--data", rows,
                         "--label-column", "category", "--output", directory / "out", number=number)
        assert code == -number and list(directory.iterdir()) == [rows], (code, number, list(directory.iterdir()))


def test_evaluate_inputs(directory):
    need(*MODELS)
    lines = open(EVAL, encoding="utf-8").readlines()[:301]
    whole = write(directory / "e.csv", "".join(lines))
    expected = scores(whole)
    # several files are joined; a pipe works like a file
    parts = [write(directory / f"{i}.csv", lines[0] + "".join(lines[1 + 100 * i:101 + 100 * i])) for i in range(3)]
    assert scores(parts) == expected
    column = [row[1] for row in rows_of("".join(lines))]
    assert column[0] == "category"
    text = "".join(lines)
    assert scores(Path("/dev/stdin"), stdin=text) == expected
    # Only the first N usable rows.
    first = scores(parts[0])
    assert scores(parts, "--max-eval-samples", 100) == first
    bad = write(directory / "bad.csv", lines[0] + '"",x\nragged\n' + "".join(lines[1:]))
    result = evaluate(bad, "--label-column", "category", "--json", "--skip-bad-rows", "--max-eval-samples", 100)
    assert metrics_in(result.out) == first and "2 unusable rows" in result.err, result
    # Faults are found before anything is computed or written, even in the last row.
    out = directory / "out"
    base = ["evaluate", "--model", MODEL, "--label-column", "category", "--output", out, "--data"]
    fail(3, *base, bad, words=["bad.csv:2", "is empty"])
    fail(3, *base, parts[0], write(directory / "late.csv", "".join(lines) + "x,\n"), words=["late.csv:302", "empty"])
    fail(3, *base, parts[0], write(directory / "late.csv", "".join(lines) + "x,new label\n"),
         words=["late.csv:302", "'new label'", "--ignore-unknown-labels"])
    fail(3, *base, parts[0], write(directory / "other.csv", "a,b\n1,2\n"), words=["other.csv", "its columns"])
    fail(3, *base, parts[0], write(directory / "none.csv", lines[0]), words=["none.csv", "no rows"])
    fail(3, *base, write(directory / "empty.csv", ""), words=["empty.csv", "is empty"])
    fail(3, *base, write(directory / "new.csv", "text,category\nx,y\n"), "--ignore-unknown-labels", words=["new.csv"])
    fail(3, *base, directory, words=["directory"])
    assert not out.exists()


def test_too_few_descriptors_leave_nothing(directory):
    """The error names the limit, whatever could not be opened, and no directory remains."""
    need(*MODELS)
    lines = open(EVAL, encoding="utf-8").readlines()[:61]
    data, out = write(directory / "e.csv", "".join(lines)), directory / "out"
    out.mkdir()
    failed = 0
    for limit in range(6, 13):
        line = [BINARY, "evaluate", "--model", MODEL, "--data", data, "--train", data, "--label-column", "category",
                "--quiet", "--output", out / str(limit)]
        done = subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
        if done.returncode == 0:
            continue
        failed += 1
        error = done.stderr.splitlines()[-1]
        assert done.returncode == 5 and "Too many open files (see ulimit -n)" in error and "TMPDIR" not in error, done
        assert not any(name.name.startswith(f"{limit}") for name in out.iterdir()), (limit, list(out.iterdir()))
    assert failed > 0, "no limit was low enough"


def test_evaluate_replaces_nothing_unasked(directory):
    need(DATA, *MODELS)
    run_directory = trained(directory, "run", "--model", MODEL, "--train", TRAIN, "--label-column", "category")
    before = {path: path.read_bytes() for path in run_directory.rglob("*") if path.is_file()}
    base = ["evaluate", "--model", run_directory, "--data", EVAL, "--quiet", "--output"]
    for more in ([], ["--overwrite"]):
        fail(2, *base, run_directory, *more, words=["holds a run"])
        fail(2, *base, run_directory / "model", *more, words=["holds a model"])
    assert before == {path: path.read_bytes() for path in run_directory.rglob("*") if path.is_file()}
    out = directory / "out"
    out.mkdir()
    succeed(*base, out)
    first = (out / "metrics.json").read_text()
    fail(2, *base, out, words=["not empty", "--overwrite"])
    succeed(*base, out, "--overwrite")
    assert (out / "metrics.json").read_text() == first
    fail(2, *base, write(directory / "file", "x"), words=["is a file"])
    # predictions.csv of one evaluation is valid data for the next
    fail(2, "evaluate", "--model", run_directory, "--data", out / "predictions.csv", "--output", out, "--overwrite",
         words=["predictions.csv"])


def files_in(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_evaluate_replaces_the_whole_directory(directory):
    need("golden/trajectory-qa-train.json", *MODELS)
    out = directory / "out"
    questions = ["evaluate", "--model", QA_MODEL, "--data", SQUAD, "--max-eval-samples", 20, "--quiet", "--output", out]
    labels = ["evaluate", "--model", MODEL, "--data", write(directory / "v.csv", "text,label\nx,Utilities\n"), "--quiet",
              "--output", out, "--overwrite"]
    succeed(*labels)
    assert set(files_in(out)) == {"predictions.csv", "confusion.csv", "per_class.csv", "metrics.json", "evaluation.json"}
    succeed(*questions, "--overwrite")
    old = files_in(out)
    assert set(old) == {"predictions.json", "nbest_predictions.json", "metrics.json", "evaluation.json"}
    # There is room for the answers, but not for their candidates.
    limit = len(old["nbest_predictions.json"]) // 2
    assert len(old["predictions.json"]) < limit and limit < 1 << 20

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    line = [*questions, "--overwrite", "--max-length", 64]
    done = subprocess.run([BINARY, *map(str, line)], preexec_fn=limited, capture_output=True, text=True)
    assert done.returncode == 4 and "File too large" in done.stderr and done.stdout == "", done
    assert files_in(out) == old
    assert sorted(path.name for path in directory.iterdir()) == ["out", "v.csv"]
    # A directory that is not an evaluation, or holds other files, is never replaced.
    for name in ("notes.txt", "predictions.csv.bak", ".hidden"):
        write(out / name, "mine")
        fail(2, *labels, words=[f"holds '{name}'"])
        (out / name).unlink()
    for text in ("", "{}", '{"accuracy": 1}', '{"eval_loss": {"a": 1}}'):
        write(out / "metrics.json", text)
        fail(2, *labels, words=["is not an evaluation that finetune wrote"])
    (out / "metrics.json").unlink()
    fail(2, *labels, words=["is not an evaluation that finetune wrote"])
    old.pop("metrics.json")
    assert files_in(out) == old
    # An empty directory is filled.
    (directory / "empty").mkdir()
    succeed(*labels[:-2], directory / "empty")
    assert "metrics.json" in files_in(directory / "empty")


def same_metrics(out, data, *more):
    """evaluate repeats the final metrics of the run."""
    expected = {k: v for k, v in metrics_of(out).items() if k.startswith("eval_")}
    for model in (out, out / "model"):
        found = metrics_in(succeed("evaluate", "--model", model, "--data", data, "--json", *more).out)
        found = {key: value for key, value in found.items() if not key.startswith("baseline_")}
        for key, value in found.items():
            assert abs(value - expected[key]) <= 1e-6 * max(1, abs(value)), (key, value, expected)
        assert set(found) <= set(expected) and len(found) >= 3, (found, expected)


def test_evaluate_equals_the_run(directory):
    need(DATA, *MODELS)
    out = trained(directory, "single", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category")
    same_metrics(out, EVAL, "--no-calibration")  # its metrics and predictions do not use calibration
    files = directory / "files"
    result = succeed("evaluate", "--model", out, "--data", EVAL, "--output", files, "--quiet", "--no-calibration")
    # After six steps the model is worse than the majority; --quiet still prints the warning.
    assert result.err.count("\n") == 1 and result.err.startswith("warning: the majority"), result
    assert result.out.splitlines()[-1].endswith(f"{files}/metrics.json") and len(result.out.splitlines()) <= 8, result
    for name in ("predictions.csv", "confusion.csv", "per_class.csv"):
        assert (files / name).read_text() == (out / name).read_text(), name
    # the label column is known from training, so predict treats it as an ordinary column
    assert rows_of(predict(EVAL, model=out).out)[0] == ["text", "category", "label", "probability"]

    texts = ["red apple", "green pear", "blue sky", "red sky", "green sea", "blue apple"] * 4
    multi = write(directory / "m.csv", "text,label\n" + "".join(f"{t},{t.replace(' ', ';')}\n" for t in texts))
    out = trained(directory, "multi", "--model", MODEL, "--train", multi, "--eval", multi, "--multi-label", ";",
                  "--reinit-head")
    same_metrics(out, multi)
    # The values are aligned, whatever the longest name.
    lines = succeed("evaluate", "--model", out, "--data", multi).out.splitlines()
    assert lines[0].startswith("micro F1 ") and lines[0].endswith(" % with all labels right"), lines
    assert re.fullmatch(r"all \d+ metrics: with --json, or in the files of --output DIR", lines[-1]), lines
    assert rows_of(predict(multi, "--all-probabilities", model=out).out)[0][2:4] == ["predicted_label", "probability"]
    fail(2, "predict", "--model", out, "--input", multi, "--output", "-", "--top-k", 2, words=["--top-k"])

    numbers = write(directory / "n.csv", "text,label\n" + "".join(f"{t},{i % 6 / 2}\n" for i, t in enumerate(texts)))
    out = trained(directory, "number", "--model", MODEL, "--train", numbers, "--eval", numbers, "--regression",
                  "--reinit-head")
    same_metrics(out, numbers)
    rows = rows_of(predict(numbers, model=out).out)
    assert rows[0] == ["text", "label", "predicted_label"] and float(rows[1][2]) == float(rows[1][2]), rows
    fail(2, "predict", "--model", out, "--input", numbers, "--output", "-", "--top-k", 2, words=["regression"])
    # The first line is in the original unit.
    lines = succeed("evaluate", "--model", out, "--data", numbers).out.splitlines()
    rmse = float(re.match(r"typical error \(RMSE\) ([\d.]+) on ", lines[0])[1])
    mse = metrics_in(succeed("evaluate", "--model", out, "--data", numbers, "--json").out)["eval_mse"]
    assert abs(rmse - mse ** 0.5) < 5e-3 * rmse and lines[1].startswith("words "), lines
    # One row has no variance: what compares rows is left out, with the reason.
    one = write(directory / "one.csv", f"text,label\n{texts[0]},1.5\n")
    result = succeed("evaluate", "--model", out, "--data", one, "--output", directory / "one")
    assert "on 1 row; R² and correlations need two\n" in result.out, result.out
    found = {name for name in metrics_of(directory / "one") if name.startswith("eval_")}
    assert {"eval_mse", "eval_mae"} <= found and not found & {"eval_r2", "eval_pearson", "eval_spearman"}, found

    pairs = write(directory / "p.csv", "a,b,label\n" + "".join(f"{t},{t[::-1]},{i % 2}\n" for i, t in enumerate(texts)))
    out = trained(directory, "pair", "--model", MODEL, "--train", pairs, "--eval", pairs, "--text-column", "a",
                  "--text-pair-column", "b", "--reinit-head")
    same_metrics(out, pairs)


def test_evaluate_equals_the_run_of_questions(directory):
    need("golden/trajectory-qa-train.json", *MODELS)
    out = trained(directory, "v1", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD,
                  "--max-train-samples", 40, "--max-eval-samples", 20, "--batch-size", 4, "--max-length", 128,
                  "--doc-stride", 32)
    same_metrics(out, SQUAD, "--max-eval-samples", 20)
    context = "The cat sat on the mat in the old house by the river."
    mixed = [(f"q{i}", "Where did the cat sit?", context, [None, "the mat"][i % 2]) for i in range(8)]
    both = write(directory / "v2.json", squad(mixed, "v2.0"))
    v2 = trained(directory, "v2", "--task", "qa", "--model", QA_MODEL, "--train", both, "--eval", both,
                 "--batch-size", 4, "--max-length", 64, "--doc-stride", 16)
    same_metrics(v2, both)
    # The rules follow the data unless options set them.
    only_v1 = write(directory / "v1.json", squad([q for q in mixed if q[3]]))
    v1_keys = set(metrics_in(succeed("evaluate", "--model", v2, "--data", only_v1, "--json").out))
    v2_keys = set(metrics_in(succeed("evaluate", "--model", out, "--data", both, "--json", "--max-length", 64,
                                     "--doc-stride", 16).out))
    assert "eval_no_answer_f1" in v2_keys and "eval_no_answer_f1" not in v1_keys, (v1_keys, v2_keys)
    forced = succeed("evaluate", "--model", v2, "--data", only_v1, "--json", "--squad-version", 2)
    assert "eval_has_answer_f1" in forced.out, forced


def test_evaluate_bad_inputs(directory):
    need(*MODELS)
    base = ["evaluate", "--model", MODEL, "--data"]
    fail(3, *base, write(directory / "h.csv", "text,label\n"), words=["h.csv"])
    fail(3, *base, write(directory / "u.csv", "text,label\nx,zebra\n"), words=["zebra", "--ignore-unknown-labels"])
    succeed(*base, write(directory / "v.csv", "text,label\nx,zebra\ny,Utilities\n"), "--ignore-unknown-labels")
    fail(3, *base, SQUAD, words=["questions", "classification"])
    fail(3, *base, EVAL, words=["label", "category"])
    fail(3, "evaluate", "--model", QA_MODEL, "--data", EVAL, words=[EVAL.name])
    fail(2, *base, EVAL, "--label-column", "category", "--output", EVAL, words=["--output"])
    fail(2, *base, EVAL, "--label-column", "category", "--max-length", 1000, words=["--max-length"])
    fail(3, "evaluate", "--model", QA_MODEL, "--data",
         write(directory / "n.json", '{"data":[{"paragraphs":[{"context":"c","qas":[{"id":"1","question":"q"}]}]}]}'),
         words=["n.json", "answers"])


main(globals())
