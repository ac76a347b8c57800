#!/usr/bin/env python3
"""Small random models of every architecture in tests/golden/family, four stages deep.

    encoder_models.py                       lists the architectures
    encoder_models.py NAME DIRECTORY        writes the model of one, which must not exist (FINETUNE_BINARY: the program)
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/cli"), str(Path(__file__).resolve().parent)]
from deeper_model import deeper_model  # noqa: E402
from harness import succeed  # noqa: E402

FAMILY = ROOT / "tests/golden/family"
BERT = ROOT / "tests/golden/tiny-bert-classification"
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spm.model", "spiece.model")
LAYER_KEYS = ("num_hidden_layers", "n_layers")  # the second is DistilBERT's


def source_of(name):
    return BERT if name == "bert" else FAMILY / name / "classification"


def architectures():
    """BERT first. A folder without a vocabulary has golden values alone."""
    found = sorted(folder.name for folder in FAMILY.iterdir()
                   if any((folder / "classification" / file).exists() for file in VOCABULARIES))
    return ["bert", *found]


def four_layers(config):
    """The config with four layers; ALBERT's are four groups of two, since layers of a group cannot be in two stages."""
    config = dict(config)
    key = next(key for key in LAYER_KEYS if key in config)
    config[key] = 4
    if "num_hidden_groups" in config:
        config.update({key: 8, "num_hidden_groups": 4, "inner_group_num": 1})
    return config


def encoder_model(directory, name):
    """Writes the model; train gives it a head of its task."""
    if name == "bert":
        return deeper_model(directory, BERT)
    source = source_of(name)
    with tempfile.TemporaryDirectory() as temporary:
        shape, run = Path(temporary) / "shape", Path(temporary) / "run"
        shutil.copytree(source, shape, ignore=shutil.ignore_patterns("model.safetensors"))
        config = json.loads((source / "config.json").read_text())
        (shape / "config.json").write_text(json.dumps(four_layers(config)))
        (shape / "texts.txt").write_text("coffee and bread\nrent of the house\n")
        succeed("adapt", "--model", shape, "--reinit", "--text", shape / "texts.txt", "--max-steps", 1, "--quiet",
                "--output", run)
        shutil.copytree(run / "model", directory)
    return directory


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in architectures():
        encoder_model(Path(sys.argv[2]), sys.argv[1])
    elif len(sys.argv) == 1:
        print(*architectures())
    else:
        sys.exit(f"{Path(__file__).name}: known architectures are {', '.join(architectures())}")
