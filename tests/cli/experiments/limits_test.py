"""Extreme reports and sweeps: pipes as data, very many names, very large numbers."""
import json
import os
import re
import resource
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN, write
from harness import PATIENCE, facts_of, fail, main, metrics_of, need, succeed
from report_pages import DATA, Page, labelled, report


def altered(run, metrics=(), **files):
    """A copy of `run` with other metrics and files (`_` stands for the dot in names)."""
    for name, text in files.items():
        (run / name.replace("_", ".")).write_text(text)
    (run / "metrics.json").write_text(json.dumps({**metrics_of(run), **dict(metrics)}))
    if "predictions_csv" in files:  # report compares the number of rows
        rows = files["predictions_csv"].count("\n") - 1
        (run / "run.json").write_text(json.dumps({**facts_of(run), "eval_rows": str(rows)}))
    return run


def config_of(run, *changes):
    text = (run / "config.toml").read_text()
    for old, new in changes:
        assert old in text, (old, text)
        text = text.replace(old, new)
    return text


def test_data_that_is_a_pipe(directory):
    """A pipe that the run was once given by name has no writer any more."""
    need(DATA)
    pipe = directory / "questions.json"
    os.mkfifo(pipe)
    run = labelled(directory / "a")
    config = config_of(run, ('"classification"', '"qa"'), (str(EVAL), str(pipe)))
    altered(run, {"eval_f1": 100}, config_toml=config, predictions_json='{"q": "a"}')
    assert "questions.json: is a pipe, a file is needed" in succeed("report", run, "--output", "-").out
    other = directory / "b"
    shutil.copytree(run, other)
    altered(other, {"eval_f1": 50}, config_toml=config_of(run, ("lr = 0.003", "lr = 0.002")))
    assert "questions.json: is a pipe, a file is needed" in succeed("compare", run, other, "--metric", "eval_f1").out
    altered(other, config_toml=config_of(other, (str(pipe), "/dev/stdin")))
    assert "/dev/stdin: is a pipe, a file is needed" in succeed("report", other, "--output", "-", stdin="{}").out


def test_row_of_many_labels(directory):
    need(DATA)
    run = labelled(directory / "a")
    count = 3000
    row = [";".join(f"{kind}{i}" for i in range(count)) for kind in "ab"] + [";".join(["0.9"] * count)]
    altered(run, {"eval_accuracy": 0}, config_toml=config_of(run, ("regression = false", 'regression = false\nmulti-label = ";"')),
            predictions_csv=f"text,category,labels,probabilities\nt,{','.join(row)}\nt,a1,b1,0.9\n",
            per_class_csv="label,precision,recall,f1,support\na0,1,1,1,1\n")
    text = succeed("report", run, "--output", "-").out
    page = Page(text)
    assert page.table("The most confused labels") == [["a1", "b1", "1", "0.5"]], page.table("The most confused labels")
    assert "Without 1 row of more than 64 pairs." in text


def test_extreme_numbers(directory):
    """All coordinates are numbers inside the picture."""
    need(DATA)
    run = labelled(directory / "a")
    log = run / "metrics.jsonl"
    for text in ('{"step":5e-324,"loss":5e-324}\n' * 3, "".join(f'{{"step":{i},"loss":1.7e308}}\n' for i in range(1, 500)),
                 '{"step":1,"loss":1.7e308}\n{"step":2,"loss":-1.7e308}\n'):
        log.write_text(text)
        page, _ = report(directory, run)
        for tag, attributes in page.elements:
            for name in {"x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height", "points"} & set(attributes):
                for number in re.split("[ ,]", attributes[name]):
                    assert number in ("100%",) or abs(float(number)) < 10_000, (tag, name, attributes[name])
    log.unlink()
    values = config_of(run, ("regression = false", "regression = true"))
    altered(run, {"eval_mse": 0}, config_toml=values, predictions_csv="text,category,label\n" + "t,5e-324,0\n" * 10)
    assert not re.search(r'"-?(nan|inf)|[ ,]-?(nan|inf)[ ,"]', succeed("report", run, "--output", "-").out)


def test_many_metrics(directory):
    need(DATA)
    run = labelled(directory / "a")
    log = run / "metrics.jsonl"
    for steps, table in (((1,), "Measured once"), ((1, 2), "Loss of training")):
        log.write_text("".join(f'{{"step":{step},"eval_{i}":1}}\n' for step in steps for i in range(40_000))
                       + "".join(f'{{"step":{step},"loss":1}}\n' for step in steps))
        page, text = report(directory, run)
        assert page.table(table) and "39,901 more metrics are not drawn." in text and len(text.encode()) < 3_000_000


def test_range_of_one_value(directory):
    """The error comes quickly, however many draws are requested."""
    need(DATA)
    grid = write(directory / "grid.toml", f"model = '{MODEL}'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\n"
                 "max-steps = 12\n[sweep]\nlr = { min = 1e-3, max = 1.0001e-3, draws = 10000 }\n")
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    fail(2, "sweep", grid, "--output",
         directory / "out", "--dry-run", words=["lr: its range has only 1 value for 10,000 draws"])
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began < 10


main(globals())
