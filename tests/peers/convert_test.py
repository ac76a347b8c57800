"""Every output of `finetune convert`, in transformers.

It loads without a warning and holds the numbers of its source in the type asked for."""
import csv
import json

import torch
from peer import load, minilm, near
from safetensors.torch import load_file

from harness import GOLDEN, SAMPLES, main, need, shared_path, succeed

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
ROUNDED = {"safetensors-f16": torch.float16, "safetensors-bf16": torch.bfloat16}  # formats with less precision


def logits(model, tokenizer):
    batch = tokenizer(["RONA # 55140 BRACKETS", "AMAZON.CA BOOK"], padding=True, return_tensors="pt")
    with torch.no_grad():
        return model.float()(**batch)[0]


def same_as_golden(directory, format_name, dtype):
    theirs, tokenizer = load(GOLDEN / "tiny-bert-classification")
    out = directory / f"{format_name}-{dtype}"
    succeed("convert", "--model", GOLDEN / "formats" / format_name, "--output", out, "--dtype", dtype)
    ours, _ = load(out, "auto")
    assert ours.dtype == TYPES[dtype], (ours.dtype, dtype)
    expected = theirs.state_dict() if hasattr(ours, "classifier") else theirs.bert.state_dict()
    found = ours.state_dict()
    assert set(found) == set(expected), set(found) ^ set(expected)
    for name, tensor in expected.items():
        stored = tensor.to(ROUNDED.get(format_name, torch.float32)).to(torch.float32).to(TYPES[dtype])
        assert torch.equal(found[name], stored), f"{out}: {name}"
    if hasattr(ours, "classifier") and dtype == "f32" and format_name not in ROUNDED:
        assert torch.equal(logits(ours, tokenizer), logits(theirs, tokenizer)), out


def test_every_format(directory):
    need("golden/formats", "golden/tiny-bert-classification")
    formats = sorted(p.name for p in (GOLDEN / "formats").iterdir())
    assert len(formats) == 13, formats
    for name in formats:
        same_as_golden(directory, name, "f32")


def test_every_type(directory):
    need("golden/formats", "golden/tiny-bert-classification")
    for name in ("pytorch-zip", "tensorflow-1-checkpoint", "safetensors-f16", "safetensors-bf16"):
        for dtype in ("f16", "bf16"):
            same_as_golden(directory, name, dtype)


def test_answers(directory):
    need("golden/tiny-bert-qa")
    theirs, _ = load(GOLDEN / "tiny-bert-qa")
    succeed("convert", "--model", GOLDEN / "tiny-bert-qa", "--output", directory / "out")
    ours, _ = load(directory / "out")
    expected, found = theirs.state_dict(), ours.state_dict()
    assert set(found) == set(expected) and all(torch.equal(found[n], expected[n]) for n in expected)


def test_published_checkpoints(directory):
    for name in ("camphr_tiny_ner_bert", "keras_bert_tf_ckpt"):
        need(f"weights/{name}")
        succeed("convert", "--model", shared_path(f"weights/{name}"), "--output", directory / name)
        load(directory / name)


def sentence_logits(directory, texts):
    """What encode() of sentence-transformers computes; by its configuration files where it is not installed."""
    try:
        import sentence_transformers
        return torch.tensor(sentence_transformers.SentenceTransformer(str(directory)).encode(texts))
    except ImportError:
        encoder, tokenizer = load(directory)
    limit = json.loads((directory / "sentence_bert_config.json").read_text())["max_seq_length"]
    modules = json.loads((directory / "modules.json").read_text())
    assert [each["type"].rsplit(".", 1)[1] for each in modules] == ["Transformer", "Pooling", "Dense", "Dense"], modules
    assert json.loads((directory / "1_Pooling/config.json").read_text())["pooling_mode_cls_token"]
    with torch.no_grad():
        batch = tokenizer(texts, padding=True, truncation=True, max_length=limit, return_tensors="pt")
        values = encoder.eval()(**batch).last_hidden_state[:, 0]
        for each in modules[2:]:
            config = json.loads((directory / each["path"] / "config.json").read_text())
            layer = torch.nn.Linear(config["in_features"], config["out_features"])
            weights = load_file(directory / each["path"] / "model.safetensors")
            layer.load_state_dict({name.removeprefix("linear."): tensor for name, tensor in weights.items()})
            name = config["activation_function"].rsplit(".", 1)[1]
            values = getattr(torch.nn, name)()(layer(values))
    return values


def test_sentence_transformers(directory):
    """A model of --recipe quick has the probabilities of `predict` without n-grams."""
    rows = SAMPLES / "toronto-train.csv"
    succeed("train", "--model", minilm(), "--train", rows, "--label-column", "category", "--max-train-samples", 400,
            "--recipe", "quick", "--precision", "fp32", "--output", directory / "run")
    succeed("convert", "--model", directory / "run", "--to", "sentence-transformers", "--output", directory / "out")
    printed = succeed("predict", "--model", directory / "run", "--input", rows, "--precision", "fp32", "--output", "-").out
    ours = list(csv.DictReader(printed.splitlines()))[:60]
    found = sentence_logits(directory / "out", [row["text"] for row in ours]).softmax(1)
    names = json.loads((directory / "out/config.json").read_text())["id2label"]
    assert [names[str(int(i))] for i in found.argmax(1)] == [row["label"] for row in ours]
    near([float(row["probability"]) for row in ours], found.max(1).values, 1e-5, "probability")


main(globals())
