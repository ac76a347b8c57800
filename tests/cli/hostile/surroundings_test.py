"""Signals set by a command's parent, and files that others change during a run."""
import csv
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))
from faults import MODULE, Fault  # noqa: E402
from fixtures import EVAL, MODEL, MODELS, TRAIN, write  # noqa: E402
from harness import BINARY, PATIENCE, Skip, fail, main, metrics_of, need, succeed  # noqa: E402

ROWS = ["--train", TRAIN, "--label-column", "category", "--reinit-head", "--threads", 1, "--lr", "1e-3", "--batch-size", 4]
WITHOUT_END = [*ROWS, "--max-steps", 10**6, "--save-every", 20]


def started(*words, **options):
    return subprocess.Popen([BINARY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def wait_for(process, path, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not list(path.parent.glob(path.name)):
        assert process.poll() is None and time.monotonic() < deadline, (path, process.communicate())
        time.sleep(0.01)


def ends_with(process, code, *words, stdin=None):
    out, err = process.communicate(stdin, timeout=PATIENCE)
    assert process.returncode == code and all(word in err for word in words), (process.returncode, out, err)


def test_a_run_whose_directory_is_renamed(directory):
    """Another run may start in the old place; nothing of the first run may appear there."""
    need(*MODELS)
    out = directory / "run"
    # The next checkpoint is far away: the directory must not be renamed while one is written.
    process = started("train", "--model", MODEL, *WITHOUT_END, "--save-every", 500, "--output", out, "--quiet")
    wait_for(process, out / "checkpoints" / "step-*.h5")
    out.rename(directory / "elsewhere")
    (out / "checkpoints").mkdir(parents=True)
    write(out / "checkpoints" / "step-00000001.h5", "another's")
    ends_with(process, 4, "is no longer the directory of this run")
    assert [path.name for path in out.rglob("*")] == ["checkpoints", "step-00000001.h5"]
    assert list((directory / "elsewhere" / "checkpoints").glob("step-*.h5"))


def test_tokenizer_files_that_change_while_a_run_works(directory):
    need(*MODELS)
    model, out = directory / "model", directory / "run"
    shutil.copytree(MODEL, model)
    model.chmod(0o755)
    before = (model / "vocab.txt").read_bytes()
    process = started("train", "--model", model, *ROWS, "--max-steps", 400, "--save-every", 5, "--output", out, "--quiet")
    wait_for(process, out / "checkpoints" / "step-*.h5")
    (model / "vocab.txt").unlink()
    write(model / "vocab.txt", "[PAD]\n")
    ends_with(process, 0)
    assert (out / "model" / "vocab.txt").read_bytes() == before


def test_a_parent_that_ignores_the_end_of_children(directory):
    need(*MODELS)
    options = {"timeout": 100, "preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), "capture_output": True}
    out = directory / "run"
    line = [BINARY, "train", "--model", MODEL, *ROWS, "--eval", TRAIN, "--max-steps", 2, "--output", out]
    done = subprocess.run([*map(str, line)], **options)
    assert done.returncode == 0, done
    assert "baseline_ngram_accuracy" in metrics_of(out)
    grid = write(directory / "grid.toml", f'model = "{MODEL}"\ntrain = "{TRAIN}"\neval = "{TRAIN}"\n'
                 'label-column = "category"\nreinit-head = true\nthreads = 1\nmax-steps = 2\nlr = 1e-3\n[sweep]\nseed = [1, 2]\n')
    done = subprocess.run([BINARY, "sweep", grid, "--output", directory / "sweep", "--jobs", "2"], **options)
    assert done.returncode == 0, done


def test_a_parent_that_has_blocked_signals(directory):
    need(*MODELS)
    process = started("train", "--model", MODEL, *WITHOUT_END, "--output", directory / "run", "--quiet",
                      preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}))
    wait_for(process, directory / "run" / "checkpoints" / "step-*.h5")
    process.send_signal(signal.SIGUSR1)
    ends_with(process, 85)


def test_a_parent_that_ignores_interruptions(directory):
    """As a shell does for background commands of a script: Ctrl-C is for the foreground."""
    need(*MODELS)
    process = started("train", "--model", MODEL, *WITHOUT_END, "--output", directory / "run", "--quiet",
                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for(process, directory / "run" / "checkpoints" / "step-*.h5")
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGTERM)
    ends_with(process, 85)


def test_directories_that_may_not_be_written(directory):
    """A finished run writes nothing; an unfinished one reports it at once."""
    need(*MODELS)
    if os.geteuid():
        raise Skip("not root, who can be another user")
    directory.chmod(0o755)
    for above in directory.parents:
        if not above.stat().st_mode & stat.S_IXOTH:
            raise Skip(f"another user may not enter {above}")
    os.umask(0o022)
    out = directory / "run"
    line = ["train", "--model", MODEL, *ROWS, "--max-steps", 4, "--save-every", 2, "--keep-checkpoints", 2, "--output", out]
    succeed(*line, "--quiet")

    def resumed():
        return subprocess.run([BINARY, *map(str, line), "--resume"], user=65534, group=65534, extra_groups=[],
                              capture_output=True, text=True, timeout=PATIENCE)

    if subprocess.run([BINARY, "--version"], user=65534, capture_output=True).returncode:
        raise Skip("another user may not read the program")
    done = resumed()
    if "Permission denied" in done.stderr and str(MODEL) in done.stderr:
        raise Skip("another user may not read the model")
    assert done.returncode == 0 and "nothing to resume" in done.stderr, done
    (out / "metrics.json").unlink()
    done = resumed()
    assert done.returncode == 4 and f"{out}: cannot be written" in done.stderr, done
    for path in [out, *out.rglob("*")]:
        if path.name != "checkpoints":
            os.chown(path, 65534, 65534)
    done = resumed()
    assert done.returncode == 4 and f"{out}/checkpoints: cannot be written" in done.stderr, done
    os.chown(out / "checkpoints", 65534, 65534)
    assert resumed().returncode == 0


def test_damaged_runs_of_a_sweep(directory):
    """Finished runs are reported; the others continue."""
    need(*MODELS)
    grid = write(directory / "grid.toml", f'model = "{MODEL}"\ntrain = "{TRAIN}"\neval = "{TRAIN}"\nlr = 1e-3\n'
                 'label-column = "category"\nreinit-head = true\nthreads = 1\nmax-steps = 2\n[sweep]\nseed = [1, 2, 3]\n')
    out = directory / "sweep"
    line = [BINARY, "sweep", grid, "--output", out]
    succeed(*line[1:])
    shutil.rmtree(out / "seed=3")
    for damage in ("", "{}", '{"eval_accuracy": 0.', "of config.toml"):
        if damage == "of config.toml":
            write(out / "seed=2/config.toml", (out / "seed=2/config.toml").read_text() + "seed = 2\nseed = 2\n")
        write(out / "seed=2/metrics.json", damage)
        done = subprocess.run([*line, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 4 and "seed=2/" in done.stderr, done
        with open(out / "sweep.csv", newline="", encoding="utf-8") as table:
            rows = list(csv.DictReader(table))
        assert [row["status"] for row in rows] == ["finished", "failed", "finished"], rows
        assert "without its directory" in done.stderr, done
        assert rows[0]["eval_accuracy"] and rows[2]["eval_accuracy"] and not rows[1]["eval_accuracy"], rows


def test_lines_of_metrics_that_are_gone(directory):
    """The run continues; a warning says that its curves have a gap."""
    need(*MODELS)
    out = directory / "run"
    line = ["train", "--model", MODEL, *ROWS, "--max-steps", 6, "--save-every", 2, "--keep-checkpoints", 9, "--output", out,
            "--log-every", 2]
    succeed(*line)
    log = (out / "metrics.jsonl").read_text().splitlines(keepends=True)
    for left, told in ((log, None), (log[:1], "from 3 to 4"), ([], "from 1 to 4"), (None, "from 1 to 4")):
        (out / "metrics.json").unlink()
        (out / "checkpoints/step-00000006.h5").unlink()
        if left is None:
            (out / "metrics.jsonl").unlink()
        else:
            (out / "metrics.jsonl").write_text("".join(left))
        said = succeed(*line, "--resume").err
        assert ("has no lines of the steps " + told in said) if told else "has no lines" not in said, (left, said)
        assert (out / "metrics.jsonl").read_text().count("\n") == (3 if left is log else 1 + len(left or []))


def test_outputs_that_come_to_be_meanwhile(directory):
    need(*MODELS)
    # The second is a file system that can only rename with replacement.
    for kind in ("", "EINVAL"):
        folder = directory / f"with {kind}"
        folder.mkdir()
        out = folder / "labels.csv"
        env = {**os.environ, **(Fault("rename", str(folder), kind, nth=1).environment(directory / "calls") if kind else {})}
        if kind and not os.path.exists(MODULE):
            continue
        for precious in (True, False):
            # --input-format text: detecting the format would read 64 KiB of the pipe before the output is opened.
            process = started("predict", "--model", MODEL, "--input", "-", "--input-format", "text", "--output", out,
                              stdin=subprocess.PIPE, env=env)
            process.stdin.write("one text\nanother text\n")
            process.stdin.flush()
            wait_for(process, folder / "labels.csv.tmp.*")
            if precious:
                write(out, "precious")
                ends_with(process, 2, "use --overwrite to replace it", stdin="a third one\n")
                assert out.read_text() == "precious"
                out.unlink()
            else:
                ends_with(process, 0, "predicted 3 rows", stdin="a third one\n")
                assert out.read_text().count("\n") == 4
            assert os.listdir(folder) == ([] if precious else ["labels.csv"])

    data, metrics = directory / "data.csv", directory / "metrics"
    os.mkfifo(data)
    process = started("evaluate", "--model", MODEL, "--data", data, "--label-column", "category", "--output", metrics)
    with open(data, "wb") as rows:
        metrics.mkdir()
        write(metrics / "metrics.json", "{}")
        rows.write(EVAL.read_bytes())
    ends_with(process, 2, "use --overwrite to replace it")
    assert (metrics / "metrics.json").read_text() == "{}"


def test_rights_of_what_is_replaced(directory):
    need(*MODELS)
    data, out = write(directory / "a.txt", "one\n"), write(directory / "labels.csv", "")
    for mode in (0o600, 0o640, 0o666):
        out.chmod(mode)
        succeed("predict", "--model", MODEL, "--input", data, "--output", out, "--overwrite")
        assert stat.S_IMODE(out.stat().st_mode) == mode and out.stat().st_size > 0


def test_standard_input_that_cannot_be_read(directory):
    need(*MODELS)
    for mode, place in ((os.O_RDONLY, directory), (os.O_WRONLY, "/dev/null")):
        descriptor = os.open(place, mode)
        done = subprocess.run([BINARY, "tokenize", "--model", MODEL, "-"], stdin=descriptor, capture_output=True, text=True)
        os.close(descriptor)
        assert done.returncode == 3 and "standard input: cannot be read" in done.stderr, done


def test_a_junit_file_among_the_output(directory):
    out = directory / "run"
    for name in ("metrics.json", "model", "model/junit.xml", "checkpoints", "./log.txt"):
        fail(2, "train", "--model", MODEL, *ROWS, "--output", out, "--assert", "eval_accuracy>0", "--eval", EVAL,
             "--junit", f"{out}/{name}", words=["--junit", "choose another"])
    fail(2, "evaluate", "--model", MODEL, "--data", EVAL, "--output", f"{out}/", "--assert", "eval_accuracy>0", "--junit",
         out / "metrics.json", words=["--junit", "choose another"])


main(globals())
