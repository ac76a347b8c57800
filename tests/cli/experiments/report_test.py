"""report: one page without network and script, whose tables are the numbers of the run's files."""
import csv
import html
import json
import math
import random
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, tagged_rows, write
from harness import PATIENCE, Skip, facts_of, fail, main, metrics_of, need, steps_of, succeed
from report_pages import DATA, in_words, labelled, report, train

HOSTILE = ['<script>alert(1)</script>', '"><img src=http://example.invalid/x onerror=alert(1)>', "a&b'c", "\u202eevil\u200f",
           "tab\tand\x01bell\x07", "שלום עולם", "W" * 90, "W" * 16]


def near(shown, value):
    return math.isclose(float(shown), value, rel_tol=1e-5, abs_tol=1e-12)


def check_curves_and_facts(page, run):
    steps = steps_of(run)
    for caption, name in (("Loss of training", "loss"), ("Learning rate", "lr")):
        rows = page.table(caption)
        assert len(rows) == len(steps) and all(row[0] == run.name for row in rows), caption
        for row, step in zip(rows, steps):
            assert int(row[1]) == step["step"] and near(row[2], step[name]), (row, step)
    shown = {name: float(value) for name, value in page.table("Metrics")}
    assert shown == metrics_of(run), "to the last digit"
    facts = dict(page.table("Facts"))
    assert facts == facts_of(run)
    options = dict(page.table("Options other than the defaults"))
    assert "max-steps" in options and "dropout" not in options and "no-shuffle" not in options, options
    assert "batch-size" in options and not {"warmup-ratio", "layer-lr-decay"} & set(options), options


def predictions_of(run):
    with open(run / "predictions.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_labels(directory):
    need(DATA)
    run = labelled(directory / "a")
    page, text = report(directory, run)
    check_curves_and_facts(page, run)
    rows = predictions_of(run)
    with open(run / "confusion.csv", encoding="utf-8", newline="") as file:
        confusion = list(csv.reader(file))
    index = {name: i for i, name in enumerate(confusion[0])}
    pairs = Counter((row["category"], row["label"]) for row in rows)
    for truth, predicted, count, share in page.table("The most confused labels"):
        assert pairs[truth, predicted] == int(count) and truth != predicted
        assert near(share, int(count) / sum(row["category"] == truth for row in rows))
    assert sum(int(row[2]) for row in page.table("The most confused labels")) == sum(
        row["category"] != row["label"] for row in rows)
    matrix = page.tables["Confusion matrix"][0]
    for row in matrix[1:]:
        for name, count in zip(matrix[0][1:], row[1:]):
            assert int(confusion[index[row[0]]][index[name]]) == int(count) == pairs[row[0], name]
    with open(run / "per_class.csv", encoding="utf-8", newline="") as file:
        scores = {row["label"]: row for row in csv.DictReader(file)}
    for label, precision, recall, f1, support in page.table("F1 of each label, the worst first"):
        expected = scores[label]
        assert near(precision, float(expected["precision"])) and near(recall, float(expected["recall"]))
        assert near(f1, float(expected["f1"])) and support == expected["support"]
    bins = page.table("Calibration")
    for i, (_, _, count, right, mean, share) in enumerate(bins):
        inside = [row for row in rows if min(9, int(float(row["probability"]) * 10)) == i]
        assert int(count) == len(inside) and int(right) == sum(row["category"] == row["label"] for row in inside)
        assert not inside or near(mean, sum(float(row["probability"]) for row in inside) / len(inside))
    for least, share, right, count in page.table("Accuracy of the surest part"):
        sure = [row for row in rows if float(row["probability"]) >= float(least)]
        assert int(count) == len(sure) and near(share, len(sure) / len(rows)), (least, count)
        assert near(right, sum(row["category"] == row["label"] for row in sure) / len(sure)), (least, right)
    head = text[text.index("<h1>"):text.index("<details")]
    assert f"<h1>{100 * metrics_of(run)['eval_accuracy']:.1f} % of 500 held-out rows right</h1>" in head, head
    for words in (MODEL.name, TRAIN.name, EVAL.name, in_words(facts_of(run)["ended"]), " can be automatic"):
        assert words in head, words
    for name, value in page.table("Accuracy beside simpler answers"):
        metric = {"this": "eval", "BERT": "baseline_unmixed", "words": "baseline_ngram", "commonest": "baseline_majority"}
        assert near(value, metrics_of(run)[metric[name.split()[0]] + "_accuracy"]), name
    lengths = page.table("Length of the texts")
    assert sum(int(row[2]) + int(row[3]) for row in lengths) == len(rows)
    # The chart says that it is uncalibrated, and then no threshold is named: predict's is another one. Else it is.
    metrics = metrics_of(run)
    assert metrics["eval_temperature"] != 1 and "This is uncalibrated" in text and "(probability at least" not in text, metrics
    (directory / "cold").mkdir()
    shutil.copytree(run, directory / "cold/a")
    (directory / "cold/a/metrics.json").write_text(json.dumps({**metrics, "eval_temperature": 1}))
    cold = report(directory, directory / "cold/a")[1]
    named = re.search(r"The dot: .* \(probability at least ([\d.e-]+)\)", cold)
    assert named and len(named[1]) <= 6 and "uncalibrated" not in cold, named
    sure = [row["category"] == row["label"] for row in rows if float(row["probability"]) >= float(named[1])]
    assert sum(sure) >= 0.95 * len(sure) > 0, named
    worst = page.table("The worst errors")
    surest = sorted((float(row["probability"]) for row in rows if row["category"] != row["label"]), reverse=True)
    assert near(worst[0][-1], surest[0]) and len(worst) <= 50
    for number, _, text, truth, predicted, _ in worst:
        row = rows[int(number) - 1]
        assert (row["text"], row["category"], row["label"]) == (text, truth, predicted)


def test_runs_laid_over_each_other(directory):
    need(DATA)
    for seed in (1, 2):
        labelled(directory / "runs" / f"seed-{seed}", "--seed", seed)
    page, text = report(directory, directory / "runs")
    values = [metrics_of(directory / f"runs/seed-{seed}")["eval_accuracy"] for seed in (1, 2)]
    (_, mean, *_), = page.table("Settings")
    mean, _, deviation = mean.partition(" ± ")
    assert near(mean, statistics.mean(values)) and near(deviation, statistics.stdev(values)), (mean, deviation, values)
    assert text.count("class=\"run\"") == 2 and {row[0] for row in page.table("Loss of training")} == {"seed-1", "seed-2"}
    overview = page.tables["Runs"][0]
    assert [row[0] for row in overview[1:]] == ["seed-1", "seed-2"]
    column = overview[0].index("eval_accuracy")
    for row in overview[1:]:
        assert near(row[column], metrics_of(directory / "runs" / row[0])["eval_accuracy"])


def test_other_tasks(directory):
    need(DATA, "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    data = tagged_rows(directory / "d.csv")
    rows = ["--train", data, "--eval", data, "--reinit-head", "--max-steps", 6, "--text-column", "text", "--lr", "1e-3"]
    values = train(directory / "values", *rows, "--regression", "--label-column", "number")
    page, text = report(directory, values)
    check_curves_and_facts(page, values)
    found = metrics_of(values)
    assert [float(value) for _, value in page.table("Typical error (RMSE) beside simpler answers, smaller is better")] == [
        math.sqrt(found[name]) for name in ("eval_mse", "baseline_ngram_mse", "baseline_majority_mse")]
    assert "<h1>Typical error (RMSE) " in text
    errors = sorted((abs(float(row["label"]) - float(row["number"])) for row in predictions_of(values)), reverse=True)
    assert near(abs(float(page.table("The largest errors")[0][-1])), errors[0])
    assert sum(int(row[2]) for row in page.table("Predicted and true values")) == len(errors)
    labels = train(directory / "labels", *rows, "--multi-label", ";", "--label-column", "tags")
    page, text = report(directory, labels)
    wrong = [row for row in predictions_of(labels) if set(row["tags"].split(";")) != set(row["label"].split(";"))]
    assert f"{len(wrong)} of 80 rows are wrong" in text
    assert "No chart of calibration: " in text and "Calibration" not in page.tables and "probability at least" not in text
    with open(labels / "confusion.csv", encoding="utf-8", newline="") as file:
        counts = {row["label"]: row for row in csv.DictReader(file)}
    for label, true, predicted, both in page.table("How often each label occurs"):
        assert int(counts[label]["true_positives"]) == int(both)
        assert int(counts[label]["false_negatives"]) == int(true) - int(both)
        assert int(counts[label]["false_positives"]) == int(predicted) - int(both)
    answers = train(directory / "qa", "--train", SQUAD, "--eval", SQUAD, "--max-eval-samples", 40, "--max-steps", 4,
                    "--batch-size", 8, "--lr", "1e-3", model=QA_MODEL)
    page, text = report(directory, answers)
    check_curves_and_facts(page, answers)
    predicted = json.loads((answers / "predictions.json").read_text())
    histogram = page.table("F1 of the answers")
    assert sum(int(row[2]) for row in histogram) == round(metrics_of(answers)["eval_exact_match"] * 40 / 100)
    assert sum(int(row[2]) + int(row[3]) for row in histogram) == len(predicted) == 40
    for identity, _, gold, answer, _, probability, _ in page.table("The worst answers"):
        assert predicted[identity] == answer and gold, identity
        best = json.loads((answers / "nbest_predictions.json").read_text())[identity][0]
        assert near(probability, best["probability"])
    # A damaged answers file, however large, is named.
    list_file = answers / "nbest_predictions.json"
    whole = list_file.read_text()
    for damage in ("NaN", '"abc"', "7"):
        list_file.write_text(re.sub(r'"probability": ?[^,}]+', f'"probability": {damage}', whole))
        fail(4, "report", answers, "--output", "-", words=["nbest_predictions.json: is damaged", "restore the file"])
    with open(list_file, "r+b") as file:
        file.truncate(20 << 30)
    fail(4, "report", answers, "--output", "-", words=["nbest_predictions.json: is damaged", "restore the file"])
    list_file.unlink()
    assert "No calibration: " in succeed("report", answers, "--output", "-").out
    file = answers / "predictions.json"
    file.write_text(json.dumps(predicted)[:-9])
    fail(4, "report", answers, "--output", "-", words=["predictions.json: not JSON", "restore the file"])
    # With predictions of other data, or none, a sentence replaces the plots.
    (answers / "predictions.json").write_text(json.dumps({key: "x" for key in predicted}))
    assert "its predictions give eval_f1" in report(directory, answers)[1]
    (answers / "predictions.json").unlink()
    assert "predictions.json" in report(directory, answers)[1]


def hostile_run(directory):
    """A finished run with arbitrary texts in its files."""
    run = labelled(directory / "<b>&run")
    draw = random.Random(5)
    with open(run / "predictions.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "category", "label", "probability"])
        right = 0
        for i in range(300):
            truth, predicted = draw.choice(HOSTILE), draw.choice(HOSTILE)
            right += truth == predicted
            rows.writerow([draw.choice(HOSTILE) * draw.randint(1, 300), truth, predicted, draw.random()])
    metrics = metrics_of(run)
    metrics["eval_accuracy"] = right / 300
    metrics["<i>metric</i>"] = 1
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "run.json").write_text(json.dumps({**facts_of(run), "eval_rows": "300", "model": "<script>x</script>\u202e"}))
    return run


def test_hostile_texts(directory):
    need(DATA)
    run = hostile_run(directory)
    page, text = report(directory, run)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text and "\\u202eevil" in text and "\\x07" in text and "שלום" in text
    assert dict(page.table("Metrics"))["<i>metric</i>"] == "1"


def test_many_labels(directory):
    need(DATA)
    run = labelled(directory / "a")
    draw = random.Random(7)
    right = 0
    with open(run / "predictions.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "category", "label", "probability"])
        for i in range(100_000):
            truth = draw.randrange(300)
            predicted = truth if draw.random() < 0.8 else (truth + draw.randrange(3)) % 300
            right += truth == predicted
            rows.writerow([f"SHOP {draw.randrange(10**6)} PURCHASE", f"label {truth}", f"label {predicted}",
                           draw.random()])
    metrics = metrics_of(run)
    metrics["eval_accuracy"] = right / 100_000
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "run.json").write_text(json.dumps({**facts_of(run), "eval_rows": "100000"}))
    page, text = report(directory, run)
    assert len(text.encode()) < 3_000_000
    assert len(page.table("Confusion matrix of the 30 labels with the most errors")) == 30
    counts = [int(row[2]) for row in page.table("The most confused labels")]
    assert counts == sorted(counts, reverse=True)


def test_where_it_writes(directory):
    need(DATA)
    run = labelled(directory / "a")
    out = directory / "r.html"
    out.write_text("mine")
    fail(2, "report", run, "--output", out, words=["r.html", "not a report of finetune"])
    fail(2, "report", run, "--output", out, "--overwrite", words=["not a report of finetune"])
    assert out.read_text() == "mine"
    fail(2, "report", run, "--output", run / "metrics.json", "--overwrite", words=["metrics.json"])
    fail(2, "report", run, "--output", directory, words=["is a directory"])
    fail(2, "report", run, "--output", "", words=["--output: its value is empty"])
    (directory / "link").symlink_to(directory / "absent")
    fail(2, "report", run, "--output", directory / "link", "--overwrite", words=["symbolic link"])
    fail(4, "report", run, "--output", directory / "absent" / "r.html", words=["absent"])
    fail(4, "report", directory / "absent", "--output", out.with_suffix(".new"), words=["no such directory"])
    fail(2, "report", run, run, "--output", out.with_suffix(".new"), words=["twice"])
    fail(2, "report", words=["required"])
    assert not list(directory.glob("*.new*"))
    out.unlink()
    succeed("report", run, "--output", out)
    fail(2, "report", run, "--output", out, words=["--overwrite"])
    succeed("report", run, "--output", out, "--overwrite")
    # The default output is in the working directory.
    succeed("report", run, cwd=directory)
    assert (directory / "report.html").read_bytes() == out.read_bytes()
    # Unfinished runs are left out; damaged ones are an error.
    unfinished = directory / "b"
    shutil.copytree(run, unfinished)
    (unfinished / "metrics.json").unlink()
    assert "left out" in succeed("report", run, unfinished, "--output", out, "--overwrite").err
    (run / "metrics.jsonl").unlink()
    (run / "predictions.csv").unlink()
    assert "not shown" in succeed("report", run, "--output", "-").out
    (run / "run.json").write_text("[]")
    fail(4, "report", run, "--output", "-", words=["run.json"])


def test_damaged_curves_are_named(directory):
    need(DATA)
    run = labelled(directory / "a")
    log = run / "metrics.jsonl"
    whole = log.read_text().splitlines(True)
    steps = int(metrics_of(run)["train_steps"])
    for text, words in (("".join(whole[:2]) + "\0\0\n" + "".join(whole[2:]), "1 line is damaged and not drawn"),
                        ("".join(whole[:2]), f"it ends at step 2 of {steps}"), ("", "there are no training steps in it"),
                        (None, "there are no training steps in it")):
        log.unlink()
        if text is not None:
            log.write_text(text)
        result = succeed("report", run, "--output", "-")
        assert f"metrics.jsonl: {words}" in result.err and "warning" in result.err, (words, result.err)
        assert f"are not whole. Of its metrics.jsonl: {words}." in result.out, words
    log.write_text("".join(whole))
    result = succeed("report", run, "--output", "-")
    assert "not whole" not in result.out and result.err == "", result.err


def test_damaged_predictions_are_an_error(directory):
    need(DATA)
    run, twin = labelled(directory / "a"), labelled(directory / "b", "--lr", "1e-4")
    file = run / "predictions.csv"
    whole = file.read_bytes()
    lines = whole.splitlines(True)
    rows = len(lines) - 1
    value = lines[-1].rsplit(b",", 1)[1].strip()  # of one row alone
    assert whole.count(b"," + value) == 1, value
    latin = lines[:3] + [b"caf\xe9," + lines[3]] + lines[4:]
    for content, words in ((b"", "is empty"), (b"text\n", "holds no rows"),
                           (b"".join(lines[:-3]), f"has {rows - 3} rows, but the run evaluated {rows}; the file was cut short"),
                           (whole + lines[-1], f"has {rows + 1} rows, but the run evaluated {rows}; the file was changed"),
                           (whole[:-len(lines[-1]) + 3], "expected"), (b"".join(latin), "not UTF-8"),
                           *((whole.replace(b"," + value, b"," + bad.encode()), f"predictions.csv:{rows + 1}: '{bad}' is not a probability")
                             for bad in ("abc", "nan", "1.5", "-0.5"))):
        file.write_bytes(content)
        for command in (["report", run, "--output", "-"], ["compare", run, twin]):
            error = fail(4, *command, words=["predictions.csv", words, "restore the file, or leave the run out"])
            assert "--" not in error, error
    file.write_bytes(whole)
    succeed("compare", run, twin)


def test_the_best_run_is_open(directory):
    need(DATA)
    runs = [train(directory / f"{i}", "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 45,
                  "--no-ngram-baseline", "--lr", lr) for i, lr in enumerate(("1e-9", "3e-3", "1e-8"))]
    values = [metrics_of(run)["eval_accuracy"] for run in runs]
    assert values[1] > max(values[0], values[2]), values
    text = succeed("report", directory, "--output", "-").out
    assert re.findall(r'<section id="run-(\d)">\n<details class="run" open>', text) == ["2"], "the best alone"
    assert text.count("<strong>best eval_accuracy</strong>") == 2, "in the list and in its own part"
    assert '<a href="#run-2"><bdi>1</bdi></a> <strong>best' in text


def test_links_are_not_followed(directory):
    need(DATA)
    secret = write(directory / "secret.csv", "text,category,label,probability\nsecret,a,a,0.5\n")
    for name in ("predictions.csv", "per_class.csv", "metrics.jsonl", "config.toml", "run.json", "metrics.json"):
        run = labelled(directory / f"{name}-run")
        (run / name).unlink()
        (run / name).symlink_to(secret)
        for command in ("report", "compare"):
            fail(4, command, run, *(["--output", "-"] if command == "report" else []),
                 words=[name, "damaged" if name == "config.toml" else "symbolic link"])


def browse(directory, page, *options):
    """Opens a page in headless Chromium and returns its output and messages."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        raise Skip("there is no Chromium")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                           "--hide-scrollbars", "--window-size=1280,2000", f"--user-data-dir={directory / 'profile'}",
                           "--enable-logging=stderr", *options, page.as_uri()], capture_output=True, text=True,
                          timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout, done.stderr


def test_a_browser_asks_nobody(directory):
    need(DATA)
    page, log = directory / "page.html", directory / "log.json"
    succeed("report", hostile_run(directory), "--output", page)
    out, messages = browse(directory, page, f"--log-net-log={log}", "--dump-dom")
    assert "The worst errors" in out and "CONSOLE" not in messages, messages
    # None of the page's texts is among the addresses in the browser's log.
    assert "example.invalid" not in log.read_text(errors="replace"), "a request"


def test_nothing_overflows_in_a_browser(directory):
    """At 400, 1280 and 1920 pixels, light and dark, no element extends beyond its box, and text has contrast."""
    need(DATA)
    shutil.copytree(hostile_run(directory), directory / "runs/a")
    pages = []
    labelled(directory / "runs/b", "--lr", "1e-3")
    two = train(directory / "two", "--train", write(directory / "two.csv", "text,label\n" + 20 * "a b,0\nc d,1\na c,0\n"),
                "--reinit-head", "--eval-fraction", 0.3, "--max-steps", 2)
    for runs in (directory / "runs/b", directory / "runs", two):
        text = succeed("report", runs, "--explain", "--output", "-").out
        text, count = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        assert count == 1  # the script that measures stands outside, but may not look into a page that has a policy
        pages.append(text.replace("<details", "<details open"))
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{html.escape(text)}"></iframe>'
                     for text in pages for width in (400, 1280, 1920))
    script = (Path(__file__).with_name("report_measure.js")).read_text()
    (directory / "all.html").write_text(f"<meta charset=utf-8>{frames}<script>{script}</script>")
    grounds = set()
    for scheme in (0, 1):  # dark, light
        out, messages = browse(directory, directory / "all.html", f"--blink-settings=preferredColorScheme={scheme}",
                               "--virtual-time-budget=20000", "--dump-dom")
        found = re.search(r'<pre id="found">(.*?)</pre>', out, re.S)
        assert found, (out[-500:], messages[-1000:])
        for frame in json.loads(html.unescape(found[1])):
            assert frame["elements"] > 400 and not frame["wrong"], frame
            grounds.add(frame["ground"])
    assert len(grounds) == 2, "dark is another page than light"


main(globals())
