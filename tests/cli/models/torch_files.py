"""Writes torch.save's two containers, without torch."""
import struct
import zipfile

from fixtures import Tensor  # of float32, little-endian


def text(word):
    return b"X" + struct.pack("<I", len(word.encode())) + word.encode()


def number(value):
    return b"J" + struct.pack("<i", value)


def pickled(value, storages):
    """Pickles a dictionary, list, tensor, number or text; `storages` collects the bytes of tensors."""
    if isinstance(value, dict):
        items = b"".join((number(key) if isinstance(key, int) else text(key)) + pickled(inner, storages)
                         for key, inner in value.items())
        return b"}(" + items + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(pickled(inner, storages) for inner in value) + b"e"
    if isinstance(value, Tensor):
        storages.append(value.data)
        strides = [1] * len(value.shape)
        for i in range(len(value.shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * value.shape[i + 1]
        storage = (b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(str(len(storages) - 1)) + text("cpu") +
                   number(len(value.data) // 4) + b"tQ")
        sizes = [b"(" + b"".join(map(number, numbers)) + b"t" for numbers in (value.shape, strides)]
        return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + sizes[0] + sizes[1] +
                b"\x89ccollections\nOrderedDict\n)RtR")
    if value is None:
        return b"N"
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    return number(value) if isinstance(value, int) else text(value)


def write_torch(path, value, legacy=False):
    storages = []
    body = b"\x80\x02" + pickled(value, storages) + b"."
    if not legacy:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("m/data.pkl", body)
            for i, data in enumerate(storages):
                archive.writestr(f"m/data/{i}", data)
        return path
    magic = bytes.fromhex("6cfc9c46f9206aa85019")
    keys = b"\x80\x02](" + b"".join(text(str(i)) for i in range(len(storages))) + b"e."
    path.write_bytes(b"\x80\x02\x8a" + bytes([len(magic)]) + magic + b"." + b"\x80\x02M\xe9\x03." + b"\x80\x02}" +
                     text("little_endian") + b"\x88s." + body + keys +
                     b"".join(struct.pack("<q", len(data) // 4) + data for data in storages))
    return path
