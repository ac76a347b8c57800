"""Reads a checkpoint file without the HDF5 library, to compare the files of equal runs."""
import hashlib
import os
import re
import struct

SEAL = 512  # bytes before the HDF5 file
BLOCK = 1 << 20
CLOCKS = (b"seconds\0", b"runtime\0")  # attributes of /totals that differ between any two runs
VALUE = 24  # bytes from an attribute's name to its value: the type, a float of 8 bytes, and the scalar's space


def checkpoint_content(path):
    """Its bytes, with the seal looked at and left out, and without what differs between equal runs: the time that they
    took, and the last folder of the path of their own (of equal length) in the options."""
    data = bytearray(path.read_bytes())
    digests = "".join(hashlib.sha256(data[at:at + BLOCK]).hexdigest() for at in range(SEAL, len(data), BLOCK))
    seal = f"finetune checkpoint, format 1\nbytes {len(data)}\nsha256 of 1 MiB blocks " \
        f"{hashlib.sha256(digests.encode()).hexdigest()}\n"
    assert data[:SEAL] == seal.encode().ljust(SEAL, b"\n"), f"{path}: the seal is not that of its bytes"
    data[:SEAL] = bytes(SEAL)
    for name in CLOCKS:
        blank_attribute(data, name)
    own, = set(re.findall(rb'output = "([^"]*)/run"', data))
    data = data.replace(own, os.path.dirname(own).ljust(len(own), b"?"))
    return bytes(data)


def blank_attribute(data, name):
    """The value, and the checksum of the object header that contains it."""
    assert data.count(name) == 1, f"{data.count(name)} attributes {name}"
    at = data.index(name)
    header = data.rindex(b"OHDR", 0, at)
    assert b"OCHK" not in data[header:at], "the attribute is in a continuation of its header"
    flags = data[header + 5]
    size_at = header + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    end = size_at + width + int.from_bytes(data[size_at:size_at + width], "little")
    value = at + len(name) + VALUE
    assert value + 8 <= end, f"the value of {name} is not in its header"
    data[value:value + 8] = struct.pack("<d", 0)
    data[end:end + 4] = bytes(4)
