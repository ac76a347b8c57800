"""finetune check --label-errors beside cleanlab, from the same probabilities."""
import sys
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "scripts/bench/loop")]
from harness import BINARY, Skip, main
from label_errors import compared


def test_planted_errors_are_ranked_as_well_as_by_cleanlab(directory):
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        raise Skip("cleanlab is not installed (pip install cleanlab)")
    for name in ("toronto-train.csv", "banking77.csv"):
        pairs = [compared(BINARY, name, "category", seed, directory)[:2] for seed in range(4)]
        ours, theirs = (mean(values) for values in zip(*pairs))
        print(f"{name}: average precision {ours:.4f}, cleanlab {theirs:.4f}")
        assert ours >= theirs, (name, pairs)


main(globals())
