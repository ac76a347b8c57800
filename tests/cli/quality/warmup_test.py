"""Warm-up that is longer than the run: train, sweep and plan warn."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, write
from harness import main, need, run, succeed

WARNING = "warm-up takes 500 steps, and the run has 4: the learning rate ends at 0.6 % of --lr"


def test_warnings(directory):
    need("golden/tiny-bert-classification")
    rows = write(directory / "rows.csv", "text,label\n" + "".join(f"PETROL {i},fuel\nRENT {i},rent\n" for i in range(20)))
    options = ["--model", MODEL, "--reinit-head", "--train", rows, "--max-steps", 4]
    for more, count in (([], 0), (["--warmup-steps", 500], 1)):
        done = succeed("train", *options, *more, "--output", directory / f"run-{count}")
        assert done.err.count(f"warning: {WARNING}") == count, done
        assert succeed("plan", "--no-time", *options, *more).err.count(f"warning: {WARNING}") == count
    grid = write(directory / "grid.toml", f"model = '{MODEL}'\ntrain = ['{rows}']\neval-fraction = 0.25\n"
                 "reinit-head = true\nmax-steps = 4\nno-ngram-baseline = true\n[sweep]\nwarmup-steps = [1, 500]\n")
    done = succeed("sweep", grid, "--output", directory / "sweep")
    assert done.err.count("warm-up") == 1 and f"warning: warmup-steps=500: {WARNING}" in done.err, done
    done = run("sweep", grid, "--output", directory / "sweep")  # all runs exist
    assert done.code == 0 and "warm-up" not in done.err, done


def test_a_run_that_goes_on_has_no_new_head(directory):
    need("golden/tiny-bert-classification")
    rows = write(directory / "rows.csv", "text,label\n" + "".join(f"PETROL {i},fuel\nRENT {i},rent\n" for i in range(20)))
    line = ["train", "--model", MODEL, "--reinit-head", "--head-init", "random", "--train", rows, "--max-steps", 4,
            "--save-every", 2, "--keep-checkpoints", 2, "--output", directory / "run"]
    assert "newly initialised" in succeed(*line).err
    (directory / "run/metrics.json").unlink()
    resumed = succeed(*line, "--resume").err
    assert "continuing from" in resumed and "newly initialised" not in resumed, resumed


main(globals())
