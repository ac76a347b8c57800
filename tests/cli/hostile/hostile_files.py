"""Makes hostile files: weights that claim more than they hold, forged checkpoints."""
import hashlib
import json
import shutil
import struct
import zipfile


def copy_of(source, directory, without=("model.safetensors",), **config):
    """A model directory with changed values in config.json."""
    directory.mkdir()
    for path in source.iterdir():
        if path.name not in (*without, "config.json"):
            shutil.copyfile(path, directory / path.name)
    values = json.loads((source / "config.json").read_text())
    values.update(config)
    (directory / "config.json").write_text(json.dumps(values))
    return directory


def bert_shapes(config):
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
              "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden)}
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{i}" for i in range(config["num_hidden_layers"])):
        for name, rows, cols in (("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                 ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                 ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)):
            shapes[f"{layer}.{name}.weight"] = (rows, cols)
            shapes[f"{layer}.{name}.bias"] = (rows,)
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        shapes[f"{name}.LayerNorm.weight"] = shapes[f"{name}.LayerNorm.bias"] = (hidden,)
    shapes["pooler.dense.weight"], shapes["pooler.dense.bias"] = (hidden, hidden), (hidden,)
    shapes = {"bert." + name: shape for name, shape in shapes.items()}
    labels = len(config.get("id2label", {0: "", 1: ""}))
    shapes["classifier.weight"], shapes["classifier.bias"] = (labels, hidden), (labels,)
    return shapes


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def shared_storage_pickle(shapes, elements):
    """A state dict whose tensors are all views of one storage."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(elements) + b"tQ"
    out = b"\x80\x02}("
    for name, shape in shapes.items():
        strides = (shape[1], 1) if len(shape) == 2 else (1,)
        out += text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0)
        for numbers in (shape, strides):
            out += b"(" + b"".join(map(number, numbers)) + b"t"
        out += b"\x89ccollections\nOrderedDict\n)RtR"
    return out + b"u."


def shared_torch_zip(path, shapes, elements):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("m/data.pkl", shared_storage_pickle(shapes, elements))
        archive.writestr("m/data/0", bytes(4 * elements))


def shared_torch_legacy(path, shapes, elements):
    magic = bytes.fromhex("6cfc9c46f9206aa85019")
    path.write_bytes(b"\x80\x02\x8a" + bytes([len(magic)]) + magic + b"." + b"\x80\x02M\xe9\x03." +
                     b"\x80\x02}" + text("little_endian") + b"\x88s." + shared_storage_pickle(shapes, elements) +
                     b"\x80\x02](" + text("0") + b"e." + struct.pack("<q", elements) + bytes(4 * elements))


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def checkpoint_name(name):
    if name.startswith("classifier."):
        return {"classifier.weight": "output_weights", "classifier.bias": "output_bias"}[name]
    name = name.replace("encoder.layer.", "encoder.layer_").replace("_embeddings.weight", "_embeddings")
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    return name.replace("weight", "kernel").replace(".", "/")


def shared_checkpoint(prefix, shapes, elements):
    """A TensorFlow 1 checkpoint whose variables all begin at the first byte of the data."""
    entries = b"\0\0\x02\x08\x01"  # key "": the header, one shard
    rows = {}
    for name, shape in shapes.items():
        stored = checkpoint_name(name)
        shape = shape[::-1] if stored.endswith("kernel") else shape
        dims = b"".join(b"\x12" + varint(len(d)) + d for d in (b"\x08" + varint(n) for n in shape))
        size = 4
        for n in shape:
            size *= n
        rows[stored.encode()] = b"\x08\x01\x12" + varint(len(dims)) + dims + b"\x28" + varint(size)
    for key, value in sorted(rows.items()):
        entries += b"\0" + varint(len(key)) + varint(len(value)) + key + value

    def block(content):
        content += b"\0\0\0\0\1\0\0\0\0"
        return content + struct.pack("<I", masked_crc32c(content))

    data = block(entries)
    handle = b"\0" + varint(len(data) - 5)
    index = block(b"\0\x01" + bytes([len(handle)]) + b"z" + handle)
    footer = b"\0\0" + varint(len(data)) + varint(len(index) - 5)
    prefix.with_name(prefix.name + ".index").write_bytes(
        data + index + footer.ljust(40, b"\0") + struct.pack("<Q", 0xdb4775248b80fb57))
    prefix.with_name(prefix.name + ".data-00000-of-00001").write_bytes(bytes(4 * elements))


def seal(path):
    """Computes a checkpoint's seal again, as anyone can."""
    content = path.read_bytes()
    sums = "".join(hashlib.sha256(content[at:at + (1 << 20)]).hexdigest()
                   for at in range(512, len(content), 1 << 20))
    title = (f"finetune checkpoint, format 1\nbytes {len(content)}\nsha256 of 1 MiB blocks "
             f"{hashlib.sha256(sums.encode()).hexdigest()}\n")
    path.write_bytes(title.encode().ljust(512, b"\n") + content[512:])


def replace_in_checkpoint(path, old, new):
    """Replaces bytes; a shorter replacement is padded with blanks."""
    content = path.read_bytes()
    assert content.count(old) == 1 and len(old) >= len(new), (content.count(old), old, new)
    path.write_bytes(content.replace(old, new.ljust(len(old))))
    seal(path)
