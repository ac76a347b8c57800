"""What a soak measures each round, whether it grows, and the section of the report."""
import datetime
import os
import re
import statistics
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
ALLOWED = 0.01  # of change in memory
LEAST_ROUNDS = 9  # for a trend
WARM_UP = 0.1  # share of the rounds that are not looked at


@dataclass
class Series:
    """A number each round. Memory may change by 1 % from the first third to the last, all else not at all."""
    name: str
    memory: bool
    values: list = field(default_factory=list)

    def thirds(self):
        """Of the first and the last third, after a warm-up: medians of memory, else what is always there."""
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


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{model[1] if model else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


def commit():
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          cwd=Path(__file__).parent)
    return done.stdout.strip() or "unknown"


def section(summary, series):
    """`summary`: a sentence of counts."""
    where = (f"On {machine()} (load {os.getloadavg()[1]:.0f} at the end), one command at a time with one thread a "
             f"process; {datetime.date.today()}, commit {commit()}. {summary}")
    table = ["| what | first third | last third | change |", "|---|---:|---:|---:|", *(s.row() for s in series)]
    return "\n".join([BEGIN, where, "", *table, END])


def write_report(path, text):
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    if BEGIN not in page or END not in page:
        raise SystemExit(f"soak: error: {path} has no lines {BEGIN} and {END}")
    path.write_text(page[:page.index(BEGIN)] + text + page[page.index(END) + len(END):], encoding="utf-8")
