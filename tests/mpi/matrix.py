"""Every combination of task, memory option, layout and interruption: one result each.

Not part of scripts/test.sh, whose train_test.py has a selection: this takes minutes. Use scripts/nightly/matrix.sh, with
PART/PARTS for some of the lines.
"""
import itertools
import shutil
import sys
import tempfile
from pathlib import Path

from ranks import results_of, succeed_on
from harness import succeed
from training_jobs import MODEL, QA, QA_MODEL, SMALL

sys.path.insert(0, str(Path(__file__).resolve().parent / "stages"))
from deeper_model import deeper_model  # noqa: E402

# Both fix the cut: the stages' default depends on their number.
TWO, TOKENS = ["--micro-batches", 2], ["--micro-batch-tokens", 160]
WAYS = {"plain": TWO, "recompute": [*TWO, "--recompute"], "shard-optimizer": [*TWO, "--shard-optimizer"],
        "micro-batches": TOKENS}
# Processes, hosts, layout.
PLACES = [(1, 1), (2, 1), (3, 1), (2, 1, "--pp", 2), (4, 1), (2, 1, "--tp", 2), (8, 1),
          (4, 2, "--pp", 2, "--placement", "spread"), (8, 3, "--pp", 2, "--tp", 2, "--placement", "TDP"), (2, 2), (4, 2),
          (4, 2, "--tp", 2), (2, 2, "--tp", 2), (6, 1, "--pp", 2, "--pipeline-schedule", "gpipe"), (8, 2, "--pp", 4, "--tp", 2), (8, 3)]
SHARDS = ["--virtual-shards", 8, "--tensor-shards", 2, "--keep-checkpoints", 99]
TASKS = {"classification": (MODEL, [*SMALL, *SHARDS, "--save-every", 2]), "qa": (QA_MODEL, [*QA, *SHARDS, "--save-every", 1])}


def train(places, *line):
    processes, hosts, *layout = places
    succeed(*line) if processes == 1 else succeed_on(processes, *line, *layout, hosts=hosts)


def words(places):
    processes, hosts, *layout = places
    return " ".join(map(str, [processes, "processes on", hosts, "hosts", *layout]))


def interrupt(out):
    """Leaves the state after a kill in the second checkpoint."""
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    for checkpoint in sorted((out / "checkpoints").iterdir())[2:]:
        checkpoint.unlink()


def main(part=0, parts=1):
    directory = Path(tempfile.mkdtemp(prefix="finetune-matrix-"))
    equal = compared = 0
    lines = itertools.count()
    try:
        for (task, (source, line)), (way, more) in itertools.product(TASKS.items(), WAYS.items()):
            model = directory / task
            line = [*line, "--model", model if model.exists() else deeper_model(model, source)]
            # Saving memory changes no bits; other micro-batches do, and are compared with each other.
            if way in ("plain", "micro-batches"):
                expected = None
            for number, places in enumerate(PLACES):
                # Each part includes the lines that the others are compared with.
                if next(lines) % parts != part and expected:
                    continue
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


if len(sys.argv) > 1:
    which, _, of = sys.argv[1].partition("/")
    sys.exit(main(int(which) - 1, int(of)))
sys.exit(main())
