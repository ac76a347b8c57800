"""scripts/gpu/gpu_bundle.sh: the bundle runs on a machine without the project's dependencies."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PATIENCE, Skip, main  # noqa: E402

PROJECT = Path(__file__).resolve().parents[3]
BUILD = Path(BINARY).resolve().parent
LIMIT = 50 << 20


def call(*line, **environment):
    return subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, **environment})


def test_bundle(directory):
    if not (BUILD / "finetune_cuda.so").exists():
        raise Skip("built without CUDA")
    if not shutil.which("xz") or not shutil.which("mpirun"):
        raise Skip("xz or mpirun is absent")
    out, empty = directory / "out", directory / "empty"
    empty.mkdir()
    made = call("bash", PROJECT / "scripts/gpu/gpu_bundle.sh", BUILD, out, FINETUNE_SHARED=str(empty), XZ_OPT="-0")
    assert made.returncode == 0, made
    assert sorted(file.name for file in out.iterdir()) == ["bundle.tar.xz", "run.sh"]
    assert sum(file.stat().st_size for file in out.iterdir()) < LIMIT
    place = {"TMPDIR": str(directory), "LD_LIBRARY_PATH": ""}
    version = call("bash", out / "run.sh", "build/finetune", "--version", **place)
    assert version.returncode == 0 and version.stdout == call(BINARY, "--version").stdout, version
    root, = directory.glob("finetune-gpu-*")
    events = call("bash", out / "run.sh", "build/tests/unit/ops/test_graph_events", **place)
    assert events.returncode == 0 and "1 passed" in events.stdout, events
    # All libraries except glibc's come from the bundle, if so requested.
    libraries = root / "finetune/lib/all"
    programs = [root / "finetune" / name for name in ("build/finetune", "build/tests/unit/ops/test_ops",
                                                      "build/tests/unit/model/test_model", "openmpi/bin/mpirun")]
    listed = call("ldd", *programs, LD_LIBRARY_PATH=str(libraries)).stdout
    outside = {text.split()[0] for text in listed.splitlines() if "=> /" in text and str(libraries) not in text}
    assert listed.count(str(libraries)) > 30 and "not found" not in listed, listed
    assert all(name.startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libresolv.", "libutil."))
               for name in outside), outside
    # mpirun starts two of its processes.
    doctor = call("bash", out / "run.sh", "mpirun", "--oversubscribe", "-n", 2, "build/finetune", "doctor", **place)
    assert doctor.returncode == 0 and "rank 1 of 2" in doctor.stdout, doctor


main(globals())
