"""A run's disk space: what it needs, what it keeps, and what happens when space runs out."""
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN
from harness import BINARY, Skip, facts_of, fail, main, need, run, succeed

DATA = "golden/trajectory-classification-train.csv"


def arguments(output, *more):
    return ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--dropout", "0.1", "--lr",
            "3e-3", "--max-steps", 24, "--output", output, "--no-progress", *more]


def test_checkpoints_that_stay(directory):
    need(DATA)
    kept = {}
    for name, more in (("default", []), ("none", ["--keep-checkpoints", 0]), ("one", ["--keep-checkpoints", 1]),
                       ("three", ["--keep-checkpoints", 3])):
        out = directory / name
        succeed(*arguments(out, "--save-every", 5, *more))
        kept[name] = sorted(int(path.stem[5:]) for path in out.glob("checkpoints/*"))
        assert (out / "checkpoints").exists() == bool(kept[name])
    assert kept == {"default": [], "none": [], "one": [24], "three": [15, 20, 24]}
    # This includes the best checkpoint, if its evaluation is not the last.
    out = directory / "best"
    succeed(*arguments(out, "--eval", EVAL, "--eval-every", 7, "--save-every", 5, "--keep-checkpoints", 1, "--lr", 0))
    assert sorted(path.name for path in out.glob("checkpoints/*")) == ["step-00000007.h5", "step-00000024.h5"]
    # After an interruption the files for --resume exist, even with 0.
    out = directory / "stopped"
    stopped = run(*arguments(out, "--max-steps", 9999, "--keep-checkpoints", 0, "--save-every", 5, "--time-limit", "1s"))
    assert stopped.code == 8 and len(list(out.glob("checkpoints/*.h5"))) == 1, stopped
    # A finished run needs no space to report that, and its gates are checked as usual.
    succeed(*arguments(directory / "none", "--save-every", 5, "--resume"))


def test_disk_that_is_too_small(directory):
    need(DATA)
    disk = directory / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True).returncode:
        raise Skip("a small tmpfs cannot be mounted here (needs root)")
    try:
        out = disk / "run"
        options = ["--max-steps", 300, "--save-every", 3, "--keep-checkpoints", 1]
        # More than the disk has: detected before anything is written.
        fail(4, *arguments(out, *options, "--keep-checkpoints", 9), words=["--output", "MiB of disk", "MiB are free"])
        assert not out.exists()
        # Another program fills the disk.
        process = subprocess.Popen([BINARY, *map(str, arguments(out, *options))], stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(out.glob("checkpoints/*.h5")):
            time.sleep(0.001)
        with open(disk / "filler", "wb", buffering=0) as filler:
            while process.poll() is None:
                try:
                    filler.write(bytes(1 << 16))
                except OSError:
                    time.sleep(0.001)
        error = process.stderr.read().splitlines()[-1]
        assert process.returncode == 4 and error.startswith("finetune: error: "), (process.returncode, error)
        assert not list(out.rglob("*.tmp*")), list(out.rglob("*.tmp*"))
        (disk / "filler").unlink()
        result = succeed(*arguments(out, *options, "--resume"))
        assert "continuing from" in result.err
        succeed(*arguments(directory / "straight", *options))
        assert facts_of(out)["weights_sha256"] == facts_of(directory / "straight")["weights_sha256"]
    finally:
        subprocess.run(["umount", disk], check=True)


main(globals())
