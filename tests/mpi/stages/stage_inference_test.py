"""Evaluation and prediction through a pipeline's stages: one process's files, byte for byte."""
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import Job, need_mpirun, one_error, run_on, succeed_on
from harness import fail, main, metrics_of, nightly, succeed
from training_jobs import EVAL, MODEL, QA_MODEL, SQUAD, prepared
from deeper_model import deeper_model
from inference_jobs import killed_prediction, one_rank_cannot_read_its_weights


def files_in(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


# Replicas, stages, hosts; and further options.
LAYOUTS = ((1, 2, 1, ["--stages", "3,1"]), (2, 2, 2, ["--placement", "spread"]), (1, 4, 2, []), (1, 3, 1, []))


def said(line):
    """The facts in a --json line about model and data, independent of paths and layout."""
    line = json.loads(line)
    del line["output"]
    for option in ("pp", "stages", "placement"):
        line["options"].pop(option, None)
    return line


def compare(directory, model, data, evaluate, predict):
    """`evaluate` and `predict`: the task's further options; small batches, so that there are many."""
    many = ["--batch-size", 5]
    line = ["evaluate", "--model", model, "--data", data, "--json", *evaluate, *many]
    expected = succeed(*line, "--output", directory / "alone").out
    answers = ["predict", "--model", model, "--input", data, *predict, *many]
    alone = succeed(*answers, "--output", "-").out
    assert alone
    for dp, pp, hosts, more in LAYOUTS:
        layout = ["--pp", pp, *more]
        out = directory / f"{dp}-{pp}-{hosts}"
        result = succeed_on(dp * pp, *line, *layout, "--output", out, hosts=hosts)
        assert said(result.out) == said(expected), (layout, result.out, expected)
        layers = "3, 1 layers" if "--stages" in more else ""
        assert f" processes = {dp} x {pp} stages of {layers}" in result.err, result
        assert files_in(out) == files_in(directory / "alone"), layout
        if pp == 2:
            assert succeed_on(dp * pp, *answers, *layout, "--output", "-", hosts=hosts).out == alone, layout
    assert metrics_of(directory / "alone")


def test_classification_through_stages_is_that_of_one_process(directory):
    prepared()
    labels = ["--label-column", "category"]
    compare(directory, deeper_model(directory / "model", MODEL), EVAL, labels, [*labels, "--all-probabilities"])


@nightly
def test_question_answering_through_stages_is_that_of_one_process(directory):
    prepared()
    windows = ["--max-length", 96, "--doc-stride", 32]
    compare(directory, deeper_model(directory / "model", QA_MODEL), SQUAD, windows, windows)


def test_bf16_through_stages_is_that_of_one_process(directory):
    prepared()
    line = ["predict", "--model", MODEL, "--input", EVAL, "--label-column", "category", "--output", "-",
            "--precision", "bf16", "--all-probabilities"]
    assert succeed_on(2, *line, "--pp", 2).out == succeed(*line).out


def test_fewer_micro_batches_than_stages_and_none(directory):
    prepared()
    model = deeper_model(directory / "model", MODEL)
    line = ["predict", "--model", model, "--input", "-", "--output", "-"]
    for text in ("", "hello world\n", "hello world\nRONA BRACKETS\n"):
        expected = succeed(*line, stdin=text).out
        assert succeed_on(4, *line, "--pp", 4, stdin=text).out == expected, text
        if text:
            assert succeed_on(4, *line, "--pp", 2, "--batch-size", 1, stdin=text, hosts=2).out == expected, text


def test_layouts_that_cannot_be(directory):
    prepared()
    line = ["predict", "--model", MODEL, "--input", EVAL, "--label-column", "category", "--output", directory / "out"]
    fail(2, *line, "--pp", 2, words=["1 process", "--pp 2"])
    fail(2, *line, "--stages", "1,1", words=["--stages", "--pp"])
    fail(2, *line, "--pp", 0, words=["--pp"])
    one_error(run_on(3, *line, "--pp", 2), 2, "3 processes", "--pp 2")
    one_error(run_on(3, *line, "--pp", 3), 2, "--pp 3", "3 layers", "has 2")
    one_error(run_on(2, *line, "--pp", 2, "--stages", "2,1"), 2, "--stages '2,1'", "3 layers", "has 2")
    one_error(run_on(2, *line, "--pp", 2, "--placement", "DPD"), 2, "--placement 'DPD'")
    assert not (directory / "out").exists()


def test_weights_that_one_stage_cannot_read(directory):
    one_rank_cannot_read_its_weights(directory, "--pp", 2)


def test_logits_through_stages_and_chunks_are_those_of_one_process(directory):
    """In fp32, bf16 and on a device, for both heads and every division of the processes into stages."""
    del directory
    need_mpirun()
    for processes, hosts in ((4, 2), (6, 1)):
        result = Job("-n", processes, os.environ["FINETUNE_STAGE_RANKS"], "equal", hosts=hosts).wait()
        assert result.code == 0 and "whole layers" in result.out, result


def test_a_stopped_stage_is_named(directory):
    del directory
    need_mpirun()
    result = Job("-n", 4, os.environ["FINETUNE_STAGE_RANKS"], "stopped", hosts=2).wait()
    errors = [line for line in result.err.splitlines() if "finetune: error:" in line]
    assert result.code != 0 and len(errors) == 1, result
    assert "rank 1 " in errors[0] and "has not responded for 2 s (stopped" in errors[0], result


def test_a_killed_stage_ends_the_job(directory):
    prepared()
    model = deeper_model(directory / "model", MODEL)
    for hosts, rank in ((1, 3), (2, 1)):
        killed_prediction(directory, model, rank, "--pp", 4, hosts=hosts)


main(globals(), at_once=3)
