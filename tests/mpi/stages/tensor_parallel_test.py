"""Training on tensor ranks: the bits of one process with the same tensor shards, no deadlock."""
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import BINARY, Job, facts_of, kill_one, one_error, results_of, run_on, same_on, stop_one, succeed_on
from harness import Skip, fail, main, metrics_of, nightly
from training_jobs import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, prepared
from deeper_model import deeper_model

# Batches of 32, the last of which has 13 samples.
ROWS = ["--train", TRAIN, "--label-column", "category", "--lr", "3e-3", "--max-train-samples", 77, "--epochs", 1,
        "--eval", EVAL, "--max-eval-samples", 40, "--eval-every", 2, "--no-ngram-baseline"]
QUESTIONS = ["--task", "qa", "--train", SQUAD, "--lr", "1e-3", "--max-length", 128, "--doc-stride", 32,
             "--max-train-samples", 21, "--batch-size", 16, "--max-steps", 2, "--eval", SQUAD, "--max-eval-samples", 8]


def options_of(model, *more):
    return ["train", "--model", model, *more, "--dropout", "0.1", "--no-progress", "--quiet"]


def model_of(directory, source=MODEL, **changes):
    prepared()
    model = directory / "the-model"
    if not model.exists():
        deeper_model(model, source, **changes)
    return model


def rows(directory, **changes):
    return options_of(model_of(directory, **changes), *ROWS)


def test_rows(directory):
    line = [*rows(directory), "--virtual-shards", 2, "--micro-batches", 2, "--precision", "fp32"]
    same_on(directory, [*line, "--tensor-shards", 2], (2, 1, "--tp", 2, "--recompute"), (4, 1, "--tp", 2, "--placement", "spread"),
            (4, 2, "--tp", 2), (4, 1, "--tp", 2, "--pp", 2, "--placement", "spread"))


@nightly
def test_rows_on_several_hosts(directory):
    """Tensor ranks of a group between hosts, side by side or spread, and hosts with unequal shares of them."""
    line = [*rows(directory, num_attention_heads=4), "--virtual-shards", 2, "--micro-batches", 2, "--precision"]
    same_on(directory, [*line, "fp32", "--tensor-shards", 4], (2, 2, "--tp", 2), (4, 2, "--tp", 4, "--recompute"), (4, 3, "--tp", 4),
            (4, 2, "--tp", 2, "--placement", "TPD"),
            (8, 2, "--tp", 2, "--pp", 2, "--placement", "TDP", "--pipeline-schedule", "interleaved"),
            (4, 3, "--tp", 2, "--pp", 2, "--placement", "PTD"))
    same_on(directory, [*line, "bf16", "--tensor-shards", 2], (2, 2, "--tp", 2), (6, 4, "--tp", 2, "--placement", "PDT"))


def test_questions(directory):
    model = model_of(directory, QA_MODEL)
    line = options_of(model, *QUESTIONS, "--virtual-shards", 2, "--micro-batches", 3)
    same_on(directory, [*line, "--tensor-shards", 2], (2, 1, "--tp", 2), (4, 2, "--tp", 2, "--pp", 2, "--recompute"),
            (4, 2, "--tp", 2, "--pp", 2, "--placement", "spread"))


@nightly
def test_more_shards_than_ranks_in_bf16(directory):
    line = [*rows(directory, num_attention_heads=4), "--virtual-shards", 2, "--micro-batch-tokens", 300]
    same_on(directory, [*line, "--precision", "bf16", "--tensor-shards", 4], (2, 1, "--tp", 2), (4, 1, "--tp", 4, "--recompute"),
            (8, 2, "--tp", 2, "--pp", 2, "--pipeline-schedule", "interleaved"))


def test_frozen_layers_and_single_samples(directory):
    line = [*rows(directory), "--max-train-samples", 33, "--virtual-shards", 3, "--freeze", 1]
    same_on(directory, [*line, "--micro-batch-tokens", 100, "--tensor-shards", 2], (4, 1, "--tp", 2, "--pp", 2), (6, 1, "--tp", 2))


def test_continued_on_another_layout(directory):
    """The number of shards is fixed at the start, then by the checkpoint."""
    line = [*rows(directory, num_attention_heads=4), "--micro-batches", 2, "--save-every", 1, "--keep-checkpoints", 9]
    out = directory / "run"
    succeed_on(2, *line, "--tp", 2, "--output", out)
    expected = results_of(out)
    facts = facts_of(out)
    assert (facts["tensor_shards"], facts["virtual_shards"]) == ("2", "1"), facts
    layout = json.loads((out / "layout.json").read_text())
    assert (layout["dp"], layout["pp"], layout["tp"], layout["tensor_shards"]) == (1, 1, 2, 2), layout
    assert [rank["t"] for rank in layout["ranks"]] == [0, 1]
    assert "pp_bytes" not in metrics_of(out) and "dp_bytes" not in metrics_of(out)
    for processes, more in ((1, []), (4, ["--tp", 2, "--pp", 2])):
        (out / "metrics.json").unlink()
        shutil.rmtree(out / "model")
        for checkpoint in sorted((out / "checkpoints").iterdir())[1:]:
            checkpoint.unlink()
        one_error(run_on(4, *line, "--tp", 4, "--output", out, "--resume"), 2, "--tp 4", "--tensor-shards 2")
        succeed_on(processes, *line, *more, "--output", out, "--resume")
        assert results_of(out) == expected, more


def test_bytes_between_ranks(directory):
    """Four sums per layer over all tokens (fewer under a sequence head); replicas exchange what they share."""
    line = [*rows(directory), "--virtual-shards", 2, "--eval-every", 1]
    found = []
    for hosts in (1, 2):
        out = directory / f"run-{hosts}"
        succeed_on(4, *line, "--tp", 2, "--output", out, hosts=hosts)
        metrics = metrics_of(out)
        assert "pp_bytes" not in metrics and "pipeline_bubble" not in metrics, metrics
        found.append((metrics["tp_bytes"], metrics["dp_bytes"]))
    tokens = metrics["train_tokens_per_second"] / metrics["train_samples_per_second"] * 77
    rows_added = (4 * 4 - 3) * tokens + 4 * 77
    assert abs(metrics["tp_bytes"] * metrics["train_steps"] - 2 * 4 * 64 * rows_added) < 1, metrics
    assert found[0] == found[1], found
    # With replicas only: the same gradients and weights, no part twice.
    out = directory / "replicas"
    succeed_on(2, *line, "--tensor-shards", 2, "--output", out)
    assert metrics_of(out)["dp_bytes"] < found[0][1] and "tp_bytes" not in metrics_of(out), metrics_of(out)


def long_run(directory, *more):
    return [*rows(directory), "--virtual-shards", 2, "--epochs", 200, "--save-every", 20, "--tp", 2, *more]


def test_a_killed_tensor_rank_ends_the_job(directory):
    for hosts, more in ((1, []), (2, ["--placement", "spread"])):
        out = directory / f"run-{hosts}"
        job = Job("-n", 4, BINARY, *long_run(directory, *more), "--output", out, hosts=hosts)
        kill_one(job, out, 3, 8)
        told = "2 of 2 groups of tensor ranks are on several hosts" in (out / "log.txt").read_text()
        assert told == (hosts == 2), hosts


def test_a_stopped_tensor_rank_ends_the_job_in_time(directory):
    for processes, hosts in ((2, 1), (2, 2), (4, 2)):
        out = directory / f"run-{processes}-{hosts}"
        line = long_run(directory, "--comm-timeout", "2s", "--placement", "spread")
        job = Job("-n", processes, BINARY, *line, "--output", out, hosts=hosts)
        error = stop_one(job, out, 1, 4, 2)
        if (processes, hosts) == (2, 2):  # rank 1 stops between two steps, or within one
            places = ("exchanging sums of tensor shards", "in checkpoint, step ", "in evaluation, step ")
            assert any(place in error for place in places), error


def test_what_is_impossible(directory):
    line, out = rows(directory), directory / "run"
    for processes, hosts, more, words in (
            (3, 1, ["--tp", 2], ["3 processes", "--tp 2"]),
            (2, 1, ["--tp", 2, "--tensor-shards", 1], ["--tp 2", "--tensor-shards 1"]),
            (4, 1, ["--tp", 4], ["2 attention heads", "--tensor-shards 4"]),
            (2, 2, ["--tp", 2, "--tensor-shards", 3], ["--tp 2", "--tensor-shards 3"])):
        one_error(run_on(processes, *line, *more, "--output", out, hosts=hosts), 2, *words)
        assert not out.exists(), more
    fail(2, *line, "--tp", 2, "--output", out, words=["1 process", "--tp 2"])


def test_processors_that_differ(directory):
    """Values that all ranks of a group compute would differ in bf16; in fp32 they are equal."""
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        raise Skip("this processor has one set of instructions alone")
    line = [*rows(directory), "--max-steps", 1, "--tp", 2]

    def job(precision, out):
        own = [BINARY, *line, "--precision", precision, "--output", out]
        return Job("-n", 1, *own, ":", "-n", 1, "env", "FINETUNE_ISA=avx2", *own).wait()
    one_error(job("bf16", directory / "run"), 2, "--tp 2", "rank 1 ", "AVX2", "--precision fp32")
    result = job("fp32", directory / "run")
    assert result.code == 0, result


main(globals(), at_once=3)
