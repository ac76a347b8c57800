"""One short run of each command, for `scripts/test.sh fast`. Other files ask more of each."""
import atexit
import csv
import io
import json
import shutil
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, kill_when, trained, write
from harness import fail, facts_of, main, metrics_of, run, succeed

ROWS = ("--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category")


@lru_cache
def classifier():
    """A run of six steps, which the tests share."""
    folder = Path(tempfile.mkdtemp(prefix="finetune-smoke-"))
    atexit.register(shutil.rmtree, folder)
    return trained(folder, "run", *ROWS)


def rows_out(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_train(_):
    run_directory = classifier()
    assert metrics_of(run_directory)["train_steps"] == 6
    assert len(facts_of(run_directory)["weights_sha256"]) == 64


def test_train_again_gives_the_same_weights(directory):
    again = trained(directory, "again", *ROWS, "--threads", 1)
    assert facts_of(again)["weights_sha256"] == facts_of(classifier())["weights_sha256"]


def test_train_and_resume(directory):
    out = directory / "killed"
    line = ["train", "--output", out, "--lr", "1e-3", "--max-steps", 6, "--quiet", *ROWS, "--save-every", 1]
    kill_when(lambda: list(out.glob("checkpoint*/*")), *line)
    succeed(*line, "--resume")
    assert facts_of(out)["weights_sha256"] == facts_of(classifier())["weights_sha256"]


def test_train_answers_questions(directory):
    out = trained(directory, "qa", "--model", QA_MODEL, "--task", "qa", "--train", SQUAD, "--eval", SQUAD)
    assert 0 <= metrics_of(out)["eval_f1"] <= 100
    assert succeed("score", "--data", SQUAD, "--predictions", out / "predictions.json").out


def test_adapt(directory):
    succeed("adapt", "--model", MODEL, "--text", TRAIN, "--text-column", "text", "--max-steps", 2, "--quiet",
            "--output", directory / "adapted")
    assert (directory / "adapted/model/model.safetensors").exists()


def test_evaluate(_):
    told = json.loads(succeed("evaluate", "--model", classifier(), "--data", EVAL, "--json", "--quiet").out)
    assert told["eval_accuracy"] == metrics_of(classifier())["eval_accuracy"]


def test_evaluate_gate(_):
    assert run("evaluate", "--model", classifier(), "--data", EVAL, "--assert", "eval_accuracy>=1.1").code == 7


def test_predict(_):
    rows = rows_out(succeed("predict", "--model", classifier(), "--input", EVAL, "--output", "-", "--quiet").out)
    with open(EVAL, newline="", encoding="utf-8") as file:
        assert [row["text"] for row in rows] == [row["text"] for row in csv.DictReader(file)]
    assert all(0 < float(row["probability"]) <= 1 for row in rows)


def test_sweep_compare_report(directory):
    grid = write(directory / "grid.toml", f'model = "{MODEL}"\ntrain = "{TRAIN}"\neval = "{EVAL}"\nlabel-column = "category"\nmax-steps = 1\n'
                 "[sweep]\nseed = [1, 2]\n")
    succeed("sweep", grid, "--output", directory / "sweep")
    assert "over 2 runs" in succeed("compare", directory / "sweep").out
    succeed("report", directory / "sweep", "--output", directory / "report.html")
    assert "<svg" in (directory / "report.html").read_text()


def test_check(_):
    assert "n-gram baseline" in succeed("check", *ROWS[2:]).out


def test_plan(_):
    assert "memory, MiB" in succeed("plan", *ROWS).out


def test_tokenize(directory):
    text = write(directory / "text.txt", "hello\n")
    assert succeed("tokenize", "--model", MODEL, text).out


def test_inspect(_):
    assert "hidden" in succeed("inspect", MODEL).out


def test_convert(directory):
    succeed("convert", "--model", MODEL, "--output", directory / "copy")
    assert (directory / "copy/model.safetensors").exists()


def test_doctor(_):
    assert succeed("doctor").out


def test_bench(_):
    assert "megabytes_per_second" in succeed("bench", "tokenizer", "--model", MODEL, "--input", TRAIN, "--json").out


def test_completion(_):
    assert "complete" in succeed("completion", "bash").out


def test_help(_):
    assert "Usage: finetune train" in succeed("train", "--help").out


def test_wrong_option(_):
    fail(2, "train", "--epoch", "1", words=["--epochs"])


def test_wrong_data(directory):
    fail(3, "train", "--model", MODEL, "--train", write(directory / "rows.csv", "text,label\nonly text\n"),
         "--output", directory / "out", words=["rows.csv:2"])


main(globals())
