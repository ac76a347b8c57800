"""A soak's measurements per round, their trends, and the section of the report."""
import datetime
import os
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "plots"))
import csv_files  # noqa: E402

ALLOWED = 0.01  # relative change in memory
LEAST_ROUNDS = 9  # for a trend
WARM_UP = 0.1  # share of the rounds that is ignored


@dataclass
class Series:
    """One number per round. Memory may change by 1 % from the first third to the last, other numbers not at all."""
    name: str
    memory: bool
    values: list = field(default_factory=list)

    def thirds(self):
        """Of the first and last third after a warm-up: medians of memory; of other numbers the minimum."""
        settled = self.values[int(len(self.values) * WARM_UP):]
        third = max(1, len(settled) // 3)
        of_third = statistics.median if self.memory else min
        return of_third(settled[:third]), of_third(settled[-third:])

    def change(self):
        first, last = self.thirds()
        return (last - first) / first if first else float(last - first)

    def is_flat(self):
        if len(self.values) < LEAST_ROUNDS:
            return True
        if not self.memory:
            return self.change() <= 0
        return abs(self.change()) <= ALLOWED

    def row(self):
        first, last = self.thirds()
        if not self.memory:
            return f"| {self.name} | {first:.0f} | {last:.0f} | {max(self.values)} at most |"
        change = f"{100 * self.change():+.2f} %" if len(self.values) >= LEAST_ROUNDS else "too few rounds"
        return f"| {self.name} | {first / 1024:.1f} MiB | {last / 1024:.1f} MiB | {change} |"


    def record(self):
        """Its row of soak.csv."""
        first, last = self.thirds()
        if not self.memory:
            return {
                "what": self.name, "first third": f"{first:.0f}", "last third": f"{last:.0f}",
                "at most": max(self.values)
            }
        change = f"{100 * self.change():+.2f}" if len(self.values) >= LEAST_ROUNDS else ""
        return {
            "what": self.name, "unit": "MiB", "first third": f"{first / 1024:.1f}", "last third": f"{last / 1024:.1f}",
            "change, %": change
        }


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def section(summary, series):
    """The text for a terminal. `summary`: a sentence of counts."""
    table = ["| what | first third | last third | change |", "|---|---:|---:|---:|", *(s.row() for s in series)]
    return "\n".join([summary, "", *table])


def write_report(folder, summary, series):
    """soak.csv, and a row in runs.csv."""
    if not folder.is_dir():
        raise SystemExit(f"soak: error: {folder} is not a folder; docs/reliability is the one for --report")
    columns = dict.fromkeys(("what", "unit", "first third", "last third", "change, %", "at most"), "")
    csv_files.write(folder / "soak.csv", [columns | s.record() for s in series])
    where = f"{machine()} (load {os.getloadavg()[1]:.0f} at the end)"
    csv_files.update(folder / "runs.csv", [{
        "kind": "soak", "machine": where, "date": datetime.date.today(), "commit": commit(),
        "summary": f"One command at a time with one thread a process. {summary}"}], ("kind",))
