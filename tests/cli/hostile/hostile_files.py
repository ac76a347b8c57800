"""Makes hostile files: weights that claim more than they hold, forged checkpoints."""
import hashlib
import struct
import zipfile

from blank_model import encoder_shapes


def bert_shapes(config):
    hidden, labels = config["hidden_size"], len(config.get("id2label", {0: "", 1: ""}))
    return {**encoder_shapes(config), "bert.pooler.dense.weight": (hidden, hidden), "bert.pooler.dense.bias": (hidden,),
            "classifier.weight": (labels, hidden), "classifier.bias": (labels,)}


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
