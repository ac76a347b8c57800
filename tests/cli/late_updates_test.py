"""Rows of the word embedding are updated lazily, with the same result as immediate updates.

Saving a checkpoint after every step forces all updates at once; the other runs defer them.
"""
import json
import struct

from harness import GOLDEN, facts_of, main, metrics_of, need, steps_of, succeed

MODEL = GOLDEN / "tiny-bert-classification"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
DATA = "golden/trajectory-classification-train.csv"


def train(output, *more):
    # Few samples and strong decay: most rows are deferred, and forgetting them would be visible.
    succeed("train", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--max-train-samples", 100,
            "--batch-size", 8, "--lr", "3e-3", "--output", output, *more)
    return facts_of(output)["weights_sha256"]


def test_waiting_changes_no_bit(directory):
    need(DATA)
    settings = {"plain": ["--weight-decay", 1], "no-decay": ["--weight-decay", 0],
                "shards": ["--weight-decay", 1, "--virtual-shards", 4],
                "micro": ["--weight-decay", 1, "--micro-batch-tokens", 60, "--layer-lr-decay", 0.8],
                "threads": ["--weight-decay", 1, "--threads", 2], "frozen": ["--freeze", "embeddings"]}
    digests = {}
    for name, options in settings.items():
        waiting = train(directory / name, "--max-steps", 15, *options)
        assert waiting == train(directory / f"{name}-each", "--max-steps", 15, "--save-every", 1, *options), name
        digests[name] = waiting
    assert digests["plain"] == digests["threads"]
    assert digests["plain"] != digests["no-decay"]


def rows_of(path):
    """The word embedding's rows as tuples of floats."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:start])["bert.embeddings.word_embeddings.weight"]
    begin, end = entry["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[start + begin:start + end])
    width = entry["shape"][1]
    return [values[i:i + width] for i in range(0, len(values), width)]


def test_rows_without_gradient_decay_in_every_step(directory):
    need(DATA)
    train(directory / "run", "--max-steps", 9, "--weight-decay", 2, "--schedule", "constant", "--warmup-steps", 0)

    def rounded(value):
        return struct.unpack("f", struct.pack("f", value))[0]

    decay = rounded(1 - rounded(3e-3) * 2)
    before, after = rows_of(MODEL / "model.safetensors"), rows_of(directory / "run/model/model.safetensors")
    decayed = 0
    for old, new in zip(before, after):
        expected = old
        for _ in range(9):
            expected = tuple(rounded(value * decay) for value in expected)
        decayed += expected == new
    assert 0.3 * len(before) < decayed < len(before), (decayed, len(before))
    assert not any(old == new and any(old) for old, new in zip(before, after))


def test_longer_than_any_row_may_wait(directory):
    need(DATA)
    options = ["--max-steps", 300, "--max-train-samples", 24, "--weight-decay", 0.1, "--schedule", "cosine"]
    waiting = train(directory / "waiting", *options)
    assert waiting == train(directory / "often", "--save-every", 20, *options)
    a, b = steps_of(directory / "waiting"), steps_of(directory / "often")
    assert [(s["loss"], s["grad_norm"]) for s in a] == [(s["loss"], s["grad_norm"]) for s in b]


def evaluations_of(directory):
    log = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return {entry["step"]: entry["eval_loss"] for entry in log if "eval_loss" in entry}


def test_evaluation_in_mid_epoch_sees_all_updates(directory):
    need(DATA)
    options = ["--weight-decay", 3, "--schedule", "constant", "--warmup-steps", 0, "--eval", EVAL]
    longer = train(directory / "longer", "--max-steps", 20, "--eval-every", 7, *options)
    train(directory / "short", "--max-steps", 7, *options)
    loss = evaluations_of(directory / "longer")[7]
    assert loss == metrics_of(directory / "short")["eval_loss"]
    # The same from a file, in which every row has its decay applied.
    printed = json.loads(succeed("evaluate", "--model", directory / "short/model", "--data", EVAL, "--label-column",
                                 "category", "--json").out)
    assert abs(printed["eval_loss"] - loss) < 1e-9, (printed, loss)
    assert longer == train(directory / "unseen", "--max-steps", 20, "--eval-every", 1, *options)


main(globals())
