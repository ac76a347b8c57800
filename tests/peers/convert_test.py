"""Every output of `finetune convert`, in transformers.

It loads without a warning and holds the numbers of its source in the type asked for."""
import torch
from peer import load

from harness import GOLDEN, main, need, shared_path, succeed

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


main(globals())
