"""scripts/gpu/module_size.sh: the CUDA module has a largest size, which the built one keeps."""
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PROJECT, Skip, main  # noqa: E402

MODULE = Path(BINARY).resolve().parent / "finetune_cuda.so"


def size_check(module, gpus):
    return subprocess.run([PROJECT / "scripts/gpu/module_size.sh", module, str(gpus)], capture_output=True, text=True)


def test_a_module_that_is_too_large_fails(directory):
    file = directory / "module.so"
    for size, gpus, status in [(40_000_000, 6, 0), (40_000_001, 6, 1), (6_666_666, 1, 0), (6_666_667, 1, 1)]:
        file.touch()
        os.truncate(file, size)
        done = size_check(file, gpus)
        assert done.returncode == status and str(size) in done.stdout, done
        assert done.stderr == ("" if status == 0 else f"module_size: error: {file} is too large\n"), done


def test_the_module(directory):
    if not MODULE.exists():
        raise Skip("built without CUDA")
    done = size_check(MODULE, os.environ["FINETUNE_MODULE_GPUS"])
    assert done.returncode == 0, done


main(globals())
