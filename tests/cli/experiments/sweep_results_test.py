"""sweep's reports about its runs: progress, best model, failures, missing parts."""
import json
import os
import re
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, TRAIN, write
from harness import BINARY, main, metrics_of, need, run, succeed
from terminal import Terminal

DATA = "golden/trajectory-classification-train.csv"
FIXED = f"model = '{MODEL}'\ntrain = '{TRAIN}'\neval = '{EVAL}'\nlabel-column = 'category'\n"
QUICK = FIXED + "max-steps = 4\nno-ngram-baseline = true\n"


def grid(directory, fixed, sweep):
    return write(directory / "grid.toml", f"{fixed}[sweep]\n{sweep}\n")


def test_the_best_model_is_named(directory):
    need(DATA)
    out = directory / "out"
    line = ["sweep", grid(directory, FIXED + "max-steps = 45\nno-ngram-baseline = true\n", "lr = [1e-9, 3e-3]\nseed = [1, 2]"),
            "--output", out]
    text = succeed(*line).out
    best = max((f"lr=0.003,seed={seed}" for seed in (1, 2)), key=lambda name: metrics_of(out / name)["eval_accuracy"])
    assert f"\nbest model: {out / best / 'model'}\n" in text, text
    value = metrics_of(out / best)["eval_accuracy"]
    assert text.startswith(f"best of 4 runs, {best}: {100 * value:.1f} % of "), text
    assert text.splitlines()[1].startswith("commonest label "), text
    assert text.endswith(f"\nnext:  finetune report {out} --output report.html\n"), text
    expected = {"run": best, "model": str(out / best / "model"), "metric": "eval_accuracy", "value": value}
    assert json.loads((out / "sweep.json").read_text())["best"] == expected
    assert json.loads(succeed(*line, "--json").out.splitlines()[-1])["best"] == expected
    succeed("evaluate", "--model", expected["model"], "--data", EVAL, "--label-column", "category", "--quiet")
    # The training loss does not determine a best model.
    unevaluated = QUICK.replace(f"eval = '{EVAL}'\n", "")
    line = ["sweep", grid(directory, unevaluated, "seed = [1, 2]"), "--output", directory / "loss"]
    assert "best model" not in succeed(*line).out
    assert json.loads((directory / "loss/sweep.json").read_text())["best"] is None


def test_failed_runs_end_with_an_error(directory):
    need(DATA)
    out = directory / "out"
    fixed = QUICK + "max-grad-norm = 0\nadam-beta2 = 0\nadam-epsilon = 1e-30\n"
    line = ["sweep", grid(directory, fixed, "lr = [1e-9, 900, 901]"), "--output", out]
    for more in ([], ["--json"]):
        result = run(*line, "--quiet", *more)
        errors = [text for text in result.err.splitlines() if text.startswith("finetune: error: ")]
        assert result.code == 6 and len(errors) == 1, result
        assert errors[0].startswith("finetune: error: 2 of 3 runs failed, the first one is lr=900: diverged"), errors
        assert json.loads(result.out.splitlines()[-1])["failed"] == 2 if more else "lr=901  failed" in result.out, result


def test_a_lost_part_is_no_result(directory):
    """A run without its mix, as earlier versions left it when $TMPDIR was full, is repeated."""
    need(DATA)
    out = directory / "out"
    fixed = FIXED + "max-steps = 12\nrecipe = 'auto'\n"
    line = ["sweep", grid(directory, fixed, "seed = [1, 2]"), "--output", out]
    # No space for the rows that the linear model reads.
    environment = {**os.environ, "TMPDIR": str(directory / "absent")}
    result = run(*line, env=environment)
    assert result.code in (4, 5) and "finetune: error: " in result.err, result
    result = succeed(*line)
    assert result.err.count("there already") == 0, result
    good = {name: metrics_of(out / name) for name in ("seed=1", "seed=2")}
    assert all("eval_mix_model" in metrics and metrics["eval_accuracy"] > 0.6 for metrics in good.values()), good
    metrics = {name: value for name, value in good["seed=1"].items()
               if not name.startswith(("eval_mix_", "baseline_ngram_", "baseline_unmixed_"))}
    (out / "seed=1/metrics.json").write_text(json.dumps(metrics))
    facts = json.loads((out / "seed=1/run.json").read_text())
    facts.pop("ngram_mix", None)
    (out / "seed=1/run.json").write_text(json.dumps(facts))
    assert "2 runs, 1 to do" in succeed(*line, "--dry-run").out
    for more in ([], ["--jobs", 2]):
        (out / "seed=1/metrics.json").write_text(json.dumps(metrics))
        (out / "seed=1/run.json").write_text(json.dumps(facts))
        result = succeed(*line, *more)
        assert result.err.count("there already") == 1, result
        again = metrics_of(out / "seed=1")
        assert again["eval_accuracy"] == good["seed=1"]["eval_accuracy"] and "eval_mix_model" in again, again


def test_too_few_descriptors_lose_nothing(directory):
    """Under a limit runs fail; the next call repairs them, and none ends without its mix."""
    need(DATA)
    line = ["sweep", grid(directory, FIXED + "max-steps = 4\nrecipe = 'auto'\n", "seed = [1]"), "--quiet", "--output"]
    failed = 0
    for limit in range(11, 18, 2):
        out = directory / str(limit)
        done = subprocess.run([BINARY, *map(str, line), out], capture_output=True, text=True, timeout=120,
                              preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit)))
        if done.returncode != 0:
            assert done.returncode in (4, 5) and "finetune: error: " in done.stderr, done
            table = out / "sweep.csv"
            assert not (out / "seed=1/metrics.json").exists(), limit
            assert not table.exists() or "finished" not in table.read_text(), limit
            advised = done.stderr.count("Too many open files (see ulimit -n)")
            assert done.stderr.count("Too many open files") == advised, done
            failed += 1
        succeed(*line, out)
        assert "eval_mix_model" in metrics_of(out / "seed=1"), limit
    assert failed > 0, "no limit was low enough"


def test_progress(directory):
    need(DATA)
    fixed = FIXED + "max-steps = 150\neval-every = 75\nno-ngram-baseline = true\n"
    for jobs, begin in ((1, r"run [12]/2  lr=\S+  step \d+/150"), (2, r"[01]/2 runs ended  .*step \d+/150")):
        line = [BINARY, "sweep", grid(directory, fixed, "lr = [1e-3, 2e-3]"), "--output", directory / f"out{jobs}",
                "--jobs", str(jobs)]
        terminal = Terminal(line, 120)
        shown = set()
        deadline = time.time() + 60
        while time.time() < deadline and terminal.read():
            row = terminal.screen.rows[terminal.screen.row]
            assert len(row) < 120, row
            shown.update(re.findall(begin + r".*all runs \d+:\d\d", row))
        assert shown, terminal.text[-500:]
        left = [row for row in terminal.screen.rows if re.match(begin, row)]
        assert not left, left
    # Without a terminal a sweep of some seconds has no such line; with --quiet it never has.
    assert "step " not in succeed("sweep", grid(directory, QUICK, "seed = [1, 2]"), "--output", directory / "short").err


main(globals())
