#!/usr/bin/env python3
"""Copies the test data that travels with the project into tests/golden, from the folder `shared`.

    scripts/generate/copy_golden.py [SHARED]            SHARED is ../shared by default; rewrites tests/golden/SHA256SUMS
    scripts/generate/copy_golden.py --sums              only rewrites tests/golden/SHA256SUMS

tests/golden/README.md says where each file comes from and which licence it has. The thirteen model formats hold the
same weights, so one compressed archive of all formats has a seventh of their size; scripts/generate/make_models.py
unpacks it when a build is configured.
"""
import hashlib
import io
import lzma
import shutil
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
# Files and folders of SHARED/golden, copied to the same place.
COPIED = ["tiny-bert-classification", "tiny-bert-qa", "forward-classification.safetensors", "forward-qa.safetensors",
          "trajectory-classification.json", "trajectory-classification-train.csv", "trajectory-classification-eval.csv",
          "trajectory-qa.json", "trajectory-qa-train.json", "qa-features.jsonl", "qa-postprocess",
          "tokenization/bert-base-uncased.jsonl", "tokenization/bert-base-cased.jsonl",
          "tokenization/bert-base-chinese.jsonl", "tokenization/kcbert-base.jsonl", "tokenization-sentencepiece",
          "family/trajectory-classification-train.csv",
          *(f"family/{model}/{name}" for model in (
              "albert", "distilbert", "electra", "modernbert", "mpnet", "roberta") for name in (
              "classification", "qa", "mlm", "forward-classification.safetensors", "forward-qa.safetensors",
              "forward-mlm.safetensors", "trajectory-classification.json", "trajectory-qa.json",
              "trajectory-qa-train.json")),
          *(f"family/modernbert-mean/{name}" for name in (
              "classification", "forward-classification.safetensors", "trajectory-classification.json")),
          *(f"family/xlm-roberta/{name}" for name in (
              "classification", "qa", "forward-classification.safetensors", "forward-qa.safetensors",
              "trajectory-classification.json", "trajectory-qa.json", "trajectory-qa-train.json")),
          *(f"family/albert-groups/{name}" for name in (
              "classification", "forward-classification.safetensors", "trajectory-classification.json")),
          *(f"family/deberta-v3/{name}" for name in (
              "classification", "forward-classification.safetensors", "trajectory-classification.json")),
          "family/tokenization/albert-base-v2-fast.jsonl", "family/tokenization/deberta-v3-small.jsonl",
          *(f"family/{model}/qa-features.jsonl" for model in ("albert", "mpnet", "roberta", "xlm-roberta")),
          "family/tables/mpnet-buckets.json"]
# Files and folders of SHARED itself, copied into tests/golden.
BESIDE = ["tokenizers/bert-base-uncased", "tokenizers/bert-base-cased", "tokenizers/bert-base-chinese",
          "tokenizers/kcbert-base", "tokenizers/albert-base-v2", "tokenizers/bge-small-en",
          "tokenizers/gguf-vocab/ggml-vocab-bert-bge.gguf.inp", "tokenizers/gguf-vocab/ggml-vocab-bert-bge.gguf.out",
          "tokenizers/sentencepiece-tests/test_model.model",
          "weights/camphr_tiny_ner_bert", "weights/keras_bert_tf_ckpt", "weights/tf_ckpt_index_only",
          "hostile/external-passwd-u8", "hostile/h5-dense-links", "hostile/long-shard-name"]
# Not copied: a TensorFlow graph of 868 KB that no reader opens, and a tokenizer.json equal to the spm.model beside it.
LEFT_OUT = ("bert_model.ckpt.meta", "deberta-v3/classification/tokenizer.json")


def copy(source, target):
    if source.is_dir():
        for path in sorted(source.iterdir()):
            copy(path, target / path.name)
    elif not str(source).endswith(LEFT_OUT):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def archive(folder, target):
    """Writes a reproducible tar of the folder: its bytes depend only on the files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder)}")
                entry.size = path.stat().st_size
                with open(path, "rb") as content:
                    tar.addfile(entry, content)
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    target.write_bytes(lzma.compress(plain.getvalue(), filters=filters))


def write_sums():
    lines = []
    for path in sorted(GOLDEN.rglob("*")):
        if path.is_file() and path.name not in ("README.md", "SHA256SUMS"):
            lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(GOLDEN)}\n")
    (GOLDEN / "SHA256SUMS").write_text("".join(lines))


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    if sys.argv[1:] != ["--sums"]:
        shared = Path(sys.argv[1]) if len(sys.argv) == 2 else ROOT.parent / "shared"
        for name in COPIED:
            copy(shared / "golden" / name, GOLDEN / name)
        copy(shared / "golden/family/deberta-v3/qa/spm.model", GOLDEN / "family/deberta-v3/classification/spm.model")
        for name in BESIDE:
            copy(shared / name, GOLDEN / name)
        archive(shared / "golden/formats", GOLDEN / "formats.tar.xz")
    write_sums()


main()
