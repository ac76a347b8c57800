"""DistilBERT, end to end: Trainer's trajectories, and every command that works with a model."""
import csv
import json
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import evaluate, kill_when, predict, rows_of, write
from harness import DEVICE, GOLDEN, facts_of, fail, main, metrics_of, need, steps_of, succeed

FAMILY = GOLDEN / "family"
MODEL, QA_MODEL, MASKED = (FAMILY / "distilbert" / task for task in ("classification", "qa", "mlm"))
TRAIN = FAMILY / "trajectory-classification-train.csv"
SQUAD = FAMILY / "distilbert/trajectory-qa-train.json"
DATA = "golden/family/distilbert"
ROWS = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-length", 40, "--batch-size",
        8, "--lr", "3e-3", "--epochs", 1, "--no-progress", *DEVICE]
QUESTIONS = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--max-length", 96, "--doc-stride", 32,
             "--batch-size", 4, "--lr", "3e-3", "--epochs", 1, "--no-progress", *DEVICE]


def close(ours, golden, tolerance):
    return abs(ours - golden) <= tolerance * abs(golden)


def trajectory(directory, name, line, precision, *more):
    """Loss, rate and norm of each step. A loss at 3e-3 doubles rounding every few steps."""
    need(DATA)
    golden = json.loads((FAMILY / f"distilbert/trajectory-{name}.json").read_text())
    run = directory / "run"
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


def test_trajectory_of_classification(directory):
    trajectory(directory, "classification", ROWS, "fp32")


def test_trajectory_of_classification_in_tensor_shards(directory):
    trajectory(directory, "classification", ROWS, "fp32", "--tensor-shards", 2)


def test_trajectory_of_classification_in_bf16(directory):
    trajectory(directory, "classification", ROWS, "bf16")


def test_trajectory_of_questions(directory):
    trajectory(directory, "qa", QUESTIONS, "fp32", "--recompute")


def test_trajectory_of_questions_in_bf16(directory):
    trajectory(directory, "qa", QUESTIONS, "bf16")


def sum_of(directory, name, line, *more):
    succeed(*line, *more, "--output", directory / name)
    return facts_of(directory / name)["weights_sha256"]


def test_dropout_is_that_of_the_config(directory):
    """Each of its keys has an effect of its own; --dropout sets all. The same masks with --recompute."""
    need(DATA)
    for task, line, model, keys in (("rows", ROWS, MODEL, ("dropout", "attention_dropout", "seq_classif_dropout")),
                                    ("questions", QUESTIONS, QA_MODEL, ("dropout", "attention_dropout", "qa_dropout"))):
        line = [*line, "--max-steps", 3, "--quiet"]
        sums = {sum_of(directory, f"{task}-none", line)}
        config = json.loads((model / "config.json").read_text())
        for key in keys:
            changed = directory / f"{task}-{key}-model"
            changed.mkdir()
            for file in model.iterdir():
                (changed / file.name).write_bytes(file.read_bytes())
            (changed / "config.json").write_text(json.dumps({**config, key: 0.2}))
            sums.add(sum_of(directory, f"{task}-{key}", [changed if word == model else word for word in line]))
        assert len(sums) == 1 + len(keys), (task, sums)
        plain = sum_of(directory, f"{task}-all", line, "--dropout", 0.2)
        assert plain not in sums, task
        assert plain == sum_of(directory, f"{task}-again", line, "--dropout", 0.2, "--recompute"), task


def test_rows_from_training_to_prediction(directory):
    need(DATA)
    run = directory / "run"
    succeed(*ROWS, "--eval", TRAIN, "--epochs", 4, "--lr", "5e-3", "--output", run, "--quiet")
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == ["DistilBertForSequenceClassification"], config
    assert config["model_type"] == "distilbert" and config["dim"] == 32 and "hidden_size" not in config, config
    metrics = metrics_of(run)
    again = json.loads(evaluate(TRAIN, "--json", model=run / "model").out)
    assert again["eval_accuracy"] == metrics["eval_accuracy"] > 0.3, (again, metrics)
    rows = rows_of(TRAIN.read_text(encoding="utf-8"))
    labels = [row[rows[0].index("category")] for row in rows[1:]]
    found = list(csv.DictReader(predict(TRAIN, model=run / "model").out.splitlines()))
    right = sum(row["label"] == label for row, label in zip(found, labels))
    assert abs(right / len(labels) - metrics["eval_accuracy"]) < 1e-9, right


def test_two_texts_of_a_row(directory):
    """There are no token types: the separator between two texts is all that tells them apart."""
    need(DATA)
    data = write(directory / "pairs.csv", "text,other,label\n" + "".join(
        f"coffee {i},{'tea' if i % 2 else 'bus'} {i},{'ab'[i % 2]}\n" for i in range(24)))
    run = directory / "run"
    succeed("train", "--model", MODEL, "--reinit-head", "--train", data, "--text-column", "text", "--text-pair-column",
            "other", "--max-steps", 3, "--lr", "1e-3", "--output", run, "--quiet", *DEVICE)
    assert len(predict(data, model=run / "model").out.splitlines()) == 25


def test_new_head(directory):
    need(DATA)
    log = succeed(*ROWS, "--reinit-head", "--max-steps", 1, "--output", directory / "run").err
    assert "the head (classifier) is newly initialised" in log and "pooler" not in log, log


def test_resumed_run(directory):
    need(DATA)
    line = [*ROWS, "--dropout", 0.1, "--epochs", 3, "--save-every", 5, "--quiet"]
    expected = sum_of(directory, "straight", line)
    out = directory / "killed"
    log = out / "metrics.jsonl"
    code = kill_when(lambda: log.exists() and log.read_bytes().count(b"\n") >= 12, *line, "--output", out)
    assert code == -9, "the run ended before it was killed"
    assert sum_of(directory, "killed", line, "--resume") == expected


def test_answers(directory):
    need(DATA)
    run = directory / "run"
    succeed(*QUESTIONS, "--eval", SQUAD, "--output", run, "--quiet")
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == ["DistilBertForQuestionAnswering"], config
    again = json.loads(evaluate(SQUAD, "--json", model=run / "model").out)
    assert again["eval_f1"] == metrics_of(run)["eval_f1"], again
    succeed("predict", "--model", run / "model", "--input", SQUAD, "--output", directory / "answers.json")
    assert json.loads((directory / "answers.json").read_text()) == json.loads((run / "predictions.json").read_text())


def test_adapted_then_trained(directory):
    need(DATA)
    rows = rows_of(TRAIN.read_text(encoding="utf-8"))
    texts = write(directory / "texts.txt", "".join(row[rows[0].index("text")] + "\n" for row in rows[1:]))
    source = directory / "source"  # the encoder alone has no vocabulary
    source.mkdir()
    for file in [*MASKED.iterdir(), MODEL / "vocab.txt", MODEL / "tokenizer.json", MODEL / "tokenizer_config.json"]:
        (source / file.name).write_bytes(file.read_bytes())
    run = directory / "run"
    log = succeed("adapt", "--model", source, "--text", texts, "--output", run, "--lr", "3e-3", "--epochs", 3,
                  "--eval-fraction", 0.2, "--no-progress", *DEVICE).err
    assert "the head (vocab_transform) of the weights is kept" in log, log
    metrics, steps = metrics_of(run), steps_of(run)
    assert abs(metrics["eval_perplexity"] / math.exp(metrics["eval_loss"]) - 1) < 1e-6, metrics
    assert steps[-1]["loss"] < 0.95 * steps[0]["loss"], steps
    config = json.loads((run / "model/config.json").read_text())
    assert config["architectures"] == ["DistilBertForMaskedLM"], config
    with open(run / "model/model.safetensors", "rb") as file:
        names = set(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
    assert "vocab_projector.bias" in names and "vocab_projector.weight" not in names, names
    log = succeed(*[run / "model" if word == MODEL else word for word in ROWS], "--max-steps", 1, "--output",
                  directory / "rows").err
    assert "the head (classifier) is newly initialised" in log, log
    assert "not needed: 5 other tensors (vocab_layer_norm.bias" in log and "does not have" not in log, log


def test_converted_and_inspected(directory):
    need(DATA)
    succeed("convert", "--model", MODEL, "--output", directory / "same")
    assert (directory / "same/model.safetensors").read_bytes() == (MODEL / "model.safetensors").read_bytes()
    seen = json.loads(succeed("inspect", directory / "same", "--json").out)
    assert seen["config"]["model_type"] == "distilbert" and seen["config"]["hidden_size"] == 32, seen["config"]
    assert len(seen["weights"]["tensors"]) == 40 and not seen["weights"]["ignored"], seen["weights"]
    succeed("convert", "--model", MASKED, "--output", directory / "bare")
    config = json.loads((directory / "bare/config.json").read_text())
    assert config["architectures"] == ["DistilBertModel"], config


def test_planned_before_the_run(directory):
    need(DATA)
    said = succeed("plan", *ROWS[1:-len(DEVICE) or None], "--output", directory / "run").out
    assert "memory" in said, said


def test_other_architectures_are_refused_by_name(directory):
    need(DATA)
    model = directory / "roberta"
    model.mkdir()
    for file in MODEL.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    (model / "config.json").write_text('{"model_type": "roberta"}')
    fail(4, *[model if word == MODEL else word for word in ROWS], "--output", directory / "run",
         words=["roberta/config.json", "model_type is 'roberta'", "'bert' and 'distilbert'"])


main(globals())
