"""The whole program on the CUDA module, whose kernels run on the host, beside the CPU.

What it computes there is what the CPU computes, and it touches the device's memory through the module alone (anything else is a fault here).

With FINETUNE_DEVICE=cuda and without that module the same on a GPU (scripts/gpu/gpu_check.sh)."""
import json
import shutil
from pathlib import Path

from cuda_on_host import CPU_BINARY, HOST_MODULE, counts_of, program_with_module
from cuda_runs import ANSWERS, EVAL, LABELS, MODEL, NAMES, QA_MODEL, SQUAD, prepared
import harness
from harness import ON_GPU, facts_of, fail, main, metrics_of, need, nightly, some_of, steps_of, succeed


def close(a, b, tolerance):
    assert len(a) == len(b) and all(abs(x - y) <= tolerance * max(1, abs(y)) for x, y in zip(a, b)), (a, b)


def same_training(directory, line):
    for device in ("cpu", "cuda"):
        succeed(*line, "--precision", "fp32", "--device", device, "--output", directory / device)
    cpu, cuda = (steps_of(directory / device) for device in ("cpu", "cuda"))
    assert len(cpu) == 5
    for name in ("loss", "grad_norm"):
        close([step[name] for step in cuda], [step[name] for step in cpu], 1e-5 if HOST_MODULE else 1e-4)
    measured = [name for name in metrics_of(directory / "cpu") if name.startswith("eval_") and "runtime" not in name
                and "per_second" not in name]
    assert measured
    close([metrics_of(directory / "cuda")[name] for name in measured],
          [metrics_of(directory / "cpu")[name] for name in measured], 1e-4)


def test_classification(directory):
    prepared()
    same_training(directory, LABELS)
    # The run again, resumed from the middle, ends with the same bits.
    out = directory / "parts"
    line = [*LABELS, "--precision", "fp32", "--device", "cuda", "--save-every", 1, "--keep-checkpoints", 9, "--output", out]
    succeed(*line)
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    for checkpoint in (out / "checkpoints").iterdir():
        if checkpoint.name > "step-00000002.h5":
            checkpoint.unlink()
    succeed(*line, "--resume")
    for name in ("model/model.safetensors", "predictions.csv"):
        assert (out / name).read_bytes() == (directory / "cuda" / name).read_bytes(), name
    text = directory / "text.csv"
    text.write_text("text\nCOFFEE SHOP 12\nhardware store\n")
    line = ["predict", "--model", directory / "cuda/model", "--input", text, "--precision", "fp32", "--output", "-"]
    cpu, cuda = ([row.split(",") for row in succeed(*line, "--device", device).out.splitlines()[1:]]
                 for device in ("cpu", "cuda"))
    assert [row[:2] for row in cpu] == [row[:2] for row in cuda] and len(cpu) == 2
    close([float(row[2]) for row in cuda], [float(row[2]) for row in cpu], 1e-5 if HOST_MODULE else 1e-4)


def test_questions(directory):
    prepared()
    same_training(directory, ANSWERS)


def test_tensor_shards(directory):
    prepared()
    line = [*LABELS, "--tensor-shards", 2]
    same_training(directory, line)
    succeed(*line, "--precision", "fp32", "--device", "cuda", "--recompute", "--output", directory / "again")
    assert facts_of(directory / "again")["weights_sha256"] == facts_of(directory / "cuda")["weights_sha256"]
    same_training(directory / "qa", [*ANSWERS, "--tensor-shards", 2])


def test_course(directory):
    """With dropout, whose masks equal the CPU's, the loss follows the CPU's; a second run has the same bits."""
    prepared()
    line = [*LABELS, "--lr", "3e-4", "--max-steps", 5 if HOST_MODULE else 50]
    for precision in ("fp32", "bf16"):
        runs = [directory / f"{precision}-{device}" for device in ("cuda", "again", "cpu")]
        for run, device in zip(runs, ("cuda", "cuda", "cpu")):
            succeed(*line, "--precision", precision, "--device", device, "--output", run)
        cuda, again, cpu = ([step["loss"] for step in steps_of(run)] for run in runs)
        assert cuda == again and facts_of(runs[0])["weights_sha256"] == facts_of(runs[1])["weights_sha256"]
        if precision == "fp32":
            close(cuda, cpu, 1e-3)


def test_graphs(directory):
    """Work that is replayed has the bits of work that is called, though learning rate, dropout, lengths and numbers of
    sequences differ from step to step."""
    prepared()
    recomputing = [*LABELS, "--recompute", "--freeze", "embeddings"]
    for number, (line, precision) in enumerate(some_of(
            2, ([*LABELS, "--micro-batch-tokens", 48], "fp32"), (LABELS, "bf16"), (recomputing, "fp32"),
            ([*ANSWERS, "--batch-size", 2, "--max-eval-samples", 1], "bf16"))):
        runs = [directory / f"{number}-{graphs}" for graphs in (0, 1)]
        for graphs, run in enumerate(runs):
            report = directory / "report"
            succeed(*line, "--max-steps", 9, "--precision", precision, "--device", "cuda", "--output", run,
                    env={"FINETUNE_CUDA_GRAPHS": str(256 * graphs), "HOST_CUDA_REPORT": str(report)})
            if HOST_MODULE:
                replayed = counts_of(report)["graphs"]
                assert (replayed > 3) == (graphs == 1), (run, replayed)
            assert "without CUDA graphs" not in (run / "log.txt").read_text()
        plain, replaying = (steps_of(run) for run in runs)
        for key in ("loss", "grad_norm", "lr"):
            assert [step[key] for step in plain] == [step[key] for step in replaying], (number, key)
        assert len({step["lr"] for step in plain}) > 4
        assert len({facts_of(run)["weights_sha256"] for run in runs}) == 1, number
    if not HOST_MODULE:
        return
    # If a graph cannot be recorded, built or launched, at first or later, it is tried once more; then the log warns.
    calls = some_of(2, "cudaStreamBeginCapture 1", "cudaGraphLaunch 4", "cudaGraphInstantiate 1", "cudaGraphLaunch 1")
    for fault in ({"HOST_CUDA_NO_GRAPHS": "1"}, *({"HOST_CUDA_FAILS": call} for call in calls)):
        run = directory / "failing"
        line = [*LABELS, "--max-steps", 9, "--precision", "bf16", "--device", "cuda", "--output", run, "--overwrite"]
        succeed(*line, env=fault)
        log = (run / "log.txt").read_text()
        told = [log.count(words) for words in ("CUDA graphs are recorded again", "warning: going on without CUDA graphs")]
        assert told == [1, "HOST_CUDA_NO_GRAPHS" in fault], (fault, log)
        assert facts_of(run)["weights_sha256"] == facts_of(directory / "1-0")["weights_sha256"], fault


def test_second_stream(directory):
    """Weights' gradients beside the rest of the backward pass have the same bits, whatever the device does first."""
    prepared()
    alone = [*LABELS, "--virtual-shards", 1, "--micro-batch-tokens", 96]  # squares are added early
    for number, (line, precision) in enumerate(some_of(
            3, (LABELS, "bf16"), (alone, "bf16"), ([*alone, "--freeze", 1], "fp32"), ([*LABELS, "--micro-batch-tokens", 48, "--recompute"], "bf16"), (LABELS, "fp32"),
            ([*ANSWERS, "--batch-size", 2, "--max-eval-samples", 1], "bf16"))):
        results, memory = set(), {}
        orders = [("2", order, norm) for order in (("early", "late") if HOST_MODULE else ("",)) for norm in "01"]
        for streams, order, norm in (("1", "", "1"), *orders):
            run = directory / f"{number}-{streams}{order}{norm}"
            succeed(*line, "--max-steps", 6, "--precision", precision, "--device", "cuda", "--output", run,
                    env={"FINETUNE_CUDA_STREAMS": streams, "HOST_CUDA_STREAMS": order, "FINETUNE_CUDA_NORM": norm})
            results.add((facts_of(run)["weights_sha256"], *((step["loss"], step["grad_norm"]) for step in steps_of(run))))
            memory[streams] = metrics_of(run)["device_peak_memory_mb"]
            assert "CUDA graphs" not in (run / "log.txt").read_text()
        assert len(results) == 1, results
        assert memory["2"] > memory["1"] + 32, memory  # its workspace


def test_two_batches_in_flight(directory):
    """Results do not depend on them, nor on when the device works; the weights' sum, made beside them, is the CPU's."""
    prepared()
    rows, questions = directory / "rows.csv", directory / "questions.json"
    rows.write_text("".join(EVAL.read_text().splitlines(keepends=True)[:17]))
    paragraph = json.loads(SQUAD.read_text())["data"][0]["paragraphs"][0]
    questions.write_text(json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": [paragraph]}]}))
    predict = ["predict", "--model", MODEL, "--input", rows, "--label-column", "category", "--all-probabilities",
               "--batch-size", 3, "--output", "-", "--device", "cuda"]
    evaluate = ["evaluate", "--model", QA_MODEL, "--data", questions, "--batch-size", 2, "--json", "--max-length", 96,
                "--doc-stride", 32, "--device", "cuda"]
    alone = {"FINETUNE_BATCHES_IN_FLIGHT": "1"}
    expected, metrics = succeed(*predict, env=alone).out, json.loads(succeed(*evaluate, env=alone).out)
    assert metrics["weights_sha256"] == json.loads(succeed(*evaluate[:-1], "cpu").out)["weights_sha256"]
    for streams in ("early", "late", "priority"):
        result = succeed(*predict, env={"HOST_CUDA_STREAMS": streams, "FINETUNE_TIMES": "1"})
        assert result.out == expected and len(expected) > 900 and "first micro-batch" in result.err, (streams, result.err)
    beside = json.loads(succeed(*evaluate, env={"HOST_CUDA_STREAMS": "late"}).out)
    assert all(beside[name] == metrics[name] for name in metrics if name.startswith("eval_")), (beside, metrics)


def test_divergence(directory):
    """A step that is not finite ends the run as on the CPU: the step is named, and only earlier results are saved."""
    prepared()
    data = directory / "huge.csv"
    data.write_text("text,label\n" + "".join(f"row {i},{'1e30' if i == 7 else i}\n" for i in range(12)))
    for device in ("cpu", "cuda"):
        run = directory / device
        result = harness.run("train", "--model", MODEL, "--train", data, "--regression", "--no-standardize",
                             "--reinit-head", "--no-shuffle", "--recipe", "hf",
                             "--batch-size", 2, "--epochs", 1, "--save-every", 1, "--precision", "fp32", "--no-progress",
                             "--device", device, "--output", run)
        assert result.code == 6, result
        assert "error: diverged at step 4: loss inf, gradient norm 5.7" in result.err.splitlines()[-1], result
        assert [step["step"] for step in steps_of(run)] == [1, 2, 3]
        assert max(file.name for file in (run / "checkpoints").iterdir()) == "step-00000003.h5"
        assert not (run / "model").exists() and not (run / "metrics.json").exists()


def test_memory(directory):
    """The run's device memory equals plan's forecast; if memory is too small, the suggested size fits."""
    prepared()
    line = [*LABELS[1:], "--device", "cuda", "--batch-size", 64, "--virtual-shards", 1, "--max-steps", 1,
            "--micro-batch-tokens", 16384]
    for more in ([], ["--recompute", "--precision", "fp32", "--virtual-shards", 4]):
        plan = json.loads(succeed("plan", *line, *more, "--no-time", "--json").out)
        succeed("train", *line, *more, "--output", directory / "run", "--overwrite")
        taken = metrics_of(directory / "run")["device_peak_memory_mb"]
        # Buffers match to the byte, except small ones; scratch memory depends on the actual micro-batches.
        assert -0.01 < plan["device_peak_memory_mb"] - taken < plan["device_scratch_mb"], (plan, taken)
        assert plan["device_fits"] == 1 and plan["device_available_mb"] > 1000
    parts = json.loads(succeed("plan", *line, "--no-time", "--json").out)
    forecast = parts["device_peak_memory_mb"]
    assert abs(sum(parts[f"device_{part}_mb"] for part in ("weights", "gradients", "optimizer", "activations",
                                                           "scratch", "program")) - forecast) < 1e-3
    fail(2, "plan", *line, "--processes", 2, words=["--processes 2", "GPU"])
    if not HOST_MODULE:
        return  # a GPU's memory size is fixed
    small = {"HOST_CUDA_MEMORY_MB": str(int(forecast) - 6)}
    plan = json.loads(succeed("plan", *line, "--json", env=small).out)
    tokens = int(plan["device_fitting_micro_batch_tokens"])
    assert plan["device_fits"] == 0 and tokens > 0 and "step_seconds" not in plan, plan
    text = succeed("plan", *line, env=small).out
    assert f"does not fit; it would with --micro-batch-tokens {tokens}." in text and "No time" in text, text
    out = directory / "small"
    message = fail(5, "train", *line, "--output", out, env=small, words=["MiB are free", "needs"])
    assert f"--micro-batch-tokens {tokens} would fit" in message and not out.exists(), (message, tokens)
    succeed("train", *line, "--micro-batch-tokens", tokens, "--output", out, env=small)
    tiny = {"HOST_CUDA_MEMORY_MB": "44"}
    fail(5, "train", *line, "--output", directory / "tiny", env=tiny, words=["no --micro-batch-tokens"])
    assert "whatever its --micro-batch-tokens" in succeed("plan", *line, env=tiny).out


def test_default_micro_batches(directory):
    """They follow from the size of the device's memory, in coarse steps, not from what is free of it. Whoever plans and
    whoever trains has the same ones, and a run that goes on has its own still."""
    prepared()
    if not HOST_MODULE:
        raise harness.Skip("a GPU has the memory that it has")

    def planned(megabytes):
        return int(json.loads(succeed("plan", *LABELS[1:], "--device", "cuda", "--no-time", "--json",
                                      env={"HOST_CUDA_MEMORY_MB": str(megabytes)}).out)["micro_batch_tokens"])

    tokens = planned(130)
    assert planned(250) == tokens < planned(260) < planned(1 << 20) == 16384
    out = directory / "run"
    line = [*LABELS, "--device", "cuda", "--save-every", 1, "--keep-checkpoints", 1, "--output", out]
    succeed(*line, env={"HOST_CUDA_MEMORY_MB": "250"})
    assert f"micro-batches of up to {tokens:,} tokens" in (out / "log.txt").read_text()
    bits = facts_of(out)["weights_sha256"]
    (out / "metrics.json").unlink()
    shutil.rmtree(out / "model")
    succeed(*line, "--resume")
    assert f"micro-batches of up to {tokens:,} tokens" in (out / "log.txt").read_text().split("continuing from")[0][-800:]
    assert facts_of(out)["weights_sha256"] == bits


def test_offload(directory):
    """Inputs of layers wait on the host: the same bits, as much less memory as plan says, and a clear end where the host
    has too little or a copy fails."""
    prepared()
    line = [*LABELS, "--device", "cuda", "--recompute", "--batch-size", 32, "--virtual-shards", 1, "--max-steps", 2]
    bits, peaks = set(), []
    for precision in ("fp32", "bf16"):
        for offload in ([], ["--offload-activations=1"], ["--offload-activations"]):
            run = directory / "run"
            options = [*line, *offload, "--precision", precision]
            succeed(*options, "--output", run, "--overwrite")
            log = (run / "log.txt").read_text()
            assert ("loading horizon" in log) == (offload == ["--offload-activations=1"]), log
            bits.add((precision, facts_of(run)["weights_sha256"]))
            peaks.append(metrics_of(run)["device_peak_memory_mb"])
            plan = json.loads(succeed("plan", *options[1:], "--no-time", "--json").out)
            assert -0.01 < plan["device_peak_memory_mb"] - peaks[-1] < plan["device_scratch_mb"], (plan, peaks)
    assert len(bits) == 2, bits
    # All inputs of the tiny model's two layers are within the default horizon.
    assert peaks[1] < peaks[0] == peaks[2] and peaks[4] < peaks[3] == peaks[5], peaks
    line += ["--offload-activations", 1, "--output", directory / "failing"]
    if HOST_MODULE:
        for call, words in (("cudaMallocHost 3", ["MiB of memory for copies of the GPU"]),
                            ("download 2", ["the GPU failed at copying to the host"])):
            fail(5, *line, env={"HOST_CUDA_FAILS": call}, words=words)
    line = line[:line.index("--recompute")] + line[line.index("--recompute") + 1:]
    fail(2, *line, words=["--offload-activations 1", "--recompute"])
    fail(2, *line, "--recompute", "--device", "cpu", words=["--offload-activations 1", "--device cuda"])
    assert not (directory / "failing" / "model").exists()


def test_plan(directory):
    prepared()
    plan = json.loads(succeed("plan", *LABELS[1:], "--device", "cuda", "--json").out)
    assert plan["step_seconds"] > 0 and plan["steps"] == 5
    text = succeed("plan", *LABELS[1:], "--device", "cuda", "--no-time").out
    for words in ("memory of the GPU", "memory of the host", "The run fits.", "Not counted", "--recompute"):
        assert words in text, text


def test_bf16(directory):
    """auto means bf16 on a GPU: losses differ from fp32's as much as on the CPU."""
    prepared()
    line = [*LABELS, "--dropout", 0]
    succeed(*line, "--device", "cuda", "--output", directory / "auto")
    succeed(*line, "--device", "cpu", "--precision", "bf16", "--output", directory / "cpu")
    close([step["loss"] for step in steps_of(directory / "auto")],
          [step["loss"] for step in steps_of(directory / "cpu")], 3e-3)


@nightly
def test_attention_library(directory):
    """Long sequences' attention is the library's where it is asked for: the same bits with and without graphs and with
    recomputation, other masks than ours, and without dropout losses as ours."""
    prepared()
    library = {"FINETUNE_CUDA_ATTENTION": "cudnn"}
    line = ["train", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--max-length", 150, "--max-train-samples", 6,
            "--batch-size", 2, "--virtual-shards", 2, "--precision", "bf16", "--device", "cuda", *OPTIONS,
            "--max-steps", 3]
    text = json.loads(SQUAD.read_text())
    for article in text["data"]:
        for paragraph in article["paragraphs"]:  # long paragraphs
            paragraph["context"] += " and so it went on and on" * 25
    long_text = directory / "long.json"
    long_text.write_text(json.dumps(text))
    line[line.index(SQUAD)] = long_text

    def steps(name, *more, env=None):
        succeed(*line, *more, "--output", directory / name, env=env)
        return [[step[key] for key in ("loss", "grad_norm")] for step in steps_of(directory / name)]

    result = succeed(*line, "--output", directory / "first", env=library)
    if ON_GPU and "without cuDNN" in result.err + (directory / "first" / "log.txt").read_text():
        raise harness.Skip("no cuDNN here computes attention")
    first = [[step[key] for key in ("loss", "grad_norm")] for step in steps_of(directory / "first")]
    assert "attention by cuDNN" in facts_of(directory / "first")["code_path"]
    assert steps("again", env={**library, "FINETUNE_CUDA_GRAPHS": "0"}) == first
    assert steps("recomputed", "--recompute", env=library) == first
    assert steps("own") != first
    plain, own = steps("plain", "--dropout", 0, env=library), steps("own-plain", "--dropout", 0)
    assert plain != own
    close([loss for loss, _ in plain], [loss for loss, _ in own], 3e-3)
    plan = json.loads(succeed("plan", *line[1:], "--no-time", "--json", env=library).out)
    taken = metrics_of(directory / "first")["device_peak_memory_mb"]
    assert -0.01 < plan["device_peak_memory_mb"] - taken < plan["device_scratch_mb"], (plan, taken)
    fail(5, *line, "--output", directory / "no", env={"FINETUNE_CUDA_ATTENTION": "other"},
         words=["FINETUNE_CUDA_ATTENTION=other", "own or cudnn"])


@nightly
def test_bench(directory):
    """Operations are timed in separate steps, so that the measured steps are not slowed down."""
    program_with_module()
    line = ["--device", "cuda", "--shape", "tiny", "--lengths", 10, "--batch-size", 2, "--json"]
    result = json.loads(succeed("bench", "step", *line, "--steps", 2).out)
    assert result["device"] == "cuda" and result["backend"].startswith("CUDA") and result["precision"] == "bf16"
    assert result["steps"] == 2
    for name in ("matmul_peak_flops_per_second", "memory_peak_bytes_per_second", "profiled_step_seconds"):
        assert result[name] > 0, name
    shares = sum(op["share"] for op in result["ops"])
    assert 0 < shares <= 1 and abs(shares + result["between_operations_share"] - 1) < 1e-9, shares
    # Weights, gradient and moments of 4.4 million parameters, cuBLASLt's workspace, upload stages, little else.
    assert 4 * 4 * result["parameters"] < (result["device_peak_memory_mb"] - 32 - 8) * 2**20 < 4.4 * 4 * result["parameters"]
    calls = {(op["phase"], op["op"]): op["calls"] for op in result["ops"]}
    here = json.loads(succeed("bench", "step", "--device", "cpu", *line[2:], "--steps", 2).out)
    assert calls == {(op["phase"], op["op"]): op["calls"] for op in here["ops"]}
    assert abs(result["flops_per_token"] / here["flops_per_token"] - 1) < 1e-9 and "device_peak_memory_mb" not in here
    ops = json.loads(succeed("bench", "ops", *line).out)
    assert ops["device"] == "cuda" and all(op["seconds"] > 0 for op in ops["ops"])
    fail(2, "bench", "step", *line, "--threads", 1, "--clock", "cpu", words=["--clock cpu", "--device cuda"])


def test_refusals(directory):
    need(*NAMES)
    harness.BINARY = CPU_BINARY
    line = [*LABELS, "--device", "cuda", "--output", directory / "run"]
    if not Path("/dev/nvidiactl").exists():
        fail(5, *line, words=["--device cuda"])
        assert not (directory / "run").exists()
        fail(5, "bench", "step", "--device", "cuda", words=["--device cuda"])
        fail(5, "plan", *LABELS[1:], "--device", "cuda", words=["--device cuda"])


main(globals())
