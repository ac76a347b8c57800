"""Runs one system on one set of data: commands, their time and memory, the predicted labels."""
import csv
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from quality.data import read_table
from quality.scores import scores_of

BENCH = Path(__file__).resolve().parent.parent
MEASURED = Path(__file__).resolve().parent / "measured.py"
ADAPTATION = ["--epochs", 3, "--lr", 5e-4, "--batch-size", 64, "--seed", 1]


class Machine:
    """The programs, the pretrained model, and the files kept between cells."""

    def __init__(self, options, scratch):
        self.options = options
        self.scratch = scratch
        scratch.mkdir(parents=True, exist_ok=True)

    def kept_model(self, data, system, seed):
        """Returns the folder in which a cell's model is kept for `--final`, if the data set has test rows."""
        return self.scratch / "models" / f"{data.name}-{system.name}-{seed}"

    def quiet(self, *command):
        """Runs a command whose cost is not measured."""
        run = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"quality: error: {' '.join(map(str, command))}: exit {run.returncode}: {run.stderr[-500:]}")
        return run.stdout

    def facts(self):
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), platform.processor())
        version = self.quiet(self.options.binary, "--version").strip()
        cores = len(os.sched_getaffinity(0))
        return {"machine": f"{model}, {cores} core{'s' if cores > 1 else ''}", "finetune": version,
                "model": self.options.model.name if self.options.model else "", "load": round(os.getloadavg()[0], 1)}


class Run:
    """One cell. A system calls train(), predict() or peer() and returns the labels."""

    def __init__(self, machine, data, seed, directory):
        self.machine, self.data, self.seed, self.directory = machine, data, seed, directory
        directory.mkdir()
        self.train, self.dev = data.prepare(machine.options.shared, directory, machine.options.final)
        self.model = None  # the directory that training wrote
        self.processor_seconds = self.memory_mb = 0.0
        self.notes = {}

    def of(self, system):
        """Returns the cell's result, and by name the results of other systems that the same run gives."""
        cells = self.cells(system.run(self), system)
        if self.model and self.data.test:
            self.keep(self.machine.kept_model(self.data, system, self.seed), system.settings(self.data))
        return cells

    def keep(self, directory, settings):
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(self.model, directory / "model")
        (directory / "settings").write_text(settings, encoding="utf-8")

    def on_test_rows(self, system):
        """Returns the result of a system's stored model on the test rows."""
        self.model = self.machine.kept_model(self.data, system, self.seed) / "model"
        return self.cells(system.on_test_rows(self), system)

    def cells(self, scores, system):
        others = system.others(self)
        return self.cell(scores, system), {name: self.cell(more, system) for name, more in others.items()}

    def cell(self, scores, system):
        return {**scores, "processor_seconds": round(self.processor_seconds, 1), "memory_mb": round(self.memory_mb),
                "settings": system.settings(self.data), **self.notes, **self.machine.facts()}

    def scores(self, predicted):
        """Scores of labels, or of a file of answers."""
        if self.data.is_questions:
            return self.question_scores(predicted)
        return scores_of(read_table(self.dev), predicted, self.seen_groups())

    def seen_groups(self):
        return {row["group"] for row in read_table(self.train)} if self.data.group else None

    def by_seen(self):
        """Returns the evaluation rows whose group occurs in training, and the others; {} without groups."""
        seen = self.seen_groups()
        if seen is None:
            return {}
        rows = read_table(self.dev)
        return {"seen": [row for row in rows if row["group"] in seen],
                "unseen": [row for row in rows if row["group"] not in seen]}

    def adapted_model(self):
        """Returns the model that `finetune adapt` made from the unlabelled texts, once. Notes its time separately."""
        options = "-".join(str(part).lstrip("-") for part in ADAPTATION)
        kept = self.machine.scratch / f"adapted-{Path(self.data.unlabelled).parent.name}-{options}"
        if not (kept / "metrics.json").exists():
            before = self.processor_seconds, self.memory_mb
            self.call(self.machine.options.binary, "adapt", "--model", self.machine.options.model, "--text",
                      self.machine.options.shared / "data" / self.data.unlabelled, "--text-column", self.data.texts[0],
                      *ADAPTATION, "--no-progress", "--resume", "--output", kept)
            (kept / "processor_seconds").write_text(str(self.processor_seconds - before[0]), encoding="utf-8")
            self.processor_seconds, self.memory_mb = before
        self.notes["adaptation_seconds"] = round(float((kept / "processor_seconds").read_text(encoding="utf-8")))
        return kept / "model"

    def call(self, *command):
        """Runs a command, measures its processor time and memory, and returns its output."""
        command = [str(part) for part in command]
        measured = self.directory / "measured.json"
        with open(self.directory / "out", "w+", encoding="utf-8") as out, \
                open(self.directory / "log", "w+", encoding="utf-8", errors="replace") as log:
            code = subprocess.call([sys.executable, "-S", MEASURED, measured, *command], stdout=out, stderr=log)
            log.seek(0)
            if code != 0:
                sys.exit(f"quality: error: {' '.join(command)}: exit {code}: {log.read()[-500:]}")
            out.seek(0)
            printed = out.read()
        usage = json.loads(measured.read_text(encoding="utf-8"))
        self.processor_seconds += usage["seconds"]
        self.memory_mb = max(self.memory_mb, usage["mb"])
        return printed

    def text_columns(self):
        return ["--text-column", "text", *(["--text-pair-column", "pair"] if len(self.data.texts) > 1 else [])]

    def columns(self):
        return [] if self.data.is_questions else [*self.text_columns(), "--label-column", "label"]

    def finetune(self, *arguments, model=None):
        """Runs finetune train with an evaluation at the end. Returns the labels, or the file of answers."""
        output = self.directory / "run"
        self.model = output / "model"
        self.call(self.machine.options.binary, "train", "--model", model or self.machine.options.model, "--train", self.train,
                  "--eval", self.dev, "--output", output, "--seed", self.seed, "--no-progress", *self.columns(),
                  *([] if self.data.is_questions else ["--ignore-unknown-labels"]), *arguments)
        config = (output / "config.toml").read_text(encoding="utf-8")
        for name in ("epochs", "lr"):
            self.notes[name] = float(re.search(rf"^{name} = (.*)$", config, re.MULTILINE)[1])
        self.notes["course"] = course_of(output / "metrics.jsonl", "eval_" + ("exact_match" if self.data.is_questions else "accuracy"))
        return output / "predictions.json" if self.data.is_questions else labels_of(output / "predictions.csv")

    def predicted(self, *arguments):
        """Returns the labels that the trained model predicts for the evaluation rows."""
        output = self.directory / "predicted.csv"
        self.machine.quiet(self.machine.options.binary, "predict", "--model", self.model, "--input", self.dev, "--output", output,
                           "--overwrite", "--quiet", *self.text_columns(), *arguments)
        return labels_of(output)

    def peer(self, *arguments):
        """Runs Hugging Face Trainer on the same rows."""
        predictions = self.directory / "predictions"
        arguments = ["--model", self.machine.options.model, "--data", self.train, "--eval", self.dev, "--seed", self.seed,
                     "--predictions", predictions, *self.columns(), *arguments]
        if self.data.test:
            self.model = self.directory / "model"
            arguments += ["--output", self.model]
        printed = self.call(self.machine.options.peer_python, BENCH / "hf_peer.py", *arguments)
        versions = json.loads(printed.splitlines()[-1])
        self.notes.update({name: versions[name] for name in ("torch", "transformers")})
        return predictions if self.data.is_questions else predictions.read_text(encoding="utf-8").splitlines()

    def question_scores(self, answers):
        scores = json.loads(self.machine.quiet(self.machine.options.binary, "score", "--data", self.dev, "--predictions", answers,
                                               "--json"))
        return {"exact": scores["eval_exact_match"], "f1": scores["eval_f1"]}


def course_of(path, metric):
    """Returns [fraction of the steps, value] for each evaluation during training."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [[line["step"] / lines[-1]["step"], line[metric]] for line in lines if metric in line]


def labels_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    place = rows[0].index("predicted_label")  # "label" is the input's own column
    return [row[place] for row in rows[1:]]
