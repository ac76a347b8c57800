"""sweep under mpirun: each run uses all processes, with the bits of one process."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
from fixtures import EVAL, MODEL, TRAIN, write
from harness import facts_of, main, need, succeed
from ranks import need_mpirun, run_on, succeed_on

GRID = (f"model = '{MODEL}'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\nmax-steps = 6\n"
        "virtual-shards = 2\n[sweep]\nlr = [1e-3, 500]\nseed = [1, 2]\n")


def weights(out):
    return {path.name: facts_of(path)["weights_sha256"] for path in out.iterdir() if (path / "run.json").exists()
            and "lr=0.001" in path.name}


def test_sweep(directory):
    need_mpirun()
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    good = write(directory / "good.toml", GRID.replace(", 500", ""))
    succeed("sweep", good, "--output", directory / "one")
    result = succeed_on(2, "sweep", good, "--output", directory / "two")
    assert len(weights(directory / "one")) == 2 and weights(directory / "one") == weights(directory / "two"), result
    # Diverging runs do not end the job; a different number of processes keeps finished runs.
    mixed = write(directory / "mixed.toml", GRID)
    result = run_on(3, "sweep", mixed, "--output", directory / "two", hosts=2)
    assert result.code == 6 and result.err.count("there already") == 2, result
    assert weights(directory / "one") == weights(directory / "two")
    refused = run_on(2, "sweep", good, "--output", directory / "jobs", "--jobs", 2)
    assert refused.code == 2 and "--jobs" in refused.err, refused


main(globals())
