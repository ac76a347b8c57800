"""Processes of one run: what they tell each other, and that none hangs when one dies.

test_comm_ranks does the checks inside the processes; here are their numbers, and what the user sees.
FINETUNE_HOSTS=2 makes two hosts of one machine.
"""
import json
import os
import signal
import subprocess

import rank_programs
from rank_programs import (BINARY, PATIENCE, Skip, check_nobody_is_left, command, environment, launch, main, new_token, own_lines, some_of,
                           together)

RANKS = os.path.abspath(os.environ.get("FINETUNE_COMM_RANKS", "build/tests/mpi/test_comm_ranks"))


def check_fault(directory, processes, *arguments, **how):
    rank_programs.check_fault(directory, processes, *arguments, program=RANKS, **how)


def test_one_host(_):
    for processes in (1, 2, 3, 4, 8):
        result = launch(RANKS, processes, "all")
        assert result.code == 0 and own_lines(result) == [], f"{processes}: {result!r}"


def test_several_hosts(_):
    for processes, hosts in some_of(3, (2, 2), (3, 2), (8, 3), (4, 2), (4, 3)):
        result = launch(RANKS, processes, "all", hosts=hosts)
        assert result.code == 0 and own_lines(result) == [], f"{processes} on {hosts}: {result!r}"


def test_more_processes_than_cores(_):
    result = launch(RANKS, 16, "barriers", 1000)
    assert result.code == 0, result
    print(f"16 processes, a barrier: {result.out.strip()}")
    for processes, hosts in some_of(2, (4, 1), (4, 2), (2, 1), (8, 1), (2, 2)):
        result = launch(RANKS, processes, "barriers", 2000, hosts=hosts)
        assert result.code == 0, result
        print(f"{processes} processes on {hosts} host(s), a barrier: {result.out.strip()}")


def test_a_process_dies(directory):
    died = (r"finetune: error: rank {} on \S+ \(pid \d+\) died in {}; the job ends")
    backward, forward = "backward pass, step 17", "forward pass, step 4"
    check_fault(directory, 2, "kill", 0, code=137, line=died.format(0, backward))
    check_fault(directory, 4, "kill", 3, code=137, line=died.format(3, backward))
    check_fault(directory, 4, "kill", 2, hosts=2, code=137, line=died.format(2, backward))
    check_fault(directory, 4, "kill-computing", 1, code=137, line=died.format(1, forward))
    check_fault(directory, 3, "leave", 1, code=1, line=died.format(1, "a bug"))


def test_a_process_does_not_come(directory):
    line = r"finetune: error: rank {} on \S+ has not responded for {} s \({}, in {}\); the job ends"
    stopped, late = "backward pass, step 17", "forward pass, step 4"
    # One process alone on its host; and two, either of which may be named.
    from_afar = (r"finetune: error: {} has not responded for 2 s "
                 r"\(rank 0 on \S+ waits for it in forward pass, step 4\); the job ends")
    together(
        lambda: check_fault(directory, 2, "stop", 1, code=5, line=line.format(1, 3, "stopped", stopped)),
        lambda: check_fault(directory, 4, "stop", 0, hosts=2, code=5, line=line.format(0, 3, "stopped", stopped)),
        lambda: check_fault(directory, 4, "late", 2, code=5, line=line.format(2, 2, "running", late)),
        lambda: check_fault(directory, 2, "late", 1, hosts=2, code=5, line=from_afar.format(r"rank 1 on \S+")),
        lambda: check_fault(directory, 3, "late", -1, hosts=3, code=5, line=from_afar.format("a process of another host")))


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
        result = launch(RANKS, 2, "exit-code", 85, hosts=hosts)
        assert result.code == 85 and own_lines(result) == [], result


def test_the_launcher_ends_the_job(_):
    for number in (signal.SIGTERM, signal.SIGINT):
        token = new_token()
        mpirun = subprocess.Popen(command(RANKS, 3, "idle"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment(token))
        for _ in range(3):
            assert mpirun.stdout.readline() == "idle\n"
        mpirun.send_signal(number)
        _, err = mpirun.communicate(timeout=PATIENCE)
        assert "finetune:" not in err, err
        check_nobody_is_left(token)


def test_advice_on_binding(_):
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        raise Skip("this machine has one core")
    # Open MPI binds each of one or two processes to a core. NUMBER 1: there must be advice.
    result = launch(RANKS, 1, "all", 1, options=("--bind-to", "core"))
    assert result.code == 0, result
    if cores > 2:
        assert launch(RANKS, 2, "all", 1, options=("--bind-to", "core")).code == 0
    else:
        assert launch(RANKS, 2, "all", 0, options=("--bind-to", "core")).code == 0


def test_bench(_):
    names = {"processes", "hosts", "megabytes", "barrier_microseconds", "all_gather_microseconds",
             "reduce_gigabytes_per_second"}
    for hosts in (1, 2):
        result = launch(BINARY, 2, "bench", "comm", "--megabytes", 8, "--json", hosts=hosts)
        assert result.code == 0, result
        values = json.loads(result.out)
        if hosts == 2:
            names |= {"exchange_microseconds", "exchange_gigabytes_per_second"}
        assert set(values) == names and all(value > 0 for value in values.values()), values
        assert (values["processes"], values["hosts"]) == (2, hosts), values
    text = launch(BINARY, 2, "bench", "comm", "--megabytes", 8).out
    assert "2 processes on 1 host" in text and "GB/s" in text, text
    alone = subprocess.run([BINARY, "bench", "comm"], capture_output=True, text=True)
    assert alone.returncode == 2 and "mpirun -n 2" in alone.stderr, alone


main(globals(), at_once=2)
