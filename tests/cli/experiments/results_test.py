"""What a run leaves for scripts: the line of --json, metrics as CSV, times in the log."""
import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN
from harness import facts_of, main, metrics_of, need, succeed

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
    given = {"model", "train", "eval", "label-column", "max-steps", "lr"}  # 32 is --batch-size's default
    assert set(line["options"]) == given and line["options"]["lr"] == 2e-4, line
    assert line["options"]["train"] == [str(TRAIN)] and line["options"]["max-steps"] == 4
    for name, value in metrics_of(out).items():
        assert line[name] == value, name
    # A finished run says the same of itself again.
    again = line_of(out, "--json", "--lr", "2e-4", "--seed", 7, "--batch-size", 32, "--resume")
    assert json.loads(again.out) == line, again
    evaluated = json.loads(succeed("evaluate", "--model", out, "--data", EVAL, "--label-column", "category", "--json",
                                   "--output", directory / "evaluation").out)
    digest = subprocess.run(["sha256sum", out / "model/model.safetensors"], capture_output=True, text=True).stdout
    assert evaluated["weights_sha256"] == digest.split()[0], evaluated
    assert evaluated["seed"] == 7 and evaluated["task"] == "classification", evaluated
    assert evaluated["output"] == str(directory / "evaluation"), evaluated
    assert evaluated["options"] == {"model": str(out), "data": [str(EVAL)], "label-column": "category"}, evaluated
    assert abs(evaluated["eval_accuracy"] - line["eval_accuracy"]) < 1e-12
    # Of a model that lies elsewhere no seed is known.
    bare = json.loads(succeed("evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--json").out)
    assert "seed" not in bare and "output" not in bare and len(bare["weights_sha256"]) == 64, bare


main(globals())
