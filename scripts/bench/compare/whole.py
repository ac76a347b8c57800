"""A whole run: MiniLM on all bank text, one epoch: wall time and accuracy of each side."""
import json
import shutil

from compare.harness import names_of, progress, require, spread
from compare.works import SIDES, WORKS, faster_peer, in_turn, median, peer_versions

GOAL = 1.65  # times the peer's speed, start to end
SEED = 42
WORK = next(work for work in WORKS if work.name == "minilm-bank")


def check(options, _works):
    require(options.bank, options.bank_dev)
    options.whole_sides = names_of("--whole-sides", options.whole_sides,
                                   [name for name, side in SIDES.items() if side.padding != "max"])


def run_ours(bench, side, seed):
    options, run = bench.options, bench.temporary / "run"
    more = ["--eval", options.bank_dev, "--lr", 1e-4, "--reinit-head", "--seed", seed]
    if options.whole_rows:
        more += ["--max-train-samples", options.whole_rows]
    if options.whole_eval_rows:
        more += ["--max-eval-samples", options.whole_eval_rows]
    finished = bench.train_ours(bench.model("minilm"), WORK, run, side.precision, more)
    metrics = json.loads((run / "metrics.json").read_text())
    shutil.rmtree(run)
    return {"seconds": finished.seconds, "accuracy": 100 * metrics["eval_accuracy"],
            "samples_per_second": metrics["train_samples_per_second"],
            "eval_seconds": metrics["eval_runtime"], "peak_memory_mb": finished.memory_mb,
            "steps": metrics["train_steps"]}


def run_peer(bench, side, seed):
    options = bench.options
    arguments = ["--model", bench.model("minilm"), "--data", options.bank, "--eval", options.bank_dev,
                 "--rows", options.whole_rows, "--eval-rows", options.whole_eval_rows,
                 "--batch-size", WORK.batch_size, "--lr", 1e-4, "--seed", seed, *bench.columns(),
                 *bench.peer_machine(side)]
    finished, result = bench.peer("hf_peer.py", arguments)
    return {"seconds": result["seconds_to_metrics"], "accuracy": 100 * result["eval_accuracy"],
            "eval_seconds": result["eval_seconds"], "peak_memory_mb": finished.memory_mb,
            **{key: result[key] for key in ("samples_per_second", "steps", "transformers", "torch", "threads")}}


def measure(bench, _works):
    options = bench.options
    sides = in_turn(
        options.whole_sides, options.whole_runs,
        lambda side, number: run_ours(bench, side, SEED + number),
        lambda side, number: run_peer(bench, side, SEED + number),
        lambda number, side, result: progress(
            f"whole run {number + 1}/{options.whole_runs} {side.title}: {result['seconds']:.1f} s, "
            f"accuracy {result['accuracy']:.2f} %"))
    rows = f"{options.whole_rows:,}" if options.whole_rows else "all"
    eval_rows = f"{options.whole_eval_rows:,}" if options.whole_eval_rows else "all"
    return bench.section("A whole run beside Hugging Face Trainer", [
        f"MiniLM-L6 on {rows} rows of {options.bank.name} ({options.label_column}), one epoch, batch "
        f"{WORK.batch_size}, learning rate 1e-4, warm-up 0.1, weight decay 0.01; evaluated on {eval_rows} rows of "
        f"{options.bank_dev.name}",
        f"{options.whole_runs} runs a side, in turn, with seeds from {SEED} upwards",
        "Wall time: finetune from the start of the process to its end, checkpoint and exported model written; Hugging "
        "Face from the start of the process until it has the metrics, nothing saved",
        "Hugging Face: batches of similar length padded to their longest (`group_by_length`); in evaluation sorted by "
        "length, batch 64"], peer_versions([sides]), {
            "whole": table(sides), "whole-ratios": goals_table(sides)})


def table(sides):
    lines = ["| side | whole run, s (min / median / max) | training, samples/s (median) | evaluation, s (median) "
             "| accuracy, % (min / median / max) | peak memory | steps |", "|---|---|---|---|---|---|---|"]
    for name, runs in sides.items():
        lines.append(f"| {SIDES[name].title} | {spread([r['seconds'] for r in runs], 1)} "
                     f"| {median(runs, 'samples_per_second'):.1f} | {median(runs, 'eval_seconds'):.1f} "
                     f"| {spread([r['accuracy'] for r in runs], 2)} "
                     f"| {median(runs, 'peak_memory_mb'):,.0f} MiB | {runs[0]['steps']:,.0f} |")
    return lines


def goals_table(sides):
    lines = ["| ours | against | goal | times as fast (min / median / max of pairs) "
             "| accuracy, points above (min / median / max of pairs) |", "|---|---|---|---|---|"]
    speeds = {name: [{"speed": 1 / r["seconds"]} for r in runs] for name, runs in sides.items()}
    for ours, theirs in [("fp32", "hf-fp32"), ("bf16", faster_peer(speeds, "speed"))]:
        if ours not in sides or theirs not in sides:
            continue
        pairs = list(zip(sides[ours], sides[theirs]))
        lines.append(f"| {SIDES[ours].title} | {SIDES[theirs].title} | ≥ {GOAL}, same accuracy "
                     f"| {spread([b['seconds'] / a['seconds'] for a, b in pairs], 2)} "
                     f"| {spread([a['accuracy'] - b['accuracy'] for a, b in pairs], 2)} |")
    return lines
