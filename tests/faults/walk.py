"""One command and one fault: what is there before and after, and when it is done again."""
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
LONGEST = 1000  # bytes of an error's line
SECONDS = 300
REASONS = {"EIO": "Input/output error", "ENOSPC": "No space left on device", "ENOMEM": "Cannot allocate memory",
           "EMFILE": "Too many open files"}
TOLD = ("write", "pwrite", "close", "fsync", "rename", "mkdir", "ftruncate")  # whose reason is in the message


class Undisturbed:
    """A command without faults: what it leaves, and how many calls it makes."""

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
        """What it calls below the root."""
        return self.calls_of(Fault("all", f"{self.root}/"))

    def before_end(self):
        """Files that it removes in its end."""
        here = self.new_directory("before its end")
        killed = self.run(here, Fault("unlink", f"{here}/{self.command.removes}", "kill", nth=1))
        assert killed.code == -signal.SIGKILL, killed
        return {name: value for name, value in contents(here, self.command.outputs).items() if name not in self.expected}

    def input_names(self):
        return [path.name for path in self.root.iterdir() if not path.name.startswith("run-") and path.name != "tmp"]

    def new_directory(self, what):
        """Of a name that is as long as any other's: the options in a checkpoint have it."""
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
        """How many of these families it makes on such paths below the root."""
        return sum(call.family() in families.split(",") and path in call.path for call in calls or self.calls)

    def examine(self, fault):
        """How the command ended; Wrong if it left what it should not."""
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
        if result.code not in CODES:
            raise Wrong("exit code", f"{result!r}")
        return f"exit {result.code}"

    def is_as_expected(self, here, found, result):
        other = differences(found, self.expected)
        if other == {"run/log.txt"} and any(line[-1] == "refused" for line in found["run/log.txt"] if line):
            other = set()  # a checkpoint that could not be read: it says so, and goes on from before
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
        """All but warnings and the log, where there is one."""
        lines = without_warnings(result.err)
        return lines[-1:] if without_warnings(self.clean.err) and result.err.count("finetune: error") == 1 else lines

    def is_old_or_new(self, found):
        """Each file is that of the earlier command or of this one; a directory is all of one of them."""
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

    # What a run that goes on writes anew.
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
        # A finished run is left as it is, with the checkpoints that it said it could not remove.
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
    """What cannot be removed since that fails, too; a command that ends well says so."""
    if result.code != 0:
        return fault.times == 0
    return all(any(name.split("/")[-1] in line for line in result.err.splitlines()) for name in left)


def told_clearly(result, lines, calls):
    """One line that names the file, or its directory, and the system's reason."""
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
    """Or the path is that of a nameless file."""
    parts = [part.split(".tmp.")[0] for part in path.split("/")]
    return any(part in line for part in parts[-2:]) or path.endswith(" (deleted)")
