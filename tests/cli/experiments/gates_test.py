"""Gates of train and evaluate: tolerances in percent, several baselines, JUnit files."""
import json
import shutil
import statistics
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN, write
from harness import fail, main, metrics_in, metrics_of, need, run, succeed

DATA = "golden/trajectory-classification-train.csv"


def train(out, *more):
    return ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--max-steps", 10,
            "--lr", "3e-3", "--quiet", "--output", out, *more]


def junit(path, gates, failed):
    """The only suite of the file; its counts must match its contents."""
    root = xml.parse(path).getroot()
    suite, = root
    assert root.tag == "testsuites" and suite.tag == "testsuite" and root.get("name") == "finetune"
    cases = suite.findall("testcase")
    for element in (root, suite):
        counts = [int(element.get(name)) for name in ("tests", "failures", "errors")]
        assert counts == [len(cases), len(suite.findall("testcase/failure")), 0] == [gates, failed, 0], counts
    assert suite.get("skipped") == "0" and root.get("skipped") is None  # as JUnit's schemas require
    return suite


def properties_of(suite):
    return {entry.get("name"): float(entry.get("value")) for entry in suite.findall("properties/property")}


def test_junit_of_train(directory):
    need(DATA)
    file = directory / "ci/gates.xml"
    gates = ["--assert", "eval_accuracy>=0.99", "--assert", "train_loss>0", "--junit", file]
    result = run(*train(directory / "a", *gates))
    assert result.code == 7, result
    suite = junit(file, 2, 1)
    assert suite.get("name") == str(directory / "a") and properties_of(suite) == metrics_of(directory / "a")
    names = [case.get("name") for case in suite.findall("testcase")]
    assert names == ["eval_accuracy >= 0.99", "train_loss > 0"], names
    message = suite.find("testcase/failure").get("message")
    assert message.startswith("eval_accuracy is 0.") and message.endswith("not >= 0.99"), message
    # A finished run's gates are checked again, and finetune's earlier file is replaced.
    succeed(*train(directory / "a", "--resume", "--assert", "train_loss>0", "--junit", file))
    junit(file, 1, 0)
    succeed(*train(directory / "a", "--resume", "--junit", file))
    junit(file, 0, 0)
    assert "junit" not in (directory / "a/config.toml").read_text()
    # Refused before any computation.
    mine = write(directory / "mine.xml", "<testsuites/>")
    fail(2, *train(directory / "b", "--junit", mine), words=["mine.xml", "not a JUnit file"])
    fail(2, *train(directory / "b", "--junit", directory), words=["is a directory"])
    fail(4, *train(directory / "b", "--junit", mine / "x.xml"), words=["mine.xml"])
    assert mine.read_text() == "<testsuites/>" and not (directory / "b").exists()


def test_gates_of_evaluate(directory):
    need(DATA)
    out = directory / "a"
    succeed(*train(out))
    evaluate = ["evaluate", "--model", out / "model", "--data", EVAL, "--quiet"]
    metrics = metrics_in(succeed(*evaluate, "--json").out)
    file = directory / "gates.xml"
    result = run(*evaluate, "--assert", "eval_accuracy>=0.99", "--assert", "eval_loss>0", "--junit", file, "--output",
                 directory / "e")
    assert result.code == 7 and "FAIL" in result.out and "PASS" in result.out, result
    assert metrics_of(directory / "e") == metrics, "the evaluation is whole"
    suite = junit(file, 2, 1)
    assert properties_of(suite) == metrics and suite.get("name") == str(out / "model")
    result = run(*evaluate, "--json", "--assert", "eval_accuracy>=0.99")
    assert result.code == 7 and metrics_in(result.out) == metrics and "FAIL" in result.err, result
    # Compared with a run, or an evaluation, in percent.
    assert "PASS" in succeed(*evaluate, "--baseline", out, "--tolerance", "eval_accuracy=1%").out
    assert "PASS" in succeed(*evaluate, "--baseline", directory / "e", "--tolerance", "eval_loss=0").out
    better = write(directory / "better.json", json.dumps({"eval_accuracy": metrics["eval_accuracy"] / 0.9}))
    assert run(*evaluate, "--baseline", better, "--tolerance", "eval_accuracy=9%").code == 7
    succeed(*evaluate, "--baseline", better, "--tolerance", "eval_accuracy=11%")
    # Before any computation.
    fail(2, *evaluate, "--assert", "eval_f1>=1", words=["eval_f1", "eval_f1_macro"])
    fail(2, *evaluate, "--assert", "train_loss>=1", words=["train_loss"])
    fail(2, *evaluate, "--tolerance", "eval_loss=1", words=["--baseline"])
    fail(2, *evaluate, "--baseline", out, words=["--tolerance"])
    fail(2, *evaluate, "--baseline", better, "--tolerance", "eval_accuracy=9percent", words=["METRIC=NUMBER%"])
    fail(2, *evaluate, "--baseline", better, "--tolerance", "eval_loss=1", words=["better.json", "has no eval_loss"])
    fail(2, *evaluate, "--junit", write(directory / "mine.xml", "x"), words=["mine.xml"])


def test_several_baselines(directory):
    need(DATA)
    runs = [directory / f"seed-{seed}" for seed in range(1, 5)]
    for seed, out in enumerate(runs, 1):
        succeed(*train(out, "--seed", seed))
    losses = [metrics_of(out)["train_loss"] for out in runs]
    values = "train_loss=0"
    # With one seed as baseline, other worse seeds fail; with the mean and noise of all, they pass.
    worst = max(range(4), key=losses.__getitem__)
    others = [out for i, out in enumerate(runs) if i != worst]
    best = runs[min(range(4), key=losses.__getitem__)]
    again = train(directory / "again", "--seed", worst + 1)
    assert run(*again, "--baseline", best, "--tolerance", values).code == 7
    shutil.rmtree(directory / "again")
    result = succeed(*again, "--baseline", *others, "--tolerance", values)
    assert "3 baselines" in result.out and "noise" in result.out and "PASS" in result.out, result
    # Worse than the noise fails: 4.303 is Student's t for two degrees of freedom.
    rest = [loss for i, loss in enumerate(losses) if i != worst]
    noise = 4.303 * statistics.stdev(rest) * (1 + 1 / 3) ** 0.5
    bound = float(next(line for line in result.out.splitlines() if "PASS" in line).split("<=")[1].split()[0])
    assert abs(bound - statistics.mean(rest) - noise) < 1e-3 * noise, (bound, rest)
    shutil.rmtree(directory / "again")
    bad = [argument if argument != "3e-3" else "1e-7" for argument in again]
    assert run(*bad, "--baseline", *others, "--tolerance", values).code == 7
    fail(2, *train(directory / "b", "--baseline", runs[0], "--baseline", runs[0] / "metrics.json", "--tolerance", values),
         words=["given twice"])


main(globals())
