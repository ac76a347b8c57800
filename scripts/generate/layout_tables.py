#!/usr/bin/env python3
"""Writes the tables of layouts in docs/layouts.md, with the numbers of `finetune plan --world`.

    scripts/generate/layout_tables.py [--check] [FINETUNE]

FINETUNE is the program (default: build/finetune). --check writes nothing, and exits 1 if the tables in the document
differ from those that the program would give.
"""
import json
import subprocess
import sys
from pathlib import Path

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/layouts.md"
DEVICE = "40G"
SETTINGS = {"all kept": [], "`--recompute`": ["--recompute"],
            "and `--offload-activations`": ["--recompute", "--offload-activations"]}
CLUSTER = ["--world", "960", "--hosts", "120", "--batch-size", "960", "--micro-batch-tokens", "1024"]
LARGEST = [*CLUSTER, "--shape", "96,12288,96,49152"]
# Name, processes, hosts, shape, sequences per batch.
SIZES = [("BERT-base", 8, 1, "base", 256), ("BERT-large", 8, 1, "large", 256),
         ("24 layers of 2048", 8, 1, "24,2048,32,8192", 256), ("36 layers of 4096", 16, 2, "36,4096,32,16384", 256),
         ("48 layers of 7168", 960, 120, "48,7168,56,28672", 960),
         ("96 layers of 12288", 960, 120, "96,12288,96,49152", 960)]


def plan(program, *arguments):
    done = subprocess.run([program, "plan", *map(str, arguments), "--device-memory", DEVICE, "--json"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"layout_tables: {done.stderr.strip()}")
    return json.loads(done.stdout)


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def gb(count):
    return f"{count / 1e9:.3g}" if count < 99.95e9 else f"{count / 1e9:.0f}"


def degrees(layout):
    return f"{layout['dp']} x {layout['pp']} x {layout['tp']}"


def limit():
    memory = 40 * 10**9
    return memory - memory // 256  # the driver keeps a part


def sizes_table(program):
    rows = []
    for name, world, hosts, shape, batch in SIZES:
        run = ["--world", world, "--hosts", hosts, "--shape", shape, "--batch-size", batch]
        forecasts = [plan(program, *run, *more) for more in ([], ["--recompute"])]
        alone = [next(layout for layout in forecast["layouts"] if layout["dp"] == world) for forecast in forecasts]
        fitting = [forecast for forecast in forecasts if forecast["fits"]]
        best = min(fitting, key=lambda forecast: forecast["step_seconds"])
        recompute = ", `--recompute`" if best["recompute"] else ""
        parameters = best["parameters"]
        count = f"{parameters / 1e9:.3g} billion" if parameters >= 1e9 else f"{parameters / 1e6:.0f} million"
        rows.append([f"{name}, {count}", f"{world} on {hosts}", *(gb(layout["memory_bytes"]) for layout in alone),
                     degrees(best) + recompute, gb(best["memory_bytes"])])
    return table(["model", "processes, hosts", "data parallel alone, GB", "with `--recompute`",
                  "fastest that fits 40 GB (dp x pp x tp)", "its GB"], rows)


def fitting_table(forecasts):
    rows = []
    for name, forecast in forecasts.items():
        layouts = forecast["layouts"]
        for moments, field in (("divided", "memory_bytes"), ("whole", "memory_with_whole_moments_bytes")):
            fitting = [layout for layout in layouts if layout[field] <= limit()]
            best = min(fitting, key=lambda layout: layout["step_seconds"], default=None)
            words = [degrees(best), gb(best[field]), f"{best['step_seconds']:.1f}"] if best else ["none", "", ""]
            rows.append([name, moments, f"{len(fitting)} of {len(layouts)}", *words])
    return table(["activations", "moments", "layouts that fit", "fastest of them (dp x pp x tp)", "its GB",
                  "its step, s"], rows)


def stages_table(forecasts):
    rows = []
    first = next(iter(forecasts.values()))
    for layout in sorted((row for row in first["layouts"] if row["tp"] == 8), key=lambda row: row["pp"]):
        cells = [degrees(layout), str(layout["replica_micro_batches"]), f"{100 * layout['bubble']:.0f} %"]
        for forecast in forecasts.values():
            same = next(row for row in forecast["layouts"] if degrees(row) == degrees(layout))
            for field in ("memory_bytes", "memory_with_whole_moments_bytes"):
                cells.append(f"**{gb(same[field])}**" if same[field] <= limit() else gb(same[field]))
        rows.append(cells)
    heads = ["dp x pp x tp", "micro-batches", "bubble"]
    for name in forecasts:
        heads += [name, "whole"]
    return table(heads, rows)


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    programs = [argument for argument in arguments if argument != "--check"]
    if len(programs) > 1 or any(program.startswith("-") for program in programs):
        sys.exit(__doc__)
    program = programs[0] if programs else "build/finetune"
    forecasts = {name: plan(program, *LARGEST, *more) for name, more in SETTINGS.items()}
    tables = {"sizes": sizes_table(program), "fitting": fitting_table(forecasts), "stages": stages_table(forecasts)}
    before = text = DOCUMENT.read_text(encoding="utf-8")
    for name, content in tables.items():
        begin, end = (f"<!-- {word} scripts/generate/layout_tables.py {name} -->" for word in ("begin", "end"))
        if text.count(begin) != 1 or text.count(end) != 1:
            sys.exit(f"layout_tables: {DOCUMENT} lacks the marks of the table {name}")
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{content}\n{end}{rest.split(end)[1]}"
    if not check:
        DOCUMENT.write_text(text, encoding="utf-8")
    elif text != before:
        sys.exit(f"layout_tables: {DOCUMENT} has other tables than {program} gives; run this script without --check")


if __name__ == "__main__":
    main()
