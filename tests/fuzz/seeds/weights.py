"""Weights: safetensors, PyTorch's pickles and archives, TensorFlow 1 checkpoints."""
import collections
import io
import json
import pickle
import struct
import sys
import tempfile
import types
import zipfile
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "cli"
sys.path[:0] = [str(CLI), str(CLI / "hostile")]
from hostile_files import shared_checkpoint, shared_storage_pickle  # noqa: E402

SHAPES = {"bert.embeddings.word_embeddings.weight": (3, 2), "bert.pooler.dense.bias": (2,)}


# ---- safetensors ----

def safetensors(tensors, metadata=None):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def add_safetensors(corpora):
    numbers = struct.pack("<6f", 1, -2, 0.5, 1e30, float("nan"), 0)
    whole = {"bert.pooler.dense.weight": ("F32", [3, 2], numbers), "module.encoder.LayerNorm.gamma": ("F16", [2], b"\0<\0<"),
             "cls.predictions.bias": ("BF16", [1, 1], b"\x80?"), "empty": ("F64", [0, 5], b""), "scalar": ("I64", [], bytes(8)),
             "bytes": ("U8", [4], b"abcd"), "flag": ("BOOL", [1], b"\1"), "count": ("I32", [1], b"\7\0\0\0")}
    corpora.add("safetensors", "whole", safetensors(whole, {"format": "pt"}))
    corpora.add("safetensors", "one", safetensors({"a": ("F32", [1], bytes(4))}))
    corpora.add("safetensors", "none", safetensors({}))
    corpora.add("safetensors", "small-types", safetensors({"f4": ("F4", [4], b"ab"), "f8": ("F8_E4M3", [2], b"ab")}))
    a = safetensors({"a.weight": ("F32", [2], bytes(8)), "b": ("F32", [1], bytes(4))})
    b = safetensors({"c": ("F32", [1, 1], bytes(4))})
    index = {"metadata": {"total_size": 16}, "weight_map": {"a.weight": "a.safetensors", "b": "a.safetensors",
                                                            "c": "b.bin"}}
    corpora.add("shard_index", "two", json.dumps(index), a, b)
    corpora.add("shard_index", "missing", json.dumps({"weight_map": {"x": "c.safetensors"}}), a, b)
    corpora.add("shard_index", "outside", json.dumps({"weight_map": {"x": "../a.safetensors"}}), a, b)
    corpora.add("shard_index", "same", json.dumps({"weight_map": {"a.weight": "a.safetensors", "b": "./a.safetensors"}}), a, b)
    corpora.words(["safetensors", "shard_index"],
                  ['"__metadata__"', '"dtype"', '"shape"', '"data_offsets"', '"F32"', '"F16"', '"BF16"', '"I64"', '"U8"',
                   '"F4"', "[0,4]", "[]", "9223372036854775807", "18446744073709551615", '"weight_map"', '"a.safetensors"',
                   '"b.bin"', "bert.", "module.", "LayerNorm.gamma", "{}", "1e5", "-1"])


# ---- PyTorch ----

class Storage:
    """What torch's pickler gives a persistent id."""
    def __init__(self, kind, key, values):
        self.kind, self.key, self.values = kind, key, values


class Tensor:
    def __init__(self, storage, size, stride, offset=0):
        self.arguments = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_tensor_v2, self.arguments


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return sys.modules["torch._utils"]._rebuild_parameter, (self.tensor, True, collections.OrderedDict())


def stand_in_for_torch():
    """Modules of the names that pickles of torch have."""
    for name, members in (("torch", ["FloatStorage", "HalfStorage", "LongStorage", "BFloat16Storage", "Size"]),
                          ("torch._utils", ["_rebuild_tensor_v2", "_rebuild_parameter", "_rebuild_tensor"])):
        module = types.ModuleType(name)
        for member in members:
            made = type(member, (), {}) if member[0].isupper() else (lambda *_: None)
            made.__module__, made.__name__, made.__qualname__ = name, member, member
            setattr(module, member, made)
        sys.modules[name] = module


class Pickler(pickle._Pickler):
    def persistent_id(self, obj):
        if isinstance(obj, Storage):
            return "storage", getattr(sys.modules["torch"], obj.kind), obj.key, "cpu", len(obj.values)
        return None


def pickled(value, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(value)
    return out.getvalue()


def state_dict():
    floats, halves = Storage("FloatStorage", "0", [0.0] * 12), Storage("HalfStorage", "1", [0.0] * 4)
    state = collections.OrderedDict([("bert.pooler.dense.weight", Tensor(floats, (3, 2), (2, 1))),
                                     ("bert.encoder.LayerNorm.gamma", Tensor(floats, (2, 3), (1, 2), 6)),
                                     ("bert.pooler.dense.bias", Parameter(Tensor(halves, (4,), (1,))))])
    state._metadata = {"": {"version": 1}, "bert": {"version": 2.5, "none": None, "flags": [True, False], "set": {1, 2}}}
    return state, {"0": bytes(48), "1": bytes(8)}


def archive(pickle_bytes, storages, root="archive"):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as zipped:
        zipped.writestr(f"{root}/data.pkl", pickle_bytes)
        for key, content in storages.items():
            zipped.writestr(f"{root}/data/{key}", content)
        zipped.writestr(f"{root}/version", b"3\n")
    return out.getvalue()


def legacy(pickle_bytes, storages, sizes):
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    out = pickled(0x1950a86a20f9469cfc6c) + pickled(1001) + pickled(system) + pickle_bytes + pickled(sorted(storages))
    for key in sorted(storages):
        out += struct.pack("<q", len(storages[key]) // sizes[key]) + storages[key]
    return out


def add_torch(corpora):
    stand_in_for_torch()
    state, storages = state_dict()
    kinds = {"state": state, "nested": {"state_dict": state, "epoch": 3, "lr": 1e-5, "big": 1 << 70, "name": "Ü"}}
    for name, value in kinds.items():
        for protocol in (0, 2, 3, 4):
            content = pickled(value, protocol)
            corpora.add("pickle", f"{name}-{protocol}", content)
        content = pickled(value)
        corpora.add("torch_zip", name, archive(content, storages))
        corpora.add("torch_legacy", name, legacy(content, storages, {"0": 4, "1": 2}))
    plain = pickled(collections.OrderedDict(state))  # without metadata, whose set is refused
    files = {"zip": archive(plain, storages), "legacy": legacy(plain, storages, {"0": 4, "1": 2})}
    for kind, content in files.items():
        corpora.add(f"torch_{kind}", "plain", content)
        index = {"weight_map": {name: "b.bin" for name in state}}
        corpora.add("shard_index", f"torch-{kind}", json.dumps(index), b"", content)
    shared = shared_storage_pickle(SHAPES, 8)
    corpora.add("pickle", "shared", shared)
    corpora.add("torch_zip", "shared", archive(shared, {"0": bytes(32)}, "m"))
    corpora.add("torch_legacy", "shared", legacy(shared, {"0": bytes(32)}, {"0": 4}))
    corpora.add("pickle", "calls", b"cos\nsystem\n(S'true'\ntR.")
    corpora.words(["pickle", "torch_zip", "torch_legacy"],
                  [b"ctorch\nFloatStorage\n", b"ctorch\nHalfStorage\n", b"ctorch._utils\n_rebuild_tensor_v2\n",
                   b"ctorch._utils\n_rebuild_parameter\n", b"ccollections\nOrderedDict\n", b"ctorch\nSize\n",
                   b"\x80\x02", b"X\1\0\0\0a", b"J\1\0\0\0", b"M\1\0", b"K\1", b"\x8a\1\1", b"(", b"t", b"R", b"Q", b"u",
                   b"s", b"e", b"}", b"]", b")", b"\x85", b"\x86", b"\x87", b"q\0", b"h\0", b"r\0\0\0\0", b"j\0\0\0\0", b"b.",
                   b"\x88", b"\x89", b"N", b"G\0\0\0\0\0\0\0\0", b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7",
                   b"\xff\xff\xff\xff", b"archive/data.pkl", b"archive/data/0"])


# ---- TensorFlow 1 ----

def add_tensorflow(corpora):
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder) / "bert_model.ckpt"
        for name, shapes in (("two", SHAPES), ("head", {"classifier.weight": (2, 2), "classifier.bias": (2,)})):
            shared_checkpoint(prefix, shapes, 8)
            index, data = prefix.with_name("bert_model.ckpt.index"), prefix.with_name("bert_model.ckpt.data-00000-of-00001")
            corpora.add("tensorflow_checkpoint", name, index.read_bytes(), data.read_bytes())
    corpora.words(["tensorflow_checkpoint"], ["bert/", "/kernel", "/LayerNorm/gamma", "/adam_m", "output_weights",
                                              ".ATTRIBUTES/", "global_step", b"\x08\x01\x12", b"\x12\x04\x12\x02\x08", b"\x28"])


def add(corpora, _):
    add_safetensors(corpora)
    add_torch(corpora)
    add_tensorflow(corpora)
    corpora.words(["keras_hdf5", "checkpoint"],
                  [b"\x89HDF\r\n\x1a\n", b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"FRHP", b"FHDB", b"FHIB", b"BTHD",
                   b"BTLF", b"BTIN", b"FAHD", b"FADB", b"layer_names", b"weight_names", b"\xff" * 8, b"\xff" * 4, bytes(8)])
