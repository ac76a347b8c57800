"""report: its words are true of the run, and no name sticks out or is lost."""
import csv
import json
import math
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, tagged_rows, write
from harness import facts_of, fail, main, metrics_of, need, succeed
from report_pages import DATA, in_words, labelled, report, train

LONG = "W" * 90


def test_whether_probabilities_are_calibrated(directory):
    """predictions.csv has a mix's probabilities, but not those of a temperature."""
    need(DATA)
    line = ["--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 3]
    mixed = train(directory / "mixed", *line, "--ngram-mix", "yes")
    metrics = metrics_of(mixed)
    assert metrics["eval_mix_ngrams"] > 0 and metrics["eval_ece"] == metrics["eval_ece_calibrated"], metrics
    text = report(directory, mixed)[1]
    assert "ncalibrated" not in text and "The mix with n-grams calibrates them" in text, text
    assert re.search(r"The dot: .* \(probability at least ", text) or "No part of the predictions" in text, text
    assert "<h4>The worst errors</h4>" in text, text
    raw = train(directory / "raw", *line, "--no-calibration")
    text = report(directory, raw)[1]
    assert "ncalibrated" not in text and "They are not calibrated, neither here nor in predict." in text, text
    header, *lines = tagged_rows(directory / "d.csv").read_text().splitlines(True)
    data = write(directory / "d.csv", header + "".join(4 * lines))
    rows = ["--train", data, "--eval", data, "--reinit-head", "--max-steps", 60, "--text-column", "text", "--lr", "1e-3"]
    tags = train(directory / "tags", *rows, "--multi-label", ";", "--label-column", "tags")
    assert metrics_of(tags)["eval_temperature"] != 1
    text = report(directory, tags)[1]
    assert "They are uncalibrated; predict gives calibrated ones (logits divided by " in text, text
    assert "<h4>The worst errors, with probabilities before calibration (" in text, text
    values = train(directory / "values", *rows, "--regression", "--label-column", "number")
    text = report(directory, values)[1]
    assert "calibrat" not in text[:text.index("Numbers, options and facts")], text


def test_what_a_model_is_not_better_than(directory):
    """The report and the card say what the log warns of, and nothing without it."""
    need(DATA)
    data = tagged_rows(directory / "d.csv")
    line = ["--train", data, "--eval", data, "--reinit-head", "--max-steps", 6, "--text-column", "text"]
    for name, more in (("values", ["--regression", "--label-column", "number"]),
                       ("tags", ["--multi-label", ";", "--label-column", "tags"])):
        run = train(directory / name, *line, *more)
        warned = re.search(r"warning: (.* is (?:better than|as good as) this.*?): try ", (run / "log.txt").read_text())
        card, text = (run / "model/README.md").read_text(), report(directory, run)[1]
        words = f"Beside simpler answers: {warned[1]}"
        assert '<p class="lead"><strong>' + words.replace("'", "&#39;") in text, (words, text[-3000:])
        limits = card.partition("## Limits")[2]
        assert f"\n- {words}" in limits, limits
    run = labelled(directory / "good", "--lr", "1e-3")
    metrics = metrics_of(run)
    (run / "metrics.json").write_text(json.dumps({**metrics, "eval_accuracy": 1}))
    assert "Not better than" not in succeed("report", run, "--output", "-").out


def test_several_runs_begin_with_their_results(directory):
    need(DATA)
    labelled(directory / "runs/a")
    best = labelled(directory / "runs/b", "--lr", "3e-4")
    (best / "metrics.json").write_text(json.dumps({**metrics_of(best), "eval_accuracy": 0.999}))
    head = report(directory, directory / "runs")[1].partition("<h1>")[2].partition("<h2>Settings")[0]
    for words in ("Accuracy 0.999 with lr ", "The best run is <bdi>b</bdi>", ">99.9 % of 500 held-out rows right</p>",
                  f"Model <bdi>{MODEL.name}</bdi>, trained on <bdi>{TRAIN.name}</bdi>, evaluated on <bdi>{EVAL.name}</bdi>",
                  f"Trained {in_words(facts_of(best)['ended'])} on ", "commonest label", "<th scope=\"row\" dir=\"auto\">words</th>"):
        assert head.count(words) == 1, (words, head)
    # Two seeds with the same result have no deviation to show.
    twin = directory / "twins/b"
    shutil.copytree(best, directory / "twins/a")
    shutil.copytree(best, twin)
    config = (twin / "config.toml").read_text()
    (twin / "config.toml").write_text(re.sub(r"(?m)^seed = .*", "seed = 7", config))
    text = report(directory, directory / "twins")[1]
    assert "<h1>Accuracy 0.999 over 2 runs</h1>" in text, text[text.index("<h1>"):][:300]
    # Runs of several tasks have a line each.
    data = tagged_rows(directory / "d.csv")
    values = train(directory / "values", "--train", data, "--eval", data, "--reinit-head", "--max-steps", 2, "--text-column",
                   "text", "--regression", "--label-column", "number")
    text = report(directory, best, values)[1]
    for words in ("<h1>2 runs</h1>", '<p class="lead"><bdi>b</bdi>: 99.9 % of 500 held-out rows right</p>',
                  '<p class="lead"><bdi>values</bdi>: typical error (RMSE) '):
        assert words in text, (words, text[text.index("<h1>"):][:900])


def test_a_quick_run(directory):
    """What was measured once is in a table, not a curve; the frozen features' figure is said once."""
    need(DATA)
    run = train(directory / "a", "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--recipe", "quick",
                "--ngram-mix", "yes", "--ignore-unknown-labels")
    page, text = report(directory, run)
    assert "<figcaption>Loss of training" not in text and not page.tables.get("Accuracy"), page.tables.keys()
    once = {row[2]: float(row[3]) for row in page.table("Measured once")}
    assert once["loss"] == metrics_of(run)["train_loss"] and "eval_loss" in once, once
    names = [name for name, _ in page.table("Accuracy beside simpler answers")]
    assert names == ["this model", "BERT's frozen features alone", "words", "commonest label"], names


def test_figures_have_few_digits_and_one_scale(directory):
    need(DATA, "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    data = tagged_rows(directory / "d.csv")
    tags = train(directory / "tags", "--train", data, "--eval", data, "--reinit-head", "--max-steps", 20, "--lr", "1e-3",
                 "--text-column", "text", "--multi-label", ";", "--label-column", "tags")
    shown = [row[-1] for row in report(directory, tags)[0].table("The worst errors")]
    assert any(shown) and all(re.fullmatch(r"([01]\.\d\d\d?(; )?)*", each) for each in shown), shown
    answers = train(directory / "qa", "--train", SQUAD, "--eval", SQUAD, "--max-eval-samples", 40, "--max-steps", 4,
                    "--batch-size", 8, "--lr", "1e-3", model=QA_MODEL)
    page = report(directory, answers)[0]
    assert [float(row[0]) for row in page.table("F1 of the answers")] == list(range(0, 100, 10))
    worst = [float(row[4]) for row in page.table("The worst answers")]
    right = 40 * metrics_of(answers)["eval_exact_match"]
    assert math.isclose(sum(worst) + right, 40 * metrics_of(answers)["eval_f1"], rel_tol=1e-5), worst


def test_explain_is_refused_where_predict_refuses_it(directory):
    need(DATA, "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    data = tagged_rows(directory / "d.csv")
    line = ["--train", data, "--reinit-head", "--max-steps", 1, "--text-column", "text"]
    runs = [train(directory / "values", *line, "--regression", "--label-column", "number"),
            train(directory / "tags", *line, "--multi-label", ";", "--label-column", "tags"),
            train(directory / "qa", "--train", SQUAD, "--max-steps", 1, "--batch-size", 8, model=QA_MODEL)]
    for run, words in zip(runs, ("this model gives numbers", "gives several labels a row", "trained for question answering")):
        said = fail(2, "report", run, "--explain", "--output", "-", words=["--explain", words])
        assert said == fail(2, "predict", "--model", run, "--input", data, "--output", "-", "--explain"), said


def with_names(run):
    """A run whose labels are two long names, and whose texts are short but for two."""
    names = [LONG, "a short one"]
    with open(run / "predictions.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "category", "label", "probability"])
        for i in range(300):
            rows.writerow(["x" * (300 if i < 2 else 10 + i % 20), names[i % 2], names[i % 2 if i % 3 else 0], 0.7])
    metrics = {**metrics_of(run), "eval_accuracy": 250 / 300, "train_runtime": 63.9}
    (run / "metrics.json").write_text(json.dumps(metrics))
    (run / "run.json").write_text(json.dumps({**facts_of(run), "train_rows": "12345", "eval_rows": "300"}))
    return run


def test_names_bins_and_times(directory):
    need(DATA)
    run = with_names(labelled(directory / "a"))
    page, text = report(directory, run)
    # In the picture of the matrix a long name is cut to a width that no font exceeds; its tooltip is whole.
    cut = re.findall(r'<text [^>]*textLength="220" lengthAdjust="spacingAndGlyphs"><title>(\w+)</title>W+…</text>', text)
    assert cut == [LONG, LONG], cut
    assert [row[0] for row in page.table("The most confused labels")] == ["a short one"]
    assert page.table("The most confused labels")[0][1] == LONG
    lengths = page.table("Length of the texts")
    assert lengths[-1][1] == "and more" and int(lengths[-1][0]) < 40, lengths
    assert f"<title>{lengths[-1][0]} and more: " in text
    assert "; 1 min 4 s." in text and f"Trained {in_words(facts_of(run)['ended'])} on 12,345 rows" in text, text


main(globals())
