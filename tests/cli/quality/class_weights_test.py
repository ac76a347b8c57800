"""--class-weights with --label-smoothing: a rare class is learnt without taking all rows."""
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import DEVICE, GOLDEN, facts_of, main, metrics_of, need, succeed

MODEL = GOLDEN / "tiny-bert-classification"
SHOPS = {"food": ("BAKERY", "DELI", "GROCER"), "fuel": ("GAS STATION", "DIESEL"), "fees": ("BANK CHARGE",)}
BOTH = ("--class-weights", "balanced", "--label-smoothing", 0.1)


def rows(path, numbers, **counts):
    lines = [f"{numbers.choice(SHOPS[label])} {numbers.randrange(1000):03d},{label}"
             for label, count in counts.items() for _ in range(count)]
    numbers.shuffle(lines)
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


def arguments(directory, output, *more):
    numbers = random.Random(3)
    return ["train", "--model", MODEL, "--reinit-head", "--train",
            rows(directory / "train.csv", numbers, food=200, fuel=200, fees=3), "--eval",
            rows(directory / "eval.csv", numbers, food=50, fuel=50, fees=2), "--lr", "2e-3", "--epochs", 8, "--batch-size",
            16, "--precision", "fp32", "--no-progress", "--no-ngram-baseline", "--output", output, *DEVICE, *more]


def test_each_and_both_learn_all_classes(directory):
    need("golden/tiny-bert-classification")
    for name, options in {"weights": BOTH[:2], "smoothing": BOTH[2:], "both": BOTH}.items():
        out = directory / name
        succeed(*arguments(directory, out, *options))
        assert metrics_of(out)["eval_accuracy"] > 0.97, (name, metrics_of(out)["eval_accuracy"])


def test_a_run_with_both_resumes_to_the_same_bits(directory):
    need("golden/tiny-bert-classification")
    straight, resumed = directory / "straight", directory / "resumed"
    short = ["--max-steps", 12, "--save-every", 5, "--keep-checkpoints", 2, *BOTH]
    succeed(*arguments(directory, straight, *short))
    succeed(*arguments(directory, resumed, *short))
    (resumed / "metrics.json").unlink()
    succeed(*arguments(directory, resumed, *short, "--resume"))
    assert facts_of(resumed)["weights_sha256"] == facts_of(straight)["weights_sha256"]


main(globals())
