"""Programs under mpirun that check themselves, and jobs that a fault must end."""
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from harness import BINARY, PATIENCE, Result, Skip, main, some_of, together  # noqa: E402, F401

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


TOKEN = "FINETUNE_TEST_RUN"  # in the environment of every process of a run of ours
NUMBERS = itertools.count()


def new_token():
    return f"{os.getpid()}-{next(NUMBERS)}"


def command(program, processes, *arguments, hosts=1, options=("--bind-to", "none")):
    if not shutil.which("mpirun"):
        raise Skip("mpirun is absent")
    return [*MPIRUN, *options, "-x", f"FINETUNE_HOSTS={hosts}", "-n", str(processes), program,
            *map(str, arguments)]


def environment(token, directory=None):
    """Gives the run a directory of its own for temporary files, which other runs do not use."""
    places = {"TMPDIR": str(directory), "OMPI_MCA_btl_vader_backing_directory": str(directory)}
    return {**os.environ, TOKEN: token, **(places if directory else {})}


def launch(program, processes, *arguments, directory=None, timeout=PATIENCE, token=None, **how):
    done = subprocess.run(command(program, processes, *arguments, **how), capture_output=True, timeout=timeout,
                          text=True, env=environment(token or new_token(), directory))
    return Result(done.returncode, done.stdout, done.stderr)


def own_lines(result):
    return [line for line in result.err.splitlines() if line.startswith("finetune:")]


def living(token):
    """The processes of the run with this token, without zombies, which only init must reap."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            ours = f"{TOKEN}={token}".encode() in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and state not in "ZX":
            found.append((folder.name, state))
    return found


def check_nobody_is_left(token, seconds=PATIENCE):
    limit = time.time() + seconds
    while living(token) and time.time() < limit:
        time.sleep(0.05)
    assert not living(token), living(token)


def files_in(directory):
    return [str(path) for path in directory.rglob("*") if not path.is_dir()]


def check_fault(directory, processes, *arguments, program, code, line, hosts=1):
    """The job ends soon with this code and exactly one of our lines, and leaves nothing."""
    token = new_token()
    directory = directory / token  # runs beside this one have their own
    directory.mkdir()
    result = launch(program, processes, *arguments, hosts=hosts, directory=directory, token=token)
    what = (processes, arguments, hosts)
    assert result.code == code, f"{what}: {result!r}"
    lines = own_lines(result)
    assert len(lines) == 1 and re.fullmatch(line, lines[0]), f"{what}: {result!r}"
    check_nobody_is_left(token)
    assert not files_in(directory), files_in(directory)
    assert not list(Path("/dev/shm").glob("*finetune*"))
