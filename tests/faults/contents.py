"""What a command has written, such that equal runs give equal values: without times, rates and paths of their own."""
import csv
import io
import json

from checkpoint_content import checkpoint_content

TIMES = ("_per_second", "runtime", "memory_mb", "startup_seconds")
APPENDED = ("log.txt", "metrics.jsonl", "metrics.csv", "evaluations.csv")  # a line at a time, while a run goes on


def contents(here, outputs):
    """Of each file of these files and directories its content, by its path from `here`."""
    found = {}
    for output in outputs:
        top = here / output
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            if path.is_file() and ".tmp." not in str(path.relative_to(here)):
                found[str(path.relative_to(here))] = content(path, here)
    return found


def temporaries(here):
    return [str(path.relative_to(here)) for path in here.rglob("*") if ".tmp." in path.name or ".old." in path.name]


def content(path, here):
    """Bytes, or the lines of what is appended to."""
    if path.parent.name == "checkpoints":
        return checkpoint_content(path)
    data = path.read_bytes().replace(str(here).encode(), b"HERE")
    if path.name == "metrics.json":
        return timeless(json.loads(data))
    if path.name in APPENDED:
        return appended(path.name, data.decode())
    return data


def timeless(values):
    return tuple((name, value) for name, value in values.items() if not name.endswith(TIMES))


def appended(name, text):
    """Its whole lines: the last one may be cut where the process was."""
    lines = text[:text.rfind("\n") + 1]
    if name.endswith(".jsonl"):
        return tuple(timeless(json.loads(line)) for line in lines.splitlines())
    if name.endswith(".csv"):
        return tuple(timeless(row) for row in csv.DictReader(io.StringIO(lines)))
    return tuple(without_times(line) for line in lines.splitlines())


def without_times(line):
    """Of the log: the time before it, and what follows rates and times."""
    line = line.split(" ", 1)[1]
    if line.startswith("step "):
        return line.split("  ")[:3]
    return line.split()[0] if line.split()[0].endswith(TIMES) else line


def printed(text):
    """Standard output's metrics."""
    return [line for line in text.splitlines() if not line.split()[0].endswith(TIMES)]
