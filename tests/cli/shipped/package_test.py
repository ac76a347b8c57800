"""The wheel's layout, and the message where the program cannot run: old processor, no MPI."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, PATIENCE, Skip, main

ROOT = Path(__file__).resolve().parents[3]


def run(*command, **environment):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE,
                          env={**os.environ, **environment})


def wheel_of(directory):
    if not all(map(shutil.which, ("patchelf", "objdump", "strip", "dpkg-query"))):
        raise Skip("patchelf is not installed")
    prefix = directory / "usr"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib" / "finetune").mkdir(parents=True)
    (prefix / "share" / "man" / "man1").mkdir(parents=True)
    shutil.copy(BINARY, prefix / "bin" / "finetune")
    (prefix / "share" / "man" / "man1" / "finetune.1").write_text("a page\n")
    done = run(sys.executable, ROOT / "scripts" / "package" / "make_wheel.py", prefix, directory)
    assert done.returncode == 0, done
    wheel, = directory.glob("*.whl")
    return wheel


def test_wheel(directory):
    wheel = wheel_of(directory)
    version = run(BINARY, "--version").stdout.strip()
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    assert wheel.name == f"finetune_bert-{version}-py3-none-manylinux_{glibc}_x86_64.whl", wheel.name
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        info = f"finetune_bert-{version}.dist-info"
        record = [line.rsplit(",", 2) for line in content.read(f"{info}/RECORD").decode().splitlines()]
        assert sorted(name for name, _, _ in record) == sorted(names) and len(set(names)) == len(names)
        for name, digest, size in record:
            data = content.read(name)
            expected = "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (("", "") if name.endswith("/RECORD") else (expected, str(len(data)))), name
        assert f"Tag: py3-none-manylinux_{glibc}_x86_64\n" in content.read(f"{info}/WHEEL").decode()
        assert f"Version: {version}\n" in content.read(f"{info}/METADATA").decode()
        libraries = [Path(name).name for name in names if "/lib/finetune/" in name]
        assert any(name.startswith("libsentencepiece.so") for name in libraries), libraries
        assert not [name for name in libraries if re.match(r"lib(c|m|mpi|stdc\+\+)\.so", name)], libraries
        data = f"finetune_bert-{version}.data/"
        assert f"{data}data/share/man/man1/finetune.1" in names and f"{info}/licenses/LICENSE" in names
        for name in names:  # as pip installs them: scripts into bin, data beside it
            if name.startswith(data):
                place = directory / "installed" / name[len(data):].replace("scripts/", "bin/").replace("data/", "", 1)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.read(name))
                place.chmod(content.getinfo(name).external_attr >> 16)
    program = directory / "installed" / "bin" / "finetune"
    assert run(program, "--version", LD_LIBRARY_PATH="").stdout.strip() == version
    places = run("ldd", program).stdout
    assert re.search(rf"libsentencepiece\S+ => {directory / 'installed'}", places), places


def test_old_processors(directory):
    qemu = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
    if not qemu:
        raise Skip("qemu-user is not installed")
    for model in ("Nehalem", "SandyBridge"):
        done = run(qemu, "-cpu", model, BINARY, "--version")
        lines = [line for line in done.stderr.splitlines() if "TCG" not in line]
        assert done.returncode == 5 and len(lines) == 1 and done.stdout == "", done
        assert lines[0].startswith("finetune: error: this processor has no AVX2"), done
    done = run(qemu, "-cpu", "max", BINARY, "--version")
    assert done.returncode == 0 and done.stdout.count(".") == 2, done


main(globals())
