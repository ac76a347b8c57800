"""Several processes with a device each, on a CUDA module whose kernels run on the host.

What goes from device to device goes through an NCCL that is made for these tests
(tests/unit/ops/host_cuda)."""
import json
import os
import shutil
import signal

import ranks
from ranks import (Job, cut_back, facts_of, lines_in, nothing_left, one_error, ranks_of, results_of, run_on,
                   same_results, stop_one, succeed_on, wait_for)
from harness import main, nightly, some_of, steps_of, succeed
from cuda_jobs import (ANSWERS, EACH, FEW, LABELS, a_killed_process_ends_the_job, need_several_devices,
                       prepared, same_on)
from cuda_on_host import counts_of

# Transfers run as early as events allow: with a missing event they would send unfinished data.
AHEAD = {**EACH, "HOST_CUDA_STREAMS": "priority"}
SMALL = ("--bucket-mb", "0.1")  # several buckets of the small models


def test_processes_take_devices_in_turn(directory):
    """The second device has another name, which causes a warning. Processes that share one go through the host."""
    need_several_devices()
    prepared()
    one = directory / "one"
    succeed(*LABELS, "--quiet", "--output", one)
    for devices, processes, named, route in ((2, 2, True, "from GPU to GPU"), (2, 3, True, "memory of the host"),
                                             (1, 2, False, "memory of the host")):
        out = directory / f"{devices}-{processes}"
        result = succeed_on(processes, *LABELS, "--output", out, env={"HOST_CUDA_DEVICES": str(devices)})
        warnings = [text for text in result.err.splitlines() if "computes with" in text]
        assert len(warnings) == named, result
        if named:
            assert "rank 1 " in warnings[0] and "kernels on the host again" in warnings[0], warnings
            assert "FINETUNE_ISA" not in warnings[0], warnings
        assert result.err.count(route) == 1, result
        same_results(out, results_of(one))


def test_auto_is_a_gpu_for_all_or_for_none(directory):
    need_several_devices()
    prepared()
    line = [option for option in LABELS if option not in ("--device", "cuda")]
    rank_1 = directory / "rank_1.sh"
    rank_1.write_text(f'#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export CUDA_VISIBLE_DEVICES=\n'
                      f'exec {ranks.BINARY} "$@"\n')
    rank_1.chmod(0o755)
    for program, device, remark in ((ranks.BINARY, "CUDA", 0), (rank_1, "CPU", 1)):
        out = directory / device
        result = Job("-n", 2, program, *line, "--output", out, env={**EACH, "FINETUNE_GPU_NODE": "/dev/null", "CUDA_VISIBLE_DEVICES": "0"}).wait()
        assert result.code == 0 and f"computing on {device}" in result.err, result
        assert result.err.count("is not used: not every process has one") == remark, result


def test_the_smallest_device_decides(directory):
    """The default layout computes in place, unless the user overrides it."""
    prepared()
    need_several_devices()
    found = []
    for processes, megabytes in ((1, "250"), (2, "1000 250"), (2, "250 1000"), (2, "1000")):
        out = directory / f"run-{len(found)}"
        succeed_on(processes, *LABELS, *FEW, "--output", out, env={**EACH, "HOST_CUDA_MEMORY_MB": megabytes})
        found += [line for line in (out / "config.toml").read_text().splitlines() if "micro-batch-tokens" in line]
    assert len(found) == 4 and len(set(found[:3])) == 1 and found[3] != found[0], found


def test_from_device_to_device(directory):
    need_several_devices()
    prepared()
    for number, (line, *cases) in enumerate(some_of(
            2, ([*LABELS, *FEW], (5, 1), (3, 2)), ([*ANSWERS, "--virtual-shards", 6], (4, 1)),
            ([*LABELS, *FEW, "--freeze", 1], (3, 1)))):
        same_on(directory / str(number), line, *cases, env=EACH)


def transfers_of(directory, processes, *line, env=AHEAD):
    """Runs; returns each rank's counters."""
    report = directory / "report"
    succeed_on(processes, *line, env={**env, "HOST_CUDA_REPORT": str(report)})
    return [counts_of(f"{report}{rank}") for rank in range(processes)]


def test_buckets_go_during_the_backward_pass(directory):
    """Transfers that find work of the backward pass undone are those of all buckets but the last one, in each step,
    whether that work is called or replayed, and of processes that have shards alone."""
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--batch-size", 4, "--max-steps", 9]
    one = directory / "one"
    succeed(*line, "--output", one)
    for number, graphs in enumerate(some_of(1, "256", "0")):
        counts = {}
        for size in (1000, 0.1):
            out = directory / f"run-{number}-{size}"
            counts[size] = transfers_of(directory, 2, *line, "--bucket-mb", size, "--output", out,
                                        env={**AHEAD, "FINETUNE_CUDA_GRAPHS": graphs})
            same_results(out, results_of(one))
        for whole, cut in zip(counts[1000], counts[0.1]):
            assert all((count["graphs"] > 9) == (graphs == "256") for count in (whole, cut)), counts
            # Three buckets instead of one: two of them are sent while the layers below are computed.
            assert cut["transfers"] - whole["transfers"] == 2 * 9, counts
            assert (whole["beside"], cut["beside"]) == (0, 2 * 9), counts


def test_the_host_waits_for_no_exchange(directory):
    """It waits only for a step's result, while the next step runs."""
    need_several_devices()
    prepared()
    late = {**EACH, "HOST_CUDA_STREAMS": "late"}
    counts = [transfers_of(directory, 2, *LABELS, "--quiet", "--max-steps", steps, "--eval-every", 1000, *SMALL,
                           "--output", directory / f"run-{steps}", env=late) for steps in (4, 9)]
    for few, many in zip(*counts):
        waits = [many[name] - few[name] for name in ("streams", "events", "queries")]
        assert waits == [0, 0, 5], counts


@nightly
def test_stopped_and_continued_from_device_to_device(directory):
    """A request to one process reaches all through the devices' exchange, and all stop after the same step."""
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--max-steps", 40, "--eval-every", 1000]
    succeed(*line, "--output", directory / "one")
    out = directory / "run"
    job = Job("-n", 3, ranks.BINARY, *line, "--output", out, env=EACH)
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 3, job), job.wait()
    os.kill(ranks_of(out)[2], signal.SIGUSR1)
    result = job.wait()
    assert result.code == 85 and "finetune: error:" not in result.err, result
    nothing_left(out)
    succeed_on(2, *line, "--output", out, "--resume", env=EACH)
    same_results(out, results_of(directory / "one"))


def test_divergence_from_device_to_device(directory):
    """All end with the same step without waiting for work in progress."""
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--lr", 999, "--weight-decay", "1e38", "--schedule", "constant", "--output",
            directory / "run"]
    for processes, streams in ((2, "late"), (3, "early"), (2, "")):
        result = run_on(processes, *line, env={**EACH, "HOST_CUDA_STREAMS": streams})
        one_error(result, 6, "diverged at step")
        shutil.rmtree(directory / "run")


def test_a_stop_comes_before_an_evaluation(directory):
    need_several_devices()
    prepared()
    out = directory / "run"
    line = [*LABELS, "--quiet", "--max-steps", 4000, "--eval-every", 1, "--output", out]
    job = Job("-n", 2, ranks.BINARY, *line, env=EACH)
    assert wait_for(lambda: lines_in(out / "metrics.jsonl") >= 6, job), job.wait()
    os.kill(ranks_of(out)[1], signal.SIGUSR1)
    assert job.wait().code == 85
    last = [json.loads(text) for text in (out / "metrics.jsonl").read_text().splitlines()][-1]
    assert "loss" in last, last


def test_bench_from_device_to_device(directory):
    need_several_devices()
    prepared()
    line = ["bench", "step", "--device", "cuda", "--shape", "tiny", "--precision", "fp32", "--steps", 3,
            "--lengths", 10, "--batch-size", 4, "--json"]
    report = json.loads(succeed_on(2, *line, env=EACH).out)
    assert 0 < report["communication_share"] < 1, report


def test_buckets_have_the_bits_of_one_process(directory):
    """With micro-batches, layers computed again, layers that are frozen, shards without samples, processes without
    shards; whatever is late."""
    need_several_devices()
    prepared()
    late = {**EACH, "HOST_CUDA_STREAMS": "late"}
    line = [*LABELS, *FEW, "--micro-batch-tokens", 48]
    same_on(directory / "a", line, (2, 1, *SMALL), (3, 2, *SMALL, "--recompute"), env=AHEAD)
    same_on(directory / "a", line, (3, 1, *SMALL), env=late)
    for number, (processes, *line) in enumerate(some_of(
            3, (3, *LABELS, *FEW, "--freeze", 1), (3, *LABELS, *FEW, "--virtual-shards", 2),
            (2, *LABELS, *FEW, "--precision", "auto"), (2, *LABELS, *FEW, "--freeze", "embeddings"),
            (2, *ANSWERS, *FEW, "--eval-every", 2, "--virtual-shards", 6),
            (2, *LABELS, *FEW, "--batch-size", 2, "--virtual-shards", 6),
            (3, *LABELS, *FEW, "--batch-size", 2, "--virtual-shards", 6))):
        same_on(directory / str(number), line, (processes, 1, *SMALL), env=AHEAD)


@nightly
def test_continued_from_device_to_device(directory):
    need_several_devices()
    prepared()
    out = directory / "run"
    line = [*LABELS, "--quiet", "--save-every", 1, "--keep-checkpoints", 9, "--output", out]
    succeed_on(2, *line, env=EACH)
    expected = results_of(out)
    for processes, env, more in ((3, EACH, SMALL), (2, None, ()), (2, AHEAD, SMALL), (1, None, ())):
        cut_back(out, 2)
        resumed = [*line, "--resume", *more]
        succeed(*resumed) if processes == 1 else succeed_on(processes, *resumed, env=env)
        same_results(out, expected)


@nightly
def test_no_fixed_order(directory):
    """The library's own sums: close to the tree's, but not identical."""
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--no-deterministic", "--output"]
    succeed(*line, directory / "one")
    one = steps_of(directory / "one")
    for processes, more in ((4, []), (3, ["--virtual-shards", 2]), (2, SMALL)):
        out = directory / f"{processes}"
        succeed_on(processes, *line, out, *more, env=AHEAD)
        several = steps_of(out)
        assert len(one) == len(several) == 5
        for a, b in zip(one, several):
            for name in ("loss", "grad_norm"):
                assert abs(a[name] - b[name]) < 1e-4 * abs(a[name]), (processes, a, b)
    assert facts_of(directory / "4")["weights_sha256"] != facts_of(directory / "one")["weights_sha256"]


@nightly
def test_gradients_in_bf16_on_the_way(directory):
    """Sums near those of floats and not the same, always the same for one number of processes, whatever goes when; one
    process sends nothing."""
    need_several_devices()
    prepared()
    line = [*LABELS, *FEW, "--output"]
    succeed(*line, directory / "one")
    one, expected = steps_of(directory / "one"), results_of(directory / "one")
    rounded = ["--comm-precision", "bf16"]
    succeed(*line, directory / "alone", *rounded)
    same_results(directory / "alone", expected)
    for processes in (2, 3):
        results = []
        for number, (env, more) in enumerate(((EACH, []), (AHEAD, SMALL), (AHEAD, ["--no-deterministic"]))):
            out = directory / f"{processes}-{number}"
            succeed_on(processes, *line, out, *rounded, *more, env=env)
            results.append(facts_of(out)["weights_sha256"])
            assert "comm-precision = \"bf16\"" in (out / "config.toml").read_text()
            assert "gradients in bf16 between GPUs" in (out / "log.txt").read_text()
        assert len(set(results)) == 1 and results[0] != facts_of(directory / "one")["weights_sha256"], results
        several = steps_of(directory / f"{processes}-0")
        assert len(one) == len(several) == 3
        for a, b in zip(one, several):
            for name in ("loss", "grad_norm"):
                assert abs(a[name] - b[name]) < 1e-2 * abs(a[name]), (processes, a, b)


def test_a_failing_peer_ends_the_job(directory):
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--output", directory / "run"]
    one_error(run_on(3, *line, env={**EACH, "HOST_NCCL_FAILS": "1"}), 5, "rank 1 ", "NCCL")
    shutil.rmtree(directory / "run", ignore_errors=True)  # if the run has begun
    line += ["--comm-timeout", "2s"]
    one_error(run_on(3, *line, env={**EACH, "HOST_NCCL_STALLS": "1"}), 5, "rank 1 ")
    nothing_left(directory / "run")


def test_a_peer_that_never_connects_ends_the_job(directory):
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--output", directory / "run", "--comm-timeout", "2s"]
    for hosts in (1, 2):
        result = run_on(3, *line, env={**EACH, "HOST_NCCL_ABSENT": "2"}, hosts=hosts)
        one_error(result, 5, "has waited 2 s for other processes (connecting the GPUs)")
        nothing_left(directory / "run")


def test_a_stopped_process_is_named(directory):
    need_several_devices()
    prepared()
    line = [*LABELS, "--quiet", "--max-steps", 400, "--eval-every", 1000, "--output", directory / "run"]
    job = Job("-n", 3, ranks.BINARY, *line, "--comm-timeout", "2s", env=EACH)
    error = stop_one(job, directory / "run", 1, 3, 2)
    assert "stopped" in error and "CUDA_LAUNCH_BLOCKING" not in error, error


def test_one_that_fails_alone_ends_the_job(directory):
    """It reports the reason without waiting: destroying NCCL's communicator would be collective."""
    need_several_devices()
    prepared()
    for number, call in enumerate(("cudaMalloc 20", "cudaMemcpyAsync 40")):
        out = directory / f"{number}"
        result = run_on(2, *LABELS, "--quiet", "--output", out, env={**EACH, "HOST_CUDA_FAILS": f"{call} 1"})
        one_error(result, 5, "rank 1 ", "unknown error")
        nothing_left(out)


def test_a_killed_process_ends_the_job(directory):
    need_several_devices()
    prepared()
    a_killed_process_ends_the_job(directory / "run", EACH)


main(globals(), at_once=3)
