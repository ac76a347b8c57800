"""Outputs that are NaN or infinite give exit code 6, not perfect metrics; convert still works."""
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, TRAIN, copied, read_safetensors, tagged_rows, write, write_safetensors
from harness import fail, main, need, run, succeed

# After the first update the weights give no finite output.
DIVERGING = ["--lr", "0.5", "--weight-decay", "1e30", "--max-steps", 1, "--warmup-steps", 0, "--threads", 1]
DIVERGED = ["diverged at step 1", "not finite"]


def model_with(directory, name, edit):
    """A copy of the model after edit(tensors)."""
    model = copied(MODEL, directory / name)
    tensors = read_safetensors(MODEL / "model.safetensors")
    edit(tensors)
    write_safetensors(model / "model.safetensors", tensors)
    return model


def fill_head(tensors):
    head = tensors["classifier.weight"]
    tensors["classifier.weight"] = head._replace(data=struct.pack("<f", 3e38) * (len(head.data) // 4))


def test_updates_that_diverge(directory):
    need(*MODELS)
    rows = ["--train", TRAIN, "--eval", EVAL, "--label-column", "category"]
    tagged = tagged_rows(directory / "tagged.csv")
    texts = write(directory / "texts.csv", "text\n" + "one two three four five\n" * 8)
    kinds = {"labels": ["train", *rows, "--best-metric", "eval_brier", "--assert", "eval_brier<=0.1"],
             "tags": ["train", "--train", tagged, "--eval", tagged, "--label-column", "tags", "--multi-label", ";",
                      "--reinit-head"],
             "numbers": ["train", "--train", tagged, "--eval", tagged, "--label-column", "number", "--regression",
                         "--reinit-head"],
             "words": ["adapt", "--text", texts, "--eval", texts]}
    for name, line in kinds.items():
        result = run(*line, "--model", MODEL, "--output", directory / name, *DIVERGING, "--quiet")
        # The rows are both training and evaluation data, which causes a warning.
        error, = (text for text in result.err.splitlines() if not text.startswith("warning: "))
        assert result.code == 6 and error.startswith("finetune: error: "), result
        assert all(word in error for word in DIVERGED), error
        assert not (directory / name / "metrics.json").exists() and not (directory / name / "model").exists(), name


def test_models_that_diverge(directory):
    need(*MODELS)
    model = model_with(directory, "model", fill_head)
    fail(6, "evaluate", "--model", model, "--data", EVAL, "--label-column", "category", "--quiet", "--assert",
         "eval_brier<=0.1", words=["row 1", "not finite"])
    fail(6, "predict", "--model", model, "--input", EVAL, "--output", directory / "out.csv", "--quiet",
         words=["row 1", "not finite"])
    assert not (directory / "out.csv").exists()


def test_half_a_head(directory):
    need(*MODELS)
    query = "bert.encoder.layer.0.attention.self.query.weight"

    def whole_numbers(tensors):
        tensors[query] = tensors[query]._replace(kind="I32")
    edits = {"without its bias": (lambda tensors: tensors.pop("classifier.bias"), "'classifier.bias' is missing"),
             "without a pooler's bias": (lambda tensors: tensors.pop("bert.pooler.dense.bias"), "bias' is missing"),
             "of whole numbers": (whole_numbers, "holds i32")}
    for name, (edit, word) in edits.items():
        model, out = model_with(directory, name, edit), directory / f"{name} converted"
        fail(4, "convert", "--model", model, "--output", out, words=[word])
        assert not out.exists()

    def without_head(tensors):
        for tensor in ("classifier.weight", "classifier.bias", "bert.pooler.dense.weight", "bert.pooler.dense.bias"):
            del tensors[tensor]
    succeed("convert", "--model", model_with(directory, "without a head", without_head), "--output", directory / "whole")


main(globals())
