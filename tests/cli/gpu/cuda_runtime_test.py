"""The program on the kernels' host runtime alone, which counts waits and fails when asked to."""
from cuda_on_host import HOST_MODULE, counts_of
from cuda_runs import LABELS, prepared
import harness
from harness import facts_of, main, steps_of, succeed


def test_the_host_goes_on(directory):
    """A step more is one wait more, for the result of the step before, whatever the step has of shards and
    micro-batches, and in the end replays graphs. The device does nothing here before somebody waits for it."""
    prepared()
    if not HOST_MODULE:
        raise harness.Skip("only the kernels' host runtime counts waits")
    def waits(steps, **env):
        report = directory / "report"
        succeed(*LABELS, "--device", "cuda", "--micro-batch-tokens", 48, "--max-steps", steps, "--output",
                directory / "run", "--overwrite",
                env={"HOST_CUDA_STREAMS": "late", "HOST_CUDA_REPORT": str(report), **env})
        assert [step["step"] for step in steps_of(directory / "run")] == list(range(1, steps + 1))
        counts = counts_of(report)
        return [counts[name] for name in ("streams", "events", "graphs", "destroyed")]

    streams, events, graphs, _ = (after - before for before, after in zip(waits(4), waits(9)))
    assert (streams, events) == (0, 5) and graphs >= 5, (streams, events, graphs)
    bits = facts_of(directory / "run")["weights_sha256"]
    # Also if there are more shapes than graphs: graphs may then be dropped while they run.
    few = {"FINETUNE_CUDA_GRAPHS": "4"}
    before = waits(9, **few)
    assert facts_of(directory / "run")["weights_sha256"] == bits
    streams, events, graphs, destroyed = (after - before for before, after in zip(before, waits(20, **few)))
    assert streams == 0 and events <= 11 and graphs > destroyed > 4, (streams, events, graphs, destroyed)


def test_failure(directory):
    """A device that fails ends the run with one line; steps that were done before are logged where their results can
    still be had. The host asks for one result a step."""
    prepared()
    if not HOST_MODULE:
        raise harness.Skip("only the kernels' host runtime fails when it is asked to")
    for call, steps in (("FAILS download 5", 4), ("BREAKS download 5", 3), ("BREAKS cudaGraphLaunch 4", None)):
        run = directory / call.replace(" ", "-")
        fault = {"HOST_CUDA_" + call.split(" ", 1)[0]: call.split(" ", 1)[1], "HOST_CUDA_STREAMS": "late"}
        result = harness.run(*LABELS, "--max-steps", 9, "--device", "cuda", "--output", run, env=fault)
        errors = [line for line in result.err.splitlines() if "error:" in line]
        assert result.code == 5 and len(errors) == 1 and "the GPU failed" in errors[0], (fault, result)
        assert not (run / "model").exists()
        done = [step["step"] for step in steps_of(run)]
        assert done == list(range(1, (steps or len(done)) + 1)), (fault, done)


main(globals())
