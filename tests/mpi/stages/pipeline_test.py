"""Training in pipeline stages: the bits of one process, resuming in any layout, no deadlock."""
import json
import shutil
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import (BINARY, Job, facts_of, kill_one, lines_in, nothing_left, one_error, results_of, run_on, same_on,
                   stop_one, succeed_on, wait_for)
from harness import fail, main, metrics_of, nightly, some_of, succeed
from training_jobs import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, prepared
from deeper_model import deeper_model

# Batches of 32, the last of which has 13 samples.
ROWS = ["--train", TRAIN, "--label-column", "category", "--lr", "3e-3", "--max-train-samples", 109, "--epochs", 1]
QUESTIONS = ["--task", "qa", "--train", SQUAD, "--lr", "1e-3", "--max-length", 128, "--doc-stride", 32,
             "--max-train-samples", 21, "--batch-size", 16, "--max-steps", 3, "--eval", SQUAD, "--max-eval-samples", 8,
             "--eval-every", 2]
EVALUATED = ["--eval", EVAL, "--max-eval-samples", 60, "--eval-every", 2]
NO_BASELINE = "--no-ngram-baseline"  # the baseline takes longer than these runs


def rows(directory):
    prepared()
    model = directory / "rows-model"
    return ["train", "--model", model if model.exists() else deeper_model(model, MODEL), *ROWS, "--dropout", "0.1",
            "--no-progress", "--quiet"]


def questions(directory):
    prepared()
    return ["train", "--model", deeper_model(directory / "qa-model", QA_MODEL), *QUESTIONS, "--dropout", "0.1",
            "--no-progress", "--quiet"]


def train(processes, hosts, line):
    return succeed(*line) if processes == 1 else succeed_on(processes, *line, hosts=hosts)


def test_rows(directory):
    same_on(directory, [*rows(directory), *EVALUATED, "--virtual-shards", 2, "--micro-batches", 4],
            *some_of(4, (4, 2, "--pp", 2, "--recompute"), (4, 1, "--pp", 4, "--pipeline-schedule", "gpipe"),
                     (4, 2, "--pp", 2, "--placement", "spread", "--pipeline-schedule", "simple"),
                     (4, 1, "--pp", 2, "--pipeline-schedule", "interleaved"), (6, 1, "--pp", 2)))


def test_questions(directory):
    same_on(directory, [*questions(directory), "--virtual-shards", 2, "--micro-batches", 3],
            (2, 1, "--pp", 2, "--recompute"), (6, 2, "--pp", 2, "--placement", "PDT"),
            (4, 2, "--pp", 2, "--pipeline-schedule", "interleaved", "--placement", "spread"))


def test_single_precision_and_one_shard(directory):
    same_on(directory, [*rows(directory), "--virtual-shards", 1, "--micro-batches", 6, "--precision", "fp32"],
            (2, 2, "--pp", 2, "--pipeline-schedule", "interleaved", "--recompute"), (3, 1, "--pp", 3, "--stages", "1,2,1"),
            (4, 1, "--pp", 2))


def test_frozen_layers(directory):
    """Stages that send no gradient, or train nothing."""
    for frozen, *case in (("embeddings", 4, 1, "--pp", 2), (2, 4, 2, "--pp", 4, "--recompute"), (4, 4, 1, "--pp", 2)):
        same_on(directory, [*rows(directory), "--virtual-shards", 3, "--micro-batches", 2, "--freeze", frozen], case)


@nightly
def test_chunks_that_are_at_several_shards(directory):
    """Interleaved, with shards that end in the middle of a round of micro-batches."""
    interleaved = ["--pp", 2, "--pipeline-schedule", "interleaved"]
    same_on(directory, [*rows(directory), *EVALUATED, NO_BASELINE, "--virtual-shards", 5, "--micro-batches", 3],
            (2, 1, *interleaved), (4, 2, *interleaved, "--placement", "spread", "--recompute"))
    same_on(directory, [*rows(directory), "--virtual-shards", 6, "--micro-batches", 1, "--freeze", 1],
            (2, 2, *interleaved, "--recompute"))
    same_on(directory, [*questions(directory), "--virtual-shards", 7, "--micro-batches", 1], (4, 1, *interleaved))


@nightly
def test_few_samples(directory):
    """More shards than samples in the last batch, fewer micro-batches than stages, replicas without shards."""
    line = [*rows(directory), "--max-train-samples", 37]
    same_on(directory, [*line, "--virtual-shards", 8, "--micro-batches", 1], (8, 2, "--pp", 4))
    same_on(directory, [*line, "--virtual-shards", 1, "--micro-batches", 2], (4, 1, "--pp", 4), (6, 2, "--pp", 2))
    same_on(directory, [*line, "--virtual-shards", 3, "--micro-batch-tokens", 100],
            (4, 2, "--pp", 2, "--pipeline-schedule", "gpipe"))


def test_defaults_are_kept(directory):
    """Default: one shard per replica, about four micro-batches per stage; a resumed run keeps them."""
    line, out = rows(directory), directory / "run"
    first = succeed_on(4, *line, "--pp", 2, "--save-every", 2, "--keep-checkpoints", 9, "--output", out, "--json")
    expected = results_of(out)
    cut = {name: value for name, value in json.loads(first.out)["options"].items() if "shards" in name or "micro" in name}
    assert cut == {"micro-batches": 8, "virtual-shards": 2}, first.out
    assert facts_of(out)["virtual_shards"] == "2"
    config = (out / "config.toml").read_text()
    assert "\nmicro-batches = 8\n" in config and "micro-batch-tokens" not in config, config
    layout = json.loads((out / "layout.json").read_text())
    assert (layout["dp"], layout["pp"], layout["placement"]) == (2, 2, "DPT")
    assert [(rank["d"], rank["p"]) for rank in layout["ranks"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert "layout DPT, 1f1b: 4 processes = 2 replicas x 2 stages" in (out / "log.txt").read_text()
    bubble = metrics_of(out)["pipeline_bubble"]
    assert 1 / 9 <= bubble < 0.3 and metrics_of(out)["pp_bytes"] > 0, metrics_of(out)
    succeed(*line, "--virtual-shards", 2, "--micro-batches", 8, "--output", directory / "one")
    assert results_of(directory / "one") == expected
    (out / "metrics.json").unlink()
    (out / "checkpoints/step-00000004.h5").unlink()
    succeed(*line, "--output", out, "--resume")
    assert results_of(out) == expected


def test_bytes_between_stages(directory):
    """For each micro-batch and boundary: its hidden states up once and their gradients down once, in fp32."""
    out = directory / "run"
    succeed_on(2, *rows(directory), "--pp", 2, "--output", out)
    metrics = metrics_of(out)
    tokens = metrics["train_tokens_per_second"] / metrics["train_samples_per_second"] * 109
    assert abs(metrics["pp_bytes"] * metrics["train_steps"] - 2 * 4 * 64 * tokens) < 1, metrics


def test_continued_on_another_layout(directory):
    options = [*rows(directory), *EVALUATED, NO_BASELINE, "--virtual-shards", 2, "--micro-batches", 3, "--save-every", 1,
               "--keep-checkpoints", 9]
    succeed(*options, "--output", directory / "straight")
    expected = results_of(directory / "straight")
    ways = [(4, 2, "--pp", 2, "--placement", "spread"), (4, 1, "--pp", 4, "--pipeline-schedule", "gpipe"), (1, 1),
            (6, 2, "--pp", 2, "--recompute")]
    for before, after in zip(ways, [*ways[1:], ways[0]]):
        out = directory / "run"
        train(before[0], before[1], [*options, *before[2:], "--output", out])
        (out / "metrics.json").unlink()
        shutil.rmtree(out / "model")
        for checkpoint in sorted((out / "checkpoints").iterdir())[2:]:
            checkpoint.unlink()
        train(after[0], after[1], [*options, *after[2:], "--output", out, "--resume"])
        assert results_of(out) == expected, (before, after)
        shutil.rmtree(out)


def long_run(directory, *more):
    return [*rows(directory), "--virtual-shards", 2, "--micro-batches", 4, "--epochs", 200, "--save-every", 20, "--pp", 2,
            *more]


def test_stopped_by_a_signal(directory):
    out = directory / "run"
    job = Job("-n", 4, BINARY, *long_run(directory), "--output", out, hosts=2)
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 12, job), job.wait()
    job.process.send_signal(signal.SIGUSR1)
    result = job.wait()
    assert result.code == 85 and "finetune: error:" not in result.err, result
    nothing_left(out)
    assert list((out / "checkpoints").glob("*.h5")) and not (out / "metrics.json").exists()


def test_a_killed_stage_ends_the_job(directory):
    for hosts, rank in ((1, 1), (2, 0)):
        out = directory / f"run-{hosts}"
        kill_one(Job("-n", 4, BINARY, *long_run(directory), "--output", out, hosts=hosts), out, rank, 14)


def test_a_stopped_stage_ends_the_job_in_time(directory):
    for hosts, rank in ((1, 0), (2, 3)):
        out = directory / f"run-{hosts}"
        job = Job("-n", 4, BINARY, *long_run(directory, "--comm-timeout", "2s"), "--output", out, hosts=hosts)
        stop_one(job, out, rank, 5, 2)


def test_what_is_impossible(directory):
    line, out = rows(directory), directory / "run"
    for processes, more, words in (
            (3, ["--pp", 2], ["3 processes", "--pp 2"]),
            (5, ["--pp", 5], ["--pp 5", "5 layers", "has 4"]),
            (2, ["--pp", 2, "--stages", "3,2"], ["'3,2'", "5 layers", "has 4"])):
        one_error(run_on(processes, *line, *more, "--output", out), 2, *words)
        assert not out.exists(), more
    for more, words in (
            (["--pp", 2], ["1 process", "--pp 2"]), (["--stages", "2,2"], ["--stages", "--pp"]),
            (["--pp", 2, "--chunks", 2], ["--chunks 2", "interleaved"]),
            (["--pp", 2, "--placement", "DP"], ["--placement", "'DP'"]),
            (["--pp", 2, "--micro-batches", 2, "--micro-batch-tokens", 99], ["--micro-batches 2", "99"])):
        fail(2, *line, *more, "--output", out, words=words)
        assert not out.exists(), more


main(globals(), at_once=3)
