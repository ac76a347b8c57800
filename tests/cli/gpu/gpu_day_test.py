"""scripts/gpu/gpu_day.sh without a GPU: commands run, and tables are made of their files."""
import csv
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PATIENCE, main  # noqa: E402

PROJECT = Path(__file__).resolve().parents[3]
BUILD = Path(BINARY).resolve().parent


def call(*line, **environment):
    return subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, "PEER_PYTHON": "false", **environment})


def test_rehearsal(directory):
    script, out = PROJECT / "scripts/gpu/gpu_day.sh", directory / "out"
    if not Path("/dev/nvidiactl").exists():
        refused = call("bash", script, "--build", BUILD, out)
        assert refused.returncode == 2 and "--rehearse" in refused.stderr, refused
    unknown = call("bash", script, "--build", BUILD, "--rehearse", out, "steps")
    assert unknown.returncode == 2 and "there is no step 'steps'" in unknown.stderr, unknown
    done = call("bash", script, "--build", BUILD, "--rehearse", out, "switches", "infer", "peer", "train")
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert list(said) == ["train", "switches", "infer", "peer"], done
    texts = "".join(path.read_text() for path in out.glob("*.txt"))
    for name in ("train", "switches", "infer"):
        assert said[name].endswith("exit status 0"), (done, texts)
    assert said["peer"].endswith("exit status 3"), done  # no PyTorch: a skip
    tables = directory / "tables"
    tables.mkdir()
    made = call("python3", PROJECT / "scripts/gpu/gpu_day_tables.py", out, "--machine", "here", "--output", tables)
    assert made.returncode == 0, made
    steps, changes, processes = (list(csv.DictReader((tables / f"gpu-{name}.csv").open()))
                                 for name in ("steps", "changes", "processes"))
    assert len(steps) == 4 and all(float(row["samples/s"]) > 0 and float(row["TFLOP/s"]) >= 0 for row in steps), steps
    assert {row["change"] for row in changes} >= {"graphs", "own attention", "kept", "algorithms", "launches"}, changes
    for row in changes:
        assert abs(float(row["without, ms"]) - float(row["with, ms"]) - float(row["saved, ms"])) < 0.0015, row
    assert len(processes) == 3, processes
    for row in processes:
        assert 0 < float(row["loop, s"]) < float(row["whole process, s"]) + 0.02, row  # a clock of 10 ms
        for phase in ("program started", "device ready", "weights read", "first micro-batch", "results written"):
            assert phase in row["phases"], row
    # Nothing is begun once the time is over.
    late = call("bash", script, "--build", BUILD, "--rehearse", out, "infer", GPU_DAY_SECONDS="4")
    assert late.stdout == "infer: skipped, since the time is over\n", late


def test_model(_):
    """The predictions of the four works lie within 17 % of the measured steps, and all changes together save time."""
    made = call("python3", PROJECT / "scripts/bench/gpu_model.py")
    assert made.returncode == 0, made
    works = [line for line in made.stdout.splitlines() if line.startswith("== H200")]
    assert len(works) == 4, made.stdout
    for line in works:
        words = line.split()
        model, measured = float(words[3]), float(words[words.index("measured") + 1])
        assert abs(model / measured - 1) < 0.175, line


main(globals())
