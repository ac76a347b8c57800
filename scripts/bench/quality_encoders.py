#!/usr/bin/env python3
"""Compares the accuracy of fine-tuned RoBERTa and ModernBERT with Hugging Face Trainer's.

    PEER_PYTHON=python3 scripts/bench/quality_encoders.py [--architectures roberta,modernbert] [--scratch DIR] ...

Small models are pretrained with `finetune adapt --reinit` on the Toronto texts. Both programs then fine-tune the same
weights on the first 4,000 rows with the same settings and seeds, and predict 4,000 development rows. Writes its rows to
docs/quality/encoders.csv. Models in the --scratch folder are not pretrained again.
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from compare.harness import BENCH, PROJECT, call, cpu_model

sys.path.insert(0, str(BENCH.parent / "plots"))
import csv_files  # noqa: E402

PRETRAINING = ["--distinct", "--eval-fraction", 0.02, "--batch-size", 64, "--lr", 1e-3, "--seed", 1]
SETTINGS = ["--batch-size", 32, "--lr", 5e-4]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architectures", default="roberta,modernbert")
    parser.add_argument("--binary", type=Path, default=PROJECT / "build/finetune")
    parser.add_argument("--peer-python", default=os.environ.get("PEER_PYTHON", sys.executable))
    parser.add_argument("--data", type=Path, default=PROJECT.parent / "shared/data/toronto")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--eval-rows", type=int, default=4000, help="first development rows")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--threads", type=int, default=1, help="of both programs")
    parser.add_argument("--pretraining-epochs", type=int, default=3)
    parser.add_argument("--scratch", type=Path, help="keeps the pretrained models")
    parser.add_argument("--output", type=Path, default=PROJECT / "docs/quality/encoders.csv")
    return parser.parse_args()


def first_rows(source, target, count):
    with open(source, encoding="utf-8", newline="") as file, open(target, "w", encoding="utf-8", newline="") as out:
        rows = csv.reader(file)
        writer = csv.writer(out)
        for _, row in zip(range(count + 1), rows):
            writer.writerow(row)
    return target


def pretrained(options, architecture, scratch):
    """Returns the run of adapt, which is made once. A file beside its metrics holds its processor time."""
    run = scratch / f"{architecture}-pretrained"
    if not (run / "processor_seconds").exists():
        shape = scratch / architecture
        shutil.rmtree(shape, ignore_errors=True)
        call([options.peer_python, BENCH / "quality/pretrained.py", options.data / "train.csv", architecture, shape])
        done = call([options.binary, "adapt", "--model", shape, "--reinit", "--text", options.data / "train.csv",
                     "--text-column", "text", "--epochs", options.pretraining_epochs, *PRETRAINING, "--overwrite",
                     "--no-progress", "--output", run])
        (run / "processor_seconds").write_text(str(done.processor_seconds), encoding="utf-8")
    return run


def share_right(predicted, rows):
    """Returns the percentage of rows whose label is predicted correctly."""
    with open(rows, encoding="utf-8", newline="") as file:
        labels = [row["category"] for row in csv.DictReader(file)]
    return 100 * sum(map(str.__eq__, predicted, labels)) / len(labels)


def ours(options, model, train, dev, seed, directory):
    run = directory / "run"
    done = call([options.binary, "train", "--recipe", "hf", "--model", model, "--train", train, "--text-column", "text",
                 "--label-column", "category", "--epochs", options.epochs, "--warmup-ratio", 0.1, "--weight-decay", 0.01,
                 *SETTINGS, "--seed", seed, "--precision", "fp32", "--threads", options.threads, "--overwrite",
                 "--no-progress", "--output", run])
    said = directory / "predictions.csv"
    call([options.binary, "predict", "--model", run / "model", "--input", dev, "--text-column", "text", "--overwrite",
          "--no-ngram-mix", "--output", said])
    with open(said, encoding="utf-8", newline="") as file:
        return share_right([row["label"] for row in csv.DictReader(file)], dev), done.processor_seconds


def peer(options, model, train, dev, seed, directory):
    said = directory / "predictions"
    done = call([options.peer_python, BENCH / "hf_peer.py", "--model", model, "--data", train, "--eval", dev,
                 "--text-column", "text", "--label-column", "category", "--epochs", options.epochs, *SETTINGS,
                 "--seed", seed, "--threads", options.threads, "--predictions", said])
    return share_right(said.read_text(encoding="utf-8").splitlines(), dev), done.processor_seconds


def figures(name, results):
    scores, seconds = zip(*results)
    return {f"accuracy of {name}, %": f"{statistics.mean(scores):.1f}",
            f"accuracy of {name}, % sd": f"{statistics.stdev(scores):.1f}" if len(scores) > 1 else "",
            f"processor seconds of {name}": f"{statistics.mean(seconds):.0f}"}


def measure(options, architecture, scratch):
    run = pretrained(options, architecture, scratch)
    train = first_rows(options.data / "train.csv", scratch / "train.csv", options.rows)
    dev = first_rows(options.data / "dev.csv", scratch / "dev.csv", options.eval_rows)
    results = {"finetune": [], "transformers": []}
    for seed in range(1, options.seeds + 1):
        for name, program in (("finetune", ours), ("transformers", peer)):
            results[name].append(program(options, run / "model", train, dev, seed, scratch))
            print(f"{architecture}, seed {seed}: {name} {results[name][-1][0]:.1f} %", file=sys.stderr, flush=True)
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    seconds = float((run / "processor_seconds").read_text(encoding="utf-8"))
    return {"architecture": architecture, "rows": options.rows, "development rows": options.eval_rows, "epochs": options.epochs, "seeds": options.seeds,
            "pretraining, epochs": options.pretraining_epochs, "pretraining, processor seconds": f"{seconds:.0f}",
            "perplexity": f"{metrics['eval_perplexity']:.1f}",
            **figures("finetune", results["finetune"]), **figures("transformers", results["transformers"]),
            "settings": " ".join(map(str, SETTINGS)), "machine": cpu_model(),
            "finetune": subprocess.check_output([options.binary, "--version"], text=True).strip()}


def main():
    options = parse_arguments()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    with tempfile.TemporaryDirectory(prefix="quality-encoders-") as temporary:
        scratch = options.scratch or Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        for architecture in options.architectures.split(","):
            csv_files.update(options.output, [measure(options, architecture, scratch)], ("architecture", "rows"))


main()
