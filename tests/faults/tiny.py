"""Models and data so small that a command takes about 50 ms, for walks over faults."""
import array
import json
import random
import shutil

from blank_model import blank_model
from fixtures import squad
from harness import GOLDEN, succeed

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] paid cash card rent tram tea who what".split()
CONFIG = {"model_type": "bert", "max_position_embeddings": 24, "type_vocab_size": 2, "hidden_act": "gelu",
          "layer_norm_eps": 1e-12, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
TRAIN = ("--batch-size", "4", "--lr", "1e-2", "--threads", "1", "--quiet")


def tiny_model(directory, source):
    """Random weights, so that a lost part is visible."""
    source.mkdir()
    (source / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (source / "config.json").write_text(json.dumps(CONFIG))
    weights = blank_model(directory, source, hidden=32, layers=1, vocabulary=len(WORDS)) / "model.safetensors"
    chance = random.Random(1)
    content = weights.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    values = array.array("f", [chance.gauss(0, 0.1) for _ in range((len(content) - begin) // 4)])
    weights.write_bytes(content[:begin] + values.tobytes())


def rows(path, count, seed):
    chance = random.Random(seed)
    lines = [" ".join(chance.choice(WORDS[5:]) for _ in range(4)) + "," + "xy"[i % 2] for i in range(count)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")


def questions(path):
    path.write_text(squad([("q1", "who paid", "cash card rent", "card"), ("q2", "what rent", "tram tea paid", "tea"),
                           ("q3", "who tea", "paid cash tram", "cash")]))


def prepare_training(root):
    """Makes model and rows in `root`."""
    tiny_model(root / "model", root / "source")
    rows(root / "train.csv", 8, 1)
    rows(root / "eval.csv", 6, 2)
    (root / "tmp").mkdir()


def prepare(root):
    """Also questions, and models after one training step: for rows and for answers."""
    prepare_training(root)
    questions(root / "questions.json")
    for name, data in (("trained", "train.csv"), ("answering", "questions.json")):
        run = root / f"run-of-{name}"
        succeed("train", "--model", root / "model", "--train", root / data, "--output", run, "--max-steps", 1, *TRAIN)
        (run / "model").rename(root / name)
        shutil.rmtree(run)


def copy_format(root, name):
    """Copies a golden model of another format below `root`."""
    shutil.copytree(GOLDEN / "formats" / name, root / name)
    for path in (root / name).iterdir():
        path.chmod(0o644)
