"""Data through a pipe: read once, then used, compared and hashed like a file."""
import hashlib
import os
import signal
import subprocess
import threading
import time

from harness import BINARY, GOLDEN, PATIENCE, facts_of, fail, main, need, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
DATA = "golden/trajectory-classification-train.csv"


def arguments(output, *more, train=TRAIN):
    return ["train", "--model", MODEL, "--train", train, "--label-column", "category", "--lr", "3e-3", "--max-steps", 6,
            "--save-every", 3, "--keep-checkpoints", 9, "--quiet", "--output", output, *more]


class Pipe:
    """A named pipe that delivers `data` to its reader."""
    def __init__(self, path, data):
        os.mkfifo(path)
        self.path, self.writer = path, threading.Thread(target=lambda: path.write_bytes(data), daemon=True)

    def __enter__(self):
        self.writer.start()
        return self.path

    def __exit__(self, *_):
        self.writer.join(timeout=PATIENCE)
        assert not self.writer.is_alive(), "nobody has read the pipe to its end"
        self.path.unlink()


def sum_of(*files):
    sums = [hashlib.sha256(data).hexdigest() for data in files]
    return sums[0] if len(files) == 1 else hashlib.sha256("".join(one + "\n" for one in sums).encode()).hexdigest()


def test_named_pipes(directory):
    need(DATA)
    train, held = TRAIN.read_bytes(), EVAL.read_bytes()
    straight = directory / "straight"
    succeed(*arguments(straight, "--eval", EVAL))
    out = directory / "run"
    with Pipe(directory / "train.csv", train) as first, Pipe(directory / "eval.csv", held) as second:
        succeed(*arguments(out, "--eval", second, train=first))
    facts = facts_of(out)
    assert facts["data_sha256"] == sum_of(train, held) == facts_of(straight)["data_sha256"]
    assert facts["weights_sha256"] == facts_of(straight)["weights_sha256"]
    assert (out / "predictions.csv").read_bytes() == (straight / "predictions.csv").read_bytes()


def test_messages_name_the_pipe(directory):
    need(DATA)
    # The suffix counts, and messages use the pipe's own name.
    text = b"text\tcategory\nRONA\tx\nMETRO\ty\nno label\n"
    with Pipe(directory / "rows.tsv", text) as pipe:
        fail(3, *arguments(directory / "run", train=pipe), words=[f"{pipe}:4: 2 values"])
    with Pipe(directory / "full.csv", TRAIN.read_bytes()) as pipe:
        fail(4, *arguments(directory / "run", train=pipe), env={"TMPDIR": str(directory / "nowhere")},
             words=[f"copy of {pipe}", "TMPDIR"])
        pipe.read_bytes()  # the program has not read it
    assert not (directory / "run").exists()


def test_process_substitution_and_resumption(directory):
    need(DATA)
    data = TRAIN.read_bytes()
    other = directory / "other.csv"
    other.write_bytes(data.replace(b"RONA", b"RENO", 1))
    straight, out = directory / "straight", directory / "run"
    succeed(*arguments(straight))

    def substituted(file, *more):
        words = " ".join(f"'{word}'" for word in [BINARY, *arguments(out, *more, train="DATA")])
        script = words.replace("'DATA'", f"<(cat '{file}')")
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    done = substituted(TRAIN)
    assert done.returncode == 0, done
    assert facts_of(out)["data_sha256"] == sum_of(data)
    (out / "metrics.json").unlink()
    (out / "checkpoints/step-00000006.h5").unlink()
    done = substituted(other, "--resume")
    assert done.returncode == 3 and "data has changed" in done.stderr, done
    done = substituted(TRAIN, "--resume")
    assert done.returncode == 0, done
    assert facts_of(out)["weights_sha256"] == facts_of(straight)["weights_sha256"]


def test_questions(directory):
    need("golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    text = (GOLDEN / "trajectory-qa-train.json").read_bytes()
    out = directory / "run"
    line = ["train", "--model", GOLDEN / "tiny-bert-qa", "--max-steps", 1, "--max-train-samples", 4, "--quiet",
            "--output", out]
    with Pipe(directory / "questions", text) as pipe:  # the content determines the task
        succeed(*line, "--train", pipe)
    assert 'task = "qa"' in (out / "config.toml").read_text()
    assert facts_of(out)["data_sha256"] == sum_of(text)
    with Pipe(directory / "again", text) as pipe:
        succeed("plan", *line[1:], "--train", pipe, "--no-time")


def test_a_pipe_that_nobody_writes_to(directory):
    need(DATA)
    pipe = directory / "silent.csv"
    os.mkfifo(pipe)
    for number, code in ((signal.SIGTERM, 85), (signal.SIGINT, 130)):
        for keep_open in (False, True):
            process = subprocess.Popen([BINARY, *map(str, arguments(directory / "run", train=pipe))],
                                       stderr=subprocess.PIPE, text=True)
            writer = open(pipe, "wb") if keep_open else None
            time.sleep(0.5)
            assert process.poll() is None, "it does not wait for the data"
            process.send_signal(number)
            _, err = process.communicate(timeout=PATIENCE)
            if writer:
                writer.close()
            assert process.returncode == code and len(err.splitlines()) == 1 and "pipe" in err, (process.returncode, err)
    assert not (directory / "run").exists()


def test_closed_streams(directory):
    """Unreadable input or unwritable output is an error; a run also has its results in files (options_test.py)."""
    need(DATA)
    rows = directory / "rows.csv"
    rows.write_text("text\nwords\n")
    lines = {"predict --input rows.csv --output - >&-": (4, "standard output"),
             "predict --input rows.csv --output - --quiet 3>&1 >&-": (4, "standard output"),
             "inspect >&-": (4, "standard output"),
             "predict --input - --output out.csv <&-": (3, "standard input"),
             "predict --input rows.csv --output out.csv --quiet <&- >&- 2>&-": (0, ""),
             "convert --output copy >&-": (0, "")}
    for line, (code, word) in lines.items():
        name, rest = line.split(" ", 1)
        model = f"'{MODEL}'" if name == "inspect" else f"--model '{MODEL}'"
        done = subprocess.run(f"'{BINARY}' {name} {model} {rest}", shell=True, capture_output=True, text=True, cwd=directory)
        assert done.returncode == code and word in done.stderr, (line, done)
        assert (directory / "out.csv").exists() == (code == 0)
    assert (directory / "copy/config.json").exists()
    done = subprocess.run(f"'{BINARY}' --version >&-", shell=True, capture_output=True, text=True)
    assert done.returncode == 4, done


def test_weights_are_no_pipe(directory):
    need(DATA)
    model = directory / "model"
    model.mkdir()
    for file in MODEL.iterdir():
        if file.suffix in (".json", ".txt"):
            (model / file.name).write_bytes(file.read_bytes())
    os.mkfifo(model / "weights.safetensors")
    fail(4, *arguments(directory / "run", "--model", model / "weights.safetensors"),
         words=["weights.safetensors", "is a pipe"])


main(globals())
