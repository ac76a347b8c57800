"""Stages and tensor ranks that have a device each, on a CUDA module whose kernels run on the host.

What they exchange goes from device to device, through an NCCL made for these tests in which who sends waits for the
other end (tests/unit/ops/host_cuda). The bits are those of one process on such a device."""
import json
import os
import shutil
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import ranks
from ranks import Job, kill_one, lines_in, nothing_left, one_error, ranks_of, run_on, succeed_on, wait_for
from harness import main, metrics_of, nightly, some_of, succeed
from cuda_jobs import EACH, EVAL, MODEL, QA_MODEL, SQUAD, TRAIN, need_several_devices, prepared
from deeper_model import deeper_model

ROWS = ["--train", TRAIN, "--label-column", "category", "--lr", "3e-3", "--max-train-samples", 13, "--epochs", 1,
        "--batch-size", 8, "--eval", EVAL, "--max-eval-samples", 6, "--eval-every", 1, "--no-ngram-baseline"]
QUESTIONS = ["--task", "qa", "--train", SQUAD, "--lr", "1e-3", "--max-length", 96, "--doc-stride", 8,
             "--max-train-samples", 7, "--batch-size", 4, "--max-steps", 2, "--eval", SQUAD, "--max-eval-samples", 1]
LATE, EARLY, AHEAD = ({**EACH, "HOST_CUDA_STREAMS": mode} for mode in ("late", "early", "priority"))
ROUTES = "what stages and tensor ranks exchange goes from GPU to GPU (NCCL)"


def model_of(directory, source=MODEL, **changes):
    prepared()
    need_several_devices()
    model = directory / "the-model"
    deeper_model(model, source, **changes)
    return model


def options_of(model, *more):
    return ["train", "--model", model, "--device", "cuda", "--dropout", "0.1", "--no-progress", "--quiet", *more]


def same_on(directory, line, *cases):
    def check(out):
        assert ROUTES in (out / "log.txt").read_text(), (out / "log.txt").read_text()
    ranks.same_on(directory, line, *cases, check=check)


def test_rows_in_stages(directory):
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--virtual-shards", 2, "--micro-batches", 3]
    same_on(directory, line, *some_of(3, (2, 1, LATE, "--pp", 2),
                                      (2, 1, EARLY, "--pp", 2, "--pipeline-schedule", "interleaved", "--recompute"),
                                      (4, 2, EACH, "--pp", 2, "--stages", "3,1", "--placement", "spread"),
                                      (4, 1, EACH, "--pp", 4, "--pipeline-schedule", "gpipe")))


@nightly
def test_replicas_of_stages(directory):
    """Also with chunks, each of which has buckets, and with empty shards."""
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--virtual-shards", 3, "--micro-batches", 2,
            "--bucket-mb", "0.1"]
    same_on(directory, line, (4, 1, AHEAD, "--pp", 2, "--pipeline-schedule", "interleaved"),
            (4, 2, LATE, "--pp", 2, "--recompute"))
    few = [*options_of(model_of(directory / "b"), *ROWS), "--virtual-shards", 4, "--batch-size", 3, "--freeze", 2]
    same_on(directory / "b", few, (4, 1, EACH, "--pp", 2))


@nightly
def test_questions_in_stages_in_bf16(directory):
    """With inputs of layers offloaded to the host, and uneven stages."""
    line = [*options_of(model_of(directory, QA_MODEL), *QUESTIONS), "--precision", "bf16", "--virtual-shards", 2,
            "--micro-batches", 2]
    same_on(directory, line, (2, 1, EACH, "--pp", 2, "--stages", "1,3", "--recompute", "--offload-activations=1"),
            (4, 2, EACH, "--pp", 4, "--recompute"))


def test_rows_on_tensor_ranks(directory):
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--virtual-shards", 2, "--micro-batches", 2,
            "--tensor-shards", 2, "--bucket-mb", "0.1"]
    same_on(directory, line, *some_of(2, (2, 1, LATE, "--tp", 2, "--recompute"),
                                      (4, 2, EACH, "--tp", 2, "--pp", 2, "--placement", "spread"),
                                      (4, 1, AHEAD, "--tp", 2)))


@nightly
def test_questions_on_tensor_ranks_in_bf16(directory):
    line = [*options_of(model_of(directory, QA_MODEL, num_attention_heads=4), *QUESTIONS), "--precision", "bf16",
            "--virtual-shards", 2, "--micro-batches", 2, "--tensor-shards", 4]
    same_on(directory, line, (2, 1, EACH, "--tp", 2), (4, 1, EARLY, "--tp", 4),
            (4, 1, LATE, "--tp", 2, "--pp", 2, "--pipeline-schedule", "interleaved", "--recompute"))


@nightly
def test_bytes_are_those_through_the_host(directory):
    """The counts equal the formulas (layout_bench_test.py)."""
    line = [*options_of(model_of(directory), *ROWS), "--virtual-shards", 2, "--micro-batches", 2, "--tensor-shards", 2]
    for number, layout in enumerate((["--pp", 2], ["--tp", 2], ["--pp", 2, "--tp", 2])):
        found = []
        for env in (None, EACH):
            out = directory / f"{number}-{len(found)}"
            succeed_on(4, *line, *layout, "--output", out, env=env)
            assert (ROUTES in (out / "log.txt").read_text()) == (env is not None)
            found.append({name: value for name, value in metrics_of(out).items() if name.endswith("_bytes")})
        axes = {"pp_bytes": "--pp" in layout, "tp_bytes": "--tp" in layout, "dp_bytes": len(layout) == 2}
        assert found[0] == found[1] and set(found[0]) == {axis for axis, there in axes.items() if there}, found


def files_in(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def said(line):
    line = json.loads(line)
    del line["output"]
    for option in ("pp", "tp", "stages", "placement"):
        line["options"].pop(option, None)
    return line


def compare_inference(model, data, directory, more, *cases):
    """Each case: processes, environment, layout. Small batches, so that there are many."""
    line = ["--model", model, *more, "--device", "cuda", "--tensor-shards", 2]
    evaluation, prediction = ["evaluate", *line, "--data", data, "--json"], ["predict", *line, "--input", data]
    expected = said(succeed(*evaluation, "--output", directory / "one").out)
    alone = succeed(*prediction, "--output", "-").out
    assert alone and metrics_of(directory / "one")
    for number, (processes, env, *layout) in enumerate(cases):
        out = directory / f"case-{number}"
        result = succeed_on(processes, *evaluation, *layout, "--output", out, env=env)
        assert ("from GPU to GPU" if env else "through memory of the host") in result.err, result
        assert said(result.out) == expected and files_in(out) == files_in(directory / "one"), (layout, result)
        assert succeed_on(processes, *prediction, *layout, "--output", "-", env=env).out == alone, layout


@nightly
def test_evaluation_and_prediction_of_rows(directory):
    model, rows = model_of(directory), directory / "rows.csv"
    rows.write_text("".join(EVAL.read_text().splitlines(keepends=True)[:32]))
    compare_inference(model, rows, directory, ["--label-column", "category", "--batch-size", 3],
                      (2, LATE, "--tp", 2), (2, None, "--tp", 2), (4, EACH, "--pp", 2, "--tp", 2),
                      (4, LATE, "--pp", 4))


def test_evaluation_and_prediction_of_questions(directory):
    model, questions = model_of(directory, QA_MODEL), directory / "questions.json"
    squad = json.loads(SQUAD.read_text())
    questions.write_text(json.dumps({**squad, "data": [{**squad["data"][0], "paragraphs":
                                                        squad["data"][0]["paragraphs"][:2]}]}))
    compare_inference(model, questions, directory,
                      ["--max-length", 96, "--doc-stride", 8, "--precision", "bf16", "--batch-size", 2],
                      (4, LATE, "--pp", 2, "--placement", "spread"), (4, None, "--pp", 2, "--tp", 2))


def test_a_killed_process_ends_the_job(directory):
    line = [*options_of(model_of(directory), *ROWS), "--epochs", 200]
    for layout, rank in ((["--pp", 4], 2), (["--pp", 2, "--tp", 2], 0)):
        out = directory / "-".join(map(str, layout))
        kill_one(Job("-n", 4, ranks.BINARY, *line, *layout, "--output", out, env=EACH), out, rank, 3)


def test_a_stopped_process_is_named(directory):
    line = [*options_of(model_of(directory), *ROWS), "--epochs", 200, "--comm-timeout", "2s"]
    for layout in (["--pp", 2], ["--tp", 2]):
        out = directory / "".join(map(str, layout))
        job = Job("-n", 4, ranks.BINARY, *line, *layout, "--output", out, env=EACH)
        assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 3, job), job.wait()
        os.kill(ranks_of(out)[1], signal.SIGSTOP)
        one_error(job.wait(), 5, "rank 1 ", "stopped")
        nothing_left(out)


def test_a_failing_peer_ends_the_job(directory):
    line = [*options_of(model_of(directory), *ROWS), "--comm-timeout", "2s", "--output", directory / "run"]
    for layout, fault in ((["--pp", 2], {"HOST_NCCL_FAILS": "1"}), (["--tp", 2], {"HOST_NCCL_STALLS": "1"})):
        one_error(run_on(2, *line, *layout, env={**EACH, **fault}), 5, "rank 1 ")
        nothing_left(directory / "run")
        shutil.rmtree(directory / "run", ignore_errors=True)


def test_too_little_memory(directory):
    """For a stage or tensor rank: the memory used equals the forecast, including exchange and evaluation."""
    line = [*options_of(model_of(directory), *ROWS), "--precision", "fp32", "--output", directory / "run"]
    for rank, layout in ((1, ["--pp", 2]), (1, ["--tp", 2]), (0, ["--pp", 2])):
        def memory(megabytes):
            each = [1000, 1000]
            each[rank] = megabytes
            return {**EACH, "HOST_CUDA_MEMORY_MB": "{} {}".format(*each)}
        result = run_on(2, *line, *layout, env=memory(42))
        error = one_error(result, 5, f"rank {rank} ", "too little memory", "2 MiB are free")
        succeed_on(2, *line, *layout, "--overwrite", env=memory(40 + int(error.split("needs ")[1].split()[0])))
        shutil.rmtree(directory / "run")


main(globals(), at_once=3)
