"""The fuzz targets on the inputs that fuzzing begins with, and on all that ever broke one.

Compiled as everything else is, without a fuzzer: of an input nothing else may come than what a reader reads of it, or
its Error (tests/fuzz/target.h).
"""
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from harness import PATIENCE, main  # noqa: E402

REPLAY, HDF5_SEEDS = (os.environ[name] for name in ("FINETUNE_FUZZ_REPLAY", "FINETUNE_HDF5_SEEDS"))


def replay(*arguments):
    done = subprocess.run([REPLAY, *map(str, arguments)], capture_output=True, timeout=PATIENCE)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")[-2000:]


def targets():
    status, out, err = replay()
    assert status == 0, err
    return out.split()


def counts(out):
    """Inputs by target."""
    return {words[0]: int(words[1]) for words in map(str.split, out.splitlines()) if words[2:3] == ["inputs,"]}


def test_seeds(directory):
    subprocess.run([sys.executable, HERE / "make_seeds.py", directory / "seeds", HDF5_SEEDS], check=True, timeout=PATIENCE)
    status, out, err = replay(directory / "seeds")
    assert status == 0, (status, out, err)
    found = counts(out)
    assert sorted(found) == sorted(targets()), found
    assert all(count >= 2 for count in found.values()), found


def test_regressions(directory):
    """regressions/TARGET/NAME: inputs that once broke a target."""
    folders = {path.name for path in (HERE / "regressions").iterdir() if path.is_dir()}
    assert folders <= set(targets()), folders
    status, out, err = replay(HERE / "regressions")
    assert status == 0, (status, out, err)
    assert set(counts(out)) == folders, out


main(globals())
