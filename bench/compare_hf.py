#!/usr/bin/env python3
"""Trains the same rows with finetune and with Hugging Face Trainer, in turn, and writes tables.

Run it through compare_hf.sh, which finds the peer's Python. Every figure of the table is measured
in this run: both sides train one epoch over the same first rows of the same files, from the same
model directory, with the same batch size, learning rate, dropout and clipping.
"""
import argparse
import datetime
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent


class Work:
    """What is trained: `rows` of its data make about `steps` steps. The goals are times the peer's
    speed: in fp32 its best setting, in bf16 the faster of its fp32 and bf16, in fp32 its default."""

    def __init__(self, name, title, model, kind, batch_size, goals):
        self.name, self.title, self.model, self.kind = name, title, model, kind
        self.batch_size, self.goals = batch_size, goals


WORKS = [
    Work("minilm-bank", "MiniLM-L6, bank text, batch 32", "minilm", "bank", 32, (1.65, 2.5, 8)),
    Work("minilm-squad", "MiniLM-L6, SQuAD 384, batch 8", "minilm", "squad", 8, (1.9, 2.5, 4)),
    Work("base-bank", "BERT-base shape, bank text, batch 32", "base", "bank", 32, (1.45, 4, 8)),
    Work("base-squad", "BERT-base shape, SQuAD 384, batch 8", "base", "squad", 8, (1.8, 3, 4)),
]


class Side:
    def __init__(self, title, ours, precision, padding=None):
        self.title, self.ours, self.precision, self.padding = title, ours, precision, padding


SIDES = {
    "fp32": Side("finetune fp32", True, "fp32"),
    "bf16": Side("finetune bf16", True, "bf16"),
    "hf-fp32": Side("HF fp32, best setting", False, "fp32", "group"),
    "hf-bf16": Side("HF bf16, best setting", False, "bf16", "group"),
    "hf-default": Side("HF fp32, default setting", False, "fp32", "max"),
}
BEGIN, END = "<!-- compare_hf.sh writes from here -->", "<!-- to here -->"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = PROJECT.parent / "shared" / "data"
    parser.add_argument("--model", required=True, help="MiniLM's directory; its tokenizer serves base too")
    parser.add_argument("--binary", default=PROJECT / "build" / "finetune", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--bank", default=data / "toronto" / "train.csv", type=Path)
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="category")
    parser.add_argument("--squad", default=data / "squad" / "train-v1.1-4000.json", type=Path)
    parser.add_argument("--works", default=",".join(work.name for work in WORKS))
    parser.add_argument("--sides", default=",".join(SIDES), help="best setting: group by length; default: padded")
    parser.add_argument("--steps", type=int, default=60, help="of a run")
    parser.add_argument("--default-steps", type=int, default=0, help="of a run of the padded peer; 0: --steps")
    parser.add_argument("--squad-steps", type=int, default=0, help="of a run on SQuAD; 0: --steps")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--scratch", type=Path, help="keeps the base-shaped model between calls")
    parser.add_argument("--output", default=PROJECT / "docs" / "benchmarks.md", type=Path,
                        help="the part between two marks is replaced, if it has them")
    return parser.parse_args()


def fail(message):
    sys.exit(f"compare_hf: error: {message}")


def call(command):
    """Standard output and the highest resident memory (MiB) of a command that must succeed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen([str(part) for part in command], stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode != 0:
            err.seek(0)
            fail(f"{' '.join(map(str, command))}: exit {process.returncode}: {err.read()[-2000:]}")
        return out.read(), usage.ru_maxrss / 1024


def data_of(options, work):
    return options.bank if work.kind == "bank" else options.squad


def run_ours(options, work, side, model, rows, directory):
    run = directory / "run"
    shutil.rmtree(run, ignore_errors=True)
    command = [options.binary, "train", "--model", model, "--train", data_of(options, work), "--output", run,
               "--max-train-samples", rows, "--batch-size", work.batch_size, "--epochs", 1,
               "--lr", 5e-5, "--warmup-ratio", 0.1, "--weight-decay", 0.01, "--reinit-head",
               "--save-every", 10**9, "--no-progress", "--precision", side.precision]
    if work.kind == "bank":
        command += ["--task", "classification", "--text-column", options.text_column,
                    "--label-column", options.label_column]
    if options.threads:
        command += ["--threads", options.threads]
    _, memory = call(command)
    metrics = json.loads((run / "metrics.json").read_text())
    with open(run / "metrics.jsonl", encoding="utf-8") as log:
        steps = [entry for entry in map(json.loads, log) if "loss" in entry]
    # As with the peer, not the first step; nor a last one that is not a whole batch.
    counted = steps[1:] if len(steps) * work.batch_size == rows else steps[1:-1]
    seconds = [work.batch_size / entry["samples_per_second"] for entry in counted]
    tokens = sum(s * entry["tokens_per_second"] for s, entry in zip(seconds, counted))
    shutil.rmtree(run)
    return {"samples_per_second": work.batch_size * len(counted) / sum(seconds),
            "tokens_per_second": tokens / sum(seconds),
            "startup_seconds": metrics["startup_seconds"], "steps": len(steps),
            "peak_memory_mb": memory}


def run_peer(options, work, side, model, rows):
    command = [options.peer_python, HERE / "hf_peer.py", "--model", model, "--data", data_of(options, work),
               "--rows", rows, "--batch-size", work.batch_size, "--padding", side.padding,
               "--text-column", options.text_column, "--label-column", options.label_column]
    if side.precision == "bf16":
        command += ["--bf16"]
    if options.threads:
        command += ["--threads", options.threads]
    out, memory = call(command)
    return {**json.loads(out.splitlines()[-1]), "peak_memory_mb": memory}


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def spread(values, digits):
    values = sorted(values)
    return " / ".join(f"{v:,.{digits}f}" for v in (values[0], statistics.median(values), values[-1]))


def median(results, key):
    return statistics.median(result[key] for result in results)


def table(results):
    lines = ["| work | side | samples/s (min / median / max) | real tokens/s (median) | peak memory "
             "| start to first step | steps |", "|---|---|---|---|---|---|---|"]
    for work, sides in results:
        for name, runs in sides.items():
            lines.append(
                f"| {work.title} | {SIDES[name].title} | {spread([r['samples_per_second'] for r in runs], 2)} "
                f"| {median(runs, 'tokens_per_second'):,.0f} | {median(runs, 'peak_memory_mb'):,.0f} MiB "
                f"| {median(runs, 'startup_seconds'):.2f} s | {runs[0]['steps']:.0f} |")
    return lines


def goals_table(results):
    """Ratios of real tokens per second, run by run."""
    lines = ["| work | ours | against | goal | reached (min / median / max of pairs) | memory |", "|---|---|---|---|---|---|"]
    for work, sides in results:
        faster = [name for name in ("hf-fp32", "hf-bf16") if name in sides]
        faster.sort(key=lambda name: -median(sides[name], "tokens_per_second"))
        pairs = [("fp32", "hf-fp32"), ("bf16", faster[0] if faster else ""), ("fp32", "hf-default")]
        for (ours, theirs), goal in zip(pairs, work.goals):
            if ours not in sides or theirs not in sides:
                continue
            ratios = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(sides[ours], sides[theirs])]
            memory = median(sides[ours], "peak_memory_mb") / median(sides[theirs], "peak_memory_mb")
            lines.append(f"| {work.title} | {SIDES[ours].title} | {SIDES[theirs].title} | ≥ {goal} "
                         f"| {spread(ratios, 2)} | {memory:.2f} |")
    return lines


def report(options, results, versions):
    doctor, _ = call([options.binary, "doctor"])
    path = next((line for line in doctor.splitlines() if line.startswith("code path")), "")
    version, _ = call([options.binary, "--version"])
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return "\n".join([
        "## Training beside Hugging Face Trainer", "",
        f"Written by `bench/compare_hf.sh` on {datetime.date.today()}; no figure by hand.", "",
        f"* Machine: {cpu_model()}, {len(os.sched_getaffinity(0))} cores; {' '.join(path.split()[2:])}; "
        f"load average at the end {load}",
        f"* finetune {version.strip()}; {versions}",
        f"* {options.runs} runs a side, in turn; one epoch over the same rows from the same model directory, "
        "learning rate 5e-5, dropout 0.1, AdamW, clipping at 1.0",
        "* best setting: batches of similar length padded to their longest (`group_by_length`); default: padded to "
        "128 (bank text) and 384 tokens (SQuAD)",
        "* The ratio is that of real tokens per second, run by run (padded runs may have fewer steps); a run's "
        "first step is not counted on either side", "",
        *table(results), "", *goals_table(results), ""])


def write(path, text):
    """Replaces the marked part of a document, or all of another file."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if BEGIN in old and END in old:
        text = old[:old.index(BEGIN) + len(BEGIN)] + "\n" + text + old[old.index(END):]
    path.write_text(text, encoding="utf-8")


def main():
    options = parse_arguments()
    known = {work.name: work for work in WORKS}
    for name in options.works.split(","):
        if name not in known:
            fail(f"--works {name}: known are {', '.join(known)}")
    for name in options.sides.split(","):
        if name not in SIDES:
            fail(f"--sides {name}: known are {', '.join(SIDES)}")
    works = [known[name] for name in options.works.split(",")]
    if min(options.steps, options.default_steps or 3, options.squad_steps or 3) < 3:
        fail("--steps: at least 3, since the first is not counted")
    for path in [options.binary, *(data_of(options, work) for work in works)]:
        if not Path(path).exists():
            fail(f"{path}: not found")
    with tempfile.TemporaryDirectory(prefix="compare-hf-") as temporary:
        scratch = options.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        models = {"minilm": options.model, "base": scratch / "base-random"}
        if any(work.model == "base" for work in works) and not (models["base"] / "config.json").exists():
            call([options.peer_python, HERE / "hf_peer.py", "--model", options.model, "--make-shape", "base",
                  "--output", models["base"]])
        results, versions = [], ""
        for work in works:
            sides = {name: [] for name in options.sides.split(",")}
            results.append((work, sides))
            for run in range(options.runs):
                for name, runs in sides.items():
                    side = SIDES[name]
                    steps = options.squad_steps if work.kind == "squad" and options.squad_steps else options.steps
                    if name == "hf-default" and options.default_steps:
                        steps = options.default_steps
                    rows, model = steps * work.batch_size, models[work.model]
                    if side.ours:
                        runs.append(run_ours(options, work, side, model, rows, Path(temporary)))
                    else:
                        runs.append(run_peer(options, work, side, model, rows))
                        versions = f"transformers {runs[-1]['transformers']}, torch {runs[-1]['torch']}, " \
                                   f"{runs[-1]['threads']} threads"
                    print(f"{work.name} run {run + 1}/{options.runs} {side.title}: "
                          f"{runs[-1]['samples_per_second']:.2f} samples/s, "
                          f"{runs[-1]['tokens_per_second']:.0f} tokens/s", file=sys.stderr, flush=True)
        text = report(options, results, versions)
    write(options.output, text)
    print(text)


main()
