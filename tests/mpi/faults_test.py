"""Failures with several processes: one line, one exit code, and no leftovers."""
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

from ranks import (BINARY, Job, Skip, kill_one, nothing_left, one_error, ranks_of, results_of, run_on, same_results,
                   stop_one, succeed_on, wait_for)
from harness import PATIENCE, main, run, some_of, succeed
from faults import Fault, need_module
from training_jobs import EVAL, LONG, MODEL, SMALL, TRAIN, prepared


def test_errors_are_told_once(directory):
    """Checks the exit code and that one process printed one line with these words."""
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


def test_weights_that_are_cut_while_they_are_read(directory):
    """The files are opened before the data arrive, and read after them."""
    prepared()
    model, pipe, out = directory / "model", directory / "train.csv", directory / "run"
    shutil.copytree(MODEL, model)
    weights = model / "model.safetensors"
    weights.chmod(0o644)
    os.mkfifo(pipe)

    def cut_and_write():
        with open(pipe, "wb") as writer:  # waits until the job has opened its end
            os.truncate(weights, weights.stat().st_size // 2)
            writer.write(TRAIN.read_bytes())
    writer = threading.Thread(target=cut_and_write, daemon=True)
    writer.start()
    line = ["train", "--model", model, "--train", pipe, "--label-column", "category", "--quiet", "--output", out]
    one_error(run_on(3, *line), 4, "model.safetensors: became shorter while it was read")
    writer.join(timeout=PATIENCE)
    nothing_left(out)
    assert not out.exists()


def test_out_of_memory(directory):
    """The process with too little memory reports, whichever checks first."""
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
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", out],
                                           capture_output=True).returncode != 0:
        raise Skip("a small tmpfs cannot be mounted here")
    try:
        for hosts in (1, 2):
            run_directory = out / f"run{hosts}"
            line = [*LONG, "--output", run_directory]
            # More than the disk has: detected before anything is written.
            one_error(run_on(4, *line, "--keep-checkpoints", 9, hosts=hosts), 4, "rank 0", "MiB of disk")
            assert not run_directory.exists()
            # Another program fills the disk.
            job = Job("-n", 4, BINARY, *line, "--keep-checkpoints", 1, "--max-steps", 9999, hosts=hosts)
            assert wait_for(lambda: list(run_directory.glob("checkpoints/*.h5")), job), job.wait()
            with open(out / "filler", "wb", buffering=0) as filler:
                while not job.ended():
                    try:
                        filler.write(bytes(1 << 16))
                    except OSError:
                        time.sleep(0.001)
            one_error(job.wait(), 4, "rank 0", f"{run_directory}/")  # the file that did not fit
            nothing_left(run_directory)
            assert not list(out.rglob("*tmp*"))
            (out / "filler").unlink()
            shutil.rmtree(run_directory)
    finally:
        subprocess.run(["umount", "-l", out], check=True)


def test_a_checkpoint_that_cannot_be_written(directory):
    """The writing process prints one line, all end, the previous checkpoint stays, and the run can resume from it."""
    prepared()
    need_module()
    succeed(*LONG, "--output", directory / "straight")
    expected = results_of(directory / "straight")
    for processes, hosts in ((3, 1), (4, 2)):
        out = directory / f"run-{hosts}"
        fault = Fault("write", f"{out}/checkpoints/step-00000020", "EIO", nth=50)
        result = run_on(processes, *LONG, "--output", out, hosts=hosts, env=fault.environment(directory / "calls"))
        one_error(result, 4, "rank 0", f"{out}/checkpoints/step-00000020.h5: cannot be written: Input/output error")
        nothing_left(out)
        assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-00000010.h5"]
        succeed_on(processes, *LONG, "--output", out, "--resume", hosts=hosts)
        same_results(out, expected)


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


def test_other_options_of_inference_are_named(directory):
    prepared()
    evaluate = ["evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--threads", 1, "--quiet"]
    predict = ["predict", "--model", MODEL, "--input", EVAL, "--threads", 1, "--quiet", "--output", "-"]
    for first, second in ((evaluate, predict), (predict, evaluate), (evaluate, [*evaluate, "--precision", "fp32"])):
        job = Job("-n", 1, BINARY, *first, ":", "-n", 1, BINARY, *second)
        one_error(job.wait(20), 2, "rank 1", "other options", "rank 0")


def test_other_models_of_inference_are_named(directory):
    """An outdated copy on one host, for replicas, stages and tensor ranks."""
    prepared()
    for rank in (0, 1):
        (directory / str(rank)).mkdir()
        shutil.copytree(MODEL, directory / str(rank) / "model")
    commands = (["evaluate", "--model", "model", "--data", EVAL, "--label-column", "category", "--threads", 1, "--quiet"],
                ["predict", "--model", "model", "--input", "-", "--threads", 1, "--quiet", "--output", "-"])

    def job(line, *layout):
        own_directory = f'cd {directory}/$OMPI_COMM_WORLD_RANK && exec "$@"'
        return Job("-n", 2, "sh", "-c", own_directory, "sh", BINARY, *line, *layout, hosts=2,
                   stdin=subprocess.PIPE).wait(data=b"text\nRONA\n")
    for layout in ((), ("--pp", 2), ("--tp", 2)):
        for line in commands:
            assert job(line, *layout).code == 0
    weights, config = directory / "1/model/model.safetensors", directory / "1/model/config.json"
    for path in (weights, config):
        os.chmod(path, 0o644)
    content = bytearray(weights.read_bytes())
    content[-1000] ^= 1
    weights.write_bytes(content)
    for layout in ((), ("--pp", 2), ("--tp", 2)):
        for line in commands:
            one_error(job(line, *layout), 4, "--model", "rank 1", "other weights", "rank 0")
    shutil.copyfile(MODEL / "model.safetensors", weights)
    config.write_text(config.read_text() + " ")
    one_error(job(commands[0]), 4, "--model", "rank 1", "another config.json", "rank 0")


def test_other_data_and_weights_are_named(directory):
    """Hosts that read files of the same name with different content."""
    prepared()
    for rank in (0, 1):
        (directory / str(rank)).mkdir()
        shutil.copyfile(TRAIN, directory / str(rank) / "train.csv")
        shutil.copytree(MODEL, directory / str(rank) / "model")
    line = ["train", "--model", "model", "--train", "train.csv", "--label-column", "category", "--max-steps", 2,
            "--quiet", "--output"]

    def job(name, *layout):
        own_directory = f'cd {directory}/$OMPI_COMM_WORLD_RANK && exec "$@"'
        return Job("-n", 2, "sh", "-c", own_directory, "sh", BINARY, *line, name, *layout, hosts=2).wait()
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
    one_error(job("stages", "--pp", 2), 4, "--model", "rank 1", "other weights")
    shutil.copyfile(MODEL / "model.safetensors", weights)
    config = directory / "1/model/config.json"
    os.chmod(config, 0o644)
    values = json.loads(config.read_text())
    config.write_text(json.dumps({**values, "layer_norm_eps": 1e-5}))  # the same shapes, another function
    one_error(job("config"), 4, "--model", "rank 1", "another config.json")
    data.unlink()
    one_error(job("absent"), 3, "rank 1", "train.csv")
    for name in ("data", "weights", "stages", "config", "absent"):
        assert not (directory / "0" / name).exists()


def test_a_killed_process_ends_the_job(directory):
    prepared()
    succeed(*LONG, "--output", directory / "straight")
    expected = results_of(directory / "straight")
    for processes, hosts, rank, again in ((3, 1, 0, (1, 1)), (4, 2, 3, (8, 2))):
        out = directory / f"killed-{processes}-{hosts}-{rank}"
        job = Job("-n", processes, BINARY, *LONG, "--output", out, hosts=hosts)
        kill_one(job, out, rank, 14)
        count, groups = again
        more = [*LONG, "--output", out, "--resume"]
        succeed(*more) if count == 1 else succeed_on(count, *more, hosts=groups)
        same_results(out, expected)


def test_a_stopped_process_ends_the_job_in_time(directory):
    prepared()
    for hosts in (1, 2):
        out = directory / f"run-{hosts}"
        job = Job("-n", 4, BINARY, *LONG, "--max-steps", 9999, "--output", out, "--comm-timeout", "3s", hosts=hosts)
        stop_one(job, out, random.randrange(4), 5, 3)


def opened(fifo, job):
    """The writing end, once rank 0 has opened the other: all processes have met by then."""
    ends = []

    def is_open():
        try:
            ends.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            time.sleep(0.05)
        return ends
    assert wait_for(is_open, job), job.wait()
    return open(ends[0], "wb")


def test_a_stopped_process_of_inference_ends_the_job_in_time(directory):
    """Any process may die: rank 0, which waits for data without limit, or one of its receivers."""
    prepared()
    rows, fifo = EVAL.read_bytes(), directory / "rows.fifo"
    os.mkfifo(fifo)
    for name, line in (("predict", ["--input", fifo, "--output", directory / "labels.csv", "--input-format", "csv"]),
                       ("evaluate", ["--data", fifo, "--output", directory / "out"])):
        for rank, hosts in some_of(2, (0, 1), (3, 2), (2, 1), (0, 2)):
            job = Job("-n", 4, BINARY, name, "--model", MODEL, *line, "--label-column", "category", "--comm-timeout", "2s",
                      "--quiet", "--threads", 1, hosts=hosts)
            with opened(fifo, job) as writer:
                assert wait_for(lambda: rank in ranks_of(line[3]), job), job.wait()
                os.kill(ranks_of(line[3])[rank], signal.SIGSTOP)
                if rank > 0:
                    with contextlib.suppress(BrokenPipeError):
                        writer.write(rows)
                        writer.close()
                one_error(job.wait(), 5, f"rank {rank} ", "2 s", "stopped")
            nothing_left(line[3])
            assert not line[3].exists()


def test_inference_waits_for_its_input(directory):
    """Waits longer than --comm-timeout while all processes run."""
    prepared()
    rows, fifo, out = EVAL.read_bytes(), directory / "rows.fifo", directory / "labels.csv"
    os.mkfifo(fifo)
    job = Job("-n", 3, BINARY, "predict", "--model", MODEL, "--input", fifo, "--output", out, "--input-format", "csv",
              "--comm-timeout", "1s", "--quiet", "--threads", 1)
    with opened(fifo, job) as writer:
        writer.write(rows[:5000])
        writer.flush()
        time.sleep(4)
        writer.write(rows[5000:])
    result = job.wait()
    assert result.code == 0 and result.err == "", result
    assert out.read_text().count("\n") == rows.count(b"\n")


def test_a_killed_process_of_inference_is_named(directory):
    prepared()
    out = directory / "labels.csv"
    for rank, hosts in ((0, 1), (1, 2)):
        job = Job("-n", 3, BINARY, "predict", "--model", MODEL, "--input", "-", "--output", out, "--quiet", hosts=hosts,
                  stdin=subprocess.PIPE)
        assert wait_for(lambda: len(ranks_of(out)) == 3, job), job.wait()
        time.sleep(1)
        os.kill(ranks_of(out)[rank], signal.SIGKILL)
        result = job.wait()
        assert result.code != 0 and f"rank {rank}" in result.err, result
        nothing_left(out)
        assert not out.exists()


def test_hosts_that_differ_by_rank(directory):
    prepared()
    line = [BINARY, "evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--quiet"]
    for first, second, words in ((["-x", "FINETUNE_HOSTS=2"], [], ["is 2 for rank 0", "not set for rank 2"]),
                                 ([], ["-x", "FINETUNE_HOSTS=3"], ["is not set for rank 0", "3 for rank 2"])):
        job = Job("-n", 2, *first, *line, ":", "-n", 1, *second, *line)
        one_error(job.wait(), 2, "FINETUNE_HOSTS", *words, "mpirun -x")


main(globals(), at_once=3)
