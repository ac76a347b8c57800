"""scripts/experiments_demo.sh: a sweep that is killed and continued, its table and its report."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN
from harness import BINARY, PATIENCE, main, need

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "experiments_demo.sh"


def test_demo(directory):
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    line = [SCRIPT, directory / "out", BINARY, MODEL, TRAIN, EVAL, "category"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=3 * PATIENCE,
                          env={**os.environ, "DEMO_STEPS": "12"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "means of the table are those of metrics.json" in done.stdout, done.stdout
    assert done.stderr.count("there already") >= 2, done.stderr
    assert (directory / "out" / "report.html").stat().st_size < 3 << 20
    again = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE)
    assert again.returncode == 2 and "exists" in again.stderr, again


main(globals())
