"""Evaluation and prediction: the same fine-tuned directory and rows on both sides."""
import csv
import itertools
import json
import shutil
from collections import namedtuple

from compare.harness import fail, progress, require, spread
from compare.works import SIDES, faster_peer, in_turn, median, peer_versions

GOAL = 2  # times the peer's sequences per second
ROWS = {"minilm-bank": 10000, "minilm-squad": 128, "base-bank": 1000, "base-squad": 64, "large-squad": 64}

# A comparison: its title, and the names of our figure and the peer's.
Measure = namedtuple("Measure", "title ours theirs")
MEASURES = [
    Measure("evaluation in training", "loop", "evaluate"),
    Measure("`finetune evaluate`, whole command", "evaluate", "evaluate"),
    Measure("`finetune predict`, whole command", "predict", "predict"),
]


def check(options, works):
    require(*(options.bank if work.kind == "bank" else options.squad for work in works))
    require(*(options.bank_dev if work.kind == "bank" else options.squad_dev for work in works))
    if not all(size.isdigit() and int(size) > 0 for size in options.peer_eval_batch_sizes.split(",")):
        fail(f"--peer-eval-batch-sizes {options.peer_eval_batch_sizes}: numbers separated by commas")
    if options.eval_rows_scale <= 0:
        fail("--eval-rows-scale: more than 0")


def row_count(options, work):
    return max(1, round(ROWS[work.name] * options.eval_rows_scale))


def write_rows(options, work, path):
    """Writes the first rows, or questions spread evenly over the whole file, so that windows have all lengths."""
    count = row_count(options, work)
    if work.kind == "bank":
        with open(options.bank_dev, encoding="utf-8", newline="") as source, \
                open(path, "w", encoding="utf-8", newline="") as target:
            csv.writer(target).writerows(itertools.islice(csv.reader(source), count + 1))
        return
    articles = json.loads(options.squad_dev.read_text(encoding="utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    questions = [(i, q) for i, paragraph in enumerate(paragraphs) for q in paragraph["qas"]]
    count = min(count, len(questions))
    taken = [questions[n * len(questions) // count] for n in range(count)]
    chosen = [{"context": paragraphs[i]["context"], "qas": [q for _, q in group]}
              for i, group in itertools.groupby(taken, key=lambda question: question[0])]
    text = json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": chosen}]}, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")


def repeats(options, works):
    """Lines about repeated texts in the measured rows."""
    lines, column = [], options.text_column
    for work in (work for work in works if work.kind == "bank"):
        with open(options.bank_dev, encoding="utf-8", newline="") as file:
            texts = [row[column] for row in itertools.islice(csv.DictReader(file), row_count(options, work))]
        lines.append(f"{work.title}: column `{column}`, {len(set(texts)):,} different texts in {len(texts):,} rows; "
                     "finetune computes each once, and may so pass the limit, which counts every row")
    return lines


def run_ours(bench, work, side, data):
    model, threads = bench.model_with_head(work), bench.threads()
    run = bench.temporary / "run"
    # Evaluates the model unchanged: the one step before is a warm-up whose learning rate is close to 0.
    bench.train_ours(model, work, run, side.precision,
                     ["--max-train-samples", 64, "--max-steps", 1, "--lr", 1e-12, "--eval", data])
    metrics = json.loads((run / "metrics.json").read_text())
    shutil.rmtree(run)
    sequences = round(metrics["eval_runtime"] * metrics["eval_samples_per_second"])
    common = ["--model", model, "--precision", side.precision, "--quiet", *bench.device(), *threads]
    evaluation = bench.ours(["evaluate", *common, "--data", data, "--no-progress", "--json"])
    prediction = bench.ours(["predict", *common, "--input", data, "--output", run, "--overwrite"])
    run.unlink()
    return {"loop": metrics["eval_samples_per_second"], "evaluate": sequences / evaluation.seconds,
            "predict": sequences / prediction.seconds, "sequences": sequences,
            "loss": json.loads(evaluation.output)["eval_loss"],
            "peak_memory_mb": max(evaluation.memory_mb, prediction.memory_mb)}


def run_peer(bench, work, side, data):
    arguments = ["--model", bench.model_with_head(work), "--data", data,
                 "--batch-sizes", bench.options.peer_eval_batch_sizes, *bench.columns(), *bench.peer_machine(side)]
    finished, result = bench.peer("hf_inference.py", arguments)
    return {**result, "peak_memory_mb": finished.memory_mb}


def needed_flops(work, config, result):
    """Returns the operations that all sequences need: matrix products and attention of real tokens, a multiply-add
    as 2. In classification, the last layer computes [CLS] alone, but keys and values of all tokens."""
    hidden, wide, layers = (config[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers"))
    tokens, sequences = result["tokens"], result["sequences"]
    after_values = 4 * hidden * hidden + 4 * hidden * wide  # per row: query, attention's output, feed-forward
    layer = tokens * (4 * hidden * hidden + after_values) + 4 * hidden * result["squared_lengths"]
    if work.kind == "squad":
        return layers * layer
    last = tokens * 4 * hidden * hidden + sequences * after_values + 4 * hidden * tokens
    return (layers - 1) * layer + last + sequences * 2 * hidden * hidden  # the last term is the pooler


def with_rate(bench, side, result):
    """Adds the machine's rate to `result`, measured at the same time because its speed varies."""
    return {**result, "rate": bench.rate(side.precision)}


def measure(bench, works):
    options, results = bench.options, []
    for work in works:
        data = bench.temporary / ("rows.csv" if work.kind == "bank" else "rows.json")
        write_rows(options, work, data)
        sides = in_turn(
            [name for name in options.sides if SIDES[name].padding != "max"], options.runs,
            lambda side, _: with_rate(bench, side, run_ours(bench, work, side, data)),
            lambda side, _: with_rate(bench, side, run_peer(bench, work, side, data)),
            lambda number, side, result: progress(
                f"inference {work.name} run {number + 1}/{options.runs} {side.title}: "
                f"evaluate {result['evaluate']:.1f}, predict {result['predict']:.1f} sequences/s"))
        config = json.loads((bench.model_with_head(work) / "config.json").read_text())
        results.append((work, sides, config))
        check_same_work(work, sides)
    column = "" if options.text_column == "text" else f", of {options.text_column}"
    return bench.section(f"Evaluation and prediction beside Hugging Face Trainer{column}", [
        f"{options.runs} runs a side, in turn; the same fine-tuned directory (one step of training) and the same file "
        "of rows; SQuAD's questions evenly from the whole dev file",
        "Evaluation in training: `eval_samples_per_second` of `finetune train`, tokens ready, metrics counted. Whole "
        "command: sequences by the wall time of the process, its start, reading, tokenizing, metrics or answers, and "
        "writing counted",
        "Hugging Face: `eval_samples_per_second` and `test_samples_per_second` of `Trainer.evaluate` and "
        "`Trainer.predict` after two batches of warm-up: tokens ready, loss (and accuracy) in evaluation counted, "
        "nothing else; answers are not made of SQuAD's logits, and the loss of windows counts padded positions",
        "best setting: sorted by length and padded to a batch's longest; batch size the fastest of "
        f"{options.peer_eval_batch_sizes.replace(',', ', ')}; bf16: `bf16_full_eval`",
        "The limit: what has to be multiplied (real tokens; the last layer of classification at `[CLS]` alone) at the "
        "rate of products of 2048 x 2048 matrices, measured after each run of either side; in bf16 the peak of "
        "multiplications in registers, which no product reaches. Exponentials, activations and bytes cost nothing in "
        "it. At the limit: how many times Hugging Face's evaluation that would be, the run's rate by its speed",
        *repeats(options, works)
    ], peer_versions(sides for _, sides, _ in results), {
        "inference": table(results), "inference-ratios": goals_table(results), "inference-limits": limits_table(results)
    })


def check_same_work(work, sides):
    """Checks that both sides computed the same: the number of sequences and, for labels, the fp32 loss. The peer's
    loss of windows includes padded positions, so it is equal only without padding."""
    counts = {result["sequences"] for runs in sides.values() for result in runs}
    if len(counts) > 1:
        fail(f"{work.name}: the sides have different numbers of sequences: {sorted(counts)}")
    if work.kind == "squad":
        return
    losses = [result["loss"] for name in ("fp32", "hf-fp32") for result in sides.get(name, [])]
    if losses and max(losses) - min(losses) > 1e-3 * max(losses):
        fail(f"{work.name}: the sides have different losses: {min(losses):.5f} and {max(losses):.5f}")


def table(results):
    lines = ["| work | side | evaluation, sequences/s (min / median / max) | evaluate command | predict "
             "| peak memory | loss | sequences |", "|---|---|---|---|---|---|---|---|"]
    for work, sides, _ in results:
        for name, runs in sides.items():
            side, size = SIDES[name], ""
            values = {key: spread([r[key] for r in runs], 1) for key in ("evaluate", "predict")}
            if side.ours:
                loop, command = spread([r["loop"] for r in runs], 1), values["evaluate"]
            else:
                loop, command = values["evaluate"], ""
                size = f", batch {'/'.join(str(n) for n in sorted({r['batch_size'] for r in runs}))}"
            lines.append(f"| {work.title} | {side.title}{size} | {loop} | {command} | {values['predict']} "
                         f"| {median(runs, 'peak_memory_mb'):,.0f} MiB | {median(runs, 'loss'):.4f} "
                         f"| {runs[0]['sequences']:,} |")
    return lines


def goals_table(results):
    lines = ["| work | what | ours | against | goal | reached (min / median / max of pairs) |", "|---|---|---|---|---|---|"]
    for work, sides, _ in results:
        for which in MEASURES:
            for ours, theirs in [("fp32", "hf-fp32"), ("bf16", faster_peer(sides, which.theirs))]:
                if not sides.get(ours) or not sides.get(theirs):
                    continue
                ratios = [a[which.ours] / b[which.theirs] for a, b in zip(sides[ours], sides[theirs])]
                lines.append(f"| {work.title} | {which.title} | {SIDES[ours].title} | {SIDES[theirs].title} "
                             f"| ≥ {GOAL} | {spread(ratios, 2)} |")
    return lines


def limits_table(results):
    lines = ["| work | precision | GFLOP a sequence | the rate, GFLOP/s | at the limit, times HF "
             "| finetune, % of the limit | HF, % of the limit |", "|---|---|---|---|---|---|---|"]
    for work, sides, config in results:
        for name, peer in (("fp32", "hf-fp32"), ("bf16", "hf-bf16")):
            if not sides.get(name) or not sides.get(peer):
                continue
            flops = needed_flops(work, config, sides[peer][0]) / sides[peer][0]["sequences"]
            ours = [100 * run["loop"] * flops / run["rate"] for run in sides[name]]
            theirs = [100 * run["evaluate"] * flops / run["rate"] for run in sides[peer]]
            rates = [1e-9 * run["rate"] for run in (*sides[name], *sides[peer])]
            lines.append(f"| {work.title} | {name} | {1e-9 * flops:.3f} | {spread(rates, 0)} "
                         f"| {spread([100 / share for share in theirs], 2)} | {spread(ours, 1)} | {spread(theirs, 1)} |")
    return lines
