"""One command with one fault: files before, after, and after repeating the command."""
import hashlib
import os
import shutil
import signal
import subprocess
from functools import cached_property

from contents import APPENDED, EVENTS, contents, printed, temporaries
from faults import Fault, Wrong, calls_in
from harness import run

CODES = (0, 3, 4, 5)  # of a system that fails; whatever the usage says is right
LIMITED = (0, 5)  # of a system whose limit of open files is reached
LONGEST = 1000  # bytes of an error line
SECONDS = 300
REASONS = {"EIO": "Input/output error", "ENOSPC": "No space left on device", "ENOMEM": "Cannot allocate memory",
           "EMFILE": "Too many open files"}
# calls whose failure reason must be in the message
TOLD = ("write", "pwrite", "close", "fsync", "rename", "mkdir", "ftruncate")


class Undisturbed:
    """The command without faults: its files and its number of calls."""

    def __init__(self, root, command):
        command.setup(root)
        self.root, self.command = root, command
        self.inputs = contents(root, self.input_names())
        here = self.new_directory("undisturbed")
        self.earlier = contents(here, command.outputs)
        self.clean = self.run(here)
        assert self.clean.code == 0, self.clean
        self.expected = contents(here, command.outputs)
        assert self.expected and self.expected != self.earlier and not temporaries(here)
        self.on_the_way = self.before_end() if command.removes else {}

    @cached_property
    def calls(self):
        """Its calls below the root."""
        return self.calls_of(Fault("all", f"{self.root}/"))

    def before_end(self):
        """The files that it removes at its end."""
        here = self.new_directory("before its end")
        killed = self.run(here, Fault("unlink", f"{here}/{self.command.removes}", "kill", nth=1))
        assert killed.code == -signal.SIGKILL, killed
        return {name: value for name, value in contents(here, self.command.outputs).items() if name not in self.expected}

    def input_names(self):
        return [path.name for path in self.root.iterdir() if not path.name.startswith("run-") and path.name != "tmp"]

    def new_directory(self, what):
        """A name as long as any other's, because the options in a checkpoint contain it."""
        name = f"{self.command.name} {what}"
        here = self.root / f"run-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        here.mkdir()
        self.command.before(here)
        return here

    def run(self, here, fault=None, more=()):
        env = {"TMPDIR": str(self.root / "tmp"), **(fault.environment(f"{here}.calls") if fault else {})}
        return run(*self.command.line, *more, cwd=here, env=env, timeout=SECONDS)

    def calls_of(self, fault):
        here = self.new_directory(f"count {fault} {fault.path}")
        result = self.run(here, fault)
        assert result.code == 0, result
        return calls_in(f"{here}.calls")

    def count(self, families, path="", calls=None):
        """The number of its calls of these families on such paths below the root."""
        return sum(call.family() in families.split(",") and path in call.path for call in calls or self.calls)

    def examine(self, fault):
        """Returns how the command ended; raises Wrong if it left wrong files."""
        here = self.new_directory(str(fault))
        try:
            result = self.run(here, fault)
        except subprocess.TimeoutExpired:
            raise Wrong("hang", f"no end after {SECONDS} s") from None
        failed = [call for call in calls_in(f"{here}.calls") if call.fault]
        ending = self.ending(result, fault)
        found = contents(here, self.command.outputs)
        if result.code == 0:
            self.is_as_expected(here, found, result)
        else:
            self.is_old_or_new(found)
        if result.code != 0:
            self.is_told(result, failed, fault)
        left = temporaries(here)
        if left and ending != "killed" and not may_leave(fault, left, result):
            raise Wrong("temporary file", f"exit {result.code}: {failed[0]}: {left}")
        if result.code != 0 or temporaries(here):
            self.do_again(here)
        shutil.rmtree(here)
        return ending if failed else "not reached"

    def ending(self, result, fault):
        if result.code == -signal.SIGKILL and fault.kind in ("kill", "torn"):
            return "killed"
        if result.code not in (LIMITED if fault.kind == "EMFILE" else CODES):
            raise Wrong("exit code", f"{result!r}")
        return f"exit {result.code}"

    def is_as_expected(self, here, found, result):
        other = differences(found, self.expected)
        if other == {"run/log.txt"} and any(line[-1] == "refused" for line in found["run/log.txt"] if line):
            other = set()  # an unreadable checkpoint: it says so and resumes from an earlier one
        if other:
            raise Wrong("silent difference", f"exit 0, and other: {sorted(other)}; told {result.err}")
        if "finetune: error" in result.err or (self.error_lines(result) and not without_warnings(self.clean.err)):
            raise Wrong("unclear message", f"exit 0: {result!r}")
        if printed(result.out) != printed(self.clean.out):
            raise Wrong("silent difference", f"exit 0, printed {result.out}")

    def is_told(self, result, failed, fault):
        if self.ending(result, fault) != "killed":
            told_clearly(result, self.error_lines(result), failed)

    def error_lines(self, result):
        """Everything except warnings and the log."""
        lines = without_warnings(result.err)
        return lines[-1:] if without_warnings(self.clean.err) and result.err.count("finetune: error") == 1 else lines

    def is_old_or_new(self, found):
        """Each file is the earlier command's or this one's; a directory is entirely one or the other."""
        right = (self.expected, self.earlier, self.on_the_way)
        bad = [name for name, value in found.items()
               if value not in [of.get(name) for of in right] and not self.is_beginning(name, value)]
        gone = [name for name in self.earlier if name not in found and name not in self.may_go]
        if bad or gone:
            raise Wrong("damaged file", f"neither old nor new: {bad}; gone: {gone}")
        for top in {name.rsplit("/", 1)[0] for name in found if name.startswith(("out/", "run/model/"))}:
            here, new, old = (of_directory(all_of, top) for all_of in (found, self.expected, self.earlier))
            if here not in (new, old):
                raise Wrong("damaged file", f"{top} is partly old and partly new")

    # Files that a resumed run writes again.
    may_go = ("run/metrics.csv", "run/evaluations.csv")

    def is_beginning(self, name, value):
        if name == EVENTS:
            return value.items() <= self.expected.get(name, {}).items()
        if os.path.basename(name) not in APPENDED:
            return False
        if name.endswith("log.txt"):
            return True
        return value == self.expected.get(name, ())[:len(value)]

    def do_again(self, here):
        again = self.run(here, more=self.command.again)
        if again.code != 0:
            raise Wrong("cannot go on", f"{again!r}")
        found = contents(here, self.command.outputs)
        # A finished run is unchanged, with checkpoints that it reported it could not remove.
        other = {name for name in differences(found, self.expected)
                 if not name.endswith("log.txt") and (name not in found or found[name] != self.on_the_way.get(name))}
        if other or temporaries(here):
            raise Wrong("cannot go on", f"other: {sorted(other)}; left: {temporaries(here)}")

    def inputs_are_as_before(self):
        other = differences(contents(self.root, self.input_names()), self.inputs)
        assert not other, f"inputs have changed: {other}"
        left = list((self.root / "tmp").iterdir())
        assert not left, left


def without_warnings(text):
    return [line for line in text.splitlines() if not line.startswith("warning: ")]


def differences(found, expected):
    return {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)}


def of_directory(found, top):
    return {name: value for name, value in found.items() if name.startswith(top + "/")}


def may_leave(fault, left, result):
    """Files whose removal failed too; a command that succeeds reports them."""
    if result.code != 0:
        return fault.times == 0
    return all(any(name.split("/")[-1] in line for line in result.err.splitlines()) for name in left)


def told_clearly(result, lines, calls):
    """One line with the file, or its directory, and the system's reason."""
    call = calls[0]
    problem = ""
    if len(lines) != 1 or not lines[0].startswith("finetune: error: "):
        problem = "not one line"
    elif len(lines[0].encode()) > LONGEST or ".tmp." in lines[0]:
        problem = "too long, or of a temporary file"
    elif result.out:
        problem = f"printed {result.out}"
    elif not any(names(lines[0], call.path) for call in calls):
        problem = "names no part of the path"
    elif call.function.startswith(TOLD) and REASONS.get(call.fault, "") not in lines[0]:
        problem = f"without the reason, {call.fault}"
    if problem:
        raise Wrong("unclear message", f"{problem}: {call.function} {call.path}: {result!r}")


def names(line, path):
    """Or the path is an unnamed file's."""
    parts = [part.split(".tmp.")[0] for part in path.split("/")]
    return any(part in line for part in parts[-2:]) or path.endswith(" (deleted)")
