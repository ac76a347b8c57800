"""--resume from every state of a run: the end must equal that of an undisturbed run."""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from fixtures import evaluation_rows_of, kill_when
from harness import (BINARY, DEVICE, GOLDEN, PATIENCE, Skip, facts_of, fail, main, metrics_in, metrics_of, need, run,
                     steps_of, succeed)

MODEL = GOLDEN / "tiny-bert-classification"
DATA, TRAIN = "golden/trajectory-classification-train.csv", GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def arguments(output, *more, train=TRAIN):
    return ["train", "--model", MODEL, "--train", train, "--label-column", "category", "--dropout", "0.1", "--lr",
            "3e-3", "--max-steps", "24", "--output", output, "--no-progress", *DEVICE, *more]


def snapshot(directory):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def results_of(out):
    """Results that must not depend on interruptions."""
    timeless = {name: value for name, value in metrics_of(out).items()
                if not name.endswith(("_per_second", "runtime", "memory_mb", "startup_seconds"))}
    log = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    keys = [(entry["step"], "loss" in entry) for entry in log]
    return (facts_of(out)["weights_sha256"], timeless, keys, (out / "predictions.csv").read_bytes(),
            (out / "confusion.csv").read_bytes(), (out / "model/model.safetensors").read_bytes())


def test_best_model_and_early_stopping(directory):
    need(DATA)
    options = ["--eval", EVAL, "--max-eval-samples", 200, "--eval-every", 3, "--save-every", 5, "--keep-checkpoints", 1,
               "--early-stopping", 3, "--best-metric", "eval_loss", "--lr", "0.02"]
    straight = directory / "straight"
    succeed(*arguments(straight, *options))
    expected, rows = results_of(straight), evaluation_rows_of(straight)
    metrics = metrics_of(straight)
    assert rows and metrics["best_step"] < metrics["train_steps"] < 24, "the test wants an early stop and an earlier best"
    # Killed after each of several lines of metrics.jsonl.
    out = directory / "killed"
    for lines in range(1, 30, 4):
        def enough():
            log = out / "metrics.jsonl"
            return log.exists() and log.read_bytes().count(b"\n") >= lines
        if kill_when(enough, *arguments(out, *options, "--resume")) == 0:
            break
    succeed(*arguments(out, *options, "--resume"))
    assert results_of(out) == expected and evaluation_rows_of(out) == rows
    # Stopped by signals, also during evaluations; exit code 85 each time, until it is done.
    out = directory / "signals"
    for attempt in range(40):
        wait = time.time() + 0.25 * 1.1**attempt
        code = kill_when(lambda: time.time() > wait and (out / "metrics.jsonl").exists(),
                         *arguments(out, *options, "--resume"), number=signal.SIGUSR1)
        assert code in (0, 85, -signal.SIGUSR1), code  # the last: the signal came before the program's handler
        if code == 0:
            break
    assert results_of(out) == expected


def test_stop_during_the_last_evaluation(directory):
    need(DATA)
    options = ["--eval", EVAL, "--max-steps", 3, "--micro-batch-tokens", 64]
    succeed(*arguments(directory / "straight", *options))
    out = directory / "run"

    def last_step_done():
        log = out / "metrics.jsonl"
        return log.exists() and log.read_bytes().count(b"\n") == 3
    code = kill_when(last_step_done, *arguments(out, *options), number=signal.SIGINT)
    assert code in (0, 130), code
    succeed(*arguments(out, *options, "--resume"))
    assert results_of(out) == results_of(directory / "straight")


def test_signal_before_the_first_step(directory):
    need(DATA)
    data = directory / "large.csv"  # reading it takes a while
    rows = TRAIN.read_text().splitlines(keepends=True)
    data.write_text(rows[0] + "".join(rows[1:]) * 100)
    out = directory / "run"
    start = time.time()
    kill_when((out / "metrics.jsonl").exists, *arguments(out, train=data))
    until_first_step = time.time() - start
    for part in (0.5, 0.3, 0.7, 0.2, 0.4, 0.6, 0.8, 0.1, 0.9, 1):  # until one falls between start and first step
        moment = time.time() + part * until_first_step
        code = kill_when(lambda: time.time() > moment, *arguments(out, "--overwrite", train=data), number=signal.SIGTERM)
        assert code in (None, 0, 85, -signal.SIGTERM), code  # 0: it had ended before
        if code == 85 and [path.name for path in (out / "checkpoints").iterdir()] == ["step-00000000.h5"]:
            break
    else:
        assert False, "no signal came between the start and the first step"
    result = succeed(*arguments(out, "--resume", train=data))
    assert "step 0" in result.err and [s["step"] for s in steps_of(out)] == list(range(1, 25))


def test_other_instructions(directory):
    """Resuming on another instruction set: fp32 has the same bits, bf16 warns that it does not."""
    need(DATA)
    if DEVICE:
        raise Skip("about the CPU's instructions")
    wide = "AVX2" not in succeed("doctor", env={"FINETUNE_ISA": ""}).out.split("code path")[1].splitlines()[0]
    for precision, then, warns in (("bf16", "avx2", False), ("bf16", "", wide), ("fp32", "", False)):
        out = directory / f"{precision}-{then}"
        line = arguments(out, "--save-every", 8, "--keep-checkpoints", 9, "--precision", precision)
        succeed(*line, env={"FINETUNE_ISA": "avx2"})
        undisturbed = facts_of(out)["weights_sha256"]
        (out / "metrics.json").unlink()
        shutil.rmtree(out / "model")
        (out / "checkpoints/step-00000024.h5").unlink()
        (out / "log.txt").unlink()
        succeed(*line, "--resume", env={"FINETUNE_ISA": then})
        warnings = [text for text in (out / "log.txt").read_text().splitlines() if "so far" in text]
        assert len(warnings) == warns, warnings
        assert not warns or "AVX2" in warnings[0], warnings
        assert warns or facts_of(out)["weights_sha256"] == undisturbed
    if not wide:
        raise Skip("this machine has AVX2 alone")


def test_no_checkpoint_yet(directory):
    need(DATA)
    out = directory / "run"
    result = succeed(*arguments(out, "--resume", "--max-steps", 4))
    assert "from the beginning" in result.err
    before = (facts_of(out)["weights_sha256"], [s["step"] for s in steps_of(out)])
    assert not (out / "checkpoints").exists()
    (out / "metrics.json").unlink()
    result = succeed(*arguments(out, "--resume", "--max-steps", 4))
    assert "from the beginning" in result.err
    assert (facts_of(out)["weights_sha256"], [s["step"] for s in steps_of(out)]) == before
    (directory / "other").mkdir()
    (directory / "other/notes.txt").write_text("mine")
    fail(2, *arguments(directory / "other", "--resume"), words=["other"])


def test_output_alone(directory):
    """The options come from the run's config.toml, with or without a checkpoint; the command line wins."""
    need(DATA)
    straight = directory / "straight"
    succeed(*arguments(straight, "--seed", 7, "--save-every", 10, "--keep-checkpoints", 9, "--eval-fraction", 0.2))
    for has_checkpoint in (False, True):
        moved = directory / f"moved-{has_checkpoint}"
        shutil.copytree(straight, moved)
        for path in (moved / "metrics.json", *moved.glob("checkpoints/*.h5")):
            if not has_checkpoint or path.name != "step-00000010.h5":
                path.unlink()
        result = succeed("train", "--resume", "--output", moved, "--threads", 1)
        assert results_of(moved) == results_of(straight)
        assert ("from the beginning" in result.err) != has_checkpoint, result.err
        fail(2, "train", f"--output={moved}", "--resume", "--seed", 8, words=["seed (7 there, 8 now)"])
    # A moved model is not another option; the run's other data suffice.
    (moved / "metrics.json").unlink()
    (directory / "linked").symlink_to(MODEL)
    succeed("train", "--resume", "--output", moved, "--model", directory / "linked")
    assert results_of(moved) == results_of(straight)
    # Nothing to resume; and a directory whose files no run wrote.
    fail(2, "train", "--resume", "--output", directory / "absent", words=["absent holds no run", "--model", "--train"])
    assert "Usage: finetune train" in succeed("train", "--resume", "--output", directory / "absent", "-h").out
    fail(2, "adapt", "--resume", "--output", moved / "model", words=["model holds no run", "--text"])
    (directory / "foreign").mkdir()
    (directory / "foreign/config.toml").write_text('name = "x"\n')
    fail(2, "train", "--resume", "--output", directory / "foreign", words=["foreign holds no run"])
    kept = (moved / "config.toml").read_text()
    (moved / "config.toml").write_text(kept + "lrr = 1\n")
    fail(4, "train", "--resume", "--output", moved, words=["config.toml", "'lrr'"])
    (moved / "config.toml").write_text(kept.split("\n")[0] + "\nlr = [\n")
    fail(4, "train", "--resume", "--output", moved, words=["config.toml:3", "not closed"])


def test_finished(directory):
    need(DATA)
    out = directory / "run"
    options = ["--eval", EVAL, "--eval-every", 12]
    succeed(*arguments(out, *options))
    before = snapshot(out)
    result = succeed(*arguments(out, *options, "--resume", "--json"))
    assert "finished" in result.err and metrics_in(result.out) == metrics_of(out)
    failed = run(*arguments(out, *options, "--resume", "--assert", "eval_accuracy>=2"))
    assert failed.code == 7 and "FAIL" in failed.out, failed
    fail(2, *arguments(out, *options, "--resume", "--assert", "eval_bleu>=2"), words=["eval_bleu"])
    fail(2, *arguments(out, *options, "--resume", "--seed", 7), words=["seed (42 there, 7 now)"])
    fail(2, *arguments(out, *options, "--resume", "--best-metric", "eval_loss"), words=["best-metric"])
    # The same run with other spellings, threads and paths.
    same = [word.resolve() if word in (TRAIN, EVAL) else word for word in arguments(out, *options)]
    succeed(*same, "--resume", "--lr", "0.0030", "--threads", 1, "--task", "classification", "--max-length", 128,
            "--best-metric", "accuracy", "--precision", facts_of(out)["precision"], "--virtual-shards", 1)
    assert snapshot(out) == before
    assert not (out / "checkpoints").exists()  # a finished run needs none


def test_finished_and_other_data(directory):
    """A finished run's metrics are not reported for other data, other evaluation data, or another model."""
    need(DATA)
    train, eval_data, model, out = (directory / name for name in ["train.csv", "eval.csv", "model", "run"])
    shutil.copyfile(TRAIN, train)
    shutil.copyfile(EVAL, eval_data)
    shutil.copytree(MODEL, model)
    line = arguments(out, "--eval", eval_data, "--model", model, train=train)
    succeed(*line)
    before = snapshot(out)
    for file, words in [(train, ["data has changed"]), (eval_data, ["data has changed"]),
                        (model / "config.json", ["--model has changed"])]:
        kept = file.read_bytes()
        os.chmod(file, 0o644)
        file.write_bytes(kept + b"\n")
        fail(3, *line, "--resume", words=words)
        file.write_bytes(kept)
        succeed(*line, "--resume")
    # A missing file cannot be compared: the same error as for any run.
    for gone, code in [(train, 3), (eval_data, 3), (model / "config.json", 4), (model / "model.safetensors", 4),
                       (model, 4)]:
        gone.rename(directory / "away")
        fail(code, *line, "--resume", "--quiet", words=[str(gone if gone.parent == directory else model)])
        (directory / "away").rename(gone)
    assert snapshot(out) == before
    # A run without a record of its training data.
    for text in ["{}", None]:
        (out / "run.json").write_text(text) if text else (out / "run.json").unlink()
        fail(4, *line, "--resume", words=["run.json", "start another --output"])


def test_signal_while_a_finished_run_is_compared(directory):
    need(DATA)
    train, out = directory / "train.csv", directory / "run"
    shutil.copyfile(TRAIN, train)
    line = arguments(out, train=train)
    succeed(*line)
    before = snapshot(out)
    os.truncate(train, 8 << 30)  # a sparse file: no disk space, but seconds to hash

    def is_read(process):
        try:
            return str(train) in [os.readlink(entry) for entry in Path(f"/proc/{process.pid}/fd").iterdir()]
        except FileNotFoundError:  # closed in the meantime
            return False
    for number, code in [(signal.SIGTERM, 85), (signal.SIGINT, 130)]:
        process = subprocess.Popen([BINARY, *map(str, line), "--resume"], stderr=subprocess.PIPE, text=True)
        while not is_read(process):
            assert process.poll() is None, process.stderr.read()
        process.send_signal(number)
        assert process.wait(timeout=PATIENCE) == code
        assert "while comparing data and model" in process.stderr.read()
    assert snapshot(out) == before


def unfinished(directory, *options):
    """A run of 24 steps with a checkpoint of step 10, in the state of a kill after it."""
    out = directory / "run"
    succeed(*arguments(out, "--eval", EVAL, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9, *options))
    expected = facts_of(out)["weights_sha256"]
    (out / "metrics.json").unlink()
    for checkpoint in (out / "checkpoints").iterdir():
        if checkpoint.name > "step-00000010.h5":
            checkpoint.unlink()
    return out, expected


def files_in(out):
    return {path.relative_to(out) for path in out.rglob("*") if path.is_file()}


def test_abandoned_files(directory):
    """The next run removes a killed run's unfinished files; --overwrite by the other task leaves nothing."""
    need(DATA, "golden/tiny-bert-qa", "golden/trajectory-qa-train.json")
    out, _ = unfinished(directory)
    for suffix in (".tmp.77", ".tmp.0123456789abcdef"):  # the first is an earlier version's
        shutil.copytree(out / "model", f"{out / 'model'}{suffix}")
        written = [path for path in out.rglob("*") if path.is_file() and ".tmp." not in path.name]
        assert len(written) > 12, written
        for path in written:
            shutil.copy(path, f"{path}{suffix}")
    shutil.rmtree(out / "model")
    succeed(*arguments(out, "--eval", EVAL, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9, "--resume"))
    left = [path for path in out.rglob("*") if ".tmp" in path.name]
    assert not left, left
    squad = GOLDEN / "trajectory-qa-train.json"
    questions = ["train", "--task", "qa", "--model", GOLDEN / "tiny-bert-qa", "--train", squad, "--eval", squad,
                 "--max-steps", 2, "--max-train-samples", 8, "--max-eval-samples", 4, "--no-progress", "--output"]
    succeed(*questions, directory / "questions")
    succeed(*questions, out, "--overwrite")
    assert files_in(out) == files_in(directory / "questions"), files_in(out) ^ files_in(directory / "questions")
    (directory / "questions").rename(directory / "labels")
    succeed(*arguments(directory / "labels", "--eval", EVAL, "--overwrite", "--max-steps", 2))
    assert not (directory / "labels/predictions.json").exists()


def test_logs_that_are_links(directory):
    """A run appends to its own files, never through a link."""
    need(DATA)
    out, _ = unfinished(directory)
    line = arguments(out, "--eval", EVAL, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9)
    victim = directory / "victim"
    victim.write_text("precious")
    for name in ("log.txt", "metrics.jsonl"):
        (out / name).rename(directory / "kept")
        (out / name).symlink_to(victim)
        before = snapshot(directory)
        fail(4, *line, "--resume", words=[f"{name}: is a symbolic link"])
        assert snapshot(directory) == before
        (out / name).unlink()
        os.mkfifo(out / name)  # no reader: opening it would block
        fail(4, *line, "--resume", words=[f"{name}: is not a regular file"])
        (out / name).unlink()
        (directory / "kept").rename(out / name)
    (out / "log.txt").unlink()
    (out / "log.txt").symlink_to(victim)
    succeed(*line, "--overwrite")
    assert victim.read_text() == "precious" and not (out / "log.txt").is_symlink()


def test_changed_data_and_model(directory):
    need(DATA)
    data = directory / "train.csv"
    shutil.copyfile(TRAIN, data)
    out, expected = unfinished(directory)
    line = arguments(out, "--eval", EVAL, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9, "--resume",
                     train=data)
    original = data.read_text()
    before = snapshot(out)
    data.write_text(original.replace("RONA", "RENO", 1))
    fail(3, *line, words=["data has changed"])
    data.write_text("\n".join(original.splitlines()[:500]) + "\n")
    fail(3, *line, words=["data has changed"])
    data.write_text(original)
    model = directory / "model"
    shutil.copytree(MODEL, model)
    os.chmod(model / "config.json", 0o644)
    (model / "config.json").write_text((MODEL / "config.json").read_text() + "\n")
    fail(3, *line, "--model", model, words=["--model has changed"])
    fail(2, *line, "--max-steps", 30, words=["max-steps (24 there, 30 now)"])
    assert snapshot(out) == before, "a refused resumption changed the run"
    succeed(*line, "--threads", 1)  # a copy of the data elsewhere counts as the same data
    assert facts_of(out)["weights_sha256"] == expected


def test_best_checkpoint_gone(directory):
    need(DATA)
    # The same losses on every machine: best at step 5, better still at 24.
    line = ["--best-metric", "eval_accuracy", "--lr", "0.02", "--precision", "fp32"]
    out, expected = unfinished(directory, *line)
    (out / "checkpoints/step-00000005.h5").unlink()
    result = succeed(*arguments(out, "--eval", EVAL, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9,
                                *line, "--resume"))
    assert "step-00000005.h5" in result.err and "starts over" in result.err, result
    assert facts_of(out)["weights_sha256"] == expected
    assert metrics_of(out)["best_step"] == 24
    # Only the last evaluation is repeated; earlier ones stay on record.
    assert [step for step, is_training in results_of(out)[2] if not is_training] == [5, 10, 15, 20, 24]


def test_options_that_choose_the_exported_step(directory):
    need(DATA)
    out, expected = unfinished(directory)

    def resume(*more, files=("--train", TRAIN, "--eval", EVAL)):
        line = arguments(out, "--eval-every", 5, "--save-every", 5, "--keep-checkpoints", 9, "--resume", *more)
        at = line.index("--train")
        return [*line[:at], *line[at + 2:], *files]
    before = snapshot(out)
    fail(2, *resume("--eval-every", 8), words=["eval-every (5 there, 8 now)"])
    line = [word for word in resume() if word not in ("--eval-every",)]
    line.remove(5)
    fail(2, *line, words=["eval-every (5 there, not set now)"])
    fail(2, *resume("--early-stopping", 3), words=["early-stopping (0 there, 3 now)"])
    fail(2, *resume("--max-eval-samples", 50), words=["max-eval-samples (not set there, 50 now)"])
    fail(2, *resume("--best-metric", "eval_loss"), words=["best-metric"])
    # The same bytes in the same order, but joined.
    fail(2, *resume(files=("--train", TRAIN, EVAL)),
         words=["number of train files (1 there, 2 now)", "number of eval files (1 there, 0 now)"])
    assert snapshot(out) == before, "a refused resumption changed the run"
    succeed(*resume("--save-every", 3, "--keep-checkpoints", 1, "--log-every", 2))
    assert facts_of(out)["weights_sha256"] == expected


def test_two_processes_at_once(directory):
    need(DATA)
    out = directory / "run"
    line = [BINARY, *map(str, arguments(out, "--max-steps", 100000))]
    first = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.time() + PATIENCE
        while not (out / "metrics.jsonl").exists() and time.time() < deadline:
            time.sleep(0.01)
        fail(2, *arguments(out, "--max-steps", 100000, "--resume"), words=["another process"])
        fail(2, *arguments(out, "--max-steps", 100000, "--overwrite"), words=["another process"])
    finally:
        first.kill()
        first.wait()


main(globals())
