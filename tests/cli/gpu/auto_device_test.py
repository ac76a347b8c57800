"""--device auto, on the CUDA module whose kernels run on the host: a GPU where one can be used."""
import json
import shutil

from cuda_on_host import HOST_MODULE, program_with_module
import harness
from harness import GOLDEN, facts_of, main, need, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN, EVAL = GOLDEN / "trajectory-classification-train.csv", GOLDEN / "trajectory-classification-eval.csv"
LABELS = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--batch-size", 8,
          "--max-eval-samples", 10, "--no-ngram-baseline", "--max-steps", 5, "--no-progress", "--quiet"]


def test_auto_takes_the_gpu(directory):
    """Where one can be used; a log says why not where one seems to be there. Masked words are the CPU's."""
    if not HOST_MODULE:
        raise harness.Skip("only the kernels' host runtime can be without a device")
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    program_with_module()
    line = [*LABELS, "--precision", "fp32", "--output"]

    def trained(name, *more, **env):
        succeed(*line, directory / name, *more, env=env)
        device = [row for row in (directory / name / "config.toml").read_text().splitlines() if row.startswith("device")]
        return device, (directory / name / "log.txt").read_text()

    config, log = trained("here", CUDA_VISIBLE_DEVICES="0")
    assert config == ['device = "cuda"'] and "computing on CUDA" in log, (config, log)
    trained("named", "--device", "cuda")
    assert facts_of(directory / "here")["weights_sha256"] == facts_of(directory / "named")["weights_sha256"]
    config, log = trained("hidden", CUDA_VISIBLE_DEVICES="")
    assert config == ['device = "cpu"'] and "computing on CPU" in log and "NVIDIA" not in log, (config, log)
    config, log = trained("none", CUDA_VISIBLE_DEVICES="0", HOST_CUDA_DEVICES="0")
    assert config == ['device = "cpu"'] and "computing on CPU" in log, (config, log)
    assert log.count("an NVIDIA GPU seems to be here and is not used: HOST_CUDA_DEVICES is 0") == 1, log
    assert facts_of(directory / "none")["weights_sha256"] == facts_of(directory / "hidden")["weights_sha256"]

    # Continued where it was begun, though a GPU has come.
    trained("kept", "--save-every", 2, "--keep-checkpoints", 9, CUDA_VISIBLE_DEVICES="")
    (directory / "kept" / "metrics.json").unlink()
    shutil.rmtree(directory / "kept" / "model")
    for step in (4, 5):
        (directory / "kept" / "checkpoints" / f"step-{step:08}.h5").unlink()
    resumed = succeed("train", "--resume", "--output", directory / "kept", env={"CUDA_VISIBLE_DEVICES": "0"}).err
    assert "step-00000002.h5" in resumed and "computing on CPU" in resumed, resumed
    assert facts_of(directory / "kept")["weights_sha256"] == facts_of(directory / "hidden")["weights_sha256"]

    predict = ["predict", "--model", directory / "here", "--input", EVAL, "--output"]
    for name, more in (("auto", []), ("cuda", ["--device", "cuda"]), ("cpu", ["--device", "cpu"])):
        succeed(*predict, directory / f"{name}.csv", *more, env={"CUDA_VISIBLE_DEVICES": "0"})
    rows = {name: (directory / f"{name}.csv").read_text() for name in ("auto", "cuda", "cpu")}
    assert rows["auto"] == rows["cuda"] != rows["cpu"]
    plan = json.loads(succeed("plan", *LABELS[1:], "--json", "--no-time", env={"CUDA_VISIBLE_DEVICES": "0"}).out)
    assert plan["device_fits"] == 1
    bench = ["bench", "step", "--shape", "tiny", "--lengths", 10, "--batch-size", 2, "--steps", 1, "--json"]
    for device, more in (("cuda", []), ("cpu", ["--threads", 1, "--clock", "cpu"])):
        assert json.loads(succeed(*bench, *more, env={"CUDA_VISIBLE_DEVICES": "0"}).out)["device"] == device
    texts = directory / "texts.txt"
    texts.write_text("".join(f"paid for lunch number {i}\n" for i in range(40)))
    masked = ["adapt", "--model", MODEL, "--text", texts, "--max-steps", 1, "--output", directory / "adapted"]
    assert "computing on CPU" in succeed(*masked, env={"CUDA_VISIBLE_DEVICES": "0"}).err


main(globals())
