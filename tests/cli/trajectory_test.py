"""Hugging Face Trainer's loss trajectories, through the binary itself."""
import csv
import json

from harness import GOLDEN, facts_of, main, metrics_of, need, steps_of, succeed


def close(ours, golden, tolerance):
    return abs(ours - golden) <= tolerance * max(abs(golden), 1e-30)


def check_steps(run_directory, golden):
    ours = steps_of(run_directory)
    assert [s["step"] for s in ours] == [s["step"] for s in golden], "steps differ"
    for mine, theirs in zip(ours, golden):
        step = theirs["step"]
        # golden/README.txt: 2e-6 and 1e-5 over the first 20-30 steps, 1e-3 and 1e-2 at step 150.
        early = step <= 20
        assert close(mine["lr"], theirs["lr"], 1e-9), (step, mine["lr"], theirs["lr"])
        assert close(mine["loss"], theirs["loss"], 2e-6 if early else 1e-3), (step, mine["loss"], theirs["loss"])
        assert close(mine["grad_norm"], theirs["grad_norm"], 1e-5 if early else 1e-2), (
            step, mine["grad_norm"], theirs["grad_norm"])


def test_classification(directory):
    need("golden/trajectory-classification.json")
    golden = json.loads((GOLDEN / "trajectory-classification.json").read_text())
    run = directory / "run"
    succeed("train", "--task", "classification", "--model", GOLDEN / golden["model"],
            "--train", GOLDEN / "trajectory-classification-train.csv",
            "--eval", GOLDEN / golden["after"]["eval"], "--label-column", "category",
            "--max-length", golden["max_length"], "--batch-size", golden["batch_size"], "--epochs", golden["epochs"],
            "--lr", golden["lr"], "--warmup-ratio", golden["warmup_ratio"], "--weight-decay", golden["weight_decay"],
            "--max-grad-norm", golden["max_grad_norm"], "--dropout", 0, "--no-shuffle",
            "--eval-every", 150, "--output", run)
    check_steps(run, golden["steps"])
    metrics = metrics_of(run)
    assert abs(metrics["eval_accuracy"] - golden["after"]["accuracy"]) <= 0.01, metrics
    assert abs(metrics["eval_loss"] - golden["after"]["loss"]) <= 0.05, metrics
    assert len(facts_of(run)["weights_sha256"]) == 64
    with open(run / "predictions.csv", encoding="utf-8", newline="") as rows:
        assert sum(1 for _ in csv.DictReader(rows)) == 500


def test_qa(directory):
    need("golden/trajectory-qa.json")
    golden = json.loads((GOLDEN / "trajectory-qa.json").read_text())
    run = directory / "run"
    succeed("train", "--model", GOLDEN / golden["model"], "--train", GOLDEN / "trajectory-qa-train.json",
            "--max-length", golden["max_length"], "--doc-stride", golden["doc_stride"],
            "--batch-size", golden["batch_size"], "--epochs", golden["epochs"], "--lr", golden["lr"],
            "--warmup-ratio", golden["warmup_ratio"], "--weight-decay", golden["weight_decay"],
            "--dropout", 0, "--no-shuffle", "--output", run)
    check_steps(run, golden["steps"])


main(globals())
