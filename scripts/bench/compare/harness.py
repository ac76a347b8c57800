"""Commands, models and the lines that every section shares."""
import datetime
import functools
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from compare.document import Section

BENCH = Path(__file__).resolve().parent.parent
PROJECT = BENCH.parents[1]
SCRIPT = Path(sys.argv[0]).stem  # compare_hf or compare_gpu

# A finished process: its output, highest resident MiB, wall time, processor time.
Finished = namedtuple("Finished", "output memory_mb seconds processor_seconds")


def fail(message):
    sys.exit(f"{SCRIPT}: error: {message}")


def names_of(option, text, known):
    """Returns the names in an option's comma-separated list; fails for unknown ones."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            fail(f"{option} {name}: known are {', '.join(known)}")
    if not names:
        fail(f"{option}: names nothing; known are {', '.join(known)}")
    return names


def require(*paths):
    for path in paths:
        if not path.exists():
            fail(f"{path}: not found")


def matmul_rate(result):
    """Returns the rate of large matrix products, in operations a second, from a result of `finetune bench step`."""
    rate = result["matmul_peak_flops_per_second"]
    if rate is None:
        fail("finetune is built without oneDNN, whose rate results are set beside: install it (libdnnl-dev) and build "
             "anew with -Donednn=enabled")
    return rate


def progress(message):
    print(message, file=sys.stderr, flush=True)


def call(command, environment=None):
    """Runs a command; fails if it fails."""
    command = [str(part) for part in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+", errors="replace") as err:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(environment or {})})
        except OSError as error:
            fail(f"{command[0]}: {error.strerror}")
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        if process.returncode != 0:
            err.seek(0)
            said = [line.strip() for line in err if line.strip()]
            fail(f"{' '.join(command)}: exit {process.returncode}: {said[-1] if said else 'no message'}")
        return Finished(out.read(), usage.ru_maxrss / 1024, seconds, usage.ru_utime + usage.ru_stime)


def spread(values, digits):
    values = sorted(values)
    return " / ".join(f"{v:,.{digits}f}" for v in (values[0], statistics.median(values), values[-1]))


class Bench:
    """The options, the models, and a directory for what the runs write."""

    def __init__(self, options, temporary):
        self.options, self.temporary = options, temporary
        self.scratch = options.scratch or temporary
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.heads = {}

    def model(self, name):
        """Returns --model or, for another shape, the directory of a model with random weights, made at first use."""
        if name not in self.options.random_shapes:
            return self.options.model
        made = self.scratch / f"{name}-random"
        if not (made / "config.json").exists():
            unfinished = self.scratch / f"{name}-random.unfinished"
            call([self.options.peer_python, BENCH / "hf_peer.py", "--model", self.options.model,
                  "--make-shape", name, "--output", unfinished])
            unfinished.rename(made)
        return made

    def training_data(self, kind):
        return self.options.bank if kind == "bank" else self.options.squad

    def model_with_head(self, work):
        """A model directory that both sides evaluate: the model after one training step."""
        if work.name not in self.heads:
            run = self.temporary / f"head-{work.name}"
            self.train_ours(self.model(work.model), work, run, "fp32",
                            ["--max-train-samples", 64, "--max-steps", 1, "--reinit-head"])
            self.heads[work.name] = self.temporary / f"model-{work.name}"
            (run / "model").rename(self.heads[work.name])
            shutil.rmtree(run)
        return self.heads[work.name]

    def ours(self, arguments, environment=None):
        return call([self.options.binary, *arguments], environment)

    def train_ours(self, model, work, run, precision, more, data=None):
        """Runs finetune train for one epoch; `more` are further arguments."""
        shutil.rmtree(run, ignore_errors=True)
        command = ["train", "--model", model, "--train", data or self.training_data(work.kind), "--output", run,
                   "--recipe", "hf", "--batch-size", work.batch_size, "--epochs", 1, "--warmup-ratio", 0.1, "--weight-decay", 0.01,
                   "--save-every", 10**9, "--no-progress", "--precision", precision, *self.device(), *more]
        if work.kind == "bank":
            command += ["--task", "classification", "--text-column", self.options.text_column,
                        "--label-column", self.options.label_column]
        return self.ours([*command, *self.threads(more)])

    def rate(self, precision):
        """Measures the rate of large matrix products on this machine now, in operations a second, with all threads."""
        command = ["bench", "step", "--shape", "minilm", "--lengths", "bank", "--steps", 3, "--json",
                   "--precision", precision, *self.device(), *self.threads()]
        return matmul_rate(json.loads(self.ours(command).output))

    def peer(self, script, arguments, environment=None):
        """Runs a script of the peer and returns the JSON object of its last line."""
        finished = call([self.options.peer_python, BENCH / script, *arguments, *self.threads(arguments)], environment)
        lines = finished.output.splitlines()
        try:
            return finished, json.loads(lines[-1])
        except (IndexError, ValueError):
            fail(f"{script}: printed no result")

    def device(self):
        return ["--device", self.options.device]

    def peer_machine(self, side):
        """The peer's options for device, precision and compilation."""
        return [*self.device(), *(["--bf16"] if side.precision == "bf16" else []),
                *(["--compile"] if side.compiled else [])]

    def columns(self):
        return ["--text-column", self.options.text_column, "--label-column", self.options.label_column]

    def threads(self, given=()):
        if not self.options.threads or "--threads" in given:
            return []
        return ["--threads", self.options.threads]

    @functools.cached_property
    def doctor(self):
        """The output lines of finetune doctor, which describe this machine and its GPU, if there is one."""
        return call([self.options.binary, "doctor"]).output.splitlines()

    @functools.cached_property
    def instructions(self):
        """The processor's code path. Omits the precision that `auto` would choose: tables state each side's own."""
        path = next((line for line in self.doctor if line.startswith("code path")), "")
        return " ".join(path.replace(", fp32", "").replace(", bf16", "").split()[2:])

    @functools.cached_property
    def machine(self):
        """This machine's name in the files: --machine, or a name derived from the GPU's or the processor's."""
        gpu = next((line.split(",")[0] for line in self.doctor if line.startswith("GPU 0")), "")
        made = gpu.removeprefix("GPU 0") if self.options.device == "cuda" else f"{cpu_model()} {self.instructions}"
        made = re.sub(r"\(\w+\)|processor|cpu|\d+ threads", "", made.lower())
        return self.options.machine or re.sub(r"[^a-z0-9]+", "-", made).strip("-")

    def section(self, title, notes, versions, tables, **more):
        """Makes a section with the facts of this machine; `tables` maps file names to tables."""
        held = f", held to {self.options.isa.upper()}" if self.options.isa else ""
        facts = {"date": str(datetime.date.today()), "processor": cpu_model(), "cores": len(os.sched_getaffinity(0)),
                 "instructions": self.instructions, "load": ", ".join(f"{x:.1f}" for x in os.getloadavg()),
                 "finetune": call([self.options.binary, "--version"]).output.strip(), "peer": versions,
                 "command": f"scripts/bench/{SCRIPT}.sh"}
        return Section(title + held, facts, notes, tables, **more)


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
