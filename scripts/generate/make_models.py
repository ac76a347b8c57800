#!/usr/bin/env python3
"""Makes golden/formats and golden/broken: models for tests, too large for the repository.

    scripts/generate/make_models.py OUT_DIR [STAMP]

OUT_DIR/formats is unpacked from tests/golden/formats.tar.xz. OUT_DIR/broken has whole models with exactly one fault
each, made from tests/golden/tiny-bert-classification and from formats: `train` and `predict` must refuse each of them
in one line that names the fault. Meson runs this when it configures a build with tests; STAMP is written last.
"""
import io
import json
import pickletools
import shutil
import struct
import sys
import tarfile
import zipfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
TINY = GOLDEN / "tiny-bert-classification"
FIRST, LAST = "bert.embeddings.LayerNorm.bias", "classifier.weight"
LOST = "bert.encoder.layer.1.output.dense.weight"  # a tensor in the middle of the file


def split(safetensors):
    """Returns the header of a safetensors file as a dictionary, and its data."""
    length = struct.unpack("<Q", safetensors[:8])[0]
    return json.loads(safetensors[8:8 + length]), safetensors[8 + length:]


def joined(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def changed(header, tensor, **entries):
    """Returns the header with changed entries for one tensor."""
    return {**header, tensor: {**header[tensor], **entries}}


def without(header, data, lost):
    """Returns the file without one tensor; the data behind it moves forward."""
    begin, end = header[lost]["data_offsets"]
    kept = {}
    for name, entry in header.items():
        if name != lost:
            offsets = entry.get("data_offsets")
            moved = end - begin if offsets and offsets[0] >= end else 0
            kept[name] = {**entry, "data_offsets": [at - moved for at in offsets]} if offsets else entry
    return joined(kept, data[:begin] + data[end:])


def broken_safetensors():
    """Returns a model.safetensors for each fault that this file can have."""
    header, data = split((TINY / "model.safetensors").read_bytes())
    begin, end = header[LAST]["data_offsets"]
    half = len(data) // 2
    nan_at = header[LOST]["data_offsets"][0]
    twice = json.dumps(header)[:-1] + ", " + json.dumps({FIRST: header[FIRST]})[1:]
    second = "bert.embeddings.LayerNorm.weight"
    return {
        "dtype-unknown": joined(changed(header, FIRST, dtype="F33"), data),
        "duplicate-key": joined(twice.encode(), data),
        "header-empty": struct.pack("<Q", 0),
        "header-longer-than-file": struct.pack("<Q", 1 << 62) + b"{}" + data,
        "header-not-json": joined(b"{nope", data),
        "missing-encoder-tensor": without(header, data, LOST),
        "nan-weights": joined(header, data[:nan_at] + struct.pack("<f", float("nan")) + data[nan_at + 4:]),
        "offsets-gap": joined(changed(header, LAST, data_offsets=[begin + 4, end + 4]), data + bytes(4)),
        "offsets-negative": joined(changed(header, FIRST, data_offsets=[-4, 256]), data),
        "offsets-overlap": joined(changed(header, second, data_offsets=[252, 508]), data),
        "offsets-past-end": joined(changed(header, LAST, data_offsets=[begin + 4096, end + 4096]), data),
        "offsets-reversed": joined(changed(header, FIRST, data_offsets=[256, 0]), data),
        "shape-and-size-differ": joined(changed(header, FIRST, shape=[63]), data),
        "shape-not-of-config": joined(changed(header, FIRST, shape=[32, 2]), data),
        "shape-overflow": joined(changed(header, FIRST, shape=[4, (1 << 60) + 16]), data),
        "trailing-bytes": joined(header, data + bytes(64)),
        "truncated": joined(header, data[:half]),
    }


# With this appended, a pickled dictionary calls os.system when an unsafe unpickler reads it.
EVIL = b"X\x04\x00\x00\x00evilcposix\nsystem\nX\x0b\x00\x00\x00touch pwned\x85Ru."


def with_evil(pickled):
    """Adds EVIL to the pickle of a dictionary, which must end with SETITEMS and STOP."""
    assert pickled.endswith(b"u."), pickled[-8:]
    return pickled[:-2] + EVIL


def evil_legacy(whole):
    """Adds EVIL to a file in torch's old format: several pickles, the fourth the state dictionary, then the data."""
    stream = io.BytesIO(whole)
    ends = []
    for _ in range(4):
        for _ in pickletools.genops(stream):
            pass
        ends.append(stream.tell())
    return whole[:ends[2]] + with_evil(whole[ends[2]:ends[3]]) + whole[ends[3]:]


def evil_zip(whole):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.infolist():
            content = source.read(entry)
            target.writestr(zipfile.ZipInfo(entry.filename),
                            with_evil(content) if entry.filename.endswith("data.pkl") else content)
    return out.getvalue()


def broken_files(formats):
    """Returns for each fault the files that differ from the intact model; None removes a file."""
    config = json.loads((TINY / "config.json").read_text())
    faults = {name: {"model.safetensors": content} for name, content in broken_safetensors().items()}
    faults["config-not-json"] = {"config.json": b"{"}
    for name, change in {"config-heads-do-not-divide": {"num_attention_heads": 3},
                         "config-relative-positions": {"position_embedding_type": "relative_key"}}.items():
        faults[name] = {"config.json": json.dumps({**config, **change}).encode()}
    faults["vocabulary-missing"] = {"vocab.txt": None}
    faults["vocabulary-larger-than-embedding"] = {"vocab.txt": (TINY / "vocab.txt").read_bytes() + b"extraword\n"}

    h5 = (formats / "tensorflow-h5-by-hand/tf_model.h5").read_bytes()
    legacy = (formats / "pytorch-legacy/pytorch_model.bin").read_bytes()
    zipped = (formats / "pytorch-zip/pytorch_model.bin").read_bytes()
    sharded = formats / "safetensors-sharded"
    for name, files in {
            "h5-not-hdf5": {"tf_model.h5": b"not a file of that kind" * 100},
            "h5-truncated": {"tf_model.h5": h5[:len(h5) // 3]},
            "pickle-executes-legacy": {"pytorch_model.bin": evil_legacy(legacy)},
            "pickle-executes-zip": {"pytorch_model.bin": evil_zip(zipped)},
            "pickle-legacy-truncated": {"pytorch_model.bin": legacy[:len(legacy) * 2 // 3]},
            "pickle-zip-truncated": {"pytorch_model.bin": zipped[:len(zipped) * 2 // 3]},
            "missing-shard": {file: (sharded / file).read_bytes() for file in (
                "model-00001-of-00002.safetensors", "model.safetensors.index.json")}}.items():
        faults[name] = {"model.safetensors": None, **files}
    return faults


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    for folder in ("formats", "broken"):
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    with tarfile.open(GOLDEN / "formats.tar.xz") as archive:
        archive.extractall(out)
    for name, files in broken_files(out / "formats").items():
        (out / "broken" / name).mkdir(parents=True)
        whole = {file: (TINY / file).read_bytes() for file in (
            "config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt")}
        for file, content in {**whole, **files}.items():
            if content is not None:
                (out / "broken" / name / file).write_bytes(content)
    if len(sys.argv) == 3:
        Path(sys.argv[2]).write_text("golden/formats and golden/broken are whole\n")


main()
