"""A new user's first attempts and their results: a table for a test and docs/troubleshooting.md."""
import gzip
import json
import shutil
from collections import namedtuple

from fixtures import MODEL, copied, read_safetensors, write, write_safetensors

# bug: the number in the trial that this came from; words: in the one line of an error, or in the log where the exit
# code is 0. A command is run in a directory with the files that lay_out() makes. stdin: what is piped in.
Try = namedtuple("Try", "what command code words bug stdin volatile", defaults=(None, None, False))

RUN = "--label-column category --reinit-head --max-steps 1 --output run"
TRAIN = f"train --model model --train train.csv {RUN}"

OPTIONS = [
    Try("no options at all", "train", 2, ["--model is required"]),
    Try("no output directory", "train --model model --train train.csv", 2, ["--output is required"]),
    Try("names of Hugging Face's Trainer", "train --learning_rate 2e-5", 2, ["--learning_rate is --lr here"]),
    Try("the same, with another meaning", "train --save_steps 500", 2, ["--save_steps is --save-every"]),
    Try("the same, not needed here", "train --do_train", 2, ["--do_train is not needed here"]),
    Try("a name of spaCy's", "train --paths.dev dev.csv", 2, ["--dev is --eval here"]),
    Try("one of scikit-learn's", "train --test_size 0.2", 2, ["--test_size is --eval-fraction here"]),
    Try("one of LoRA's", "train --lora_r 8", 2, ["--lora_r is not available", "all weights are trained"]),
    Try("the file, by another command's name", "predict --data train.csv", 2, ["--data is --input here"]),
    Try("a command of another program", "fit train.csv", 2, ["'fit' is finetune train here"]),
    Try("files without their options", "predict trained dev.csv", 2, ["type: finetune predict --model trained --input dev.csv"]),
    Try("a text in place of a file", "predict 'HOME DEPOT'", 2, ["type: echo 'HOME DEPOT' | finetune predict"]),
    Try("a mistyped command", "trian --model model", 2, ["trian", "did you mean train?"]),
    Try("a mistyped option", "train --epoch 3", 2, ["--epoch", "did you mean --epochs?"]),
    Try("a value that is no number", "train --lr 2e-5,3e-5", 2, ["--lr", "'2e-5,3e-5' is not a number"]),
    Try("a value out of its range", f"{TRAIN} --dropout 1.5", 2, ["--dropout 1.5", "below 1"]),
    Try("an unknown word", "train --schedule cosinus", 2, ["--schedule", "cosinus", "cosine"]),
    Try("two ways to hold out", f"{TRAIN} --eval dev.csv --eval-fraction 0.1", 2, ["exclude each other"]),
    Try("a metric that there is not", f"{TRAIN} --eval dev.csv --best-metric f1", 2, ["--best-metric f1", "eval_f1_macro"]),
    Try("a gate with a mistyped metric", f"{TRAIN} --eval dev.csv --assert eval_acuracy>=0.9", 2,
        ["eval_acuracy", "did you mean eval_accuracy?"]),
    Try("an output that exists", "train --model model --train train.csv --output old", 2, ["--output old", "not empty"]),
    Try("longer texts than the model has positions for", f"{TRAIN} --max-length 4096", 2, ["--max-length 4096"]),
]

MODELS = [
    Try("a model's id on the hub, nothing downloaded", f"train --model bert-base-uncased --train train.csv {RUN}", 4,
        ["Hugging Face cache", "hf download bert-base-uncased config.json tokenizer.json"]),
    Try("an id under its older name", f"train --model org-model --train train.csv {RUN}", 4,
        ["but org/org-model; give that"]),
    Try("a download without weights", f"train --model org/org-model --train train.csv {RUN}", 4,
        ["has no weights", "hf download org/org-model"]),
    Try("an ONNX file", f"train --model m.onnx --train train.csv {RUN}", 4, ["m.onnx: is an ONNX model", "config.json"], 7),
    Try("a GGUF file", f"train --model bert.gguf --train train.csv {RUN}", 4, ["bert.gguf: is a GGUF file"]),
    Try("a PEFT adapter", f"train --model adapter --train train.csv {RUN}", 4, ["PEFT adapter", "merge_and_unload"]),
    Try("another architecture", f"train --model gpt2 --train train.csv {RUN}", 4, ["gpt2", "model_type"]),
    Try("an empty directory", f"train --model empty --train train.csv {RUN}", 4, ["has neither config.json"]),
    Try("a model with a head for other labels",
        "train --model model --train train.csv --label-column category --output run", 4,
        ["a head for other labels", "--reinit-head"]),
    Try("predicting with a model that was not trained", "predict --model headless --input train.csv --output -", 4,
        ["has no trained head"]),
]

DATA = [
    Try("a file that is not there", f"train --model model --train trian.csv {RUN}", 3, ["trian.csv"]),
    Try("the label's column not named", "train --model model --train train.csv --output run", 3,
        ["'label'", "--label-column", "category"]),
    Try("another text column", f"{TRAIN} --text-column texts", 3, ["'texts'", "text"]),
    Try("an Excel workbook", f"train --model model --train book.xlsx {RUN}", 3, ["book.xlsx", "Excel", "CSV"], 2),
    Try("a Parquet file", f"train --model model --train rows.parquet {RUN}", 3, ["rows.parquet", "Parquet"], 2),
    Try("a zip archive", f"train --model model --train rows.zip {RUN}", 3, ["rows.zip", "zip"], 2),
    Try("bytes that are not UTF-8", f"train --model model --train latin.csv {RUN}", 3, ["latin.csv:2", "--encoding"]),
    Try("a row without a text", f"train --model model --train gap.csv {RUN}", 3,
        ["gap.csv:3", "'text' is empty", "--skip-bad-rows"]),
    Try("a row that is too short", f"train --model model --train short.csv {RUN}", 3,
        ["short.csv:3", "3 values are expected"]),
    Try("one class alone", f"train --model model --train one.csv {RUN}", 3, ["one class alone"]),
    Try("evaluation labels that training lacks", f"{TRAIN} --eval other.csv", 3, ["'travel'", "--ignore-unknown-labels"]),
    Try("numbers expected, words found", f"{TRAIN} --regression", 3, ["train.csv:2", "not a finite number"]),
    Try("amounts as labels", "train --model model --train train.csv --label-column amount --reinit-head --output run", 3,
        ["'amount'", "amounts are not classes", "--regression"], 14),
    Try("no row that can be used", "predict --model trained --input bad.csv --output - --skip-bad-rows", 3,
        ["bad.csv:2", "no other row can be used"], 4),
    Try("a bank's CSV with semicolons", f"train --model model --train semicolon.csv {RUN}", 0, ["its values are between"], 3),
    Try("a compressed file", f"train --model model --train train.csv.gz {RUN}", 0, ["train: 48 rows"], 2),
    Try("an array in a .jsonl", f"train --model model --train array.jsonl {RUN}", 0, ["train: 48 rows"], 8),
    Try("spaces around a column's name", f"train --model model --train spaces.csv {RUN}", 0, ["train: 48 rows"], 11),
    Try("the same data for training and evaluation", f"{TRAIN} --eval train.csv", 0,
        ["warning: train.csv is training and evaluation data"], 13),
    Try("a copy of it", f"{TRAIN} --eval copy.csv", 0, ["warning: train.csv and copy.csv hold the same"], 13),
    Try("a column of texts as labels", "train --model model --train train.csv --label-column text --text-column category "
        "--reinit-head --max-steps 1 --output run", 0, ["warning: train.csv", "most have a single row"]),
    Try("labels that are numbers", "train --model model --train train.csv --label-column month --reinit-head "
        "--max-steps 1 --output run", 0, ["12 labels"], 6),
    Try("one row", "predict --model trained --input single.csv --output -", 0, ["predicted 1 row in"], 12, None, True),
    Try("a CSV through a pipe", "predict --model trained --input - --output -", 0, ["predicted 2 rows"], 9,
        "text,note\nPIZZA,a\nTAXI,b\n", True),
    Try("more checkpoints than the disk holds", f"{TRAIN} --max-steps 100000000 --save-every 1 --keep-checkpoints 100000000",
        4, ["MiB of disk", "MiB are free"], 5, None, True),
]
GROUPS = (("Options", OPTIONS), ("Models", MODELS), ("Data", DATA))


def rows():
    """48 transactions in 4 categories: text, category, amount, month."""
    names = ("food", "fuel", "rent", "tools")
    return [(f"SHOP {i % 7} {names[i % 4]} no {i}", names[i % 4], f"{3 + i * 7.31:.2f}", str(i % 12 + 1)) for i in range(48)]


def csv_of(lines, separator=","):
    return "".join(separator.join(line) + "\n" for line in [("text", "category", "amount", "month"), *lines])


def lay_out_models(directory):
    (directory / "model").symlink_to(MODEL)
    (directory / "trained").symlink_to(MODEL)
    for name in ("empty", "adapter", "gpt2", "old"):
        (directory / name).mkdir()
    write(directory / "adapter/adapter_config.json", '{"peft_type": "LORA"}')
    write(directory / "gpt2/config.json", '{"model_type": "gpt2"}')
    shutil.copy(MODEL / "model.safetensors", directory / "gpt2")
    write(directory / "old/notes.txt", "mine")
    write(directory / "m.onnx", b"\x08\x07")
    write(directory / "bert.gguf", b"GGUF\x03\0\0\0")
    headless = copied(MODEL, directory / "headless") / "model.safetensors"
    write_safetensors(headless, {name: tensor for name, tensor in read_safetensors(headless).items()
                                 if not name.startswith("classifier")})
    cached = directory / ".cache/huggingface/hub/models--org--org-model"
    (cached / "snapshots/0123abc").mkdir(parents=True)
    (cached / "refs").mkdir()
    write(cached / "refs/main", "0123abc")
    shutil.copy(MODEL / "config.json", cached / "snapshots/0123abc")


def lay_out(directory):
    """Creates the files that the commands name."""
    lay_out_models(directory)
    data, text = rows(), csv_of(rows())
    for name in ("train.csv", "copy.csv"):
        write(directory / name, text)
    write(directory / "dev.csv", csv_of(data[:12]))
    write(directory / "other.csv", csv_of([("AIR 1", "travel", "5", "1"), *data[:4]]))
    write(directory / "semicolon.csv", csv_of(data, ";"))
    write(directory / "train.csv.gz", gzip.compress(text.encode()))
    write(directory / "spaces.csv", text.replace("text,category", "text, category ", 1))
    write(directory / "array.jsonl", json.dumps([{"text": row[0], "category": row[1]} for row in data]))
    write(directory / "book.xlsx", b"PK\x03\x04\x14\0\x06\0xl/workbook.xml[Content_Types].xml")
    write(directory / "rows.zip", b"PK\x03\x04\x14\0\x06\0rows.csv")
    write(directory / "rows.parquet", b"PAR1\x15\x04\x15")
    write(directory / "latin.csv", "text,category\ncafé,food\n".encode("latin-1"))
    write(directory / "gap.csv", "text,category\nPIZZA,food\n,fuel\n")
    write(directory / "bad.csv", "text,category\ncafé,food\ncafés,fuel\n".encode("latin-1"))
    write(directory / "short.csv", "text,category,month\nPIZZA,food,1\nTAXI,fuel\n")
    write(directory / "one.csv", "text,category\nPIZZA,food\nBREAD,food\n")
    write(directory / "single.csv", "text\nPIZZA\n")
