#!/usr/bin/env python3
"""Packs the tokenizers' Unicode tables into a file, and expands it to C++ at build time.

usage: unicode_table_file.py TABLES.bin TABLES.cpp

The file is a zlib stream of the columns below, each as its number of values and the values, little-endian.
scripts/generate/generate_unicode_tables.py makes the tables.
"""
import itertools
import pathlib
import struct
import sys
import zlib

# (column, struct code): neighbouring values of one column are alike, which compresses well.
COLUMNS = (("page_of", "H"), ("flags", "H"), ("mapping_of", "H"), ("lower", "I"), ("canonical", "H"), ("compatible", "H"),
           ("canonical_length", "B"), ("compatible_length", "B"), ("pool", "I"))


def pack(tables):
    """`tables`: column -> list of values."""
    return zlib.compress(b"".join(struct.pack(f"<I{len(tables[name])}{code}", len(tables[name]), *tables[name])
                                  for name, code in COLUMNS), 9)


def unpack(data):
    data, at, tables = zlib.decompress(data), 0, {}
    for name, code in COLUMNS:
        count = struct.unpack_from("<I", data, at)[0]
        values = struct.Struct(f"<{count}{code}")
        tables[name] = list(values.unpack_from(data, at + 4))
        at += 4 + values.size
    return tables


def array(declaration, values):
    values = iter(values)
    lines = iter(lambda: ", ".join(itertools.islice(values, 16)), "")
    return f"const {declaration} = {{\n" + "".join(f"  {line},\n" for line in lines) + "};\n"


def cpp(tables):
    """Returns C++ source with the definitions of the tables that tokenizer/unicode/unicode_tables.h declares."""
    entries = (flags | mapping << 16 for flags, mapping in zip(tables["flags"], tables["mapping_of"]))
    mappings = zip(*(tables[column] for column, _ in COLUMNS[3:8]))
    return "\n".join([
        "// Written at build time from unicode_tables.bin by scripts/generate/unicode_table_file.py.",
        '#include "tokenizer/unicode/unicode_tables.h"\n',
        "namespace finetune::unicode {\n",
        array("uint16_t kPageOf[]", map(str, tables["page_of"])),
        array("uint32_t kEntries[]", map(str, entries)),
        array("Mapping kMappings[]", ("{" + ",".join(map(str, mapping)) + "}" for mapping in mappings)),
        array("char32_t kPool[]", map(str, tables["pool"])),
        "}  // namespace finetune::unicode\n",
    ])


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_text(cpp(unpack(source.read_bytes())), encoding="utf-8")
