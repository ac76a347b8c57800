"""Malicious HDF5 models and checkpoints: links to other files, and attacks on the reader."""
import hashlib

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import GOLDEN, fail, main, need, run, shared_path, steps_of, succeed

SEAL = 512


def seal(path, body):
    """The seal is only a checksum: anyone who can write a file can seal it."""
    root = hashlib.sha256()
    for at in range(0, len(body), 1 << 20):
        root.update(hashlib.sha256(body[at:at + (1 << 20)]).hexdigest().encode())
    text = f"finetune checkpoint, format 1\nbytes {len(body) + SEAL}\nsha256 of 1 MiB blocks {root.hexdigest()}\n"
    path.write_bytes(text.encode().ljust(SEAL, b"\n") + body)


def test_model_whose_values_lie_in_another_file(directory):
    need("hostile/external-passwd-u8")
    model = shared_path("hostile/external-passwd-u8")
    for line in (("convert", "--model", model, "--output", directory / "out"), ("inspect", model / "tf_model.h5"),
                 ("predict", "--model", model, "--input", GOLDEN / "trajectory-classification-eval.csv", "--output",
                  directory / "predictions.csv")):
        words = ["tf_model.h5", "query/kernel:0", "external storage"]
        message = fail(4, *line, words=words if line[0] != "predict" else [])
        assert len(message) < 400, message
    assert not list(directory.iterdir())


def test_model_with_damaged_dense_links(directory):
    need("hostile/h5-dense-links")
    model = shared_path("hostile/h5-dense-links")
    for perturb in ("", "42"):
        for line in (("inspect", model / "tf_model.h5"), ("convert", "--model", model, "--output", directory / "out")):
            fail(4, *line, words=["tf_model.h5", "checksum"], env={"MALLOC_PERTURB_": perturb})
    assert not list(directory.iterdir())


def test_forged_checkpoint(directory):
    need("golden/tiny-bert-classification")
    out = directory / "run"
    line = ["train", "--model", GOLDEN / "tiny-bert-classification", "--train",
            GOLDEN / "trajectory-classification-train.csv", "--label-column", "category", "--max-steps", 4,
            "--save-every", 2, "--keep-checkpoints", 9, "--output", out, "--no-progress"]
    succeed(*line)
    newest = out / "checkpoints/step-00000004.h5"
    body = newest.read_bytes()[SEAL:]
    label = b"Contractors & repair"
    assert body.count(label) == 1
    for text, words in ((b"\xff\xfe", ["/labels", "is not valid UTF-8", "'\\xff\\xfe"]), (b"\xed\xa0\x80", ["UTF-8"])):
        seal(newest, body.replace(label, text.ljust(len(label), b"x")))
        message = fail(4, "inspect", newest, words=[str(newest), *words])
        fail(4, "inspect", newest, "--json", words=words)
        assert len(message) < len(str(newest)) + 150 and "\x1b" not in message
    (out / "metrics.json").unlink()
    result = run("inspect", out)
    assert result.code == 0 and "is not valid UTF-8" in result.err and "step-00000002.h5" in result.out, result
    result = succeed(*line, "--resume")
    assert "step-00000004.h5" in result.err and "refused" in result.err, result
    assert [step["step"] for step in steps_of(out)] == [1, 2, 3, 4]
    succeed("inspect", newest)


main(globals())
