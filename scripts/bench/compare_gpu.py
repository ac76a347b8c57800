#!/usr/bin/env python3
"""Measures finetune on a GPU beside PyTorch and transformers, and writes tables.

Run it through compare_gpu.sh. The sides run in turn on the same GPU. No network is needed: models have
random weights, the shapes of MiniLM-L6, BERT-base and BERT-large, and the tokenizer of --model.
"""
import argparse
import signal
import tempfile
from pathlib import Path

from compare import document, gpu
from compare.harness import Bench, fail, names_of, progress, require
from compare.options import DATA, add_common, add_data, add_inference, add_training, require_positive


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DATA.parent / "tokenizers" / "bert-base-uncased", type=Path,
                        help="a directory with the tokenizer of BERT")
    add_common(parser, gpu.WORKS)
    add_data(parser)
    group = parser.add_argument_group("training and inference")
    group.add_argument("--sides", default=",".join(gpu.SIDES))
    add_training(group, 220)
    group.add_argument("--uncounted", type=int, default=40, help="first steps of a run, in which torch compiles")
    add_inference(group, 30, "64,256")
    parser.set_defaults(device="cuda", random_shapes=["minilm", "base", "large"], default_steps=0)
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: fail("terminated"))
    options = parse_arguments()
    known = {work.name: work for work in gpu.WORKS}
    works = [known[name] for name in names_of("--works", options.works, known)]
    options.sides = names_of("--sides", options.sides, gpu.SIDES)
    require_positive(options, "runs", "uncounted")
    if min(options.steps, options.squad_steps or options.steps) <= options.uncounted:
        fail(f"--steps: more than --uncounted {options.uncounted}")
    require(options.binary, options.model)
    gpu.check(options, works)
    with tempfile.TemporaryDirectory(prefix="compare-gpu-") as temporary:
        bench, section = Bench(options, Path(temporary)), None
        for section in gpu.measure(bench, works):
            if options.output.is_dir():
                document.write(options.output, bench.machine, "gpu", section)
        if options.output.is_dir():
            print(section.text(), flush=True)
        else:
            document.write(options.output, bench.machine, "gpu", section)
        progress(f"written to {options.output}")


try:
    main()
except KeyboardInterrupt:
    fail("interrupted")
