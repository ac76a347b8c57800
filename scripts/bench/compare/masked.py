"""Masked words: one epoch of adapt and of run_mlm over the same texts, from the same model."""
import shutil

from compare.harness import require
from compare.training import goal_rows, peer_arguments, result_of, results_of, table
from compare.works import SIDES, faster_peer, peer_versions

GOAL, MEMORY_GOAL = 2, 0.5  # times the peer's speed at its best setting; times its memory


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
    options = bench.options
    sides = [name for name in options.sides if SIDES[name].padding != "max"]
    results = [(work, results_of(bench, work, sides, run_ours, run_peer, "masked"))
               for work in works if work.kind == "bank"]
    return bench.section("Masked words beside Hugging Face's run_mlm", [
        f"{options.runs} runs a side, in turn; one epoch over the same texts from the same model directory, 15 % of "
        "the tokens hidden: whole words here, pieces there, which its collator draws faster",
        "best setting: a text a sample, batches of similar length padded to their longest (`group_by_length`)",
        "The ratio is that of real tokens per second, run by run; the first step is not counted on either side"],
        peer_versions(sides for _, sides in results), {
            "training": table(results), "training-ratios": goals_table(results)})


def goals_table(results):
    lines = ["| work | ours | against | goal | reached (min / median / max of pairs) | memory | memory goal |",
             "|---|---|---|---|---|---|---|"]
    for work, sides in results:
        pairs = [("fp32", "hf-fp32"), ("bf16", faster_peer(sides, "tokens_per_second"))]
        lines += [f"{row} ≤ {MEMORY_GOAL} |" for row in goal_rows(work, sides, pairs, [GOAL, GOAL])]
    return lines
