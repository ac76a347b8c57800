#!/usr/bin/env python3
"""Turns the result files of gpu_day.sh into tables, and into rows of docs/benchmarks.

  gpu_day_tables.py OUT                                   prints them
  gpu_day_tables.py OUT --machine h200 --output docs/benchmarks
"""
import argparse
import datetime
import json
import re
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
for folder in ("bench", "plots"):
    sys.path.insert(0, str(PROJECT / "scripts" / folder))
import csv_files  # noqa: E402
import gpu_model  # noqa: E402

GPU_MEMORY = re.compile(r"all computed with (\d+) MiB of the GPU's memory")
PHASE = re.compile(r"^finetune: time ([\d.]+) s, (\d+) MiB: (.*)$", re.MULTILINE)
# Switches of gpu_day.sh, and gpu_model.py's name of the change that each turns off. Other switches turn one on.
CHANGE_OF = {"FINETUNE_CUDA_GRAPHS=0": "graphs", "FINETUNE_CUDA_ATTENTION=cudnn": "own attention",
             "FINETUNE_CUDA_KEPT=0": "kept", "FINETUNE_CUDA_STREAMS=1": "streams", "FINETUNE_CUDA_NORM=0": "norm",
             "FINETUNE_CUDA_MASKS=0": "masks"}
MADE_BY = {"FINETUNE_CUDA_ALGORITHMS=timed": "algorithms", "FINETUNE_CUDA_LAUNCHES=programmatic": "launches"}


def results_of(out, step, failed=False):
    """Returns a step's measurements, including failed ones if `failed`. Omits a line that a time limit cut off."""
    results = []
    for path in sorted(out.glob(f"[0-9][0-9]-{step}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                results.append(json.loads(line))
            except ValueError:
                continue
    return [each for each in results if failed or each["status"] == 0]


def step_ms(result):
    return 1e3 * result["result"]["batch_size"] / result["result"]["samples_per_second"]


def title(work):
    return gpu_model.TITLES.get(work, work)


def step_rows(out):
    """Returns rows on steps with the default settings: the best of a work's runs, and their spread."""
    by_work = {}
    for each in results_of(out, "train"):
        if not each["switches"]:
            by_work.setdefault(each["case"], []).append(each["result"])
    rows = []
    for work, runs in by_work.items():
        best = max(runs, key=lambda run: run["samples_per_second"])
        rates = [run["samples_per_second"] for run in runs]
        peak = best.get("matmul_peak_flops_per_second")
        rows.append({"work": title(work), "backend": best["backend"], "samples/s": f"{max(rates):.1f}",
                     "TFLOP/s": f"{best['flops_per_second'] / 1e12:.1f}",
                     "share of large matrix products, %": f"{100 * best['flops_per_second'] / peak:.1f}" if peak else "",
                     "memory of the GPU, MiB": f"{best.get('device_peak_memory_mb', 0):.0f}",
                     "spread, %": f"{100 * (max(rates) / min(rates) - 1):.1f}"})
    return rows


def change_rows(out):
    """Returns rows on what each change saves: a run with one switch beside the fastest run without switches."""
    measured = results_of(out, "train") + results_of(out, "switches")
    rows = []
    for each in measured:
        change = CHANGE_OF.get(each["switches"]) or MADE_BY.get(each["switches"])
        plain = [step_ms(other) for other in measured if other["case"] == each["case"] and not other["switches"]]
        if change and plain:
            made, left = min(plain), step_ms(each)
            if each["switches"] in MADE_BY:
                made, left = left, made
            rows.append({"work": each["case"], "change": change, "with, ms": f"{made:.3f}",
                         "without, ms": f"{left:.3f}", "saved, ms": f"{left - made:.3f}"})
    return list({(row["work"], row["change"]): row for row in rows}.values())


def loop_seconds(phases):
    """Returns the seconds from loaded weights to results: all of the data, without the start."""
    times = dict((name, seconds) for seconds, _, name in phases)
    if "weights in place" not in times or "results written" not in times:
        return None
    return times["results written"] - times["weights in place"]


def process_rows(out):
    """Returns rows on whole processes and on their loops over the data, for finetune and PyTorch."""
    rows, texts = [], [path.read_text(encoding="utf-8", errors="replace")
                       for path in sorted(out.glob("[0-9][0-9]-infer.txt"))]
    found = [(float(seconds), int(memory), name) for text in texts for seconds, memory, name in PHASE.findall(text)]
    commands = []  # the phases of each command
    for phase in found:
        if phase[2] == "program started" or not commands:
            commands.append([])
        commands[-1].append(phase)
    for each, phases in zip(results_of(out, "infer", failed=True), commands):
        if each["status"] != 0:
            continue
        loop = loop_seconds(phases)
        switches = each["switches"].replace("FINETUNE_TIMES=1", "").strip()
        rows.append({"work": each["case"], "side": " ".join(["finetune", switches]).strip(), "whole process, s": f"{each['seconds']:.3f}",
                     "loop, s": f"{loop:.3f}" if loop else "", "memory of the host, MiB": str(max(phase[1] for phase in phases)),
                     "memory of the GPU, MiB": next(
                         (match[1] for phase in phases if (match := GPU_MEMORY.search(phase[2]))), ""),
                     "phases": "; ".join(f"{name} {seconds:.3f}" for seconds, _, name in phases)})
    for each in results_of(out, "peer"):
        result = each["result"]
        if "sequences" not in result:
            continue
        rate = result["evaluate"] or result["predict"]
        rows.append({"work": each["case"], "side": "PyTorch",
                     "whole process, s": f"{each['seconds']:.3f}",
                     "loop, s": f"{result['sequences'] / rate:.3f}",
                     "memory of the GPU, MiB": f"{result.get('device_peak_memory_mb') or 0:.0f}",
                     "phases": f"started {result['started']:.3f}; ready {result['ready']:.3f}"
                               if "ready" in result else ""})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--machine", help="the name of this machine's rows, such as h200")
    parser.add_argument("--output", type=Path, help="docs/benchmarks")
    parser.add_argument("--date", default=str(datetime.date.today()))
    options = parser.parse_args()
    if options.output and not options.machine:
        sys.exit("gpu_day_tables: error: --output needs --machine")
    tables = {"gpu-steps": step_rows(options.out), "gpu-changes": change_rows(options.out),
              "gpu-processes": process_rows(options.out)}
    if not any(tables.values()):
        sys.exit(f"gpu_day_tables: error: {options.out}: holds no results of gpu_day.sh")
    key = {"machine": options.machine or "", "part": "gpu", "date": options.date}
    for name, rows in tables.items():
        if options.output and rows:
            csv_files.update(options.output / f"{name}.csv", [{**key, **row} for row in rows], ("machine", "part"))
            continue
        print(f"== {name}")
        for row in rows:
            print("   " + "; ".join(f"{column}: {value}" for column, value in row.items() if value))


if __name__ == "__main__":
    main()
