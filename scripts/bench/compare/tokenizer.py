"""Tokenizer speed: text to ids with one thread, SQuAD's training file to windows with two."""
import csv
import json
import shutil
import zipfile

from compare.harness import progress, require, spread
from compare.works import WORKS, median

TEXTS = {  # title, goal in MB/s
    "squad": ("SQuAD contexts", 100),
    "bank": ("bank text", 60),
    "udhr": ("Universal Declaration of Human Rights, all languages", 20),
}
RATIO = 25  # times the peer's speed
WINDOWS_SECONDS, WINDOWS_THREADS = 1.5, 2
ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
MORE_THREADS = {"TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": str(WINDOWS_THREADS)}
WORK = next(work for work in WORKS if work.name == "minilm-squad")


def check(options, _works):
    require(options.bank, options.squad_train, options.udhr)


def texts_of(options, name):
    if name == "squad":
        for article in json.loads(options.squad_train.read_text(encoding="utf-8"))["data"]:
            yield from (paragraph["context"] for paragraph in article["paragraphs"])
    elif name == "bank":
        with open(options.bank, encoding="utf-8", newline="") as file:
            yield from (row[options.text_column] for row in csv.DictReader(file))
    else:
        with zipfile.ZipFile(options.udhr) as archive:
            for entry in sorted(archive.namelist()):
                if entry.endswith(".txt"):
                    yield from archive.read(entry).decode("utf-8", errors="replace").splitlines()


def write_lines(options, name, path):
    """Writes the texts, one per line without empty lines, for both sides to read."""
    most = options.text_megabytes * 1e6 or float("inf")
    written = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for text in texts_of(options, name):
            line = " ".join(text.replace("\r", "\n").split("\n")).strip()
            if line:
                file.write(line + "\n")
                written += len(line.encode()) + 1
            if written >= most:
                break


def run_texts(bench, path):
    """Returns our figures and the peer's for one file, ours first."""
    model = bench.options.model
    ours = json.loads(bench.ours(["bench", "tokenizer", "--model", model, "--input", path, "--threads", 1,
                                  "--json"]).output)
    _, theirs = bench.peer("hf_tokenizer.py", ["--model", model, "--lines", path, "--threads", 1], ONE_THREAD)
    return ours, theirs


def run_windows(bench):
    """Times making windows. Ours: all that train does before its first step. The peer's: only tokenizer calls."""
    options, run = bench.options, bench.temporary / "run"
    limit = options.window_questions
    bench.train_ours(options.model, WORK, run, "fp32",
                     ["--max-steps", 1, "--reinit-head", "--threads", WINDOWS_THREADS,
                      *(["--max-train-samples", limit] if limit else [])], options.squad_train)
    ours = json.loads((run / "metrics.json").read_text())["startup_seconds"]
    shutil.rmtree(run)
    _, theirs = bench.peer("hf_tokenizer.py", ["--model", options.model, "--questions", options.squad_train,
                                               "--threads", WINDOWS_THREADS,
                                               *(["--rows", limit] if limit else [])], MORE_THREADS)
    return {"seconds": ours}, theirs


def measure(bench, _works):
    options, results = bench.options, []
    for name in TEXTS:
        path = bench.temporary / f"{name}.txt"
        write_lines(options, name, path)
        pairs = []
        for run in range(options.runs):
            pairs.append(run_texts(bench, path))
            ours, theirs = pairs[-1]
            progress(f"tokenizer {name} run {run + 1}/{options.runs}: finetune {ours['megabytes_per_second']:.1f} MB/s, "
                     f"HF {theirs['megabytes_per_second']:.2f} MB/s, read {theirs['read_megabytes_per_second']:.2f}")
        results.append((name, pairs))
    windows = []
    for run in range(-1, options.runs):  # the run before the first fills the page cache
        pair = run_windows(bench)
        if run >= 0:
            windows.append(pair)
        progress(f"windows run {run + 1}/{options.runs}: finetune {pair[0]['seconds']:.2f} s, "
                 f"HF {pair[1]['seconds']:.1f} s")
    versions = f"tokenizers {windows[-1][1]['tokenizers']}"
    return bench.section("Tokenizing beside Hugging Face tokenizers", [
        f"{options.runs} runs a side, in turn; MB are 10^6 bytes of UTF-8, a text a line, the same file on both sides; "
        "the fastest pass of a run counts on both sides",
        "One thread (Hugging Face: `TOKENIZERS_PARALLELISM=false`, `RAYON_NUM_THREADS=1`), ids and offsets, no special "
        "tokens; finetune: `finetune bench tokenizer`",
        "Hugging Face: `encode_batch` in batches of 1,000 lines (`encode_batch_fast` makes no offsets); read: "
        "`ids` and `offsets` of every encoding read into Python too",
        f"Windows: the whole of {options.squad_train.name}, windows of 384 tokens with 128 of overlap, "
        f"{WINDOWS_THREADS} threads, files in the page cache. finetune: from the start of the process to the first "
        "step of training, so loading the weights is counted too; Hugging Face: the calls of its tokenizer with "
        "offsets alone, without reading the file, finding answers or collating"],
        versions, {"tokenizer": table(results), "windows": windows_table(options, windows)})


def table(results):
    lines = ["| text | MB | tokens, finetune / HF | finetune, MB/s (min / median / max) | goal | HF, MB/s | HF, read, MB/s "
             "| times HF, read | times HF | goal |", "|---|---|---|---|---|---|---|---|---|---|"]
    for name, pairs in results:
        title, goal = TEXTS[name]
        ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
        rate = "megabytes_per_second"
        read = f"read_{rate}"
        tokens = f"{ours[0]['tokens']:,} / {theirs[0]['tokens']:,}"
        lines.append(
            f"| {title} | {ours[0]['bytes'] / 1e6:.1f} | {tokens} | {spread([a[rate] for a in ours], 1)} | ≥ {goal} "
            f"| {median(theirs, rate):.2f} | {median(theirs, read):.2f} "
            f"| {spread([a[rate] / b[read] for a, b in pairs], 1)} | {spread([a[rate] / b[rate] for a, b in pairs], 1)} "
            f"| ≥ {RATIO} |")
    return lines


def windows_table(options, pairs):
    what = f"{options.window_questions:,} questions" if options.window_questions else "all questions"
    return ["| SQuAD to windows | windows | finetune, s (min / median / max) | goal | HF, s (min / median / max) |",
            "|---|---|---|---|---|",
            f"| {what} of {options.squad_train.name} | {pairs[0][1]['windows']:,} "
            f"| {spread([a['seconds'] for a, _ in pairs], 2)} | < {WINDOWS_SECONDS} s "
            f"| {spread([b['seconds'] for _, b in pairs], 1)} |"]
