"""Sums over tensor shards of several processes, on one host and on several: the bits of one.

test_tensor_sum_ranks does the checks inside the processes.
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rank_programs import launch, main, own_lines

RANKS = os.path.abspath(os.environ.get("FINETUNE_TENSOR_SUM_RANKS", "build/tests/mpi/tensors/test_tensor_sum_ranks"))


def check(processes, shards, hosts=1):
    result = launch(RANKS, processes, shards, 60, hosts=hosts)
    assert result.code == 0 and own_lines(result) == [], f"{processes} ranks, V {shards}, {hosts} hosts: {result!r}"


def test_four_shards(_):
    for processes in (1, 2, 4):
        check(processes, 4)


def test_shards_that_are_no_power_of_two(_):
    for processes, shards in ((2, 6), (3, 6), (3, 3)):
        check(processes, shards)


def test_ranks_on_several_hosts(_):
    for processes, shards, hosts in ((2, 2, 2), (4, 4, 2), (4, 8, 4)):
        check(processes, shards, hosts)


def test_hosts_whose_shards_are_no_subtree(_):
    for processes, shards, hosts in ((3, 3, 2), (3, 12, 3), (5, 5, 3), (6, 6, 4)):
        check(processes, shards, hosts)


main(globals(), at_once=3)
