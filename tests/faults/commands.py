"""The commands in which each call fails once: command lines, and files that exist before."""
from dataclasses import dataclass, field
from typing import Callable

from faults import Fault
from harness import run, succeed
from tiny import TRAIN, copy_format


# The disk does not change between two of these calls: a kill between them equals one before the second.
CHANGES = "open,write,close,sync,rename,truncate,mkdir,unlink"


@dataclass(frozen=True)
class Command:
    """A command, run in its own directory beside the inputs."""
    name: str
    line: tuple
    outputs: tuple  # files and directories in it
    again: tuple = ()  # added when the command is repeated
    removes: str = ""  # own files that it removes at its end
    before: Callable = field(default=lambda here: None)  # makes files that an earlier command left in its directory
    setup: Callable = field(default=lambda root: None)  # makes its own inputs


def train(steps, *more, data="../train.csv", evaluation="../eval.csv"):
    """Steps over half of the rows, with a checkpoint every two steps."""
    return ("train", "--model", "../model", "--train", data, "--eval", evaluation, "--output", "run", "--max-steps",
            steps, "--save-every", 2, *TRAIN, *more)


TWO_CHECKPOINTS = train(4, "--keep-checkpoints", 9)


def stopped_run(here):
    """Killed at the start of the second checkpoint."""
    fault = Fault("write", f"{here}/run/checkpoints/step-00000004", "kill", nth=1)
    killed = run(*TWO_CHECKPOINTS, cwd=here, env=fault.environment(here / "calls"))
    assert killed.code < 0, killed
    (here / "calls").unlink()
    temporary, = (here / "run/checkpoints").glob("*.tmp.*")
    temporary.unlink()


def earlier_run(here):
    succeed(*train(3, "--keep-checkpoints", 9), "--quiet", cwd=here)


def earlier_evaluation(here):
    succeed("evaluate", "--model", "../trained", "--data", "../train.csv", "--output", "out", "--quiet", cwd=here)


def earlier_predictions(here):
    for name in ("out.csv", "out.json"):
        (here / name).write_text("earlier\n")
        (here / name).chmod(0o600)
    (here / "nbest.json").write_text("earlier\n")


def earlier_model(here):
    succeed("convert", "--model", "../answering", "--output", "out", cwd=here)


def convert_from(name):
    return Command(f"convert {name}", ("convert", "--model", f"../{name}", "--output", "out", "--overwrite"), ("out",),
                   before=earlier_model, setup=lambda root: copy_format(root, name))


COMMANDS = {command.name: command for command in (
    Command("train", train(2, "--keep-checkpoints", 9), ("run",), again=("--resume",)),
    Command("train over a run", train(2, "--keep-checkpoints", 9, "--overwrite"), ("run",), before=earlier_run),
    Command("resume", (*TWO_CHECKPOINTS, "--resume"), ("run",), before=stopped_run),
    # Its checkpoints are removed at the end.
    Command("train questions", train(2, "--tensorboard", data="../questions.json", evaluation="../questions.json"),
            ("run",), again=("--resume",), removes="run/checkpoints/step-"),
    Command("evaluate", ("evaluate", "--model", "../trained", "--data", "../eval.csv", "--output", "out", "--overwrite",
                         "--no-progress"), ("out",), before=earlier_evaluation),
    Command("evaluate questions", ("evaluate", "--model", "../answering", "--data", "../questions.json", "--output",
                                   "out", "--quiet"), ("out",), again=("--overwrite",)),
    Command("predict", ("predict", "--model", "../trained", "--input", "../eval.csv", "--output", "out.csv",
                        "--overwrite", "--quiet"), ("out.csv",), before=earlier_predictions),
    Command("predict questions", ("predict", "--model", "../answering", "--input", "../questions.json", "--output",
                                  "out.json", "--nbest", "nbest.json", "--overwrite", "--quiet"),
            ("out.json", "nbest.json"), before=earlier_predictions),
    Command("convert", ("convert", "--model", "../trained", "--output", "out", "--overwrite"), ("out",),
            before=earlier_model),
    convert_from("safetensors-sharded"), convert_from("pytorch-zip"), convert_from("pytorch-legacy"),
    convert_from("tensorflow-h5"), convert_from("tensorflow-1-checkpoint"))}
