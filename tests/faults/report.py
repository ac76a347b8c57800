"""The table of a walk over faults, from what walk() has counted: printed, or written into a folder.

report.py COUNTS [FOLDER]      FOLDER gets faults.csv, and a row in its runs.csv
"""
import json
import platform
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "plots"))
import csv_files  # noqa: E402

CODES = ("exit 0", "exit 3", "exit 4", "exit 5", "killed")
BAD = ("silent difference", "damaged file", "hang")
TITLES = ("calls", "walked", "exit 0", "3", "4", "5", "killed", "silent differences", "damaged files", "hangs", "other mistakes")
CHANGES = "open,write,close,sync,rename,truncate,mkdir,unlink"


def numbers(endings, of):
    """Rows in the order of TITLES. A call that was not reached, because threads changed their order, counts as passed."""
    rest = {**endings}
    rest["exit 0"] = rest.get("exit 0", 0) + rest.pop("not reached", 0)
    known = [rest.pop(name, 0) for name in (*CODES, *BAD)]
    return [of, sum(known) + sum(rest.values()), *known, sum(rest.values())]


def row(cells, values):
    return "| " + " | ".join([*cells, *(f"{value:,}" for value in values)]) + " |"


def total(lists):
    return [sum(values) for values in zip(*lists)]


def counted(lines):
    """The numbers of each walk, by command, calls and error."""
    found = {}
    for line in lines:
        key = line["command"], line["calls"].replace(CHANGES, "any but reads"), line["error"]
        values = numbers(line["endings"], line.get("of", sum(line["endings"].values())))
        if key not in found or values[1] >= found[key][1]:  # of a part that was done again the larger, or the later
            found[key] = values
    return found


def table(found):
    head = "| command | call | error | " + " | ".join(TITLES) + " |"
    out = [head, "|---|---|---|" + "---:|" * len(TITLES)]
    for command in dict.fromkeys(key[0] for key in found):
        own = {key: values for key, values in found.items() if key[0] == command}
        out += [row(key, values) for key, values in own.items()]
        out.append(row((f"**{command}**", "", "all"), total(own.values())))
    out.append(row(("**all**", "", ""), total(found.values())))
    return "\n".join(out)


def machine():
    names = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    commit = subprocess.run(["git", "log", "-1", "--format=%h, %cs"], capture_output=True, text=True).stdout.strip()
    commit, _, date = commit.partition(", ")
    return {"kind": "faults", "machine": f"{names[0]}, {len(names)} cores, Linux {platform.release().split('-')[0]}",
            "date": date, "commit": commit}


def main(counts, folder=None):
    found = counted(json.loads(line) for line in Path(counts).read_text().splitlines())
    if folder is None:
        print(table(found))
        return
    names = [f"exit {title}" if title.isdigit() else title for title in TITLES]
    csv_files.write(
        Path(folder) / "faults.csv",
        [dict(zip(("command", "call", "error"), key)) | dict(zip(names, values)) for key, values in found.items()])
    csv_files.update(Path(folder) / "runs.csv", [machine()], ("kind",))


main(*sys.argv[1:])
