"""Processes of one run: what they tell each other, and that none hangs when one dies.

test_comm_ranks does the checks inside the processes; here are their numbers, and what the user sees.
FINETUNE_HOSTS=2 makes two hosts of one machine.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from harness import BINARY, Result, Skip, main  # noqa: E402

RANKS = os.path.abspath(os.environ.get("FINETUNE_COMM_RANKS", "build/tests/mpi/test_comm_ranks"))
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


TOKEN = f"FINETUNE_TEST_RUN={os.getpid()}"  # in the environment of every process of ours


def command(processes, *arguments, hosts=1, options=("--bind-to", "none"), program=RANKS):
    if not shutil.which("mpirun"):
        raise Skip("mpirun is absent")
    return [*MPIRUN, *options, "-x", f"FINETUNE_HOSTS={hosts}", "-n", str(processes), program,
            *map(str, arguments)]


def environment(directory=None):
    """Other runs on this machine leave their files elsewhere: all of this one's come to `directory`."""
    name, value = TOKEN.split("=")
    places = {"TMPDIR": str(directory), "OMPI_MCA_btl_vader_backing_directory": str(directory)}
    return {**os.environ, name: value, **(places if directory else {})}


def launch(processes, *arguments, directory=None, timeout=60, **how):
    start = time.time()
    done = subprocess.run(command(processes, *arguments, **how), capture_output=True, timeout=timeout,
                          text=True, env=environment(directory))
    result = Result(done.returncode, done.stdout, done.stderr)
    result.seconds = time.time() - start
    return result


def own_lines(result):
    return [line for line in result.err.splitlines() if line.startswith("finetune:")]


def living():
    """The processes of this test's runs, zombies apart, which wait for nobody but init."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            ours = TOKEN.encode() in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if ours and state not in "ZX":
            found.append((folder.name, state))
    return found


def check_nobody_is_left(seconds=3):
    limit = time.time() + seconds
    while living() and time.time() < limit:
        time.sleep(0.05)
    assert not living(), living()


def files_in(directory):
    return [str(path) for path in directory.rglob("*") if not path.is_dir()]


def check_fault(directory, processes, *arguments, code, line, hosts=1, within=10):
    """The job ends soon with this code and exactly one line of ours, and leaves nothing."""
    result = launch(processes, *arguments, hosts=hosts, directory=directory)
    what = (processes, arguments, hosts)
    assert result.code == code, f"{what}: {result!r}"
    assert result.seconds < within, f"{what}: {result.seconds} s"
    lines = own_lines(result)
    assert len(lines) == 1 and re.fullmatch(line, lines[0]), f"{what}: {result!r}"
    check_nobody_is_left()
    assert not files_in(directory), files_in(directory)
    assert not list(Path("/dev/shm").glob("*finetune*"))


def test_one_host(_):
    for processes in (1, 2, 3, 4, 8):
        result = launch(processes, "all")
        assert result.code == 0 and own_lines(result) == [], f"{processes}: {result!r}"


def test_several_hosts(_):
    for processes, hosts in ((2, 2), (3, 2), (4, 2), (4, 3), (8, 3)):
        result = launch(processes, "all", hosts=hosts)
        assert result.code == 0 and own_lines(result) == [], f"{processes} on {hosts}: {result!r}"


def test_more_processes_than_cores(_):
    result = launch(16, "barriers", 1000)
    assert result.code == 0 and result.seconds < 20, f"{result.seconds} s: {result!r}"
    print(f"16 processes, a barrier: {result.out.strip()}")
    for processes, hosts in ((2, 1), (4, 1), (8, 1), (2, 2), (4, 2)):
        result = launch(processes, "barriers", 2000, hosts=hosts)
        assert result.code == 0, result
        print(f"{processes} processes on {hosts} host(s), a barrier: {result.out.strip()}")


def test_a_process_dies(directory):
    died = (r"finetune: error: rank {} on \S+ \(pid \d+\) died in {}; the job ends; "
            r"--resume continues from the newest whole checkpoint")
    backward, forward = "backward pass, step 17", "forward pass, step 4"
    check_fault(directory, 2, "kill", 0, code=137, line=died.format(0, backward))
    check_fault(directory, 4, "kill", 3, code=137, line=died.format(3, backward))
    check_fault(directory, 4, "kill", 2, hosts=2, code=137, line=died.format(2, backward))
    check_fault(directory, 4, "kill-computing", 1, code=137, line=died.format(1, forward))
    check_fault(directory, 3, "leave", 1, code=1, line=died.format(1, "a bug"))


def test_a_process_does_not_come(directory):
    line = r"finetune: error: rank {} on \S+ has not come for {} s \({}, in {}\); the job ends"
    stopped, late = "backward pass, step 17", "forward pass, step 4"
    check_fault(directory, 2, "stop", 1, code=5, line=line.format(1, 3, "stopped", stopped))
    check_fault(directory, 4, "stop", 0, hosts=2, code=5, line=line.format(0, 3, "stopped", stopped))
    check_fault(directory, 4, "late", 2, code=5, line=line.format(2, 2, "running", late))
    # Alone on its host: the others know only where it is not.
    check_fault(directory, 2, "late", 1, hosts=2, code=5,
                line=r"finetune: error: a process of another host has not come for 2 s "
                     r"\(rank 0 on \S+ waits for it in forward pass, step 4\); the job ends")


def test_a_process_ends_the_job(directory):
    line = "finetune: error: no model"
    for hosts in (1, 2):
        check_fault(directory, 4, "abort", 3, hosts=hosts, code=4, line=line)
        check_fault(directory, 4, "abort-computing", 1, hosts=hosts, code=4, line=line)
        check_fault(directory, 4, "abort-all", hosts=hosts, code=4, line=line)


def test_an_error_of_one_process_is_everybodys(directory):
    line = r"finetune: error: rank {} on \S+: train.csv:118: column 'text' is empty"
    check_fault(directory, 4, "error", 2, code=3, line=line.format(2))
    check_fault(directory, 2, "error", 1, hosts=2, code=3, line=line.format(1))


def test_exit_code(_):
    for hosts in (1, 2):
        result = launch(2, "exit-code", 85, hosts=hosts)
        assert result.code == 85 and own_lines(result) == [], result


def test_the_launcher_ends_the_job(_):
    for number in (signal.SIGTERM, signal.SIGINT):
        mpirun = subprocess.Popen(command(3, "idle"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment())
        for _ in range(3):
            assert mpirun.stdout.readline() == "idle\n"
        mpirun.send_signal(number)
        _, err = mpirun.communicate(timeout=20)
        assert "finetune:" not in err, err
        check_nobody_is_left()


def test_advice_on_binding(_):
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        raise Skip("this machine has one core")
    # Open MPI binds each of one or two processes to one core. NUMBER 1: there must be advice.
    result = launch(1, "all", 1, options=("--bind-to", "core"))
    assert result.code == 0, result
    if cores > 2:
        assert launch(2, "all", 1, options=("--bind-to", "core")).code == 0
    else:
        assert launch(2, "all", 0, options=("--bind-to", "core")).code == 0


def test_bench(_):
    names = {"processes", "hosts", "megabytes", "barrier_microseconds", "all_gather_microseconds",
             "reduce_gigabytes_per_second"}
    for hosts in (1, 2):
        result = launch(2, "bench", "comm", "--megabytes", 8, "--json", hosts=hosts, program=BINARY)
        assert result.code == 0, result
        values = json.loads(result.out)
        if hosts == 2:
            names |= {"exchange_microseconds", "exchange_gigabytes_per_second"}
        assert set(values) == names and all(value > 0 for value in values.values()), values
        assert (values["processes"], values["hosts"]) == (2, hosts), values
    text = launch(2, "bench", "comm", "--megabytes", 8, program=BINARY).out
    assert "2 processes on 1 host" in text and "GB/s" in text, text
    alone = subprocess.run([BINARY, "bench", "comm"], capture_output=True, text=True)
    assert alone.returncode == 2 and "mpirun -n 2" in alone.stderr, alone


main(globals())
