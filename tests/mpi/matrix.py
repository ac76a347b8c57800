"""Every combination of task, memory option, processes, hosts and interruption: one result each.

Not part of scripts/test.sh, whose train_test.py has a selection: this takes minutes. Use scripts/matrix.sh.
"""
import itertools
import shutil
import sys
import tempfile
from pathlib import Path

from ranks import results_of, succeed_on
from harness import succeed
from training_jobs import QA, SMALL

WAYS = {"plain": [], "recompute": ["--recompute"], "shard-optimizer": ["--shard-optimizer"],
        "micro-batches": ["--micro-batch-tokens", 160]}
PLACES = [(1, 1), (2, 1), (3, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 3)]
TASKS = {"classification": [*SMALL, "--virtual-shards", 8, "--save-every", 2, "--keep-checkpoints", 99],
         "qa": [*QA, "--virtual-shards", 8, "--save-every", 1, "--keep-checkpoints", 99]}


def train(places, *line):
    processes, hosts = places
    succeed(*line) if processes == 1 else succeed_on(processes, *line, hosts=hosts)


def interrupt(out):
    """What a kill after the second checkpoint leaves."""
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    for checkpoint in sorted((out / "checkpoints").iterdir())[2:]:
        checkpoint.unlink()


def main():
    directory = Path(tempfile.mkdtemp(prefix="finetune-matrix-"))
    equal = compared = 0
    try:
        for (task, line), (way, more) in itertools.product(TASKS.items(), WAYS.items()):
            # Saving memory changes no bits; other micro-batches do, and are compared among themselves.
            if way in ("plain", "micro-batches"):
                expected = None
            for number, places in enumerate(PLACES):
                out = directory / "run"
                train(places, *line, *more, "--output", out)
                results = [results_of(out)]
                interrupt(out)
                elsewhere = PLACES[(number + 3) % len(PLACES)]
                train(elsewhere, *line, *more, "--output", out, "--resume")
                results.append(results_of(out))
                expected = expected or results[0]
                compared += 2
                equal += sum(result == expected for result in results)
                same = ["same" if result == expected else "OTHER BITS" for result in results]
                print(f"{task}, {way}: {places[0]} processes on {places[1]} hosts {same[0]}, "
                      f"continued by {elsewhere[0]} on {elsewhere[1]} {same[1]}", flush=True)
                shutil.rmtree(out)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{equal} of {compared} equal")
    return 0 if equal == compared else 1


sys.exit(main())
