"""train end to end on small data: a run's files, reproducibility, resumption, export."""
import array
import csv
import json
import random
import signal
import subprocess
import time
from pathlib import Path

from blank_model import blank_model
from harness import (BINARY, GOLDEN, PATIENCE, Skip, facts_of, fail, main, metrics_in, metrics_of, need, run,
                     steps_of, succeed)

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
DATA = "golden/trajectory-classification-train.csv"


def train_arguments(output, *more):
    return ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--dropout", "0.1",
            "--lr", "1e-3", "--epochs", "2", "--output", output, *more]


def weights(directory):
    return facts_of(directory)["weights_sha256"]


def test_files_of_a_run(directory):
    need(DATA)
    out = directory / "run"
    result = succeed(*train_arguments(out, "--eval", EVAL, "--json"))
    printed = metrics_in(result.out)
    assert printed == metrics_of(out)
    for name in ("config.toml", "run.json", "metrics.jsonl", "metrics.json", "model/config.json",
                 "model/model.safetensors", "predictions.csv", "confusion.csv", "log.txt"):
        assert (out / name).is_file(), name
    assert not (out / "checkpoints").exists()  # keeping them was not requested
    assert "NVIDIA" not in (out / "log.txt").read_text()
    metrics = metrics_of(out)
    assert all(isinstance(v, (int, float)) for v in metrics.values()), metrics
    for name in ("train_loss", "train_runtime", "train_steps", "train_samples_per_second",
                 "train_tokens_per_second", "eval_loss", "eval_accuracy", "eval_f1_macro", "peak_memory_mb",
                 "startup_seconds"):
        assert name in metrics, name
    assert metrics["train_steps"] == 60 and len(steps_of(out)) == 60
    assert all(isinstance(v, str) for v in facts_of(out).values())
    digest = subprocess.run(["sha256sum", out / "model/model.safetensors"], capture_output=True, text=True)
    if metrics.get("best_step", 60) == 60:
        assert digest.stdout.split()[0] == weights(out)
    # The run's config.toml repeats the run.
    again = directory / "again"
    succeed("train", "--config", out / "config.toml", "--output", again)
    assert weights(again) == weights(out)
    # evaluate on the exported model gives the run's metrics
    evaluated = json.loads(succeed("evaluate", "--model", out / "model", "--data", EVAL, "--label-column", "category",
                                   "--json").out)
    assert abs(evaluated["eval_accuracy"] - metrics["eval_accuracy"]) < 1e-12, (evaluated, metrics)


def test_threads_and_runs_give_the_same_bits(directory):
    need(DATA)
    digests = set()
    for threads in (1, 2, 3):
        out = directory / f"threads-{threads}"
        succeed(*train_arguments(out, "--threads", threads, "--max-steps", 20))
        digests.add(weights(out))
    succeed(*train_arguments(directory / "again", "--max-steps", 20))
    digests.add(weights(directory / "again"))
    assert len(digests) == 1, digests
    succeed(*train_arguments(directory / "other-seed", "--max-steps", 20, "--seed", 43))
    assert weights(directory / "other-seed") not in digests


def random_model(directory, hidden):
    """With line lengths that fill no vector."""
    config = json.loads((MODEL / "config.json").read_text())
    path = blank_model(directory, MODEL, hidden, layers=2, vocabulary=config["vocab_size"]) / "model.safetensors"
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    numbers = random.Random(5)
    values = array.array("f", (numbers.gauss(0, 0.1) for _ in range((len(data) - begin) // 4)))
    path.write_bytes(data[:begin] + values.tobytes())
    return directory


def test_fp32_has_the_same_bits_with_all_instructions(directory):
    need("golden/tiny-bert-qa", DATA)
    paths = [name for name in ("avx2", "avx512", "avx512_bf16", "amx")
             if run("doctor", env={"FINETUNE_ISA": name}).code == 0]
    labels = ["--train", TRAIN, "--label-column", "category", "--dropout", "0.1", "--lr", "1e-3", "--eval", TRAIN]
    questions = ["--train", GOLDEN / "trajectory-qa-train.json", "--lr", "1e-3", "--batch-size", 8]
    for number, line in enumerate(([*labels, "--model", MODEL],
                                   [*labels, "--model", random_model(directory / "odd", 36), "--threads", 3],
                                   [*questions, "--model", GOLDEN / "tiny-bert-qa", "--micro-batch-tokens", 300])):
        results = set()
        for path in paths:
            out = directory / f"{number}-{path}"
            succeed("train", *line, "--precision", "fp32", "--max-steps", 12, "--output", out, env={"FINETUNE_ISA": path})
            evaluated = [value for name, value in metrics_of(out).items() if name.startswith("eval_")
                         and not name.endswith(("_per_second", "runtime"))]
            results.add((weights(out), tuple(s["loss"] for s in steps_of(out)), tuple(evaluated)))
        assert len(results) == 1, (number, results)
    if len(paths) == 1:
        raise Skip("this machine has AVX2 alone")


def test_virtual_shards_and_micro_batches(directory):
    need(DATA)
    losses = {}
    for name, options in {"plain": [], "shards": ["--virtual-shards", 4], "micro": ["--micro-batch-tokens", 100],
                          "micro-again": ["--micro-batch-tokens", 100, "--threads", 1]}.items():
        out = directory / name
        succeed(*train_arguments(out, "--max-steps", 8, "--precision", "fp32", *options))
        losses[name] = [s["loss"] for s in steps_of(out)]
    for name, values in losses.items():  # the same masks: equal except for rounding
        assert all(abs(a - b) < 1e-4 for a, b in zip(values, losses["plain"])), (name, values, losses["plain"])
    assert losses["micro"] == losses["micro-again"]


def test_recomputed_activations_give_the_same_bits(directory):
    need("golden/tiny-bert-qa", DATA)
    question_answering = ["train", "--model", GOLDEN / "tiny-bert-qa", "--train", GOLDEN / "trajectory-qa-train.json",
                          "--lr", "1e-3", "--max-steps", 8, "--batch-size", 8]
    for name, options in (("whole", []), ("micro", ["--micro-batch-tokens", 60, "--virtual-shards", 2]),
                          ("frozen", ["--freeze", 1, "--dropout", 0.2])):
        for task, command in (("classification", lambda out: train_arguments(out, "--max-steps", 8)),
                              ("qa", lambda out: [*question_answering, "--output", out])):
            kept, again = directory / f"{task}-{name}", directory / f"{task}-{name}-again"
            succeed(*command(kept), *options)
            succeed(*command(again), *options, "--recompute")
            assert weights(kept) == weights(again), (task, name)
            losses = [[(s["loss"], s["grad_norm"]) for s in steps_of(run)] for run in (kept, again)]
            assert losses[0] == losses[1], (task, name)
    assert "recompute = true" in (directory / "qa-whole-again/config.toml").read_text()
    # Options may change when resuming.
    changed = directory / "changed"
    command = train_arguments(changed, "--max-steps", 8, "--save-every", 3, "--keep-checkpoints", 2)
    succeed(*command)
    (changed / "metrics.json").unlink()
    (changed / "checkpoints/step-00000008.h5").unlink()
    succeed(*command, "--recompute", "--resume")
    assert len(steps_of(changed)) == 8 and weights(changed) == weights(directory / "classification-whole")


def test_kill_and_resume_give_the_same_bits(directory):
    need(DATA)
    straight = directory / "straight"
    options = ["--save-every", "7", "--eval-every", "20", "--eval", EVAL]
    succeed(*train_arguments(straight, *options))
    expected = weights(straight)
    moments = random.Random(7)
    out = directory / "killed"
    for attempt in range(20):
        process = subprocess.Popen([BINARY, *map(str, train_arguments(out, *options, "--resume"))],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=moments.uniform(0.05, 0.6))
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    succeed(*train_arguments(out, *options, "--resume"))
    assert weights(out) == expected
    assert [s["step"] for s in steps_of(out)] == list(range(1, 61)), "each step once"
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file() and p.suffix != ".h5"}
    result = succeed(*train_arguments(out, *options, "--resume"))
    assert "finished" in result.err, result
    assert before == {p: p.read_bytes() for p in out.rglob("*") if p.is_file() and p.suffix != ".h5"}
    assert not list(out.rglob("*.tmp*")), list(out.rglob("*.tmp*"))


def test_corrupt_checkpoint_falls_back(directory):
    need(DATA)
    out = directory / "run"
    options = ["--save-every", "10", "--keep-checkpoints", "3"]
    process = run(*train_arguments(out, *options, "--time-limit", "100h"))
    assert process.code == 0, process
    expected = weights(out)
    (out / "metrics.json").unlink()
    newest = sorted((out / "checkpoints").glob("step-*.h5"))
    data = bytearray(newest[-1].read_bytes())
    data[len(data) // 2] ^= 1
    newest[-1].write_bytes(data)
    with open(newest[-2], "r+b") as file:
        file.truncate(file.seek(0, 2) - 1000)
    result = succeed(*train_arguments(out, *options, "--resume"))
    assert newest[-1].name in result.err and newest[-2].name in result.err, result
    assert weights(out) == expected


def test_resume_with_other_options_is_refused(directory):
    need(DATA)
    out = directory / "run"
    succeed(*train_arguments(out, "--max-steps", 5, "--save-every", 2))
    fail(2, *train_arguments(out, "--max-steps", 5, "--save-every", 2, "--resume", "--seed", 1), words=["seed"])
    fail(2, *train_arguments(out, "--max-steps", 5), words=[str(out), "--resume", "--overwrite"])
    succeed(*train_arguments(out, "--max-steps", 5, "--overwrite"))


def interrupted(directory, number, code):
    out = directory / f"signal-{number}"
    process = subprocess.Popen([BINARY, *map(str, train_arguments(out, "--epochs", "200"))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + PATIENCE
    while time.time() < deadline and not (out / "metrics.jsonl").exists():
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, (process.returncode, err)
    assert list((out / "checkpoints").glob("step-*.h5")), err


def test_signals_leave_a_checkpoint(directory):
    need(DATA)
    interrupted(directory, signal.SIGINT, 130)
    interrupted(directory, signal.SIGUSR1, 85)
    interrupted(directory, signal.SIGTERM, 85)


def test_time_limit(directory):
    need(DATA)
    result = run(*train_arguments(directory / "run", "--epochs", "500", "--time-limit", "1s"))
    assert result.code == 8, result
    assert list((directory / "run/checkpoints").glob("step-*.h5"))


def test_gates(directory):
    need(DATA)
    out = directory / "run"
    result = run(*train_arguments(out, "--eval", EVAL, "--max-steps", 3, "--assert", "eval_accuracy>=0.99"))
    assert result.code == 7 and "FAIL" in result.out + result.err, result
    fail(2, *train_arguments(directory / "a", "--eval", EVAL, "--assert", "eval_bleu>1"), words=["eval_bleu"])
    fail(2, *train_arguments(directory / "b", "--eval", EVAL, "--assert", "eval_accuracy~1"), words=["eval_accuracy~1"])
    result = succeed(*train_arguments(directory / "c", "--eval", EVAL, "--max-steps", 3, "--baseline",
                                      out / "metrics.json", "--tolerance", "eval_accuracy=0.1"))
    assert "PASS" in result.out + result.err, result


def test_diverged(directory):
    need(DATA)
    result = run(*train_arguments(directory / "run", "--lr", "999", "--warmup-ratio", "0", "--max-grad-norm", "0",
                                  "--weight-decay", "0"))
    if result.code == 0:  # AdamW's steps are bounded; NaN weights are certain to fail (bad_input_test)
        return
    assert result.code == 6 and "step" in result.err, result


def test_predict(directory):
    need(DATA)
    out = directory / "run"
    succeed(*train_arguments(out, "--max-steps", 5))
    lines = "RONA BRACKETS\nAMAZON.CA BOOK, \"quoted\"\n"
    result = succeed("predict", "--model", out / "model", "--input", "-", "--output", "-", stdin=lines)
    rows = list(csv.DictReader(result.out.splitlines()))
    assert len(rows) == 2 and all(0 < float(r["probability"]) <= 1 for r in rows), rows
    target = directory / "predictions.csv"
    succeed("predict", "--model", out / "model", "--input", EVAL, "--output", target)
    with open(target, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 500 and {"text", "category", "label", "probability"} <= set(rows[0])
    fail(4, "predict", "--model", GOLDEN / "formats/safetensors-no-prefix-no-head", "--input", EVAL, "--output", "-",
         words=["head"])


main(globals())
