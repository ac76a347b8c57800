"""What a run leaves for others: the line of --json, metrics as CSV, times, why it errs."""
import csv
import datetime
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from event_files import events
from fixtures import EVAL, MODEL, MODELS, TRAIN, kill_when, write
from harness import facts_of, fail, main, metrics_of, need, succeed
from report_pages import Page, in_words, labelled

DATA = "golden/trajectory-classification-train.csv"


def line_of(output, *more):
    return succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--output", output,
                   "--max-steps", 4, "--eval", EVAL, "--quiet", *more)


def test_json_line_identifies_the_run(directory):
    need(DATA)
    out = directory / "run"
    result = line_of(out, "--json", "--lr", "2e-4", "--seed", 7, "--batch-size", 32)
    assert result.out.count("\n") == 1, result
    line = json.loads(result.out)
    assert line["output"] == str(out) and line["task"] == "classification" and line["seed"] == 7, line
    assert line["weights_sha256"] == facts_of(out)["weights_sha256"]
    given = {"model", "train", "eval", "label-column", "max-steps", "lr", "batch-size"}
    assert set(line["options"]) == given and line["options"]["lr"] == 2e-4, line
    assert line["options"]["train"] == [str(TRAIN)] and line["options"]["max-steps"] == 4
    for name, value in metrics_of(out).items():
        assert line[name] == value, name
    # A finished run reports the same again.
    again = line_of(out, "--json", "--lr", "2e-4", "--seed", 7, "--batch-size", 32, "--resume")
    assert json.loads(again.out) == line, again
    # It does not count as another recipe if fewer options are given.
    less = json.loads(line_of(out, "--json", "--seed", 7, "--resume").out)
    assert less["options"] == {name: line["options"][name] for name in given - {"batch-size"}}, less
    evaluated = json.loads(succeed("evaluate", "--model", out, "--data", EVAL, "--label-column", "category", "--json",
                                   "--output", directory / "evaluation").out)
    digest = subprocess.run(["sha256sum", out / "model/model.safetensors"], capture_output=True, text=True).stdout
    assert evaluated["weights_sha256"] == digest.split()[0], evaluated
    assert evaluated["seed"] == 7 and evaluated["task"] == "classification", evaluated
    assert evaluated["output"] == str(directory / "evaluation"), evaluated
    assert evaluated["options"] == {"model": str(out), "data": [str(EVAL)], "label-column": "category"}, evaluated
    assert abs(evaluated["eval_accuracy"] - line["eval_accuracy"]) < 1e-12
    # The seed of a model elsewhere is unknown.
    bare = json.loads(succeed("evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--json").out)
    assert "seed" not in bare and "output" not in bare and len(bare["weights_sha256"]) == 64, bare


def in_utc(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_cards_of_numbers_and_of_several_labels(directory):
    need(*MODELS)
    data = write(directory / "d.csv", "text,n,tags\n" + "".join(f"word{i} text,{i}.5,{'a;b' if i % 3 else ''}\n" for i in range(40)))
    train = ["train", "--model", MODEL, "--reinit-head", "--train", data, "--eval-fraction", 0.3]
    out, copy = directory / "numbers", directory / "copy"
    succeed(*train, "--regression", "--label-column", "n", "--max-steps", 3, "--eval-every", 1, "--output", out)
    # The card's sum is that of the file beside it; run.json has that of the last step's tensors.
    card, found = (out / "model/README.md").read_text(), sha256(out / "model/model.safetensors")
    assert f"\nsha256 of model.safetensors: {found}\n" in card and facts_of(out)["weights_sha256"] not in card, card
    assert f"weights sha256 {found}" in (out / "log.txt").read_text()
    assert json.loads(succeed("evaluate", "--model", out, "--data", data, "--json").out)["weights_sha256"] == found
    succeed("convert", "--model", out / "model", "--dtype", "bf16", "--output", copy)
    assert (copy / "README.md").read_text() == card.replace(found, sha256(copy / "model.safetensors"))
    for words in ("\nFor regression, ", "\n| number | n |\n", "best checkpoint"):
        assert words in card, (words, card)
    succeed(*train, "--multi-label", ";", "--label-column", "tags", "--max-steps", 1, "--output", directory / "tags")
    card = (directory / "tags/model/README.md").read_text()
    assert "any number of these labels" in card and "Every text gets" not in card and "best checkpoint" not in card, card


def test_results_say_when_and_on_what_they_were_computed(directory):
    need(DATA)
    out, copy = directory / "run", directory / "copy"
    both = hashlib.sha256(f"{sha256(TRAIN)}\n{sha256(EVAL)}\n".encode()).hexdigest()
    real = {"SOURCE_DATE_EPOCH": ""}  # empty: the clock
    before = int(time.time())
    line = json.loads(succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--eval", EVAL,
                              "--max-steps", 2, "--save-every", 1, "--output", out, "--json", env=real).out)
    facts, model = facts_of(out), json.loads((out / "model/finetune.json").read_text())
    assert before <= in_utc(facts["started"]) <= in_utc(model["exported"]) <= in_utc(facts["ended"]) <= time.time(), facts
    for found in (facts, model):
        assert (found["train_rows"], found["eval_rows"], found["data_sha256"]) == ("960", "500", both), found
    assert {name: line[name] for name in ("started", "ended", "data_sha256")} == {
        name: facts[name] for name in ("started", "ended", "data_sha256")}, line
    assert (line["train_rows"], line["eval_rows"]) == (960, 500) == (metrics_of(out)["train_rows"],
                                                                    metrics_of(out)["eval_rows"]), line
    evaluated = json.loads(succeed("evaluate", "--model", out, "--data", EVAL, "--json", env=real).out)
    assert in_utc(facts["ended"]) <= in_utc(evaluated["evaluated"]) <= time.time(), evaluated
    assert evaluated["eval_rows"] == 500 and evaluated["data_sha256"] == sha256(EVAL), evaluated
    succeed("evaluate", "--model", out, "--data", EVAL, "--output", directory / "evaluation", env=real)
    found = json.loads((directory / "evaluation/evaluation.json").read_text())
    assert in_utc(facts["ended"]) <= in_utc(found["evaluated"]) <= time.time(), found
    assert (found["model"], found["data"], found["data_sha256"], found["eval_rows"]) == (
        str(out), str(EVAL), sha256(EVAL), "500"), found
    page = succeed("report", out, "--output", "-").out
    assert f"Trained {in_words(facts['ended'])} on 960 rows, evaluated on 500; data sha256 {both[:12]}" in page
    # A copy of the model has the same facts.
    succeed("convert", "--model", out / "model", "--output", copy)
    assert (copy / "finetune.json").read_bytes() == (out / "model/finetune.json").read_bytes()
    # No other file in model/ has a date: another day gives the same bytes.
    other = directory / "other"
    succeed("train", "--config", out / "config.toml", "--output", other, env={"SOURCE_DATE_EPOCH": "86400"})
    assert facts_of(other)["started"] == "1970-01-02T00:00:00Z" == facts_of(other)["ended"]
    for path in (out / "model").iterdir():
        same = path.read_bytes() == (other / "model" / path.name).read_bytes()
        assert same == (path.name not in ("finetune.json", "README.md")), path
    cards = [(folder / "README.md").read_text() for folder in (out / "model", copy, other / "model")]
    assert cards[0] == cards[1], "convert copies the card"
    days = [re.search(r" on (\d{4}-\d\d-\d\d) \(UTC\)", card)[1] for card in cards]
    assert days[0] == model["exported"][:10] and days[2] == "1970-01-02", days
    parts = [card.replace(day, "").partition("```sh") for card, day in zip(cards, days)]
    assert parts[0][0] == parts[2][0], "but for the command, a card depends on nothing but the day"
    assert (out / "predictions.csv").read_bytes() == (other / "predictions.csv").read_bytes()


SCALAR = re.compile(r'(?:- )*(?:([a-z_0-9-]+):)? ?("(?:[^"\\]|\\["\\])*"|[A-Za-z][A-Za-z0-9_-]*|-?[0-9.e+-]+)?')


def front_matter(card):
    """Keys with their values, of the plain YAML that cards have: a scalar a line, quoted where it is a name."""
    front = re.match(r"---\n(.*?)\n---\n\n", card, re.S)[1]
    assert all(c == "\n" or c.isprintable() for c in front), repr(front)
    found = []
    for line in front.splitlines():
        key, value = SCALAR.fullmatch(line.strip()).groups()
        found.append((key, json.loads(value) if value and value[0] == '"' else value))
    return found


def test_model_card(directory):
    labels = ['say: "x"', "back\\slash", "- item", "</td>|*_", "# no", "two\nlines", "café \U0001f600", "{a: [b]}"]
    data = directory / 'a "b": {c} # d.csv'
    data.write_text("text,label\n" + "".join('word%d text,"%s"\n' % (i, label.replace('"', '""'))
                                             for i in range(6) for label in labels))
    base = directory / "base"
    shutil.copytree(MODEL, base)
    (base / "README.md").write_bytes(b"---\r\nlicense: 'mit' # free\r\nlanguage:\r\n  - en # English\r\n  - null\r\n"
                                     b"  - 'x: {'\r\nbase_model: a/b\r\n---\r\nWords.\r\n")
    out = directory / "run"
    succeed("train", "--model", base, "--train", data, "--eval-fraction", 0.3, "--max-steps", 1, "--seed", 7,
            "--output", out, "--reinit-head")
    card = (out / "model/README.md").read_text()
    items = front_matter(card)
    found = dict(items)
    assert (found["license"], found["pipeline_tag"]) == ("mit", "text-classification"), found
    assert "base_model" not in found, "the parent that another's card names is not the model that was fine-tuned"
    metrics = metrics_of(out)
    assert (None, "null") not in items, items
    for item in ((None, "en"), ("name", f"base fine-tuned on {data.name}"), ("name", data.name + " (held out)"),
                 ("type", "accuracy"), ("value", str(metrics["eval_accuracy"])), ("type", "matthews_correlation")):
        assert item in items, (item, items)
    text = card.partition("\n---\n")[2]
    for words in ("\\</td\\>\\|\\*\\_", "two\\\\nlines", "\n8: ", "2027-01-15 (UTC)", f"{metrics['train_rows']} rows",
                  "--eval-fraction 0.3", "--seed 7", "--reinit-head",
                  facts_of(out)["weights_sha256"]):
        assert words in text, (words, text)
    assert "best checkpoint" not in text, "it was evaluated once"
    # predict passes over the card; a model that is trained on keeps what is known of its parent.
    (out / "model/README.md").write_text(card.replace("license:", 'base_model: "a/b"\nlicense:'))
    succeed("predict", "--model", out, "--input", data, "--output", directory / "labels.csv")
    succeed("train", "--model", out / "model", "--train", data, "--max-steps", 1, "--output", directory / "next")
    found = dict(front_matter((directory / "next/model/README.md").read_text()))
    assert (found["license"], found["base_model"]) == ("mit", "a/b") and "metrics" not in found, found


def test_a_wrong_date_is_an_error(directory):
    need(DATA)
    out = directory / "run"
    train = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-steps", 1, "--output", out]
    for wrong in ("yesterday", "-1", "1e9", "99999999999999", "253402300800", "1800000000.5"):
        fail(2, *train, env={"SOURCE_DATE_EPOCH": wrong}, words=[f"SOURCE_DATE_EPOCH={wrong}: is not a number of seconds"])
        assert not out.exists()
    fail(2, "evaluate", "--model", MODEL, "--data", EVAL, env={"SOURCE_DATE_EPOCH": "x"}, words=["SOURCE_DATE_EPOCH=x"])
    succeed(*train, env={"SOURCE_DATE_EPOCH": "253402300799"})
    assert facts_of(out)["started"] == "9999-12-31T23:59:59Z"


def test_a_resumed_run_began_when_it_began_first(directory):
    need(DATA)
    out = directory / "run"
    line = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-steps", 100, "--save-every", 1,
            "--output", out]
    os.environ["SOURCE_DATE_EPOCH"], usual = "1000000000", os.environ["SOURCE_DATE_EPOCH"]
    try:
        code = kill_when(lambda: any((out / "checkpoints").glob("*.h5")), *line, number=signal.SIGTERM)
    finally:
        os.environ["SOURCE_DATE_EPOCH"] = usual
    assert code == 85, code
    succeed(*line, "--resume", env={"SOURCE_DATE_EPOCH": "1000003600"})
    facts = facts_of(out)
    assert (facts["started"], facts["ended"]) == ("2001-09-09T01:46:40Z", "2001-09-09T02:46:40Z"), facts


def table_of(path):
    """A CSV as pandas reads it: numbers; missing values are None."""
    with open(path, encoding="utf-8", newline="") as file:
        return [{name: float(cell) if cell else None for name, cell in row.items()} for row in csv.DictReader(file)]


def test_missing_predictions_are_named(directory):
    need(DATA)
    run = labelled(directory / "a")
    (run / "predictions.csv").unlink()
    result = succeed("report", run, "--output", "-")
    assert "warning: the predictions of " in result.err and "No such file" in result.err, result.err
    assert "The predictions of this run are not shown: " in result.out


def test_runs_without_predictions_are_whole(directory):
    need(DATA)
    plain, adapted = directory / "plain", directory / "adapted"
    succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-steps", 1, "--output", plain)
    texts = write(directory / "texts.txt", "".join(f"coffee {i}\n" for i in range(60)))
    succeed("adapt", "--model", MODEL, "--text", texts, "--eval-fraction", 0.2, "--distinct", "--max-steps", 1, "--output", adapted)
    for run in (plain, adapted):
        result = succeed("report", run, "--output", "-", "--fail-on-warning")
        assert "warning" not in result.err and "not shown" not in result.out, result
    assert "Without evaluation there are no predictions" in succeed("report", plain, "--output", "-").out


def test_metrics_as_tables(directory):
    need(DATA)
    out = directory / "run"
    line = ["--eval-every", 2, "--save-every", 1, "--keep-checkpoints", 9]
    line_of(out, *line)
    lines = [json.loads(text) for text in (out / "metrics.jsonl").read_text().splitlines()]
    assert table_of(out / "metrics.csv") == [entry for entry in lines if "loss" in entry]
    assert table_of(out / "evaluations.csv") == [entry for entry in lines if "loss" not in entry]
    assert [row["step"] for row in table_of(out / "evaluations.csv")] == [2, 4]
    # Continued from step 3: each step is there once.
    (out / "metrics.json").unlink()
    (out / "checkpoints/step-00000004.h5").unlink()
    line_of(out, *line, "--resume")
    for name, steps in (("metrics.csv", [1, 2, 3, 4]), ("evaluations.csv", [2, 4])):
        assert [row["step"] for row in table_of(out / name)] == steps, name
    # A run without evaluation has no evaluations table.
    bare = directory / "bare"
    succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--output", bare,
            "--max-steps", 2, "--quiet")
    assert (bare / "metrics.csv").exists() and not (bare / "evaluations.csv").exists()


def same_scalars(entry, step, scalars):
    expected = {}
    for name, value in entry.items():
        if name != "step" and not (name == "epoch" and "loss" not in entry):
            expected["eval/" + name[5:] if name.startswith("eval_") else "train/" + name] = value
    assert step == entry["step"] and set(scalars) == set(expected), (entry, scalars)
    for tag, value in expected.items():
        assert abs(scalars[tag] - value) <= 1e-6 * abs(value), (tag, value, scalars)


def test_event_files(directory):
    need(DATA)
    out = directory / "run"
    line = ["--eval-every", 2, "--save-every", 1, "--keep-checkpoints", 9, "--tensorboard"]
    line_of(out, *line)
    lines = [json.loads(text) for text in (out / "metrics.jsonl").read_text().splitlines()]
    first, = out.glob("events.out.tfevents.*.finetune")
    content = list(events(first))
    assert content[0][1:] == (0, "brain.Event:2") and abs(content[0][0] - time.time()) < 60, content[0]
    assert len(content) == 1 + len(lines) == 7
    for entry, (_, step, scalars) in zip(lines, content[1:]):
        same_scalars(entry, step, scalars)
    # A resumed run writes a new file that contains the repeated steps.
    (out / "metrics.json").unlink()
    (out / "checkpoints/step-00000004.h5").unlink()
    before = first.read_bytes()
    line_of(out, *line, "--resume")
    assert first.read_bytes() == before
    _, second = sorted(out.glob("events.out.tfevents.*.finetune"))
    content = list(events(second))
    assert [what for _, _, what in content[:2]] == ["brain.Event:2", "start"] and content[1][1] == 4, content
    assert [step for _, step, _ in content[2:]] == [4, 4], content
    if importlib.util.find_spec("tensorboard"):
        read_by_tensorboard(out, lines)
    # --overwrite removes them, but no other program's files.
    (out / "events.out.tfevents.1.host").write_text("of somebody else")
    line_of(out, "--overwrite")
    assert [path.name for path in out.glob("events.*")] == ["events.out.tfevents.1.host"]


def read_by_tensorboard(out, lines):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = EventAccumulator(str(out))
    found.Reload()
    for tag, name in (("train/loss", "loss"), ("eval/accuracy", "eval_accuracy")):
        expected = [(entry["step"], entry[name]) for entry in lines if name in entry]
        scalars = [(event.step, event.value) for event in found.Scalars(tag)]
        assert [step for step, _ in scalars] == [step for step, _ in expected], (tag, scalars)
        assert all(abs(a - b) < 1e-5 for (_, a), (_, b) in zip(scalars, expected)), (tag, scalars)


def test_log_has_times(directory):
    need(DATA)
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    line_of(directory / "run")
    times = []
    for text in (directory / "run/log.txt").read_text().splitlines():
        stamp, _, rest = text.partition(" ")
        times.append(datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z"))
        assert rest, text
    assert times == sorted(times) and before <= times[0] <= datetime.datetime.now(datetime.timezone.utc), times



def test_report_says_why(directory):
    need(DATA)
    run = labelled(directory / "a")
    # --explain: the worst errors beside what predict says of the same texts.
    explained = succeed("report", run, "--explain", "--output", "-").out
    worst = Page(explained).table("The worst errors")
    asked = write(directory / "worst.jsonl", "".join(json.dumps({"text": row[2]}) + "\n" for row in worst))
    made = succeed("predict", "--model", run, "--input", asked, "--output", "-", "--json-lines", "--explain", "--quiet").out
    for row, line in zip(worst, map(json.loads, made.splitlines()), strict=True):
        assert row[4] == line["label"] and row[-1] == "; ".join(
            f"{part['word']} {part['weight']:+.2f}" for part in line["words"]), (row, line)
    (run / "model/config.json").rename(run / "config.json")
    result = succeed("report", run, "--explain", "--output", "-")
    assert "are not explained: " in result.err and "words that made it" not in result.out, result.err
    (run / "config.json").rename(run / "model/config.json")
    # --label-errors: the rows of check's file, the first hundred.
    wrong = directory / "wrong.csv"
    succeed("check", "--train", TRAIN, "--label-column", "category", "--no-ngram-baseline", "--label-errors", wrong)
    with open(wrong, encoding="utf-8", newline="") as file:
        suspects = list(csv.DictReader(file))
    table = Page(succeed("report", run, "--label-errors", wrong, "--output", "-").out).table("Labels that may be wrong")
    assert len(table) == min(len(suspects), 100) > 5
    for row, suspect in zip(table, suspects):
        assert row == [f"{TRAIN.name}:{suspect['line']}", suspect["text"], suspect["label"], suspect["likely_label"],
                       suspect["reason"]], (row, suspect)
    none = write(directory / "none.csv", wrong.read_text().splitlines()[0] + "\n")
    assert "No label looks wrong." in succeed("report", run, "--label-errors", none, "--output", "-").out
    other = write(directory / "other.csv", wrong.read_text().replace(TRAIN.name, "odd.csv"))
    assert "has rows of odd.csv, which is not a training file" in succeed(
        "report", run, "--label-errors", other, "--output", "-").err
    maybe = write(directory / "maybe.csv", wrong.read_text().replace(",yes,", ",maybe,").replace(",no,", ",maybe,"))
    fail(3, "report", run, "--label-errors", maybe, "--output", "-", words=["maybe.csv:2", "confident is 'maybe'"])
    fail(3, "report", run, "--label-errors", TRAIN, "--output", "-", words=[str(TRAIN), "check --label-errors"])


main(globals())
