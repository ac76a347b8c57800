"""Shared by black-box tests: models, data, evaluate and predict, and killing at a given moment."""
import csv
import io
import json
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import time
from collections import namedtuple
from pathlib import Path

from harness import BINARY, GOLDEN, PATIENCE, succeed

MODEL = GOLDEN / "tiny-bert-classification"
QA_MODEL = GOLDEN / "tiny-bert-qa"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
MODELS = ("golden/tiny-bert-classification", "golden/tiny-bert-qa")


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def copied(source, target, without=(), **config):
    """A copy of a model without some files, whose config.json has other values for some keys."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.name not in without:
            shutil.copyfile(file, target / file.name)
    if config:
        values = json.loads((source / "config.json").read_text())
        (target / "config.json").write_text(json.dumps({**values, **config}))
    return target


Tensor = namedtuple("Tensor", "shape data kind", defaults=("F32",))


def read_safetensors(path):
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    return {name: Tensor(tuple(entry["shape"]), data[begin:][slice(*entry["data_offsets"])], entry["dtype"])
            for name, entry in json.loads(data[8:begin]).items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    header, begin = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": tensor.kind, "shape": tensor.shape, "data_offsets": [begin, begin + len(tensor.data)]}
        begin += len(tensor.data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensor.data for tensor in tensors.values()))
    return path


def tagged_rows(path):
    """80 texts of three words; their number and tags follow from the words."""
    draw = random.Random(3)
    words = ["coffee", "rent", "fuel", "bread", "tax", "train"]
    lines = ["text,number,tags"]
    for _ in range(80):
        chosen = [draw.choice(words) for _ in range(3)]
        tags = ";".join(sorted({word[0] for word in chosen if word in ("coffee", "rent", "tax")}))
        lines.append(f"{' '.join(chosen)},{len(set(chosen))}.5,{tags}")
    return write(path, "\n".join(lines) + "\n")


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def predict(data, *more, model=MODEL, **options):
    return succeed("predict", "--model", model, "--input", data, "--output", "-", *more, **options)


def evaluate(data, *more, model=MODEL, **options):
    return succeed("evaluate", "--model", model, "--data", *([data] if isinstance(data, Path) else data), *more,
                   **options)


def trained(directory, name, *arguments):
    out = directory / name
    succeed("train", "--output", out, "--lr", "1e-3", "--max-steps", 6, "--quiet", *arguments)
    return out


def computing_seconds():
    """Processor time of all finished commands: unlike wall time, it hardly depends on other load."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


def squad(questions, version="1.1"):
    """questions: (id, question, context, answer or None for unanswerable)"""
    entries = []
    for name, question, context, answer in questions:
        answers = [] if answer is None else [{"text": answer, "answer_start": context.index(answer)}]
        entries.append({"context": context, "qas": [{"id": name, "question": question, "answers": answers,
                                                     "is_impossible": answer is None}]})
    return json.dumps({"version": version, "data": [{"title": "t", "paragraphs": entries}]})


def kill_when(condition, *line, number=signal.SIGKILL):
    """Runs until `condition` holds, then sends the signal; returns the exit code (None: it had ended before)."""
    process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.time() + PATIENCE
    while process.poll() is None and time.time() < deadline:
        if condition():
            process.send_signal(number)
            return process.wait(timeout=PATIENCE)
        time.sleep(0.001)
    return process.wait(timeout=PATIENCE)


def linear_model_of(pid):
    """The child process of a training or a check that computes the linear model, or None."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in map(int, task.read_text().split()):
                if b"ngram-baseline-process" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return child
        except OSError:  # it has ended meanwhile
            continue
    return None


def evaluation_rows_of(out):
    """The last row of each evaluation for people, without its time."""
    found = re.findall(r"(\d+\.\d\d +(\d+) .*?) +\d+:\d\d((?:  best)?)$", (out / "log.txt").read_text(), re.M)
    return {step: row + best for row, step, best in found}
