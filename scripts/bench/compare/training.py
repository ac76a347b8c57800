"""Training: one epoch over the same first rows of the same files, from the same model directory."""
import json
import shutil

from compare.harness import fail, progress, require, spread
from compare.works import SIDES, faster_peer, in_turn, median, peer_versions

# Goals, as times the peer's speed: fp32 beside its best setting, bf16 beside its faster one, fp32 beside its default.
GOALS = {"minilm-bank": (1.65, 2.5, 8), "minilm-squad": (1.9, 2.5, 4),
         "base-bank": (1.45, 4, 8), "base-squad": (1.8, 3, 4)}


def title(work):
    return f"{work.title}, batch {work.batch_size}"


def check(options, works):
    require(*(options.bank if work.kind == "bank" else options.squad for work in works))
    if min(options.steps, options.default_steps or 3, options.squad_steps or 3) < 3:
        fail("--steps: at least 3, since the first is not counted")


def run_ours(bench, work, side, rows):
    run = bench.temporary / "run"
    finished = bench.train_ours(bench.model(work.model), work, run, side.precision,
                                ["--max-train-samples", rows, "--lr", 5e-5, "--reinit-head"])
    return result_of(bench, work, run, finished, rows)


def result_of(bench, work, run, finished, rows):
    """Returns the results of a one-epoch run, and removes its directory."""
    metrics = json.loads((run / "metrics.json").read_text())
    with open(run / "metrics.jsonl", encoding="utf-8") as log:
        steps = [entry for entry in map(json.loads, log) if "loss" in entry]
    shutil.rmtree(run)
    # As for the peer, does not count the first steps and an incomplete last batch.
    counted = steps[bench.options.uncounted:]
    if len(steps) * work.batch_size != rows:
        counted.pop()
    seconds = [work.batch_size / entry["samples_per_second"] for entry in counted]
    tokens = sum(s * entry["tokens_per_second"] for s, entry in zip(seconds, counted))
    return {"samples_per_second": work.batch_size * len(counted) / sum(seconds),
            "tokens_per_second": tokens / sum(seconds),
            "startup_seconds": metrics["startup_seconds"], "steps": len(steps),
            "peak_memory_mb": finished.memory_mb, "device_peak_memory_mb": metrics.get("device_peak_memory_mb")}


def peer_arguments(bench, work, side, rows):
    return ["--model", bench.model(work.model), "--data", bench.training_data(work.kind), "--rows", rows,
            "--batch-size", work.batch_size, "--padding", side.padding,
            "--uncounted", bench.options.uncounted, *bench.columns(), *bench.peer_machine(side)]


def run_peer(bench, work, side, rows):
    finished, result = bench.peer("hf_peer.py", peer_arguments(bench, work, side, rows))
    return {**result, "peak_memory_mb": finished.memory_mb}


def rows_of(options, work, side):
    steps = options.squad_steps if work.kind == "squad" and options.squad_steps else options.steps
    if side.padding == "max" and options.default_steps:
        steps = options.default_steps
    return steps * work.batch_size


def results_of(bench, work, sides, ours=run_ours, peer=run_peer, what="training", known=SIDES):
    """Runs ours(bench, work, side, rows) and peer(...) in turn. Returns each side's results by its name."""
    options = bench.options
    return in_turn(
        sides, options.runs,
        lambda side, _: ours(bench, work, side, rows_of(options, work, side)),
        lambda side, _: peer(bench, work, side, rows_of(options, work, side)),
        lambda number, side, result: progress(
            f"{what} {work.name} run {number + 1}/{options.runs} {side.title}: "
            f"{result['samples_per_second']:.2f} samples/s, {result['tokens_per_second']:.0f} tokens/s"),
        known=known)


def measure(bench, works):
    options = bench.options
    results = [(work, results_of(bench, work, options.sides)) for work in works]
    return bench.section("Training beside Hugging Face Trainer", [
        f"{options.runs} runs a side, in turn; one epoch over the same rows from the same model directory, "
        "learning rate 5e-5, dropout 0.1, AdamW, clipping at 1.0",
        "best setting: batches of similar length padded to their longest (`group_by_length`); default: padded to "
        "128 (bank text) and 384 tokens (SQuAD)",
        "The ratio is that of real tokens per second, run by run (padded runs may have fewer steps); a run's "
        "first step is not counted on either side"], peer_versions(sides for _, sides in results), {
        "training": table(results), "training-ratios": goals_table(results)})


def table(results):
    lines = ["| work | side | samples/s (min / median / max) | real tokens/s (median) | peak memory "
             "| start to first step | steps |", "|---|---|---|---|---|---|---|"]
    for work, sides in results:
        for name, runs in sides.items():
            lines.append(
                f"| {title(work)} | {SIDES[name].title} | {spread([r['samples_per_second'] for r in runs], 2)} "
                f"| {median(runs, 'tokens_per_second'):,.0f} | {median(runs, 'peak_memory_mb'):,.0f} MiB "
                f"| {median(runs, 'startup_seconds'):.2f} s | {runs[0]['steps']:.0f} |")
    return lines


def goal_rows(work, sides, pairs, goals):
    """Returns a row for each pair of sides that ran: ratios of real tokens per second, run by run, and of memory."""
    rows = []
    for (ours, theirs), goal in zip(pairs, goals):
        if ours not in sides or theirs not in sides:
            continue
        ratios = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(sides[ours], sides[theirs])]
        memory = median(sides[ours], "peak_memory_mb") / median(sides[theirs], "peak_memory_mb")
        rows.append(f"| {title(work)} | {SIDES[ours].title} | {SIDES[theirs].title} | ≥ {goal} "
                    f"| {spread(ratios, 2)} | {memory:.2f} |")
    return rows


def goals_table(results):
    lines = ["| work | ours | against | goal | reached (min / median / max of pairs) | memory |",
             "|---|---|---|---|---|---|"]
    for work, sides in results:
        pairs = [("fp32", "hf-fp32"), ("bf16", faster_peer(sides, "tokens_per_second")), ("fp32", "hf-default")]
        lines += goal_rows(work, sides, pairs, GOALS[work.name])
    return lines
