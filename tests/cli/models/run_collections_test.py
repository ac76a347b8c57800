"""--model names a sweep's directory, or one that holds runs: the error names a model in it."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, write
from harness import fail, main, need, succeed


def test_commands_name_the_best_run(directory):
    need("golden/tiny-bert-classification")
    rows = write(directory / "rows.csv", "text,label\n" + "".join(f"PETROL {i},fuel\nRENT {i},rent\n" for i in range(20)))
    grid = write(directory / "grid.toml", f"model = '{MODEL}'\ntrain = ['{rows}']\neval-fraction = 0.25\n"
                 "reinit-head = true\nmax-steps = 12\nno-ngram-baseline = true\n[sweep]\nlr = [1e-9, 3e-3]\n")
    sweep = directory / "runs" / "sweep"
    succeed("sweep", grid, "--output", sweep)
    best = sweep / "lr=0.003"
    commands = [["evaluate", "--data", rows], ["predict", "--input", rows, "--output", "-"],
                ["train", "--train", rows, "--output", directory / "o"], ["convert", "--output", directory / "o"],
                ["plan", "--train", rows], ["tokenize", rows], ["adapt", "--text", rows, "--output", directory / "o"]]
    for command in commands:
        fail(4, *command, "--model", sweep, words=[f"{sweep}: is a sweep, not a model; its best run by", str(best)])
        fail(4, *command, "--model", sweep.parent, words=[f"{sweep.parent}: is not a model; it holds", str(sweep)])
    fail(4, "inspect", sweep, words=["is a sweep", str(best)])
    succeed("evaluate", "--model", best, "--data", rows)


main(globals())
