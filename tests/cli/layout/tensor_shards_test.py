"""Layers in tensor shards: close to the uncut model, reproducible bits, whole tensors in files."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import copied
from harness import DEVICE, GOLDEN, facts_of, fail, main, metrics_in, metrics_of, need, steps_of, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def model_with(directory, **changes):
    """The golden model with another config: weights have the same shapes for any number of heads."""
    need("golden/trajectory-classification-train.csv")
    return copied(MODEL, directory, **changes)


def line(model, output, *more):
    return ["train", "--model", model, "--train", TRAIN, "--label-column", "category", "--batch-size", 16,
            "--max-steps", 6, "--lr", "1e-3", "--virtual-shards", 3, "--output", output, *more, *DEVICE]


def digest(run):
    return facts_of(run)["weights_sha256"]


def test_many_shards_are_near_one(directory):
    """The tolerances of the golden trajectories (trajectory_test.py), dropout at all sites."""
    model = model_with(directory / "model", num_attention_heads=8)
    runs = {}
    for shards in (1, 2, 4, 8):
        succeed(*line(model, directory / str(shards), "--precision", "fp32", "--tensor-shards", shards,
                      "--max-steps", 20))
        runs[shards] = steps_of(directory / str(shards))
    for shards in (2, 4, 8):
        assert digest(directory / str(shards)) != digest(directory / "1")
        for ours, uncut in zip(runs[shards], runs[1]):
            assert abs(ours["loss"] - uncut["loss"]) <= 2e-6 * uncut["loss"], (shards, ours, uncut)
            assert abs(ours["grad_norm"] - uncut["grad_norm"]) <= 1e-5 * uncut["grad_norm"], (shards, ours, uncut)


def test_the_machine_does_not_matter(directory):
    model = model_with(directory / "model", num_attention_heads=4)
    for precision in ("fp32", "bf16"):
        found = set()
        for number, more in enumerate(([], ["--threads", 1], ["--recompute"])):
            out = directory / f"{precision}-{number}"
            succeed(*line(model, out, "--precision", precision, "--tensor-shards", 4, *more))
            found.add(digest(out))
        assert len(found) == 1, found
    assert "tensor-shards = 4" in (out / "config.toml").read_text()
    assert facts_of(out)["tensor_shards"] == "4"


def test_resume_takes_the_shards_of_the_checkpoint(directory):
    model = model_with(directory / "model", num_attention_heads=4)
    out = directory / "run"
    succeed(*line(model, out, "--save-every", 3, "--keep-checkpoints", 2, "--tensor-shards", 4))
    whole = digest(out)
    (out / "metrics.json").unlink()
    (out / "checkpoints" / "step-00000006.h5").unlink()
    fail(2, *line(model, out, "--save-every", 3, "--keep-checkpoints", 2, "--tensor-shards", 2, "--resume"), words=["tensor-shards", "4", "2"])
    succeed(*line(model, out, "--save-every", 3, "--keep-checkpoints", 2, "--resume", "--recompute"))
    assert digest(out) == whole


def test_the_exported_model_is_whole(directory):
    model = model_with(directory / "model", num_attention_heads=4)
    out = directory / "run"
    succeed(*line(model, out, "--precision", "fp32", "--eval", EVAL, "--tensor-shards", 4))
    ours = metrics_of(out)
    evaluate = ["evaluate", "--model", out / "model", "--data", EVAL, "--label-column", "category", "--precision", "fp32",
                "--json", *DEVICE]
    cut = metrics_in(succeed(*evaluate, "--tensor-shards", 4).out)
    for name in [name for name in cut if name.endswith("_calibrated")]:
        del cut[name]  # train's values are cross-fitted
    assert {name: ours[name] for name in cut} == cut, (cut, ours)
    uncut = metrics_in(succeed(*evaluate).out)
    assert uncut["eval_loss"] != ours["eval_loss"]
    assert abs(uncut["eval_loss"] - ours["eval_loss"]) <= 2e-6 * ours["eval_loss"], (uncut, ours)
    # A run that starts from it has all of its tensors: none unused, none new.
    log = succeed(*line(out / "model", directory / "next", "--tensor-shards", 2)).err
    assert "is kept" in log and "not needed" not in log, log


def test_plan_and_bench_take_them(directory):
    model = model_with(directory / "model", num_attention_heads=8)
    plan = ["plan", *line(model, directory / "run")[1:], "--no-time"]
    succeed(*plan, "--tensor-shards", 4)
    fail(2, "bench", "step", "--shape", "tiny", "--tensor-shards", 0, words=["--tensor-shards 0"])


def test_numbers_that_do_not_divide(directory):
    model = model_with(directory / "model", num_attention_heads=4)
    fail(2, *line(model, directory / "run", "--tensor-shards", 3), words=["4 attention heads", "--tensor-shards 3"])
    fail(2, *line(model, directory / "run", "--tensor-shards", 0), words=["--tensor-shards"])
    other = model_with(directory / "other", num_attention_heads=4, intermediate_size=258)
    fail(2, *line(other, directory / "run", "--tensor-shards", 4),
         words=["258 columns of the feed-forward part", "--tensor-shards 4"])
    assert not (directory / "run").exists()


main(globals())
