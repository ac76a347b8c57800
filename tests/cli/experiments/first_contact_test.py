"""What people bring along: option names of other programs, numbers as labels, other models."""
import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hostile"))
from fixtures import MODEL, TRAIN, write
from harness import facts_of, fail, main, need, succeed
from hostile_files import replace_in_checkpoint

DATA = "golden/trajectory-classification-train.csv"

OPTIONS_OF_TRAIN = {
    "learning_rate": "--lr", "num_train_epochs": "--epochs", "per_device_train_batch_size": "--batch-size",
    "per_device_eval_batch_size": "--micro-batch-tokens", "gradient_accumulation_steps": "--batch-size",
    "lr_scheduler_type": "--schedule", "model_name_or_path": "--model", "train_file": "--train",
    "validation_file": "--eval", "output_dir": "--output", "overwrite_output_dir": "--overwrite",
    "resume_from_checkpoint": "--resume", "max_seq_length": "--max-length", "label_smoothing_factor": "--label-smoothing",
    "save_steps": "--save-every", "save_strategy": "--save-every", "eval_steps": "--eval-every",
    "eval_strategy": "--eval-every", "evaluation_strategy": "--eval-every", "logging_steps": "--log-every",
    "save_total_limit": "--keep-checkpoints", "metric_for_best_model": "--best-metric",
    "early_stopping_patience": "--early-stopping", "report_to": "--tensorboard", "fp16": "--precision bf16",
    "bf16": "--precision bf16", "no_cuda": "--device cpu", "use_cpu": "--device cpu",
    "gradient_checkpointing": "--recompute", "ddp_timeout": "--comm-timeout", "ignore_mismatched_sizes": "--reinit-head",
    "text_column_name": "--text-column", "label_column_name": "--label-column", "task_name": "--task",
    "n_best_size": "--n-best", "null_score_diff_threshold": "--null-threshold", "hidden_dropout_prob": "--dropout",
    "version_2_with_negative": "--squad-version 2"}


def test_option_names_of_hugging_face(directory):
    for name, own in OPTIONS_OF_TRAIN.items():
        for given in (f"--{name}", f"--{name.replace('_', '-')}=1"):
            fail(2, "train", given, words=[f"--{name} is {own}"])
        succeeded = succeed("train", "--help").out
        assert f"{own.split()[0]} " in succeeded, f"{own} is no option of train"
    for name in ("do_train", "load_best_model_at_end", "dataloader_num_workers"):
        fail(2, "train", f"--{name}", words=[f"--{name} is not needed here: "])
    fail(2, "evaluate", "--test_file", "x", words=["--test_file is --data here"])
    fail(2, "predict", "--test_file", "x", words=["--test_file is --input here"])
    fail(2, "predict", "--per_device_eval_batch_size", "8", words=["is --batch-size here"])
    fail(2, "predict", "--learning_rate", "1", words=["unknown option"])  # no option there stands for it
    config = write(directory / "config.toml", "epochs = 1\nlearning_rate = 1e-4\n")
    fail(2, "train", "--config", config, words=["config.toml:2", "--learning_rate is --lr here"])


def numbered(directory):
    lines = [f"word{i % 12} again,{i % 12}" for i in range(48)]
    return write(directory / "numbers.csv", "text,label\n" + "\n".join(lines) + "\n")


def labels_of(out):
    names = json.loads((out / "model/config.json").read_text())["id2label"]
    return [names[str(i)] for i in range(len(names))]


def test_labels_that_are_numbers(directory):
    need(DATA)
    data = numbered(directory)
    line = ["train", "--model", MODEL, "--train", data, "--reinit-head", "--max-steps", 4, "--save-every", 2,
            "--keep-checkpoints", 9, "--quiet", "--output"]
    out = directory / "run"
    succeed(*line, out)
    assert labels_of(out) == [str(i) for i in range(12)]
    succeed(*line, directory / "again", "--resume")
    assert facts_of(directory / "again")["weights_sha256"] == facts_of(out)["weights_sha256"]
    # One that is no number, and all are text.
    write(data, data.read_text() + "other,none\n")
    succeed(*line, directory / "text")
    assert labels_of(directory / "text")[:4] == ["0", "1", "10", "11"]


def test_a_run_keeps_the_order_of_its_labels(directory):
    """A checkpoint whose labels are in order of text, as versions that knew no other have written it."""
    need(DATA)
    names = [b"-1", b"-2", b"-3", b"-4", b"-5"]
    lines = [f"word{i % 5} again,-{i % 5 + 1}" for i in range(40)]
    data = write(directory / "numbers.csv", "text,label\n" + "\n".join(lines) + "\n")
    out = directory / "run"
    line = ["train", "--model", MODEL, "--train", data, "--reinit-head", "--max-steps", 4, "--save-every", 2,
            "--keep-checkpoints", 9, "--quiet", "--output", out]
    succeed(*line)
    assert labels_of(out) == ["-5", "-4", "-3", "-2", "-1"]
    checkpoint = out / "checkpoints/step-00000002.h5"
    for path in (out / "metrics.json", out / "checkpoints/step-00000004.h5"):
        path.unlink()
    replace_in_checkpoint(checkpoint, b"".join(reversed(names)), b"".join(names))
    succeed(*line, "--resume")
    assert labels_of(out) == ["-1", "-2", "-3", "-4", "-5"]


def test_models_of_other_kinds(directory):
    need(DATA)
    adapter = directory / "adapter"
    adapter.mkdir()
    write(adapter / "adapter_config.json", '{"peft_type": "LORA", "base_model_name_or_path": "bert-base-uncased"}')
    write(adapter / "adapter_model.safetensors", b"\0" * 16)
    onnx = directory / "onnx"
    onnx.mkdir()
    shutil.copy(MODEL / "config.json", onnx)
    write(onnx / "model.onnx", b"\x08\x07")
    gguf = write(directory / "bert.gguf", b"GGUF\x03\0\0\0")
    nameless = write(directory / "bert.bin", b"GGUF\x03\0\0\0")
    for model, words in ((adapter, ["PEFT adapter", "merge_and_unload"]), (onnx, ["model.onnx", "ONNX", "config.json"]),
                         (onnx / "model.onnx", ["ONNX", "config.json"]), (gguf, ["GGUF", "config.json"]),
                         (nameless, ["bert.bin", "GGUF"])):
        for line in (["train", "--train", TRAIN, "--output", directory / "out"],
                     ["predict", "--input", TRAIN, "--output", "-"]):
            fail(4, *line, "--model", model, words=words)
    assert not (directory / "out").exists()


main(globals())
