"""Runs of the binary under mpirun, none of which can hang, for the tests of several processes."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for folder in ("cli", "faults"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / folder))
from harness import BINARY, PATIENCE, Result, Skip, facts_of, metrics_of, succeed  # noqa: E402

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
PREFIX = "finetune: error: "


def need_mpirun():
    if not shutil.which("mpirun"):
        raise Skip("mpirun is absent")


class Job:
    """mpirun with its processes; `line` is everything after its options."""

    def __init__(self, *line, hosts=1, env=None, stdin=None, cwd=None):
        environment = {**os.environ, **(env or {})}
        environment.pop("FINETUNE_HOSTS", None)
        if hosts > 1:
            environment["FINETUNE_HOSTS"] = str(hosts)
        self.process = subprocess.Popen([*MPIRUN, *map(str, line)], stdin=stdin or subprocess.DEVNULL, cwd=cwd,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                                        start_new_session=True)

    def ended(self):
        return self.process.poll() is not None

    def wait(self, timeout=PATIENCE, data=None):
        try:
            out, err = self.process.communicate(input=data, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # mpirun ends its processes then
            try:
                out, err = self.process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                out, err = self.process.communicate()
            raise AssertionError(f"the job hung: {out[-2000:]!r} {err[-2000:]!r}") from None
        except KeyboardInterrupt:  # the job has a session of its own and would go on
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        return Result(self.process.returncode, out.decode(), err.decode())


def run_on(processes, *arguments, hosts=1, timeout=PATIENCE, stdin=None, **options):
    job = Job("-n", processes, BINARY, *arguments, hosts=hosts,
              stdin=subprocess.PIPE if stdin is not None else None, **options)
    return job.wait(timeout, data=stdin.encode() if stdin is not None else None)


def succeed_on(processes, *arguments, **options):
    result = run_on(processes, *arguments, **options)
    assert result.code == 0, f"{processes} processes: {arguments}: {result!r}"
    return result


def one_error(result, code, *words):
    """The error line of one process, found in mpirun's own output."""
    assert result.code == code, f"expected exit {code}: {result!r}"
    lines = [line for line in result.err.splitlines() if "finetune: error:" in line]
    assert len(lines) == 1 and lines[0].startswith(PREFIX), result
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"
    assert result.out == "", f"stdout is not empty: {result!r}"
    return lines[0]


def ranks_of(output):
    """Processes of a job (rank: pid) by the path of their output, without short-lived children."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[0] != BINARY.encode() or str(output).encode() not in words:
                continue
            variables = (entry / "environ").read_bytes().split(b"\0")
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        rank = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        found[int(entry.name)] = int(rank[0].split(b"=")[1]) if rank else 0, int(parent)
    return {rank: process for process, (rank, parent) in found.items() if parent not in found}


def wait_for(condition, job, seconds=PATIENCE):
    """False if the job had ended before."""
    deadline = time.time() + seconds
    while not condition():
        if job.ended():
            return False
        assert time.time() < deadline, "it takes too long"
        time.sleep(0.002)
    return True


def nothing_left(output, seconds=PATIENCE):
    deadline = time.time() + seconds
    while ranks_of(output):
        assert time.time() < deadline, f"processes are left: {ranks_of(output)}"
        time.sleep(0.02)


def kill_rank(job, out, rank):
    """The job ends soon, one line names who died, and nothing is left. Returns that line."""
    os.kill(ranks_of(out)[rank], signal.SIGKILL)
    result = job.wait()
    assert result.code != 0, result
    nothing_left(out)
    errors = [line for line in result.err.splitlines() if "finetune: error:" in line]
    assert len(errors) == 1 and f"rank {rank} " in errors[0] and "died" in errors[0], result
    return errors[0]


def stop_one(job, out, rank, steps, seconds):
    """After this number of steps; the job has this --comm-timeout, ends in time, and one line names the process."""
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= steps, job), job.wait()
    os.kill(ranks_of(out)[rank], signal.SIGSTOP)
    start = time.time()
    result = job.wait()
    assert seconds - 0.5 < time.time() - start < PATIENCE, time.time() - start
    nothing_left(out)
    return one_error(result, 5, f"rank {rank} ", f"{seconds} s")


def kill_one(job, out, rank, steps):
    """After this number of training steps."""
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= steps, job), job.wait()
    error = kill_rank(job, out, rank)
    assert error.endswith("; --resume continues from the newest whole checkpoint"), error


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def results_of(out):
    """Results that must not depend on processes, hosts, threads or interruptions."""
    out = Path(out)
    timeless = {name: value for name, value in metrics_of(out).items()
                if not name.endswith(("_per_second", "runtime", "memory_mb", "startup_seconds", "_bytes", "_bubble"))}
    files = {path.name: path.read_bytes() for path in out.iterdir()
             if path.name.startswith(("predictions", "nbest", "null_odds", "confusion", "per_class"))}
    files["model"] = (out / "model/model.safetensors").read_bytes()
    return facts_of(out)["weights_sha256"], timeless, steps_in(out), files


def steps_in(out):
    import json
    steps = []
    for line in (out / "metrics.jsonl").read_text().splitlines():
        steps.append({name: value for name, value in json.loads(line).items()
                      if not name.endswith(("_per_second", "runtime"))})
    return steps


def same_results(out, expected):
    found = results_of(out)
    for name, a, b in zip(("weights_sha256", "metrics", "steps"), found, expected):
        assert a == b, f"{out}: {name}: {a} instead of {b}"
    assert found[3].keys() == expected[3].keys(), (out, found[3].keys(), expected[3].keys())
    for name, content in found[3].items():
        assert content == expected[3][name], f"{out}: {name} differs"


def same_on(directory, line, *cases, env=None, check=lambda out: None):
    """Each case: processes, hosts, perhaps their environment, further options; all give the results of one process.

    `check` looks at the directory of each case. Returns the directory of the one process.
    """
    directory.mkdir(parents=True, exist_ok=True)
    expected = Path(tempfile.mkdtemp(dir=directory)) / "one"
    succeed(*line, "--output", expected)
    for number, (processes, hosts, *more) in enumerate(cases):
        out = expected.with_name(f"case-{number}")
        own = more.pop(0) if more and isinstance(more[0], dict) else env
        if processes == 1:
            succeed(*line, "--output", out, *more, env=own)
        else:
            succeed_on(processes, *line, "--output", out, *more, hosts=hosts, env=own)
            facts = facts_of(out)
            assert (facts["processes"], facts["hosts"]) == (str(processes), str(hosts)), facts
        same_results(out, results_of(expected))
        check(out)
        shutil.rmtree(out)
    return expected


def cut_back(out, step):
    """The run's state after `step`."""
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    for checkpoint in (out / "checkpoints").iterdir():
        if checkpoint.name > f"step-{step:08}.h5":
            checkpoint.unlink()
    assert (out / "checkpoints" / f"step-{step:08}.h5").exists()
