"""Warnings: printed even with --quiet, once each; exit code 7 with --fail-on-warning."""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, SQUAD, TRAIN, write
from harness import BINARY, facts_of, fail, main, metrics_of, need, run, succeed

LABELS = ["--label-column", "category"]
FEW = ["--max-steps", 2, "--threads", 1, "--recipe", "hf"]
CUT = ["--max-length", 6]  # tokens: nearly all texts are cut


def warnings_of(result):
    return [line for line in result.err.splitlines() if line.startswith("warning: ")]


def others_of(result):
    return [line for line in result.err.splitlines() if not line.startswith("warning: ")]


def test_quiet_commands_tell_warnings_and_nothing_else(directory):
    need(*MODELS)
    out = directory / "run"
    train = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, *LABELS, *FEW, *CUT]
    loud = succeed(*train, "--output", out)
    quiet = succeed(*train, "--output", directory / "quiet", "--quiet")
    assert warnings_of(quiet) == warnings_of(loud) and "are cut at 6 tokens" in quiet.err, (loud, quiet)
    assert others_of(quiet) == [], quiet
    for line in (["evaluate", "--model", out, "--data", EVAL],
                 ["predict", "--model", out, "--input", EVAL, "--output", directory / "out.csv", "--overwrite"]):
        loud, quiet = succeed(*line), succeed(*line, "--quiet")
        assert warnings_of(quiet) == warnings_of(loud) and "are cut at 6 tokens" in quiet.err, (loud, quiet)
        assert others_of(quiet) == [], quiet
        done = run(*line, "--quiet", "--fail-on-warning")
        assert done.code == 7 and done.out == quiet.out and done.err == quiet.err, done
    adapt = ["adapt", "--model", MODEL, "--text", TRAIN, "--text-column", "text", *CUT, "--max-steps", 1]
    done = run(*adapt, "--output", directory / "adapted", "--quiet", "--fail-on-warning")
    assert done.code == 7 and "are cut at 6 tokens" in done.err and others_of(done) == [], done


def test_the_work_is_done_before_a_warning_fails_it(directory):
    need(*MODELS)
    out = directory / "run"
    train = ["train", "--model", MODEL, "--train", TRAIN, *LABELS, *FEW, "--output", out, "--quiet", "--fail-on-warning"]
    assert run(*train, *CUT).code == 7
    assert (out / "model/model.safetensors").exists() and (out / "metrics.json").exists()
    assert "fail-on-warning" not in (out / "config.toml").read_text()
    # Without warnings the option changes nothing. An error keeps its own code.
    assert run(*train, "--overwrite").code == 0
    fail(3, "train", "--model", MODEL, "--train", directory / "none.csv", "--output", directory / "b", "--fail-on-warning")
    # A failed gate has the same code; all files are written.
    assert run("evaluate", "--model", out, "--data", EVAL, "--assert", "eval_accuracy>=2", "--fail-on-warning").code == 7


def test_the_same_warning_is_told_once(directory):
    need(*MODELS)
    result = succeed("train", "--model", MODEL, "--train", TRAIN, TRAIN, "--eval", TRAIN, TRAIN, *LABELS, *FEW, "--output",
                     directory / "run")
    told = [line for line in warnings_of(result) if "is training and evaluation data" in line]
    assert len(told) == 1, result
    assert len(set(warnings_of(result))) == len(warnings_of(result)), result


def test_commands_without_a_log_fail_on_their_warnings_too(directory):
    need(*MODELS)
    asked = json.loads(SQUAD.read_text())["data"][0]["paragraphs"][0]["qas"][0]["id"]
    answers = write(directory / "answers.json", json.dumps({asked: "this", "nobody asked": "that"}))
    score = ["score", "--data", SQUAD, "--predictions", answers]
    told = succeed(*score)
    done = run(*score, "--fail-on-warning")
    assert done.code == 7 and done.err == told.err and done.out == told.out and warnings_of(done), done
    # check prints its findings among its results.
    check = ["check", "--train", TRAIN, TRAIN, "--eval", TRAIN, *LABELS]
    assert succeed(*check).out.count("warning: ") >= 1
    assert run(*check, "--fail-on-warning").code == 7
    # A run that is left out.
    runs = directory / "runs"
    for name in "ab":
        succeed("train", "--model", MODEL, "--train", TRAIN, *LABELS, *FEW, "--output", runs / name)
    (runs / "b/metrics.json").unlink()
    for command in (["compare", runs], ["report", runs, "--output", directory / "report.html"]):
        done = run(*command, "--fail-on-warning")
        assert done.code == 7 and "warning: " in done.err and str(runs / "b") in done.err, done
    # Commands that never warn accept the option too.
    assert run("inspect", MODEL, "--fail-on-warning").code == 0
    assert run("convert", "--model", MODEL, "--output", directory / "converted", "--fail-on-warning").code == 0
    assert run("plan", "--model", MODEL, "--train", TRAIN, *LABELS, "--no-time", "--fail-on-warning").code == 0


def test_a_sweep_tells_the_warnings_of_its_runs(directory):
    need(*MODELS)
    grid = write(directory / "grid.toml", f"""model = "{MODEL}"
train = "{TRAIN}"
label-column = "category"
max-length = 6
max-steps = 1
threads = 1
recipe = "hf"
[sweep]
seed = [1, 2, 3]
""")
    for jobs in (1, 2):
        out = directory / f"sweep{jobs}"
        sweep = ["sweep", grid, "--output", out, "--jobs", jobs, "--quiet", "--fail-on-warning"]
        done = run(*sweep)
        # The first run with the warning prints it, with its name; every run's log has it.
        assert done.code == 7 and len(warnings_of(done)) == 1 and others_of(done) == [], done
        assert "warning: seed=" in done.err and "are cut at 6 tokens" in done.err, done
        for seed in (1, 2, 3):
            assert (out / f"seed={seed}/log.txt").read_text().count("are cut at 6 tokens") == 1, seed
        # No run is repeated, and no warning is printed again.
        assert run(*sweep).code == 0


def test_no_run_of_a_sweep_loses_its_mix(directory):
    need(*MODELS)
    grid = write(directory / "grid.toml", f"""model = "{MODEL}"
train = "{TRAIN}"
eval = "{EVAL}"
label-column = "category"
max-steps = 1
threads = 1
ngram-mix = "yes"
[sweep]
seed = [1, 2]
""")
    for jobs in (1, 2):
        out = directory / f"sweep{jobs}"
        line = ["sweep", grid, "--output", out, "--jobs", jobs]
        lost = run(*line, env={"TMPDIR": str(directory / "absent")})
        assert lost.code == 4 and "TMPDIR" in lost.err and not list(out.glob("*/metrics.json")), lost
        # The same command repairs it.
        done = succeed(*line)
        for seed in (1, 2):
            assert "ngram_mix" in facts_of(out / f"seed={seed}"), done
            assert "baseline_ngram_accuracy" in metrics_of(out / f"seed={seed}"), done


def test_processes_agree_on_a_warning(directory):
    need(*MODELS)
    out = directory / "run"
    line = [BINARY, "train", "--model", MODEL, "--train", TRAIN, *LABELS, *FEW, *CUT, "--output", out, "--quiet",
            "--fail-on-warning"]
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(["mpirun", "-n", "2", "--oversubscribe", "--bind-to", "none", *map(str, line)],
                          capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 7 and done.stderr.count("are cut at 6 tokens") == 1, done
    assert (out / "metrics.json").exists()


main(globals())
