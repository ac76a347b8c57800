"""Shared by tests of evaluate and predict in a layout: one failing process among several."""
import os
import shutil
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import BINARY, PATIENCE, Job, kill_rank, one_error, wait_for
from training_jobs import EVAL, MODEL, prepared


def one_rank_cannot_read_its_weights(directory, *layout):
    """Of two, each of which finds a model of its own."""
    prepared()
    for rank in (0, 1):
        shutil.copytree(MODEL, directory / str(rank) / "model")
    weights = directory / "1/model/model.safetensors"
    os.chmod(weights, 0o644)
    os.truncate(weights, weights.stat().st_size // 2)
    own_directory = f'cd {directory}/$OMPI_COMM_WORLD_RANK && exec "$@"'
    line = ["evaluate", "--model", "model", "--data", EVAL.resolve(), "--label-column", "category", *layout]
    one_error(Job("-n", 2, "sh", "-c", own_directory, "sh", BINARY, *line).wait(), 4, "rank 1", "model.safetensors")


def endless_rows(pipe, written):
    try:
        with open(pipe, "w") as rows:
            while True:
                rows.write(f"number {len(written)} of many rows\n")
                written.append(0)
    except BrokenPipeError:
        pass


def killed_prediction(directory, model, rank, *layout, hosts):
    """With endless rows on four processes: the job ends soon, one line names the dead process, nothing is left."""
    pipe, out, written = directory / f"rows-{hosts}", directory / f"out-{hosts}.csv", []
    os.mkfifo(pipe)
    writer = threading.Thread(target=endless_rows, args=(pipe, written), daemon=True)
    writer.start()
    job = Job("-n", 4, BINARY, "predict", "--model", model, "--input", pipe, "--output", out, "--batch-size", 8,
              *layout, hosts=hosts)
    assert wait_for(lambda: len(written) > 20_000, job), job.wait()
    error = kill_rank(job, out, rank)
    assert error.endswith("; the job ends"), "--resume is train's alone"
    assert not out.exists()
    writer.join(timeout=PATIENCE)
