"""Sums over tensor shards whose partials several processes of a host have: the bits of one process.

test_tensor_sum_ranks does the checks inside the processes.
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rank_programs import launch, main, own_lines

RANKS = os.path.abspath(os.environ.get("FINETUNE_TENSOR_SUM_RANKS", "build/tests/mpi/test_tensor_sum_ranks"))


def check(processes, shards):
    result = launch(RANKS, processes, shards, 60)
    assert result.code == 0 and own_lines(result) == [], f"{processes} ranks, V {shards}: {result!r}"


def test_four_shards(_):
    for processes in (1, 2, 4):
        check(processes, 4)


def test_shards_that_are_no_power_of_two(_):
    for processes, shards in ((2, 6), (3, 6), (3, 3)):
        check(processes, shards)


main(globals())
