"""P processes of one thread beside one process of P threads: bench step and bench comm, in turn.

Writes the part of docs/scaling.md between its marks, with a forecast for more processes from what was
measured here (see forecast()).
"""
import argparse
import datetime
import json
import math
import os
import re
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("FINETUNE_BINARY", str(ROOT / "build" / "finetune"))
DOCUMENT = ROOT / "docs" / "scaling.md"
BEGIN, END = "<!-- begin scripts/bench/scaling.py -->", "<!-- end scripts/bench/scaling.py -->"
LENGTHS = {"bank": 32, "squad": 8}  # batch sizes


def finetune(processes, *arguments):
    launcher = [] if processes == 1 else ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                                          "-n", str(processes)]
    done = subprocess.run([*launcher, BINARY, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"scaling: error: {' '.join(map(str, arguments))}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def step(processes, threads, shape, lengths, options):
    return finetune(processes, "bench", "step", "--shape", shape, "--lengths", lengths, "--batch-size",
                    LENGTHS[lengths], "--threads", threads, "--steps", options.steps, "--precision", options.precision)


def median(results, name):
    return statistics.median(result[name] for result in results)


def cpu_name():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def forecast(name, compute, dense_bytes, row_bytes, latency, bandwidth):
    """Seconds of a step on P processes of one thread, each on a host of its own, weak scaling (every process has
    the batch that it has here): T(P) = compute + 3 latencies * log2(P) + bytes(P) / bandwidth, where a process
    sends and receives (P-1)/P of the dense gradient and as much of the weights, and the rows of the batch, which
    grow with it, twice."""
    shares = []
    for count in (8, 64, 512):
        sent = (count - 1) / count * (2 * dense_bytes + 2 * row_bytes * min(count, 16))
        seconds = compute + 3 * latency * math.log2(count) + sent / bandwidth
        shares.append(f"{100 * compute / seconds:.0f} %")
    return f"| {name} | {1e3 * compute:.0f} ms | {' | '.join(shares)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--shapes", default="minilm,base")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--no-document", action="store_true", help="print only")
    options = parser.parse_args()
    count = options.processes
    lines = [f"{datetime.date.today()}, {cpu_name()}, {os.cpu_count()} cores; {options.runs} runs in turn, "
             f"{options.steps} steps each (`scripts/bench/scaling.sh`), medians.", "",
             f"| work | 1 process, {count} threads | {count} processes, 1 thread | ratio (least, most) | "
             "waiting and moving data |", "|---|---|---|---|---|"]
    rows = []
    for shape in options.shapes.split(","):
        for lengths in LENGTHS:
            alone, spread = [], []
            for _ in range(options.runs):
                alone.append(step(1, count, shape, lengths, options))
                spread.append(step(count, 1, shape, lengths, options))
            ratios = sorted(b["samples_per_second"] / a["samples_per_second"] for a, b in zip(alone, spread))
            precision = alone[0]["precision"]
            lines.append(f"| {shape}, {lengths}, batch {LENGTHS[lengths]}, {precision} | "
                         f"{median(alone, 'samples_per_second'):.1f} samples/s | "
                         f"{median(spread, 'samples_per_second'):.1f} samples/s | "
                         f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}, {ratios[-1]:.2f}) | "
                         f"{100 * median(spread, 'communication_share'):.0f} % of a step |")
            print(lines[-1], flush=True)
            rows.append((f"{shape}, {lengths}", spread))
    comm = finetune(count, "bench", "comm")
    os.environ["FINETUNE_HOSTS"] = str(count)
    between = finetune(count, "bench", "comm")
    del os.environ["FINETUNE_HOSTS"]
    lines += ["", f"Between {count} processes of one host: barrier {comm['barrier_microseconds']:.1f} µs, all-gather of "
              f"64 bytes {comm['all_gather_microseconds']:.1f} µs, ordered sum {comm['reduce_gigabytes_per_second']:.1f} "
              f"GB/s. Over MPI on this machine (FINETUNE_HOSTS={count}): 8 bytes "
              f"{between['exchange_microseconds']:.1f} µs, large messages "
              f"{between['exchange_gigabytes_per_second']:.2f} GB/s one way."]
    lines += ["", "Forecast of the efficiency on hosts with one such process each (weak scaling: every process keeps its "
              "share of the batch), by the model below with 10 Gbit/s Ethernet (1.1 GB/s, 30 µs):", "",
              "| work | computing | 8 | 64 | 512 |", "|---|---|---|---|---|"]
    for name, spread in rows:
        compute = median(spread, "step_seconds_median") * (1 - median(spread, "communication_share"))
        shape = name.split(",")[0]
        dense = {"minilm": 11.0e6, "base": 86.1e6}.get(shape, spread[0]["parameters"]) * 4
        tokens = LENGTHS[name.split(", ")[1]] / count * spread[0]["tokens_per_sample"]
        hidden = {"minilm": 384, "base": 768}.get(shape, 768)
        lines.append(forecast(name, compute, dense, 0.6 * tokens * hidden * 4, 30e-6, 1.1e9))
    text = "\n".join(lines)
    print("\n" + text)
    if options.no_document:
        return
    document = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    DOCUMENT.write_text(pattern.sub(lambda _: f"{BEGIN}\n{text}\n{END}", document), encoding="utf-8")


main()
