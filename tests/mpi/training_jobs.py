"""Runs on several processes, for train_test.py, faults_test.py and matrix.py."""
from ranks import need_mpirun
from harness import GOLDEN, need

MODEL = GOLDEN / "tiny-bert-classification"
QA_MODEL = GOLDEN / "tiny-bert-qa"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
NAMES = ("golden/tiny-bert-classification", "golden/tiny-bert-qa", "golden/trajectory-classification-train.csv",
         "golden/trajectory-qa-train.json")

# Three epochs of five batches each, the last of which is ragged.
BASE = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--recipe", "hf", "--lr", "3e-3",
        "--dropout", "0.1", "--no-progress", "--quiet"]
WITH_BASELINE = [*BASE, "--eval", EVAL, "--max-eval-samples", 100, "--max-train-samples", 150]
SMALL = [*WITH_BASELINE, "--no-ngram-baseline"]  # the baseline takes longer than these runs
QA = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--lr", "1e-3", "--max-length",
      128, "--doc-stride", 32, "--max-train-samples", 21, "--max-eval-samples", 8, "--batch-size", 16, "--dropout",
      "0.1", "--max-steps", 5, "--eval-every", 3, "--no-progress", "--quiet"]
LONG = [*BASE, "--eval", EVAL, "--max-eval-samples", 60, "--eval-every", 20, "--save-every", 10, "--max-steps", 60,
        "--virtual-shards", 8]


def prepared(*names):
    need_mpirun()
    need(*(names or NAMES))
