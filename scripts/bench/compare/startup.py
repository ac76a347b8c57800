"""From the start of the process to the first step of training, files in the page cache."""
import json
import shutil

from compare.harness import progress, require, spread
from compare.works import SIDES, WORKS, in_turn, peer_versions

GOALS = {"minilm-bank": 0.3, "base-bank": 0.6}  # seconds
NAMES = ("fp32", "hf-fp32")


def check(options, _works):
    require(options.bank)


def run_ours(bench, work, side):
    run = bench.temporary / "run"
    bench.train_ours(bench.model(work.model), work, run, side.precision,
                     ["--max-train-samples", bench.options.startup_rows, "--max-steps", 1, "--reinit-head"])
    metrics = json.loads((run / "metrics.json").read_text())
    shutil.rmtree(run)
    return {"seconds": metrics["startup_seconds"]}


def run_peer(bench, work):
    _, result = bench.peer("hf_peer.py", ["--model", bench.model(work.model), "--data", bench.options.bank,
                                          "--rows", bench.options.startup_rows, "--max-steps", 1,
                                          "--batch-size", work.batch_size, *bench.columns()])
    return {"seconds": result["startup_seconds"], **result}


def measure(bench, _works):
    options, results = bench.options, []
    for work in (work for work in WORKS if work.name in GOALS):
        sides = in_turn(
            NAMES, options.runs, lambda side, _: run_ours(bench, work, side), lambda *_: run_peer(bench, work),
            lambda number, side, result: progress(
                f"startup {work.name} run {number + 1}/{options.runs} {side.title}: {result['seconds']:.3f} s"),
            warm_up=True)  # fills the page cache
        results.append((work, sides))
    return bench.section("Start of the process to the first step", [
        f"{options.runs} runs a side, in turn, after one that is not counted (it fills the page cache)",
        f"{options.startup_rows:,} rows of {options.bank.name}, which is read, tokenized, and the weights loaded; "
        "finetune: `startup_seconds` of its metrics, Hugging Face: until the Trainer begins its first step, both since "
        "the kernel started the process"], peer_versions(sides for _, sides in results), {
            "startup": table(results)})


def table(results):
    lines = ["| work | side | start to first step, s (min / median / max) | goal |", "|---|---|---|---|"]
    for work, sides in results:
        for name, runs in sides.items():
            goal = f"< {GOALS[work.name]} s" if SIDES[name].ours else ""
            title = SIDES[name].title if SIDES[name].ours else "HF fp32"
            lines.append(f"| {work.title} | {title} | {spread([r['seconds'] for r in runs], 3)} | {goal} |")
    return lines
