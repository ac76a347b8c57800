"""The contents that a command wrote, without times, rates and its path: equal for equal runs."""
import csv
import io
import json
import struct
import sys
from pathlib import Path

from checkpoint_content import checkpoint_content
from faults import Wrong

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli/experiments"))
from event_files import events  # noqa: E402

TIMES = ("_per_second", "runtime", "memory_mb", "startup_seconds", "_bytes", "_bubble")
APPENDED = ("log.txt", "metrics.jsonl", "metrics.csv", "evaluations.csv")  # a line at a time, while a run goes on
EVENTS = "run/events.out.tfevents"


def contents(here, outputs):
    """The contents of these files and directories by path relative to `here`. Wrong: a file is damaged."""
    found = {}
    for output in outputs:
        top = here / output
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            name = str(path.relative_to(here))
            if not path.is_file() or ".tmp." in name:
                continue
            try:
                if ".tfevents." in name:  # a run that goes on begins a new one
                    found.setdefault(EVENTS, {}).update(curves(path))
                else:
                    found[name] = content(path, here)
            except (AssertionError, ValueError, KeyError, struct.error) as error:
                raise Wrong("damaged file", f"{name}: {error}") from None
    return found


def curves(path):
    """Numbers by step; a truncated last record, where the process was killed, is ignored."""
    try:
        for _, step, what in events(path):
            if isinstance(what, dict):
                yield from (((step, tag), value) for tag, value in what.items() if not tag.endswith(TIMES))
    except (struct.error, AssertionError, IndexError):
        return


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
    """Whole lines; the last one may be truncated by a kill."""
    lines = text[:text.rfind("\n") + 1]
    if name.endswith(".jsonl"):
        return tuple(timeless(json.loads(line)) for line in lines.splitlines())
    if name.endswith(".csv"):
        return tuple(timeless(row) for row in csv.DictReader(io.StringIO(lines)))
    return tuple(without_times(line) for line in lines.splitlines())


def without_times(line):
    """Log lines without the leading time, rates and times."""
    words = line.split()[1:]
    if words[0] == "step":  # up to the loss
        return tuple(words[:6])
    if words[0] == "n-gram":  # up to its seconds and memory
        return tuple(words[:words.index("in")]) if "in" in words else ("n-gram", "cut")
    return words[0] if words[0].endswith(TIMES) else tuple(words)


def printed(text):
    """Standard output's metrics."""
    return [line.split() for line in text.splitlines() if line and not line.split()[0].endswith(TIMES)]
