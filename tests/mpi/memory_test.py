"""Memory of several processes on one host: shared memory counts once and is forecast."""
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from blank_model import blank_model  # noqa: E402
from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN  # noqa: E402
from harness import BINARY, main, metrics_of, need, some_of, succeed  # noqa: E402
from ranks import MPIRUN, need_mpirun  # noqa: E402

COPIES = 800


def proportional_mb(directory):
    """Sum of the processes' proportional set sizes in MiB, and each process's own part."""
    sizes = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            if command[0] != os.fsencode(BINARY) or os.fsencode(str(directory)) not in b" ".join(command):
                continue
            text = (process / "smaps_rollup").read_text()
            sizes.append(int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) / 1024)
        except (OSError, TypeError):
            continue  # it has just ended
    return sizes


def peak_of(processes, directory, *arguments):
    output = directory / f"run{processes}"
    command = [*(MPIRUN + ["-n", str(processes)] if processes > 1 else []), BINARY, "train", "--output", str(output),
               "--quiet", "--no-progress", *map(str, arguments)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = 0
    while running.poll() is None:
        sizes = proportional_mb(output)
        if len(sizes) == processes:
            peak = max(peak, sum(sizes))
        time.sleep(0.02)
    assert running.returncode == 0, running.stderr.read()
    assert peak > 0
    return peak


def test_samples_and_weights_of_four_processes_are_counted_once(directory):
    need_mpirun()
    need(*MODELS)
    # Enough rows that a copy of their tokens per process would be visible.
    lines = TRAIN.read_text(encoding="utf-8").splitlines()
    long = directory / "train.csv"
    with open(long, "w", encoding="utf-8") as out:
        out.write(lines[0] + "\n")
        for _ in range(COPIES):
            out.write("\n".join(lines[1:]) + "\n")
    run = ("--model", MODEL, "--train", long, "--label-column", "category", "--batch-size", 8, "--max-steps", 100)
    tokens = COPIES * 13643 * 4 / 2**20  # MiB of ids alone
    alone, four = peak_of(1, directory, *run), peak_of(4, directory, *run)
    # Each further process adds its program, MPI and activations, but no copy of the samples.
    further = (four - alone) / 3
    print(f"one process {alone:.0f} MiB, four {four:.0f} MiB; ids alone {tokens:.0f} MiB")
    assert further < 30, f"{further:.1f} MiB for each further process"
    assert four < 2 * alone, (alone, four)


def test_forecast(directory):
    need_mpirun()
    need(*MODELS)
    model = blank_model(directory / "model", MODEL)
    classification = ("--model", model, "--train", TRAIN, "--eval", EVAL, "--label-column", "category",
                      "--ignore-unknown-labels", "--max-steps", 3, "--threads", 1)
    questions = ("--model", blank_model(directory / "qa", QA_MODEL), "--train", SQUAD, "--eval", SQUAD,
                 "--max-eval-samples", 16, "--max-steps", 1, "--batch-size", 8, "--threads", 1)
    runs = some_of(2, (4, *classification), (2, *questions, "--tp", 2, "--micro-batches", 2),
                   (4, *classification, "--pp", 2), (2, *questions))
    for number, (processes, *run) in enumerate(runs):
        plan = json.loads(succeed("plan", *run, "--processes", processes, "--no-time", "--json").out)
        output = directory / str(number)
        output.mkdir()
        host = peak_of(processes, output, *run)
        out = output / f"run{processes}"
        peak = metrics_of(out)["peak_memory_mb"]
        again = json.loads(succeed("plan", "--config", out / "config.toml", "--processes", processes, "--no-time",
                                   "--json").out)
        assert abs(again["peak_memory_mb"] - plan["peak_memory_mb"]) < 5, "the run's own file says the same"
        print(f"{processes} processes: host {plan['all_processes_mb']:.0f} for {host:.0f} MiB,",
              f"rank 0 {plan['peak_memory_mb']:.0f} for {peak:.0f} MiB")
        assert 0.9 <= plan["all_processes_mb"] / host <= 1.1, (host, plan)
        assert 0.9 <= plan["peak_memory_mb"] / peak <= 1.1, (peak, plan)


if __name__ == "__main__":
    main(globals())
