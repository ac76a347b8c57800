#!/usr/bin/env python3
"""Measures layouts of BERT-large with `finetune bench layout`: tables in docs/layouts.md.

    scripts/bench/layouts.py [FINETUNE]

FINETUNE is the program (default: build/finetune). Needs mpirun and 7 GB of memory; takes some minutes. Measures
memory, bytes and processor time, none of which depends on the number of cores.
"""
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/layouts.md"
RUN = ["--shape", "large", "--length", 128, "--batch-size", 8, "--precision", "fp32", "--threads", 1, "--steps", 2]
LAYOUTS = [(1, []), (1, ["--recompute"]), (2, []), (2, ["--pp", 2]), (2, ["--pp", 2, "--recompute"]), (2, ["--tp", 2]),
           (2, ["--tp", 2, "--recompute"]), (4, ["--pp", 4]), (4, ["--pp", 2, "--tp", 2]), (4, ["--tp", 4])]
STEP = ["--shape", "base", "--lengths", 128, "--batch-size", 8, "--clock", "cpu", "--threads", 1, "--steps", 3]
SHARDS, ROUNDS = (1, 2, 4), 3


def measured(program, processes, words):
    launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", processes] if processes > 1 else []
    if launcher and os.geteuid() == 0:
        launcher.insert(1, "--allow-run-as-root")
    done = subprocess.run(list(map(str, [*launcher, program, "bench", *words, "--json"])), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"layouts: {done.stderr.strip()}")
    return json.loads(done.stdout)


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in lines)


def mib(count):
    return f"{count / 2**20:,.0f}"


def axes(found):
    """Returns the counted MB of a step by axis, and the formula's number where it differs."""
    words = []
    for axis, name in (("dp", "data"), ("pp", "pipeline"), ("tp", "tensor")):
        if found[axis] > 1:
            counted, formula = found[f"{axis}_bytes"], found[f"{axis}_bytes_formula"]
            words.append(f"{name} {counted / 1e6:,.1f}{'' if counted == formula else f' (formula {formula / 1e6:,.1f})'}")
    return ", ".join(words) or "-"


def layouts_table(program):
    rows = []
    for processes, more in LAYOUTS:
        found = measured(program, processes, ["layout", *RUN, *more])
        most = max(found["processes"], key=lambda each: each["measured_bytes"])
        worst = max((each["difference"] for each in found["processes"]), key=abs)
        bubble = "-"
        if found["pp"] > 1:
            bubble = f"{100 * found['recorded_bubble']:.1f} ({100 * found['formula_bubble']:.1f})"
        words = f"{found['dp']} x {found['pp']} x {found['tp']}" + (", `--recompute`" if found["recompute"] else "")
        rows.append([words, mib(most["measured_bytes"]), mib(most["forecast_bytes"]), f"{100 * worst:+.1f}",
                     mib(sum(each["measured_bytes"] for each in found["processes"])), axes(found), bubble])
    return table(["dp x pp x tp", "most of a process, MiB (PSS)", "forecast", "difference, %", "all processes, MiB",
                  "MB handed on in a step", "bubble, % (formula)"], rows)


def shards_table(program):
    """Compares one process's processor time with V tensor shards to that with one shard, in alternating rounds."""
    rows = []
    for precision in ("fp32", "bf16"):
        seconds = {shards: [] for shards in SHARDS}
        for _ in range(ROUNDS):
            for shards in SHARDS:
                found = measured(program, 1, ["step", *STEP, "--precision", precision, "--tensor-shards", shards])
                seconds[shards].append(found["step_seconds_median"])
        least = {shards: statistics.median(each) for shards, each in seconds.items()}
        rows.append([precision, *(f"{100 * (least[shards] / least[1] - 1):+.1f} %" for shards in SHARDS[1:])])
    return table(["precision", *(f"V = {shards}" for shards in SHARDS[1:])], rows)


def machine():
    """Describes the machine: the processor's name and cores from lscpu, and the memory."""
    words = dict(line.split(":", 1) for line in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines()
                 if ":" in line)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found = {name: words.get(name, "unknown").strip() for name in ("Model name", "CPU family", "Model", "CPU(s)")}
    return (f"Measured by `scripts/bench/layouts.py` on: {found['Model name']} (family {found['CPU family']}, model "
            f"{found['Model']}), {found['CPU(s)']} cores,\n{memory:.0f} GiB, Linux {platform.release().split('-')[0]}.")


def replace(text, name, content):
    begin, end = f"<!-- begin scripts/bench/layouts.py {name} -->", f"<!-- end scripts/bench/layouts.py {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"layouts: {DOCUMENT}: no place for {name}")
    return re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: f"{begin}\n{content}\n{end}", text, flags=re.S)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/finetune")
    layouts = f"{machine()}\n\n{layouts_table(program)}"
    shards = shards_table(program)
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(replace(replace(text, "layouts", layouts), "shards", shards))


if __name__ == "__main__":
    main()
