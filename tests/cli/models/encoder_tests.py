"""Tests of every architecture: Trainer's trajectories, and every command that opens a model."""
import csv
import json
import math
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import (Tensor, copied, evaluate, kill_when, predict, read_safetensors, rows_of, write,
                      write_safetensors)
from harness import DEVICE, GOLDEN, facts_of, metrics_of, need, nightly, steps_of, succeed

FAMILY = GOLDEN / "family"
TRAIN = FAMILY / "trajectory-classification-train.csv"


@dataclass
class Encoder:
    """An architecture with golden values in tests/golden/family."""
    name: str
    class_prefix: str  # of Hugging Face's classes
    head: str  # the modules that a new head, the head for masked words and config.json name
    masked_head: str
    masked_bias: str  # of the decoder
    masked_unused: str  # how the log of another task's run begins to list the tensors of that head
    tied: str  # the decoder's weight, which an export leaves out
    width_key: str
    dropout_keys: tuple  # of classification
    qa_dropout_keys: tuple
    tensors: int  # of the classifier
    model_type: str = ""  # of config.json, where the folder has another name
    masked_others: str = "5 other tensors"  # of the masked model, which a classifier does not need

    def folder(self, name):
        return GOLDEN / f"family/{self.name}/{name}"

    @property
    def model(self):
        return self.folder("classification")

    @property
    def qa_model(self):
        return self.folder("qa")

    @property
    def masked(self):
        return self.folder("mlm")

    @property
    def squad(self):
        return self.folder("trajectory-qa-train.json")

    def need(self, *parts):
        need(*(f"golden/family/{self.name}/{part}" for part in parts or ("classification",)))

    def rows(self, model=None):
        return ["train", "--model", model or self.model, "--train", TRAIN, "--label-column", "category", "--max-length",
                40, "--batch-size", 8, "--lr", "3e-3", "--epochs", 1, "--no-progress", *DEVICE]

    def questions(self, model=None):
        return ["train", "--task", "qa", "--model", model or self.qa_model, "--train", self.squad, "--max-length", 96,
                "--doc-stride", 32, "--batch-size", 4, "--lr", "3e-3", "--epochs", 1, "--no-progress", *DEVICE]


def close(ours, golden, tolerance):
    return abs(ours - golden) <= tolerance * abs(golden)


def trajectory(encoder, directory, name, line, precision, *more):
    """Loss, rate and norm of each step. A loss at 3e-3 doubles rounding every few steps."""
    encoder.need(name)
    golden = json.loads(encoder.folder(f"trajectory-{name}.json").read_text())
    run = directory / "run"
    line[line.index("--lr") + 1] = golden["lr"]
    succeed(*line, "--warmup-ratio", golden["warmup_ratio"], "--weight-decay", golden["weight_decay"], "--dropout", 0,
            "--no-shuffle", "--precision", precision, "--output", run, *more)
    ours = steps_of(run)
    assert [s["step"] for s in ours] == [s["step"] for s in golden["steps"]] == list(range(1, 21)), ours
    for mine, theirs in zip(ours, golden["steps"]):
        early = theirs["step"] <= 10
        if precision == "bf16":
            assert close(mine["loss"], theirs["loss"], 0.03), (mine, theirs)
            continue
        assert close(mine["lr"], theirs["lr"], 1e-9), (mine, theirs)
        assert close(mine["loss"], theirs["loss"], 2e-6 if early else 1e-4), (mine, theirs)
        assert close(mine["grad_norm"], theirs["grad_norm"], 2e-5 if early else 1e-3), (mine, theirs)


def test_trajectory_of_classification(encoder, directory):
    trajectory(encoder, directory, "classification", encoder.rows(), "fp32")


def test_trajectory_of_classification_in_tensor_shards(encoder, directory):
    trajectory(encoder, directory, "classification", encoder.rows(), "fp32", "--tensor-shards", 2)


def test_trajectory_of_classification_in_bf16(encoder, directory):
    trajectory(encoder, directory, "classification", encoder.rows(), "bf16")


def test_trajectory_of_questions(encoder, directory):
    trajectory(encoder, directory, "qa", encoder.questions(), "fp32", "--recompute")


def test_trajectory_of_questions_in_bf16(encoder, directory):
    trajectory(encoder, directory, "qa", encoder.questions(), "bf16")


def sum_of(directory, name, line, *more):
    succeed(*line, *more, "--output", directory / name)
    return facts_of(directory / name)["weights_sha256"]


def test_dropout_is_that_of_the_config(encoder, directory):
    """Each of its keys has an effect of its own; --dropout sets all. The same masks with --recompute."""
    encoder.need("classification", "qa")
    for task, line_of, model, keys in (("rows", encoder.rows, encoder.model, encoder.dropout_keys),
                                       ("questions", encoder.questions, encoder.qa_model, encoder.qa_dropout_keys)):
        few = ["--max-steps", 3, "--quiet"]
        sums = {sum_of(directory, f"{task}-none", [*line_of(), *few])}
        for key in keys:
            changed = copied(model, directory / f"{task}-{key}-model", **{key: 0.2})
            sums.add(sum_of(directory, f"{task}-{key}", [*line_of(changed), *few]))
        assert len(sums) == 1 + len(keys), (task, sums)
        plain = sum_of(directory, f"{task}-all", [*line_of(), *few], "--dropout", 0.2)
        assert plain not in sums, task
        assert plain == sum_of(directory, f"{task}-again", [*line_of(), *few], "--dropout", 0.2, "--recompute"), task


def test_rows_from_training_to_prediction(encoder, directory):
    encoder.need()
    run = directory / "run"
    succeed(*encoder.rows(), "--eval", TRAIN, "--epochs", 8, "--output", run, "--quiet")
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == [encoder.class_prefix + "ForSequenceClassification"], config
    assert config["model_type"] == (encoder.model_type or encoder.name) and config[encoder.width_key] == 32, config
    source = json.loads((encoder.model / "config.json").read_text())
    assert set(config) - set(source) <= {"finetune", "finetune_version", "problem_type", "torch_dtype"}, config
    metrics = metrics_of(run)
    again = json.loads(evaluate(TRAIN, "--json", model=run / "model").out)
    assert again["eval_accuracy"] == metrics["eval_accuracy"] > 0.3, (again, metrics)
    rows = rows_of(TRAIN.read_text(encoding="utf-8"))
    labels = [row[rows[0].index("category")] for row in rows[1:]]
    found = list(csv.DictReader(predict(TRAIN, model=run / "model").out.splitlines()))
    right = sum(row["label"] == label for row, label in zip(found, labels))
    assert abs(right / len(labels) - metrics["eval_accuracy"]) < 1e-9, right


def test_two_texts_of_a_row(encoder, directory):
    """Where there are no token types, the separators between two texts are all that tells them apart."""
    encoder.need()
    data = write(directory / "pairs.csv", "text,other,label\n" + "".join(
        f"coffee {i},{'tea' if i % 2 else 'bus'} {i},{'ab'[i % 2]}\n" for i in range(24)))
    run = directory / "run"
    succeed("train", "--model", encoder.model, "--reinit-head", "--train", data, "--text-column", "text",
            "--text-pair-column", "other", "--max-steps", 3, "--lr", "1e-3", "--output", run, "--quiet", *DEVICE)
    assert len(predict(data, model=run / "model").out.splitlines()) == 25


def test_new_head(encoder, directory):
    encoder.need()
    log = succeed(*encoder.rows(), "--reinit-head", "--max-steps", 1, "--output", directory / "run").err
    assert f"the head ({encoder.head}) is newly initialised" in log and "pooler" not in log.replace("pooler.dense.", ""), log


def test_resumed_run(encoder, directory):
    encoder.need()
    line = [*encoder.rows(), "--dropout", 0.1, "--epochs", 3, "--save-every", 5, "--quiet"]
    expected = sum_of(directory, "straight", line)
    out = directory / "killed"
    log = out / "metrics.jsonl"
    code = kill_when(lambda: log.exists() and log.read_bytes().count(b"\n") >= 12, *line, "--output", out)
    assert code == -9, "the run ended before it was killed"
    assert sum_of(directory, "killed", line, "--resume") == expected


def test_answers(encoder, directory):
    encoder.need("qa")
    run = directory / "run"
    succeed(*encoder.questions(), "--eval", encoder.squad, "--output", run, "--quiet")
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == [encoder.class_prefix + "ForQuestionAnswering"], config
    again = json.loads(evaluate(encoder.squad, "--json", model=run / "model").out)
    assert again["eval_f1"] == metrics_of(run)["eval_f1"], again
    succeed("predict", "--model", run / "model", "--input", encoder.squad, "--output", directory / "answers.json")
    assert json.loads((directory / "answers.json").read_text()) == json.loads((run / "predictions.json").read_text())
    scored = json.loads(succeed("score", "--data", encoder.squad, "--predictions",
                                directory / "answers.json", "--json").out)
    assert scored["eval_f1"] == again["eval_f1"], scored


def names_of(path):
    return set(read_safetensors(path))


def test_adapted_then_trained(encoder, directory):
    encoder.need("classification", "mlm")
    rows = rows_of(TRAIN.read_text(encoding="utf-8"))
    texts = write(directory / "texts.txt", "".join(row[rows[0].index("text")] + "\n" for row in rows[1:]))
    source = copied(encoder.masked, directory / "source")  # the encoder alone has no vocabulary
    for name in ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.json", "tokenizer_config.json",
                 "sentencepiece.bpe.model", "spm.model"):
        if (encoder.model / name).exists():
            (source / name).write_bytes((encoder.model / name).read_bytes())
    run = directory / "run"
    log = succeed("adapt", "--model", source, "--text", texts, "--output", run, "--lr", "3e-3", "--epochs", 3,
                  "--eval-fraction", 0.2, "--no-progress", *DEVICE).err
    assert f"the head ({encoder.masked_head}) of the weights is kept" in log, log
    metrics, steps = metrics_of(run), steps_of(run)
    assert abs(metrics["eval_perplexity"] / math.exp(metrics["eval_loss"]) - 1) < 1e-6, metrics
    assert steps[-1]["loss"] < 0.95 * steps[0]["loss"], steps
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == [encoder.class_prefix + "ForMaskedLM"], config
    names = names_of(run / "model/model.safetensors")
    assert encoder.masked_bias in names and encoder.tied not in names, names
    log = succeed(*encoder.rows(run / "model"), "--max-steps", 1, "--output", directory / "rows").err
    assert f"the head ({encoder.head}) is newly initialised" in log, log
    assert f"not needed: {encoder.masked_others} ({encoder.masked_unused}" in log and "does not have" not in log, log


def test_converted_and_inspected(encoder, directory):
    encoder.need("classification", "mlm")
    succeed("convert", "--model", encoder.model, "--output", directory / "same")
    assert (directory / "same/model.safetensors").read_bytes() == (encoder.model / "model.safetensors").read_bytes()
    seen = json.loads(succeed("inspect", directory / "same", "--json").out)
    assert seen["config"]["model_type"] == (encoder.model_type or encoder.name) and seen["config"]["hidden_size"] == 32, seen["config"]
    assert len(seen["weights"]["tensors"]) == encoder.tensors and not seen["weights"]["ignored"], seen["weights"]
    succeed("convert", "--model", encoder.masked, "--output", directory / "masked")
    config = json.loads((directory / "masked/config.json").read_text())
    assert config["architectures"] == [encoder.class_prefix + "ForMaskedLM"], config
    kept, there = (names_of(folder / "model.safetensors") for folder in (directory / "masked", encoder.masked))
    assert encoder.masked_bias in kept and kept <= there and not any("pooler" in name for name in kept), (kept, there)


def test_pooler_of_a_bare_encoder_is_converted(encoder, directory):
    """No head of RoBERTa's kin reads it; sentence models and transformers' bare class do."""
    if not encoder.masked_head.startswith("lm_head"):
        return
    encoder.need()
    model = copied(encoder.masked, directory / "bare")
    tensors = read_safetensors(model / "model.safetensors")
    base = next(iter(name for name in tensors if "embeddings" in name)).partition(".")[0]
    bare = {name.removeprefix(base + "."): tensor for name, tensor in tensors.items() if not name.startswith("lm_head")}
    pooler = {"pooler.dense.weight": Tensor((32, 32), bytes(4096)), "pooler.dense.bias": Tensor((32,), bytes(128))}
    write_safetensors(model / "model.safetensors", {**bare, **pooler})
    succeed("convert", "--model", model, "--output", directory / "converted")
    assert {base + "." + name for name in pooler} < names_of(directory / "converted/model.safetensors")
    config = json.loads((directory / "converted/config.json").read_text())
    assert config["architectures"] == [encoder.class_prefix + "Model"], config


def test_planned_before_the_run(encoder, directory):
    encoder.need()
    said = succeed("plan", *encoder.rows()[1:-len(DEVICE) or None], "--output", directory / "run").out
    assert "memory" in said, said


# What differs least between architectures.
COSTLY = ("test_trajectory_of_questions_in_bf16", "test_dropout_is_that_of_the_config", "test_two_texts_of_a_row",
          "test_resumed_run", "test_planned_before_the_run")


def tests_of(encoder, at_night=()):
    """The tests above for one architecture, as a test file's globals; some run in the nightly job alone."""
    tests = {name: partial(test, encoder) for name, test in globals().items() if name.startswith("test_")}
    for name in at_night:
        nightly(tests[name])
    return tests
