#!/usr/bin/env python3
"""Measures finetune beside Hugging Face on the same rows, in turn, and writes tables.

Run it through compare_hf.sh, which finds the peer's Python. Every figure of a table is measured in
this run. The parts, each a section of the document that is written when the part is done:

  training    one epoch over the first rows, samples and real tokens a second
  inference   evaluation and prediction with the same fine-tuned directory
  whole       a whole run over the bank text: one epoch, evaluated; wall time and accuracy
  startup     from the start of the process to the first step
  tokenizer   text to ids and offsets with one thread; SQuAD to windows with two
  shares      of the machine's matrix-product rate, operations, and the bound they set (no peer)
"""
import argparse
import signal
import sys
import tempfile
from pathlib import Path

from compare import document, inference, shares, startup, tokenizer, training, whole
from compare.harness import PROJECT, Bench, fail, names_of, progress, require
from compare.works import SIDES, WORKS

PARTS = {"training": training, "inference": inference, "whole": whole, "startup": startup,
         "tokenizer": tokenizer, "shares": shares}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = PROJECT.parent / "shared" / "data"
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--model", required=True, type=Path, help="MiniLM's directory; its tokenizer serves base too")
    parser.add_argument("--binary", default=PROJECT / "build" / "finetune", type=Path)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--works", default=",".join(work.name for work in WORKS),
                        help="of training, inference and shares")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--scratch", type=Path, help="keeps the base-shaped model between calls")
    parser.add_argument("--output", default=PROJECT / "docs" / "benchmarks.md", type=Path,
                        help="a part's section between its marks is replaced, or appended where it has none")

    group = parser.add_argument_group("data")
    group.add_argument("--bank", default=data / "toronto" / "train.csv", type=Path)
    group.add_argument("--bank-dev", default=data / "toronto" / "dev.csv", type=Path)
    group.add_argument("--text-column", default="text")
    group.add_argument("--label-column", default="category")
    group.add_argument("--squad", default=data / "squad" / "train-v1.1-4000.json", type=Path, help="to train on")
    group.add_argument("--squad-train", default=data / "squad" / "train-v1.1.json", type=Path, help="whole")
    group.add_argument("--squad-dev", default=data / "squad" / "dev-v1.1.json", type=Path)
    group.add_argument("--udhr", default=data / "text" / "udhr" / "udhr2.zip", type=Path,
                       help="zip of text files, one a language")

    group = parser.add_argument_group("training and inference")
    group.add_argument("--sides", default=",".join(SIDES),
                       help="best setting: group by length; default: padded, in training alone")
    group.add_argument("--steps", type=int, default=60, help="of a run of training")
    group.add_argument("--default-steps", type=int, default=0, help="of a run of the padded peer; 0: --steps")
    group.add_argument("--squad-steps", type=int, default=0, help="of a run on SQuAD; 0: --steps")
    group.add_argument("--eval-rows-scale", type=float, default=1,
                       help="times the rows that inference takes of each work")
    group.add_argument("--peer-eval-batch-sizes", default="8,64",
                       help="the peer's batch size in evaluation, e.g. 8,32,64: each is tried in every run, "
                            "and the fastest counts")

    group = parser.add_argument_group("whole, startup")
    group.add_argument("--whole-runs", type=int, default=3)
    group.add_argument("--whole-sides", default="fp32,bf16,hf-fp32,hf-bf16")
    group.add_argument("--whole-rows", type=int, default=0, help="of --bank; 0: all")
    group.add_argument("--whole-eval-rows", type=int, default=0, help="of --bank-dev; 0: all")
    group.add_argument("--startup-rows", type=int, default=8000)

    group = parser.add_argument_group("tokenizer, shares")
    group.add_argument("--text-megabytes", type=float, default=0, help="of each text file at most; 0: all")
    group.add_argument("--window-questions", type=int, default=0, help="of --squad-train; 0: all")
    group.add_argument("--share-steps", type=int, default=0, help="of a run; 0: as many as take 5 seconds")
    return parser.parse_args()


def check(options, parts, works):
    options.sides = names_of("--sides", options.sides, SIDES)
    for option in ("runs", "whole_runs", "startup_rows"):
        if getattr(options, option) < 1:
            fail(f"--{option.replace('_', '-')}: at least 1")
    require(options.binary, options.model)
    for part in parts:
        part.check(options, works)


def main():
    # As an exception, so that the side that runs is ended and the temporary directory removed.
    signal.signal(signal.SIGTERM, lambda *_: fail("terminated"))
    options = parse_arguments()
    names = names_of("--parts", options.parts, PARTS)
    parts = [PARTS[name] for name in names]
    known = {work.name: work for work in WORKS}
    works = [known[name] for name in names_of("--works", options.works, known)]
    check(options, parts, works)
    with tempfile.TemporaryDirectory(prefix="compare-hf-") as temporary:
        bench = Bench(options, Path(temporary))
        for name, part in zip(names, parts):
            text = part.measure(bench, works)
            document.write(options.output, name, text)
            if document.is_document(options.output):
                print(text, flush=True)
            progress(f"{name}: written to {options.output}")


try:
    main()
except KeyboardInterrupt:
    fail("interrupted")
