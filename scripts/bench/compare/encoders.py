"""Architectures beside BERT: steps of training at random weights, in processor time.

Each side has one thread. Processor time is comparable even on a busy machine. The peer measures its steps by a clock
of processor time; for ours, the time of a run with a single step is subtracted from that of a long run.
"""
import csv
import json
import sys

from compare.harness import BENCH, call, fail, progress, require, spread
from compare.works import SIDES, WORKS, Work, faster_peer, in_turn, median, peer_versions

sys.path.insert(0, str(BENCH))
from hf_shapes import ARCHITECTURES  # noqa: E402

VOCABULARIES = BENCH.parents[2] / "shared" / "tokenizers"
LONG = [Work("minilm-long", "", "minilm", "long", 2), Work("base-long", "", "base", "long", 2)]
TITLES = {"bank": "bank text", "squad": "SQuAD 384", "long": "2048 tokens"}
SHAPES = {"minilm": "small", "base": "base"}
MEMORY_GOAL = 0.5
TIMES_THE_STEPS = {"minilm": 8, "base": 3}  # our steps for each of the peer's, to outweigh the noise of a start
LONG_ROWS, LONG_TOKENS, CHARACTERS = 64, 2048, 14000
NOT_TO_COMPARE = {"nomic_bert": {"squad"}}  # transformers 5.24 has no class for these questions


def works_of(architecture, names):
    """Only ModernBERT gets long texts: the others accept 512 tokens at most."""
    kinds = {"bank", "squad"} | ({"long"} if architecture == "modernbert" else set())
    kinds -= NOT_TO_COMPARE.get(architecture, set())
    return [work for work in (*WORKS, *LONG) if work.name in names and work.kind in kinds]


def title(work):
    return f"{SHAPES[work.model]} shape, {TITLES[work.kind]}, batch {work.batch_size}"


def goal(architecture, work):
    if work.kind == "long":
        return 3
    return 4 if architecture == "deberta-v2" else 2


def check(options, names):
    for name in names:
        if name not in ARCHITECTURES:
            fail(f"--architecture {name}: known are {', '.join(ARCHITECTURES)}")
    require(options.bank, options.squad, VOCABULARIES)
    if options.steps < 2:
        fail("--steps: at least 2, since the first is not counted")


def model_of(bench, architecture, shape):
    made = bench.scratch / f"{architecture}-{shape}"
    if not (made / "tokenizer.json").exists():
        unfinished = bench.scratch / f"{architecture}-{shape}.unfinished"
        call([bench.options.peer_python, BENCH / "hf_peer.py", "--model", VOCABULARIES, "--make-shape", shape,
              "--architecture", architecture, "--output", unfinished])
        unfinished.rename(made)
    return made


def long_texts(bench):
    """Joins paragraphs of SQuAD and cuts them into texts of more than 2,048 tokens each."""
    path = bench.temporary / "long.csv"
    if not path.exists():
        articles = json.loads(bench.options.squad.read_text(encoding="utf-8"))["data"]
        words = " ".join(paragraph["context"] for article in articles for paragraph in article["paragraphs"])
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["text", "category"])
            rows.writerows([words[at * CHARACTERS:(at + 1) * CHARACTERS], "ab"[at % 2]]
                           for at in range(min(LONG_ROWS, len(words) // CHARACTERS)))
    return path


def data_of(bench, work):
    return long_texts(bench) if work.kind == "long" else bench.training_data(work.kind)


def columns_of(bench, work):
    return ["--text-column", "text", "--label-column", "category"] if work.kind == "long" else bench.columns()


def steps_of(options, work):
    return options.squad_steps if work.kind != "bank" and options.squad_steps else options.steps


def length_of(work):
    return ["--max-length", LONG_TOKENS] if work.kind == "long" else []


def run_once(bench, model, work, side, steps):
    """Returns processor seconds, real tokens of all steps, and memory in MiB."""
    run = bench.temporary / "run"
    command = ["train", "--model", model, "--train", data_of(bench, work), "--output", run, "--overwrite", "--recipe",
               "hf", "--batch-size", work.batch_size, "--epochs", 1, "--max-train-samples", steps * work.batch_size,
               "--lr", 5e-5, "--reinit-head", "--save-every", 10**9, "--no-progress", "--precision", side.precision,
               "--threads", 1, "--device", "cpu", *length_of(work)]
    if work.kind != "squad":
        command += ["--task", "classification", *columns_of(bench, work)]
    finished = bench.ours(command)
    with open(run / "metrics.jsonl", encoding="utf-8") as log:
        entries = [entry for entry in map(json.loads, log) if "loss" in entry]
    tokens = sum(entry["tokens_per_second"] / entry["samples_per_second"] * work.batch_size for entry in entries)
    return finished.processor_seconds, tokens, finished.memory_mb


def run_ours(bench, model, work, side):
    steps = steps_of(bench.options, work) * TIMES_THE_STEPS[work.model]
    seconds, tokens, memory = run_once(bench, model, work, side, steps)
    first_seconds, first_tokens, _ = run_once(bench, model, work, side, 1)
    return {"tokens_per_second": (tokens - first_tokens) / (seconds - first_seconds), "peak_memory_mb": memory}


def run_peer(bench, model, work, side):
    finished, result = bench.peer("hf_peer.py", [
        "--model", model, "--data", data_of(bench, work), "--rows", steps_of(bench.options, work) * work.batch_size,
        "--batch-size", work.batch_size, "--padding", side.padding, "--clock", "cpu", "--threads", 1, "--device", "cpu",
        *length_of(work), *columns_of(bench, work), *(["--bf16"] if side.precision == "bf16" else [])])
    return {**result, "peak_memory_mb": finished.memory_mb}


def measure(bench, architecture, names):
    options = bench.options
    sides = [name for name in options.sides if SIDES[name].padding != "max"]
    results = []
    for work in works_of(architecture, names):
        model = model_of(bench, architecture, work.model)
        results.append((work, in_turn(
            sides, options.runs,
            lambda side, _: run_ours(bench, model, work, side),
            lambda side, _: run_peer(bench, model, work, side),
            lambda number, side, result: progress(
                f"{architecture} {work.name} run {number + 1}/{options.runs} {side.title}: "
                f"{result['tokens_per_second']:.0f} tokens/s, {result['peak_memory_mb']:.0f} MiB"))))
    return bench.section(f"Training of {architecture} beside Hugging Face Trainer", [
        f"{options.runs} runs a side, in turn, one thread each; random weights; real tokens per second of processor time, "
        "without the first step",
        "transformers: batches of similar length (`group_by_length`), SDPA attention where the model has it; in bf16 the "
        "faster of fp32 and bf16"], peer_versions(sides for _, sides in results),
        {"encoders": table(architecture, results)}, key=("machine", "architecture", "work", "ours"))


def table(architecture, results):
    lines = ["| architecture | work | ours | against | finetune, tokens/s (median) | transformers, tokens/s (median) "
             "| goal | reached (min / median / max of pairs) | finetune, MiB | transformers, MiB | memory | memory goal |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for work, sides in results:
        for ours, theirs in (("fp32", "hf-fp32"), ("bf16", faster_peer(sides, "tokens_per_second"))):
            if ours not in sides or theirs not in sides:
                continue
            pair = sides[ours], sides[theirs]
            ratios = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(*pair)]
            speed, memory = ([median(side, key) for side in pair] for key in ("tokens_per_second", "peak_memory_mb"))
            lines.append(f"| {architecture} | {title(work)} | {SIDES[ours].title} | {SIDES[theirs].title} "
                         f"| {speed[0]:.0f} | {speed[1]:.0f} | ≥ {goal(architecture, work)} | {spread(ratios, 2)} "
                         f"| {memory[0]:.0f} | {memory[1]:.0f} | {memory[0] / memory[1]:.2f} | ≤ {MEMORY_GOAL} |")
    return lines
