"""Hugging Face Trainer's loss trajectories, through the program itself."""
import csv
import json

from harness import DEVICE, GOLDEN, facts_of, main, metrics_of, need, steps_of, succeed


def close(ours, golden, tolerance):
    return abs(ours - golden) <= tolerance * max(abs(golden), 1e-30)


def check_steps(run_directory, golden, precision):
    ours = steps_of(run_directory)
    assert [s["step"] for s in ours] == [s["step"] for s in golden], "steps differ"
    if precision == "bf16":
        # Operands have 8 bits: nearly the same at first, later the same course. Fifteen steps were up to 5.5 % from
        # it, all of them up to 0.6 %, in 30 runs on CPUs and a GPU whose learning rates differ by 1e-3 of themselves.
        for first in range(0, len(golden), 15):
            mine, theirs = (sum(s["loss"] for s in part[first:first + 15]) for part in (ours, golden))
            assert close(mine, theirs, 1e-4 if first == 0 else 0.08), (first, mine, theirs)
        mine, theirs = (sum(s["loss"] for s in part) for part in (ours, golden))
        assert close(mine, theirs, 0.02), (mine, theirs)
        return
    for mine, theirs in zip(ours, golden):
        step = theirs["step"]
        # golden/README.txt: 2e-6 and 1e-5 over the first 20-30 steps, 1e-3 and 1e-2 at step 150. (A GPU, which adds
        # in another order, was within 3e-7 and 2e-3.)
        early = step <= 20
        loss, norm = 2e-6, 1e-5
        assert close(mine["lr"], theirs["lr"], 1e-9), (step, mine["lr"], theirs["lr"])
        assert close(mine["loss"], theirs["loss"], loss if early else 1e-3), (step, mine["loss"], theirs["loss"])
        assert close(mine["grad_norm"], theirs["grad_norm"], norm if early else 1e-2), (
            step, mine["grad_norm"], theirs["grad_norm"])


def classification(directory, precision, *more):
    need("golden/trajectory-classification.json")
    golden = json.loads((GOLDEN / "trajectory-classification.json").read_text())
    run = directory / "run"
    succeed("train", "--task", "classification", "--model", GOLDEN / golden["model"],
            "--train", GOLDEN / "trajectory-classification-train.csv",
            "--eval", GOLDEN / golden["after"]["eval"], "--label-column", "category",
            "--max-length", golden["max_length"], "--batch-size", golden["batch_size"], "--epochs", golden["epochs"],
            "--lr", golden["lr"], "--warmup-ratio", golden["warmup_ratio"], "--weight-decay", golden["weight_decay"],
            "--max-grad-norm", golden["max_grad_norm"], "--dropout", 0, "--no-shuffle", "--precision", precision,
            "--eval-every", 150, "--output", run, *more, *DEVICE)
    check_steps(run, golden["steps"], precision)
    metrics = metrics_of(run)
    # One point; bf16 takes another way there. (In fp32 a learning rate larger by 3e-4 of itself
    # moves the loss by 0.06; two standard errors of the accuracy of 500 rows are 0.045.)
    accuracy, loss = (0.01, 0.05) if precision == "fp32" else (0.045, 0.12)
    assert abs(metrics["eval_accuracy"] - golden["after"]["accuracy"]) <= accuracy, metrics
    assert abs(metrics["eval_loss"] - golden["after"]["loss"]) <= loss, metrics
    assert len(facts_of(run)["weights_sha256"]) == 64
    with open(run / "predictions.csv", encoding="utf-8", newline="") as rows:
        assert sum(1 for _ in csv.DictReader(rows)) == 500


def qa(directory, precision, *more):
    need("golden/trajectory-qa.json")
    golden = json.loads((GOLDEN / "trajectory-qa.json").read_text())
    run = directory / "run"
    succeed("train", "--model", GOLDEN / golden["model"], "--train", GOLDEN / "trajectory-qa-train.json",
            "--max-length", golden["max_length"], "--doc-stride", golden["doc_stride"],
            "--batch-size", golden["batch_size"], "--epochs", golden["epochs"], "--lr", golden["lr"],
            "--warmup-ratio", golden["warmup_ratio"], "--weight-decay", golden["weight_decay"],
            "--dropout", 0, "--no-shuffle", "--precision", precision, "--output", run, *more, *DEVICE)
    check_steps(run, golden["steps"], precision)


def test_classification(directory):
    classification(directory, "fp32")


def test_classification_bf16(directory):
    classification(directory, "bf16")


def test_qa(directory):
    qa(directory, "fp32")


def test_qa_bf16(directory):
    qa(directory, "bf16")


def test_two_tensor_shards(directory):
    classification(directory, "fp32", "--tensor-shards", 2)


def test_two_tensor_shards_bf16(directory):
    classification(directory, "bf16", "--tensor-shards", 2)


def test_two_tensor_shards_qa(directory):
    qa(directory, "fp32", "--tensor-shards", 2)


main(globals())
