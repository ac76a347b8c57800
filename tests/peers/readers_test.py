"""A run as other programs read it: TensorBoard, pandas, DVC, JUnit readers, the Hugging Face hub.

Nothing here needs torch: an interpreter that has these packages alone will do. One that is absent is a skip.
"""
import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from fixtures import EVAL, MODEL, TRAIN
from harness import Skip, main, metrics_of, need, run, succeed

DATA = "golden/trajectory-classification-train.csv"
BIN = Path(sys.executable).parent
# The allowed contents of a JUnit file, by the schema of Jenkins's plugin: for each element its required attributes, its
# optional ones, and its child elements.
JUNIT = {
    "testsuites": ((), ("name", "time", "tests", "failures", "disabled", "errors"), ("testsuite",)),
    "testsuite": (("name", "tests"), ("failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id",
                                      "package"), ("properties", "testcase", "system-out", "system-err")),
    "properties": ((), (), ("property",)),
    "property": (("name", "value"), (), ()),
    "testcase": (("name", "classname"), ("assertions", "time", "status"),
                 ("skipped", "error", "failure", "system-out", "system-err")),
    "failure": ((), ("type", "message"), ()),
}


def need_package(*names):
    for name in names:
        if not importlib.util.find_spec(name):
            raise Skip(f"the package {name} is absent")


def train(out, *more, seed=1):
    succeed("train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 9,
            "--eval-every", 3, "--lr", "3e-3", "--seed", seed, "--quiet", "--output", out, *more)
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def test_model_card(directory):
    """Names that YAML would take for its own reach the hub's reader as they are."""
    need(DATA)
    need_package("huggingface_hub", "yaml")
    from huggingface_hub import ModelCard
    data = directory / "it's: \"a\" {b} - [c] #d\n\u00e9 \U0001f600.csv"
    shutil.copy(TRAIN, data)
    base = directory / "base"
    shutil.copytree(MODEL, base)
    (base / "README.md").write_text("---\nlicense: apache-2.0\nlanguage: [en, \"fr\"]\n---\n")
    succeed("train", "--model", base, "--train", data, "--eval", EVAL, "--label-column", "category", "--max-steps", 1,
            "--output", directory / "run")
    card = ModelCard.load(directory / "run/model/README.md")
    found = card.data
    assert (found.license, found.language, found.pipeline_tag) == ("apache-2.0", ["en", "fr"], "text-classification")
    results = {result.metric_name: result for result in found.eval_results}
    metrics = metrics_of(directory / "run")
    for title, name in ("Accuracy", "accuracy"), ("Macro F1", "f1_macro"):
        alone = results[f"{title}, the model alone, as transformers loads it"]
        assert alone.metric_value == metrics[f"baseline_unmixed_{name}"], results
        mixed = results[f"{title} with n-grams, as finetune predicts"]
        assert mixed.metric_value == metrics[f"eval_{name}"], results
    assert found.model_name == "base fine-tuned on " + data.name.replace("\n", "\\n"), found.model_name
    assert mixed.dataset_name == EVAL.name and "## Limits" in card.text, card.text


def test_tensorboard(directory):
    need(DATA)
    need_package("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
    lines = train(directory / "runs/a", "--tensorboard")
    train(directory / "runs/b", "--tensorboard", seed=2)
    found = EventAccumulator(str(directory / "runs/a"))
    found.Reload()
    steps, evaluations = ([line for line in lines if name in line] for name in ("loss", "eval_loss"))
    assert len(steps) == 9 and len(evaluations) == 3
    for tag, name, entries in (("train/loss", "loss", steps), ("train/lr", "lr", steps),
                               ("train/grad_norm", "grad_norm", steps), ("eval/loss", "eval_loss", evaluations),
                               ("eval/accuracy", "eval_accuracy", evaluations)):
        scalars = found.Scalars(tag)
        assert [event.step for event in scalars] == [entry["step"] for entry in entries], tag
        for event, entry in zip(scalars, entries):
            assert abs(event.value - entry[name]) <= 1e-6 * abs(entry[name]), (tag, event, entry)
    both = EventMultiplexer().AddRunsFromDirectory(str(directory / "runs"))
    both.Reload()
    assert set(both.Runs()) == {"a", "b"} and "train/loss" in both.Runs()["b"]["scalars"], both.Runs()


def test_pandas(directory):
    need(DATA)
    need_package("pandas")
    import pandas
    out = directory / "run"
    lines = train(out)
    steps = pandas.read_csv(out / "metrics.csv")
    evaluations = pandas.read_csv(out / "evaluations.csv")
    assert steps["step"].tolist() == list(range(1, 10)) and evaluations["step"].tolist() == [3, 6, 9]
    assert steps["loss"].tolist() == [line["loss"] for line in lines if "loss" in line]
    assert evaluations["eval_loss"].tolist() == [line["eval_loss"] for line in lines if "eval_loss" in line]
    assert all(kind.kind in "if" for kind in [*steps.dtypes, *evaluations.dtypes]), (steps.dtypes, evaluations.dtypes)
    whole = pandas.read_json(out / "metrics.jsonl", lines=True)
    assert len(whole) == len(lines) and whole["eval_loss"].count() == 3
    predictions = pandas.read_csv(out / "predictions.csv", keep_default_na=False,
                                  dtype={"category": str, "predicted_label": str})
    with open(EVAL, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert predictions["text"].tolist() == [row["text"] for row in rows]
    predicted = next(name for name in ("predicted_label", "label") if name in predictions)
    right = (predictions[predicted] == predictions["category"]).mean()
    assert abs(right - metrics_of(out)["eval_accuracy"]) < 1e-9, right
    assert pandas.read_csv(out / "confusion.csv", index_col=0).to_numpy().sum() == len(rows)
    assert pandas.read_csv(out / "per_class.csv").shape[0] > 1


def in_repository(directory, *words):
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True, timeout=300, env={
        **os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "HOME": str(directory), "DVC_NO_ANALYTICS": "1",
        "GIT_CONFIG_NOSYSTEM": "1", "CI": "1"})
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_dvc(directory):
    need(DATA)
    need_package("dvc")
    if not shutil.which("git"):
        raise Skip("git is absent")
    work = directory / "work"
    work.mkdir()

    def dvc(*words):
        return in_repository(work, sys.executable, "-m", "dvc", *words)

    def git(*words):
        return in_repository(work, "git", "-c", "user.name=x", "-c", "user.email=x@localhost", *words)

    git("init", "-q")
    dvc("init", "-q")
    dvc("config", "core.check_update", "false")
    train(work / "run")
    before = metrics_of(work / "run")
    files = ["run/metrics.json", "run/metrics.csv", "run/evaluations.csv"]
    (work / "dvc.yaml").write_text("metrics:\n- run/metrics.json\nplots:\n"
                                   "- loss: {x: step, y: {run/metrics.csv: loss}}\n"
                                   "- accuracy: {x: step, y: {run/evaluations.csv: eval_accuracy}}\n")
    git("add", "-f", "dvc.yaml", ".dvc/config", *files)
    git("commit", "-qm", "first")
    lines = train(work / "run", "--overwrite", seed=2)
    after = metrics_of(work / "run")
    changes = json.loads(dvc("metrics", "diff", "--json"))
    changes = changes.get("diff", changes)["run/metrics.json"]
    # pandas prints five significant digits by default.
    assert abs(changes["eval_loss"]["old"] - before["eval_loss"]) < 1e-4, changes["eval_loss"]
    assert abs(changes["eval_loss"]["new"] - after["eval_loss"]) < 1e-4, changes["eval_loss"]
    assert abs(changes["eval_loss"]["diff"] - (after["eval_loss"] - before["eval_loss"])) < 2e-4
    plots = dvc("plots", "diff", "--json")
    shown = json.loads(plots)
    shown = shown.get("data", shown)
    losses = [(point["step"], point["loss"]) for plot in shown["loss"] for point in points_of(plot, "workspace")]
    assert sorted((int(step), float(loss)) for step, loss in losses) == [
        (line["step"], line["loss"]) for line in lines if "loss" in line], losses
    assert "accuracy" in shown, list(shown)


def points_of(plot, revision):
    """The rows of one revision in a plot of `dvc plots --json`."""
    if "datapoints" in plot:
        return plot["datapoints"].get(revision, [])
    values = plot.get("content", plot)
    values = json.loads(values) if isinstance(values, str) else values
    return [row for row in values["data"]["values"] if row.get("rev") == revision]


def test_junit(directory):
    need(DATA)
    need_package("junitparser", "lxml")
    from junitparser import Failure, JUnitXml
    from lxml import etree
    out, file = directory / "a <run> & \"more\"", directory / "gates.xml"
    result = run("train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--quiet",
                 "--max-steps", 2, "--output", out, "--assert", "eval_accuracy>=0.999", "--assert", "train_loss>0",
                 "--junit", file)
    assert result.code == 7, result
    for number, name in enumerate(("train", "evaluate")):
        if number:
            succeed("evaluate", "--model", out, "--data", EVAL, "--quiet", "--overwrite", "--output", directory / "e",
                    "--junit", file)
        suites = JUnitXml.fromfile(str(file))
        suite, = suites
        assert (suites.tests, suites.failures, suites.errors) == ((2, 1, 0), (0, 0, 0))[number], name
        assert (suite.tests, suite.failures, suite.skipped) == ((2, 1, 0), (0, 0, 0))[number], name
        failed = [case for case in suite if any(isinstance(entry, Failure) for entry in case.result)]
        assert len(failed) == (1, 0)[number] and all("eval_accuracy" in case.name for case in failed)
        assert {entry.name for entry in suite.properties()} >= {"eval_accuracy", "eval_loss"}
        check_element(etree.parse(str(file)).getroot(), "testsuites")


def test_the_hub_cache(directory):
    """The cache folder and snapshot that huggingface_hub chooses for the same variables."""
    need(DATA)
    need_package("huggingface_hub")
    home = directory / "home"
    asked = ("from huggingface_hub import constants, snapshot_download\n"
             "print(constants.HF_HUB_CACHE)\n"
             "for revision in (None, 'v2', 'b' * 40):\n"
             "    print(snapshot_download('org/tiny', revision=revision, local_files_only=True))\n")
    for number, given in enumerate((
            {}, {"XDG_CACHE_HOME": f"{home}/xdg"}, {"HF_HOME": "~/hf"}, {"HF_HUB_CACHE": "$HOME/${KIND}/hub"},
            {"HF_HOME": "~/hf", "HUGGINGFACE_HUB_CACHE": f"{home}/older"},
            {"HF_HUB_CACHE": "~/new", "HUGGINGFACE_HUB_CACHE": f"{home}/older"})):
        own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE", "XDG_"))}
        own |= {"HOME": str(home), "KIND": "kind", **given}
        clean = {name: "" for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")} | own
        cache = Path(subprocess.run([sys.executable, "-c", asked.split("for ")[0]], env=own, capture_output=True, text=True,
                                    check=True).stdout.strip())
        for commit, branch in (("a" * 40, "main"), ("b" * 40, "v2")):
            snapshot = cache / "models--org--tiny/snapshots" / commit
            shutil.copytree(MODEL, snapshot)
            (snapshot.parents[1] / "refs").mkdir(exist_ok=True)
            (snapshot.parents[1] / "refs" / branch).write_text(commit)
        theirs = subprocess.run([sys.executable, "-c", asked], env={**own, "HF_HUB_OFFLINE": "1"}, capture_output=True,
                                text=True, check=True).stdout.split()
        for name, expected in zip(("org/tiny", "org/tiny@v2", f"org/tiny@{'b' * 40}"), theirs[1:]):
            found = json.loads(succeed("inspect", name, "--json", env=clean).out)["directory"]
            assert found == expected, (number, name, found, expected)
        shutil.rmtree(home)


def check_element(element, name):
    assert element.tag == name, (element.tag, name)
    required, optional, inside = JUNIT[name]
    given = set(element.attrib)
    assert given >= set(required) and given <= {*required, *optional}, (name, dict(element.attrib))
    for count in given & {"tests", "failures", "errors", "skipped"}:
        int(element.get(count))
    if name != "failure":
        assert not (element.text or "").strip(), (name, element.text)
    for child in element:
        assert child.tag in inside, (name, child.tag)
        check_element(child, child.tag)
    tags = [child.tag for child in element]
    assert tags.count("properties") <= 1 and tags == sorted(tags, key=lambda tag: inside.index(tag)), tags


main(globals())
