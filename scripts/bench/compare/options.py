"""Arguments that all comparisons share."""
import sys
from pathlib import Path

from compare.harness import PROJECT, fail

DATA = PROJECT.parent / "shared" / "data"


def add_common(parser, works):
    parser.add_argument("--binary", default=PROJECT / "build" / "finetune", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--works", default=",".join(work.name for work in works),
                        help="of training, inference and shares")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--scratch", type=Path, help="keeps models of random weights between calls")
    parser.add_argument("--output", default=PROJECT / "docs" / "benchmarks", type=Path,
                        help="a folder of CSV files, where a part replaces its own rows; or a stream")
    parser.add_argument("--machine", help="name of this machine in the files; default: from its processor")
    parser.set_defaults(uncounted=1, isa=None)


def add_data(parser):
    group = parser.add_argument_group("data")
    group.add_argument("--bank", default=DATA / "toronto" / "train.csv", type=Path)
    group.add_argument("--bank-dev", default=DATA / "toronto" / "dev.csv", type=Path)
    group.add_argument("--text-column", default="text")
    group.add_argument("--label-column", default="category")
    group.add_argument("--squad", default=DATA / "squad" / "train-v1.1-4000.json", type=Path, help="to train on")
    group.add_argument("--squad-dev", default=DATA / "squad" / "dev-v1.1.json", type=Path)
    return group


def add_training(group, steps):
    group.add_argument("--steps", type=int, default=steps, help="of a run of training")
    group.add_argument("--squad-steps", type=int, default=0, help="of a run on SQuAD; 0: --steps")


def add_inference(group, scale, batch_sizes):
    group.add_argument("--eval-rows-scale", type=float, default=scale,
                       help="times the rows that inference takes of each work")
    group.add_argument("--peer-eval-batch-sizes", default=batch_sizes,
                       help="the peer's batch size in evaluation, e.g. 8,32,64: each is tried in every run, "
                            "and the fastest counts")


def require_positive(options, *names):
    for name in names:
        if getattr(options, name) < 1:
            fail(f"--{name.replace('_', '-')}: at least 1")
