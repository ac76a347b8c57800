"""bench layout: counted bytes equal the formulas, and memory equals plan's forecast."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ranks import need_mpirun, one_error, run_on, succeed_on
from harness import fail, main, nightly, succeed

LINE = ["bench", "layout", "--steps", 2, "--threads", 1, "--shape"]
TINY = (*LINE, "tiny")  # two layers of two heads
SIX_LAYERS = (*LINE, "minilm")


def measured(processes, *more, hosts=1, line=TINY):
    need_mpirun()
    line = [*line, *more, "--json"]
    result = succeed(*line) if processes == 1 else succeed_on(processes, *line, hosts=hosts)
    return json.loads(result.out)


def check_bytes(found):
    axes = {"dp": "dp_bytes", "pp": "pp_bytes", "tp": "tp_bytes"}
    assert {axis for axis, name in axes.items() if name in found} == {axis for axis in axes if found[axis] > 1}, found
    for axis, name in axes.items():
        if found[axis] > 1:
            assert found[name] == found[f"{name}_formula"] > 0, (name, found)
    assert found["every_step_moves_as_much"], found


@nightly
def test_counted_bytes_are_the_formula(_):
    small = ["--length", 16, "--batch-size", 8]
    for processes, hosts, line, *more in (
            (2, 1, TINY, "--virtual-shards", 4), (2, 2, TINY), (4, 2, TINY, "--task", "qa"),
            (4, 1, SIX_LAYERS, "--pp", 2, "--recompute"),
            (4, 2, TINY, "--pp", 2, "--placement", "spread", "--pipeline-schedule", "gpipe"),
            (4, 1, SIX_LAYERS, "--pp", 2, "--pipeline-schedule", "interleaved", "--recompute", "--task", "qa"),
            (2, 1, TINY, "--tp", 2, "--recompute"),
            (4, 1, SIX_LAYERS, "--tp", 2, "--tensor-shards", 4, "--task", "qa", "--recompute"),
            (4, 1, TINY, "--pp", 2, "--tp", 2, "--micro-batches", 2),
            (8, 2, TINY, "--pp", 2, "--tp", 2, "--recompute")):
        found = measured(processes, *small, *more, hosts=hosts, line=line)
        assert found["hosts"] == hosts and len(found["processes"]) == processes, found
        check_bytes(found)


def test_defaults(_):
    """Without data, batches are those of train's recipe hf."""
    found = measured(1, "--length", 8, "--precision", "fp32")
    assert found["batch_size"] == 32 and found["every_step_moves_as_much"], found


@nightly
def test_memory_is_what_plan_forecasts(_):
    """Within a tenth, without the program's own memory, and smaller if the model is cut."""
    whole = measured(1, "--batch-size", 8, "--precision", "fp32", line=SIX_LAYERS)
    most = {"whole": whole["processes"][0]["measured_bytes"]}
    for processes, *more in ((2, "--pp", 2), (2, "--tp", 2), (2,)):
        found = measured(processes, "--batch-size", 8, "--precision", "fp32", *more, line=SIX_LAYERS)
        for each in found["processes"]:
            assert abs(each["difference"]) < 0.1, (more, each)
        most[" ".join(map(str, more))] = max(each["measured_bytes"] for each in found["processes"])
    assert abs(whole["processes"][0]["difference"]) < 0.1, whole
    assert max(most["--pp 2"], most["--tp 2"]) < 0.85 * most["whole"], most


@nightly
def test_bubble(_):
    """With measured pass times the bubble is near that of equal stages, and never zero."""
    found = measured(2, "--pp", 2, "--batch-size", 16, "--stages", "3,3", "--task", "qa", line=SIX_LAYERS)
    assert abs(found["formula_bubble"] - 1 / 9) < 1e-12 and 0.05 < found["recorded_bubble"] < 0.6, found
    # Empty shards, and shards with fewer samples than micro-batches.
    for more in (["--batch-size", 1, "--virtual-shards", 4], ["--batch-size", 3, "--virtual-shards", 2, "--micro-batches", 3]):
        check_bytes(measured(2, "--pp", 2, "--length", 8, *more))
    assert "recorded_bubble" not in measured(1, "--batch-size", 2, "--length", 8)


def test_text(_):
    out = succeed_on(4, *TINY, "--batch-size", 8, "--length", 16, "--pp", 2, "--tp", 2).out
    assert "layout DPT, 1f1b: 4 processes = 1 replica x 2 stages x 2 tensor ranks" in out, out
    assert out.count("  equal\n") == 2 and "DIFFERENT" not in out and "bubble: " in out, out


def test_doctor_tells_who_is_where(_):
    need_mpirun()
    out = succeed_on(4, "doctor", "--tp", 2, "--pp", 2, "--shape", "minilm").out
    assert "layout DPT, 1f1b: 4 processes = 1 replica x 2 stages x 2 tensor ranks" in out, out
    assert all(f" rank {rank} of 4, " in out for rank in range(4)), out
    rows = [line.split() for line in out.splitlines() if "shard " in line]
    assert [(row[0], row[2:5]) for row in rows] == [("0", ["0", "0", "0"]), ("1", ["0", "0", "1"]),
                                                    ("2", ["0", "1", "0"]), ("3", ["0", "1", "1"])], out
    assert "warning" not in out and out.count("layout ") == 1, out
    across = succeed_on(4, "doctor", "--tp", 2, "--placement", "spread", hosts=2).out
    assert "warning: 2 of 2 groups of tensor ranks are on several hosts" in across, across
    assert "layout" not in succeed("doctor").out
    one_error(run_on(2, "doctor", "--pp", 13, "--tp", 0), 2, "--tp 0")
    fail(2, "doctor", "--tp", 2, words=["1 process", "--tp 2"])


def test_what_is_impossible(_):
    need_mpirun()
    one_error(run_on(3, *TINY, "--pp", 2), 2, "3 processes", "--pp 2")
    for more, words in ((["--pp", 2], ["1 process", "--pp 2"]), (["--length", 600], ["600", "512"]),
                        (["--steps", 0], ["--steps"]), (["--batch-size", 0], ["--batch-size 0"]),
                        (["--tensor-shards", 5], ["--tensor-shards 5"]), (["--chunks", 2], ["--chunks 2"])):
        fail(2, *TINY, *more, words=words)
    fail(2, *LINE, "huge", words=["'huge'"])


main(globals(), at_once=2)
