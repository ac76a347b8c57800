"""Training on the CUDA module, on the host: switches change no bits, or the stated ones."""
from cuda_on_host import program_with_module
from harness import GOLDEN, facts_of, main, need, some_of, steps_of, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN, EVAL = GOLDEN / "trajectory-classification-train.csv", GOLDEN / "trajectory-classification-eval.csv"
LABELS = ["train", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category", "--batch-size", 8,
          "--max-eval-samples", 10, "--virtual-shards", 2, "--no-ngram-baseline", "--lr", "1e-3", "--dropout", "0.1",
          "--max-steps", 5, "--no-progress", "--quiet", "--device", "cuda"]


def prepared():
    need("golden/tiny-bert-classification", "golden/trajectory-classification-train.csv")
    program_with_module()


def test_masks_once(directory):
    """Attention's masks that are kept for the backward pass give the bits of masks that are made twice."""
    prepared()
    for more in some_of(2, ["--micro-batch-tokens", 48], ["--recompute"], ["--tensor-shards", 2]):
        sums = set()
        for value in ("1", "0"):
            succeed(*LABELS, *more, "--precision", "bf16", "--output", directory / "run", "--overwrite",
                    env={"FINETUNE_CUDA_MASKS": value})
            sums.add(facts_of(directory / "run")["weights_sha256"])
        assert len(sums) == 1, (more, sums)


def test_sums_with_rows(directory):
    """Gradients of biases that are summed where their rows are made are those of sums of their own, but for the order;
    with recomputation the bits are the same."""
    prepared()
    steps, bits = {}, {}
    for value, more in (("1", []), ("0", []), ("1", ["--recompute"])):
        succeed(*LABELS, *more, "--precision", "fp32", "--output", directory / "run", "--overwrite",
                env={"FINETUNE_CUDA_SUMS": value})
        steps[value] = [step["grad_norm"] for step in steps_of(directory / "run")]
        bits[value, len(more)] = facts_of(directory / "run")["weights_sha256"]
    assert all(abs(with_rows - own) <= 1e-5 * own for with_rows, own in zip(steps["1"], steps["0"])), steps
    assert bits["1", 0] == bits["1", 1] != bits["0", 0], bits


main(globals())
