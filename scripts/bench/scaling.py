"""Measures P processes of one thread beside one process of P threads, by bench step and bench comm.

Writes scaling*.csv in docs/benchmarks, including a forecast for more processes from the measured figures
(see forecast()).
"""
import argparse
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "plots"))
import csv_files  # noqa: E402

BINARY = os.environ.get("FINETUNE_BINARY", str(ROOT / "build" / "finetune"))
OUTPUT = ROOT / "docs" / "benchmarks"
HOSTS = (8, 64, 512)
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


def forecast(compute, dense_bytes, row_bytes, latency, bandwidth):
    """Returns the efficiency in percent on HOSTS of one process each. Weak scaling: every process has the batch that
    it has here. A step takes T(P) = compute + 3 latencies * log2(P) + bytes(P) / bandwidth. A process sends and
    receives (P-1)/P of the dense gradient, as many bytes of weights, and twice the word embedding's rows in the
    batch, whose number grows with the batch."""
    for count in HOSTS:
        sent = (count - 1) / count * (2 * dense_bytes + 2 * row_bytes * min(count, 16))
        seconds = compute + 3 * latency * math.log2(count) + sent / bandwidth
        yield f"{100 * compute / seconds:.0f}"


def measure(shape, lengths, options):
    """Returns rows for scaling.csv and scaling-forecast.csv."""
    count, alone, spread = options.processes, [], []
    for _ in range(options.runs):
        alone.append(step(1, count, shape, lengths, options))
        spread.append(step(count, 1, shape, lengths, options))
    ratios = sorted(b["samples_per_second"] / a["samples_per_second"] for a, b in zip(alone, spread))
    share = median(spread, "communication_share")
    measured = {"work": f"{shape}, {lengths}, batch {LENGTHS[lengths]}, {alone[0]['precision']}",
                f"1 process, {count} threads, samples/s": f"{median(alone, 'samples_per_second'):.1f}",
                f"{count} processes, 1 thread, samples/s": f"{median(spread, 'samples_per_second'):.1f}",
                "ratio min": f"{ratios[0]:.2f}", "ratio median": f"{statistics.median(ratios):.2f}",
                "ratio max": f"{ratios[-1]:.2f}", "waiting and moving data, % of a step": f"{100 * share:.0f}"}
    compute = median(spread, "step_seconds_median") * (1 - share)
    dense = {"minilm": 11.0e6, "base": 86.1e6}.get(shape, spread[0]["parameters"]) * 4
    hidden = {"minilm": 384, "base": 768}.get(shape, 768)
    rows = 0.6 * LENGTHS[lengths] / count * spread[0]["tokens_per_sample"] * hidden * 4
    shares = zip(HOSTS, forecast(compute, dense, rows, 30e-6, 1.1e9))
    return measured, {"work": f"{shape}, {lengths}", "computing, ms": f"{1e3 * compute:.0f}",
                      **{f"efficiency on {hosts} hosts, %": efficiency for hosts, efficiency in shares}}


def links(count):
    """Returns rows for scaling-links.csv, measured by `bench comm`."""
    comm = finetune(count, "bench", "comm")
    os.environ["FINETUNE_HOSTS"] = str(count)
    between = finetune(count, "bench", "comm")
    del os.environ["FINETUNE_HOSTS"]
    one, mpi = f"{count} processes of one host", f"{count} processes over MPI on one machine (FINETUNE_HOSTS={count})"
    return [{"between": where, "what": what, "value": value, "unit": unit} for where, what, value, unit in (
        (one, "barrier", f"{comm['barrier_microseconds']:.1f}", "µs"),
        (one, "all-gather of 64 bytes", f"{comm['all_gather_microseconds']:.1f}", "µs"),
        (one, "ordered sum", f"{comm['reduce_gigabytes_per_second']:.1f}", "GB/s"),
        (mpi, "message of 8 bytes", f"{between['exchange_microseconds']:.1f}", "µs"),
        (mpi, "large messages, one way", f"{between['exchange_gigabytes_per_second']:.2f}", "GB/s"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--shapes", default="minilm,base")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--machine", default=cpu_name(), help="name of this machine in the files")
    parser.add_argument("--no-document", action="store_true", help="print only")
    options = parser.parse_args()
    key = {"machine": options.machine, "part": "scaling", "date": str(datetime.date.today())}
    found = {"scaling": [], "scaling-forecast": [], "scaling-links": []}
    for shape in options.shapes.split(","):
        for lengths in LENGTHS:
            measured, expected = measure(shape, lengths, options)
            found["scaling"].append(measured)
            found["scaling-forecast"].append(expected)
            print(measured, flush=True)
    found["scaling-links"] = links(options.processes)
    found["runs"] = [{
        "processor": cpu_name(), "cores": os.cpu_count(), "command": "scripts/bench/scaling.sh",
        "method": f"{options.runs} runs in turn, {options.steps} steps each, medians; forecast for hosts with "
        "one such process each, weak scaling (every process keeps its share of the batch), with "
        "10 Gbit/s Ethernet (1.1 GB/s, 30 µs)"
    }]
    for name, rows in found.items():
        print(f"\n{name}", *rows, sep="\n")
        if not options.no_document:
            csv_files.update(OUTPUT / f"{name}.csv", [{**key, **row} for row in rows], ("machine", "part"))


main()
