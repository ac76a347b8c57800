"""Architectures beside BERT on several processes: every layout gives the bits of one process."""
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import ranks
from encoder_models import architectures
from ranks import cut_back, one_error, results_of, run_on, same_results, succeed_on
from harness import BINARY, GOLDEN, PATIENCE, main, nightly, some_of, succeed
from training_jobs import prepared

FAMILY = GOLDEN / "family"
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts/nightly"
ENCODERS = ("albert", "deberta-v3", "distilbert", "electra", "modernbert", "mpnet", "nomic_bert", "roberta",
            "xlm-roberta")
COMMON = ["--lr", "3e-3", "--batch-size", 16, "--dropout", "0.1", "--virtual-shards", 2, "--tensor-shards", 2,
          "--micro-batches", 2, "--no-progress", "--quiet"]
LAYOUTS = ([2], [2, "--shard-optimizer", "--recompute"], [2, "--pp", 2], [2, "--tp", 2],
           [4, "--pp", 2, "--tp", 2, "--recompute"])
SHARED = ("albert",)  # whose layers have the same weights, which cannot be trained in several stages


def layouts_of(encoder, layouts=LAYOUTS):
    return [layout for layout in layouts if not (encoder in SHARED and "--pp" in layout)]


def rows_of(encoder):
    return ["train", "--model", GOLDEN / f"family/{encoder}/classification", "--train",
            FAMILY / "trajectory-classification-train.csv", "--label-column", "category", "--max-length", 40,
            "--max-steps", 5, "--eval", FAMILY / "trajectory-classification-train.csv", "--max-eval-samples", 40]


def questions_of(encoder):
    return ["train", "--task", "qa", "--model", GOLDEN / f"family/{encoder}/qa", "--train",
            GOLDEN / f"family/{encoder}/trajectory-qa-train.json", "--max-length", 96, "--doc-stride", 32, "--max-steps", 3]


def same_on(directory, encoder, line, layouts):
    prepared(f"golden/family/{encoder}")
    same_lines_on(directory, line, layouts)


def same_lines_on(directory, line, layouts):
    ranks.same_on(directory, [*line, *COMMON], *((processes, 1, *more) for processes, *more in layouts))


def rows(encoder, directory):
    same_on(directory, encoder, rows_of(encoder), layouts_of(encoder))


def rows_in_bf16(encoder, directory):
    same_on(directory, encoder, [*rows_of(encoder), "--precision", "bf16"], layouts_of(encoder)[1:4])


def questions(encoder, directory):
    """The dropout before DistilBERT's head is named by the whole batch's rows."""
    prepared(f"golden/family/{encoder}/qa")
    same_on(directory, encoder, questions_of(encoder), layouts_of(encoder))


def resumed_on_another_layout(encoder, directory):
    """Two steps on one layout and the rest on another give the results of one that does all."""
    prepared(f"golden/family/{encoder}")
    out = directory / "run"
    line = [*rows_of(encoder), *COMMON, "--save-every", 1, "--keep-checkpoints", 9, "--output", out]
    succeed_on(2, *line, "--tp", 2)
    expected = results_of(out)
    for processes, *more in layouts_of(encoder, ((2, "--pp", 2), (1,), (2, "--shard-optimizer", "--recompute"))):
        cut_back(out, 2)
        resumed = [*line, "--resume", *more]
        succeed(*resumed) if processes == 1 else succeed_on(processes, *resumed)
        same_results(out, expected)


def test_albert_in_stages(directory):
    """Groups of layers are cut between them; predictions and evaluation have stages of any layers."""
    prepared("golden/family/albert")
    refused = run_on(2, *rows_of("albert"), *COMMON, "--pp", 2, "--output", directory / "refused")
    one_error(refused, 2, "--pp 2: layers that share weights must be in one stage, and albert shares them; choose --stages")
    model = directory / "groups"
    shutil.copytree(FAMILY / "albert-groups/classification", model)
    shutil.copyfile(FAMILY / "albert/classification/tokenizer.json", model / "tokenizer.json")
    line = rows_of("albert")
    line[line.index("--model") + 1] = model
    same_lines_on(directory, line, [[2, "--pp", 2]])
    data = FAMILY / "trajectory-classification-train.csv"
    albert = ["predict", "--model", FAMILY / "albert/classification", "--input", data]
    succeed(*albert, "--output", directory / "one.csv")
    succeed_on(2, *albert, "--pp", 2, "--output", directory / "two.csv")
    assert (directory / "one.csv").read_bytes() == (directory / "two.csv").read_bytes()


def script(name, *arguments):
    """The last line of a script of the nightly job, which must succeed."""
    done = subprocess.run([SCRIPTS / name, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def test_matrix_takes_an_architecture(_):
    prepared("golden/family/modernbert")
    assert set(ENCODERS) < set(architectures()), architectures()
    for name in some_of(1, *reversed(ENCODERS)):
        assert script("matrix.sh", os.path.dirname(BINARY), "1/64", "--architecture", name) == "4 of 4 equal", name


@nightly
def test_chaos_takes_an_architecture(_):
    prepared("golden/family/albert")
    assert script("chaos.sh", 1, "--architecture", "albert", "--binary", BINARY) == "1 of 1 equal"


# The encoders whose tests run after every change. The others are tested in the nightly job.
BY_DAY = {rows: ENCODERS, rows_in_bf16: ("deberta-v3", "modernbert"), questions: ("distilbert", "modernbert"),
          resumed_on_another_layout: ("modernbert", "mpnet", "roberta")}
for name in ENCODERS:
    for test, by_day in BY_DAY.items():
        run = partial(test, name)
        globals()[f"test_{name.replace('-', '_')}_{test.__name__}"] = run
        if name not in by_day:
            nightly(run)

main(globals())
