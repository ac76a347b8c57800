"""--device auto, with a CUDA module whose kernels run on the host: uses a GPU if possible."""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from cuda_on_host import HOST_MODULE, program_with_module
import harness
from harness import GOLDEN, facts_of, fail, main, need, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN, EVAL = GOLDEN / "trajectory-classification-train.csv", GOLDEN / "trajectory-classification-eval.csv"
LABELS = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--batch-size", 8,
          "--max-eval-samples", 10, "--no-ngram-baseline", "--max-steps", 5, "--no-progress", "--quiet"]


HERE = {"FINETUNE_GPU_NODE": "/dev/null", "CUDA_VISIBLE_DEVICES": "0"}
HIDDEN = {**HERE, "CUDA_VISIBLE_DEVICES": ""}


def prepared():
    if not HOST_MODULE:
        raise harness.Skip("only the kernels' host runtime can be without a device")
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    program_with_module()


def trained(out, *more, env):
    """The log's lines about the device."""
    succeed(*LABELS, "--precision", "fp32", "--output", out, *more, env=env)
    return (out / "log.txt").read_text()


def sum_of(out):
    return facts_of(out)["weights_sha256"]


def test_auto_takes_the_gpu(directory):
    """Uses a GPU if possible; if one is present but unusable, the log says why."""
    prepared()
    assert "computing on CUDA" in trained(directory / "here", env=HERE)
    trained(directory / "named", "--device", "cuda", env=HIDDEN)
    assert sum_of(directory / "here") == sum_of(directory / "named")
    for name, env in (("hidden", HIDDEN), ("absent", {**HERE, "FINETUNE_GPU_NODE": str(directory / "none")})):
        log = trained(directory / name, env=env)
        assert "computing on CPU" in log and "NVIDIA" not in log, log
    log = trained(directory / "none", env={**HERE, "HOST_CUDA_DEVICES": "0"})
    assert "computing on CPU" in log, log
    assert log.count("an NVIDIA GPU was found but is not used: no CUDA-capable device is detected") == 1, log
    assert sum_of(directory / "none") == sum_of(directory / "hidden") != sum_of(directory / "here")
    # Repeating the run elsewhere uses the device available there.
    assert 'device = "auto"' in (directory / "here" / "config.toml").read_text()


def test_old_cards_are_named(directory):
    """A card without code for it is there and not used; a newer one beside it is."""
    prepared()
    both = {**HERE, "HOST_CUDA_DEVICES": "2", "HOST_CUDA_CAPABILITIES": "75,120"}
    shown = {row[:18].strip(): row[18:].strip() for row in succeed("doctor", env=both).out.splitlines()}
    assert shown["GPU 0"] == ("kernels on the host, sm_75, 1 multiprocessors, 1048576 MiB; not usable: it is sm_75, this build "
                              "has code for sm_80 and later (A100, A10, L4, RTX 30 and newer)"), shown
    assert shown["GPU 1"].startswith("kernels on the host again, sm_120, ") and "not usable" not in shown["GPU 1"], shown
    assert shown["GPU self-test"] == "ok", shown
    assert "computing on CUDA" in trained(directory / "newer", env=both)
    alone = {**HERE, "HOST_CUDA_CAPABILITIES": "75"}
    log = trained(directory / "older", env=alone)
    assert "an NVIDIA GPU was found but is not used: GPU 0: it is sm_75" in log and "computing on CPU" in log, log
    fail(5, *LABELS, "--output", directory / "no", "--device", "cuda", env=alone, words=["GPU 0: it is sm_75", "sm_80"])
    assert "GPU self-test" not in succeed("doctor", env=alone).out


def test_other_commands(directory):
    prepared()
    trained(directory / "run", env=HERE)
    predict = ["predict", "--model", directory / "run", "--input", EVAL, "--output"]
    rows = {}
    for name, more in (("auto", []), ("cuda", ["--device", "cuda"]), ("cpu", ["--device", "cpu"])):
        succeed(*predict, directory / f"{name}.csv", *more, env=HERE)
        rows[name] = (directory / f"{name}.csv").read_text()
    assert rows["auto"] == rows["cuda"] != rows["cpu"]
    plan = ["plan", *LABELS[1:], "--json", "--no-time"]
    assert json.loads(succeed(*plan, env=HERE).out)["device_fits"] == 1
    assert "device_fits" not in json.loads(succeed(*plan, "--pp", 2, env=HERE).out)
    fail(2, *plan, "--pp", 2, "--device", "cuda", words=["--processes 2", "one process of a GPU"])
    step = ["--shape", "tiny", "--lengths", 10, "--batch-size", 2, "--steps", 1, "--json"]
    for device, more in (("cuda", ["step"]), ("cpu", ["step", "--threads", 1, "--clock", "cpu"])):
        assert json.loads(succeed("bench", *more, *step, env=HERE).out)["device"] == device
    texts = directory / "texts.txt"
    texts.write_text("".join(f"paid for lunch number {i}\n" for i in range(40)))
    masked = ["adapt", "--model", MODEL, "--text", texts, "--max-steps", 1, "--output", directory / "adapted"]
    assert "computing on CPU" in succeed(*masked, env=HERE).err


def test_continued_where_it_was_begun(directory):
    """Even if a GPU has been added, or is hidden now."""
    prepared()
    steps = ["--save-every", 2, "--keep-checkpoints", 9]
    for name, first, then in (("cpu", HIDDEN, HERE), ("cuda", HERE, {**HIDDEN, "HOST_CUDA_DEVICES": "1"})):
        trained(directory / name, *steps, env=first)
        expected = sum_of(directory / name)
        for line in (["train", "--resume", "--output", directory / name],
                     [*LABELS, "--precision", "fp32", *steps, "--resume", "--output", directory / name]):
            (directory / name / "metrics.json").unlink()
            shutil.rmtree(directory / name / "model")
            for step in (4, 5):
                (directory / name / "checkpoints" / f"step-{step:08}.h5").unlink(missing_ok=True)
            log = succeed(*line, env=then).err
            assert f"computing on {name.upper()}" in log or "--quiet" in line, log
            assert "so far, now with" not in log and sum_of(directory / name) == expected, log


def test_runs_of_a_sweep_take_gpus_in_turn(directory):
    prepared()
    grid = directory / "grid.toml"
    grid.write_text(f'''model = "{MODEL}"
train = "{TRAIN}"
label-column = "category"
max-steps = 30
no-ngram-baseline = true
[sweep]
seed = [1, 2]
''')
    process = subprocess.Popen([harness.BINARY, "sweep", grid, "--output", directory / "sweep", "--jobs", "2"],
                               env={**os.environ, **HERE, "HOST_CUDA_DEVICES": "2"}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    # A GPU started before a fork is unusable after it, so a forking process must not load the module.
    maps = Path(f"/proc/{process.pid}/maps")
    while process.poll() is None:
        assert "finetune_cuda" not in maps.read_text()
        time.sleep(0.01)
    assert process.returncode == 0, process.stderr.read()
    found = {facts_of(run.parent)["code_path"] for run in (directory / "sweep").rglob("run.json")}
    assert found == {"CUDA, kernels on the host, bf16", "CUDA, kernels on the host again, bf16"}, found


main(globals())
