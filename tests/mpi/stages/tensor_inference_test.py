"""Evaluation and prediction on tensor ranks: one process's files with as many shards."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import one_error, run_on, succeed_on
from harness import fail, main, metrics_of, some_of, succeed
from training_jobs import EVAL, MODEL, QA_MODEL, SQUAD, prepared
from deeper_model import deeper_model
from inference_jobs import killed_prediction, one_rank_cannot_read_its_weights

# Replicas, stages, tensor ranks, hosts; further options; number of tensor groups that span hosts.
OF_TWO = ((1, 1, 2, 1, [], None), (1, 2, 2, 2, ["--stages", "3,1"], None), (2, 1, 2, 2, ["--placement", "spread"], 2))
OF_FOUR = ((1, 2, 4, 2, ["--placement", "TDP"], 2), (1, 1, 2, 2, [], 1), (1, 1, 4, 3, [], 1), (2, 2, 1, 1, [], None))


def model_of(directory, source, **changes):
    prepared()
    model = directory / "model"
    deeper_model(model, source, **changes)
    return model


def files_in(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def said(line):
    line = json.loads(line)
    line.pop("output", None)
    return line


def compare(directory, model, data, shards, layouts, evaluate, predict):
    """`evaluate` and `predict`: the task's further options; small batches, so that there are many."""
    line = ["evaluate", "--model", model, "--data", data, "--json", "--batch-size", 5, *evaluate]
    expected = succeed(*line, "--tensor-shards", shards, "--output", directory / "alone").out
    answers = ["predict", "--model", model, "--input", data, "--output", "-", "--batch-size", 5, *predict]
    alone = succeed(*answers, "--tensor-shards", shards).out
    assert alone and metrics_of(directory / "alone")
    for dp, pp, tp, hosts, more, across in layouts:
        layout = ["--pp", pp, "--tp", tp, *more]
        if tp != shards:
            layout += ["--tensor-shards", shards]
        out = directory / f"{dp}-{pp}-{tp}-{hosts}"
        result = succeed_on(dp * pp * tp, *line, *layout, "--output", out, hosts=hosts)
        assert said(result.out) == said(expected), (layout, result.out, expected)
        assert files_in(out) == files_in(directory / "alone"), layout
        if tp > 1:
            assert f" x {tp} tensor ranks; --tensor-shards {shards}" in result.err, result
        warning = f"{across} of {across} groups of tensor ranks are on several hosts"
        assert (warning in result.err) if across else ("several hosts" not in result.err), result
        assert succeed_on(dp * pp * tp, *answers, *layout, hosts=hosts).out == alone, layout


def test_classification(directory):
    labels = ["--label-column", "category"]
    model = model_of(directory, MODEL)
    compare(directory, model, EVAL, 2, OF_TWO, labels, [*labels, "--all-probabilities"])
    uncut = succeed("evaluate", "--model", model, "--data", EVAL, "--json", "--batch-size", 5, *labels).out
    assert "tensor-shards" not in said(uncut)["options"], uncut


def test_classification_in_bf16(directory):
    labels = ["--label-column", "category", "--precision", "bf16"]
    model = model_of(directory, MODEL, num_attention_heads=4)
    compare(directory, model, EVAL, 4, some_of(1, *OF_FOUR), labels, [*labels, "--all-probabilities"])


def test_question_answering(directory):
    windows = ["--max-length", 96, "--doc-stride", 32]
    compare(directory, model_of(directory, QA_MODEL), SQUAD, 2, OF_TWO, windows, windows)


def test_fewer_micro_batches_than_replicas_and_none(directory):
    model = model_of(directory, MODEL)
    line = ["predict", "--model", model, "--input", "-", "--output", "-", "--tensor-shards", 2]
    for text in ("", "hello world\n", "hello world\nRONA BRACKETS\n"):
        expected = succeed(*line, stdin=text).out
        assert succeed_on(4, *line, "--tp", 2, "--batch-size", 1, stdin=text, hosts=2).out == expected, text


def test_layouts_that_cannot_be(directory):
    prepared()
    line = ["predict", "--model", MODEL, "--input", EVAL, "--label-column", "category", "--output", directory / "out"]
    fail(2, *line, "--tp", 2, words=["1 process", "--tp 2"])
    fail(2, *line, "--tp", 0, words=["--tp"])
    fail(2, *line, "--tensor-shards", 0, words=["--tensor-shards"])
    fail(2, *line, "--tensor-shards", 4, words=["2 attention heads", "--tensor-shards 4"])
    for processes, more, words in ((3, ["--tp", 2], ["3 processes", "--tp 2"]),
                                   (2, ["--tp", 2, "--tensor-shards", 1], ["--tp 2", "--tensor-shards 1"]),
                                   (4, ["--tp", 4], ["2 attention heads", "--tensor-shards 4"])):
        one_error(run_on(processes, *line, *more), 2, *words)
    assert not (directory / "out").exists()


def test_weights_that_one_tensor_rank_cannot_read(directory):
    one_rank_cannot_read_its_weights(directory, "--tp", 2)


def test_a_lost_tensor_rank_ends_the_job(directory):
    model = model_of(directory, MODEL)
    for hosts, rank in ((1, 1), (2, 2)):
        killed_prediction(directory, model, rank, "--tp", 2, "--placement", "spread", hosts=hosts)


main(globals(), at_once=3)
