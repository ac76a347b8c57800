"""Training, evaluation and prediction on several processes: the bits of one process."""
import csv
import json
import os
import shutil
import signal
import threading

from ranks import (BINARY, Job, facts_of, lines_in, nothing_left, one_error, ranks_of, results_of, run_on, same_on,
                   same_results, succeed_on, wait_for)
from harness import main, metrics_in, run, some_of, succeed
from training_jobs import BASE, EVAL, LONG, MODEL, QA, SMALL, SQUAD, TRAIN, WITH_BASELINE, prepared


def test_classification(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 8],
            *some_of(5, (1, 1, "--recompute", "--threads", 1), (2, 1, "--recompute"), (4, 1, "--shard-optimizer"),
                     (4, 2, "--recompute"), (8, 3), (3, 1), (8, 1), (2, 2), (3, 3, "--shard-optimizer")))


def test_a_head_that_gains_labels(directory):
    prepared()
    with open(TRAIN, newline="") as file, open(directory / "more.csv", "w", newline="") as more:
        rows = list(csv.reader(file))
        csv.writer(more).writerows([text, f"{label[:4]} II" if i % 4 == 3 else label] for i, (text, label) in enumerate(rows))
    line = [directory / "more.csv" if word == TRAIN else word for word in BASE]
    same_on(directory, [*line, "--extend-head", "--drop-labels", "--max-steps", 2, "--no-ngram-baseline", "--virtual-shards",
                        4, "--tensor-shards", 2], *some_of(2, (2, 1, "--tp", 2), (3, 2), (2, 2, "--pp", 2)))


def test_data_from_a_pipe(directory):
    prepared()
    straight, out, pipe = directory / "straight", directory / "run", directory / "train.csv"
    succeed(*WITH_BASELINE, "--virtual-shards", 4, "--output", straight)
    os.mkfifo(pipe)
    line = [pipe if word == TRAIN else word for word in WITH_BASELINE]
    one_error(run_on(4, *line, "--output", out, hosts=2), 3, str(pipe), "is a pipe")
    assert not out.exists()
    writer = threading.Thread(target=lambda: pipe.write_bytes(TRAIN.read_bytes()), daemon=True)
    writer.start()
    succeed_on(3, *line, "--virtual-shards", 4, "--output", out)
    same_results(out, results_of(straight))
    assert facts_of(out)["data_sha256"] == facts_of(straight)["data_sha256"]


def test_few_shards(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 3],
            *some_of(3, (2, 1), (5, 3), (4, 2), (3, 1, "--threads", 2), (8, 1), (4, 4)))


def test_last_batch_smaller_than_the_shards(directory):
    prepared()
    same_on(directory, [*SMALL, "--max-train-samples", 69, "--epochs", 2, "--virtual-shards", 8], (3, 1), (8, 2))


def test_one_shard(directory):
    prepared()
    same_on(directory, [*WITH_BASELINE, "--epochs", 1, "--virtual-shards", 1], (2, 1), (3, 3))


def test_micro_batches(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 8, "--micro-batch-tokens", 256, "--batch-size", 80],
            (1, 1, "--recompute"), (3, 1), (4, 2, "--recompute"))


def test_a_number_of_micro_batches(directory):
    prepared()
    same_on(directory, [*SMALL, "--epochs", 1, "--virtual-shards", 3, "--micro-batches", 4], (2, 1), (3, 3, "--recompute"))


def test_tensor_shards(directory):
    prepared()
    same_on(directory / "c", [*SMALL, "--epochs", 1, "--virtual-shards", 3, "--tensor-shards", 2],
            (2, 1, "--recompute"), (3, 3))
    same_on(directory / "q", [*QA, "--virtual-shards", 4, "--tensor-shards", 2], (4, 2))


def test_questions(directory):
    prepared()
    same_on(directory, [*QA, "--virtual-shards", 8], (2, 1, "--recompute"), (8, 2), (3, 3, "--shard-optimizer"))


def test_questions_in_few_shards_and_micro_batches(directory):
    prepared()
    same_on(directory, [*QA, "--virtual-shards", 3, "--micro-batch-tokens", 256], (3, 1), (4, 2, "--recompute"))


def test_masked_words(directory):
    """The decoder adds to every row of the word embedding, whoever owns it."""
    prepared()
    options = ["adapt", "--model", MODEL, "--text", TRAIN, "--eval", EVAL, "--max-train-samples", 90,
               "--max-eval-samples", 40, "--lr", "3e-3", "--batch-size", 16, "--epochs", 2, "--quiet", "--virtual-shards", 4]
    same_on(directory / "a", options, (2, 1), (3, 2, "--recompute"))
    same_on(directory / "b", [*options, "--max-steps", 3, "--tensor-shards", 2, "--no-whole-words"], (2, 1, "--tp", 2))


def test_windows_of_long_texts(directory):
    prepared()
    options = [*SMALL, "--epochs", 1, "--max-length", 8, "--long-text", "windows", "--window-stride", 2,
               "--max-train-samples", 90, "--max-eval-samples", 40,
               "--class-weights", "balanced", "--virtual-shards", 4]
    same_on(directory / "t", options, (2, 1, "--recompute"), (3, 2))
    model = directory / "run"
    succeed(*options, "--output", model)
    line = ["predict", "--model", model, "--input", EVAL, "--output", "-"]
    expected = succeed(*line)
    assert "texts have several windows" in expected.err, expected
    assert succeed_on(3, *line, hosts=2).out == expected.out


def test_frozen_layers(directory):
    """The word embedding is frozen, or some owners have no rows of the batch."""
    prepared()
    options = [*SMALL, "--epochs", 1, "--virtual-shards", 4]
    same_on(directory / "a", [*options, "--freeze", 1], (3, 1), (4, 2))
    same_on(directory / "b", [*options, "--freeze", "embeddings", "--max-grad-norm", 0], (3, 2))
    same_on(directory / "c", [*options, "--layer-lr-decay", 0.7, "--class-weights", "balanced", "--label-smoothing",
                              0.1, "--precision", "fp32"], (3, 2))


def test_other_targets(directory):
    prepared()
    words = ["red apple", "green pear", "blue sky", "red sky", "green sea", "blue apple", "sea"] * 5
    multi, numbers, pairs = (directory / name for name in ("multi.csv", "numbers.csv", "pairs.csv"))
    multi.write_text("text,label\n" + "".join(f"{w},{w.replace(' ', ';')}\n" for w in words))
    numbers.write_text("text,label\n" + "".join(f"{w},{i % 7 / 2}\n" for i, w in enumerate(words)))
    pairs.write_text("a,b,label\n" + "".join(f"{w},{w[::-1]},{i % 2}\n" for i, w in enumerate(words)))
    base = ["train", "--model", MODEL, "--reinit-head", "--lr", "1e-3", "--epochs", 2, "--batch-size", 16, "--quiet",
            "--virtual-shards", 4]
    same_on(directory / "m", [*base, "--train", multi, "--eval", multi, "--multi-label", ";"], (3, 2))
    same_on(directory / "n", [*base, "--train", numbers, "--eval-fraction", 0.3, "--regression"], (4, 1))
    same_on(directory / "p", [*base, "--train", pairs, "--text-column", "a", "--text-pair-column", "b"], (3, 1))


def test_calibration_and_slices(directory):
    """Fits to held-out groups, and reports about slices, for any number of processes."""
    prepared()
    line = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--eval-fraction", 0.3,
            "--eval-group", "text", "--lr", "1e-3", "--max-steps", 8, "--virtual-shards", 2, "--quiet"]
    one, two = directory / "one", directory / "two"
    succeed(*line, "--output", one)
    succeed_on(2, *line, "--output", two)
    same_results(two, results_of(one))
    config = (one / "model/config.json").read_text()
    assert '"temperature"' in config and config == (two / "model/config.json").read_text()
    line = ["evaluate", "--model", one, "--data", EVAL, "--slice", "category", "--slice", "seen:text", "--seen-in", TRAIN,
            "--target-accuracy", 0.3, "--quiet"]
    expected = succeed(*line, "--output", directory / "e1").out
    found = succeed_on(3, *line, "--output", directory / "e3").out
    assert found.replace(str(directory / "e3"), str(directory / "e1")) == expected, found
    for path in (directory / "e1").iterdir():
        assert (directory / "e3" / path.name).read_bytes() == path.read_bytes(), path


def test_shards_by_default_are_the_processes(directory):
    prepared()
    succeed_on(3, *SMALL, "--epochs", 1, "--output", directory / "three")
    succeed(*SMALL, "--epochs", 1, "--virtual-shards", 3, "--output", directory / "one")
    same_results(directory / "three", results_of(directory / "one"))


def test_idle_processes_are_said_once(directory):
    prepared()
    line = [word for word in SMALL if word != "--quiet"]
    result = succeed_on(4, *line, "--epochs", 1, "--virtual-shards", 3, "--output", directory / "run")
    for text in (result.err, (directory / "run/log.txt").read_text()):
        # The majority may be as good as a model after one epoch, which causes another warning.
        told = [line for line in text.splitlines() if "warning:" in line and "majority" not in line]
        assert len(told) == 1 and "1 of 4 processes" in told[0], result
    assert result.err.count("steps of 32 samples") == 1, result


def stopped(out, processes, hosts, number=signal.SIGUSR1):
    """A run stopped by a signal to the launcher after some steps."""
    job = Job("-n", processes, BINARY, *LONG, "--output", out, hosts=hosts)
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 12, job), job.wait()
    job.process.send_signal(number)
    result = job.wait()
    assert result.code == 85, result
    assert "finetune: error:" not in result.err, result
    nothing_left(out)
    assert not (out / "metrics.json").exists() and not list((out / "checkpoints").glob("*tmp*"))


def test_continued_at_another_number_of_processes(directory):
    prepared()
    succeed(*LONG, "--output", directory / "straight")
    expected = results_of(directory / "straight")
    for name, processes, hosts, ways in (("a", 4, 1, some_of(2, (1, 1), (3, 2), (8, 1))), ("b", 4, 2, some_of(1, (2, 1)))):
        stopped(directory / name, processes, hosts)
        for number, (count, groups) in enumerate(ways):
            # The output path is one of a run's options, so each resumes in a copy at the same place.
            shutil.move(directory / name, directory / "kept")
            shutil.copytree(directory / "kept", directory / name)
            more = [*LONG, "--output", directory / name, "--resume"]
            succeed(*more) if count == 1 else succeed_on(count, *more, hosts=groups)
            same_results(directory / name, expected)
            shutil.rmtree(directory / name)
            shutil.move(directory / "kept", directory / name)
    # From one process to several; a finished run is reported once.
    out = directory / "c"
    result = run(*LONG, "--output", out, "--time-limit", "1s")
    assert result.code in (0, 8), result
    succeed_on(3, *LONG, "--output", out, "--resume", hosts=3)
    same_results(out, expected)
    line = [word for word in LONG if word != "--quiet"]
    result = succeed_on(3, *line, "--output", out, "--resume", "--json")
    assert result.err.count("finished") == 1 and metrics_in(result.out) == json.loads(
        (out / "metrics.json").read_text()), result


def test_continued_by_its_directory_alone(directory):
    """Hosts with different file systems (the directory is on rank 0's), and processes that do not fit the layout."""
    prepared()
    line = [*LONG, "--tensor-shards", 2]
    succeed(*line, "--output", directory / "straight")
    ours, theirs = directory / "ours", directory / "theirs"
    theirs.mkdir()
    job = Job("-n", 2, BINARY, *line, "--output", ours / "run", "--tp", 2)
    assert wait_for(lambda: list((ours / "run").glob("checkpoints/*.h5")), job), job.wait()
    os.kill(ranks_of(ours / "run")[0], signal.SIGUSR1)
    assert job.wait().code == 85
    again = [BINARY, "train", "--resume", "--output", "run"]
    result = Job("-n", 1, "-wdir", ours, *again, ":", "-n", 2, "-wdir", theirs, *again, hosts=3).wait()
    assert result.code == 0 and "continuing from" in result.err, result
    assert not list(theirs.iterdir()), "another host has something of the run"
    same_results(ours / "run", results_of(directory / "straight"))
    # An error is reported once.
    one_error(run_on(2, "train", "--resume", "--output", theirs, hosts=2), 2, "theirs holds no run")


def test_time_limit(directory):
    prepared()
    out = directory / "run"
    line = [*LONG, "--max-steps", 5000, "--output", out]
    result = run_on(3, *line, "--time-limit", "1s")
    assert result.code == 8, result
    assert len(list((out / "checkpoints").iterdir())) > 0 and "finetune: error:" not in result.err


def test_signal_to_one_process(directory):
    """All stop after the same step."""
    prepared()
    for hosts, number, code in ((1, signal.SIGUSR2, 85), (2, signal.SIGINT, 130)):
        out = directory / f"run-{hosts}"
        job = Job("-n", 3, BINARY, *LONG, "--max-steps", 9999, "--output", out, hosts=hosts)
        assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 3, job), job.wait()
        os.kill(ranks_of(out)[2], number)
        result = job.wait()
        assert result.code == code and "finetune: error:" not in result.err, result
        steps = lines_in(out / "metrics.jsonl") - sum("eval_loss" in line for line in open(out / "metrics.jsonl"))
        assert (out / f"checkpoints/step-{steps:08}.h5").exists(), steps
        nothing_left(out)


def test_gates_and_json(directory):
    prepared()
    line = [*SMALL, "--epochs", 1, "--virtual-shards", 8, "--assert", "eval_accuracy>=2", "--json"]
    result = run_on(3, *line, "--output", directory / "run")
    assert result.code == 7 and len(result.out.splitlines()) == 1, result
    assert json.loads(result.out)["train_steps"] == 5 and result.err.count("FAIL") == 1, result


def test_early_stopping(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 8, "--eval-every", 2, "--early-stopping", 2, "--best-metric",
                        "eval_loss", "--lr", "0.02", "--epochs", 8], (3, 1), (4, 2))


def test_predict_and_evaluate_classification(directory):
    prepared()
    model = directory / "run"
    succeed(*SMALL, "--epochs", 1, "--virtual-shards", 8, "--output", model)
    text = "".join(open(EVAL, encoding="utf-8").readlines()[:120])
    for options in ([], ["--all-probabilities", "--batch-size", 7], ["--top-k", 3, "--batch-size", 1]):
        line = ["predict", "--model", model, "--quiet", *options]
        expected = succeed(*line, "--input", EVAL, "--output", "-").out
        for processes, hosts in ((3, 1), (4, 2)):
            assert succeed_on(processes, *line, "--input", EVAL, "--output", "-", hosts=hosts).out == expected
    out = directory / "out.csv"
    succeed_on(3, *line, "--input", EVAL, "--output", out)
    assert out.read_text() == expected
    lines = "one text\nanother, with a comma\n\n\"quotes\"\n" * 30
    for data in (text, lines):
        expected = succeed("predict", "--model", model, "--input", "-", "--output", "-", stdin=data).out
        found = succeed_on(3, "predict", "--model", model, "--input", "-", "--output", "-", stdin=data).out
        assert found == expected and found.count("\n") > 100
    line = ["evaluate", "--model", model, "--data", EVAL, "--no-progress", "--batch-size", 9, "--output"]
    expected = succeed(*line, directory / "e1", "--json")
    result = succeed_on(3, *line, directory / "e3", "--json")
    assert metrics_in(result.out) == metrics_in(expected.out)
    assert json.loads(result.out)["weights_sha256"] == json.loads(expected.out)["weights_sha256"]
    for path in (directory / "e1").iterdir():
        assert (directory / "e3" / path.name).read_bytes() == path.read_bytes(), path
    one_error(run_on(3, *line, directory / "e3"), 2, "not empty")


def test_predict_and_evaluate_questions(directory):
    prepared()
    model = directory / "run"
    succeed(*QA, "--virtual-shards", 8, "--output", model)
    one, three = directory / "1.json", directory / "3.json"
    line = ["predict", "--model", model, "--input", SQUAD, "--quiet", "--batch-size", 5, "--output"]
    succeed(*line, one, "--nbest", directory / "n1.json")
    succeed_on(3, *line, three, "--nbest", directory / "n3.json")
    assert one.read_bytes() == three.read_bytes()
    assert (directory / "n1.json").read_bytes() == (directory / "n3.json").read_bytes()
    line = ["evaluate", "--model", model, "--data", SQUAD, "--batch-size", 5, "--quiet", "--json", "--output"]
    expected = succeed(*line, directory / "e1").out
    assert metrics_in(succeed_on(4, *line, directory / "e4", hosts=2).out) == metrics_in(expected)
    for path in (directory / "e1").iterdir():
        assert (directory / "e4" / path.name).read_bytes() == path.read_bytes(), path


main(globals(), at_once=3)
