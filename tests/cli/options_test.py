"""Unusual option values of train, --config, and output streams."""
import csv
import json
import os
import subprocess

from fixtures import read_safetensors
from harness import BINARY, GOLDEN, facts_of, fail, main, metrics_in, metrics_of, need, run, steps_of, succeed

MODEL = (GOLDEN / "tiny-bert-classification").resolve()
TRAIN = (GOLDEN / "trajectory-classification-train.csv").resolve()
EVAL = (GOLDEN / "trajectory-classification-eval.csv").resolve()
DATA = "golden/trajectory-classification-train.csv"
INPUT = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category"]


def arguments(output, *more):
    return [*INPUT, "--output", output, "--max-steps", 2, "--lr", "1e-3", "--warmup-ratio", 0, *more]


def test_odd_numbers(directory):
    need(DATA)
    for option in ("--lr", "--epochs", "--weight-decay", "--adam-epsilon", "--max-grad-norm", "--null-threshold",
                   "--warmup-ratio", "--dropout", "--layer-lr-decay", "--eval-fraction", "--label-smoothing"):
        for value in ("nan", "inf", "1e400", "", "1,5", "0x1", " 1"):
            fail(2, *arguments(directory / "run", option, value), words=[option])
    for option in ("--max-steps", "--batch-size", "--micro-batch-tokens", "--micro-batches", "--max-train-samples", "--max-eval-samples",
                   "--eval-every", "--save-every", "--log-every", "--threads", "--virtual-shards",
                   "--max-length", "--n-best", "--max-answer-length"):
        for value in ("0", "-1", "1.5", "1e3", "99999999999999999999", "", "many"):
            fail(2, *arguments(directory / "run", option, value), words=[option])
    for option in ("--seed", "--warmup-steps", "--early-stopping", "--doc-stride", "--keep-checkpoints"):
        for value in ("-1", "0.5", "99999999999999999999", ""):
            fail(2, *arguments(directory / "run", option, value), words=[option])
    for option, value in (("--dropout", "-1"), ("--dropout", "1"), ("--adam-beta1", "1"), ("--layer-lr-decay", "0"),
                          ("--freeze", "3"), ("--freeze", "-1"), ("--freeze", ""), ("--class-weights", "some"),
                          ("--max-length", "2"), ("--max-length", "513"), ("--time-limit", "5"), ("--assert", ""),
                          ("--best-metric", "eval_accuracy"), ("--early-stopping", "2"), ("--tolerance", "x=1"),
                          ("--multi-label", ""), ("--label-column", ""), ("--baseline", "")):
        fail(2, *arguments(directory / "run", option, value), words=[option])
    assert not (directory / "run").exists()


def test_extreme_values_that_work(directory):
    need(DATA)
    for number, options in enumerate((
            ["--max-train-samples", 3, "--batch-size", 16777216, "--max-steps", 5],  # steps beyond an epoch
            ["--epochs", "1e-9"], ["--micro-batch-tokens", 9000000000000000000], ["--micro-batch-tokens", "auto"],
            ["--micro-batches", 3], ["--micro-batches", 65536],
            ["--threads", "all"], ["--seed", 9223372036854775807], ["--warmup-steps", 1000000], ["--lr", 0],
            ["--adam-beta1", 0, "--adam-beta2", 0], ["--max-length", 3], ["--label-smoothing", 0.5],
            ["--class-weights", "balanced"], ["--layer-lr-decay", 0.5, "--freeze", 1], ["--log_every=2"])):
        out = directory / str(number)
        succeed(*arguments(out, *options))
        again = directory / f"{number}-again"
        succeed("train", "--config", out / "config.toml", "--output", again, cwd=directory)
        assert facts_of(again)["weights_sha256"] == facts_of(out)["weights_sha256"], options


def test_micro_batches_and_shards(directory):
    need(DATA)
    losses = []
    for options in ([], ["--micro-batch-tokens", 1], ["--virtual-shards", 10], ["--virtual-shards", 3],
                    ["--micro-batches", 3], ["--micro-batches", 2, "--virtual-shards", 3]):
        succeed(*arguments(directory / "run", "--overwrite", "--batch-size", 8, *options))
        losses.append([step["loss"] for step in steps_of(directory / "run")])
    for other in losses[1:]:
        assert all(abs(a - b) < 1e-4 * a for a, b in zip(losses[0], other)), losses


def test_a_number_of_micro_batches(directory):
    """One micro-batch per sample has the bits of a limit of one token; the option is stored, and excludes the limit."""
    need(DATA)

    def digest(name, *options):
        succeed(*arguments(directory / name, "--batch-size", 8, *options))
        return facts_of(directory / name)["weights_sha256"]
    one = digest("one", "--micro-batches", 1)
    assert one == digest("plain", "--micro-batch-tokens", 1 << 30)
    assert digest("more", "--micro-batches", 99) == digest("each", "--micro-batches", 8) \
        == digest("tokens", "--micro-batch-tokens", 1)
    three = digest("three", "--micro-batches", 3)
    assert three == digest("again", "--micro-batches", 3, "--threads", 1, "--recompute") != one
    config = (directory / "three" / "config.toml").read_text()
    assert "micro-batches = 3" in config and "micro-batch-tokens" not in config, config
    fail(2, *arguments(directory / "both", "--micro-batches", 3, "--micro-batch-tokens", 64),
         words=["--micro-batches 3", "--micro-batch-tokens 64", "exclude each other"])
    # Resumed after its first step with M from the checkpoint; another value is refused.
    out = directory / "stopped"
    line = arguments(out, "--batch-size", 8, "--save-every", 1, "--keep-checkpoints", 9)
    succeed(*line, "--micro-batches", 3)
    (out / "metrics.json").unlink()
    (out / "checkpoints" / "step-00000002.h5").unlink()
    for other in (["--micro-batches", 2], ["--micro-batch-tokens", 64]):
        fail(2, *line, "--resume", *other, words=["micro-batches"])
    succeed(*line, "--resume")
    assert facts_of(out)["weights_sha256"] == three
    # The command line overrides the file's other option.
    for given in (["--micro-batches", 3], ["--micro-batch-tokens", 1]):
        for kept in ("three", "tokens"):
            out = directory / f"{kept}-{given[0][8:]}"
            succeed("train", "--config", directory / kept / "config.toml", "--output", out, *given)
            assert facts_of(out)["weights_sha256"] == facts_of(directory / ("three" if given[1] == 3 else "tokens"))["weights_sha256"]


def test_shards_beyond_the_batch_are_zero_leaves(directory):
    # 4 samples on 4 and on 8 shards: ((a+b)+(c+d)), regardless of empty shards.
    need(DATA)
    digests = set()
    for shards in (4, 8, 64):
        succeed(*arguments(directory / "run", "--overwrite", "--batch-size", 4, "--virtual-shards", shards))
        digests.add(facts_of(directory / "run")["weights_sha256"])
    assert len(digests) == 1, digests


def test_frozen_parameters_keep_their_bits(directory):
    need(DATA)
    before = read_safetensors(MODEL / "model.safetensors")
    for freeze, frozen_layers in (("none", None), ("embeddings", 0), ("1", 1), ("2", 2)):
        out = directory / freeze
        succeed(*arguments(out, "--freeze", freeze, "--max-steps", 3))
        for name, value in read_safetensors(out / "model/model.safetensors").items():
            layer = int(name.split("layer.")[1].split(".")[0]) if "layer." in name else -1
            frozen = frozen_layers is not None and name.startswith("bert.") and "pooler" not in name and (
                layer < frozen_layers)
            assert (value == before[name]) == frozen, (freeze, name)


def test_config_file(directory):
    need(DATA)
    config = directory / "config.toml"

    def with_config(text, *more):
        config.write_text(text, encoding="utf-8")
        return ["train", "--config", config, *more]

    good = (f"# mine\nmodel = '{MODEL}'\ntrain = [\n  '{TRAIN}', # twice\n  '{TRAIN}',\n]\nlabel_column = 'category'\n"
            f"eval = '{EVAL}'\nmax_steps = 1_0\nlr = 2e-3\nno-shuffle = true\noutput = 'run'\nweight-decay = 2.5e-1\n")
    succeed(*with_config(good, "--max_steps=2", "--no-shuffle=false", "--eval-fraction", "0.1"), cwd=directory)
    kept = (directory / "run/config.toml").read_text()
    assert "max-steps = 2\n" in kept and "no-shuffle = false" in kept and "weight-decay = 0.25" in kept, kept
    assert "eval-fraction = 0.1" in kept and "\neval = " not in kept, kept
    assert f'output = "{directory / "run"}"' in kept, kept
    for text, words in (("lrr = 1\n", [":1:", "lrr", "did you mean lr"]), ("lr = [1, 2]\n", [":1:", "lr", "array"]),
                        ("lr = \n", [":1:"]), ("\nlr = 1\nlr = 2\n", [":3:", "twice"]), ("[train]\n", [":1:"]),
                        ("lr = fast\n", [":1:", "fast"]), ("lr = 'fast'\n", ["--lr", "fast"]),
                        ("no-shuffle = 'maybe'\n", ["no-shuffle"]), ("config = 'x'\n", ["config"])):
        fail(2, *with_config(text, "--model", MODEL, "--train", TRAIN, "--output", directory / "x"), words=words)
    fail(2, "train", "--config", directory / "nothing.toml", words=["nothing.toml"])
    # Paths are relative to the working directory; from elsewhere the message names it.
    (directory / "models").mkdir()
    (directory / "models/tiny").symlink_to(MODEL)
    (directory / "elsewhere").mkdir()
    relative = with_config(f"model = 'models/tiny'\ntrain = '{TRAIN}'\n", "--output", directory / "x")
    fail(2, *relative, cwd=directory / "elsewhere", words=[
        "config.toml:1: model 'models/tiny': is relative to the directory that the command is started in",
        f"start it in {directory}, or give --model {directory}/models/tiny"])
    # A recipe other than the file's chooses its own values again.
    again = ["train", "--config", directory / "run/config.toml", "--max-steps", 1]
    other = succeed(*again, "--recipe", "auto", "--weight-decay", 0, "--output", directory / "other").err
    assert "recipe auto: batch-size " in other and "lr = 0.002" in kept, (other, kept)
    assert "lr = 0.001\n" in (directory / "other/config.toml").read_text(), other
    named = succeed(*again, "--recipe", "hf", "--output", directory / "named").err
    assert "recipe hf:" not in named and "lr = 0.002\n" in (directory / "named/config.toml").read_text(), named
    plain = succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--recipe", "hf", "--max-steps",
                    1, "--output", directory / "plain").err
    assert "recipe hf: batch-size 32, lr 5e-05" in plain, plain
    assert "no evaluation data" in plain and "mixed" not in plain, plain


def test_names_beyond_ascii(directory):
    need(DATA)
    data = directory / "Überweisungen – 銀行.csv"
    rows = [("Müller", "größe"), ("日本", "小さい"), ("a,b", 'with "quotes"'), ("x", "größe")]
    with open(data, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("Text, ganz", "Etikett\n2"), *rows])
    out = directory / "Lauf ü\n2"
    # A column name with a comma works for the label, not for the text: --text-column separates by commas.
    line = ["train", "--model", MODEL, "--train", data, "--label-column", "Etikett\n2", "--output", out, "--epochs", 1,
            "--reinit-head"]
    succeed(*line, env={"LC_ALL": "C"})
    labels = json.loads((out / "model/config.json").read_text())["id2label"]
    assert sorted(labels.values()) == sorted({label for _, label in rows}), labels
    succeed("train", "--config", out / "config.toml", "--output", directory / "again")
    fail(2, *line, words=["Lauf ü\\n2"])  # one line, whatever the name
    latin = os.fsencode(directory) + b"/caf\xe9"
    fail(2, *INPUT, "--output", os.fsdecode(latin), words=["--output", "UTF-8"])


def test_locale(directory):
    need(DATA)
    for locale in ("de_DE.UTF-8", "C.UTF-8", "nonsense"):
        out = directory / locale
        result = succeed(*arguments(out, "--json", "--lr", "0.0015"), env={"LC_ALL": locale})
        assert metrics_in(result.out) == metrics_of(out)
    assert len({facts_of(directory / l)["weights_sha256"] for l in ("de_DE.UTF-8", "C.UTF-8", "nonsense")}) == 1


def test_streams(directory):
    need(DATA)
    result = succeed(*arguments(directory / "quiet", "--quiet", "--json"))
    assert result.err == "" and json.loads(result.out)["train_steps"] == 2
    plain = succeed(*arguments(directory / "two words"))
    lines = plain.out.splitlines()
    assert "no rows were held out" in lines[0] and lines[1] == f"model: '{directory}/two words/model'", plain
    assert lines[2].startswith("next:  finetune predict --model '") and len(lines) <= 8, plain
    log = (directory / "quiet/log.txt").read_text()
    assert "model: " in log and "weights sha256" in log, log
    for line in plain.err.splitlines():
        assert f" {line}\n" in (directory / "two words/log.txt").read_text(), line
    result = run(*arguments(directory / "gate", "--json", "--assert", "train_loss<0"))
    assert result.code == 7 and "FAIL" in result.err and json.loads(result.out), result
    assert "FAIL" in (directory / "gate/log.txt").read_text()
    # With closed streams the run continues, and no log text ends up in a file of the run.
    command = " ".join(f"'{word}'" for word in [BINARY, *arguments(directory / "closed")])
    done = subprocess.run(f"{command} >&- 2>&- <&-", shell=True)
    assert done.returncode == 0
    assert [step["step"] for step in steps_of(directory / "closed")] == [1, 2]
    command = " ".join(f"'{word}'" for word in [BINARY, *arguments(directory / "pipe", "--max-steps", 30)])
    done = subprocess.run(f"({command}; echo $? >'{directory}/code') 2>&1 >/dev/null | true", shell=True)
    assert (directory / "code").read_text() == "0\n"
    full = subprocess.run([BINARY, *map(str, arguments(directory / "full", "--quiet"))], stdout=open("/dev/full", "w"),
                          stderr=subprocess.PIPE, text=True)
    assert full.returncode == 4 and "standard output" in full.stderr, full


def test_diverged(directory):
    need(DATA)
    data = directory / "huge.csv"
    data.write_text("text,label\na,1e30\nb,-3e30\nc,2e30\nd,1e30\n")
    out = directory / "run"
    result = run("train", "--model", MODEL, "--train", data, "--regression", "--no-standardize", "--reinit-head",
                 "--output", out)
    assert result.code == 6 and "step 1" in result.err, result
    assert result.err.splitlines()[-1].startswith("finetune: error: ")
    assert result.err.splitlines()[-1] in (out / "log.txt").read_text(), "the log lacks the error"
    assert not (out / "metrics.json").exists() and not (out / "model").exists()
    # The weights themselves overflow in the last update: that is a failure too.
    result = run(*arguments(directory / "last", "--max-steps", 1, "--lr", 999, "--weight-decay", "1e38"))
    assert result.code == 6, result


def test_models_and_heads(directory):
    need(DATA)
    succeed(*arguments(directory / "a"))
    head = succeed("train", "--model", directory / "a", "--train", TRAIN, "--label-column", "category", "--output",
                   directory / "b", "--max-steps", 1, "--lr", 0)
    assert "is kept" in head.err, head
    assert facts_of(directory / "a")["weights_sha256"] == facts_of(directory / "b")["weights_sha256"]
    succeed("train", "--model", directory / "a/model/model.safetensors", "--train", TRAIN, "--label-column", "category",
            "--output", directory / "c", "--max-steps", 1, "--lr", 0)
    assert facts_of(directory / "c")["weights_sha256"] == facts_of(directory / "b")["weights_sha256"]
    renewed = succeed(*arguments(directory / "d", "--reinit-head"))
    assert "newly initialised" in renewed.err, renewed
    # Never over files that the run itself reads.
    before = (directory / "a/model/model.safetensors").read_bytes()
    for model in ("a", "a/model", "a/model/model.safetensors"):
        fail(2, "train", "--model", directory / model, "--train", TRAIN, "--label-column", "category", "--output",
             directory / "a", "--overwrite", words=["--overwrite", "model"])
    fail(2, *arguments(directory / "a", "--overwrite", "--baseline", directory / "a/metrics.json", "--tolerance",
                       "train_loss=1"), words=["metrics.json"])
    assert (directory / "a/model/model.safetensors").read_bytes() == before


def test_pairs_regression_and_several_labels(directory):
    need(DATA)
    data = directory / "rows.csv"
    with open(data, "w", newline="") as file:
        csv.writer(file).writerows([("a", "b", "number", "tags"), *(
            (f"word {i}", f"other {i}", i / 7, "x;y" if i % 2 else "y") for i in range(20))])
    base = ["train", "--model", MODEL, "--train", data, "--text-column", "a", "--text-pair-column", "b",
            "--eval-fraction", "0.25", "--reinit-head", "--epochs", "1.5", "--batch-size", "4"]
    succeed(*base, "--label-column", "number", "--regression", "--output", directory / "number")
    assert metrics_of(directory / "number")["train_steps"] == 6  # ceil(1.5 * ceil(15 / 4))
    succeed(*base, "--label-column", "number", "--regression", "--best-metric", "pearson", "--output",
            directory / "pearson")
    succeed(*base, "--label-column", "tags", "--multi-label", ";", "--best-metric", "eval_loss", "--output",
            directory / "tags", "--assert", "eval_runtime>0", "--assert", "best_step>=1", "--assert",
            "eval_samples_per_second>0")
    fail(2, *base, "--label-column", "number", "--regression", "--class-weights", "balanced", "--output",
         directory / "x", words=["--class-weights"])
    fail(2, *base, "--label-column", "number", "--regression", "--ignore-unknown-labels", "--output", directory / "x",
         words=["--regression", "--ignore-unknown-labels"])
    fail(2, *base, "--label-column", "tags", "--multi-label", ";", "--regression", "--output", directory / "x",
         words=["--regression"])


def test_options_of_the_other_task(directory):
    need("golden/tiny-bert-qa", "golden/trajectory-qa-train.json", DATA)
    model, data = GOLDEN / "tiny-bert-qa", GOLDEN / "trajectory-qa-train.json"
    out = directory / "run"
    questions = ["--model", model, "--train", data, "--eval", data, "--max-steps", 1, "--max-train-samples", 4,
                 "--max-eval-samples", 2, "--quiet", "--output", out]
    of_rows = [["--text-column", "zz"], ["--text-pair-column", "zz"], ["--label-column", "zz"], ["--multi-label", ","],
               ["--regression"], ["--skip-bad-rows"], ["--ignore-unknown-labels"], ["--class-weights", "balanced"],
               ["--label-smoothing", "0.3"]]
    for given in of_rows:
        fail(2, "train", "--task", "qa", *questions, *given, words=[given[0], "for classification", "is qa"])
    every = [word for given in of_rows if given[0] != "--regression" for word in given]
    fail(2, "train", *questions, *every, words=[*(given[0] for given in of_rows if given[0] != "--regression"),
                                                 str(data)])
    fail(2, "plan", *questions, "--label-smoothing", "0.3", words=["--label-smoothing"])
    rows = ["--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-steps", 1, "--quiet",
            "--max-train-samples", 99, "--output", directory / "rows"]
    for given in (["--doc-stride", 64], ["--n-best", 5], ["--max-answer-length", 7], ["--null-threshold", "-1"],
                  ["--squad-version", "2"]):
        for task in ([], ["--task", "classification"]):
            fail(2, "train", *task, *rows, *given, words=[given[0], "for question answering", "is classification"])
    assert not out.exists() and not (directory / "rows").exists()
    # Default values cause no warning, whether given or listed in a run's config.toml.
    succeed("train", *questions, "--label-smoothing", "0.0", "--label-column", "label", "--class-weights", "none")
    text = (out / "config.toml").read_text()
    assert "label-smoothing = 0.0" in text and "doc-stride = 128" in text, text
    again = directory / "again.toml"
    again.write_text(text.replace("null-threshold = 0.0", "null-threshold = -2.5"))
    succeed("train", "--config", again, "--output", directory / "again", "--quiet")
    assert "null-threshold = -2.5" in (directory / "again/config.toml").read_text()
    succeed("train", *rows, "--doc-stride", 128, "--null-threshold", "0.0")
    succeed("train", "--config", directory / "rows/config.toml", "--output", directory / "rows again", "--quiet")


def test_columns_that_are_numbers(directory):
    """Columns '1' and '1.0' are different, although the numbers are equal."""
    data = directory / "train.csv"
    data.write_text("text,1,1.0\n" + "".join(f"words {i},{'ab'[i % 2]},{'ba'[i % 3 > 0]}\n" for i in range(12)))
    line = ["train", "--model", MODEL, "--train", data, "--reinit-head", "--max-steps", 4, "--save-every", 2,
            "--keep-checkpoints", 9, "--lr", "1e-3", "--output", directory / "run"]
    need(DATA)
    succeed(*line, "--label-column", "1")
    (directory / "run/metrics.json").unlink()
    fail(2, *line, "--resume", "--label-column", "1.0", words=["label-column (1 there, 1.0 now)"])
    succeed(*line, "--resume", "--label-column", "1", "--lr", "0.0010")


main(globals())
