"""Training on the CUDA module, on the host: switches change no bits, or the stated ones."""
from cuda_on_host import program_with_module
from harness import GOLDEN, facts_of, main, need, some_of, succeed

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


main(globals())
