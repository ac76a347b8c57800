"""Training and inference on one GPU, beside PyTorch and transformers on the same GPU."""
import json

from compare import inference, training
from compare.harness import progress, require, spread
from compare.works import Side, Work, in_turn, median, peer_versions

WORKS = [
    Work("minilm-bank", "MiniLM-L6 shape, bank text", "minilm", "bank", 32),
    Work("base-bank", "BERT-base shape, bank text", "base", "bank", 32),
    Work("minilm-bank-256", "MiniLM-L6 shape, bank text", "minilm", "bank", 256),
    Work("base-bank-256", "BERT-base shape, bank text", "base", "bank", 256),
    Work("base-squad", "BERT-base shape, SQuAD 384", "base", "squad", 32),
    Work("large-squad", "BERT-large shape, SQuAD 384", "large", "squad", 32),
]
SIDES = {
    "finetune": Side("finetune bf16", True, "bf16"),
    "torch": Side("PyTorch bf16", False, "bf16", "group"),
    "torch-compiled": Side("PyTorch bf16, torch.compile", False, "bf16", "group", compiled=True),
}
PEERS = ("torch", "torch-compiled")
TIMES_THE_PEER = 3
SAMPLES_PER_SECOND = {"base-squad": 4850, "large-squad": 1380, "base-bank-256": 57000}  # goals
PUBLISHED = (
    "As published, not measured here: NVIDIA DeepLearningExamples (PyTorch, BERT-large, SQuAD v1.1 padded to 384, "
    "mixed precision) trains 110.5 sequences/s on one A100-80G at batch 32, 846.7 on eight, whose whole run takes "
    "207 s (PyTorch/LanguageModeling/BERT/README.md at 729963d, 2024-04)")


def check(options, works):
    require(options.binary.parent / "finetune_cuda.so")
    training.check(options, works)
    inference.check(options, evaluated(works))


def evaluated(works):
    """One work for each model and data set: inference chooses its own batch size."""
    return [work for work in works if work.name in inference.ROWS]


def measure_inference(bench, work):
    data = bench.temporary / ("rows.csv" if work.kind == "bank" else "rows.json")
    inference.write_rows(bench.options, work, data)
    return in_turn(
        bench.options.sides, bench.options.runs,
        lambda side, _: inference.run_ours(bench, work, side, data),
        lambda side, _: inference.run_peer(bench, work, side, data),
        lambda number, side, result: progress(
            f"inference {work.name} run {number + 1}/{bench.options.runs} {side.title}: "
            f"evaluate {result['evaluate']:.1f}, predict {result['predict']:.1f} sequences/s"),
        known=SIDES)


def step_of(bench, work, attention):
    """Runs finetune bench step: our step without data, and its share of the GPU's rate of large matrix products."""
    return json.loads(bench.ours(["bench", "step", "--device", "cuda", "--precision", "bf16", "--shape", work.model,
                                  "--lengths", work.kind, "--batch-size", work.batch_size, "--json"],
                                 {"FINETUNE_CUDA_ATTENTION": attention}).output)


def measure(bench, works):
    """Yields the section after each part, so that a time limit loses only the part that it interrupts."""
    # cuDNN's attention pays for long sequences only. If cuDNN is missing, the backend's name says so.
    steps = [(work, step_of(bench, work, attention)) for work in works
             for attention in (("own", "cudnn") if work.kind == "squad" else ("own",))]
    yield section(bench, [], [], steps)
    trained = []
    for work in works:
        trained.append((work, training.results_of(bench, work, bench.options.sides, known=SIDES)))
        yield section(bench, trained, [], steps)
    inferred = []
    for work in evaluated(works):
        inferred.append((work, measure_inference(bench, work)))
        yield section(bench, trained, inferred, steps)


def section(bench, trained, inferred, steps):
    options = bench.options
    versions = peer_versions((sides for _, sides in [*trained, *inferred]), SIDES)
    machine = [line for line in bench.doctor if line.startswith(("GPU", "CUDA", "NVIDIA", "cuBLASLt", "cuDNN"))]
    return bench.section("On a GPU beside PyTorch", [
        "; ".join(" ".join(line.split()) for line in machine),
        f"{options.runs} runs a side, in turn, on the same GPU; random weights in the models' shapes",
        "Training: one epoch over the same rows, learning rate 5e-5, dropout 0.1, AdamW, clipping at 1.0; the first "
        f"{options.uncounted} steps are not counted on any side",
        "PyTorch: Hugging Face Trainer, bf16 autocast, SDPA attention, fused AdamW, batches of similar length padded to "
        "their longest (`group_by_length`), four processes that load data; with and without torch.compile",
        "Memory of the GPU: what the program has allocated there, and what torch has reserved, at most; the driver's "
        "own is not counted on either side",
        "Evaluation: PyTorch's batch size the fastest of "
        f"{options.peer_eval_batch_sizes.replace(',', ', ')}; whole commands count their start and files",
        PUBLISHED], versions,
        {**({"gpu-training": training_table(trained), "gpu-ratios": ratio_table(trained)} if trained else {}),
         **({"gpu-inference": inference_table(inferred)} if inferred else {}), "gpu-steps": share_table(steps)})


def training_table(results):
    lines = ["| work | side | samples/s (min / median / max) | real tokens/s (median) | memory of the GPU "
             "| start to first step |", "|---|---|---|---|---|---|"]
    for work, sides in results:
        for name, runs in sides.items():
            lines.append(f"| {training.title(work)} | {SIDES[name].title} "
                         f"| {spread([r['samples_per_second'] for r in runs], 1)} "
                         f"| {median(runs, 'tokens_per_second'):,.0f} | {median(runs, 'device_peak_memory_mb'):,.0f} MiB "
                         f"| {median(runs, 'startup_seconds'):.2f} s |")
    return lines


def ratio_table(results):
    lines = ["| work | against | goal | times the real tokens/s (min / median / max of pairs) "
             "| goal, samples/s | reached |", "|---|---|---|---|---|---|"]
    for work, sides in results:
        peers = [name for name in PEERS if name in sides]
        if "finetune" not in sides or not peers:
            continue
        best = max(peers, key=lambda name: median(sides[name], "tokens_per_second"))
        ratios = [a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(sides["finetune"], sides[best])]
        goal = SAMPLES_PER_SECOND.get(work.name)
        lines.append(f"| {training.title(work)} | {SIDES[best].title} | ≥ {TIMES_THE_PEER} | {spread(ratios, 2)} "
                     f"| {f'≥ {goal:,}' if goal else ''} | {median(sides['finetune'], 'samples_per_second'):,.0f} |")
    return lines


def inference_table(results):
    lines = ["| work | side | evaluation, sequences/s (min / median / max) | evaluate command | predict | sequences |",
             "|---|---|---|---|---|---|"]
    for work, sides in results:
        for name, runs in sides.items():
            ours = SIDES[name].ours
            values = {key: spread([r[key] for r in runs], 1) for key in ("evaluate", "predict")}
            loop = spread([r["loop"] for r in runs], 1) if ours else values["evaluate"]
            lines.append(f"| {work.title} | {SIDES[name].title} | {loop} | {values['evaluate'] if ours else ''} "
                         f"| {values['predict']} | {runs[0]['sequences']:,} |")
    return lines


def share_table(steps):
    lines = ["| work | backend | samples/s | TFLOP/s | share of large matrix products "
             "| memory of the GPU |", "|---|---|---|---|---|---|"]
    for work, step in steps:
        lines.append(f"| {training.title(work)} | {step['backend']} | {step['samples_per_second']:,.1f} "
                     f"| {step['flops_per_second'] / 1e12:,.1f} | {100 * step['share_of_matmul_peak']:.1f} % "
                     f"| {step['device_peak_memory_mb']:,.0f} MiB |")
    return lines
