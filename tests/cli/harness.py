"""Black-box tests of the binary: plain functions named test_*, run in order by main().

Prints one line a failure and, last, the summary line that tests/count_tests.py adds up. A test that
needs data that is absent calls need(...) and counts as skipped. FINETUNE_DEVICE=cuda in the environment makes the
tests that take DEVICE run on a GPU; where there is none they are skipped. FINETUNE_NIGHTLY=1 runs the tests marked
@nightly, those that call some_of() with all their variations, and no others.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
BINARY = os.path.abspath(os.environ.get("FINETUNE_BINARY", "build/finetune"))
# Absolute and without "..", as the program records paths, because tests search for it in a run's files.
SHARED = Path(os.path.abspath(os.environ.get("FINETUNE_SHARED") or PROJECT.parent / "shared"))
SAMPLES = PROJECT / "data" / "samples"


def shared_path(name):
    """Where test data such as "golden/tiny-bert-qa" or "tokenizers/bert-base-cased" lies.

    What is small is in tests/golden, and model formats and broken models are in the program's build folder; what is
    large is in $FINETUNE_SHARED, or in the folder `shared` beside the project. Returns the first that exists, or else
    the path in `shared`.
    """
    for folder in (PROJECT / "tests", PROJECT / "tests/golden", Path(BINARY).parent / "tests"):
        if (folder / name).exists():
            return folder / name
    return SHARED / name


class GoldenFolder:
    """GOLDEN / "tiny-bert-qa" is the path of golden/tiny-bert-qa, in the folder that has it."""

    def __truediv__(self, name):
        return shared_path(f"golden/{name}")


GOLDEN = GoldenFolder()


# CUDA kernels on the host (gpu/cuda_test.py) count as a GPU too.
HAS_GPU = bool(os.environ.get("FINETUNE_HOST_CUDA_MODULE")) or os.path.exists("/dev/nvidiactl")
ON_GPU = os.environ.get("FINETUNE_DEVICE") == "cuda"
DEVICE = ["--device", "cuda"] if ON_GPU else []
NIGHTLY = bool(os.environ.get("FINETUNE_NIGHTLY"))
# A background shell may ignore SIGINT, which the program would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
if not ON_GPU:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # tests that name no device use the CPU

# Open MPI keeps a job's files below this folder, and removes the folders above them, too, when the job ends: another
# program's job that starts then does not find them.
MPI_SESSIONS = tempfile.TemporaryDirectory(prefix="finetune-mpi-")
os.environ["OMPI_MCA_orte_tmpdir_base"] = MPI_SESSIONS.name

# Files with dates are then comparable between runs (results_test.py tests real dates).
os.environ.setdefault("SOURCE_DATE_EPOCH", "1800000000")


class Skip(Exception):
    pass


def need(*names):
    for name in names:
        if not shared_path(name).exists():
            raise Skip(f"{shared_path(name)} is absent")


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out[-2000:]}\n--- stderr\n{self.err[-2000:]}"


# Seconds until a test gives up waiting for what takes seconds: a busy machine may be ten times slower. Nothing waits
# for so long but what hangs, so this is also the bound on how soon a command must end that promises to end.
PATIENCE = 300


def run(*arguments, stdin=None, timeout=PATIENCE, env=None, cwd=None):
    done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, timeout=timeout,
                          text=True, encoding="utf-8", errors="surrogateescape", cwd=cwd,
                          env={**os.environ, **(env or {})})
    return Result(done.returncode, done.stdout, done.stderr)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.code == 0, f"{arguments}: {result!r}"
    return result


def fail(code, *arguments, words=(), **options):
    """The command must end with `code` and exactly one line on stderr that contains all `words`."""
    result = run(*arguments, **options)
    assert result.code == code, f"expected exit {code}: {arguments}: {result!r}"
    lines = result.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("finetune: error: "), f"{arguments}: {result!r}"
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"
    assert result.out == "", f"stdout is not empty: {result!r}"
    return lines[0]


def steps_of(run_directory):
    with open(Path(run_directory) / "metrics.jsonl", encoding="utf-8") as lines:
        return [entry for entry in map(json.loads, lines) if "loss" in entry]


def metrics_of(run_directory):
    return json.loads((Path(run_directory) / "metrics.json").read_text())


def facts_of(run_directory):
    return json.loads((Path(run_directory) / "run.json").read_text())


def metrics_in(line):
    """The metrics in --json's output of train and evaluate, without what identifies the run."""
    assert line.count("\n") == 1 and line.endswith("\n"), line
    return {name: value for name, value in json.loads(line).items()
            if name not in ("output", "task", "seed", "weights_sha256", "options", "started", "ended", "evaluated",
                            "data_sha256")}


def together(*actions, at_once=4):
    """Runs the functions concurrently, for tests that mostly wait; raises the first failure."""
    with ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(action) for action in actions]:
            done.result()


def nightly(test):
    """Marks a test that scripts/nightly.sh runs: a costly variation of one that runs after every change."""
    test.is_nightly = True
    return test


def some_of(count, *variations):
    """The first `count` of these, or all of them in the nightly job."""
    return variations if NIGHTLY else variations[:count]


def runs_now(name, test):
    if not name.startswith("test_"):
        return False
    if len(sys.argv) > 1:
        return name in sys.argv[1:]
    function = getattr(test, "func", test)  # of a partial one
    return hasattr(test, "is_nightly") == NIGHTLY or "some_of" in function.__code__.co_names


def outcome_of(name, test):
    """Whether the test failed, and the text to print."""
    directory = Path(tempfile.mkdtemp(prefix="finetune-test-"))
    start = time.time()
    try:
        if ON_GPU and not HAS_GPU:
            raise Skip("there is no NVIDIA GPU here")
        test(directory)
        return False, f"{name}: {time.time() - start:.1f} s"
    except Skip as skip:
        return False, f"SKIPPED: {name}: {skip}"
    except Exception:
        return True, f"FAILED: {name}\n{traceback.format_exc()}"
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(module_globals, at_once=1):
    """at_once: so many tests beside each other, for a file whose tests wait for most of their time (for mpirun, for
    time limits). They are threads: environment and working directory are those of all of them."""
    tests = [(name, test) for name, test in module_globals.items() if runs_now(name, test)]
    if not tests and NIGHTLY:
        sys.exit(77)  # skipped, to meson
    failed = 0
    pool = ThreadPoolExecutor(at_once)
    # Sequential tests run on the main thread, where an interrupt is noticed.
    outcomes = [pool.submit(outcome_of, *test).result for test in tests] if at_once > 1 else [
        partial(outcome_of, *test) for test in tests]
    try:
        for outcome in outcomes:
            test_failed, told = outcome()
            failed += test_failed
            print(told, flush=True)
    finally:
        pool.shutdown(cancel_futures=True)
    print(f"test cases: {len(tests)} | {len(tests) - failed} passed | {failed} failed")
    sys.exit(1 if failed else 0)
