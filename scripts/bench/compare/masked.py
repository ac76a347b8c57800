"""Masked words: one epoch of adapt and of run_mlm over the same texts, from the same model."""
import shutil

from compare.harness import progress, require, spread
from compare.training import peer_arguments, result_of, table
from compare.works import SIDES, faster_peer, in_turn, median, peer_versions

GOAL, MEMORY_GOAL = 2, 0.5  # times the peer's speed at its best setting, of its memory


def check(options, works):
    require(options.bank)


def run_ours(bench, work, side, rows):
    run = bench.temporary / "adapted"
    shutil.rmtree(run, ignore_errors=True)
    finished = bench.ours(["adapt", "--model", bench.model(work.model), "--text", bench.options.bank, "--text-column",
                           bench.options.text_column, "--output", run, "--batch-size", work.batch_size, "--epochs", 1,
                           "--max-train-samples", rows, "--save-every", 10**9, "--no-progress", "--precision",
                           side.precision, *bench.threads()])
    return result_of(bench, work, run, finished, rows)


def run_peer(bench, work, side, rows):
    finished, result = bench.peer("hf_peer.py", [*peer_arguments(bench, work, side, rows), "--masked"])
    return {**result, "peak_memory_mb": finished.memory_mb}


def measure(bench, works):
    options, results, versions = bench.options, [], ""
    for work in [work for work in works if work.kind == "bank"]:
        rows = options.steps * work.batch_size
        sides = in_turn(
            [name for name in options.sides if SIDES[name].padding != "max"], options.runs,
            lambda side, _: run_ours(bench, work, side, rows), lambda side, _: run_peer(bench, work, side, rows),
            lambda number, side, result: progress(
                f"masked {work.name} run {number + 1}/{options.runs} {side.title}: "
                f"{result['tokens_per_second']:.0f} tokens/s, {result['peak_memory_mb']:.0f} MiB"))
        results.append((work, sides))
        versions = peer_versions(sides, versions)
    return bench.section("Masked words beside Hugging Face's run_mlm", [
        f"{options.runs} runs a side, in turn; one epoch over the same texts from the same model directory, 15 % of "
        "the tokens hidden: whole words here, pieces there, which its collator draws faster",
        "best setting: a text a sample, batches of similar length padded to their longest (`group_by_length`)",
        "The ratio is that of real tokens per second, run by run; the first step is not counted on either side"],
        versions, [table(results), goals_table(results)])


def goals_table(results):
    lines = ["| work | ours | against | goal | reached (min / median / max of pairs) | memory | goal |",
             "|---|---|---|---|---|---|---|"]
    for work, sides in results:
        for ours, theirs in (("fp32", "hf-fp32"), ("bf16", faster_peer(sides, "tokens_per_second"))):
            if ours not in sides or theirs not in sides:
                continue
            ratios = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(sides[ours], sides[theirs])]
            memory = median(sides[ours], "peak_memory_mb") / median(sides[theirs], "peak_memory_mb")
            lines.append(f"| {work.title}, batch {work.batch_size} | {SIDES[ours].title} | {SIDES[theirs].title} "
                         f"| ≥ {GOAL} | {spread(ratios, 2)} | {memory:.2f} | ≤ {MEMORY_GOAL} |")
    return lines
