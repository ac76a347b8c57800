"""Training, evaluation and prediction for hours, with kills, beside undisturbed runs.

usage: soak.py HOURS [--seed S] [--report FOLDER]      as scripts/soak.sh says
"""
import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from commands import BINARY, Commands, Finding, become_subreaper, own_shared_memory
from data import RoundData, words_of
from lasting import PausedTraining, StreamingPredict
from ranks import results_of, same_results
from harness import GOLDEN, metrics_of
from trends import Series, section, write_report

MODEL, QA_MODEL = GOLDEN / "tiny-bert-classification", GOLDEN / "tiny-bert-qa"
TRAIN = ["train", "--model", MODEL, "--reinit-head", "--lr", "1e-3", "--dropout", "0.1", "--threads", 1,
         "--virtual-shards", 2, "--tensor-shards", 2, "--micro-batches", 2, "--no-progress", "--quiet"]
SHORT = ["--batch-size", 16, "--max-steps", 24, "--eval-every", 6, "--save-every", 3]
QA = ["train", "--task", "qa", "--model", QA_MODEL, "--lr", "1e-3", "--max-length", 96, "--doc-stride", 32,
      "--batch-size", 8, "--max-steps", 6, "--eval-every", 3, "--threads", 1, "--no-progress", "--quiet"]
# Processes and options: each must give the bits of one process.
LAYOUTS = [(1, []), (1, ["--recompute"]), (2, []), (2, ["--shard-optimizer"]), (2, ["--shard-optimizer"]),
           (2, ["--pp", 2]), (2, ["--tp", 2]), (2, ["--shard-optimizer", "--recompute"])]
INFERENCE_LAYOUTS = [(1, []), (2, []), (2, ["--pp", 2]), (2, ["--tp", 2])]
MEMORY = ["train", "train for questions", "evaluate", "predict", "answer questions", "train on 2 processes, rank 0",
          "lasting predict", "lasting training"]
DESCRIPTORS = ["lasting predict", "lasting training"]
MOST_FINDINGS = 20
LEFT = ["files in /dev/shm", "temporary files", "unfinished files"]


class Soak:
    def __init__(self, work, seed):
        self.work, self.seed = work, seed
        self.generator = random.Random(seed)
        self.commands = Commands(work, self.generator)
        self.words = words_of(MODEL)
        self.lasting_run = work / "lasting"
        self.memory = {name: Series(f"{name}: memory", True) for name in MEMORY}
        self.descriptors = {name: Series(f"{name}: descriptors", False) for name in DESCRIPTORS}
        self.left = {name: Series(name, False) for name in LEFT}
        self.same = RoundData(work / "same", 0, self.words)
        self.expected = None  # results of the constant work
        self.seconds = {}  # of undisturbed commands
        self.rounds = self.compared = 0
        self.findings, self.turns = [], ""

    def must(self, kind, *words, **options):
        """A command that must succeed; its measurements are recorded under `kind`."""
        outcome = self.commands.run(*words, **options)
        if outcome.code != 0:
            raise Finding(f"exit {outcome.code} of {' '.join(map(str, words))}:\n{outcome.text}")
        if kind in self.memory:
            self.memory[kind].values.append(outcome.peak_kib)
        return outcome

    def equal(self, what, found, expected):
        self.compared += 1
        if found != expected:
            raise Finding(f"{what}: other results than undisturbed")

    # ---- the same work each round

    def same_work(self):
        out = self.work / "same-work"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        data = self.same
        rows = ["--train", data.train, "--eval", data.eval, *SHORT]
        took = self.must("train", *TRAIN, *rows, "--output", out / "run", output=out / "run").seconds
        self.seconds.setdefault("train", took)
        self.must("train for questions", *QA, "--train", data.questions, "--eval", data.questions, "--output",
                  out / "qa", output=out / "qa")
        self.evaluate("evaluate", out / "run", data, out / "metrics")
        self.predict("predict", out / "run", data, out / "answers.csv")
        self.must("answer questions", "predict", "--model", out / "qa", "--input", data.questions, "--output",
                  out / "answers.json", "--threads", 1, "--quiet", output=out / "answers.json")
        self.must("", *TRAIN, *rows, "--shard-optimizer", "--output", out / "two", output=out / "two", processes=2)
        self.memory["train on 2 processes, rank 0"].values.append(1024 * metrics_of(out / "two")["peak_memory_mb"])
        found = [results_of(out / name) for name in ("run", "qa")]
        found += [(out / name).read_bytes() for name in ("metrics/predictions.csv", "answers.csv", "answers.json")]
        self.expected = self.expected or found
        self.equal("the same work as in the first round", found, self.expected)
        self.equal("2 processes", results_of(out / "two"), found[0])

    def evaluate(self, kind, model, data, out, processes=1, layout=(), **options):
        return self.command(kind)("evaluate", "--model", model, "--data", data.eval, "--output", out, "--threads", 1,
                                  "--tensor-shards", 2, "--quiet", "--no-progress", *layout, output=out,
                                  processes=processes, **options)

    def predict(self, kind, model, data, out, processes=1, layout=(), **options):
        return self.command(kind)("predict", "--model", model, "--input", data.eval, "--output", out, "--threads", 1,
                                  "--tensor-shards", 2, "--quiet", *layout, output=out, processes=processes, **options)

    def command(self, kind):
        """The kind "killed" may end in any way."""
        return self.commands.run if kind == "killed" else lambda *words, **options: self.must(kind, *words, **options)

    # ---- other data each round

    def round_seed(self):
        return self.seed * 100_003 + self.rounds

    def moment(self, kind):
        """A random moment for a kill, from the start to some time after the usual end."""
        return self.generator.uniform(0, 1.1 * self.seconds[kind])

    def other_work(self):
        directory = self.work / "other-work"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        data = RoundData(directory / "data", self.round_seed(), self.words)
        run = ["--train", data.train, "--eval", data.eval, "--seed", self.rounds, *SHORT]
        self.must("", *TRAIN, *run, "--output", directory / "straight", output=directory / "straight")
        expected = results_of(directory / "straight")
        for trial in range(2):
            self.disturbed_training(run, directory / f"disturbed-{trial}", expected)
        model = directory / "straight"
        for name, command, file in (("evaluate", self.evaluate, "predictions.csv"), ("predict", self.predict, "")):
            took = command("", model, data, directory / name).seconds
            self.seconds.setdefault(name, took)
            self.disturbed_inference(command, name, model, data, directory / name, file)

    def disturbed_training(self, run, out, expected):
        story = []
        for _ in range(self.generator.randint(1, 3)):
            processes, layout = self.generator.choice(LAYOUTS)
            outcome = self.commands.run(*TRAIN, *run, *layout, "--output", out, "--resume", output=out,
                                        processes=processes, kill_after=self.moment("train") * processes)
            story.append(f"{processes} {layout} killed: {outcome.killed}, exit {outcome.code}")
            if not outcome.killed and outcome.code != 0:
                raise Finding(f"{'; '.join(story)}:\n{outcome.text}")
        processes, layout = self.generator.choice(LAYOUTS)
        self.must("", *TRAIN, *run, *layout, "--output", out, "--resume", output=out, processes=processes)
        self.compared += 1
        try:
            same_results(out, expected)
        except AssertionError as error:
            raise Finding(f"{'; '.join(story)}; then {processes} {layout}: {str(error)[:2000]}") from None

    def disturbed_inference(self, command, name, model, data, straight, file):
        """A killed command leaves all of its output or nothing; the next one writes the undisturbed bytes."""
        out = straight.with_name(f"{name}-disturbed")
        processes, layout = self.generator.choice(INFERENCE_LAYOUTS)
        outcome = command("killed", model, data, out, processes, layout, kill_after=self.moment(name) * processes)
        if not outcome.killed and outcome.code != 0:
            raise Finding(f"{name} on {processes} {layout}, unharmed: exit {outcome.code}:\n{outcome.text}")
        if not out.exists():
            command("", model, data, out, processes, layout)
        self.equal(f"{name} on {processes} {layout}", (out / file).read_bytes(), (straight / file).read_bytes())

    # ---- a round

    def count_left(self):
        left = self.commands.left_files(self.work, self.lasting_run)
        for series, names in zip(self.left.values(), left):
            series.values.append(len(names))
        self.commands.forget()
        for series, names in zip(self.left.values(), left):
            if names:
                raise Finding(f"{series.name} are left: {', '.join(names[:10])}")

    def lasting(self, predict, training):
        for name, (kib, descriptors) in (("lasting predict", predict.ask(self.round_seed())),
                                         ("lasting training", training.go_on())):
            self.memory[name].values.append(kib)
            self.descriptors[name].values.append(descriptors)

    def run(self, seconds):
        """Runs rounds until the time is over; returns their number and the findings."""
        end = time.monotonic() + seconds
        self.same_work()
        predict = StreamingPredict(self.commands, self.work / "same-work/run", self.words)
        processes = [predict]
        try:
            predict.warm_up()
            training = PausedTraining(self.commands, self.lasting_run, [
                *TRAIN, "--train", self.same.train, "--eval", self.same.eval, "--batch-size", 16, "--max-steps", 10**7,
                "--eval-every", 20, "--save-every", 10, "--schedule", "constant"])
            processes.append(training)
            while self.rounds == 0 or time.monotonic() < end:
                self.rounds += 1
                for part in (self.same_work, self.other_work, lambda: self.lasting(predict, training),
                             self.count_left):
                    self.attempt(part)
                if len(self.findings) > MOST_FINDINGS:
                    break
            for process in processes:
                self.attempt(process.end)
            self.lasting_run = None
            self.attempt(self.count_left)
        finally:
            for process in processes:
                process.process.kill()
        self.findings += [f"not flat: {series.row()}" for series in self.series() if not series.is_flat()]
        self.turns = f"the lasting training did {training.steps():,} steps, the lasting predict {predict.rows:,} rows"

    def attempt(self, part):
        try:
            part()
        except (Finding, AssertionError, OSError) as finding:
            self.findings.append(f"round {self.rounds}: {finding}")
            print(self.findings[-1], flush=True)
            if not isinstance(finding, Finding):
                traceback.print_exc()

    def series(self):
        return [*self.memory.values(), *self.descriptors.values(), *self.left.values()]


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("hours", type=float)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    if not Path(BINARY).exists():
        sys.exit(f"soak: error: {BINARY} is absent; meson compile -C build makes it")
    become_subreaper()
    own_shared_memory()
    print(f"seed {options.seed}, {BINARY}", flush=True)
    work = Path(tempfile.mkdtemp(prefix="finetune-soak-"))
    begun = time.monotonic()
    soak = Soak(work, options.seed)
    soak.run(options.hours * 3600)
    c = soak.commands
    summary = (f"{(time.monotonic() - begun) / 3600:.2f} hours, {soak.rounds} rounds with {c.count:,} commands, "
               f"{c.jobs:,} of them under mpirun, {c.kills} killed; {soak.turns}; {soak.compared:,} comparisons, "
               f"{len(soak.findings)} findings. {c.hangs} times mpirun was still there when all its processes had "
               f"gone, {c.segments} times it left its own shared memory. Seed {options.seed}.")
    text = section(summary, soak.series())
    print(text)
    if options.report:
        write_report(options.report, summary, soak.series())
    if soak.findings:
        print(*soak.findings, f"what was there last: {work}", sep="\n")
    else:
        shutil.rmtree(work)
    print(f"{soak.rounds} rounds, {len(soak.findings)} findings")
    return 1 if soak.findings else 0


if __name__ == "__main__":
    sys.exit(main())
