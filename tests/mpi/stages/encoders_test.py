"""Architectures beside BERT on several processes: every layout gives the bits of one process."""
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import cut_back, results_of, same_results, succeed_on
from harness import GOLDEN, main, succeed
from training_jobs import prepared

FAMILY = GOLDEN / "family"
ENCODERS = ("distilbert", "electra", "roberta", "xlm-roberta")
COMMON = ["--lr", "3e-3", "--batch-size", 16, "--dropout", "0.1", "--virtual-shards", 2, "--tensor-shards", 2,
          "--micro-batches", 2, "--no-progress", "--quiet"]
LAYOUTS = ([2], [2, "--shard-optimizer", "--recompute"], [2, "--pp", 2], [2, "--tp", 2],
           [4, "--pp", 2, "--tp", 2, "--recompute"])


def rows_of(encoder):
    return ["train", "--model", FAMILY / encoder / "classification", "--train",
            FAMILY / "trajectory-classification-train.csv", "--label-column", "category", "--max-length", 40,
            "--max-steps", 5, "--eval", FAMILY / "trajectory-classification-train.csv", "--max-eval-samples", 40]


def questions_of(encoder):
    return ["train", "--task", "qa", "--model", FAMILY / encoder / "qa", "--train",
            FAMILY / encoder / "trajectory-qa-train.json", "--max-length", 96, "--doc-stride", 32, "--max-steps", 3]


def same_on(directory, encoder, line, layouts):
    prepared(f"golden/family/{encoder}")
    expected = directory / "one"
    succeed(*line, *COMMON, "--output", expected)
    expected = results_of(expected)
    for number, (processes, *more) in enumerate(layouts):
        out = directory / f"case-{number}"
        succeed_on(processes, *line, *COMMON, *more, "--output", out)
        same_results(out, expected)


def rows(encoder, directory):
    same_on(directory, encoder, rows_of(encoder), LAYOUTS)


def rows_in_bf16(encoder, directory):
    same_on(directory, encoder, [*rows_of(encoder), "--precision", "bf16"], LAYOUTS[1:4])


def questions(encoder, directory):
    """The dropout before DistilBERT's head is named by the whole batch's rows."""
    same_on(directory, encoder, questions_of(encoder), LAYOUTS)


def resumed_on_another_layout(encoder, directory):
    """Two steps on one layout and the rest on another give the results of one that does all."""
    prepared(f"golden/family/{encoder}")
    out = directory / "run"
    line = [*rows_of(encoder), *COMMON, "--save-every", 1, "--keep-checkpoints", 9, "--output", out]
    succeed_on(2, *line, "--tp", 2)
    expected = results_of(out)
    for processes, *more in ((2, "--pp", 2), (1,), (2, "--shard-optimizer", "--recompute")):
        cut_back(out, 2)
        resumed = [*line, "--resume", *more]
        succeed(*resumed) if processes == 1 else succeed_on(processes, *resumed)
        same_results(out, expected)


for name in ENCODERS:
    for test in (rows, rows_in_bf16, questions, resumed_on_another_layout):
        globals()[f"test_{name.replace('-', '_')}_{test.__name__}"] = partial(test, name)

main(globals())
