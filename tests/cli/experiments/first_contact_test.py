"""What people bring along: option names of other programs, numbers as labels, other models.

The table of first_contact_table.py is tried line by line. first_contact.txt has the answers, and the messages that
docs/troubleshooting.md explains are among them. After a change of a message, write the answers anew:
FINETUNE_WRITE_PAGE=1 FINETUNE_BINARY=build/finetune python3 tests/cli/experiments/first_contact_test.py test_the_table
"""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "hostile"))
from first_contact_table import GROUPS, lay_out
from fixtures import MODEL, TRAIN, write
from harness import BINARY, PATIENCE, facts_of, fail, main, need, run, succeed
from hostile_files import replace_in_checkpoint
from terminal import Terminal

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
    "early_stopping_patience": "--early-stopping", "fp16": "--precision bf16",
    "bf16": "--precision bf16", "no_cuda": "--device cpu", "use_cpu": "--device cpu",
    "gradient_checkpointing": "--recompute", "ddp_timeout": "--comm-timeout", "ignore_mismatched_sizes": "--reinit-head",
    "text_column_name": "--text-column", "label_column_name": "--label-column", "task_name": "--task",
    "n_best_size": "--n-best", "null_score_diff_threshold": "--null-threshold", "hidden_dropout_prob": "--dropout",
    "version_2_with_negative": "--squad-version 2"}


def test_option_names_of_hugging_face(directory):
    for name, own in OPTIONS_OF_TRAIN.items():
        for given in (f"--{name}", f"--{name.replace('_', '-')}=1"):
            fail(2, "train", given, words=[f"--{name} is {own}"])
        succeeded = succeed("train", "--help", "all").out
        assert f"{own.split()[0]} " in succeeded, f"{own} is no option of train"
    for name in ("do_train", "load_best_model_at_end", "dataloader_num_workers"):
        fail(2, "train", f"--{name}", words=[f"--{name} is not needed here: "])
    fail(2, "train", "--report_to", "tensorboard", words=["--report_to is --tensorboard here"])
    fail(2, "train", "--report_to", "wandb", words=["--report_to is not available: ", "metrics.jsonl"])
    fail(2, "evaluate", "--test_file", "x", words=["--test_file is --data here"])
    fail(2, "predict", "--test_file", "x", words=["--test_file is --input here"])
    fail(2, "predict", "--per_device_eval_batch_size", "8", words=["is --batch-size here"])
    fail(2, "predict", "--learning_rate", "1", words=["unknown option"])  # predict has no option that corresponds
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
    # One value is not a number, so all are texts.
    write(data, data.read_text() + "other,none\n")
    succeed(*line, directory / "text")
    assert labels_of(directory / "text")[:4] == ["0", "1", "10", "11"]


def test_a_run_keeps_the_order_of_its_labels(directory):
    """A checkpoint with labels in text order, as earlier versions always wrote them."""
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


HERE = Path(__file__).resolve().parent
PAGE, ANSWERS = HERE.parents[2] / "docs/troubleshooting.md", HERE / "first_contact.txt"
# Sections of the page whose messages must be answers in the table, with their exit codes.
SECTIONS = {"Command line": {2}, "Models": {4}, "Data": {3}, "Warnings": {0}}


def answer_to(entry, directory):
    """The program's answer: its one error line, or the log line with the first word."""
    environment = {"HOME": str(directory), "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HOME": "",
                   "XDG_CACHE_HOME": ""}
    shutil.rmtree(directory / "run", ignore_errors=True)
    result = run(*shlex.split(entry.command), stdin=entry.stdin, env=environment, cwd=directory)
    lines = result.err.splitlines()
    assert result.code == entry.code, (entry, result)
    if entry.code == 0:
        said = [line for line in lines if entry.words[0] in line]
        assert len(said) == 1, (entry, result)
    else:
        assert len(lines) == 1 and lines[0].startswith("finetune: error: ") and result.out == "", (entry, result)
        said = lines
        assert not (directory / "run").exists(), entry
    for word in entry.words:
        assert word in said[0], (word, entry, result)
    return said[0].replace(str(directory), "/home/you")


def text_of(answers):
    """Purpose, command, exit code and whole answer; N replaces what depends on the machine."""
    lines = []
    for title, entries in GROUPS:
        lines += [title, ""]
        for entry in entries:
            said = re.sub(r"\d+(\.\d+)?", "N", answers[entry.command]) if entry.volatile else answers[entry.command]
            lines += [f"# {entry.what}", f"$ finetune {entry.command}", f"exit code {entry.code}", said, ""]
    return "\n".join(lines)


def messages_of_page():
    """The exit codes of a section of the page, and the messages in its table's first column."""
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, text = section.split("\n", 1)
        if title in SECTIONS:
            found = re.findall(r"^\| `([^`]+)` \|", text, re.M)
            assert found and len(found) == text.count("\n| ") - 1, (title, found)
            yield SECTIONS[title], found


def test_the_table(directory):
    need("golden/tiny-bert-classification")
    lay_out(directory)
    entries = [entry for _, group in GROUPS for entry in group]
    assert len({entry.command for entry in entries}) == len(entries) >= 40
    answers = {entry.command: answer_to(entry, directory) for entry in entries}
    # Attempts that need a terminal are below: the progress line, and waiting for input.
    assert {entry.bug for entry in entries if entry.bug} == set(range(1, 15)) - {1, 10}
    text = text_of(answers)
    if os.environ.get("FINETUNE_WRITE_PAGE"):
        ANSWERS.write_text(text, encoding="utf-8")
    assert ANSWERS.read_text(encoding="utf-8") == text, "first_contact.txt is not what the program says"
    count = 0
    for codes, messages in messages_of_page():
        given = [answers[entry.command] for entry in entries if entry.code in codes]
        for message in messages:
            count += 1
            assert any(message in answer for answer in given), f"docs/troubleshooting.md: no answer has '{message}'"
    assert count >= 30, count


def test_progress_fits_the_terminal(directory):
    """The trial's first finding: at 80 columns each drawing became a new row."""
    need("golden/tiny-bert-classification")
    lay_out(directory)
    line = ["train", "--model", directory / "model", "--train", directory / "train.csv", "--label-column", "category",
            "--reinit-head", "--max-steps", 60, "--output", directory / "run"]
    terminal = Terminal([BINARY, *map(str, line)], 80)
    assert terminal.end() == 0, terminal.text
    assert "step 60/60" in terminal.text
    rows = [row for row in terminal.screen.rows if row.startswith("step ")]
    assert len(rows) <= 1 and not any(row.strip() == "remaining 0" for row in terminal.screen.rows), terminal.screen.rows


def test_waiting_for_input_is_no_work(directory):
    """The trial's tenth finding: 2 rows in 3.88 s, nearly all of it waiting for input."""
    need("golden/tiny-bert-classification")
    command = [BINARY, "predict", "--model", MODEL, "--input", "-", "--output", "-"]
    start = time.time()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        time.sleep(2)
        _, log = process.communicate("text\nPIZZA\nTAXI\n", timeout=PATIENCE)
    # The pipe was empty for 2 s, of which the start takes at most 1 s, so at least 1 s was waiting.
    assert process.returncode == 0, log
    assert float(re.search(r"predicted 2 rows in ([\d.]+) s", log)[1]) < time.time() - start - 1, log


def test_amounts_as_labels(directory):
    need("golden/tiny-bert-classification")
    lay_out(directory)
    line = ["train", "--model", MODEL, "--reinit-head", "--max-steps", 2, "--save-every", 1, "--quiet"]
    amounts = ["--train", directory / "train.csv", "--label-column", "amount"]
    # They are learnt as numbers; a few distinct ones may be grades.
    succeed(*line, *amounts, "--regression", "--output", directory / "numbers")
    grades = write(directory / "grades.csv", "text,label\n" + "".join(f"word {i},{i % 11 / 2:.1f}\n" for i in range(44)))
    assert "warning" not in succeed(*line[:-1], "--train", grades, "--output", directory / "grades").err
    # Some hundred prices, several rows each, are unusual but possible.
    prices = write(directory / "prices.csv", "text,label\n" + "".join(f"word {i},{i % 120 + 0.99}\n" for i in range(600)))
    log = succeed(*line[:-1], "--train", prices, "--output", directory / "prices").err
    assert "120 different values in 600 rows" in log and "warning: " in log and "--regression" in log, log
    # Euro signs, thousands separators, currencies.
    for form in ("{},99", "{} 000.50", "${}.10", "-{}.05", "{}.00 EUR"):
        euros = write(directory / "euros.csv", "text;label\n" + "".join(f"word {i};{form.format(i)}\n" for i in range(30)))
        fail(3, *line, "--train", euros, "--output", directory / "euros", words=["'label'", "amounts are not classes"])
    assert not (directory / "euros").exists()


main(globals())
