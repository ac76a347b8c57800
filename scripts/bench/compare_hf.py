#!/usr/bin/env python3
"""Measures finetune beside Hugging Face on the same rows, in turn, and writes tables.

Run it through compare_hf.sh, which finds the peer's Python. Every figure of a table is measured in
this run. The parts, each written when it is done:

  training    one epoch over the first rows, samples and real tokens a second
  masked      one epoch of masked words (adapt) over the first texts
  inference   evaluation and prediction with the same fine-tuned directory
  whole       a whole run over the bank text: one epoch, evaluated; wall time and accuracy
  startup     from the start of the process to the first step
  tokenizer   text to ids and offsets with one thread; SQuAD to windows with two
  shares      a step's share of the machine's matrix-product rate, its operations, and their bound (no peer)

With --architecture none of these parts run, but training steps of each named architecture with random weights.
"""
import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path

from compare import document, encoders, inference, masked, shares, startup, tokenizer, training, whole
from compare.harness import Bench, fail, names_of, progress, require
from compare.options import DATA, add_common, add_data, add_inference, add_training, require_positive
from compare.works import SIDES, WORKS

# Environment variables that make finetune, PyTorch, oneDNN and MKL use the instructions of older processors.
HELD_TO = {"avx2": {"FINETUNE_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
                    "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}

PARTS = {"training": training, "masked": masked, "inference": inference, "whole": whole, "startup": startup,
         "tokenizer": tokenizer, "shares": shares}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--model", type=Path, help="MiniLM's directory; its tokenizer serves base too")
    parser.add_argument("--architecture", help="e.g. roberta,modernbert; all: every one of hf_shapes.py")
    parser.add_argument("--isa", choices=HELD_TO,
                        help="holds both sides to it, on a processor that has more; it is part of the "
                             "rows' part, as another --text-column is")
    add_common(parser, WORKS)
    parser.set_defaults(device="cpu", random_shapes=["base"], works=None)

    group = add_data(parser)
    group.add_argument("--squad-train", default=DATA / "squad" / "train-v1.1.json", type=Path, help="whole")
    group.add_argument("--udhr", default=DATA / "text" / "udhr" / "udhr2.zip", type=Path,
                       help="zip of text files, one a language")

    group = parser.add_argument_group("training and inference")
    group.add_argument("--sides", default=",".join(SIDES),
                       help="best setting: group by length; default: padded, in training alone")
    add_training(group, 60)
    group.add_argument("--default-steps", type=int, default=0, help="of a run of the padded peer; 0: --steps")
    add_inference(group, 1, "8,64")

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
    require_positive(options, "whole_runs", "startup_rows")
    if not options.model:
        fail("--model: MiniLM's directory is needed")
    require(options.binary, options.model)
    for part in parts:
        part.check(options, works)


def write(bench, part, section):
    """Writes a section to --output and, if that is a folder, to the terminal too."""
    output = bench.options.output
    document.write(output, bench.machine, part, section)
    if output.is_dir():
        print(section.text(), flush=True)
    progress(f"{part}: written to {output}")


def measure_encoders(bench, works):
    options = bench.options
    names = list(encoders.ARCHITECTURES) if options.architecture == "all" else options.architecture.split(",")
    encoders.check(options, names)
    for name in names:
        write(bench, "encoders", encoders.measure(bench, name, [work.name for work in works]))


def own_marks(options):
    """Options other than the default, which become part of a part's name in the files."""
    return [mark for mark in (options.isa, options.text_column) if mark not in (None, "text")]


def main():
    # Raises an exception, so that the running side is ended and the temporary directory removed.
    signal.signal(signal.SIGTERM, lambda *_: fail("terminated"))
    options = parse_arguments()
    names = names_of("--parts", options.parts, PARTS)
    parts = [PARTS[name] for name in names]
    known = {work.name: work for work in (*WORKS, *(encoders.LONG if options.architecture else []))}
    if options.works is None:
        options.works = ",".join(known)
    works = [known[name] for name in names_of("--works", options.works, known)]
    options.sides = names_of("--sides", options.sides, SIDES)
    require_positive(options, "runs")
    if not options.architecture:
        check(options, parts, works)
    if options.isa:
        os.environ.update(HELD_TO[options.isa])
    with tempfile.TemporaryDirectory(prefix="compare-hf-") as temporary:
        bench = Bench(options, Path(temporary))
        if options.architecture:
            return measure_encoders(bench, works)
        for name, part in zip(names, parts):
            write(bench, ", ".join([name, *own_marks(options)]), part.measure(bench, works))


try:
    main()
except KeyboardInterrupt:
    fail("interrupted")
