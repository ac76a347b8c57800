"""Files that mean harm: what they claim is not allocated, what they hold is not obeyed.

A machine that has too little memory is told from a file that is at fault."""
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import (EVAL, MODEL, MODELS, QA_MODEL, TRAIN, Tensor, copied, read_safetensors, squad, write,
                      write_safetensors)
from harness import BINARY, PATIENCE, Result, fail, main, need, shared_path, succeed
from hostile_files import (bert_shapes, replace_in_checkpoint, shared_checkpoint, shared_torch_legacy, shared_torch_zip)

MIB = 1 << 20
ENOUGH = 700 * MIB  # address space for any command on a tiny model
SPECIAL = [*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F),
           *range(0x2066, 0x206A)]
EVIL = "\x1b[2J\x07\u009b31m\u202e\u2066\x7f"


def run_within(limit, *arguments):
    """Runs with this much address space; on two cores, because each thread needs some."""
    def lower():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, timeout=PATIENCE, preexec_fn=lower)
    return Result(done.returncode, done.stdout.decode(errors="surrogateescape"),
                  done.stderr.decode(errors="surrogateescape"))


def refused_within(limit, code, *arguments, words=()):
    result = run_within(limit, *arguments)
    lines = result.err.splitlines()
    assert result.code == code and len(lines) == 1 and lines[0].startswith("finetune: error: "), (arguments, result)
    assert all(word in lines[0] for word in words), (words, lines[0])
    return lines[0]


def clean(output):
    """Contains no byte that a terminal would obey, except line ends."""
    found = sorted({hex(ord(c)) for c in output if ord(c) in SPECIAL and c != "\n"})
    assert not found, (found, output[:2000])
    return output


def commands_on(model, directory):
    """Each command that reads a model's weights."""
    data = ["--label-column", "category"]
    return [["convert", "--model", model, "--output", directory / "converted"],
            ["train", "--model", model, "--train", TRAIN, *data, "--output", directory / "run"],
            ["plan", "--model", model, "--train", TRAIN, *data, "--no-time"],
            ["evaluate", "--model", model, "--data", EVAL, *data],
            ["predict", "--model", model, "--input", EVAL, "--output", directory / "out.csv"]]


def nothing_written(directory):
    for name in ("converted", "run", "out.csv"):
        assert not (directory / name).exists(), name


# ---- what files claim ----

def test_tensors_that_share_their_data(directory):
    """Some megabytes that all tensors share: 5 GB if each were allocated."""
    need("golden/tiny-bert-classification", "golden/trajectory-classification-eval.csv")
    model = copied(MODEL, directory / "model", ["model.safetensors"], hidden_size=1024, intermediate_size=4096,
                   num_attention_heads=16, num_hidden_layers=100)
    shapes = bert_shapes(json.loads((model / "config.json").read_text()))
    claimed = sum(4 * shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes.values())
    assert claimed > 5e9
    elements = 4096 * 1024

    for make, name in ((shared_torch_zip, "pytorch_model.bin"), (shared_torch_legacy, "pytorch_model.bin"),
                       (shared_checkpoint, "bert_model.ckpt")):
        make(model / name, shapes, elements)
        for command in commands_on(model, directory):
            # The mapped file is part of the address space.
            refused_within(ENOUGH + 4 * elements, 4, *command,
                           words=[str(claimed), f"only {4 * elements} bytes", "share their data"])
            nothing_written(directory)
        assert "encoder.layer.99." in run_within(ENOUGH, "inspect", model).out  # inspect reads no weights
        (model / "pytorch_model.bin").unlink(missing_ok=True)


def test_configs_of_any_size(directory):
    """Refused by comparing sizes, before any allocation."""
    need("golden/tiny-bert-classification", "golden/trajectory-classification-eval.csv")
    huge = copied(MODEL, directory / "huge", vocab_size=10**9, hidden_size=10**6, num_attention_heads=1)
    commands = [*commands_on(huge, directory), ["inspect", huge],
                ["bench", "step", "--shape", huge, "--lengths", 16, "--steps", 1]]
    for command in commands:
        refused_within(ENOUGH, 4, *command, words=["config.json", "1000000000", "1000000", "billion parameters"])
    nothing_written(directory)
    # Sizes that a config may have, but these weights do not.
    for key, value, name in (("vocab_size", 2**31 - 1, "word_embeddings"),
                             ("type_vocab_size", 2**31 - 1, "token_type_embeddings"),
                             ("max_position_embeddings", 65536, "position_embeddings"),
                             ("intermediate_size", 1 << 20, "dense"), ("num_hidden_layers", 4096, "is missing")):
        model = copied(MODEL, directory / key, **{key: value})
        for command in commands_on(model, directory):
            refused_within(ENOUGH, 4, *command, words=[name])
            nothing_written(directory)
    model = directory / "vocab_size"  # 512 GB of random weights
    refused_within(ENOUGH, 5, "bench", "step", "--shape", model, "--lengths", 16, "--steps", 1, words=["memory"])


def test_token_ids_of_any_size(directory):
    need("golden/tiny-bert-classification")
    for number in (2**28, 2**31, 2**63 - 1):
        model = copied(MODEL, directory / str(number), ("model.safetensors", "tokenizer_config.json"))
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        tokenizer["added_tokens"].append({"id": number, "content": "[NEW]", "special": True})
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        refused_within(ENOUGH, 4, "tokenize", "--model", model, TRAIN, words=["tokenizer.json", "[NEW]", str(number)])
        del tokenizer["added_tokens"][-1]
        tokenizer["model"]["vocab"]["[NEW]"] = number
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        refused_within(ENOUGH, 4, "tokenize", "--model", model, TRAIN, words=["tokenizer.json", "[NEW]", str(number)])


def test_sentencepiece_ids_of_any_size(directory):
    need("tokenizers/albert-base-v2")
    shutil.copyfile(shared_path("tokenizers/albert-base-v2/spiece.model"), directory / "spiece.model")
    for number in (2**31 - 1, 2**31, 2**32 + 5):
        (directory / "tokenizer_config.json").write_text(
            json.dumps({"added_tokens_decoder": {str(number): {"content": "[NEW]"}}}))
        fail(4, "tokenize", "--model", directory, EVAL, words=["'[NEW]'", str(number)])


def test_heads_of_any_size(directory):
    """A shape without elements needs no memory, whatever its first dimension."""
    need("golden/tiny-bert-classification")
    model = copied(MODEL, directory / "model")
    tensors = read_safetensors(model / "model.safetensors")
    tensors["ignored.weight"] = tensors.pop("classifier.weight")
    write_safetensors(model / "model.safetensors", {**tensors, "classifier.weight": Tensor((10**12, 0), b"")})
    refused_within(ENOUGH, 4, "convert", "--model", model, "--output", directory / "o",
                   words=["classifier.weight", str(10**12)])


# ---- what files hold ----

def hostile_safetensors(model, *names):
    more = {prefix + name: Tensor((0,), b"") for name in names for prefix in ("", "cls.predictions.")}
    write_safetensors(model / "model.safetensors", {**read_safetensors(MODEL / "model.safetensors"), **more})


def test_tensors_that_no_model_has_are_warned_of_in_one_line(directory):
    """Tensors that Hugging Face ignores too (extra layers, adapters, anything) are skipped silently."""
    need(*MODELS)
    model = copied(MODEL, directory / "model", num_hidden_layers=1)
    with_more = copied(MODEL, directory / "more")
    hostile_safetensors(with_more, *(f"extra.{number}{EVIL}" + "x" * 500 for number in range(1000)))
    for case, path, words in (("fine", MODEL, ()), ("layer", model, ("16 other tensors (bert.encoder.layer.1.", ", …)")),
                              ("more", with_more, ("1,000 other tensors (extra.0\\x1b[2J", "…, …)"))):
        (directory / f"out-{case}").mkdir()
        for line in commands_on(path, directory / f"out-{case}"):
            if line[0] == "plan":
                continue
            result = succeed(*line, *(["--max-steps", 1] if line[0] == "train" else []))
            found = [text for text in clean(result.err).splitlines() if text.startswith("warning: ")
                     and not text.startswith("warning: the majority")]
            assert len(found) == bool(words), (line, result)
            for text in found:
                assert str(path / "model.safetensors") in text and len(text.encode()) < 700, text
                assert all(word in text for word in words), text


def test_inspect_shows_control_bytes_as_such(directory):
    need("golden/tiny-bert-classification")
    labels = {str(i): f"{i}{EVIL}" for i in range(24)}
    model = copied(MODEL, directory / f"model{EVIL}", id2label=labels)
    hostile_safetensors(model, f"tensor{EVIL}\n" + "x" * 100_000)
    shown = clean(succeed("inspect", model).out)
    assert "\\x1b[2J\\x07\\u009b31m\\u202e" in shown and max(map(len, shown.splitlines())) < 3000
    result = succeed("inspect", model, "--json")
    values = json.loads(clean(result.out))
    assert values["config"]["labels"][3] == f"3{EVIL}"
    assert any(tensor["name"].startswith(f"tensor{EVIL}\n") for tensor in values["weights"]["tensors"])
    # The log of a command that reads the file names unneeded tensors.
    data = ["--label-column", "category", "--reinit-head"]
    result = succeed("train", "--model", model, "--train", TRAIN, *data, "--output", directory / "run", "--max-steps", 1)
    assert "tensor\\x1b" in clean(result.err)
    assert "tensor\\x1b" in clean((directory / "run/log.txt").read_text())


def test_inspect_of_a_hostile_run(directory):
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    line = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--output", directory / "run",
            "--max-steps", 1, "--quiet"]
    succeed(*line)
    run_directory = directory / "run"
    escaped = "".join(f"\\U{ord(c):08x}" for c in EVIL)
    with open(run_directory / "config.toml", "a") as config:
        config.write(f'"x{EVIL}" = "{escaped}"\n')
    facts = json.loads((run_directory / "run.json").read_text())
    (run_directory / "run.json").write_text(json.dumps({**facts, f"fact{EVIL}": EVIL}))
    metrics = json.loads((run_directory / "metrics.json").read_text())
    (run_directory / "metrics.json").write_text(json.dumps({**metrics, f"metric{EVIL}": 1}))
    shown = clean(succeed("inspect", run_directory).out)
    for word in ("fact\\x1b", "x\\x1b"):
        assert word in shown, word
    values = json.loads(clean(succeed("inspect", run_directory, "--json").out))
    assert values["run"]["metrics"][f"metric{EVIL}"] == 1
    for options in ([], ["--json"]):  # a finished run prints its result again
        clean(succeed(*line[:-1], "--resume", *options).out)
    (run_directory / "metrics.json").write_text("{}")
    fail(4, "inspect", run_directory, words=["metrics.json", "no metric"])
    (run_directory / "config.toml").write_text("# finetune 0.1.0\n\x1b\n")
    clean(fail(4, "inspect", run_directory, words=["config.toml:2"]))


def test_messages_show_control_bytes_as_such(directory):
    need("golden/tiny-bert-classification", "golden/tiny-bert-qa")
    model = copied(MODEL, directory / "model", hidden_act=f"gelu{EVIL}")
    files = {"columns.tsv": f"te{EVIL}xt\tnumber\nx\t1\n", "ragged.tsv": f"te{EVIL}xt\tlabel\nx\n",
             "quote.csv": f'text,label\n"a"{EVIL},b\n', "lines.jsonl": f"{{{EVIL}\n",
             "squad.json": squad([(f"id{EVIL}", "q", "c", None)] * 2)}
    for name, text in files.items():
        write(directory / name, text)
    write(directory / "options.toml", f'"lr{EVIL}" = 1\n')
    write(directory / "value.toml", f"lr = {EVIL}\n")
    write(directory / "shards.index.json", json.dumps({"weight_map": {f"t{EVIL}": f"s{EVIL}.safetensors"}}))
    write(directory / "predictions.json", json.dumps({f"id{EVIL}": 1}))
    write(directory / "good.json", squad([(f"id{EVIL}", "q", "c", None)], "2.0"))
    train = ["train", "--model", MODEL, "--output", directory / "run", "--train"]
    lines = [(3, [*train, directory / "columns.tsv"]), (3, [*train, directory / "ragged.tsv"]),
             (3, [*train, directory / "quote.csv"]), (3, [*train, directory / "lines.jsonl"]),
             (3, ["train", "--model", QA_MODEL, "--output", directory / "run", "--train", directory / "squad.json"]),
             (3, [*train, directory / f"absent{EVIL}\n.csv"]), (2, [*train, TRAIN, "--label-column", EVIL, EVIL]),
             (2, [f"train{EVIL}"]), (2, ["train", f"--{EVIL}"]), (2, [*train, TRAIN, "--lr", EVIL]),
             (2, ["train", "--config", directory / "options.toml"]),
             (2, ["train", "--config", directory / "value.toml"]),
             (4, ["inspect", directory / "shards.index.json"]), (4, ["inspect", directory / f"no{EVIL}.safetensors"]),
             (4, ["predict", "--model", model, "--input", EVAL, "--output", "-"]),
             (3, ["score", "--data", directory / "good.json", "--predictions", directory / "predictions.json"])]
    for code, line in lines:
        message = clean(fail(code, *line))
        assert len(message.encode()) <= 1020, (len(message), line)
    # Names that are not UTF-8, such as a single C1 byte.
    result = subprocess.run([BINARY, "inspect", b"/nowhere/\x9b\xff.safetensors"], capture_output=True)
    assert result.returncode == 4 and b"/nowhere/\\x9b\\xff.safetensors" in result.stderr, result


def test_long_values_make_short_lines(directory):
    """A value of a megabyte is neither printed nor compared with every known name."""
    need("golden/tiny-bert-classification")
    long = "y" * 1_000_000
    write(directory / "wide.tsv", "\t".join(f"{long}{i}" for i in range(5)) + "\nx\n")
    write(directory / "options.toml", f"{long} = 1\n")
    model = copied(MODEL, directory / "model", model_type=long)
    baseline = write(directory / "baseline.json", json.dumps({f"m{i}{long[:1000]}": 1 for i in range(1000)}))
    train = ["train", "--model", MODEL, "--output", directory / "run", "--train"]
    for code, line in ((3, [*train, directory / "wide.tsv"]), (2, ["train", "--config", directory / "options.toml"]),
                       (4, ["inspect", model]),
                       (2, [*train, TRAIN, "--label-column", "category", "--baseline", baseline, "--tolerance",
                            "eval_f1=0.1"])):
        message = fail(code, *line)
        assert len(message) < 1100, (len(message), line)


def test_label2id_of_another_kind(directory):
    """convert writes default names for labels without names, whatever the config contains."""
    need("golden/tiny-bert-classification")
    for value in ("text", [1, 2], 5):
        model = copied(MODEL, directory / f"m{value}", id2label=None, label2id=value)
        out = directory / f"o{value}"
        succeed("convert", "--model", model, "--output", out)
        assert json.loads((out / "config.json").read_text())["label2id"]["LABEL_3"] == 3


# ---- options and vocabularies ----

def test_damaged_options_of_a_checkpoint(directory):
    """A checksum is not a signature: the contents are validated as for any file."""
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    out = directory / "run"
    line = ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--output", out, "--epochs", 1]
    succeed(*line, "--save-every", 2, "--keep-checkpoints", 2, "--max-steps", 3, "--quiet")
    (out / "metrics.json").unlink()
    checkpoint = max((out / "checkpoints").iterdir())
    kept = checkpoint.read_bytes()
    line += ["--max-steps", 3, "--resume"]
    for old, new in ((b'task = "classification"', b'task = "che\\u001b[2J"'),
                     (b"max-length = 128", b"max-length = -12"), (b"max-length = 128", b"max-length = 999"),
                     (b"virtual-shards = 1", b"virtual-shards = x"), (b"virtual-shards = 1", b"virtual-shards = 0"),
                     (b"seed = 42", b"seed \x1b 42"), (b"seed = 42", b"seed = []"), (b"seed = 42", b"seed = .5"),
                     (b"seed = 42", b"lr=1\nlr=2")):
        replace_in_checkpoint(checkpoint, old, new)
        message = clean(fail(4, *line))
        assert checkpoint.name in message, (new, message)
        checkpoint.write_bytes(kept)
    for new in (b"seed \x1b 42", b"lr=1\nlr=2"):
        replace_in_checkpoint(checkpoint, b"seed = 42", new)
        clean(fail(4, "inspect", checkpoint, words=[checkpoint.name]))
        checkpoint.write_bytes(kept)
    # A file that is not a checkpoint at all: the run resumes from the one before.
    replace_in_checkpoint(checkpoint, b'label-column = "category"', b'label-column = "categor\xff"')
    clean(fail(4, "inspect", checkpoint, words=[checkpoint.name, "is not valid UTF-8"]))
    told = succeed(*line).err
    assert f"{checkpoint.name}: dataset '/options': text 0 is not valid UTF-8" in told, told


def test_vocabularies_that_cannot_be_read(directory):
    need("golden/tiny-bert-classification")
    for name, content in (("tokenizer.json", None), ("tokenizer.json", b"\xff"), ("tokenizer.json", b'{"model": '),
                          ("vocab.txt", None), ("vocab.txt", b"[UNK]\n[CLS]\n[SEP]\n\xff\n"), ("vocab.txt", b"")):
        model = copied(MODEL, directory / "model", ("tokenizer.json", "vocab.txt", "tokenizer_config.json"))
        shutil.copyfile(MODEL / "model.safetensors", model / "model.safetensors")
        if content is None:
            (model / name).mkdir()
        else:
            (model / name).write_bytes(content)
        for command in ([*commands_on(model, directory)[1:], ["tokenize", "--model", model, TRAIN]]):
            fail(4, *command, words=[name])
        nothing_written(directory)
        shutil.rmtree(model)


# ---- too little memory ----

def test_too_little_memory(directory):
    """With any amount of memory a command either succeeds, or ends with exit code 5 and one line."""
    need(*MODELS, "golden/trajectory-classification-train.csv")
    line = ["--version"]
    least = next(limit for limit in range(8 * MIB, ENOUGH, 2 * MIB) if run_within(limit, *line).code == 0)
    tokens = ["--threads", 2, "--max-length", 16]
    commands = [["inspect", MODEL], ["convert", "--model", MODEL, "--output", directory / "out", "--overwrite"],
                ["predict", "--model", MODEL, "--input", EVAL, "--output", "-", *tokens],
                ["evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", *tokens],
                ["train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--output",
                 directory / "run", "--max-train-samples", 40, "--reinit-head", "--max-steps", 1, *tokens]]
    short = 0
    for command in commands:
        for step in range(12):
            result = run_within(least + step * 5 * MIB // 2, *command)
            lines = result.err.splitlines()
            assert result.code in (0, 5), (command, step, result)
            if result.code == 5:
                short += 1
                assert any(word in lines[-1] for word in ("memory", "threads")), (command, result)
                assert sum(line.startswith("finetune: error: ") for line in lines) == 1, result
            shutil.rmtree(directory / "run", ignore_errors=True)
    assert short > 10, short


def test_threads_that_cannot_be_started(directory):
    need("golden/tiny-bert-classification")
    # A stack has 8 MiB: a few dozen fit.
    refused_within(ENOUGH, 5, "predict", "--model", MODEL, "--input", EVAL, "--output", directory / "out.csv",
                   "--threads", 2000, words=["thread"])


main(globals())
