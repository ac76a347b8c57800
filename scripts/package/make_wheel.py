#!/usr/bin/env python3
"""Makes a wheel that contains an installed program and the libraries that it needs.

usage: make_wheel.py PREFIX OUTPUT

PREFIX has bin/finetune, lib/finetune and share as `meson install` makes them. pip installs them in the same places
below the environment's folder: a wheel's scripts into bin, and its data beside bin. So the program starts without
Python, and finds its libraries by a path relative to its own ($ORIGIN).

The wheel omits libraries that every Linux of that age has (glibc, libstdc++, libgcc_s), and Open MPI's: processes under
mpirun need the library of that mpirun. The wheel's tag names the glibc of the machine on which the wheel is made.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "finetune_bert"
# Libraries that every system with the tag's glibc has, and Open MPI's.
OF_THE_SYSTEM = re.compile(r"^(linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|mpi))\.so")
# Packages whose code is linked into the programs.
LINKED_IN = ["libhdf5-dev", "libaec-dev", "libssl-dev", "zlib1g-dev", "libzstd-dev", "libcli11-dev", "liblinear-dev"]
# Versions of Debian 12's GCC 12: systems with the same glibc may lack later ones.
NEWEST = {"GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13)}


def output_of(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def needed(file):
    return [name for name in output_of("patchelf", "--print-needed", file).split() if not OF_THE_SYSTEM.match(name)]


def libraries(programs):
    """Returns the name and file of each library to include, also of those that other libraries need."""
    found, places = {}, {}
    for program in programs:
        places |= dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", program), re.M))
    open_names = [name for program in programs for name in needed(program)]
    while open_names:
        name = open_names.pop()
        if name in found:
            continue
        if name not in places:
            sys.exit(f"make_wheel: error: {name} is not found on this machine")
        found[name] = Path(places[name]).resolve()
        open_names += needed(found[name])
    return found


def newest_version(files, family):
    texts = "".join(output_of("objdump", "-T", file) for file in files)
    found = re.findall(rf"\b{family}_(\d+(?:\.\d+)+)", texts)
    return max((tuple(map(int, version.split("."))) for version in found), default=(0,))


def check_versions(files):
    """Returns the glibc version for the tag: this machine's, which all files can use."""
    glibc = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    for family, most in {**NEWEST, "GLIBC": glibc}.items():
        version = newest_version(files, family)
        if version > most:
            sys.exit(f"make_wheel: error: {family}_{'.'.join(map(str, version))} is needed, newer than "
                     f"{'.'.join(map(str, most))}: make the wheel on an older system")
    return "_".join(map(str, glibc[:2]))


def licences_of(files):
    """Returns the packages whose code is in the wheel, each with its licence file."""
    done = subprocess.run(["dpkg-query", "-S", *(f"*/{file.name}" for file in files)], capture_output=True, text=True)
    packages = {Path(path).name: package
                for package, path in re.findall(r"^([^:\s]+)(?::\S+)?: (\S+)$", done.stdout, re.M)}
    found = {}
    for package in [*(packages.get(file.name, f"of {file}") for file in files), *LINKED_IN]:
        found[package] = Path("/usr/share/doc") / package / "copyright"
        if not found[package].exists():
            sys.exit(f"make_wheel: error: no licence is found for the package {package}")
    return sorted(found.items())


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: finetune-bert
Version: {version}
Summary: Fine-tunes BERT for text classification and question answering from the command line
License: Apache-2.0
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Description-Content-Type: text/markdown

The program `finetune`, its completions for shells and its manual pages. No Python is used at run time. The processor
needs AVX2 (x86-64-v3). Under `mpirun` it uses the Open MPI (versions 4 and 5) that `mpirun` is of.
"""


class Wheel:
    """Writes files with fixed times and the list of hashes last, so that the wheel is reproducible."""

    def __init__(self, path, dist_info):
        self.zip, self.dist_info, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), dist_info, []
        moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)))
        self.time = max(moment[:6], (1980, 1, 1, 0, 0, 0))

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name, self.time)
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self):
        name = f"{self.dist_info}/RECORD"
        lines = "".join(line + "\n" for line in [*self.record, f"{name},,"])
        self.add(name, lines.encode())
        self.zip.close()


def add_folder(wheel, folder, place):
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        wheel.add(f"{place}/{file.relative_to(folder)}", file.read_bytes(), os.access(file, os.X_OK))


def main():
    prefix, output = map(Path, sys.argv[1:3])
    version = output_of(prefix / "bin" / "finetune", "--version").strip()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(prefix, work / "usr")
        program, home = work / "usr" / "bin" / "finetune", work / "usr" / "lib" / "finetune"
        programs = [program, *home.glob("finetune-mpi")]
        carried = libraries(programs)
        for library, file in carried.items():
            shutil.copy(file, home / library)
            os.chmod(home / library, 0o755)
        for file in [*programs, *(home / library for library in carried)]:
            subprocess.run(["strip", "--strip-unneeded", file], check=True)
            # The second folder is for an Open MPI that is installed in the same environment.
            rpath = "$ORIGIN/../lib/finetune:$ORIGIN/../lib" if file == program else "$ORIGIN:$ORIGIN/.."
            subprocess.run(["patchelf", "--set-rpath", rpath, file], check=True)
        glibc = check_versions([*programs, *(home / library for library in carried)])
        tag = f"py3-none-manylinux_{glibc}_x86_64"
        path = output / f"{NAME}-{version}-{tag}.whl"
        data, dist_info = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info"
        wheel = Wheel(path.with_suffix(".partial"), dist_info)
        wheel.add(f"{data}/scripts/finetune", program.read_bytes(), True)
        add_folder(wheel, home, f"{data}/data/lib/finetune")
        add_folder(wheel, work / "usr" / "share", f"{data}/data/share")
        wheel.add(f"{dist_info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
        for package, text in licences_of(carried.values()):
            wheel.add(f"{dist_info}/licenses/{package}", text.read_bytes())
        wheel.add(f"{dist_info}/METADATA", metadata(version).encode())
        form = f"Wheel-Version: 1.0\nGenerator: finetune\nRoot-Is-Purelib: false\nTag: {tag}\n"
        wheel.add(f"{dist_info}/WHEEL", form.encode())
        wheel.close()
        path.with_suffix(".partial").rename(path)
    print(f"{path} carries {', '.join(sorted(carried))}")


main()
