#!/usr/bin/env python3
"""Measures the speed of Hugging Face tokenizers, as a peer to measure against.

Prints one JSON object. RAYON_NUM_THREADS and TOKENIZERS_PARALLELISM set the number of threads.

  hf_tokenizer.py --model DIR --lines texts.txt            MB/s of the fastest pass, ids and offsets
  hf_tokenizer.py --model DIR --questions train-v1.1.json  seconds of the calls that make windows
"""
import argparse
import json
import os
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")

SECONDS, PASSES = 2, 2  # each measurement takes at least this long and has at least so many passes
BATCH = 1000  # texts per call; a single call for all is slower, because its results outgrow the caches


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--lines", help="text file, a text a line")
    parser.add_argument("--questions", help="SQuAD JSON")
    parser.add_argument("--rows", type=int, default=0, help="first N questions; 0: all")
    parser.add_argument("--threads", type=int, default=0, help="must agree with RAYON_NUM_THREADS")
    parser.set_defaults(max_length=384, doc_stride=128, padding="dynamic")
    options = parser.parse_args()
    if options.threads and os.environ.get("RAYON_NUM_THREADS") != str(options.threads):
        parser.error(f"RAYON_NUM_THREADS is not {options.threads}")
    return options


def batches(items):
    return [items[i:i + BATCH] for i in range(0, len(items), BATCH)]


def pass_over(tokenizer, lines, read):
    """Returns the seconds of one pass over the lines, and the number of tokens."""
    tokens = 0
    start = time.perf_counter()
    for batch in lines:
        for encoding in tokenizer.encode_batch(batch, add_special_tokens=False):
            tokens += len(encoding)
            if read:
                encoding.ids, encoding.offsets
    return time.perf_counter() - start, tokens


def lines_result(options):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(options.model, "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    with open(options.lines, encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n") for line in file]
    lines = [line for line in lines if line]
    size = sum(len(line.encode()) for line in lines) / 1e6
    best, tokens = {}, 0
    for read in (False, True):
        seconds = []
        while sum(seconds) < SECONDS or len(seconds) < PASSES:
            taken, tokens = pass_over(tokenizer, batches(lines), read)
            seconds.append(taken)
        best[read] = size / min(seconds)
    return {"megabytes": size, "tokens": tokens, "megabytes_per_second": best[False],
            "read_megabytes_per_second": best[True]}


def questions_result(options):
    from hf_data import encoded_windows, read_questions
    from transformers import AutoTokenizer
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    questions = batches(read_questions(options.questions, options.rows))
    windows, start = 0, time.perf_counter()
    for batch in questions:
        windows += len(encoded_windows(options, tokenizer, batch)["input_ids"])
    return {"windows": windows, "seconds": time.perf_counter() - start}


def main():
    options = parse_arguments()
    import tokenizers
    result = lines_result(options) if options.lines else questions_result(options)
    print(json.dumps({**result, "tokenizers": tokenizers.__version__}))


main()
