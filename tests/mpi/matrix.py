"""Every combination of task, memory option, layout and interruption: one result each.

Not part of scripts/test.sh, whose train_test.py has a selection: this takes minutes. Use scripts/nightly/matrix.sh.
"""
import argparse
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
from encoder_models import architectures, encoder_model  # noqa: E402

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


def model_of(directory, architecture, task, source):
    """BERT's models have a trained head for each task; the others have random weights and serve both."""
    if architecture != "bert":
        model = directory / architecture
        return model if model.exists() else encoder_model(model, architecture)
    model = directory / task
    return model if model.exists() else deeper_model(model, source)


def lines_of(part, parts):
    """(task, way, number of the place) of each line of the part, and of those that they are compared with."""
    every = list(itertools.product(TASKS, WAYS, range(len(PLACES))))
    chosen = set(every[part::parts])
    compared_with = {first_of(task, way) for task, way, _ in chosen}
    return [line for line in every if line in chosen or line in compared_with]


def first_of(task, way):
    """Saving memory changes no bits; other micro-batches do, and are compared with each other."""
    return task, "micro-batches" if way == "micro-batches" else "plain", 0


def compare(architecture, part, parts):
    """Runs the lines of the part; returns how many results are equal, and of how many."""
    directory = Path(tempfile.mkdtemp(prefix="finetune-matrix-"))
    equal = compared = 0
    expected = {}
    try:
        for task, way, number in lines_of(part, parts):
            source, line = TASKS[task]
            line = [*line, "--model", model_of(directory, architecture, task, source), *WAYS[way], "--output", directory / "run"]
            places, elsewhere = PLACES[number], PLACES[(number + 3) % len(PLACES)]
            train(places, *line)
            found = [results_of(directory / "run")]
            interrupt(directory / "run")
            train(elsewhere, *line, "--resume")
            found.append(results_of(directory / "run"))
            shutil.rmtree(directory / "run")
            truth = expected.setdefault(first_of(task, way), found[0])
            compared += 2
            equal += sum(result == truth for result in found)
            same = ["same" if result == truth else "OTHER BITS" for result in found]
            print(f"{architecture}, {task}, {way}: {words(places)} {same[0]}, "
                  f"continued by {words(elsewhere)} {same[1]}", flush=True)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return equal, compared


def main():
    parser = argparse.ArgumentParser(prog="matrix.sh", description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", default="1/1", help="2/4: the second quarter of the lines")
    parser.add_argument("--architecture", default="bert", choices=[*architectures(), "all"])
    options = parser.parse_args()
    which, _, of = options.part.partition("/")
    names = architectures() if options.architecture == "all" else [options.architecture]
    counts = [compare(name, int(which) - 1, int(of)) for name in names]
    equal, compared = map(sum, zip(*counts))
    print(f"{equal} of {compared} equal")
    return 0 if equal == compared else 1


sys.exit(main())
