"""DistilBERT on several processes: every layout gives the bits of one process."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import results_of, same_results, succeed_on
from harness import GOLDEN, main, succeed
from training_jobs import prepared

FAMILY = GOLDEN / "family"
ROWS = ["train", "--model", FAMILY / "distilbert/classification", "--train",
        FAMILY / "trajectory-classification-train.csv", "--label-column", "category", "--max-length", 40,
        "--max-steps", 5, "--eval", FAMILY / "trajectory-classification-train.csv", "--max-eval-samples", 40]
QUESTIONS = ["train", "--task", "qa", "--model", FAMILY / "distilbert/qa", "--train",
             FAMILY / "distilbert/trajectory-qa-train.json", "--max-length", 96, "--doc-stride", 32, "--max-steps", 3]
COMMON = ["--lr", "3e-3", "--batch-size", 16, "--dropout", "0.1", "--virtual-shards", 2, "--tensor-shards", 2,
          "--micro-batches", 2, "--no-progress", "--quiet"]
LAYOUTS = ([2], [2, "--shard-optimizer", "--recompute"], [2, "--pp", 2], [2, "--tp", 2],
           [4, "--pp", 2, "--tp", 2, "--recompute"])


def same_on(directory, line, layouts):
    expected = directory / "one"
    succeed(*line, *COMMON, "--output", expected)
    expected = results_of(expected)
    for number, (processes, *more) in enumerate(layouts):
        out = directory / f"case-{number}"
        succeed_on(processes, *line, *COMMON, *more, "--output", out)
        same_results(out, expected)


def test_rows(directory):
    prepared("golden/family/distilbert")
    same_on(directory, ROWS, LAYOUTS)


def test_rows_in_bf16(directory):
    prepared("golden/family/distilbert")
    same_on(directory, [*ROWS, "--precision", "bf16"], LAYOUTS[1:4])


def test_questions(directory):
    """The dropout before the head is named by the whole batch's rows."""
    prepared("golden/family/distilbert")
    same_on(directory, QUESTIONS, LAYOUTS)


main(globals())
