"""`meson install`: the installed program runs; its module, completions and manual pages exist."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import BINARY, PATIENCE, Skip, main, succeed

COMMANDS = re.findall(r"^  (\w+)  ", succeed("--help").out.partition("Commands:\n")[2], re.M)
BUILD = Path(BINARY).resolve().parent
# The program's output for shells and man, and its places in share/.
PRINTED = {"finetune": (["completion", "bash"], "bash-completion/completions"),
           "_finetune": (["completion", "zsh"], "zsh/site-functions"),
           "finetune.fish": (["completion", "fish"], "fish/vendor_completions.d"),
           "finetune.1": (["help", "--man"], "man/man1"),
           **{f"finetune-{command}.1": (["help", "--man", command], "man/man1") for command in COMMANDS}}


def doctor(program):
    done = subprocess.run([program, "doctor"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done
    return [line for line in done.stdout.splitlines() if line.startswith("CUDA module")]


def test_install(directory):
    meson = shutil.which("meson")
    if not meson or not (BUILD / "meson-private").is_dir():
        raise Skip("no meson build directory")
    done = subprocess.run([meson, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", directory / "stage"],
                          capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "DESTDIR": ""})
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted(p.name for p in (directory / "stage").rglob("*") if p.is_file())
    module = (BUILD / "finetune_cuda.so").exists()
    assert files == sorted([*PRINTED, "finetune", *(["finetune_cuda.so"] if module else [])]), files
    for name, (words, place) in PRINTED.items():
        path, = (directory / "stage").rglob(f"share/{place}/{name}")
        assert path.read_text() == succeed(*words).out, name
    (directory / "stage").rename(directory / "moved")
    program, = (directory / "moved").rglob("bin/finetune")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=PATIENCE)
    assert version.returncode == 0 and version.stdout.strip(), version
    found = doctor(program)
    assert found == doctor(BINARY), found
    if module:
        assert "no finetune_cuda.so" not in "".join(found), found
        next((directory / "moved").rglob("finetune_cuda.so")).unlink()
        found = doctor(program)
    assert "no finetune_cuda.so" in "".join(found), found


main(globals())
