"""Runs on a GPU that tests of the CUDA module share."""
from cuda_on_host import program_with_module
from harness import GOLDEN, need

MODEL, QA_MODEL = GOLDEN / "tiny-bert-classification", GOLDEN / "tiny-bert-qa"
TRAIN, EVAL = GOLDEN / "trajectory-classification-train.csv", GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
NAMES = ("golden/tiny-bert-classification", "golden/tiny-bert-qa", "golden/trajectory-classification-train.csv")
OPTIONS = ["--lr", "1e-3", "--dropout", "0.1", "--max-steps", 5, "--no-progress", "--quiet"]
LABELS = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--batch-size", 8,
          "--max-eval-samples", 10, "--virtual-shards", 2, "--no-ngram-baseline", *OPTIONS]
ANSWERS = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--max-length", 96,
           "--doc-stride", 32, "--max-train-samples", 12, "--max-eval-samples", 3, "--batch-size", 4, *OPTIONS]


def prepared():
    need(*NAMES)
    program_with_module()
