#!/usr/bin/env python3
"""Writes docs/guide/screens.md: what a terminal of 80 x 40 shows of each command.

usage: screens.py [--rows N] [--output FILE] PROGRAM MODEL

MODEL is the guide's. Each command runs on some rows of data/samples. --rows takes fewer of them, for a test with a tiny
model. Times, sizes of memory and names that belong to a machine are shown as "…".
"""
import argparse
import csv
import json
import os
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "cli" / "experiments")]
from guide import prepare
from terminal import Terminal

COLUMNS, ROWS = 80, 40
TRAINING = "--train train.csv --eval dev.csv \\\n    --label-column category"
# The title, the command, and its exit codes if 0 is not the only one.
SCREENS = [
    ("train", f"finetune train --model minilm {TRAINING} --epochs 2 --output runs/first"),
    ("evaluate", "finetune evaluate --model runs/first --data later.csv"),
    ("evaluate --max-error", "finetune evaluate --model runs/first --data later.csv --max-error 0.2 \\\n"
     "    --confidence 0.9", (0, 7)),
    ("predict", "finetune predict --model runs/first --input four.csv --output labels.csv"),
    ("predict --explain", "finetune predict --model runs/first --input four.csv --explain \\\n    --output -"),
    ("check --label-errors", "finetune check --train train.csv --label-column category \\\n    --label-errors doubtful.csv"),
    ("next", "finetune next --model runs/first --input texts.csv --rows 20 --output next.csv"),
    ("train --extend-head", "finetune train --model runs/first --extend-head --train taxi.csv \\\n"
     "    --eval-fraction 0.2 --label-column category --epochs 1 --output runs/taxi"),
    ("sweep", "finetune sweep grid.toml --output runs/sweep", (0,)),
    ("compare", "finetune compare runs/sweep"),
    ("report", "finetune report runs/sweep --output report.html"),
    ("plan", f"finetune plan --model minilm {TRAINING}"),
    ("adapt", "finetune adapt --model minilm --text texts.csv --epochs 1 --output runs/texts"),
    ("doctor", "finetune doctor", (0, 5)),
    ("inspect", "finetune inspect runs/first"),
    ("convert", "finetune convert --model runs/first --dtype bf16 --output runs/small"),
    ("tokenize", "echo 'PAYPAL *SPOTIFY 35314369001' | finetune tokenize --model minilm"),
    ("score", "finetune score --data questions.json --predictions answers.json"),
    ("train --help", "finetune train --help"),
]
# What differs between machines, or from one time to the next.
OF_A_MACHINE = [
    (r"(?<![\w.])\d+(?:\.\d+)? s \(\d+ a second\)", "… s (… a second)"),
    (r"(?<![\w.])\d+(?:\.\d+)? (s|ms|min|h)\b", r"… \1"),
    (r"\b\d+:\d\d(?::\d\d)?(?=(?:  best)?$)", "0:00"),
    (r"(?<![\w.])\d+(?:\.\d+)? MiB", "… MiB"),
    (r"^(  (?:program|peak|available) +).*?(?=  |$)", r"\1…"),
    (r"^(  (?:start|step|evaluation|in all) {2,}).*", r"\1…"),
    (r"^((?:host|CPU|cores|memory|temporary files|model cache) {2,}).*", r"\1…"),
    (r"\b[0-9a-f]{12,}\b", "…"),
    (r"\d{4}-\d\d-\d\d(?:T[\d:]+(?:Z|[+-]\d{4}))?", "2026-01-01"),
]
LEFT_OUT = re.compile(r"The machine is busy|The lower figures are of an idle machine")


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def write_data(rows):
    """The files that the commands read, in the working directory."""
    with open("data/samples/toronto-train.csv", encoding="utf-8", newline="") as file:
        header, *train = csv.reader(file)
    with open("data/samples/toronto-dev.csv", encoding="utf-8", newline="") as file:
        later = list(csv.reader(file))[1:]
    label = header.index("category")
    known = {row[label] for row in train[:rows]}
    later = [row for row in later if row[label] in known]
    write_rows("train.csv", [header, *train[:rows]])
    write_rows("dev.csv", [header, *later[:rows // 3]])
    write_rows("later.csv", [header, *later[rows // 3:rows]])
    write_rows("four.csv", [header, *later[-4:]])
    write_rows("texts.csv", [["text"], *(row[:1] for row in later[rows // 3:rows])])
    taxi = [[*row[:label], "Taxi", *row[label + 1:]] if "TAXI" in row[0] else row for row in train]
    write_rows("taxi.csv", [header, *(row for row in taxi if row[label] == "Taxi"), *train[:rows // 3]])
    Path("grid.toml").write_text(
        'model = "minilm"\ntrain = "train.csv"\neval = "dev.csv"\nlabel-column = "category"\n'
        'recipe = "auto"\nepochs = 1\n\n'
        "[sweep]\nlr = [5e-5, 2e-4]\nseed = [1, 2]\n", encoding="utf-8")


    Path("questions.json").symlink_to(ROOT / "data" / "samples" / "squad-dev.json")
    questions = [question for article in json.loads(Path("questions.json").read_text(encoding="utf-8"))["data"]
                 for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    answers = {question["id"]: question["answers"][0]["text"] for question in questions if question["answers"]}
    Path("answers.json").write_text(json.dumps(dict(list(answers.items())[::2])), encoding="utf-8")


def of_any_machine(row):
    for pattern, instead in OF_A_MACHINE:
        row = re.sub(pattern, instead, row)
    return row.rstrip()


def screen_of(command, codes=(0,)):
    """The rows of the terminal after the command, the command's own included."""
    terminal = Terminal(["/bin/sh", "-c", command], COLUMNS)
    code = terminal.end()
    if code not in codes:
        sys.exit(f"screens: {command}: exit code {code}\n{terminal.text[-2000:]}")
    rows = [of_any_machine(row) for row in terminal.screen.rows if not LEFT_OUT.match(row)]
    while rows and not rows[-1]:
        rows.pop()
    asked = ("$ " + command).split("\n")
    most = ROWS - 1 - len(asked)  # the next prompt takes a row
    return asked + (["..."] + rows[1 - most:] if len(rows) > most else rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "guide" / "screens.md")
    parser.add_argument("program", type=Path)
    parser.add_argument("model", type=Path)
    options = parser.parse_args()
    page = ["<!-- generated by scripts/generate/screens.py -->", "", "# Screens", "",
            f"What a terminal of {COLUMNS} x {ROWS} shows of each command, on {options.rows} rows of",
            "[data/samples](../../data/samples/README.md). \"…\" stands for times and other values that depend on the machine.", ""]
    output = options.output.resolve()
    with tempfile.TemporaryDirectory(prefix="finetune-screens-") as name:
        folder = Path(name)
        prepare(folder, argparse.Namespace(program=options.program, model=options.model, rows=None))
        (folder / "minilm").symlink_to(options.model.resolve())
        os.chdir(folder)
        write_data(options.rows)
        os.environ.update(PATH=f"{folder / 'bin'}:{os.environ['PATH']}", LC_ALL="C.UTF-8", CUDA_VISIBLE_DEVICES="")
        os.environ.pop("COLUMNS", None)
        for title, *screen in SCREENS:
            page += ["## " + title, "", "```console", *screen_of(*screen), "```", ""]
        os.chdir(ROOT)
    output.write_text("\n".join(page[:-1]) + "\n", encoding="utf-8")
    print(f"{output.name}: {len(SCREENS)} commands")


if __name__ == "__main__":
    main()
