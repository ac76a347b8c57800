"""Training, evaluation and prediction on several processes: the bits of one process, and clean ends."""
import json
import os
import random
import shutil
import signal
import subprocess
import time

from ranks import (BINARY, Job, Skip, facts_of, lines_in, need_mpirun, nothing_left, one_error, ranks_of, results_of,
                   run_on, same_results, succeed_on, wait_for)
from harness import GOLDEN, main, need, run, succeed

MODEL = GOLDEN / "tiny-bert-classification"
QA_MODEL = GOLDEN / "tiny-bert-qa"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
NAMES = ("golden/tiny-bert-classification", "golden/tiny-bert-qa", "golden/trajectory-classification-train.csv",
         "golden/trajectory-qa-train.json")

# Three epochs of five batches each, the last of which is ragged.
BASE = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--lr", "3e-3", "--dropout", "0.1",
        "--no-progress", "--quiet"]
SMALL = [*BASE, "--eval", EVAL, "--max-eval-samples", 100, "--max-train-samples", 150]
QA = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--lr", "1e-3", "--max-length",
      128, "--doc-stride", 32, "--max-train-samples", 21, "--max-eval-samples", 8, "--batch-size", 16, "--dropout",
      "0.1", "--max-steps", 5, "--eval-every", 3, "--no-progress", "--quiet"]
LONG = [*BASE, "--eval", EVAL, "--max-eval-samples", 60, "--eval-every", 20, "--save-every", 10, "--max-steps", 60,
        "--virtual-shards", 8]


def prepared(*names):
    need_mpirun()
    need(*(names or NAMES))


def same_on(directory, options, *cases):
    """Each case: processes, hosts, further options; all give the results of one process."""
    expected = directory / "one"
    succeed(*options, "--output", expected)
    expected = results_of(expected)
    for number, (processes, hosts, *more) in enumerate(cases):
        out = directory / f"case-{number}"
        if processes == 1:
            succeed(*options, "--output", out, *more)
        else:
            succeed_on(processes, *options, "--output", out, *more, hosts=hosts)
            facts = facts_of(out)
            assert (facts["processes"], facts["hosts"]) == (str(processes), str(hosts)), facts
        same_results(out, expected)
        shutil.rmtree(out)


def test_classification(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 8],
            (1, 1, "--recompute", "--threads", 1), (2, 1, "--recompute"), (3, 1), (4, 1, "--shard-optimizer"),
            (8, 1), (2, 2), (4, 2, "--recompute"), (3, 3, "--shard-optimizer"), (8, 3))


def test_few_shards(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 3], (2, 1), (3, 1, "--threads", 2), (8, 1), (4, 2), (5, 3), (4, 4))


def test_last_batch_smaller_than_the_shards(directory):
    prepared()
    same_on(directory, [*SMALL, "--max-train-samples", 69, "--epochs", 2, "--virtual-shards", 8], (3, 1), (8, 2))


def test_one_shard(directory):
    prepared()
    same_on(directory, [*SMALL, "--epochs", 1, "--virtual-shards", 1], (2, 1), (3, 3))


def test_micro_batches(directory):
    prepared()
    same_on(directory, [*SMALL, "--virtual-shards", 8, "--micro-batch-tokens", 256, "--batch-size", 80],
            (1, 1, "--recompute"), (3, 1), (4, 2, "--recompute"))


def test_questions(directory):
    prepared()
    same_on(directory, [*QA, "--virtual-shards", 8], (2, 1, "--recompute"), (8, 2), (3, 3, "--shard-optimizer"))


def test_questions_in_few_shards_and_micro_batches(directory):
    prepared()
    same_on(directory, [*QA, "--virtual-shards", 3, "--micro-batch-tokens", 256], (3, 1), (4, 2, "--recompute"))


def test_frozen_layers(directory):
    """The word embedding does not move, or has owners without rows of the batch."""
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


def test_shards_by_default_are_the_processes(directory):
    prepared()
    succeed_on(3, *SMALL, "--epochs", 1, "--output", directory / "three")
    succeed(*SMALL, "--epochs", 1, "--virtual-shards", 3, "--output", directory / "one")
    same_results(directory / "three", results_of(directory / "one"))


def test_idle_processes_are_said_once(directory):
    prepared()
    line = [word for word in SMALL if word != "--quiet"]
    result = succeed_on(4, *line, "--epochs", 1, "--virtual-shards", 3, "--output", directory / "run")
    assert result.err.count("warning:") == 1 and "1 of 4 processes" in result.err, result
    assert (directory / "run/log.txt").read_text().count("warning:") == 1
    assert result.err.count("steps of 32 samples") == 1, result


def stopped(out, processes, hosts, number=signal.SIGUSR1):
    """A run that is stopped by a signal to the launcher after some steps."""
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
    for name, processes, hosts, ways in (("a", 4, 1, [(1, 1), (8, 1), (3, 2)]), ("b", 4, 2, [(2, 1)])):
        stopped(directory / name, processes, hosts)
        for number, (count, groups) in enumerate(ways):
            # The run's output is one of its options: each goes on in a copy at the same place.
            shutil.move(directory / name, directory / "kept")
            shutil.copytree(directory / "kept", directory / name)
            more = [*LONG, "--output", directory / name, "--resume"]
            succeed(*more) if count == 1 else succeed_on(count, *more, hosts=groups)
            same_results(directory / name, expected)
            shutil.rmtree(directory / name)
            shutil.move(directory / "kept", directory / name)
    # From one process to several; a finished run is said to be so once.
    out = directory / "c"
    result = run(*LONG, "--output", out, "--time-limit", "1s")
    assert result.code in (0, 8), result
    succeed_on(3, *LONG, "--output", out, "--resume", hosts=3)
    same_results(out, expected)
    line = [word for word in LONG if word != "--quiet"]
    result = succeed_on(3, *line, "--output", out, "--resume", "--json")
    assert result.err.count("finished") == 1 and json.loads(result.out) == json.loads(
        (out / "metrics.json").read_text()), result


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
    assert result.out == expected.out
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
    assert succeed_on(4, *line, directory / "e4", hosts=2).out == expected
    for path in (directory / "e1").iterdir():
        assert (directory / "e4" / path.name).read_bytes() == path.read_bytes(), path


def test_errors_are_told_once(directory):
    """The exit code and the words of one process, in one line."""
    prepared()
    rows = TRAIN.read_text().splitlines(keepends=True)[:100]
    bad = directory / "bad.csv"
    bad.write_text("".join(rows[:70]) + "ragged\n" + "".join(rows[70:]))
    (directory / "file").write_text("x")
    (directory / "full").mkdir()
    (directory / "full/notes.txt").write_text("x")
    out = ["--output", directory / "run"]
    diverging = ["--lr", 999, "--weight-decay", "1e38"]
    for code, line in ((2, [*SMALL, *out, "--lr", "fast"]),
                       (2, [*SMALL, "--output", directory / "full"]),
                       (2, ["teach"]),
                       (3, [*SMALL, *out, "--train", directory / "absent.csv"]),
                       (3, [*SMALL, *out, "--train", bad]),
                       (4, [*SMALL, *out, "--model", directory]),
                       (4, [*SMALL, "--output", "/proc/run"]),
                       (6, [*SMALL, *out, *diverging]),
                       (3, ["evaluate", "--model", MODEL, "--data", bad, "--label-column", "category"]),
                       (4, ["predict", "--model", MODEL, "--input", EVAL, "--output", "/proc/out.csv"])):
        alone = run(*line)
        assert alone.code == code, (line, alone)
        if code == 6:
            shutil.rmtree(directory / "run")
        words = alone.err.splitlines()[-1].removeprefix("finetune: error: ")
        one_error(run_on(3, *line), code, words)
        nothing_left(directory / "run")
        if code == 6:
            shutil.rmtree(directory / "run")
        assert not (directory / "run").exists(), line
    one_error(run_on(4, *SMALL, "--output", directory / "run2", *diverging, hosts=2), 6, "diverged at step")
    one_error(run_on(4, *SMALL, *out, "--train", bad, hosts=2), 3, "bad.csv:71")


def test_out_of_memory(directory):
    """The process that has too little says so, whichever looks first."""
    prepared()
    wrapper = directory / "limited.sh"
    wrapper.write_text('#!/bin/bash\nif [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then ulimit -v 700000; fi\nexec "$@"\n')
    wrapper.chmod(0o755)
    for hosts in (1, 2):
        line = ["bench", "step", "--shape", "minilm", "--lengths", "bank", "--steps", 2]
        one_error(Job("-n", 4, wrapper, BINARY, *line, hosts=hosts).wait(), 5, "rank 1 on ", "memory")


def test_full_disk(directory):
    prepared()
    out = directory / "disk"
    out.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", out],
                                           capture_output=True).returncode != 0:
        raise Skip("a small tmpfs cannot be mounted here")
    try:
        for hosts in (1, 2):
            line = [*LONG, "--keep-checkpoints", 9, "--output", out / f"run{hosts}"]
            message = one_error(run_on(4, *line, hosts=hosts), 4, "rank 0", "MiB")
            assert "checkpoint" in message, message
            nothing_left(out / f"run{hosts}")
            assert not list(out.rglob("*tmp*"))
            shutil.rmtree(out / f"run{hosts}")
    finally:
        subprocess.run(["umount", "-l", out], check=True)


def test_what_is_for_one_process_is_printed_once(directory):
    prepared()
    text = directory / "text.txt"
    text.write_text("hello world\nagain\n")
    for line in (["--version"], ["--help"], ["train", "--help"], ["tokenize", "--model", MODEL, text],
                 ["inspect", MODEL]):
        expected = succeed(*line)
        result = succeed_on(3, *line)
        assert result.out == expected.out and result.out, (line, result)
        assert "finetune" not in result.err, result


def test_other_options_are_named(directory):
    prepared()
    line = [*SMALL, "--virtual-shards", 2, "--output", directory / "run"]
    job = Job("-n", 1, BINARY, *line, ":", "-n", 1, BINARY, *line, "--seed", 9)
    one_error(job.wait(), 2, "rank 1", "other options", "rank 0")
    job = Job("-n", 2, BINARY, *line, ":", "-n", 1, BINARY, "evaluate", "--model", MODEL, "--data", EVAL)
    result = job.wait()
    assert result.code != 0, result
    assert not (directory / "run").exists()


def test_other_data_and_weights_are_named(directory):
    """Hosts that read files of the same name but not of the same content."""
    prepared()
    for rank in (0, 1):
        (directory / str(rank)).mkdir()
        shutil.copyfile(TRAIN, directory / str(rank) / "train.csv")
        shutil.copytree(MODEL, directory / str(rank) / "model")
    line = ["train", "--model", "model", "--train", "train.csv", "--label-column", "category", "--max-steps", 2,
            "--quiet", "--output"]

    def job(name):
        own_directory = f'cd {directory}/$OMPI_COMM_WORLD_RANK && exec "$@"'
        return Job("-n", 2, "sh", "-c", own_directory, "sh", BINARY, *line, name, hosts=2).wait()
    assert job("equal").code == 0
    data = directory / "1/train.csv"
    rows = data.read_text()
    data.write_text(rows.replace("RONA", "RENO", 1))
    one_error(job("data"), 3, "--train", "rank 1", "other samples")
    shutil.copyfile(TRAIN, data)
    weights = directory / "1/model/model.safetensors"
    os.chmod(weights, 0o644)
    content = bytearray(weights.read_bytes())
    content[-1000] ^= 1
    weights.write_bytes(content)
    one_error(job("weights"), 4, "--model", "rank 1", "other weights")
    data.unlink()
    one_error(job("absent"), 3, "rank 1", "train.csv")
    for name in ("data", "weights", "absent"):
        assert not (directory / "0" / name).exists()


def test_a_killed_process_ends_the_job(directory):
    prepared()
    succeed(*LONG, "--output", directory / "straight")
    expected = results_of(directory / "straight")
    for processes, hosts, rank, again in ((3, 1, 0, (1, 1)), (4, 2, 3, (8, 2))):
        out = directory / f"killed-{processes}-{hosts}-{rank}"
        job = Job("-n", processes, BINARY, *LONG, "--output", out, hosts=hosts)
        assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 14, job), job.wait()
        os.kill(ranks_of(out)[rank], signal.SIGKILL)
        start = time.time()
        result = job.wait()
        assert time.time() - start < 10 and result.code != 0, result
        nothing_left(out)
        errors = [line for line in result.err.splitlines() if "finetune: error:" in line]
        assert len(errors) == 1 and f"rank {rank} " in errors[0] and "died" in errors[0], result
        count, groups = again
        more = [*LONG, "--output", out, "--resume"]
        succeed(*more) if count == 1 else succeed_on(count, *more, hosts=groups)
        same_results(out, expected)


def test_a_stopped_process_ends_the_job_in_time(directory):
    prepared()
    for hosts in (1, 2):
        out = directory / f"run-{hosts}"
        job = Job("-n", 4, BINARY, *LONG, "--max-steps", 9999, "--output", out, "--comm-timeout", "3s", hosts=hosts)
        assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 5, job), job.wait()
        rank = random.randrange(4)
        os.kill(ranks_of(out)[rank], signal.SIGSTOP)
        start = time.time()
        result = job.wait()
        assert 2.5 < time.time() - start < 10, time.time() - start
        one_error(result, 5, f"rank {rank} ", "3 s")
        nothing_left(out)


if __name__ == "__main__":
    main(globals())
