"""--time-budget: what it chooses, what repeats that choice, and when it ends a run."""
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, GOLDEN, PROJECT, facts_of, fail, main, metrics_of, run, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def arguments(output, *more):
    return ["train", "--model", MODEL, "--reinit-head", "--train", TRAIN, "--label-column", "category", "--output", output,
            "--no-ngram-baseline", "--ngram-mix", "no", *more]


def weights_of(out):
    return facts_of(out)["weights_sha256"]


def shortened(*line):
    """(budget, standard error) of the first budget into which something fits: a busy machine needs a longer one."""
    for budget in ("4s", "40s", "400s"):
        result = run(*line, "--time-budget", budget)
        if result.code != 2 or "nothing fits into" not in result.err:
            assert result.code == 0, result
            return budget, result.err
    raise AssertionError(result)


def test_the_choice_repeats(directory):
    """Steps that fit are chosen, and the printed options give the same weights without a clock."""
    held = ("--eval", EVAL, "--ignore-unknown-labels", "--batch-size", 1, "--save-every", 200, "--keep-checkpoints", 999)
    out = directory / "run"
    budget, text = shortened(*arguments(out, *held))
    line = next(line for line in text.splitlines() if line.startswith(f"--time-budget {budget}: "))
    if "more time buys nothing" in line:  # a fast machine
        return
    assert " epochs fit into " in line, line
    assert f'time-budget = "{budget}"' in (out / "config.toml").read_text()
    card = (out / "model/README.md").read_text()
    if "--recipe quick" in line:  # a busy machine
        assert "--recipe quick" in card and "--time-budget" not in card, card
        return
    steps = int(re.search(r"--recipe auto --max-steps (\d+), ", line)[1])
    assert f"--max-steps {steps}" in card and "--time-budget" not in card, card
    # The run's config.toml holds the chosen length; another recipe or time has another one.
    stored = directory / "config.toml"
    stored.write_text((out / "config.toml").read_text().replace("save-every = 200\n", ""))
    config = ["train", "--config", stored, "--output"]
    succeed(*config, directory / "quick", "--recipe", "quick")
    longer = succeed(*config, directory / "longer", "--time-budget", "1h", "--max-train-samples", 64).err
    assert "--time-budget 1h: all" in longer and "more time buys nothing" in longer, longer
    is_cut = "to keep the time" in text
    assert metrics_of(out)["train_steps"] == steps or is_cut, text
    # A stopped run goes on with the chosen length, with the option and without.
    if not is_cut:
        for number in range(2):
            before, kept = weights_of(out), sorted((out / "checkpoints").glob("*.h5"))
            for path in (out / "metrics.json", *kept[1:]):
                path.unlink()
            shutil.rmtree(out / "model")
            resumed = succeed(*arguments(out, *held, "--resume", *(("--time-budget", "1h") if number else ()))).err
            assert "continuing from " in resumed and f"--time-budget {budget}: --recipe" not in resumed, resumed
            if "to keep the time" in resumed:  # a busy machine: the resumed run is cut
                return
            assert weights_of(out) == before, (number, line)
        succeed(*arguments(directory / "again", *held, "--recipe", "auto", "--max-steps", steps, "--threads", 1))
        assert weights_of(directory / "again") == before


def test_a_run_that_fits_and_one_that_is_cut(directory):
    few = ("--max-train-samples", 64, "--virtual-shards", 2, "--warmup-ratio", 0.1)  # given: all weights are trained
    text = succeed(*arguments(directory / "fits", *few, "--time-budget", "1h", "--eval", EVAL,
                              "--ignore-unknown-labels")).err
    assert re.search(r"--time-budget 1h: all \d+ epochs fit, about \S+; more time buys nothing", text), text
    digests = {weights_of(directory / "fits")}
    succeed(*arguments(directory / "plain", *few))
    digests.add(weights_of(directory / "plain"))
    if shutil.which("mpirun"):
        line = arguments(directory / "two", *few, "--time-budget", "1h")
        result = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", BINARY,
                                 *map(str, line)], check=True, capture_output=True, text=True)
        assert "epochs fit" in result.stderr, result
        digests.add(weights_of(directory / "two"))
    assert len(digests) == 1, digests
    # A given length is kept until the time is over; the run ends as any other.
    out, start = directory / "cut", time.monotonic()
    text = succeed(*arguments(out, "--epochs", 9999, "--time-budget", "3s", "--eval", EVAL, "--ignore-unknown-labels")).err
    assert "the given length takes about" in text and ", to keep the time" in text, text
    metrics = metrics_of(out)
    assert 0 < metrics["train_steps"] < 9000 and metrics["best_step"] <= metrics["train_steps"], metrics
    assert (out / "model/model.safetensors").exists() and time.monotonic() - start < 60


def test_questions(directory):
    """Only fewer steps: there is no head to fit."""
    budget, text = shortened("train", "--model", GOLDEN / "tiny-bert-qa", "--train",
                             PROJECT / "data/samples/squad-train.json", "--output", directory / "run")
    assert re.search(rf"--time-budget {budget}: (--recipe auto --max-steps \d+, [0-9.]+ epochs?, about |all 3 epochs fit)", text)


def test_what_it_refuses(directory):
    fail(2, *arguments(directory / "no", "--time-budget", "soon"), words=["--time-budget 'soon'", "90s"])
    grid = directory / "grid.toml"
    grid.write_text(f'model = "{MODEL}"\ntrain = "{TRAIN}"\neval = "{EVAL}"\nlabel-column = "category"\n'
                    f'reinit-head = true\ntime-budget = "5s"\noutput = "{directory / "grid"}"\n[sweep]\nlr = [1e-4, 2e-4]\n')
    fail(2, "sweep", grid, "--halving", 2, "--dry-run", words=["--halving", "time-budget"])


main(globals())
