"""Training in pipeline stages and on tensor ranks with a CUDA module whose kernels run on the host.

Processes share a device: the bits are those of one process on it. cuda_stage_peers_test.py has one for each."""
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import ranks
from ranks import Job, kill_one, one_error, results_of, run_on, succeed_on
from harness import main, nightly, some_of, succeed
from cuda_jobs import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, need_several_devices, prepared
from cuda_on_host import counts_of
from deeper_model import deeper_model

# Batches of 8, the last of which has 5 samples; an evaluation between steps.
ROWS = ["--no-ngram-baseline", "--train", TRAIN, "--label-column", "category", "--lr", "3e-3", "--max-train-samples", 21,
        "--epochs", 1, "--batch-size", 8, "--eval", EVAL, "--max-eval-samples", 6, "--eval-every", 2]
QUESTIONS = ["--task", "qa", "--train", SQUAD, "--lr", "1e-3", "--max-length", 96, "--doc-stride", 8,
             "--max-train-samples", 7, "--batch-size", 4, "--max-steps", 2, "--eval", SQUAD, "--max-eval-samples", 1]


def options_of(model, *more):
    return ["train", "--model", model, *more, "--device", "cuda", "--dropout", "0.1", "--no-progress", "--quiet"]


def model_of(directory, source=MODEL, **changes):
    prepared()
    model = directory / "the-model"
    if not model.exists():
        deeper_model(model, source, **changes)
    return model


def same_on(directory, line, *cases):
    def check(out):
        facts, log = ranks.facts_of(out), (out / "log.txt").read_text()
        is_alone = facts["processes"] == "1"
        assert "computing on CUDA" in log and (is_alone or "goes through memory of the host" in log), log
    ranks.same_on(directory, line, *cases, check=check)


def test_rows_in_stages(directory):
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--virtual-shards", 2, "--micro-batches", 3]
    same_on(directory, line, *some_of(2, (4, 2, "--pp", 2, "--recompute"),
                                      (4, 1, "--pp", 2, "--pipeline-schedule", "interleaved"),
                                      (4, 1, "--pp", 4, "--pipeline-schedule", "gpipe"), (2, 1, "--pp", 2)))


@nightly
def test_questions_in_stages_in_bf16(directory):
    line = [*options_of(model_of(directory, QA_MODEL), *QUESTIONS), "--precision", "bf16", "--virtual-shards", 2,
            "--micro-batches", 2]
    same_on(directory, line, (2, 1, "--pp", 2, "--recompute"), (4, 1, "--pp", 2, "--placement", "spread"),
            (4, 2, "--pp", 2, "--pipeline-schedule", "interleaved", "--recompute"))


@nightly
def test_inputs_of_layers_on_the_host(directory):
    """With several micro-batches in flight, for whole stages and chunks."""
    offload = ["--recompute", "--offload-activations=1"]
    line = [*options_of(model_of(directory, QA_MODEL), *QUESTIONS), "--precision", "fp32", "--virtual-shards", 1,
            "--micro-batches", 4]
    same_on(directory, line, (1, 1, *offload), (2, 1, "--pp", 2, *offload),
            (2, 1, "--pp", 2, "--pipeline-schedule", "gpipe", *offload),
            (2, 1, "--pp", 2, "--pipeline-schedule", "interleaved", *offload))


def graphs_of(directory, processes, *line, env=None):
    """Runs; returns the number of graphs each rank launched."""
    report = directory / "report"
    succeed_on(processes, *line, "--output", directory / "run", "--overwrite",
               env={**(env or {}), "HOST_CUDA_REPORT": str(report)})
    return [counts_of(f"{report}{rank}")["graphs"] for rank in range(processes)]


def test_graphs(directory):
    """Passes of stages are replayed once their shapes have come twice, with the bits of single launches. Those of
    tensor ranks, which exchange in every layer, are launched one by one."""
    need_several_devices()
    line = [*options_of(model_of(directory), *ROWS[:-6]), "--max-train-samples", 8, "--max-steps", 6, "--no-shuffle",
            "--virtual-shards", 1, "--micro-batches", 2, "--tensor-shards", 2]
    succeed(*line, "--output", directory / "one")
    expected = results_of(directory / "one")
    for graphs, layout, replayed in some_of(
            2, ("256", ["--pp", 2], True), ("256", ["--tp", 2], False), ("0", ["--pp", 2], False)):
        counts = graphs_of(directory, 2, *line, *layout, env={"FINETUNE_CUDA_GRAPHS": graphs})
        assert all((count >= 8) if replayed else (count == 0) for count in counts), (layout, counts)
        assert results_of(directory / "run") == expected, (graphs, layout)


def test_too_little_memory(directory):
    """For a stage: the forecast equals the memory used."""
    need_several_devices()
    line = [*options_of(model_of(directory), *ROWS[:-6]), "--pp", 2, "--precision", "fp32", "--output", directory / "run"]
    for rank in (0, 1):
        memory = [1000, 1000]
        memory[rank] = 42
        result = run_on(2, *line, env={"HOST_CUDA_MEMORY_MB": "{} {}".format(*memory)})
        error = one_error(result, 5, f"rank {rank} ", "too little memory", "2 MiB are free", "more --micro-batches")
        memory[rank] = 40 + int(error.split("needs ")[1].split()[0])
        succeed_on(2, *line, "--overwrite", env={"HOST_CUDA_MEMORY_MB": "{} {}".format(*memory)})
        shutil.rmtree(directory / "run")


def test_a_killed_stage_ends_the_job(directory):
    line = [*options_of(model_of(directory), *ROWS), "--epochs", 200, "--pp", 2, "--tp", 2]
    kill_one(Job("-n", 4, ranks.BINARY, *line, "--output", directory / "run"), directory / "run", 3, 3)


@nightly
def test_rows_on_tensor_ranks(directory):
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--virtual-shards", 2, "--micro-batches", 2,
            "--tensor-shards", 2]
    same_on(directory, line, (4, 1, "--tp", 2, "--recompute"),
            (4, 1, "--tp", 2, "--pp", 2, "--placement", "spread"))


@nightly
def test_questions_on_tensor_ranks_in_bf16(directory):
    line = [*options_of(model_of(directory, QA_MODEL, num_attention_heads=4), *QUESTIONS), "--precision", "bf16",
            "--virtual-shards", 2, "--micro-batches", 2, "--tensor-shards", 4]
    same_on(directory, line, (2, 1, "--tp", 2, "--recompute"), (4, 1, "--tp", 4))


main(globals(), at_once=3)
