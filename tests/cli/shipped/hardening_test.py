"""The program is built with hardening, according to its ELF file."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import BINARY, main
from elf_file import (BIND_NOW, EXECUTABLE, FLAGS, FLAGS_1, GNU_RELRO, GNU_STACK, INTERPRETER, LOAD, TEXT_RELOCATIONS,
                      WRITABLE, ElfFile)

# Bounds-checked C library functions that the compiler substitutes.
CHECKED = "_chk"
# Instructions that read the stack canary: mov and sub of fs:0x28.
CANARY, LEAST_CANARY_READS = b"\x25\x28\x00\x00\x00", 1000


def test_lies_anywhere(_):
    program = ElfFile(BINARY)
    assert program.kind == 3 and program.of_kind(INTERPRETER), "it is not position independent"
    assert program.flags(FLAGS_1) & 0x08000000, "it is a library"
    assert TEXT_RELOCATIONS not in program.dynamic and not program.flags(FLAGS) & 4, "its code is patched"


def test_what_is_written_once_is_read_only(_):
    program = ElfFile(BINARY)
    assert len(program.of_kind(GNU_RELRO)) == 1, "tables of addresses stay writable"
    now = BIND_NOW in program.dynamic or program.flags(FLAGS) & 8 or program.flags(FLAGS_1) & 1
    assert now, "the addresses of functions are looked up late, in a table that stays writable"


def test_nothing_writable_is_executable(_):
    program = ElfFile(BINARY)
    stack, = program.of_kind(GNU_STACK)
    assert not stack.flags & EXECUTABLE, "the stack is executable"
    both = [s for s in program.of_kind(LOAD) if s.flags & EXECUTABLE and s.flags & WRITABLE]
    assert not both, both


def test_stacks_and_copies_are_checked(_):
    program = ElfFile(BINARY)
    names = set(program.symbols())
    assert "memcpy" in names or "memmove" in names, "symbols are not read as they should be"
    assert "__stack_chk_fail" in names, "no function has a canary"
    reads = program.count_in_code(CANARY)
    assert reads >= LEAST_CANARY_READS, f"the canary is read in {reads} places"
    checked = sorted(name for name in names if name.endswith(CHECKED))
    assert len(checked) >= 3, f"copies and reads are not bounded: {checked}"
    print(f"{reads} reads of the canary; {', '.join(checked)}")


main(globals())
