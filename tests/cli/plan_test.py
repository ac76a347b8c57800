"""plan: the forecast compared with the real run."""
import json
import os
import re
import shutil
import subprocess
import sys

from blank_model import blank_model
from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN
from harness import GOLDEN, fail, main, metrics_of, need, nightly, succeed

DATA = ["--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--ignore-unknown-labels"]
CLASSIFICATION = ["--model", MODEL, *DATA, "--batch-size", 32, "--max-steps", 40]
QA = ["--train", SQUAD, "--eval", SQUAD, "--max-steps", 1, "--batch-size", 8, "--max-eval-samples", 8]
NEVER_SEEN = ["--quiet", "--no-progress"]


def plan(*arguments):
    return json.loads(succeed("plan", *arguments, "--json").out)


def peak_of(directory, *arguments):
    """The forecast, which must be within a tenth of the measured value."""
    out = directory / "run"
    shutil.rmtree(out, ignore_errors=True)
    forecast = plan(*arguments, "--no-time")
    succeed("train", *arguments, "--output", out, *NEVER_SEEN)
    metrics = metrics_of(out)
    ratio = forecast["peak_memory_mb"] / metrics["peak_memory_mb"]
    print(f"forecast {forecast['peak_memory_mb']:.0f} MiB, {ratio:.3f} of the truth")
    assert 0.9 <= ratio <= 1.1, (arguments, ratio, metrics["peak_memory_mb"], forecast)
    assert forecast["steps"] == metrics["train_steps"]
    return forecast["peak_memory_mb"]


def test_peak_of_classification(directory):
    need(*MODELS)
    model = blank_model(directory / "model", MODEL)
    run = ["--model", model, *DATA, "--max-steps", 3, "--max-eval-samples", 100]
    kept = peak_of(directory, *run)
    assert peak_of(directory, *run, "--virtual-shards", 4) > 1.1 * kept  # three gradients, smaller micro-batches


@nightly
def test_peak_of_frozen_layers(directory):
    need(*MODELS)
    model = blank_model(directory / "model", MODEL)
    run = ["--model", model, *DATA, "--max-steps", 3, "--max-eval-samples", 100, "--precision", "fp32"]
    # About four fifths: memory kept by libraries does not shrink.
    frozen, whole = (peak_of(directory, *run, "--freeze", layers) for layers in (3, 0))
    assert frozen < 0.85 * whole


@nightly
def test_peak_of_question_answering(directory):
    need(*MODELS)
    model = blank_model(directory / "model", QA_MODEL)
    kept = peak_of(directory, "--model", model, *QA)
    assert peak_of(directory, "--model", model, *QA, "--recompute") < 0.75 * kept
    assert peak_of(directory, "--model", model, *QA, "--micro-batch-tokens", 768) < 0.75 * kept


def test_numbers(directory):
    need(*MODELS)
    forecast = plan(*CLASSIFICATION, "--no-time")
    assert all(isinstance(value, (int, float)) for value in forecast.values())
    # Two epochs: two checkpoints of weights and moments, then only the model remains.
    assert forecast["checkpoint_disk_mb"] - 1 == 3 * (forecast["model_disk_mb"] - 1) > 0, forecast
    assert forecast["peak_disk_mb"] == 2 * forecast["checkpoint_disk_mb"] + forecast["model_disk_mb"], forecast
    assert forecast["final_disk_mb"] == forecast["model_disk_mb"], forecast
    parts = ("weights_mb", "gradients_mb", "optimizer_mb", "activations_mb", "data_mb", "program_mb")
    assert abs(sum(forecast[part] for part in parts) - forecast["peak_memory_mb"]) < 0.1, forecast
    assert 1.9 * forecast["weights_mb"] < forecast["optimizer_mb"] <= 2 * forecast["weights_mb"]
    assert forecast["evaluations"] == 2 and forecast["eval_samples"] == 500 and forecast["samples"] == 960
    assert forecast["all_processes_mb"] == forecast["peak_memory_mb"]
    assert not any(name.endswith("_seconds") for name in forecast)
    # The other settings are forecast as if planned alone.
    other = plan(*CLASSIFICATION, "--no-time", "--recompute", "--micro-batch-tokens",
                 int(forecast["half_micro_batch_tokens"]))
    # Memory of libraries and threads follows the run's own micro-batches; theirs comes in pages of 2 MiB.
    difference = abs(other["peak_memory_mb"] - forecast["half_recomputed_peak_mb"])
    assert difference < 6, (other, forecast)
    sharded = plan(*CLASSIFICATION, "--no-time", "--virtual-shards", 8)
    assert sharded["virtual_shards"] == 8 and sharded["gradients_mb"] == 4 * forecast["gradients_mb"]
    shared = plan(*CLASSIFICATION, "--no-time", "--processes", 4)
    assert shared["virtual_shards"] == 4 and abs(shared["optimizer_mb"] - 2 * shared["weights_mb"]) < 0.1
    assert shared["peak_memory_mb"] < shared["all_processes_mb"] < 4 * shared["peak_memory_mb"]


def test_a_number_of_micro_batches(directory):
    need(*MODELS)
    run = [*CLASSIFICATION, "--no-time", "--batch-size", 16]
    bounded, two, four = (plan(*run, *more) for more in ([], ["--micro-batches", 2], ["--micro-batches", 4]))
    assert (bounded["micro_batches"], two["micro_batches"], four["micro_batches"]) == (0, 2, 4)
    assert bounded["micro_batch_tokens"] == two["micro_batch_tokens"]  # of the evaluation
    assert four["largest_micro_batch_tokens"] < two["largest_micro_batch_tokens"] < bounded["step_tokens"]
    assert "half_micro_batch_tokens" not in two
    # The program's own memory is measured and varies between calls.
    difference = two["half_kept_peak_mb"] - two["program_mb"] - (four["kept_peak_mb"] - four["program_mb"])
    assert abs(difference) < 1, (two, four)


def test_time(directory):
    need(*MODELS)
    forecast = plan(*CLASSIFICATION)
    assert forecast["step_seconds"] > 0 and forecast["evaluation_seconds"] > 0 and forecast["startup_seconds"] > 0
    total = forecast["startup_seconds"] + 40 * forecast["step_seconds"] + 2 * forecast["evaluation_seconds"]
    assert abs(forecast["total_seconds"] - total) < 1e-9, forecast
    for name in ("step", "total"):
        low, middle, high = (forecast[f"{name}_seconds{end}"] for end in ("_low", "", "_high"))
        assert 0 < low <= middle <= high, forecast
    assert 0 <= forecast["waited_share"] < 1, forecast
    # A run shorter than its data is timed on its own batches, because buffers depend on them.
    assert plan(*CLASSIFICATION[:-1], 2, "--batch-size", 4)["step_seconds"] > 0
    # A long step is extrapolated from short ones.
    long = plan("--model", QA_MODEL, *QA, "--batch-size", 4000, "--micro-batch-tokens", 1000, "--virtual-shards", 3)
    assert long["total_seconds"] > 0 and long["largest_micro_batch_tokens"] <= 1000
    text = succeed("plan", *CLASSIFICATION, "--output", directory / "run").out
    for words in ("40 steps of 32 samples", "2 evaluations of 500", "optimizer", "peak", "--recompute", "disk, MiB", "in all"):
        assert words in text, text
    assert re.search(r"^  step +[\d.,]+(–[\d.,]+)? ms  [\d,]+(–[\d,]+)? tokens/s, [\d,–]+ samples/s$", text, re.M), text
    assert not re.search(r"(?<!\.)\d{4}", text.partition("with other settings")[0]), text
    assert not (directory / "run").exists()


def test_a_busy_machine_is_named(directory):
    """On a machine with more running programs than processors, steps take longer and plan says why."""
    need(*MODELS)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * (os.cpu_count() or 1))]
    try:
        text = succeed("plan", *CLASSIFICATION).out
    finally:
        for other in others:
            other.kill()
            other.wait()
    found = re.search(r"^The machine is busy: other programs had the processors for (\d+) %", text, re.M)
    assert found and int(found[1]) > 30, text
    low, high = (float(number.replace(",", ""))
                 for number in re.search(r"^  step +([\d.,]+)–([\d.,]+) ms", text, re.M).groups())
    assert high > 1.3 * low, text


def test_options_are_those_of_train(directory):
    need(*MODELS)
    out = directory / "run"
    succeed("train", *CLASSIFICATION, "--output", out, "--recompute", *NEVER_SEEN)
    before = sorted(path.name for path in out.iterdir())
    forecast = plan("--config", out / "config.toml", "--no-time")  # --output exists already
    assert forecast["steps"] == 40 and forecast["peak_memory_mb"] < metrics_of(out)["peak_memory_mb"] + 10
    assert before == sorted(path.name for path in out.iterdir())
    fail(2, "plan", "--train", TRAIN, words=["--model"])
    fail(2, "plan", *CLASSIFICATION, "--lr", "fast", words=["--lr"])
    fail(2, "plan", *CLASSIFICATION, "--processes", 0, words=["--processes"])
    fail(2, "plan", *CLASSIFICATION, "--assert", "eval_exact_match>=1", words=["eval_exact_match"])
    fail(2, "plan", *CLASSIFICATION, "--freeze", 9, words=["--freeze"])
    fail(2, "plan", *CLASSIFICATION, "--max-length", 513, words=["--max-length"])
    fail(3, "plan", "--model", MODEL, "--train", directory / "absent.csv", words=["absent.csv"])
    fail(4, "plan", "--model", directory, "--train", TRAIN, words=["is not a model; it holds 1 directory"])
    for name in ("missing-encoder-tensor", "nan-weights", "shape-not-of-config"):
        broken = GOLDEN / "broken" / name
        if broken.exists():
            fail(4, "plan", "--model", broken, *DATA, "--no-time", words=[name])


def test_steps_beyond_all_numbers(directory):
    need(*MODELS)
    run = [*CLASSIFICATION, "--max-train-samples", 50, "--no-time"]
    epoch, endless = (plan(*run, *more) for more in (["--epochs", 1], ["--max-steps", 2**63 - 1]))
    for name in ("largest_micro_batch_tokens", "step_tokens"):
        assert epoch[name] == endless[name], (name, epoch, endless)
    assert endless["steps"] == 2**63 and endless["evaluations"] > 2**60, endless  # doubles
    assert plan(*run, "--eval-every", 2**63 - 1)["evaluations"] == 1
    timed = plan(*run[:-1], "--max-steps", 2**63 - 1)
    assert timed["total_seconds"] > timed["step_seconds"] * 2**62, timed


def test_batch_larger_than_the_data(directory):
    need(*MODELS)
    run = [*CLASSIFICATION, "--max-train-samples", 50, "--batch-size", 1000]
    text = succeed("plan", *run).out
    assert "40 steps of 50 samples" in text, text
    forecast = plan(*run, "--micro-batch-tokens", 1, "--no-time")
    assert "half_micro_batch_tokens" not in forecast, forecast


main(globals(), at_once=2)
