#!/usr/bin/env python3
"""Predicts steps and inference on a GPU, launch by launch, and what each change would gain.

A launch costs LAUNCH, plus its bytes at the memory's rate or its products at the tensor cores' rate. Nothing is fitted:
the predictions of the four works are within 9 to 17 % of the H200's measured steps (docs/benchmarks/gpu-ratios.csv).
If a change was measured (docs/benchmarks/gpu-changes.csv, by gpu_day_tables.py), the figure is printed, too.

  gpu_model.py                      all works on an H200: the step's parts, each change, and all together
  gpu_model.py --gpu h100 --work base-squad-32
"""
import argparse
import csv
import math
from collections import namedtuple
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"

# --- constants of the machine

# Bytes a second that a kernel reaches (90 % of a measured copy's), and operations a second of large bf16 products.
Gpu = namedtuple("Gpu", "name bandwidth products")
GPUS = {"h200": Gpu("H200", 0.9 * 4.3e12, 795e12), "h100": Gpu("H100", 0.9 * 3.0e12, 798e12)}
MULTIPROCESSORS = 132
LAUNCH = 1.6e-6         # seconds from kernel to kernel in a graph, with the ramp of the second
SMALL_KERNEL = 1.8e-6   # a kernel of few bytes
PRODUCT_START = 3.2e-6  # a product's prologue and epilogue
SPLIT_K = 2.5e-6        # the sum of a product cut along K
SPLIT_K_RATE = 5e12     # bytes a second of the partial results, which fit in the cache
TILE_RATE = 1.08        # a tile's rate when no other tile waits, as a fraction of that of large products
# Rows and columns of a tile, and its rate as a fraction of the best.
TILES = ((128, 256, 1.0), (256, 128, 1.0), (128, 192, .97), (192, 128, .97), (128, 128, .88), (64, 256, .86),
         (64, 128, .72), (64, 64, .5))
LONG, SHORT = (230e12, 210e12), (60e12, 55e12)  # attention forward and backward, operations a second
ATTENTION_START = 2e-6
MASK_BIT = 115 / 32 * 1.6 / (MULTIPROCESSORS * 4 * 1.7e9) / 8  # seconds per dropout bit: instructions of Philox
NORM_RATE = 0.65        # fraction of the bandwidth that loads of 4 bytes reach

# --- constants of the changes

OVERLAP = 0.6       # fraction that other work fills of the time in which weights' gradients leave multiprocessors idle
NORM_BESIDE = 0.6   # fraction of the norm's time that the backward pass hides
ADAMW_STRIDE = 0.09  # fraction of AdamW's time that is lost because each thread reads 32 bytes

# Layers, width and heads; sequences, tokens and sum of squared lengths of a mean step; the longest sequence, as most
# steps round it up (data/packing.cpp); whether the last layer computes first tokens only; rows of the word embedding
# that a step touches.
Work = namedtuple("Work", "name layers width heads sequences tokens squares longest first_only words")
WORKS = [
    Work("minilm-bank-32", 6, 384, 12, 32, 432, 32 * 230, 32, True, 190),
    Work("base-bank-256", 12, 768, 12, 256, 3456, 256 * 230, 64, True, 900),
    Work("base-squad-32", 12, 768, 12, 32, 5568, 32 * 33500, 384, False, 1900),
    Work("large-squad-32", 24, 1024, 16, 32, 5568, 32 * 33500, 384, False, 1900),
]
INFERENCE = [
    Work("minilm-bank", 6, 384, 12, 512, 6784, 512 * 230, 64, True, 0),
    Work("base-squad", 12, 768, 12, 93, 16384, 93 * 35245, 384, False, 0),
    Work("large-squad", 24, 1024, 16, 58, 10176, 58 * 35245, 384, False, 0),
]
TITLES = {"minilm-bank-32": "MiniLM-L6 shape, bank text, batch 32", "base-bank-256": "BERT-base shape, bank text, batch 256",
          "base-squad-32": "BERT-base shape, SQuAD 384, batch 32", "large-squad-32": "BERT-large shape, SQuAD 384, batch 32"}
VOCABULARY = 30522


def heads_of_a_block(work):
    """As src/ops/cuda/attention/attention.h has it."""
    if work.longest <= 16:
        return 4
    return 2 if work.longest <= 32 or (work.longest <= 64 and work.sequences * work.heads >= 2048) else 1


class Model:
    """Seconds and launches of one pass, by part. `changes`: the names in CHANGES that are applied."""

    def __init__(self, gpu, work, training, changes=()):
        self.gpu, self.work, self.changes, self.parts, self.idle = gpu, work, set(changes), {}, 0.0
        self.training = training
        for layer in range(work.layers):
            self.layer(work.first_only and layer == work.layers - 1)
        self.ends()

    def add(self, part, seconds, count=1):
        launches, total = self.parts.get(part, (0, 0.0))
        self.parts[part] = (launches + count, total + seconds * count)

    def seconds(self):
        total = sum(seconds for _, seconds in self.parts.values())
        return total - (OVERLAP * self.idle if "streams" in self.changes else 0)

    def launches(self):
        return sum(count for count, _ in self.parts.values())

    def moved(self, size):
        return size / self.gpu.bandwidth + SMALL_KERNEL + LAUNCH

    def product(self, m, n, k, result_bytes=2, added=False):
        """Returns the seconds with the best tile and cuts along K. A partial wave of tiles costs as much as a whole."""
        rate, best = self.gpu.products / MULTIPROCESSORS * TILE_RATE, math.inf
        for rows, cols, share in TILES:
            tiles = math.ceil(m / rows) * math.ceil(n / cols)
            for cut in (1, 2, 3, 4, 6, 8):
                if cut > 1 and k / cut < 256:
                    continue
                waves = math.ceil(tiles * cut / MULTIPROCESSORS)
                seconds = waves * 2 * rows * cols * (k / cut) / (rate * share) + PRODUCT_START
                if cut > 1:
                    seconds += 2 * cut * m * n * 4 / SPLIT_K_RATE + SPLIT_K
                best = min(best, seconds)
        size = 2 * (m * k + k * n) + m * n * result_bytes * (2 if added else 1)
        return max(best, size / self.gpu.bandwidth + 2e-6) + LAUNCH

    def weight_gradient(self, out, into, rows, summed=False):
        """`summed`: with the change "sums", the kernel that makes the rows also sums the bias's gradient."""
        seconds = self.product(out, into, rows, 4)
        self.add("weights' gradients", seconds)
        self.idle += seconds - 2 * out * into * rows / self.gpu.products
        if summed and "sums" in self.changes:
            return
        self.add("column sums", self.moved(rows * out * 2))
        self.add("column sums", self.moved(math.ceil(rows / 64) * out * 4))

    def mask(self, elements):
        seconds = max(2.5e-6, self.work.heads * elements * MASK_BIT)
        if "masks" in self.changes:
            seconds = max(2.5e-6, seconds / heads_of_a_block(self.work))  # fewer warps are idle
        self.add("dropout masks", seconds + SMALL_KERNEL + LAUNCH)

    def attention(self, elements, factor, backward):
        work = self.work
        rate = (LONG if work.longest > 128 else SHORT)[backward]
        size = (8 if backward else 4) * work.tokens * work.width * 2
        part = "attention, backward" if backward else "attention, forward"
        self.add(part, max(factor * work.width * elements / rate, size / self.gpu.bandwidth) + ATTENTION_START + LAUNCH)

    def layer(self, last):
        work, width, wide = self.work, self.work.width, 4 * self.work.width
        tokens, rows = work.tokens, work.sequences if last else work.tokens
        elements = work.sequences * math.sqrt(work.squares / work.sequences) if last else work.squares
        forward = "products, forward"
        if last:
            self.add(forward, self.product(tokens, 2 * width, width))
            self.add(forward, self.product(rows, width, width))
            self.add("rest", self.moved(14 * rows * width))
        else:
            self.add(forward, self.product(tokens, 3 * width, width))
        if self.training:
            self.mask(elements)
        self.attention(elements, 4, False)
        self.add(forward, self.product(rows, width, width, 4))
        norm = rows * width * (18 if self.training else 14)
        self.add("layer norm, forward", self.moved(norm), 2)
        self.add(forward, self.product(rows, wide, width))
        self.add("activation, forward", self.moved(4 * rows * wide))
        self.add(forward, self.product(rows, width, wide, 4))
        if self.training:
            self.backward(last, rows, elements)

    def backward(self, last, rows, elements):
        work, width, wide, tokens = self.work, self.work.width, 4 * self.work.width, self.work.tokens
        sums = "sums" in self.changes
        partial = math.ceil(rows / (16 if rows > 2048 else 4)) * (3 if sums else 2) * width * 4
        self.add("layer norm, backward", self.moved(rows * width * 14 + partial), 2)
        self.add("column sums", self.moved(partial), 2)
        if sums:
            self.add("column sums", self.moved(math.ceil(rows / 64) * wide * 4))
        inputs = "inputs' gradients"
        self.add(inputs, self.product(rows, wide, width))
        self.add("activation, backward", self.moved(rows * wide * (6 if "kept" in self.changes else 8)))
        self.weight_gradient(width, wide, rows, summed=True)
        self.add(inputs, self.product(rows, width, wide, 4, True))
        self.weight_gradient(wide, width, rows, summed=True)
        self.add(inputs, self.product(rows, width, width))
        self.weight_gradient(width, width, rows, summed=True)
        self.add("attention, backward", self.moved(rows * width * 4))
        if "masks" not in self.changes:  # with it, the backward pass reads the forward pass's bits
            self.mask(elements)
        self.attention(elements, 14, True)
        if last:
            self.add(inputs, self.product(tokens, width, 2 * width, 4))
            self.add(inputs, self.product(rows, width, width, 4, True))
            self.weight_gradient(width, width, rows)
            self.weight_gradient(2 * width, width, tokens)
            self.add("rest", self.moved(12 * rows * width))
        else:
            self.add(inputs, self.product(tokens, width, 3 * width, 4, True))
            self.weight_gradient(3 * width, width, tokens)

    def ends(self):
        work, size = self.work, self.work.tokens * self.work.width
        self.add("rest", self.moved(8 * size))
        self.add("layer norm, forward", self.moved(12 * size))
        if work.first_only:
            head = self.product(work.sequences, work.width, work.width, 4)
            self.add("products, forward", head, 2)
            small = self.moved(work.sequences * work.width * 8)
            self.add("rest", small, 13 if self.training else 3)
            if self.training:
                self.add("inputs' gradients", head, 2)
                self.add("weights' gradients", self.product(work.width, work.width, work.sequences, 4), 2)
        else:
            self.add("rest", self.moved(6 * size), 2)
        if self.training:
            self.update(size)

    def update(self, size):
        work = self.work
        dense, words = 12 * work.layers * work.width**2, VOCABULARY * work.width
        self.add("rest", self.moved(8 * size), 2 if work.first_only else 6)
        self.add("layer norm, backward", self.moved(14 * size))
        self.add("column sums", self.moved(1e6))
        self.add("embeddings, backward", self.moved(28 * size) + 10e-6)
        norm = (self.moved(4 * dense) + self.moved(4 * words)) / NORM_RATE + 6e-6
        self.add("norm", norm / 3 * (1 - NORM_BESIDE if "norm" in self.changes else 1), 3)
        adamw = self.moved(30 * dense) + self.moved(28 * work.words * work.width) + \
            self.moved(24 * (work.words + VOCABULARY / 256) * work.width)
        self.add("adamw", adamw / 3 * (1 - ADAMW_STRIDE if "adamw" in self.changes else 1), 3)
        self.add("uploads, losses", 9 * LAUNCH + 16e-6)

    def operations(self):
        work = self.work
        dense = 12 * work.layers * work.width**2
        once = 2 * dense * work.tokens + 4 * work.width * work.squares * work.layers
        if work.first_only:
            once -= 20 * work.width**2 * (work.tokens - work.sequences)
        return once * (3 if self.training else 1)


CHANGES = {
    "masks": "dropout masks once, a warp per short head",
    "sums": "bias sums in the kernels that make their rows",
    "kept": "the activation's result is kept",
    "adamw": "AdamW's loads coalesced",
    "streams": "weights' gradients on a second stream",
    "norm": "the norm beside the backward pass",
}


def measured_steps():
    """Returns the measured milliseconds of a step on an H200 by the work's title."""
    path = BENCHMARKS / "gpu-ratios.csv"
    rows = csv.DictReader(path.open(encoding="utf-8")) if path.exists() else []
    return {row["work"]: 1e3 * int(row["work"].split()[-1]) / float(row["reached"]) for row in rows
            if row["machine"] == "h200"}


def measured_changes():
    """Returns the measured milliseconds that a change saves, by (work, change)."""
    path = BENCHMARKS / "gpu-changes.csv"
    rows = csv.DictReader(path.open(encoding="utf-8")) if path.exists() else []
    return {(row["work"], row["change"]): float(row["saved, ms"]) for row in rows}


def describe(gpu, work, steps, changed):
    base = Model(gpu, work, True)
    known = steps.get(TITLES[work.name]) if gpu.name == "H200" else None
    print(f"== {gpu.name} {work.name}: {1e3 * base.seconds():.2f} ms in {base.launches()} launches"
          + (f", measured {known:.2f} ms" if known else "")
          + f"; products alone {1e3 * base.operations() / gpu.products:.2f} ms")
    for part, (count, seconds) in sorted(base.parts.items(), key=lambda item: -item[1][1]):
        print(f"   {part:22} {count:4} launches {1e3 * seconds:7.3f} ms {100 * seconds / base.seconds():5.1f} %")
    for change, meaning in CHANGES.items():
        saved = 1e3 * (base.seconds() - Model(gpu, work, True, [change]).seconds())
        found = changed.get((work.name, change))
        print(f"   - {change:9} {saved:6.3f} ms saved" + (f", measured {found:.3f}" if found is not None else "")
              + f": {meaning}")
    all_made = Model(gpu, work, True, CHANGES).seconds()
    scale = known / 1e3 / base.seconds() if known else 1  # corrects the model's error for today's step
    print(f"   = all: {1e3 * all_made:.2f} ms, {work.sequences / (all_made * scale):,.0f} samples/s expected")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=sorted(GPUS), default="h200")
    parser.add_argument("--work", choices=[work.name for work in WORKS], help="default: all")
    options = parser.parse_args()
    gpu, steps, changed = GPUS[options.gpu], measured_steps(), measured_changes()
    for work in WORKS:
        if options.work in (None, work.name):
            describe(gpu, work, steps, changed)
    if options.work:
        return
    print("== inference, a micro-batch")
    for work in INFERENCE:
        model = Model(gpu, work, False)
        least = model.operations() / gpu.products
        print(f"   {work.name:12} {1e3 * model.seconds():6.2f} ms in {model.launches()} launches, "
              f"{work.sequences / model.seconds():,.0f} sequences/s; products alone {work.sequences / least:,.0f}")


if __name__ == "__main__":
    main()
