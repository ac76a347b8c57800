"""Groups of processes and links between them: what they tell each other, and who is blamed.

test_group_ranks does the checks inside the processes. FINETUNE_HOSTS=2 makes two hosts of one machine.
"""
import os
from functools import partial

from rank_programs import check_fault, launch, main, own_lines, some_of, together

RANKS = os.path.abspath(os.environ.get("FINETUNE_GROUP_RANKS", "build/tests/mpi/test_group_ranks"))
DIED = (r"finetune: error: rank {} on \S+ \(pid \d+\) died in forward pass, step 17{}; the job ends")
ABSENT = r"finetune: error: rank {} on \S+ has not responded for {} s \({}, in forward pass, step 17{}\); the job ends"
WISH = r"; rank {} on \S+ is waiting for {} of micro-batch {} from it"


def succeed(processes, *arguments, hosts=1):
    result = launch(RANKS, processes, *arguments, hosts=hosts)
    assert result.code == 0 and own_lines(result) == [], f"{processes} on {hosts}, {arguments}: {result!r}"
    return result


def fault(directory, processes, *arguments, **how):
    check_fault(directory, processes, "fault", *arguments, program=RANKS, **how)


def test_every_shape_of_group(_):
    for processes, hosts in some_of(3, (4, 1), (5, 2), (5, 3), (2, 2), (1, 1)):
        succeed(processes, "groups", hosts=hosts)


def test_overlapping_groups(_):
    for hosts in some_of(2, 1, 3, 2):
        succeed(8, "axes", hosts=hosts)


def test_counts_of_bytes(_):
    for hosts in (1, 2, 3):
        succeed(3, "counts", hosts=hosts)


def test_number_of_groups(_):
    succeed(3, "number")
    succeed(4, "number", hosts=2)


def test_links(_):
    for processes, hosts, turns in some_of(2, (4, 1, 600), (3, 2, 300), (4, 2, 300), (2, 1, 1000)):
        succeed(processes, "links", turns, hosts=hosts)


def test_what_is_sent_goes_on(_):
    succeed(4, "handover", hosts=2)
    for hosts in (1, 2):
        succeed(2, "unreceived", hosts=hosts)
    for hosts in (1, 2):
        print(f"2 processes on {hosts} host(s): {succeed(2, 'time', 500, hosts=hosts).out.strip()}")


def test_a_stage_dies(directory):
    for victim, stop_request in ((0, "(" + WISH.format(1, "activations", 3) + ")?"),
                         (2, "(" + WISH.format(r"[13]", "(activations|gradients)", r"[23]") + ")?"),
                         (3, "(" + WISH.format(2, "gradients", "[23]") + ")?")):
        fault(directory, 4, "kill", "links", victim, code=137, line=DIED.format(victim, stop_request))
    fault(directory, 4, "kill", "links", 1, hosts=2, code=137, line=DIED.format(1, ".*"))


ELSEWHERE = (r"finetune: error: rank {} on \S+ has not responded for {} s \(rank {} on \S+ is waiting for {} of micro-batch "
             r"{} from it, in forward pass, step 17\); the job ends")


def test_a_stage_stops(directory):
    stop_request = WISH.format(r"\d", r"\w+", r"\d")
    together(*[partial(fault, directory, processes, how, "links", victim, hosts=hosts, code=5,
                       line=ABSENT.format(victim, 3, state, stop_request))
               for processes, how, victim, hosts, state in (
                   (4, "stop", 0, 1, "stopped"), (4, "stop", 2, 1, "stopped"), (4, "stop", 3, 2, "stopped"),
                   (6, "stop", 1, 2, "stopped"), (3, "late", 1, 1, "running"))])


def test_a_stage_stops_that_is_alone_on_its_host(directory):
    together(*[partial(fault, directory, 4, "stop", "links", victim, hosts=4, code=5,
                       line=ELSEWHERE.format(victim, 3, other, what, micro))
               for victim, other, what, micro in (
                   (0, 1, "activations", 3), (2, 1, "gradients", 2), (3, 2, "gradients", 2))])


def test_a_stage_that_waits_is_not_to_blame(directory):
    """The stages above it have waited longer than it has."""
    together(partial(fault, directory, 4, "stop", "slow", 0, code=5,
                     line=ABSENT.format(0, 4, "stopped", WISH.format(1, "activations", 3))),
             partial(fault, directory, 3, "stop", "slow", 0, hosts=3, code=5,
                     line=ELSEWHERE.format(0, 4, 1, "activations", 3)))


def test_a_member_of_a_group(directory):
    for victim, where, hosts in ((0, "tensor", 1), (6, "stages", 2)):
        together(partial(fault, directory, 8, "kill", where, victim, hosts=hosts, code=137, line=DIED.format(victim, "")),
                 partial(fault, directory, 8, "stop", where, victim, hosts=hosts, code=5,
                         line=ABSENT.format(victim, 3, "stopped", "")))


main(globals(), at_once=2)
