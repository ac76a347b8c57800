"""Faults in the C library's calls of a command (fail_call.c): count, fail the n-th, walk over all.

FINETUNE_FAULTS=0 in the environment (scripts/faults.sh) makes a walk whole, N > 0 takes up to N calls of each; else it
is a sample, the same each time.
"""
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from harness import Skip  # noqa: E402

MODULE = os.path.abspath(os.environ.get("FINETUNE_FAIL_CALL", "build/tests/faults/fail_call.so"))
WHOLE = bool(os.environ.get("FINETUNE_FAULTS"))
MOST = int(os.environ.get("FINETUNE_FAULTS") or 0) or 10**6  # of a whole walk; "0" or none: all


FAMILIES = {"open": ("open", "creat", "fopen", "memfd_create"), "read": ("read", "pread", "fread"),
            "write": ("write", "pwrite", "fflush", "sendfile", "copy_file_range"), "close": ("close", "fclose"),
            "sync": ("fsync", "fdatasync"), "rename": ("rename",), "mmap": ("mmap",),
            "truncate": ("ftruncate", "truncate", "fallocate", "posix_fallocate"), "mkdir": ("mkdir",),
            "unlink": ("unlink", "rmdir", "remove"), "chmod": ("fchmod",)}


class Wrong(Exception):
    """A command with a fault did not end as it should: one of a few kinds, with details."""

    def __init__(self, kind, details):
        super().__init__(f"{kind}: {details}")
        self.kind = kind


def need_module():
    if not os.path.exists(MODULE):
        raise Skip(f"{MODULE} is absent")


@dataclass(frozen=True)
class Fault:
    """A call of some families on paths that contain `path`: the n-th, and `times` calls in a row (0: all)."""
    calls: str
    path: str = ""
    kind: str = "EIO"
    nth: int = 0  # 0: calls are only counted
    times: int = 1
    only: str = ""  # NAME=VALUE of the processes that it is for

    def __str__(self):
        return f"{self.name()} in {self.calls} {self.nth}" + (f" where {self.only}" if self.only else "")

    def name(self):
        return self.kind + ("" if self.times == 1 else " from then on")

    def environment(self, report):
        chosen = {"CALLS": self.calls, "PATH": self.path, "KIND": self.kind, "NTH": str(self.nth),
                  "TIMES": str(self.times), "ONLY": self.only, "REPORT": str(report)}
        return {"LD_PRELOAD": MODULE, **{f"FAULT_{name}": value for name, value in chosen.items()}}


@dataclass(frozen=True)
class Call:
    process: int
    number: int
    function: str
    path: str
    fault: str  # what was done to it; empty: nothing

    def family(self):
        return next(name for name, functions in FAMILIES.items() if self.function.startswith(functions))


def calls_in(report):
    """What the processes with this report did, in order."""
    calls = []
    for line in Path(report).read_text().splitlines() if Path(report).exists() else ():
        done, _, fault = line.partition(" -> ")
        process, number, function, path = done.split(" ", 3)
        calls.append(Call(int(process), int(number), function, path, fault))
    return calls


def each(fault, count, most):
    """The fault at every n up to `count`, or at `most` of them, spread from first to last."""
    if count <= most:
        chosen = range(1, count + 1)
    elif most == 0:
        chosen = []
    elif most == 1:
        chosen = [(count + 1) // 2]
    else:
        chosen = sorted({1 + i * (count - 1) // (most - 1) for i in range(most)})
    return [replace(fault, nth=n) for n in chosen]


def walk(examine, faults, command, of=None):
    """examine(fault) of each, several at a time; prints how they ended, and fails if one did not as it should.

    `of`: so many calls there are.
    """
    def ending(fault):
        try:
            return examine(fault), ""
        except Exception as error:
            kind = error.kind if isinstance(error, Wrong) else "wrong"
            return kind, f"{fault}: {error}"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        endings = list(pool.map(ending, faults))
    names = [name for name, _ in endings]
    counts = {name: names.count(name) for name in sorted(set(names))}
    what = f"{faults[0].name()} in {faults[0].calls}" if faults else "no such call"
    print(f"{command}, {what}: {len(faults)} faults:", ", ".join(f"{n} {name}" for name, n in counts.items()))
    if faults and os.environ.get("FINETUNE_FAULTS_COUNTS"):
        with open(os.environ["FINETUNE_FAULTS_COUNTS"], "a", encoding="utf-8") as out:
            out.write(json.dumps({"command": command, "calls": faults[0].calls, "error": faults[0].name(),
                                  "of": of or len(faults), "endings": counts}) + "\n")
    wrong = [message for _, message in endings if message]
    assert not wrong, f"{len(wrong)} of {len(faults)} end wrongly:\n" + "\n".join(wrong if WHOLE else wrong[:20])
    return names
