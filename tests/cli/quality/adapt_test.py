"""finetune adapt: from texts to a model for train, also after interruptions."""
import array
import gzip
import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, TRAIN, copied, read_safetensors, rows_of, write
from harness import BINARY, GOLDEN, PATIENCE, facts_of, fail, main, metrics_of, need, steps_of, succeed

NAMES = ("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
HEAD = {"cls.predictions.bias", *(f"cls.predictions.transform.{name}" for name in (
    "dense.weight", "dense.bias", "LayerNorm.weight", "LayerNorm.bias"))}


def texts(count=200):
    rows = rows_of(TRAIN.read_text(encoding="utf-8"))
    column = rows[0].index("text")
    return [row[column] for row in rows[1:count + 1]]


def text_file(directory, count=200):
    return write(directory / "texts.txt", "".join(text + "\n" for text in texts(count)))


def adapt(out, files, *more, **options):
    files = [files] if not isinstance(files, list) else files
    return succeed("adapt", "--model", MODEL, "--text", *files, "--output", out, "--lr", "3e-3", "--no-progress", *more,
                   **options)


def test_model_that_train_takes(directory):
    need(*NAMES)
    run_directory = directory / "run"
    data = text_file(directory)
    log = adapt(run_directory, data, "--eval-fraction", 0.2, "--epochs", 4).err
    assert "the head (cls.predictions.transform.dense) is newly initialised" in log, log
    assert "train: 160 texts" in log and "eval: 40 texts" in log and "whole words" in log, log
    metrics, steps = metrics_of(run_directory), steps_of(run_directory)
    assert abs(metrics["eval_perplexity"] / math.exp(metrics["eval_loss"]) - 1) < 1e-6, metrics
    assert 0 < metrics["eval_accuracy"] <= metrics["eval_top5_accuracy"] < 1, metrics
    assert sum(s["loss"] for s in steps[-5:]) < 0.95 * sum(s["loss"] for s in steps[:5]), steps
    model = run_directory / "model"
    config = json.loads((model / "config.json").read_text())
    assert config["architectures"] == ["BertForMaskedLM"] and config["finetune"]["task"] == "mlm", config
    names = set(read_safetensors(model / "model.safetensors"))
    assert HEAD < names and not any("pooler" in n or "decoder" in n or "classifier" in n for n in names), names
    assert facts_of(run_directory)["task"] == "mlm"
    # The model's own head continues, and the evaluation starts where the first run's ended.
    again = directory / "again"
    log = adapt(again, data, "--eval-fraction", 0.2, "--lr", 0, "--max-steps", 1).err
    assert "newly initialised" in log, log
    log = succeed("adapt", "--model", run_directory, "--text", data, "--eval-fraction", 0.2, "--lr", 0, "--max-steps",
                  1, "--output", directory / "on").err
    assert "the head (cls.predictions.transform.dense) of the weights is kept" in log, log
    on = metrics_of(directory / "on")
    assert on["eval_loss"] == metrics["eval_loss"] < 0.95 * metrics_of(again)["eval_loss"], (on, metrics)
    trained = directory / "trained"
    log = succeed("train", "--model", model, "--train", TRAIN, "--label-column", "category", "--max-steps", 2,
                  "--head-init", "random", "--output", trained).err
    assert "no pooler: newly initialised" in log and "(classifier) is newly initialised" in log, log
    assert "not needed: 5 other tensors" in log, log
    for command in (["evaluate", "--data", TRAIN], ["predict", "--input", data, "--output", "-"]):
        fail(4, *command, "--model", model, words=["no trained head"])


# transformers' BertForMaskedLM from the weights that the run below begins with, the same words hidden
# (tests/peers/adapt_test.py has the loop): 4 epochs over 37 texts.
LOSSES = [8.35165, 8.55661, 8.45561, 8.47344, 8.19439, 8.31711, 8.46835, 8.33503, 8.20317, 8.25046, 8.09287, 8.35557,
          8.21746, 8.02604, 8.07524, 7.92959, 8.20621, 8.15348, 8.1118, 8.1025]


def test_losses_are_those_of_hugging_face(directory):
    need(*NAMES)
    adapt(directory / "run", text_file(directory, 37), "--batch-size", 8, "--dropout", 0, "--no-shuffle", "--precision",
          "fp32", "--max-length", 64, "--lr", 5e-4, "--epochs", 4, "--warmup-steps", 2)
    found = [step["loss"] for step in steps_of(directory / "run")]
    assert len(found) == len(LOSSES)
    for ours, theirs in zip(found, LOSSES):
        assert abs(ours - theirs) < 1e-4, (found, LOSSES)


def values_of(model, name):
    tensor = read_safetensors(model / "model.safetensors")[name]
    assert tensor.kind == "F32", tensor.kind
    return array.array("f", tensor.data)


def test_random_weights(directory):
    """A config and a vocabulary are enough; the seed decides on the weights."""
    need(*NAMES)
    data = text_file(directory, 24)
    model = copied(MODEL, directory / "bert", ["model.safetensors"])
    line = ["adapt", "--text", data, "--max-steps", 1, "--lr", 0, "--no-progress"]
    fail(4, *line, "--model", model, "--output", directory / "none", words=["has no weights"])
    sums = []
    for name, more in (("a", []), ("b", ["--seed", 7]), ("c", ["--threads", 1])):
        log = succeed(*line, *more, "--model", model, "--reinit", "--output", directory / name).err
        assert f"are random (--reinit, --seed {7 if more[:1] == ['--seed'] else 42})" in log, log
        sums.append(facts_of(directory / name)["weights_sha256"])
    assert sums[0] == sums[2] != sums[1], sums
    made, config = directory / "a/model", json.loads((model / "config.json").read_text())
    words = values_of(made, "bert.embeddings.word_embeddings.weight")
    width = config["hidden_size"]
    pad = config.get("pad_token_id", 0)
    assert not any(words[pad * width:(pad + 1) * width])
    deviation = math.sqrt(sum(x * x for x in words) / len(words))
    assert abs(deviation / config.get("initializer_range", 0.02) - 1) < 0.03, deviation
    assert set(values_of(made, "bert.embeddings.LayerNorm.weight")) == {1}
    assert not any(values_of(made, "bert.encoder.layer.0.output.dense.bias"))
    for name in ("albert", "mpnet", "roberta"):
        need(f"golden/family/{name}")
        other = copied(GOLDEN / "family" / name / "classification", directory / name, ["model.safetensors"])
        succeed(*line, "--model", other, "--reinit", "--output", directory / f"{name}-run", "--quiet")
    fail(2, "train", "--model", model, "--reinit", "--train", TRAIN, "--label-column", "category", "--output",
         directory / "train", words=["--reinit"])


def test_the_same_texts_in_other_files(directory):
    need(*NAMES)
    lines = texts(60)
    plain = write(directory / "a.txt", "".join(f"{t}\n\n   \n" for t in lines[:30]))
    table = write(directory / "b.tsv", "id\tstory\n" + "".join(f"{i}\t{t}\n" for i, t in enumerate(lines[:30])))
    packed = directory / "c.txt.gz"
    packed.write_bytes(gzip.compress("\n".join(lines[30:]).encode()))
    objects = write(directory / "d.jsonl", "".join(json.dumps({"text": t, "label": 1}) + "\n" for t in lines))
    sums = set()
    for number, (files, *more) in enumerate((([plain, packed],), ([objects],),
                                             ([table], "--text-column", "story", "--max-steps", 1))):
        out = directory / f"run-{number}"
        log = adapt(out, files, "--epochs", 1, *more).err
        assert ("60 empty rows left out" in log) == (number == 0), log
        if number < 2:
            sums.add(facts_of(out)["weights_sha256"])
    assert len(sums) == 1, sums
    # --text-column is required if several columns are candidates.
    fail(3, "adapt", "--model", MODEL, "--text", table, "--output", directory / "x", words=["--text-column", "'story'"])


def test_repeated_texts(directory):
    need(*NAMES)
    lines = texts(40)
    once = write(directory / "once.txt", "\n".join(lines))
    often = write(directory / "often.txt", "\n".join(lines + lines[:25] + lines[5:15]))
    adapt(directory / "a", once, "--epochs", 1)
    log = adapt(directory / "b", often, "--epochs", 1, "--distinct").err
    assert "train: 40 texts" in log and "35 that repeat others left out" in log, log
    assert facts_of(directory / "a")["weights_sha256"] == facts_of(directory / "b")["weights_sha256"]
    log = adapt(directory / "c", often, "--epochs", 1).err
    assert "train: 75 texts" in log and "35 repeat others" in log, log
    # Held-out texts are counted separately.
    log = adapt(directory / "d", often, "--eval-fraction", 0.2, "--max-steps", 1).err
    repeats = [int(number) for number in re.findall(r"(\d+) repeat others", log)]
    assert 0 < repeats[0] < 35, log


def test_texts_that_cannot_be_used_whole(directory):
    need(*NAMES)
    long = write(directory / "long.txt", "\n".join([" ".join(texts(60))] * 2 + texts(8)))
    log = adapt(directory / "a", long, "--max-steps", 1, "--max-length", 16).err
    cut, lost = (float(number) for number in re.search(r"warning: train: ([\d.]+) % of the texts are cut at 16 tokens, "
                                                       r"which loses ([\d.]+) %", log).groups())
    assert cut == 30 and 50 < lost < 100 and "windows" not in log and "--max-length, up to" in log, log
    # Shares refer to the texts read, not to those used.
    log = adapt(directory / "half", long, "--max-steps", 1, "--max-length", 16, "--eval-fraction", 0.5).err
    assert f"warning: train: {cut} % of the texts are cut" in log and log.count("of the texts are cut") == 1, log
    unknown = write(directory / "unknown.txt", "\n".join(texts(20) + ["\u4e2d\u6587 " * 9] * 20))
    assert "of the tokens are unknown to the model's vocabulary" in adapt(directory / "b", unknown, "--max-steps", 1).err
    assert "unknown to" not in adapt(directory / "c", text_file(directory), "--max-steps", 1).err


def test_options_of_masks(directory):
    need(*NAMES)
    data = text_file(directory, 64)
    sums = {facts_of(directory / name)["weights_sha256"] for name, *more in (
        ("a",), ("b", "--no-whole-words"), ("c", "--mask-probability", 0.3), ("d", "--seed", 7))
        if adapt(directory / name, data, "--max-steps", 2, "--dropout", 0, "--no-shuffle", *more)}
    assert len(sums) == 4
    # The same run under train's name, and from its configuration.
    succeed("train", "--task", "mlm", "--model", MODEL, "--train", data, "--output", directory / "t", "--lr", "3e-3",
            "--max-steps", 2, "--dropout", 0, "--no-shuffle")
    succeed("adapt", "--config", directory / "a/config.toml", "--output", directory / "u")
    for name in ("t", "u"):
        assert facts_of(directory / name)["weights_sha256"] == facts_of(directory / "a")["weights_sha256"], name
    # Threads, recomputation and --json change nothing.
    for number, more in enumerate((["--threads", 1], ["--threads", 3, "--recompute"])):
        out = directory / f"v-{number}"
        line = adapt(out, data, "--max-steps", 2, "--dropout", 0, "--no-shuffle", "--json", *more).out
        assert json.loads(line)["weights_sha256"] == facts_of(directory / "a")["weights_sha256"], more
        assert json.loads(line)["task"] == "mlm"


def test_stopped_and_killed_runs_go_on(directory):
    need(*NAMES)
    data = text_file(directory)
    # Micro-batches and shards; two epochs of 7 steps, a checkpoint in each.
    options = ["--eval-fraction", 0.1, "--batch-size", 26, "--epochs", 6, "--save-every", 3, "--virtual-shards", 3,
               "--micro-batch-tokens", 256, "--dropout", 0.1]
    adapt(directory / "straight", data, *options)
    expected = facts_of(directory / "straight")["weights_sha256"], metrics_of(directory / "straight")["eval_loss"]
    for name, number in (("stopped", signal.SIGUSR1), ("killed", signal.SIGKILL)):
        out = directory / name
        line = ["adapt", "--model", MODEL, "--text", data, "--output", out, "--lr", "3e-3", "--no-progress", "--quiet",
                *options]
        process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.time() + PATIENCE
        while process.poll() is None and time.time() < deadline:
            if (out / "metrics.jsonl").exists() and (out / "metrics.jsonl").read_bytes().count(b"\n") >= 8:
                process.send_signal(number)
                break
            time.sleep(0.001)
        assert process.wait(timeout=PATIENCE) in ((85, 0) if number == signal.SIGUSR1 else (-9, 0))
        succeed(*line, "--resume")
        assert (facts_of(out)["weights_sha256"], metrics_of(out)["eval_loss"]) == expected, name
    # A run from before n-grams were mixed in, which only classification does.
    config = (out / "config.toml").read_text()
    assert 'ngram-mix = "auto"' in config
    (out / "config.toml").write_text(config.replace('ngram-mix = "auto"\n', ""))
    succeed(*line, "--resume")
    other = text_file(directory, 150)  # replaces the first file
    fail(3, *line, "--resume", words=["the data has changed"])
    assert other == data


def changed_model(directory, name, config=None, vocabulary=None):
    model = copied(MODEL, directory / name, **(config or {}))
    if vocabulary:
        for file in model.iterdir():
            if file.suffix in (".json", ".txt") and file.name != "config.json":
                file.write_text(vocabulary(file.read_text(encoding="utf-8")), encoding="utf-8")
    return model


def test_what_is_refused(directory):
    need(*NAMES)
    data = text_file(directory, 20)
    line = ["adapt", "--model", MODEL, "--text", data, "--output", directory / "x"]
    fail(2, "adapt", "--model", MODEL, "--output", directory / "x", words=["--text is required"])
    fail(2, "adapt", "--text", data, "--output", directory / "x", words=["--model is required"])
    fail(2, *line, "--task", "qa", words=["--task qa"])
    fail(2, *line, "--device", "cuda", words=["--device cuda", "--device cpu"])
    fail(2, *line, "--pp", 2, words=["--pp 2"])
    fail(2, *line, "--freeze", 1, words=["--freeze 1"])
    fail(2, *line, "--label-column", "c", words=["--label-column", "classification"])
    fail(2, *line, "--ngram-mix", "yes", words=["--ngram-mix", "classification"])
    for value in (0, 1.5, "x"):
        fail(2, *line, "--mask-probability", value, words=["--mask-probability"])
    fail(2, *line, "--train_file", data, words=["--text"])
    fail(2, *line, "--mlm_probability", 0.2, words=["--mask-probability"])
    fail(2, *line, "--max-length", 2, words=["must be at least 3"])
    fail(2, "train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--distinct", "--output",
         directory / "x", words=["--distinct", "masked language modelling"])
    fail(3, *line[:4], directory / "absent.txt", "--output", directory / "x", words=["absent.txt"])
    fail(3, *line[:4], write(directory / "empty.txt", ""), "--output", directory / "x", words=["empty.txt"])
    fail(3, *line[:4], write(directory / "blank.txt", "\n \n\t\n"), *line[5:], words=["holds no text", "3 empty"])
    fail(3, *line, "--eval", write(directory / "unknown.txt", "☃\n"), words=["no word that could be hidden"])
    fail(3, *line[:4], write(directory / "unknown.txt", "☃\n☃ ☃\n"), *line[5:], words=["no word that could be hidden"])
    fail(3, *line[:4], write(directory / "one.txt", "a text\n"), *line[5:], "--eval-fraction", 0.5,
         words=["cannot be divided"])
    untied = changed_model(directory, "untied", {"tie_word_embeddings": False})
    fail(4, *line[:2], untied, *line[3:], words=["tie_word_embeddings"])
    without = changed_model(directory, "without", vocabulary=lambda text: re.sub(
        r'("mask_token": )?"\[MASK\]"', lambda found: found[0] if found[1] else '"[GONE]"', text).replace(
            "\n[MASK]\n", "\n[GONE]\n"))
    fail(4, *line[:2], without, *line[3:], words=["[MASK]"])
    assert not (directory / "x").exists()
    # One text, and another one without a word to mask.
    for name, text in (("single", "one text"), ("nothing", "☃\n☃ ☃\nplain words\n")):
        out = directory / name
        succeed("adapt", "--model", MODEL, "--text", write(directory / f"{name}.csv", "text\n" + text), "--output", out,
                "--batch-size", 1, "--epochs", 2, "--quiet")
        assert metrics_of(out)["train_steps"] == (2 if name == "single" else 6)


main(globals())
