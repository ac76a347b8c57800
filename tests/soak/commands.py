"""Runs the soak's commands: peak memory, descriptors, kills at random moments, leftovers."""
import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))
from ranks import BINARY, MPIRUN, ranks_of  # noqa: E402

LONGEST = 400  # seconds that any command may take
GRACE = 50  # seconds until the processes of an ended command are gone
HANGING = 20  # seconds that mpirun may outlive all its processes
# Runs a command and writes its peak memory into a file. The kernel counts what the parent had at the fork, too: this one
# has little. Where libraries lie decides on some pages (7 % of an evaluation's): here they lie where they always do.
MEASURED = [sys.executable, "-S", "-E", "-c", """import os, sys
pid = os.fork()
if pid == 0:
    os.execvp("setarch", ["setarch", "--addr-no-randomize", *sys.argv[2:]])
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as out:
    out.write(str(usage.ru_maxrss))
code = os.waitstatus_to_exitcode(status)
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""]
SET_CHILD_SUBREAPER, NEW_MOUNTS, PRIVATE = 36, 0x20000, 0x44000  # of prctl, unshare and mount


class Finding(Exception):
    """A finding of the soak, in one or more lines."""


@dataclass
class Outcome:
    code: int
    seconds: float
    peak_kib: int  # of one process; 0 where there are several
    killed: bool
    text: str  # both outputs' end


def become_subreaper():
    """Orphaned processes become children of this one, so that none is overlooked."""
    ctypes.CDLL(None, use_errno=True).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_shared_memory():
    """A private /dev/shm if root allows it; otherwise others' files are recognised by their use."""
    library = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and library.unshare(NEW_MOUNTS) == 0:
        library.mount(b"none", b"/", None, ctypes.c_ulong(PRIVATE), None)
        library.mount(b"tmpfs", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"size=50%")


def status_of(process):
    """(state, parent) of a process; none if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def kill(process):
    """False if it was gone."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def descendants(root):
    """The processes below `root`, with their states (pid: state)."""
    known = {int(entry): status_of(entry) for entry in os.listdir("/proc") if entry.isdigit()}
    found, more = {}, {root}
    while more:
        more = {pid for pid, status in known.items() if status and status[1] in more and pid not in found}
        found.update({pid: known[pid][0] for pid in more})
    return found


def memory_and_descriptors(process):
    """Resident KiB, and the number of descriptors."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+)", text, re.MULTILINE)[1]), len(os.listdir(f"/proc/{process}/fd"))
    except (OSError, TypeError):
        raise Finding(f"the lasting process {process} has ended") from None


def shared_files():
    return {path.name for path in Path("/dev/shm").iterdir() if path.is_file()}


def used_files(names):
    """Files that a living process has open or mapped: another program's on this machine."""
    used = set()
    for process in filter(str.isdigit, os.listdir("/proc")):
        for read in (lambda: Path(f"/proc/{process}/maps").read_text(), lambda: " ".join(open_files(process))):
            try:
                text = read()
            except OSError:  # it has ended
                break
            used |= {name for name in names if f"/dev/shm/{name}" in text}
    return used


def open_files(process):
    for descriptor in os.listdir(f"/proc/{process}/fd"):
        try:
            yield os.readlink(f"/proc/{process}/fd/{descriptor}")
        except OSError:  # it is closed
            pass


class Commands:
    def __init__(self, work, generator: random.Random):
        self.work, self.generator = work, generator
        self.temporary = work / "tmp"
        self.temporary.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(self.temporary)}
        self.lasting = set()  # processes that must keep running
        self.shared_before = shared_files()
        self.count = self.jobs = self.kills = self.hangs = self.segments = 0

    def run(self, *words, output, processes=1, kill_after=None, stdin=None):
        """The command ends within LONGEST; `output` is one of its words, and identifies its processes."""
        log, peak = self.work / "command.log", self.work / "peak"
        peak.write_text("0")
        launcher = [*MPIRUN, "-n", str(processes)] if processes > 1 else [*MEASURED, str(peak)]
        line = [BINARY, *map(str, words)]
        self.count += 1
        self.jobs += processes > 1
        with open(log, "wb") as text, open(stdin or os.devnull, "rb") as source:
            process = subprocess.Popen([*launcher, *line], stdin=source, stdout=text, stderr=subprocess.STDOUT,
                                       env=self.environment, start_new_session=True)
            try:
                outcome = self.watch(process, output, processes, kill_after)
            except BaseException as error:
                for pid in [process.pid, *(pid for pid in descendants(os.getpid()) if pid not in self.lasting)]:
                    kill(pid)
                process.wait()
                self.forget()
                if isinstance(error, Finding):
                    raise Finding(f"{error}\n{' '.join(line)}:\n{log.read_text(errors='replace')[-3000:]}") from None
                raise
        outcome.peak_kib = int(peak.read_text())
        outcome.text = log.read_text(errors="replace")[-3000:]
        self.kills += outcome.killed
        self.nothing_runs(line)
        return outcome

    def watch(self, process, output, processes, kill_after):
        begun = seen = time.monotonic()
        killed, hung = None, False  # who was killed, whether mpirun does not end
        while process.poll() is None:
            now = time.monotonic()
            if not killed and kill_after is not None and now - begun >= kill_after:
                killed = self.kill_one(output)
            if killed and processes > 1 and not hung:
                seen = now if ranks_of(output) else seen
                hung = now - seen > HANGING  # Open MPI 4's mpirun can hang, and then ignores other signals
                if hung:
                    self.hangs += 1
                    kill(process.pid)
            if now - begun > LONGEST:
                raise Finding(f"it ran for more than {LONGEST} s, killed: {killed or 'none'}\n{self.states()}")
            time.sleep(0.005)
        if hung:
            self.forget()
        return Outcome(process.returncode, time.monotonic() - begun, 0, bool(killed), "")

    def states(self):
        """Details of the command's processes, to find out why it does not end."""
        lines = []
        for pid, state in descendants(os.getpid()).items():
            if pid in self.lasting:
                continue
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                waits = [Path(f"/proc/{pid}/task/{task}/wchan").read_text() for task in os.listdir(f"/proc/{pid}/task")]
            except OSError:
                continue
            lines.append(f"{pid} {state} {waits} {line}")
        return "\n".join(lines)

    def kill_one(self, output):
        """The rank and its process; none if there was none."""
        ranks = list(ranks_of(output).items())
        if not ranks:
            return None
        rank, process = self.generator.choice(ranks)
        return f"rank {rank}, process {process}" if kill(process) else None

    def nothing_runs(self, line):
        """Reaps adopted processes that have ended; all others must end by themselves."""
        deadline = time.monotonic() + GRACE
        while left := {p: s for p, s in descendants(os.getpid()).items() if p not in self.lasting}:
            for pid, state in left.items():
                if state == "Z" and (status_of(pid) or ("", 0))[1] == os.getpid():
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                raise Finding(f"processes are left (pid: state): {left}, by {' '.join(line)}")
            time.sleep(0.005)

    def left_in_shared_memory(self):
        """Files unused for so long that nobody is about to use them."""
        new = shared_files() - self.shared_before
        deadline = time.monotonic() + GRACE
        while new and time.monotonic() < deadline:
            time.sleep(0.2)
            new &= shared_files()
            new -= used_files(new)
        # Open MPI's own memory of a killed process, which mpirun usually removes.
        segments = {name for name in new if name.startswith("vader_segment.")} if self.kills else set()
        self.segments += len(segments)
        self.shared_before |= segments
        return sorted(new - segments)

    def left_files(self, outputs, apart=None):
        """Names in /dev/shm and $TMPDIR, and of unfinished outputs, except `apart`."""
        temporary = sorted(str(path.relative_to(self.temporary)) for path in self.temporary.rglob("*"))
        unfinished = sorted(str(path) for path in Path(outputs).rglob("*.tmp.*") if apart not in path.parents)
        return self.left_in_shared_memory(), temporary, unfinished

    def forget(self):
        """Reports each leftover once; none of an mpirun that this program killed."""
        self.shared_before |= shared_files()
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()
