"""evaluate --max-error and predict --automatic: a promise from fresh rows, kept by the model."""
import hashlib
import json
import random
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "scripts/bench/loop")]
import promise
from fixtures import MODEL, MODELS, read_safetensors, rows_of, write
from harness import DEVICE, fail, main, need, run, succeed


def rows(count, seed):
    """Different texts. The label follows from the text, except in one row of eight."""
    draw, out = random.Random(seed), ["text,label"]
    for i in range(count):
        label = draw.choice(["fuel", "food", "rent"])
        out.append(f"{label * draw.randrange(2)} {label[0] * 2} {seed}{i:04},"
                   f"{label if draw.random() > 0.125 else 'food'}")
    return "\n".join(out) + "\n"


def file(directory, name, count, seed):
    return write(directory / f"{name}.csv", rows(count, seed))


def test_a_promise_is_made_from_fresh_rows_and_used(directory):
    need(*MODELS)
    model, fresh = directory / "run/model", file(directory, "fresh", 1500, 5)
    succeed("train", "--model", MODEL, "--reinit-head", "--train", file(directory, "train", 600, 1), "--eval",
            file(directory, "dev", 200, 2), "--output", directory / "run", "--quiet", "--lr", "3e-3", "--epochs", 2, *DEVICE)
    evaluate = ["evaluate", "--model", model, "--no-ngram-baseline", "--data"]
    fail(4, "predict", "--model", model, "--input", fresh, "--output", "-", "--automatic",
         words=["promise.json", "no promise", "--max-error"])
    # Rows that trained or chose the model promise nothing.
    fail(2, *evaluate, directory / "train.csv", "--max-error", 0.2, words=["train.csv", "trained on"])
    fail(2, *evaluate, directory / "dev.csv", "--max-error", 0.2, words=["dev.csv", "chose"])
    fail(2, *evaluate, fresh, "--confidence", 0.9, words=["--confidence", "--max-error"])
    fail(2, *evaluate, fresh, "--max-error", 0.2, "--target-accuracy", 0.9, words=["--target-accuracy"])
    # A promise that cannot be kept: exit code 7, and how many rows would do.
    few = run(*evaluate, file(directory, "few", 10, 6), "--max-error", 0.2)
    assert few.code == 7 and "no promise of at most 20.0 %" in few.out and "rows like these" in few.out, few
    assert "from these 9 rows (every tenth row only chose" in few.out, few
    assert not (model / "promise.json").exists()
    told = succeed(*evaluate, fresh, "--max-error", 0.2, "--json", "--output", directory / "evaluated")
    assert " of 1,350 rows (" in told.err and "every tenth row" in told.err and "left out" not in told.err, told
    made = json.loads((model / "promise.json").read_text())
    metrics = json.loads(told.out)
    assert "promise: at most 20.0 %" in told.err and made["version"] == 1, told
    assert metrics["eval_promise_threshold"] == made["threshold"]
    assert metrics["eval_promise_error"] == made["wrong"] / made["automatic"]
    # The same threshold as the script's that measures how often promises are broken.
    predicted = promise.predictions(directory / "evaluated/predictions.csv", "label", "predicted_label")
    assert promise.promised(predicted, 0.2, 0.95) == round(made["threshold"] * promise.STEPS)
    assert made["rows"] == sum(i % promise.PILOT != 0 for i in range(1500))
    # predict uses it, to the digit, and evaluate does not replace it unasked.
    common = ["predict", "--model", model, "--input", fresh, "--output", "-", "--quiet"]
    automatic = succeed(*common, "--automatic").out
    assert automatic == succeed(*common, "--min-probability", made["threshold"]).out
    labels = [row[2] for row in rows_of(automatic)[1:]]
    assert 0 < labels.count("unsure") < len(labels), labels
    fail(2, *common, "--automatic", "--min-probability", 0.5, words=["--automatic", "--min-probability"])
    fail(2, *evaluate, fresh, "--max-error", 0.2, words=["promise.json", "--overwrite"])
    # Texts that the run read, under whichever name, and repeated texts promise nothing.
    lines, used = fresh.read_text().splitlines(), (directory / "train.csv").read_text().splitlines()[1:]
    used += (directory / "dev.csv").read_text().splitlines()[1:]
    write(directory / "copy.csv", "\n".join([lines[0], *used]))
    fail(2, *evaluate, directory / "copy.csv", "--max-error", 0.2, "--overwrite", words=["copy.csv", "has read"])
    fail(2, *evaluate, directory / "copy.csv", "--max-error", 0.2, "--overwrite", "--train", directory / "few.csv",
         words=["copy.csv", "has read"])
    write(directory / "more.csv", "\n".join([*lines[:2], *used, *lines[1:], lines[9]]))
    more = succeed(*evaluate, directory / "more.csv", "--max-error", 0.2, "--overwrite")
    assert ("left out: 800 rows whose text the model's run read, 2 rows whose text an earlier row has;" in more.out), more
    assert json.loads((model / "promise.json").read_text()) == made
    # The card and the report of the run say it once, in the same words. A converted model has no promise.
    said = re.search(r"promise: (at most 20.0 % .* wrong\));", more.out)[1]
    card = (model / "README.md").read_text()
    assert card.count("Promise: ") == 1 and f"|\n\nPromise: {said}; `finetune predict --automatic` uses it.\n\n## Data" in card, card
    assert f"<p>Promise: {said}; finetune predict --auto" in succeed("report", directory / "run", "--output", "-").out
    succeed("convert", "--model", model, "--dtype", "bf16", "--output", directory / "bf16")
    assert "Promise: " not in (directory / "bf16/README.md").read_text()
    # It is about this model with these options alone.
    fail(4, *common, "--automatic", "--max-length", 9, words=["promise.json", "max-length 9"])
    copy = shutil.copytree(model, directory / "copy")
    common[2] = copy
    assert succeed(*common, "--automatic").out == automatic
    assert made.keys() >= {"config_sha256", "weights_sha256", "tokenizer_sha256"}
    for text, word in (("{", "damaged"), ('{"version": 2}', "version 2"), ('{"version": 1}', "max_error"),
                       (json.dumps({**made, "threshold": 7}), "threshold is 7"),
                       (json.dumps({**made, "threshold": 0}), "threshold is 0"),
                       (json.dumps({**made, "rows": 1e300}), "rows is 1e+300"),
                       (json.dumps({**made, "wrong": -5}), "wrong is -5"),
                       (json.dumps({**made, "wrong": made["automatic"]}), "too many"),
                       (json.dumps({**made, "weights_sha256": "0" * 64}), "other weights")):
        (copy / "promise.json").write_text(text)
        fail(4, *common, "--automatic", words=["promise.json", word])
    # A report without its promise is a report.
    stored = (model / "promise.json").read_text()
    write(model / "promise.json", "{")
    report = succeed("report", directory / "run", "--output", "-")
    assert "<p class=\"note\">The promise is not shown: " in report.out and "promise.json: is damaged" in report.out, report.out
    assert report.err.count("warning: the promise of ") == 1, report.err
    write(model / "promise.json", stored)
    (copy / "promise.json").write_text(json.dumps(made))
    changed = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps({**changed, "note": "changed"}))
    fail(4, *common, "--automatic", words=["promise.json", "another tokenizer"])
    # Shards are the model's weights, not their index alone.
    shards, shard = shutil.copytree(model, directory / "shards"), "model-00001-of-00001.safetensors"
    (shards / "promise.json").unlink()
    (shards / "model.safetensors").rename(shards / shard)
    stored = (shards / shard).read_bytes()
    index = {"weight_map": {name: shard for name in read_safetensors(shards / shard)}}
    write(shards / "model.safetensors.index.json", json.dumps(index))
    evaluate[2] = common[2] = shards
    succeed(*evaluate, fresh, "--max-error", 0.2)
    assert succeed(*common, "--automatic").out == automatic
    write(shards / shard, stored[:-4] + b"\0\0\0\0")
    fail(4, *common, "--automatic", words=["promise.json", "other weights"])
    # Of a moved model only the checksum of its data is known; a promise that fails replaces the old one.
    evaluate[2] = copy
    facts = json.loads((copy / "finetune.json").read_text())
    sum_of_few = hashlib.sha256((directory / "few.csv").read_bytes()).hexdigest()
    (copy / "finetune.json").write_text(json.dumps({**facts, "data_sha256": sum_of_few}))
    fail(2, *evaluate, directory / "few.csv", "--max-error", 0.2, "--overwrite", words=["few.csv", "checksum"])
    (copy / "finetune.json").write_text(json.dumps(facts))
    failed = run(*evaluate, directory / "few.csv", "--max-error", 0.2, "--overwrite")
    assert failed.code == 7 and "could not be checked" in failed.err and "removed" in failed.err, failed
    assert not (copy / "promise.json").exists() and "Promise: " not in (copy / "README.md").read_text()
    # A card that a user wrote stays as it is.
    write(copy / "README.md", "mine\n\n## Data\n")
    succeed(*evaluate, fresh, "--max-error", 0.2)
    assert (copy / "README.md").read_text() == "mine\n\n## Data\n"


def test_labels_that_no_promise_is_for(directory):
    need(*MODELS)
    train = ["train", "--model", MODEL, "--reinit-head", "--max-steps", 1, "--quiet", "--train"]
    for name, text, given, word in (("several", "text,label\na b,x;y\nc d,x\n", ["--multi-label", ";"], "one label a row"),
                                    ("unsure", "text,label\na b,unsure\nc d,x\n", [], "'unsure'")):
        data = write(directory / f"{name}.csv", text)
        succeed(*train, data, "--output", directory / name, *given, *DEVICE)
        data = write(directory / f"{name}-new.csv", text.replace("a b", "e f"))
        model = ["--model", directory / name]
        fail(2, "evaluate", *model, "--data", data, "--max-error", 0.2, words=["--max-error", word])
        fail(2, "predict", *model, "--input", data, "--output", "-", "--automatic", words=["--automatic", word])


main(globals())
