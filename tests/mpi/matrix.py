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

# Both say where to cut: what stages would choose for themselves depends on their number.
TWO, TOKENS = ["--micro-batches", 2], ["--micro-batch-tokens", 160]
WAYS = {"plain": TWO, "recompute": [*TWO, "--recompute"], "shard-optimizer": [*TWO, "--shard-optimizer"],
        "micro-batches": TOKENS}
# Processes, hosts, layout.
PLACES = [(1, 1), (2, 1), (3, 1), (2, 1, "--pp", 2), (4, 1), (8, 1), (4, 2, "--pp", 2, "--placement", "spread"), (2, 2),
          (4, 2), (6, 1, "--pp", 2, "--pipeline-schedule", "gpipe"), (8, 3)]
TASKS = {"classification": [*SMALL, "--virtual-shards", 8, "--save-every", 2, "--keep-checkpoints", 99],
         "qa": [*QA, "--virtual-shards", 8, "--save-every", 1, "--keep-checkpoints", 99]}


def train(places, *line):
    processes, hosts, *layout = places
    succeed(*line) if processes == 1 else succeed_on(processes, *line, *layout, hosts=hosts)


def words(places):
    processes, hosts, *layout = places
    return " ".join(map(str, [processes, "processes on", hosts, "hosts", *layout]))


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
                found = [results_of(out)]
                interrupt(out)
                elsewhere = PLACES[(number + 3) % len(PLACES)]
                train(elsewhere, *line, *more, "--output", out, "--resume")
                found.append(results_of(out))
                expected = expected or found[0]
                compared += 2
                equal += sum(result == expected for result in found)
                same = ["same" if result == expected else "OTHER BITS" for result in found]
                print(f"{task}, {way}: {words(places)} {same[0]}, continued by {words(elsewhere)} {same[1]}", flush=True)
                shutil.rmtree(out)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{equal} of {compared} equal")
    return 0 if equal == compared else 1


sys.exit(main())
