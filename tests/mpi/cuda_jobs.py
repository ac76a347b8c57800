"""Processes that compute on devices, for cuda_test.py and cuda_peers_test.py."""
import os
import sys
import tempfile
from pathlib import Path

import ranks
from ranks import Job, Skip, facts_of, kill_one, need_mpirun
from harness import GOLDEN, need
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli" / "gpu"))
from cuda_on_host import HOST_MODULE, program_with_module  # noqa: E402

MODEL, QA_MODEL = GOLDEN / "tiny-bert-classification", GOLDEN / "tiny-bert-qa"
TRAIN, EVAL = GOLDEN / "trajectory-classification-train.csv", GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
NAMES = ("golden/tiny-bert-classification", "golden/tiny-bert-qa", "golden/trajectory-classification-train.csv",
         "golden/trajectory-qa-train.json")
CUDA = ["--device", "cuda", "--precision", "fp32", "--dropout", "0.1", "--no-progress", "--virtual-shards", 4]
LABELS = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--lr", "3e-3",
          "--batch-size", 8, "--max-eval-samples", 10, "--max-steps", 5, "--no-ngram-baseline", *CUDA]
ANSWERS = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--max-length", 96,
           "--doc-stride", 8, "--max-train-samples", 12, "--max-eval-samples", 1, "--batch-size", 4, "--lr", "1e-3",
           "--max-steps", 3, "--eval-every", 2, "--quiet", *CUDA]
MESSAGES = tempfile.TemporaryDirectory(prefix="finetune-test-")  # between devices
EACH = {"HOST_CUDA_DEVICES": "each"}  # every process sees one device, its own
FEW = ["--quiet", "--max-steps", 3]


def prepared():
    os.environ["HOST_NCCL_FOLDER"] = MESSAGES.name
    need_mpirun()
    need(*NAMES)
    ranks.BINARY = program_with_module()
    if not HOST_MODULE:  # one GPU, however many the machine has
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def need_several_devices():
    if not HOST_MODULE:
        raise Skip("only the kernels' host runtime has several devices and an NCCL that fails when asked to")


def same_on(directory, line, *cases, env=None):
    """As ranks.same_on; `env` gives each process a device, and else they share one."""
    def check(out):
        route = "from GPU to GPU" if env else "through memory of the host"
        assert route in (out / "log.txt").read_text(), (out / "log.txt").read_text()
        code_path = facts_of(out)["code_path"]
        assert code_path.startswith("CUDA, kernels on the host" if HOST_MODULE else "CUDA"), code_path
    return ranks.same_on(directory, line, *cases, env=env, check=check)


def a_killed_process_ends_the_job(out, env=None):
    line = [*LABELS, "--quiet", "--max-steps", 400, "--eval-every", 1000, "--output", out]
    kill_one(Job("-n", 3, ranks.BINARY, *line, env=env), out, 1, 3)
