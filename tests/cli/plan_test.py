"""plan: the forecast beside what the real run takes."""
import array
import json
import random
import shutil

from fixtures import EVAL, MODEL, QA_MODEL, SQUAD, TRAIN
from harness import fail, main, metrics_of, need, succeed

DATA = "golden/trajectory-classification-train.csv"
CLASSIFICATION = ["--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category",
                  "--ignore-unknown-labels", "--max-steps", 40]
QA = ["--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD, "--max-steps", 6]
NEVER_SEEN = ["--quiet", "--no-progress"]


def plan(*arguments):
    return json.loads(succeed("plan", *arguments, "--json").out)


def check_peak(directory, arguments):
    """The forecast, which must be within a tenth of the truth."""
    out = directory / "run"
    shutil.rmtree(out, ignore_errors=True)
    forecast = plan(*arguments, "--no-time")
    succeed("train", *arguments, "--output", out, *NEVER_SEEN)
    metrics = metrics_of(out)
    ratio = forecast["peak_memory_mb"] / metrics["peak_memory_mb"]
    assert 0.9 <= ratio <= 1.1, (arguments, ratio, metrics["peak_memory_mb"], forecast)
    assert forecast["steps"] == metrics["train_steps"]
    return forecast


def random_model(directory, source, hidden, layers):
    """A BERT of another shape with the vocabulary of `source` and random weights."""
    config = json.loads((source / "config.json").read_text())
    config.update(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 32,
                  intermediate_size=4 * hidden)
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
              "embeddings.token_type_embeddings.weight": (2, hidden)}
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{i}" for i in range(layers)):
        for name, rows, cols in (("attention.self.query", 1, 1), ("attention.self.key", 1, 1),
                                 ("attention.self.value", 1, 1), ("attention.output.dense", 1, 1),
                                 ("intermediate.dense", 4, 1), ("output.dense", 1, 4)):
            shapes[f"{layer}.{name}.weight"] = (rows * hidden, cols * hidden)
            shapes[f"{layer}.{name}.bias"] = (rows * hidden,)
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        shapes[f"{name}.LayerNorm.weight"] = shapes[f"{name}.LayerNorm.bias"] = (hidden,)
    rng = random.Random(1)
    noise = array.array("f", [rng.gauss(0, 0.02) for _ in range(1 << 16)])
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = array.array("f", [1.0] * count) if name.endswith("LayerNorm.weight") else \
            (noise * (count // len(noise) + 1))[:count]
        header["bert." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    directory.mkdir()
    for file in source.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            shutil.copy(file, directory)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return directory


def test_peak_of_tiny_models(directory):
    need(DATA, "golden/tiny-bert-qa")
    for options in ([], ["--recompute"], ["--micro-batch-tokens", 2048], ["--virtual-shards", 4, "--threads", 1],
                    ["--freeze", 1, "--precision", "fp32"]):
        check_peak(directory, [*CLASSIFICATION, *options])
        check_peak(directory, [*QA, *options])


def test_peak_of_a_larger_model(directory):
    need(DATA, "golden/tiny-bert-qa")
    model = random_model(directory / "model", QA_MODEL, 256, 4)
    for data in ([*CLASSIFICATION[2:], "--max-steps", 10], [*QA[2:], "--max-steps", 2]):
        peaks = []
        for options in ([], ["--recompute"], ["--micro-batch-tokens", 2048], ["--virtual-shards", 2]):
            peaks.append(check_peak(directory, ["--model", model, *data, *options])["peak_memory_mb"])
    # Question answering: windows of 384 tokens.
    assert peaks[1] < 0.75 * peaks[0] and peaks[2] < 0.75 * peaks[0], peaks


def test_numbers(directory):
    need(DATA)
    forecast = plan(*CLASSIFICATION, "--no-time")
    assert all(isinstance(value, (int, float)) for value in forecast.values())
    parts = ("weights_mb", "gradients_mb", "optimizer_mb", "activations_mb", "scratch_mb", "data_mb", "evaluation_mb",
             "program_mb")
    assert abs(sum(forecast[part] for part in parts) - forecast["peak_memory_mb"]) < 0.1, forecast
    assert 1.98 * forecast["weights_mb"] < forecast["optimizer_mb"] <= 2 * forecast["weights_mb"]
    assert forecast["evaluations"] == 2 and forecast["eval_samples"] == 500 and forecast["samples"] == 960
    assert forecast["all_processes_mb"] == forecast["peak_memory_mb"]
    assert not any(name.endswith("_seconds") for name in forecast)
    # The other settings are forecast as they would be by themselves.
    other = plan(*CLASSIFICATION, "--no-time", "--recompute", "--micro-batch-tokens",
                 int(forecast["half_micro_batch_tokens"]))
    assert abs(other["peak_memory_mb"] - forecast["half_recomputed_peak_mb"]) < 2, (other, forecast)
    sharded = plan(*CLASSIFICATION, "--no-time", "--virtual-shards", 8)
    assert sharded["gradient_arenas"] == 4 and sharded["gradients_mb"] == 4 * forecast["gradients_mb"]
    shared = plan(*CLASSIFICATION, "--no-time", "--processes", 4)
    assert shared["virtual_shards"] == 4 and shared["gradient_arenas"] == 1
    assert shared["peak_memory_mb"] < shared["all_processes_mb"] < 4 * shared["peak_memory_mb"]


def test_time(directory):
    need(DATA)
    forecast = plan(*CLASSIFICATION)
    assert forecast["step_seconds"] > 0 and forecast["evaluation_seconds"] > 0 and forecast["startup_seconds"] > 0
    total = forecast["startup_seconds"] + 40 * forecast["step_seconds"] + 2 * forecast["evaluation_seconds"]
    assert abs(forecast["total_seconds"] - total) < 1e-9, forecast
    # A long step is put together from small ones.
    long = plan(*QA, "--batch-size", 4000, "--micro-batch-tokens", 1000, "--virtual-shards", 3)
    assert long["total_seconds"] > 0 and long["largest_micro_batch_tokens"] <= 1000
    text = succeed("plan", *CLASSIFICATION, "--output", directory / "run").out
    for words in ("40 steps of 32 samples", "2 evaluations of 500", "optimizer", "peak", "--recompute", "in all"):
        assert words in text, text
    assert not (directory / "run").exists()


def test_options_are_those_of_train(directory):
    need(DATA)
    out = directory / "run"
    succeed("train", *CLASSIFICATION, "--output", out, "--recompute", *NEVER_SEEN)
    before = sorted(path.name for path in out.iterdir())
    forecast = plan("--config", out / "config.toml", "--no-time")  # --output is there already
    assert forecast["steps"] == 40 and forecast["peak_memory_mb"] < 1.1 * metrics_of(out)["peak_memory_mb"]
    assert before == sorted(path.name for path in out.iterdir())
    fail(2, "plan", "--train", TRAIN, words=["--model"])
    fail(2, "plan", *CLASSIFICATION, "--lr", "fast", words=["--lr"])
    fail(2, "plan", *CLASSIFICATION, "--processes", 0, words=["--processes"])
    fail(2, "plan", *CLASSIFICATION, "--assert", "eval_exact_match>=1", words=["eval_exact_match"])
    fail(2, "plan", *CLASSIFICATION, "--freeze", 9, words=["--freeze"])
    fail(2, "plan", *CLASSIFICATION, "--max-length", 513, words=["--max-length"])
    fail(3, "plan", "--model", MODEL, "--train", directory / "absent.csv", words=["absent.csv"])
    fail(4, "plan", "--model", directory, "--train", TRAIN, words=["config.json"])


main(globals())
