"""Bad input: one clear line each, the right exit code, no output written."""
import json
import shutil
import subprocess

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, Tensor, copied, read_safetensors, write, write_safetensors
from harness import GOLDEN, Skip, fail, main, need, run, succeed

GOOD = "text,label\nalpha,a\nbeta,b\ngamma,a\ndelta,b\n"


def train(directory, data, *more):
    return ["train", "--model", MODEL, "--train", data, "--output", directory / "run", "--epochs", "1",
            "--reinit-head", *more]


def refused(directory, code, text, words, *more, name="train.csv"):
    need("golden/tiny-bert-classification")
    data = write(directory / name, text)
    fail(code, *train(directory, data, *more), words=words)
    assert not (directory / "run").exists(), "something was left behind"


def test_good(directory):
    need("golden/tiny-bert-classification")
    succeed(*train(directory, write(directory / "train.csv", GOOD)))


def test_head_for_other_labels(directory):
    need("golden/tiny-bert-classification")
    fail(4, "train", "--model", MODEL, "--train", write(directory / "t.csv", GOOD), "--output", directory / "run",
         words=["head", "--reinit-head", "the data has 2 labels: 'a'"])


def test_missing_file(directory):
    need("golden/tiny-bert-classification")
    fail(3, *train(directory, directory / "nothing.csv"), words=["nothing.csv"])


def test_directory_instead_of_file(directory):
    need("golden/tiny-bert-classification")
    fail(3, *train(directory, directory), words=[str(directory), "directory"])


def test_file_that_the_limit_leaves_unread(directory):
    need("golden/tiny-bert-classification")
    data = write(directory / "train.csv", GOOD)
    for option, limit in (("--train", "--max-train-samples"), ("--eval", "--max-eval-samples")):
        for other, words in ((directory / "absent.csv", ["absent.csv"]), (directory, ["directory"])):
            fail(3, *train(directory, data, "--eval", data, option, data, other, limit, 2), words=words)
            assert not (directory / "run").exists(), "something was left behind"


def test_empty_csv(directory):
    refused(directory, 3, "", ["train.csv", "empty"])


def test_header_only(directory):
    refused(directory, 3, "text,label\n", ["train.csv"])


def test_missing_column(directory):
    refused(directory, 3, "text,lable\nx,a\ny,b\n", ["train.csv", "label", "lable"])


def test_ragged_row(directory):
    refused(directory, 3, GOOD + "one,two,three\n", ["train.csv:6"])


def test_advice_names_options_of_the_command(directory):
    """An option that the command lacks, or that its task does not use, is no way out."""
    need("golden/tiny-bert-classification", "golden/tiny-bert-qa")
    qa = GOLDEN / "tiny-bert-qa"
    latin = write(directory / "latin.csv", b"text,label\ncaf\xe9,a\n")
    ragged = write(directory / "ragged.csv", "text,label\na,b,c\n")
    lists = write(directory / "lists.jsonl", '{"text":"a","label":["a","b"]}\n')
    questions = write(directory / "questions.csv", "id,question,context,answers\n1,Who?\n")
    questions_latin = write(directory / "latin-questions.csv", b"id,question,context,answers\n1,Who?,caf\xe9,a\n")
    assert "--encoding" in fail(3, "evaluate", "--model", MODEL, "--data", latin, words=["latin.csv:2"])
    assert "--skip-bad-rows" in fail(3, "predict", "--model", MODEL, "--input", ragged, "--output", "-", words=["ragged.csv:2"])
    for words, command in ((["latin.csv:2"], ["tokenize", "--model", MODEL, latin]),
                           (["ragged.csv:2"], ["tokenize", "--model", MODEL, ragged]),
                           (["list of labels"], ["evaluate", "--model", MODEL, "--data", lists]),
                           (["questions.csv:2"], ["train", "--task", "qa", "--model", qa, "--train", questions,
                                                  "--output", directory / "run"]),
                           (["questions.csv:2"], ["predict", "--model", qa, "--input", questions, "--output", "-"]),
                           (["questions.csv:2"], ["score", "--data", questions, "--predictions", lists]),
                           (["latin-questions.csv:2"], ["evaluate", "--model", qa, "--data", questions_latin])):
        error = fail(3, *command, words=words)
        assert "--multi-label" not in error, error
        if lists not in command:
            assert "--encoding" not in error and "--skip-bad-rows" not in error, error


def test_empty_label(directory):
    refused(directory, 3, GOOD + "words,\n", ["train.csv:6", "label"])


def test_empty_text(directory):
    refused(directory, 3, GOOD + ",a\n", ["train.csv:6", "text"])


def test_skip_bad_rows(directory):
    need("golden/tiny-bert-classification")
    result = succeed(*train(directory, write(directory / "t.csv", GOOD + ",a\none,two,three\n"), "--skip-bad-rows"))
    assert "2" in result.err, result


def test_unclosed_quote(directory):
    refused(directory, 3, GOOD + '"never closed,a\n', ["train.csv:6", "quote"])


def test_invalid_utf8(directory):
    refused(directory, 3, GOOD.encode() + b"caf\xe9,a\n", ["train.csv:6", "UTF-8"])


def test_one_class(directory):
    refused(directory, 3, "text,label\nx,a\ny,a\n", ["label"])


def test_unknown_eval_label(directory):
    need("golden/tiny-bert-classification")
    evaluation = write(directory / "dev.csv", "text,label\nx,a\ny,zebra\n")
    data = write(directory / "train.csv", GOOD)
    fail(3, *train(directory, data, "--eval", evaluation), words=["zebra", "--ignore-unknown-labels"])
    succeed(*train(directory, data, "--eval", evaluation, "--ignore-unknown-labels"))


def test_nul_and_spaces_in_json_lines(directory):
    row = '{"text":"alpha","label":"a"}\n'
    for bad in ('{"text":"be\\u0000ta","label":"b"}\n', '{"text":"beta","label":"b\\u0000"}\n'):
        refused(directory, 3, row + bad, ["train.jsonl:2", "NUL"], name="train.jsonl")
    refused(directory, 3, '{"text":"alpha","text ":"x","label":"a"}\n', ["two columns are named 'text'"],
            name="train.jsonl")


def with_stored(directory, **stored):
    """A copy of the model with this object `finetune` in config.json."""
    shutil.rmtree(directory / "model", ignore_errors=True)
    return copied(MODEL, directory / "model", finetune=stored)


def test_stored_options_that_no_option_gives(directory):
    need("golden/tiny-bert-classification")
    data = write(directory / "t.csv", GOOD)
    for key, value in (("label_smoothing", 1), ("label_smoothing", -0.5), ("max_length", 2), ("label_column", ""),
                       ("label_column", "text"), ("text_column", ["text", "text"]), ("class_weights", [0] * 24),
                       ("class_weights", [1e38] * 24), ("calibration", {"thresholds": [2] * 24})):
        model = with_stored(directory, **{"text_column": ["text"], key: value})
        words = ["config.json", f"finetune.{key}"]
        fail(4, "evaluate", "--model", model, "--data", data, "--ignore-unknown-labels", words=words)
        if key != "class_weights":  # class weights only affect the loss
            fail(4, "predict", "--model", model, "--input", data, "--output", "-", words=words)


def test_truncated_squad(directory):
    need("golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    text = (GOLDEN / "trajectory-qa-train.json").read_text()[:5000]
    data = write(directory / "squad.json", text)
    fail(3, "train", "--task", "qa", "--model", GOLDEN / "tiny-bert-qa", "--train", data, "--output", directory / "run",
         words=["squad.json"])


def test_no_question(directory):
    need("golden/tiny-bert-qa")
    data = write(directory / "squad.json", json.dumps({"version": "1.1", "data": []}))
    fail(3, "train", "--task", "qa", "--model", GOLDEN / "tiny-bert-qa", "--train", data, "--output", directory / "run",
         words=["squad.json"])


def test_max_length_beyond_positions(directory):
    refused(directory, 2, GOOD, ["max-length"], "--max-length", "100000")


def test_output_exists(directory):
    need("golden/tiny-bert-classification")
    (directory / "run").mkdir()
    write(directory / "run/precious.txt", "mine")
    fail(2, *train(directory, write(directory / "t.csv", GOOD)), words=["run"])
    fail(2, *train(directory, write(directory / "t.csv", GOOD), "--overwrite"), words=["run"])
    assert (directory / "run/precious.txt").read_text() == "mine"


def test_unwritable_output(directory):
    need("golden/tiny-bert-classification")
    write(directory / "file", "x")
    fail(4, "train", "--model", MODEL, "--train", write(directory / "t.csv", GOOD), "--reinit-head", "--output",
         directory / "file/run", words=["file/run"])


def test_full_disk(directory):
    need("golden/tiny-bert-classification")
    disk = directory / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True)
    if mounted.returncode != 0:
        raise Skip("a small tmpfs cannot be mounted here (needs root)")
    try:
        result = run("train", "--model", MODEL, "--train", write(directory / "t.csv", GOOD), "--epochs", "1",
                     "--reinit-head", "--output", disk / "run")
        assert result.code == 4 and "of disk" in result.err, result
        assert [l for l in result.err.splitlines() if l.startswith("finetune: error: ")], result
        assert not list((disk / "run").rglob("*.tmp*")), "a temporary file was left"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_model_without_vocabulary(directory):
    need("golden/broken/vocabulary-missing")
    data = write(directory / "t.csv", GOOD)
    fail(4, "train", "--model", GOLDEN / "broken/vocabulary-missing", "--train", data, "--output", directory / "run",
         words=["vocab.txt"])
    fail(4, "train", "--model", directory / "no-such-model", "--train", data, "--output", directory / "run",
         words=["no-such-model"])


def with_token_types(source, destination, types):
    """A copy of a model with this number of token types."""
    model = copied(source, destination, type_vocab_size=types)
    tensors = read_safetensors(source / "model.safetensors")
    for name, (shape, data, _) in tensors.items():
        if "token_type_embeddings" in name:
            tensors[name] = Tensor((types, *shape[1:]), (data * types)[:len(data) // shape[0] * types])
    write_safetensors(model / "model.safetensors", tensors)
    return model


def test_pairs_for_a_model_of_one_token_type(directory):
    need("golden/tiny-bert-classification", "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    words = ["type_vocab_size is 1", "config.json"]
    one = with_token_types(MODEL, directory / "one", 1)
    run_directory = directory / "run"
    pairs = write(directory / "p.csv", "text,other,label\nx,y,a\ny,z,b\n")
    base = ["train", "--model", one, "--train", pairs, "--reinit-head", "--output", run_directory, "--epochs", "1"]
    fail(4, *base, "--text-pair-column", "other", words=words)
    fail(4, "predict", "--model", one, "--input", pairs, "--text-pair-column", "other", "--output", "-", words=words)
    fail(4, "evaluate", "--model", one, "--data", pairs, "--text-pair-column", "other", words=words)
    assert not run_directory.exists()
    qa = with_token_types(GOLDEN / "tiny-bert-qa", directory / "qa", 1)
    squad = GOLDEN / "trajectory-qa-train.json"
    fail(4, "train", "--model", qa, "--train", squad, "--output", run_directory, words=words)
    fail(4, "predict", "--model", qa, "--input", squad, "--output", "-", words=words)
    fail(4, "evaluate", "--model", qa, "--data", squad, words=words)
    assert not run_directory.exists()
    # Single texts are fine, and so are pairs with more types than two.
    succeed(*base)
    three = with_token_types(MODEL, directory / "three", 3)
    succeed("predict", "--model", three, "--input", pairs, "--text-pair-column", "other", "--output", "-")


def test_vocabulary_beyond_the_embedding(directory):
    need("golden/tiny-bert-classification")
    model = copied(MODEL, directory / "model")
    data = write(directory / "t.csv", GOOD)
    base = ["train", "--model", model, "--train", data, "--reinit-head", "--output", directory / "run"]
    with open(model / "vocab.txt", "a", encoding="utf-8") as file:
        file.write("".join(f"extra{i}\n" for i in range(40000)))
    for name in ("tokenizer.json", "special_tokens_map.json"):
        (model / name).unlink(missing_ok=True)
    fail(4, *base, words=["vocabulary", "embedding"])
    assert not (directory / "run").exists()
    # A much smaller number may belong to another model: it works, with a warning.
    write(model / "vocab.txt", "".join(open(MODEL / "vocab.txt", encoding="utf-8").readlines()[:1500]))
    assert "do they belong together?" in succeed(*base).err


def test_unknown_option_and_values(directory):
    need("golden/tiny-bert-classification")
    data = write(directory / "t.csv", GOOD)
    fail(2, *train(directory, data, "--learning-rat", "1"), words=["learning-rat"])
    fail(2, *train(directory, data, "--lr", "fast"), words=["lr", "fast"])
    fail(2, *train(directory, data, "--lr", "-1"), words=["lr"])
    fail(2, *train(directory, data, "--schedule", "zigzag"), words=["zigzag"])
    fail(2, *train(directory, data, "--batch-size", "0"), words=["batch-size"])
    fail(2, *train(directory, data), "--device", "tpu", words=["tpu"])
    fail(5, *train(directory, data, "--device", "cuda"), words=["cuda"])
    fail(2, "train", words=["--model"])
    alone = run()
    assert alone.code == 2 and "Usage: finetune COMMAND" in alone.out, alone
    assert alone.err.count("\n") == 1 and "a command is needed" in alone.err, alone


def test_every_broken_model(directory):
    need("golden/broken")
    data = write(directory / "t.csv", "text,category\nx,Utilities\ny,Other\n")
    names = sorted(p for p in (GOLDEN / "broken").iterdir() if p.is_dir())
    assert len(names) == 29, len(names)
    for model in names:
        fail(4, "train", "--model", model, "--train", data, "--label-column", "category", "--output",
             directory / "run", cwd=directory)
        fail(4, "predict", "--model", model, "--input", data, "--output", directory / "out.csv", cwd=directory)
        assert not (directory / "run").exists() and not (directory / "out.csv").exists(), model
        assert not (directory / "pwned").exists() and not (model / "pwned").exists(), model


def test_every_format_gives_the_same_predictions(directory):
    need("golden/formats")
    data = GOLDEN / "trajectory-classification-eval.csv"

    def predictions(model):
        return succeed("predict", "--model", model, "--input", data, "--output", "-", "--all-probabilities").out

    expected = predictions(MODEL)
    for model in sorted((GOLDEN / "formats").iterdir()):
        if model.name in ("safetensors-f16", "safetensors-bf16", "safetensors-no-prefix-no-head"):
            continue  # rounded weights are tested in tests/unit/weights; predict refuses a model without a head
        assert predictions(model) == expected, model


main(globals())
