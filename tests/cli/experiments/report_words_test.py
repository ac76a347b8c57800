"""report: its words are true of the run, and no name sticks out or is lost."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, TRAIN, tagged_rows, write
from harness import main, metrics_of, need, succeed
from report_pages import DATA, report, train

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
    values = train(directory / "values", *rows, "--regression", "--label-column", "number")
    text = report(directory, values)[1]
    assert "calibrat" not in text[:text.index("Numbers, options and facts")], text


main(globals())
