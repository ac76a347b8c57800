"""Shared by the tests beside Hugging Face: models, loading that records warnings, texts."""
import csv
import importlib
import json
import logging
import os
import shutil
import sys
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

import torch
import transformers

from harness import GOLDEN, SAMPLES, Skip, need, succeed

TOLERANCE = 1e-4  # of log-probabilities and of logits

REFERENCES = ("4.57.1", "5.24.0")  # whose golden values these are, and the newest
if transformers.__version__ not in REFERENCES:
    sys.exit(f"transformers {transformers.__version__} is installed; the references are {' and '.join(REFERENCES)}")
torch.set_num_threads(1)
ROOT = Path(__file__).resolve().parents[2]
CLASSES = {"BertForSequenceClassification": transformers.BertForSequenceClassification,
           "BertForQuestionAnswering": transformers.BertForQuestionAnswering,
           "BertForTokenClassification": transformers.BertForTokenClassification,
           "BertForMaskedLM": transformers.BertForMaskedLM,
           "BertModel": transformers.BertModel,
           "DistilBertForSequenceClassification": transformers.DistilBertForSequenceClassification,
           "DistilBertForQuestionAnswering": transformers.DistilBertForQuestionAnswering,
           "DistilBertForMaskedLM": transformers.DistilBertForMaskedLM,
           "DistilBertModel": transformers.DistilBertModel,
           "ElectraForSequenceClassification": transformers.ElectraForSequenceClassification,
           "ElectraForQuestionAnswering": transformers.ElectraForQuestionAnswering,
           "ElectraForMaskedLM": transformers.ElectraForMaskedLM,
           "ElectraModel": transformers.ElectraModel,
           "ModernBertForSequenceClassification": transformers.ModernBertForSequenceClassification,
           "ModernBertForQuestionAnswering": transformers.ModernBertForQuestionAnswering,
           "ModernBertForMaskedLM": transformers.ModernBertForMaskedLM,
           "ModernBertModel": transformers.ModernBertModel,
           "RobertaForSequenceClassification": transformers.RobertaForSequenceClassification,
           "RobertaForQuestionAnswering": transformers.RobertaForQuestionAnswering,
           "RobertaForMaskedLM": transformers.RobertaForMaskedLM,
           "RobertaModel": transformers.RobertaModel,
           "XLMRobertaForSequenceClassification": transformers.XLMRobertaForSequenceClassification,
           "XLMRobertaForQuestionAnswering": transformers.XLMRobertaForQuestionAnswering,
           "XLMRobertaForMaskedLM": transformers.XLMRobertaForMaskedLM,
           "XLMRobertaModel": transformers.XLMRobertaModel,
           "AlbertForSequenceClassification": transformers.AlbertForSequenceClassification,
           "AlbertForQuestionAnswering": transformers.AlbertForQuestionAnswering,
           "AlbertForMaskedLM": transformers.AlbertForMaskedLM,
           "AlbertModel": transformers.AlbertModel,
           "DebertaV2ForSequenceClassification": transformers.DebertaV2ForSequenceClassification,
           "DebertaV2ForQuestionAnswering": transformers.DebertaV2ForQuestionAnswering,
           "DebertaV2ForMaskedLM": transformers.DebertaV2ForMaskedLM,
           "DebertaV2Model": transformers.DebertaV2Model,
           "MPNetForSequenceClassification": transformers.MPNetForSequenceClassification,
           "MPNetForQuestionAnswering": transformers.MPNetForQuestionAnswering,
           "MPNetForMaskedLM": transformers.MPNetForMaskedLM,
           "MPNetModel": transformers.MPNetModel,
           "CamembertForSequenceClassification": transformers.CamembertForSequenceClassification}
for name in ("NomicBertForSequenceClassification", "NomicBertForMaskedLM", "NomicBertModel"):  # of transformers 5
    if hasattr(transformers, name):
        CLASSES[name] = getattr(transformers, name)


class Listener(logging.Handler):
    """Records every warning of transformers or of Python's warnings module while open."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

    def __enter__(self):
        self.caught = warnings.catch_warnings(record=True)
        self.raised = self.caught.__enter__()
        warnings.simplefilter("always")
        transformers.logging.set_verbosity_warning()
        logging.getLogger("transformers").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("transformers").removeHandler(self)
        self.caught.__exit__(None, None, None)
        self.lines += [str(w.message) for w in self.raised if "transformers" in w.filename]


def load(directory, dtype="float32"):
    """Loads a directory's model in the class of its config; fails on warnings and on missing or unexpected keys.
    dtype "auto": the type in its config."""
    config = json.loads((Path(directory) / "config.json").read_text(encoding="utf-8"))
    with Listener() as listener:
        model, info = CLASSES[config["architectures"][0]].from_pretrained(directory, dtype=dtype,
                                                                                output_loading_info=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    if config["model_type"] in ("albert", "deberta-v2") and (Path(directory) / "tokenizer.json").exists():
        # transformers 5 builds other steps than those of the file, and no token types.
        pad, unk = ("<pad>", "<unk>") if config["model_type"] == "albert" else ("[PAD]", "[UNK]")
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(Path(directory) / "tokenizer.json"), pad_token=pad, unk_token=unk,
            cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    for kind, keys in info.items():
        assert not keys, f"{directory}: {kind}: {keys}"
    assert not listener.lines, f"{directory}: {listener.lines}"
    return model.eval(), tokenizer


def near(ours, theirs, tolerance, what):
    ours, theirs = torch.as_tensor(ours, dtype=torch.float64), torch.as_tensor(theirs, dtype=torch.float64)
    assert ours.shape == theirs.shape, f"{what}: shape {tuple(ours.shape)} and {tuple(theirs.shape)}"
    worst = (ours - theirs).abs().max().item()
    assert worst <= tolerance, f"{what}: differs by {worst}, allowed {tolerance}"


def need_class(name):
    if name not in CLASSES:
        raise Skip(f"transformers {transformers.__version__} has no {name}")


def sample_rows(name, count):
    with open(SAMPLES / name, encoding="utf-8", newline="") as file:
        return [row for row, _ in zip(csv.DictReader(file), range(count))]


def write_csv(path, names, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    return path


def random_model(directory, labels=None, problem=None, seed=0, **shape):
    """A random BERT with other shapes than the golden ones and a head for `labels` (None: answers), saved."""
    vocabulary = GOLDEN / "tiny-bert-classification"
    if not vocabulary.exists():
        raise Skip(f"{vocabulary} is absent")
    torch.manual_seed(seed)
    config = transformers.BertConfig(**{
        "vocab_size": 4000, "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 6,
        "intermediate_size": 200, "max_position_embeddings": 160, "initializer_range": 0.06,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **shape})
    if labels:
        config.id2label = dict(enumerate(labels))
        config.label2id = {name: i for i, name in enumerate(labels)}
        config.problem_type = problem
    kind = transformers.BertForSequenceClassification if labels else transformers.BertForQuestionAnswering
    model = kind(config)
    for name, parameter in model.named_parameters():  # biases and LayerNorm are 0 and 1 in a new model
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter.data, 1.0 if name.endswith("LayerNorm.weight") else 0.0, 0.05)
    model.save_pretrained(directory)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(vocabulary / name, directory)
    return model, transformers.AutoTokenizer.from_pretrained(directory)


def minilm():
    """The small pretrained BERT that scripts/fetch_model.sh fetches, if it is there."""
    for place in (os.environ.get("FINETUNE_MINILM"), ROOT / ".cache/all-minilm-l6-v2"):
        if place and (Path(place) / "model.safetensors").exists():
            return Path(place)
    raise Skip("MiniLM is absent (scripts/fetch_model.sh, or FINETUNE_MINILM)")


def train(directory, model, data, *options):
    succeed("train", "--model", model, "--train", data, "--output", directory / "run", "--max-steps", 5, "--lr", "1e-3",
            "--batch-size", 8, "--precision", "fp32", *options)
    return directory / "run/model"


def of_family(name):
    need(f"golden/family/{name}")
    return GOLDEN / "family" / name


def deberta(directory, task, config=None):
    """One of its models with the tokenizer.json that does not travel with the project."""
    need(*(f"golden/family/deberta-v3/{name}" for name in ("classification/tokenizer.json", "qa")))
    model = directory / f"deberta-{task}"
    model.mkdir()
    for file in [*(GOLDEN / f"family/deberta-v3/{task}").iterdir(),
                 GOLDEN / "family/deberta-v3/classification/tokenizer.json"]:
        if file.name != "spm.model":
            shutil.copyfile(file, model / file.name)
    before = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**before, **(config or {})}))
    return model


def need_sentencepiece():
    """transformers reads sentencepiece models by these packages."""
    for package in ("sentencepiece", "google.protobuf"):
        try:
            importlib.import_module(package)
        except ImportError as missing:
            raise Skip(f"the package {package} is not installed") from missing
