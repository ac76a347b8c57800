"""Files of a model in parts: equal, byte for byte, to those of one process that has all of it.

test_tensor_ranks divides a model by hand, as replicas x stages x tensor ranks, and checks inside the processes.
"""
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import Job, need_mpirun
from harness import main

RANKS = os.path.abspath(os.environ.get("FINETUNE_TENSOR_RANKS", "build/tests/mpi/tensors/test_tensor_ranks"))


def on(processes, scenario, directory, hosts=1):
    need_mpirun()
    place = directory / f"{scenario}-{processes}-{hosts}"
    place.mkdir()
    return Job("-n", processes, RANKS, scenario, place, hosts=hosts).wait(), place


def errors_of(result):
    return [line for line in result.err.splitlines() if "finetune:" in line]


def check_divisions(directory, scenario, processes, hosts, line):
    result, _ = on(processes, scenario, directory, hosts)
    assert result.code == 0 and errors_of(result) == [], f"{processes} on {hosts}: {result!r}"
    assert result.out == line, result


def test_every_division_writes_the_same_files_and_reads_those_of_any_other(directory):
    for processes, hosts, count in ((1, 1, 1), (2, 1, 3), (3, 1, 2), (4, 1, 6), (2, 2, 3), (3, 2, 2), (4, 2, 6)):
        check_divisions(directory, "divisions", processes, hosts, f"{count} divisions\n")


def test_parts_on_devices(directory):
    check_divisions(directory, "devices", 1, 1, "1 divisions\n")
    check_divisions(directory, "devices", 4, 1, "6 divisions\n")


def test_tensors_larger_than_a_slab(directory):
    check_divisions(directory, "slabs", 2, 2, "")


def test_rank_0_needs_memory_for_pieces_alone(directory):
    for processes, hosts in ((2, 1), (3, 2)):
        check_divisions(directory, "memory", processes, hosts, "")


def check_fault(directory, processes, scenario, hosts, code, line):
    result, place = on(processes, scenario, directory, hosts)
    errors = errors_of(result)
    assert result.code == code and len(errors) == 1, f"{scenario}: {result!r}"
    assert re.fullmatch(line, errors[0]), f"{scenario}: {errors[0]}"
    assert not list(place.iterdir()), list(place.iterdir())


def test_what_fails_on_one_process_ends_all(directory):
    who = r"finetune: error: (rank 0 on \S+: )?"
    # A tmpfs says it when space is set aside, other file systems with the first write.
    written = (r"\S+failed.h5: cannot be written: File too large( \(it needs \d+ MiB\))?; "
               "--resume goes on from the newest whole checkpoint")
    missing = r"no process has \d+ elements of bert\.\S+"
    for processes, hosts in ((1, 1), (3, 1), (4, 2)):
        check_fault(directory, processes, "writing", hosts, 4, who + written)
    check_fault(directory, 3, "action", 1, 4, who + "the file is not there")
    check_fault(directory, 3, "hole", 1, 1, who + missing)
    check_fault(directory, 2, "overlap", 2, 1, who + missing)


main(globals(), at_once=3)
