"""The table of libraries in docs/reliability is correct: linked and installed versions."""
import csv
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, Skip, main
from elf_file import ElfFile

ROOT = Path(__file__).resolve().parents[3]
LOADER = "ld-linux-x86-64.so.2"
# Packages of headers in scripts/install_deps.sh, and that of their library; of a compiler's own there is no row.
LIBRARY_OF = {"libopenmpi-dev": "libopenmpi3", "libhdf5-dev": "libhdf5-103-1", "libsimdjson-dev": "libsimdjson14",
              "libsentencepiece-dev": "libsentencepiece0", "libhwy-dev": "libhwy1", "zlib1g-dev": "zlib1g",
              "libzstd-dev": "libzstd1", "libssl-dev": "libssl3"}
OPTIONAL = {"libdnnl2", "libgomp1"}  # linked if found at build time


def rows():
    """Package name to version."""
    with open(ROOT / "docs/reliability/libraries.csv", encoding="utf-8", newline="") as file:
        found = [(row["package"], row["version"]) for row in csv.DictReader(file) if all(row.values())]
    assert len(found) == len(dict(found)) >= 10, found
    return dict(found)


def on_debian_12():
    if not shutil.which("dpkg-query") or platform.freedesktop_os_release().get("VERSION_CODENAME") != "bookworm":
        raise Skip("this is not Debian 12")


def query(*arguments):
    return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True)


def test_versions(_):
    on_debian_12()
    for package, version in rows().items():
        installed = query("-W", "-f", "${Version}", package)
        if installed.returncode:
            print(f"{package} is not installed")
            continue
        upstream = installed.stdout.rpartition(":")[2]
        assert re.match(re.escape(version) + r"[.+~-]", upstream), f"{package}: {version} in the table, {upstream} installed"


def test_what_the_program_is_linked_with(_):
    on_debian_12()
    libraries = ElfFile(BINARY).libraries()
    assert "libc.so.6" in libraries, libraries
    # by either path, on systems with merged /usr
    found = query("-S", *(f"*/{library}" for library in libraries)).stdout
    for library in libraries:
        owners = set(re.findall(rf"^([^:]+):.*/{re.escape(library)}$", found, re.M))
        assert library == LOADER or owners & rows().keys(), f"{library} of {owners or 'no package'} has no row"


def test_what_building_installs(_):
    script = (ROOT / "scripts/install_deps.sh").read_text()
    lists = [*re.findall(r"^packages=\((.*?)\)", script, re.M | re.S), *re.findall(r"packages\+=\(([^)]*)\)", script)]
    headers = [name for name in " ".join(lists).split() if name.endswith("-dev") and not name.startswith("libclang")]
    packages = {LIBRARY_OF.get(name, name) for name in headers}
    assert len(packages) > 9, packages
    assert packages <= rows().keys(), f"no row: {packages - rows().keys()}"
    others = {"libc6", "libstdc++6", "libgcc-s1"} | OPTIONAL
    assert rows().keys() - packages == others, f"not installed: {rows().keys() - packages - others}"


main(globals())
