"""Files cut while they are read, pipes and devices in their place, names that lead nowhere.

Each ends in one short line and the right exit code, at once."""
import errno
import json
import os
import socket
import subprocess
import threading
import time

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import copied, read_safetensors
from harness import BINARY, GOLDEN, PATIENCE, fail, main, need, run, shared_path, succeed

MODEL = GOLDEN / "tiny-bert-classification"
QUESTIONS = GOLDEN / "tiny-bert-qa"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
LONGEST_LINE = 500


def refused(code, *arguments, words=(), **options):
    line = fail(code, *arguments, words=words, **options)
    assert len(line) < LONGEST_LINE, f"{len(line)} bytes: {line[:200]}"


def replaced(model, destination, name, target):
    """A copy of a model with a link instead of a file, and no other usable file."""
    copy = copied(model, destination)
    others = {"vocab.txt": ["tokenizer.json"], "spiece.model": ["tokenizer.json", "vocab.txt"]}.get(name, [])
    if name in ("pytorch_model.bin", "tf_model.h5", "bert_model.ckpt.index", "model.safetensors.index.json",
                "pytorch_model.bin.index.json"):
        others = ["model.safetensors"]
    for file in (name, *others):
        (copy / file).unlink(missing_ok=True)
    os.symlink(target, copy / name)
    return copy


def train(output, *more, model=MODEL, data=TRAIN):
    return ["train", "--model", model, "--train", data, "--label-column", "category", "--lr", "3e-3", "--quiet",
            "--output", output, *more]


def start(*arguments):
    return subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def open_for_writing(pipe, process):
    """Call once the program has opened its end."""
    for _ in range(2000):
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO and process.poll() is None, (error, process.poll())
            time.sleep(0.01)
    raise AssertionError("nobody reads the pipe")


def with_substitution(arguments, before="", **texts):
    """Runs the program in bash, with <(cat FILE) for each word @NAME."""
    line = before + " ".join(f"'{word}'" for word in [BINARY, *map(str, arguments)])
    for name, file in texts.items():
        line = line.replace(f"'@{name}'", f"<(cat '{file}')")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=PATIENCE)


def test_weights_that_are_cut_while_they_are_read(directory):
    need("golden/tiny-bert-classification")
    for name, source in (("model.safetensors", MODEL), ("pytorch_model.bin", GOLDEN / "formats/pytorch-zip")):
        model = copied(source, directory / name)
        pipe = directory / f"{name}.csv"
        os.mkfifo(pipe)
        process = start(*train(directory / "run", "--reinit-head", "--max-steps", 1, model=model, data=pipe))
        # The weights are opened before the data, and read after them.
        end = open_for_writing(pipe, process)
        os.truncate(model / name, (model / name).stat().st_size // 2)
        os.set_blocking(end, True)
        with open(end, "wb") as writer:
            writer.write(TRAIN.read_bytes())
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 4 and out == "", (process.returncode, err)
        assert len(err.splitlines()) == 1 and f"{name}: became shorter while it was read" in err, err
        assert not (directory / "run").exists(), "something was left behind"


def test_evaluation_data_that_vanish_during_a_run(directory):
    need("golden/tiny-bert-classification")
    held, out = directory / "held.csv", directory / "run"
    held.write_bytes(EVAL.read_bytes())
    succeed(*train(directory / "straight", "--max-steps", 300, "--eval", held))
    process = start(*train(out, "--max-steps", 300, "--eval", held))
    while not (out / "metrics.jsonl").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.002)
    os.truncate(held, 0)
    assert process.poll() is None, "the run was over before its data were cut"
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    for name in ("predictions.csv", "confusion.csv"):
        assert (out / name).read_bytes() == (directory / "straight" / name).read_bytes(), name


def test_names_of_shards(directory):
    need("hostile/long-shard-name")
    hostile = shared_path("hostile/long-shard-name")
    refused(4, "inspect", hostile, words=["model.safetensors.index.json", "bytes, which no shard has"])
    refused(4, "convert", "--model", hostile, "--output", directory / "out", words=["which no shard has"])
    assert not (directory / "out").exists()
    copied(hostile, directory / "model")
    index = {"weight_map": {"bert.pooler.dense.bias": "\x1b]0;title\x07\n"}}
    (directory / "model/model.safetensors.index.json").write_text(json.dumps(index))
    refused(4, "inspect", directory / "model", words=["'\\x1b]0;title\\x07\\n' has control bytes"])


def test_paths_that_nobody_can_follow(directory):
    need("golden/tiny-bert-classification")
    os.symlink("loop", directory / "loop")
    data = ["--label-column", "category"]
    commands = {
        3: [lambda path: train(directory / "run", data=path), lambda path: train(directory / "run", "--eval", path),
            lambda path: ["evaluate", "--model", MODEL, *data, "--data", path],
            lambda path: ["evaluate", "--model", QUESTIONS, "--data", path],
            lambda path: ["predict", "--model", MODEL, "--input", path, "--output", "-"],
            lambda path: ["score", "--data", SQUAD, "--predictions", path],
            lambda path: ["tokenize", "--model", MODEL, path]],
        4: [lambda path: train(directory / "run", model=path), lambda path: train(path),
            lambda path: ["evaluate", "--model", MODEL, *data, "--data", EVAL, "--output", path],
            lambda path: ["predict", "--model", MODEL, "--input", EVAL, "--output", path],
            lambda path: ["tokenize", "--model", path, EVAL], lambda path: ["inspect", path],
            lambda path: ["convert", "--model", path, "--output", directory / "out"],
            lambda path: ["bench", "step", "--shape", path]],
        2: [lambda path: ["train", "--config", path],
            lambda path: train(directory / "run", "--baseline", path, "--tolerance", "loss=1")],
    }
    for code, lines in commands.items():
        for line in lines:
            refused(code, *line(directory / "loop/x"), words=["loop/x", "Too many levels of symbolic links"])
            for length in (256, 100_000):
                refused(code, *line(str(directory / ("n" * length))), words=["nnn", "File name too long"])
    assert not (directory / "run").exists() and not (directory / "out").exists()


def test_vocabulary_that_links_to_itself(directory):
    need("golden/tiny-bert-classification")
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "spiece.model", "config.json",
                 "model.safetensors"):
        model = replaced(MODEL, directory / name, name, name)
        refused(4, "predict", "--model", model, "--input", EVAL, "--output", "-",
                words=[str(model / name), "Too many levels of symbolic links"])


def test_a_working_directory_that_is_gone(directory):
    need("golden/tiny-bert-classification")
    gone = directory / "gone"
    gone.mkdir()

    def enter():
        os.chdir(gone)
        os.rmdir(gone)
    line = train("run", "--max-steps", 1, model=MODEL.resolve(), data=TRAIN.resolve())
    done = subprocess.run([BINARY, *map(str, line)], capture_output=True, text=True,
                          preexec_fn=enter, timeout=PATIENCE)
    assert done.returncode == 4 and len(done.stderr.splitlines()) == 1, done
    assert "No such file or directory" in done.stderr, done


def test_pipes_and_devices_in_a_model(directory):
    need("golden/tiny-bert-classification")
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "spiece.model", "config.json",
                 "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                 "pytorch_model.bin.index.json", "tf_model.h5", "bert_model.ckpt.index"):
        for kind, target in (("pipe", pipe), ("device", "/dev/zero")):
            model = replaced(MODEL, directory / f"{name}-{kind}", name, target)
            refused(4, "predict", "--model", model, "--input", EVAL, "--output", "-",
                    words=[f"{model / name}: is a {kind}, a file is needed"])
    for path in (pipe, "/dev/zero"):
        refused(4, "inspect", path, words=["a file is needed"])
    for name in ("config.toml", "checkpoints/step-00000001.h5"):  # of an earlier run's directory
        (directory / name).parent.mkdir(exist_ok=True)
        os.symlink(pipe, directory / name)
        assert run("inspect", directory).code == 4


def test_devices_and_sockets_as_data(directory):
    need("golden/tiny-bert-classification", "golden/tiny-bert-qa")
    name = str(directory / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    data = ["--label-column", "category"]
    for path, kind in (("/dev/zero", "device"), ("/dev/full", "device"), (name, "socket")):
        words = [f"{path}: is a {kind}, a file is needed"]
        for line in (train(directory / "run", data=path), train(directory / "run", "--eval", path),
                     ["evaluate", "--model", MODEL, *data, "--data", path],
                     ["evaluate", "--model", QUESTIONS, "--data", path],
                     ["predict", "--model", MODEL, "--input", path, "--output", "-"],
                     ["predict", "--model", QUESTIONS, "--input", path, "--output", "-"],
                     ["score", "--data", path, "--predictions", SQUAD],
                     ["score", "--data", SQUAD, "--predictions", path], ["tokenize", "--model", MODEL, path],
                     ["bench", "tokenizer", "--model", MODEL, "--input", path]):
            refused(3, *line, words=words)
    with open("/dev/zero") as endless:
        done = subprocess.run([BINARY, "evaluate", "--model", MODEL, *data, "--data", "-"], stdin=endless,
                              capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3 and "standard input: is a device" in done.stderr, done
    listener.close()


def test_pipes_of_the_shell(directory):
    need("golden/tiny-bert-classification", "golden/trajectory-qa-train.json")
    answers = {}
    for article in json.loads(SQUAD.read_text())["data"]:
        for paragraph in article["paragraphs"]:
            answers.update({question["id"]: question["answers"][0]["text"] for question in paragraph["qas"]})
    predictions = directory / "predictions.json"
    predictions.write_text(json.dumps(answers))
    done = with_substitution(["score", "--data", "@data", "--predictions", "@predictions", "--json"], data=SQUAD,
                             predictions=predictions)
    assert done.returncode == 0 and json.loads(done.stdout)["eval_exact_match"] == 100, done
    done = with_substitution(["score", "--data", "@data", "--predictions", predictions], "ulimit -f 1; ", data=SQUAD)
    assert done.returncode == 5 and "cannot be kept in memory: File too large" in done.stderr, done
    config = directory / "config.toml"
    config.write_text(f'model = "{MODEL}"\ntrain = ["{TRAIN}"]\nlabel_column = "category"\nmax_steps = 1\n')
    done = with_substitution(["train", "--config", "@config", "--output", directory / "run"], config=config)
    assert done.returncode == 0, done
    done = with_substitution(train(directory / "gated", "--max-steps", 1, "--baseline", "@metrics", "--tolerance",
                                   "train_loss=1000"), metrics=directory / "run/metrics.json")
    assert done.returncode == 0, done


def test_named_pipes(directory):
    need("golden/trajectory-qa-train.json")
    pipe = directory / "pipe"
    os.mkfifo(pipe)
    waiting = [start("score", "--data", SQUAD, "--predictions", pipe), start("score", "--data", pipe, "--predictions",
                                                                            SQUAD)]
    refused(2, "train", "--config", pipe, words=["is a pipe, a file is needed"])
    refused(2, *train(directory / "run", "--baseline", pipe, "--tolerance", "loss=1"),
            words=["is a pipe, a file is needed"])
    for process in waiting:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 3 and "pipe: is a pipe that nobody writes to" in err, err
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"{}"))
    writer.start()
    refused(3, "score", "--data", SQUAD, "--predictions", pipe, words=["none of its 0 ids"])
    writer.join(timeout=PATIENCE)


def test_lines_without_end(directory):
    need("golden/tiny-bert-classification")
    line = f"head -c 70000000 /dev/zero | '{BINARY}' tokenize --model '{MODEL}'"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 3 and done.stdout == "", done
    assert "standard input:1: the line is longer than 64 MiB" in done.stderr, done
    texts = ["", "a" * 16383, "b" * 16384, "c" * 50_000, "last"]
    for end in ("\n", ""):
        out = succeed("tokenize", "--model", MODEL, stdin="\n".join(texts) + end).out
        assert len(out.splitlines()) == len(texts), out[:200]


def test_byte_order_marks(directory):
    """Editors on Windows write one before UTF-8: the files mean the same."""
    need("golden/tiny-bert-classification")
    mark = b"\xef\xbb\xbf"
    texts = directory / "t.csv"
    texts.write_text("text\nPETROL 1\nRENT MAY\n")

    def labels(model, data=texts):
        return succeed("predict", "--model", model, "--input", data, "--text-column", "text", "--output", "-").out

    def marked(*paths):
        for path in paths:
            path.write_bytes(mark + path.read_bytes())

    expected = labels(MODEL)
    model = copied(MODEL, directory / "json")
    marked(model / "config.json", model / "tokenizer.json", model / "tokenizer_config.json")
    assert labels(model) == expected
    model = copied(MODEL, directory / "vocab")
    (model / "tokenizer.json").unlink()
    marked(model / "vocab.txt")
    assert labels(model) == expected
    model = copied(MODEL, directory / "shards")
    names = list(read_safetensors(model / "model.safetensors"))
    (model / "model.safetensors").rename(model / "model-00001-of-00001.safetensors")
    index = {"metadata": {}, "weight_map": {name: "model-00001-of-00001.safetensors" for name in names}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    marked(model / "model.safetensors.index.json")
    assert labels(model) == expected
    lines = directory / "t.jsonl"
    lines.write_text('{"text":"PETROL 1"}\n{"text":"RENT MAY"}\n')
    marked(texts, lines)
    assert labels(MODEL) == expected == labels(MODEL, lines)


main(globals())
