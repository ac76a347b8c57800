"""sweep: each run of a grid equals the same run by train, and sweeps resume after a kill."""
import csv
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN, write
from harness import BINARY, PATIENCE, facts_of, fail, main, metrics_of, need, run, some_of, succeed

DATA = "golden/trajectory-classification-train.csv"
FIXED = (f"model = '{MODEL}'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\nmax-steps = 12\n")
QUICK = FIXED + "no-ngram-baseline = true\n"  # for tests of training only
GRID = "[sweep]\nlr = [1e-3, 3e-3]\nseed = [1, 2, 3]\n"
NAMES = [f"lr={lr},seed={seed}" for lr in ("0.001", "0.003") for seed in (1, 2, 3)]


def grid(directory, sweep=GRID, fixed=FIXED):
    return write(directory / "grid.toml", fixed + sweep)


def weights(out):
    return {path.name: facts_of(path)["weights_sha256"] for path in sorted(out.iterdir()) if (path / "run.json").exists()}


def trained_alone(directory, out):
    """The same runs by train, each in its own process."""
    sums = {}
    for run_directory in sorted(path for path in out.iterdir() if path.is_dir()):
        alone = directory / "alone" / run_directory.name
        succeed("train", "--config", run_directory / "config.toml", "--output", alone, "--quiet")
        sums[run_directory.name] = facts_of(alone)["weights_sha256"]
    return sums


def table_of(out):
    with open(out / "sweep.csv", encoding="utf-8", newline="") as file:
        return {row["run"]: row for row in csv.DictReader(file)}


def test_runs_are_those_of_train(directory):
    need(DATA)
    out = directory / "out"
    result = succeed("sweep", grid(directory), "--output", out)
    lines = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
    assert [line.split("  ")[:2] for line in lines] == [[f"{i + 1}/6", name] for i, name in enumerate(NAMES)], result
    assert weights(out) == trained_alone(directory, out) and sorted(weights(out)) == NAMES
    for name in NAMES:
        assert not (out / name / "checkpoints").exists(), name
        config = (out / name / "config.toml").read_text()
        alone = (directory / "alone" / name / "config.toml").read_text()
        assert config.replace(str(out / name), "OUT") == alone.replace(str(directory / "alone" / name), "OUT")
        assert set(path.name for path in (out / name).iterdir()) == set(
            path.name for path in (directory / "alone" / name).iterdir())
        log = (out / name / "log.txt").read_text()
        assert log.count(" model: ") == 2 and str(out / name / "model") in log, log
        for other in NAMES:
            assert other == name or other not in log, log
    # The table is compare's, and the files have its numbers.
    assert "±" in result.out and "best eval_accuracy: lr" in result.out, result
    comparison = json.loads(succeed("compare", out, "--json").out)
    kept = json.loads((out / "sweep.json").read_text())
    assert kept["comparison"] == comparison, kept
    assert [entry["name"] for entry in kept["runs"]] == NAMES and kept["runs"][4]["options"] == {"lr": "0.003", "seed": "2"}
    for group in comparison["groups"]:
        values = [metrics_of(path)["eval_loss"] for path in group["runs"]]
        assert math.isclose(group["metrics"]["eval_loss"]["mean"], statistics.mean(values))
    for name, row in table_of(out).items():
        assert row["status"] == "finished" and row["exit_code"] == "0" and row["seed"] == name[-1], row
        assert float(row["eval_loss"]) == metrics_of(out / name)["eval_loss"], row
    # The same command again: everything exists and nothing is rewritten.
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file() and "sweep." not in path.name}
    again = succeed("sweep", grid(directory), "--output", out)
    assert again.err.count("there already") == 6 and again.out == result.out, again
    assert before == {path: path.stat().st_mtime_ns for path in before}
    quiet = succeed("sweep", grid(directory), "--output", out, "--json", "--quiet")
    lines = [json.loads(line) for line in quiet.out.splitlines()]
    assert quiet.err == "" and [line["output"] for line in lines[:6]] == [str(out / name) for name in NAMES], quiet
    assert lines[0] == json.loads(succeed("train", "--config", out / NAMES[0] / "config.toml", "--resume", "--json",
                                          "--quiet").out) | {"options": lines[0]["options"]}
    assert lines[6]["comparison"] == comparison and (lines[6]["runs"], lines[6]["finished"]) == (6, 6), lines[6]


def test_a_killed_sweep_goes_on(directory):
    need(DATA)
    out = directory / "out"
    fixed = QUICK.replace("max-steps = 12", "max-steps = 60\nsave-every = 5")
    line = ["sweep", grid(directory, "[sweep]\nlr = [1e-3, 3e-3]\nseed = [1, 2]\n", fixed), "--output", out]
    kills = 0
    for finished in (1, 3):
        process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            done = len(list(out.glob("*/metrics.json")))
            if done >= finished and len(list(out.glob("*/checkpoints/*.h5"))) > 0:
                process.kill()
                kills += 1
                break
            time.sleep(0.001)
        process.wait()
    assert kills > 0 and len(list(out.glob("*/metrics.json"))) < 4, "nothing was killed"
    result = succeed(*line)
    assert "there already" in result.err and len(weights(out)) == 4, result
    assert weights(out) == trained_alone(directory, out)
    left = [*out.glob("*/checkpoints"), *out.rglob("*.tmp*")]
    assert not left, left


def test_signals_stop_with_a_checkpoint(directory):
    need(DATA)
    fixed = QUICK.replace("max-steps = 12", "max-steps = 20000")
    for number, code in ((signal.SIGTERM, 85), (signal.SIGUSR1, 85), (signal.SIGINT, 130)):
        out = directory / str(number)
        line = ["sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", fixed), "--output", out]
        process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(out.glob("seed=1/metrics.jsonl")):
            time.sleep(0.005)
        time.sleep(0.1)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == code, (number, process.returncode, errors)
        assert len(list(out.glob("seed=1/checkpoints/*.h5"))) >= 1 and not (out / "seed=2").exists(), errors
        assert table_of(out)["seed=1"]["status"] == "interrupted" and table_of(out)["seed=2"]["status"] == "waiting"
    # A time limit applies to the whole sweep.
    out = directory / "limit"
    limited = run("sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", fixed + "time-limit = '1s'\n"), "--output", out)
    assert limited.code == 8 and not (out / "seed=2").exists(), limited


def test_a_failing_run_does_not_end_the_sweep(directory):
    need(DATA)
    out = directory / "out"
    sweep = "[sweep]\nlr = [1e-3, 900]\nadam-epsilon = [1e-8, 1e-30]\n"
    line = ["sweep", grid(directory, sweep, FIXED + "max-grad-norm = 0\nadam-beta2 = 0\n"), "--output", out]
    result = run(*line)
    rows = table_of(out)
    codes = {row["exit_code"] for row in rows.values()}
    assert result.code == 6 and codes == {"0", "6"}, (result, rows)
    failed = [name for name, row in rows.items() if row["exit_code"] == "6"]
    assert all("diverged at step" in rows[name]["error"] and rows[name]["status"] == "failed" for name in failed), rows
    assert all(f"{name}  failed  exit 6: diverged" in result.out for name in failed), result
    assert "finetune: error: diverged" in (out / failed[0] / "log.txt").read_text()
    # The same exit code again, without repeating runs whose failure follows from their options.
    def logs():
        """By content and time: a run of less than a second could rewrite identical lines."""
        files = {name: out / name / "log.txt" for name in rows}
        return {name: (file.stat().st_mtime_ns, file.read_bytes()) for name, file in files.items()}

    before = logs()
    again = run(*line)
    assert again.code == 6 and logs() == before and again.err.count("there already") == len(rows), again
    assert table_of(out) == rows and again.out == result.out
    plan = succeed(*line, "--dry-run").out
    assert f"{len(rows)} runs, 0 to do" in plan and plan.count("  diverged") == len(failed), plan
    # A run without its directory, or with another option, is repeated.
    shutil.rmtree(out / failed[0])
    assert run(*line).code == 6 and {name for name, log in logs().items() if log != before[name]} == {failed[0]}
    before = logs()
    assert run(*line[:1], grid(directory, sweep, FIXED + "max-grad-norm = 0\nadam-beta2 = 0\nthreads = 1\n"), *line[2:]).code == 6
    assert {name for name, log in logs().items() if log != before[name]} == set(failed)
    # Also with other data; finished runs are then refused, as usual.
    data = write(directory / "train.csv", TRAIN.read_bytes())
    other = FIXED.replace(str(TRAIN), str(data)) + "max-grad-norm = 0\nadam-beta2 = 0\n"
    only = grid(directory, "[sweep]\nlr = [900]\nadam-epsilon = [1e-30]\n", other)
    line = ["sweep", only, "--output", directory / "data"]
    log = directory / "data/lr=900,adam-epsilon=1e-30/log.txt"
    assert run(*line).code == 6 and run(*line).code == 6
    size = log.stat().st_size
    write(data, TRAIN.read_bytes() + TRAIN.read_bytes().splitlines(True)[1])
    assert run(*line).code == 6 and log.stat().st_size > size
    # A failed gate determines the exit code only after that.
    out = directory / "gate"
    gate = run("sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", FIXED + "assert = ['eval_accuracy>=0.99']\n"),
               "--output", out)
    assert gate.code == 7 and gate.err.count("exit 7: eval_accuracy ") == 2, gate
    assert [row["status"] for row in table_of(out).values()] == ["finished"] * 2


def test_jobs(directory):
    need(DATA)
    line = ["sweep", grid(directory), "--jobs", 3, "--output"]
    result = succeed(*line, directory / "three")
    assert sorted(line.split()[1] for line in result.err.splitlines() if not line.startswith("warning: ")) == NAMES, result
    succeed("sweep", grid(directory), "--output", directory / "one")
    assert weights(directory / "three") == weights(directory / "one")
    assert "threads" not in (directory / "three" / NAMES[0] / "config.toml").read_text()
    assert succeed(*line, directory / "three").err.count("there already") == 6
    # Stopped by a signal, or killed: no process remains, and the same command resumes.
    fixed = QUICK.replace("max-steps = 12", "max-steps = 400\nbatch-size = 16\nsave-every = 20")
    for number, codes in some_of(2, (signal.SIGTERM, (85,)), (signal.SIGKILL, (-9,)), (signal.SIGINT, (130,))):
        out = directory / f"stopped {number}"
        line = ["sweep", grid(directory, "[sweep]\nseed = [1, 2, 3]\n", fixed), "--jobs", 2, "--output", out]
        process = subprocess.Popen([BINARY, *map(str, line)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and len(list(out.glob("*/checkpoints/*.h5"))) < 2:
            time.sleep(0.002)
        process.send_signal(number)
        errors = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode in codes, (number, process.returncode, errors)
        assert not (out / "seed=3").exists(), errors
        succeed(*line)
        assert len(weights(out)) == 3 and not list(out.glob("*/checkpoints")) and not list(out.rglob("*.tmp*"))
    assert len({tuple(weights(out).values()) for out in directory.glob("stopped *")}) == 1
    # If a run's process is killed, that run failed.
    out = directory / "killed"
    fixed = QUICK.replace("max-steps = 12", "max-steps = 600\nbatch-size = 16")
    process = subprocess.Popen([BINARY, "sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", fixed), "--jobs", "2",
                                "--output", out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text().split()) < 2 or not list(out.glob("*/metrics.jsonl")):
        time.sleep(0.005)
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    assert process.wait(60) == 5
    assert sorted(row["exit_code"] for row in table_of(out).values()) == ["0", "5"], table_of(out)


def test_halving(directory):
    need(DATA)
    fixed = QUICK.replace("max-steps = 12", "max-steps = 36\neval-every = 9\nbest-metric = 'loss'")
    sweep = "[sweep]\nlr = [1e-9, 1e-4, 3e-3, 1e-3]\nseed = [1, 2]\n"
    line = ["sweep", grid(directory, sweep, fixed), "--halving", 2, "--output"]
    out = directory / "out"
    result = succeed(*line, out)
    # Four evaluations: the first two settings pass the first, the best one passes the second.
    assert "after 1/4 of the evaluations: 2 of 4 settings go on, by eval_loss" in result.err, result
    assert "after 1/2 of the evaluations: 1 of 2 settings go on" in result.err, result
    rows = table_of(out)
    losses = {name: [entry["eval_loss"] for entry in map(json.loads, open(out / name / "metrics.jsonl")) if "eval_loss" in entry]
              for name in rows}
    assert sorted(len(values) for values in losses.values()) == [1, 1, 1, 1, 2, 2, 4, 4], losses
    alive = [f"lr={lr}" for lr in ("1e-9", "1e-4", "0.003", "0.001")]
    for rung, left in ((1, 2), (2, 1)):
        mean = {lr: statistics.mean(min(losses[f"{lr},seed={seed}"][:rung]) for seed in (1, 2)) for lr in alive}
        alive = sorted(alive, key=mean.get)[:left]
        assert all(len(losses[f"{lr},seed=1"]) > rung for lr in alive), (rung, mean, losses)
    assert {name for name, row in rows.items() if row["status"] == "finished"} == {f"{alive[0]},seed={seed}" for seed in (1, 2)}
    assert all(row["status"] in ("finished", "dropped") and row["exit_code"] == "0" for row in rows.values()), rows
    assert not list(out.glob("*/checkpoints"))
    for name in rows:
        assert float(rows[name]["eval_loss"]) in losses[name], rows[name]
    for seed in (1, 2):
        name = f"{alive[0]},seed={seed}"
        succeed("train", "--config", out / name / "config.toml", "--output", directory / name, "--quiet")
        assert facts_of(directory / name)["weights_sha256"] == facts_of(out / name)["weights_sha256"]
    # Repeated, with several processes, and after a kill: the same results.
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/*") if path.is_file()}
    assert succeed(*line, out).out == result.out
    assert before == {path: path.stat().st_mtime_ns for path in before}
    succeed(*line, directory / "jobs", "--jobs", 2)
    killed = directory / "killed"
    process = subprocess.Popen([BINARY, *map(str, line), killed], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not any(row["status"] == "dropped" for row in
                                             (table_of(killed).values() if (killed / "sweep.csv").exists() else ())):
        time.sleep(0.002)
    process.kill()
    process.wait()
    succeed(*line, killed)
    for other in (directory / "jobs", killed):
        assert weights(other) == weights(out)
        assert {name: row["status"] for name, row in table_of(other).items()} == {
            name: row["status"] for name, row in rows.items()}
    # Without halving the dropped runs are completed too.
    succeed("sweep", grid(directory, sweep, fixed), "--output", out)
    assert len(weights(out)) == 8 and weights(out) == trained_alone(directory, out)
    for words, change in ((["2 evaluations", "2 and 4"], lambda text: text.replace("-9, 1e-4, 3e-3, 1e-3", "-9, 1e-4")),
                          (["8 settings", "4 and 4"], lambda text: text)):
        count = 3 if "2 and 4" in words else 8
        for more in ([], ["--dry-run"]):
            fail(2, "sweep", grid(directory, change(sweep), fixed), "--halving", count, "--output", directory / "none", *more,
                 words=["--halving", words[1]])
    for more in ([], ["--dry-run"]):
        fail(2, "sweep", grid(directory, sweep, FIXED.replace(f"eval = '{EVAL}'\n", "")), "--halving", 2, "--output",
             directory / "none", *more, words=["--halving", "evaluation data"])
    assert not (directory / "none").exists()


def test_dry_run(directory):
    need(DATA)
    out = directory / "out"
    text = succeed("sweep", grid(directory), "--output", out, "--dry-run").out
    assert not out.exists() and text.startswith("6 runs, 6 to do, 1 at a time\n"), text
    assert [line.split()[:2] for line in text.splitlines()[1:7]] == [[name, "new"] for name in NAMES], text
    succeed("sweep", grid(directory, "[sweep]\nlr = [1e-3]\nseed = [1, 2]\n"), "--output", out)
    line = json.loads(succeed("sweep", grid(directory), "--output", out, "--dry-run", "--jobs", 2, "--json").out)
    assert [run["state"] for run in line["runs"]] == ["finished"] * 2 + ["new"] * 4, line
    each = line["runs"][2]
    plan = json.loads(succeed("plan", "--config", out / NAMES[0] / "config.toml", "--json", "--no-time").out)
    assert (each["peak_disk_mb"], each["final_disk_mb"]) == (plan["peak_disk_mb"], plan["final_disk_mb"]), (each, plan)
    assert math.isclose(line["total_seconds"], 2 * each["total_seconds"]) and each["total_seconds"] > 0, line
    assert math.isclose(line["final_disk_mb"], 4 * each["final_disk_mb"]), line
    assert math.isclose(line["peak_disk_mb"], 2 * each["final_disk_mb"] + 2 * each["peak_disk_mb"]), line
    fail(2, "sweep", grid(directory, "[sweep]\nlrr = [1]\n"), "--output", out, "--dry-run", words=["'lrr'"])


def test_dry_run_of_halving(directory):
    """The rungs depend on the shortest run of the grid, even if it has ended."""
    need(DATA)
    out = directory / "out"
    fixed = FIXED.replace("max-steps = 12", "eval-every = 3")
    sweep = "[sweep]\nmax-steps = [6, 24]\nlr = [1e-3, 3e-3]\n"
    succeed("sweep", grid(directory, sweep.replace(", 24", ""), fixed), "--output", out)
    line = json.loads(succeed("sweep", grid(directory, sweep, fixed), "--output", out, "--halving", 2, "--dry-run", "--json").out)
    assert [run["state"] for run in line["runs"]] == ["finished"] * 2 + ["new"] * 2, line
    # Two evaluations after the first: four settings run until there, then two of them.
    assert math.isclose(line["total_seconds"], 0.75 * sum(run["total_seconds"] for run in line["runs"])), line


def test_dry_run_reads_data_once(directory):
    """A pipe's rows are read once, for --halving's rungs and for forecasts of different runs."""
    need(DATA)
    fixed = FIXED.replace(f"'{TRAIN}'", "'/dev/stdin'").replace("max-steps = 12", "max-steps = 12\neval-every = 3")
    line = ["sweep", grid(directory, "[sweep]\nbatch-size = [8, 16]\n", fixed), "--output", directory / "out", "--dry-run"]
    for more in ([], ["--halving", 2]):
        assert "2 runs, 2 to do" in succeed(*line, *more, stdin=TRAIN.read_text()).out


def test_a_changed_grid(directory):
    need(DATA)
    out = directory / "out"
    succeed("sweep", grid(directory, "[sweep]\nlr = [1e-3]\nseed = [1, 2]\n"), "--output", out)
    before = weights(out)
    # After adding runs and removing one, the existing ones stay unchanged.
    result = succeed("sweep", grid(directory, "[sweep]\nlr = [1e-3, 2e-3]\nseed = [2]\n"), "--output", out)
    assert "1/2  lr=0.001,seed=2" in result.err and "there already" in result.err.splitlines()[0], result
    assert "left as they are: lr=0.001,seed=1" in result.err, result
    assert {**weights(out), **before} == weights(out) and len(weights(out)) == 3
    assert list(table_of(out)) == ["lr=0.001,seed=2", "lr=0.002,seed=2"]
    # With another fixed option it is another sweep.
    message = fail(2, "sweep", grid(directory, "[sweep]\nlr = [1e-3, 2e-3]\nseed = [2, 3]\n",
                                    FIXED.replace("max-steps = 12", "max-steps = 13\nweight-decay = 0.5")),
                   "--output", out, words=["max-steps (12 there, 13 now)", "weight-decay (0.01 there, 0.5 now)"])
    assert "grid.toml" in message and len(weights(out)) == 3
    # The same for other data under the same name.
    data = write(directory / "train.csv", TRAIN.read_bytes())
    fixed = FIXED.replace(str(TRAIN), str(data))
    out = directory / "data"
    succeed("sweep", grid(directory, "[sweep]\nseed = [1]\n", fixed), "--output", out)
    write(data, TRAIN.read_bytes() + TRAIN.read_bytes().splitlines(True)[1])
    fail(3, "sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", fixed), "--output", out, words=["data has changed"])
    assert not (out / "seed=2").exists()
    # Options that do not change results may differ.
    write(data, TRAIN.read_bytes())
    succeed("sweep", grid(directory, "[sweep]\nseed = [1, 2]\n", fixed + "threads = 1\nlog-every = 2\n"), "--output", out)


def test_what_is_refused_before_anything_runs(directory):
    need(DATA)
    out = directory / "out"

    def refused(code, sweep, words, fixed=FIXED):
        fail(code, "sweep", grid(directory, sweep, fixed), "--output", out, words=words)
        assert not out.exists(), sweep

    refused(2, "[sweep]\nlrr = [1]\n", ["grid.toml:7", "lrr", "did you mean lr?"])
    refused(2, "[sweep]\nlr = []\n", ["grid.toml:7", "lr", "empty"])
    refused(2, "[sweep]\nlr = [1e-3, 'x']\n", ["grid.toml:7", "lr", "'x'"])
    refused(2, "[sweep]\nfreeze = ['none', '77']\n", ["freeze=77", "--freeze 77", "layers up to"])
    refused(2, "[sweep]\nbest-metric = ['accuracy', 'f1']\n", ["best-metric=f1", "eval_f1_macro"])
    refused(2, "[sweep]\nassert = [['eval_accuracy>=0'], ['eval_acc>=0']]\n", ["eval_acc", "did you mean"])
    refused(3, GRID, ["absent.csv"], FIXED.replace(str(TRAIN), "absent.csv"))
    refused(3, GRID, ["'kategory'"], FIXED.replace("'category'", "'kategory'"))
    refused(4, GRID, ["absent-model"], FIXED.replace(str(MODEL), "absent-model"))
    # A run whose file is missing is found before the first run, even if other runs' files exist.
    refused(3, f"[sweep]\neval = ['{EVAL}', 'absent.csv']\n", ["run eval=absent.csv: ", "No such file"],
            FIXED.replace(f"eval = '{EVAL}'\n", ""))
    refused(2, "[sweep]\nmax-length = [16, 4096]\n", ["run max-length=4096: ", "512 positions"])
    refused(2, GRID, ["grid.toml:6: junit: "], FIXED + "junit = 'gates.xml'\n")
    fail(2, "sweep", grid(directory), words=["--output"])
    fail(2, "sweep", directory / "absent.toml", "--output", out, words=["absent.toml"])
    fail(2, "sweep", "--output", out, words=["GRID is required: "])
    # A directory with other contents is not touched.
    (directory / "mine").mkdir()
    write(directory / "mine/notes.txt", "mine")
    fail(2, "sweep", grid(directory), "--output", directory / "mine", words=["not a sweep's directory"])
    succeed("train", "--config", write(directory / "c.toml", FIXED), "--output", directory / "run", "--quiet")
    fail(2, "sweep", grid(directory), "--output", directory / "run", words=["a single run"])
    fail(2, "train", "--config", grid(directory), "--output", out, words=["grid.toml:6", "tables"])


def test_loss_options_share_the_data(directory):
    need(DATA)
    out = directory / "out"
    sweep = "[sweep]\nlabel-smoothing = [0, 0.2]\nclass-weights = ['none', 'balanced']\neval-fraction = [0.2, 0.3]\n"
    succeed("sweep", grid(directory, sweep, FIXED.replace(f"eval = '{EVAL}'\n", "seed = 5\n")), "--output", out)
    sums = weights(out)
    assert len(set(sums.values())) == 8 and sums == trained_alone(directory, out)
    for name in sums:
        config = json.loads((out / name / "model/config.json").read_text())["finetune"]
        assert config.get("label_smoothing", 0) == (0.2 if "smoothing=0.2" in name else 0), (name, config)
        assert bool(config.get("class_weights")) == ("balanced" in name), (name, config)


main(globals())
