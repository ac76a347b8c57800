"""Reads ELF files as far as tests need: segments, the dynamic section, symbols and libraries."""
import struct
from dataclasses import dataclass
from pathlib import Path

EXECUTABLE, WRITABLE = 1, 2
LOAD, DYNAMIC, INTERPRETER, GNU_STACK, GNU_RELRO = 1, 2, 3, 0x6474E551, 0x6474E552
# Tags of the dynamic section.
NEEDED, STRINGS, SYMBOLS, TEXT_RELOCATIONS, BIND_NOW, FLAGS, FLAGS_1 = 1, 5, 6, 22, 24, 30, 0x6FFFFFFB


@dataclass(frozen=True)
class Segment:
    kind: int
    flags: int
    offset: int
    address: int
    size: int


class ElfFile:
    """64-bit, little-endian; read whole."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit ELF file"
        self.kind, = struct.unpack_from("<H", self.data, 16)
        table, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        self.segments = []
        for at in range(table, table + size * count, size):
            kind, flags, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", self.data, at)
            self.segments.append(Segment(kind, flags, offset, address, in_file))
        self.dynamic = {}  # values of each tag
        for segment in self.of_kind(DYNAMIC):
            for at in range(segment.offset, segment.offset + segment.size, 16):
                tag, value = struct.unpack_from("<QQ", self.data, at)
                self.dynamic.setdefault(tag, []).append(value)

    def flags(self, tag):
        return self.dynamic.get(tag, [0])[0]

    def of_kind(self, kind):
        return [segment for segment in self.segments if segment.kind == kind]

    def offset_of(self, address):
        segment, = (s for s in self.of_kind(LOAD) if s.address <= address < s.address + s.size)
        return address - segment.address + segment.offset

    def symbols(self):
        """Names of the dynamic symbols; the table ends where their strings begin."""
        first, strings = self.offset_of(self.dynamic[SYMBOLS][0]), self.offset_of(self.dynamic[STRINGS][0])
        assert first < strings and (strings - first) % 24 == 0
        for at in range(first, strings, 24):
            yield self.text(strings + struct.unpack_from("<I", self.data, at)[0])

    def libraries(self):
        """Names of the linked shared libraries."""
        strings = self.offset_of(self.dynamic[STRINGS][0])
        return [self.text(strings + at) for at in self.dynamic.get(NEEDED, [])]

    def text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def count_in_code(self, pattern):
        return sum(self.data.count(pattern, s.offset, s.offset + s.size) for s in self.of_kind(LOAD)
                   if s.flags & EXECUTABLE)
