"""Reads TensorBoard's event files without TensorFlow: framing, checksums and protobuf by hand."""
import struct


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def masked(data):
    value = crc32c(data)
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    data = path.read_bytes()
    while data:
        length, length_sum = struct.unpack("<QI", data[:12])
        assert length_sum == masked(data[:8]), "the sum of a length"
        content, content_sum = data[12:12 + length], data[12 + length:16 + length]
        assert struct.unpack("<I", content_sum)[0] == masked(content), "the sum of a record"
        yield content
        data = data[16 + length:]


def varint(data):
    value = shift = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, data[place + 1:]
    raise AssertionError("a number without an end")


def fields(data):
    """(number, value) of each field of a message, in order."""
    while data:
        key, data = varint(data)
        wire = key & 7
        if wire == 0:
            value, data = varint(data)
        elif wire == 2:
            size, data = varint(data)
            value, data = data[:size], data[size:]
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[wire]
            value, data = struct.unpack(form, data[:size])[0], data[size:]
        yield key >> 3, value


def events(path):
    """(wall time, step, content): the version, a session's start, or {tag: value}."""
    for record in records(path):
        found = dict(fields(record))
        step = found.get(2, 0)
        if 3 in found:
            yield found[1], step, found[3].decode()
        elif 7 in found:
            assert dict(fields(found[7])) == {1: 1}, "START is the only status"
            yield found[1], step, "start"
        else:
            values = [dict(fields(value)) for number, value in fields(found[5]) if number == 1]
            yield found[1], step, {value[1].decode(): value[2] for value in values}
