"""The program with a CUDA module whose kernels run on the host (tests/unit/ops/host_cuda).

Device memory is reached through the module alone, anything else is a fault there."""
import os
import shutil
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

CPU_BINARY = harness.BINARY
HOST_MODULE = os.environ.get("FINETUNE_HOST_CUDA_MODULE")
COPYING = threading.Lock()  # tests of a file may run at the same time


def counts_of(report):
    """The host runtime's counters at the program's end (HOST_CUDA_REPORT), by name."""
    words = Path(report).read_text().split()
    return dict(zip(words[::2], map(int, words[1::2])))


def program_with_module():
    """Path of a copy of the program, with the module beside it where it looks for one; on a GPU (FINETUNE_DEVICE=cuda
    and no such module) that of the program as it is."""
    module = HOST_MODULE
    if not module and harness.ON_GPU:
        return harness.BINARY
    if not module:
        raise harness.Skip("FINETUNE_HOST_CUDA_MODULE is not set")
    place = Path(module).parent / "program-with-cuda-on-host"
    place.mkdir(exist_ok=True)
    with COPYING:
        for source, name in ((CPU_BINARY, "finetune"), (module, "finetune_cuda.so")):
            target = place / name
            if not target.exists() or target.stat().st_mtime_ns < Path(source).stat().st_mtime_ns:
                copy = place / f"{name}-{os.getpid()}"  # another test may be running the existing file
                shutil.copy2(source, copy)
                copy.replace(target)
    os.environ["HOST_CUDA_PROTECT"] = "1"
    harness.BINARY = str(place / "finetune")
    return harness.BINARY
