"""Faults in one rank of two: all end in time, one line names the rank, and nothing is damaged.

The walks of tests/faults under mpirun: calls on files and on the memory that processes share. A sample;
scripts/faults.sh takes more.
"""
import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ranks import MPIRUN, Job, Result, Skip, need_mpirun, nothing_left, one_error
from commands import CHANGES, COMMANDS, Command, train
from contents import contents
from faults import MODULE, MOST, WHOLE, Fault, Wrong, each, need_module, walk
from harness import BINARY, PATIENCE, main
from tiny import prepare, prepare_training
from walk import Undisturbed

LINE = train(4, "--keep-checkpoints", 9, "--virtual-shards", 2, "--comm-timeout", "5s")
MOST_OF_WRITER = 12  # for calls of rank 0, which the single-process walks cover completely


TRAINING = Command("train", LINE, ("run",), again=("--resume",))


class Ranks(Undisturbed):
    """A command of two processes, a training run unless another is given, on one host or two."""

    def __init__(self, root, hosts=1, command=TRAINING):
        self.hosts = hosts
        super().__init__(root, replace(command, name=f"{command.name}, 2 ranks, {hosts} hosts"))

    def run(self, here, fault=None, more=(), before=(), env=()):
        # mpirun may remove a folder in which another mpirun is about to create its own; socket paths must be short.
        with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as scratch:
            environment = {"TMPDIR": scratch, **dict(env), **(fault.environment(f"{here}.calls") if fault else {})}
            job = Job("-n", 2, *before, BINARY, *self.command.line, *more, cwd=here, env=environment, hosts=self.hosts)
            try:
                result = job.wait(PATIENCE)
                nothing_left(here / "run")
            except AssertionError as error:
                raise Wrong("hang", str(error)) from None
            return result

    def error_lines(self, result):
        return [line for line in result.err.splitlines() if "finetune: error:" in line]

    def ending(self, result, fault):
        return "killed" if fault.kind == "kill" and result.code != 0 else super().ending(result, fault)

    def is_told(self, result, failed, fault):
        """One line names the rank: ours, or the launcher's for a process that is alone on its host."""
        super().is_told(result, failed, fault)
        lines, rank = self.error_lines(result), fault.only[-1]
        if not lines and fault.kind == "kill" and f"process rank {rank} " in result.err:
            return
        if len(lines) != 1 or f"rank {rank} " not in lines[0]:
            raise Wrong("unclear message", f"not one line of rank {rank}: {result!r}")

    def walk(self, rank, path, walks, most_of_all=MOST):
        """Walks over the calls of one rank on such paths."""
        wrong = []
        only = f"OMPI_COMM_WORLD_RANK={rank}"
        found = self.calls_of(Fault("all", path, only=only))
        for calls, kind, times, most in walks:
            count = self.count(calls, calls=found)
            chosen = min(count, most_of_all, MOST) if WHOLE else most
            faults = each(Fault(calls, path, kind, times=times, only=only), count, chosen)
            try:
                if faults:
                    walk(self.examine, faults, f"{self.command.name}, rank {rank}", count)
            except AssertionError as error:
                wrong.append(f"rank {rank}, {calls} of {path}, {kind}: {error}")
        return wrong


# Calls, how they fail, from which call on (0: all), and the sample's size.
OF_FILES = (("open", "EIO", 1, 1), ("read", "EIO", 1, 1), ("mmap", "ENOMEM", 1, 0), ("open,read,mmap", "kill", 1, 1))
OF_A_WRITER = (("write", "EIO", 1, 1), ("write,truncate,mkdir", "ENOSPC", 0, 1), ("write", "short", 1, 0),
               ("sync", "EIO", 1, 0), ("rename", "EIO", 1, 1), (CHANGES, "EIO", 0, 0), (CHANGES, "kill", 1, 1))
OF_MEMORY = (("open", "ENOMEM", 1, 1), ("truncate", "ENOSPC", 1, 0), ("mmap", "ENOMEM", 1, 1), ("open,mmap", "kill", 1, 0))
OF_OTHERS_MEMORY = (("open", "EACCES", 1, 1), ("open", "kill", 1, 1))


def prepared(directory, hosts=1):
    need_module()
    need_mpirun()
    prepare_training(directory)
    return Ranks(directory, hosts)


def test_calls_on_files(directory):
    ranks = prepared(directory)
    wrong = ranks.walk(1, f"{directory}/", OF_FILES) + ranks.walk(0, f"{directory}/", OF_A_WRITER, MOST_OF_WRITER)
    assert not wrong, "\n".join(wrong)


def test_calls_on_files_of_two_hosts(directory):
    if not WHOLE:
        raise Skip("a part of scripts/faults.sh")
    ranks = prepared(directory, 2)
    wrong = ranks.walk(1, f"{directory}/", OF_FILES) + ranks.walk(0, f"{directory}/", OF_A_WRITER, MOST_OF_WRITER)
    assert not wrong, "\n".join(wrong)


def test_calls_of_evaluate_and_predict(directory):
    """Rank 0 reads the data and writes the results, both read the model."""
    need_module()
    need_mpirun()
    prepare(directory)
    limit = ("--comm-timeout", "5s")
    wrong = []
    for name, others, own in (("evaluate", ("read,mmap", "EIO"), ("write", "ENOSPC")), ("predict", ("open", "EMFILE"), ("read", "EIO"))):
        command = replace(COMMANDS[name], line=(*COMMANDS[name].line, *limit))
        ranks = Ranks(directory, command=command)
        walks = tuple((*walk, 1, 1) for walk in (("open", "EMFILE"), ("read,mmap", "EIO"), ("write", "ENOSPC")))
        wrong += ranks.walk(1, f"{directory}/", walks if WHOLE else ((*others, 1, 1),))
        wrong += ranks.walk(0, f"{directory}/", walks if WHOLE else ((*own, 1, 1),))
    assert not wrong, "\n".join(wrong)


def test_memory_that_processes_share(directory):
    ranks = prepared(directory)
    wrong = [message for rank in (0, 1) for message in ranks.walk(rank, "/memfd:finetune", OF_MEMORY)]
    wrong += ranks.walk(1, "/fd/", OF_OTHERS_MEMORY)
    assert not wrong, "\n".join(wrong)


def test_a_process_that_stops_before_others_watch_it(directory):
    """On two hosts each allocates memory before it has met the other."""
    ranks = prepared(directory, 2)
    here = ranks.new_directory("stops")
    fault = Fault("open", "/memfd:finetune", "stop", nth=1, only="OMPI_COMM_WORLD_RANK=1")
    result = ranks.run(here, fault, env={"FINETUNE_START_LIMIT": "3"})
    one_error(result, 5, "rank 0", "have not been found within 3 s")


def test_a_process_that_stops_before_mpi_has_started(directory):
    ranks = prepared(directory)
    wrapper = directory / "run-stopped"
    wrapper.write_text('#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && kill -STOP $$\nexec "$@"\n')
    wrapper.chmod(0o755)
    result = ranks.run(ranks.new_directory("stopped"), before=[wrapper], env={"FINETUNE_START_LIMIT": "3"})
    one_error(result, 5, "rank 0", "have not been found within 3 s")
    result = ranks.run(ranks.new_directory("0"), env={"FINETUNE_START_LIMIT": "0"})
    assert result.code == 2, result
    assert ranks.error_lines(result) == ["finetune: error: FINETUNE_START_LIMIT=0 is not a whole number above 0"], result


def limited(directory, kib):
    wrapper = directory / f"run-limit-{kib}"
    wrapper.write_text(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -v {kib}\nexec "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


def test_a_limit_of_address_space(directory):
    """Too little memory for MPI, for the run, and enough: never a crash or an endless wait."""
    ranks = prepared(directory)
    endings = []
    for kib in range(60_000, 520_000, 10_000) if WHOLE else (60_000, 210_000, 300_000, 400_000):
        here = ranks.new_directory(f"limit {kib}")
        result = ranks.run(here, before=[limited(directory, kib)])
        endings.append(result.code)
        if result.code == 0:
            ranks.is_as_expected(here, contents(here, ("run",)), result)
        elif kib >= 100_000:  # with less, the program itself may not load
            line = one_error(result, 5, "rank 1")
            assert "memory" in line or "address space" in line, line
    print("limits of address space:", endings)
    assert endings[-1] == 0 and 5 in endings


def test_a_full_dev_shm(directory):
    """A small /dev/shm is no limit: our shared memory is elsewhere, and Open MPI does not need it."""
    if str(directory).startswith("/dev/shm/"):
        with tempfile.TemporaryDirectory(prefix="finetune-test-", dir="/var/tmp") as elsewhere:
            return with_a_full_dev_shm(Path(elsewhere))
    with_a_full_dev_shm(directory)


def with_a_full_dev_shm(directory):
    for hosts in (1, 2):
        (directory / str(hosts)).mkdir()
        ranks = prepared(directory / str(hosts), hosts)
        here = ranks.new_directory(f"shm {hosts}")
        script = "mount -t tmpfs -o size=64k none /dev/shm && head -c 65536 /dev/zero > /dev/shm/filler; exec \"$@\""
        line = ["unshare", "-m", "sh", "-c", script, "sh", *MPIRUN, "-n", "2", BINARY, *map(str, LINE)]
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm"], capture_output=True).returncode:
            raise Skip("a tmpfs cannot be mounted here")
        done = subprocess.run(line, cwd=here, capture_output=True, text=True, timeout=PATIENCE,
                              env={**os.environ, "TMPDIR": "/tmp", "FINETUNE_HOSTS": str(hosts),
                                   "OMPI_MCA_btl": "^vader"})  # whose message may crash mpirun
        result = Result(done.returncode, done.stdout, done.stderr)
        assert result.code == 0, result
        ranks.is_as_expected(here, contents(here, ("run",)), result)


def test_a_clock_that_jumps(directory):
    """The clock jumps by years: results and time limits do not change."""
    library = os.path.abspath(os.environ.get("FINETUNE_JUMP_CLOCK", "build/tests/faults/jump_clock.so"))
    for hosts, seconds, rank in ((2, -10**9, 0), (1, 10**9, 1)):
        (directory / str(hosts)).mkdir()
        ranks = prepared(directory / str(hosts), hosts)
        jump = {"JUMP_SECONDS": str(seconds), "JUMP_AFTER": "300", "JUMP_ONLY": f"OMPI_COMM_WORLD_RANK={rank}"}
        here = ranks.new_directory(f"clock {hosts}")
        result = ranks.run(here, env={**jump, "LD_PRELOAD": library})
        assert result.code == 0, result
        ranks.is_as_expected(here, contents(here, ("run",)), result)
    # The other's clock still detects a process that stops.
    here = ranks.new_directory("clock and stop")
    fault = Fault("write", "/run/metrics.jsonl", "stop", nth=1, only="OMPI_COMM_WORLD_RANK=0")
    start = time.time()
    result = ranks.run(here, env={**fault.environment(f"{here}.calls"), "LD_PRELOAD": f"{MODULE}:{library}",
                                  "JUMP_SECONDS": "-1000000000", "JUMP_AFTER": "300"})
    assert time.time() - start > 4, result
    one_error(result, 5, "rank 0", "5 s")


main(globals(), at_once=1 if WHOLE else 3)
