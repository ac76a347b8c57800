"""The systems of the quality table: what each of them runs, and with which settings."""
import json
import sys

from quality.data import write_rows
from quality.runs import ADAPTATION

# The values that `auto` chooses. They are part of a cell's settings, so that a change reruns cells.
RATE = 1e-4
RATE_OF_ANSWERS = 2e-4  # below 20,000 questions
# Epochs from a random head. Trainer has the same, but its default of 3 for the data sets in LONG.
EPOCHS = {"toronto-500": 28, "toronto-4000": 10, "mrpc": 7, "banking77": 9, "toronto-20000": 8, "squad-4000": 3,
          "sst2": 4, "toronto": 6, "toronto-gl": 6}
LONG = {"sst2", "toronto", "toronto-gl"}
# Epochs from a head that begins as a linear fit, which `auto` makes for less than 50,000 rows.
FITTED_EPOCHS = {"toronto-500": 10, "toronto-4000": 4, "mrpc": 4, "banking77": 4, "toronto-20000": 4}


class System:
    seedless = False
    is_extra = False  # runs on some data sets only

    def __init__(self, title):
        self.title = title

    comes_with = ""  # the system whose run also gives this system's result

    def takes(self, data):
        return True

    def others(self, run):
        """Returns the scores of other systems whose results come from this system's run."""
        return {}

    def settings(self, data):
        """The settings that a result depends on, as text: a change reruns the cell."""
        return ""

    def on_test_rows(self, run):
        """Returns the scores of the model that was stored when the system ran on development rows."""
        return run.scores(run.predicted())


class Baseline(System):
    """A baseline that `finetune check` reports: the majority's label, or n-grams."""
    seedless = True

    def __init__(self, title, kind):
        super().__init__(title)
        self.kind = kind

    def takes(self, data):
        return not data.is_questions

    def figures(self, run, evaluation):
        printed = json.loads(run.call(run.machine.options.binary, "check", "--train", run.train, "--eval", evaluation, "--json",
                                      *run.columns()))
        return {name: printed[f"baseline_{self.kind}_{name}"] for name in ("accuracy", "f1_macro")}

    def run(self, run):
        scores = self.figures(run, run.dev)
        used = run.processor_seconds, run.memory_mb
        for name, rows in run.by_seen().items():
            part = run.directory / f"{name}.csv"
            write_rows(part, rows)
            scores |= {f"accuracy_{name}": self.figures(run, part)["accuracy"], f"rows_{name}": len(rows)}
        run.processor_seconds, run.memory_mb = used
        return scores

    on_test_rows = run


class HuggingFace(System):
    """Trainer with its defaults, except for batches of 32 and EPOCHS."""

    def arguments(self, data):
        more = ["--batch-size", 16, "--max-length", 384] if data.is_questions else ["--batch-size", 32]
        return ["--lr", 5e-5, "--epochs", 3 if data.name in LONG else EPOCHS[data.name], *more]

    def settings(self, data):
        return " ".join(map(str, self.arguments(data)))

    def run(self, run):
        return run.scores(run.peer(*self.arguments(run.data)))


class Finetune(System):
    """finetune train with these options. `adapted`: after finetune adapt on the unlabelled texts of all rows."""

    def __init__(self, title, *options, adapted=False, only=None, is_extra=False, seedless=False):
        super().__init__(title)
        self.seedless = seedless
        self.options, self.adapted, self.only, self.is_extra = options, adapted, only, is_extra

    def takes(self, data):
        return (not self.adapted or bool(data.unlabelled)) and (self.only is None or self.only(data))

    def settings(self, data):
        head = " head fitted" if self.fits_head(data) else ""
        chosen = f" epochs {self.epochs(data)} lr {self.rate(data):g}{head}" if self.is_auto() else ""
        adapted = " adapted " + " ".join(map(str, ADAPTATION)) if self.adapted else ""
        return " ".join(map(str, self.options)) + chosen + adapted

    def is_auto(self):
        return "auto" in self.options

    def fits_head(self, data):
        return data.name in FITTED_EPOCHS and "random" not in self.options

    def rate(self, data):
        return RATE_OF_ANSWERS if data.is_questions else RATE

    def epochs(self, data):
        return FITTED_EPOCHS[data.name] if self.fits_head(data) else EPOCHS[data.name]

    def run(self, run):
        model = run.adapted_model() if self.adapted else None
        scores = run.scores(run.finetune(*self.options, model=model))
        if self.is_auto() and (run.notes["epochs"], run.notes["lr"]) != (self.epochs(run.data), self.rate(run.data)):
            sys.exit(f"quality: error: auto has {run.notes['epochs']} epochs on {run.data.name} at {run.notes['lr']}: "
                     "this file has others")
        return scores

    def others(self, run):
        names = [name for name, system in SYSTEMS.items() if system.comes_with == self.name and system.takes(run.data)]
        return {name: run.scores(run.predicted("--no-ngram-mix")) for name in names}


class Alone(System):
    """Another system's model without its n-grams."""

    def __init__(self, title, of):
        super().__init__(title)
        self.comes_with = of

    def takes(self, data):
        return not data.is_questions and SYSTEMS[self.comes_with].takes(data)

    def settings(self, data):
        return SYSTEMS[self.comes_with].settings(data)


SYSTEMS = {
    "majority": Baseline("majority", "majority"),
    "ngrams": Baseline("linear n-grams", "ngram"),
    "hugging-face": HuggingFace("Hugging Face Trainer"),
    "hf": Finetune("finetune, --recipe hf", "--recipe", "hf"),
    "quick-alone": Alone("frozen features and a linear head", "quick"),
    "quick": Finetune("finetune, --recipe quick", "--recipe", "quick", only=lambda data: not data.is_questions, seedless=True),
    "auto-alone": Alone("finetune, auto, `--no-ngram-mix`", "auto"),
    "auto": Finetune("finetune, --recipe auto", "--recipe", "auto"),
    "auto-smoothing": Finetune("finetune, auto, `--label-smoothing 0.1`", "--recipe", "auto", "--label-smoothing", "0.1",
                               only=lambda data: not data.is_questions, is_extra=True),
    "auto-decay": Finetune("finetune, auto, `--layer-lr-decay 0.8`", "--recipe", "auto", "--layer-lr-decay", "0.8", is_extra=True),
    "auto-adapted-alone": Alone("finetune, auto after adapt, `--no-ngram-mix`", "auto-adapted"),
    "auto-adapted": Finetune("finetune, auto with a random head after adapt", "--recipe", "auto", "--head-init", "random",
                             adapted=True),
}
for name, system in SYSTEMS.items():
    system.name = name
