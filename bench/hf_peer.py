#!/usr/bin/env python3
"""One training epoch with Hugging Face Trainer on the CPU, as a peer to measure against.

Prints one JSON object: samples and real tokens per second of all steps but the
first, seconds from the start of
the process to the first step, versions. Needs torch, transformers and accelerate.

  hf_peer.py --model DIR --data train.csv --text-column text --label-column category --rows 640
  hf_peer.py --model DIR --data train-v1.1.json --rows 160 --batch-size 8 --padding max
  hf_peer.py --model DIR --make-shape base --output base-random/      a model of that shape, random
"""
import argparse
import csv
import json
import os
import tempfile
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

SHAPES = {"base": (12, 768, 12, 3072), "large": (24, 1024, 16, 4096)}


def seconds_since_start():
    """Of this process, the interpreter's own start included."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        started = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", help="CSV with a header, or SQuAD JSON")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--rows", type=int, default=0, help="first N rows or questions; 0: all")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=0, help="default: 128; questions 384")
    parser.add_argument("--doc-stride", type=int, default=128)
    parser.add_argument("--padding", choices=["group", "dynamic", "max"], default="group",
                        help="group: batches of similar length, padded to their longest; max: to max-length")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--make-shape", choices=sorted(SHAPES))
    parser.add_argument("--output")
    return parser.parse_args()


def make_shape(options):
    """Writes a model directory with the tokenizer of --model and random weights of another shape."""
    from transformers import AutoConfig, AutoTokenizer, BertModel
    config = AutoConfig.from_pretrained(options.model)
    (config.num_hidden_layers, config.hidden_size, config.num_attention_heads,
     config.intermediate_size) = SHAPES[options.make_shape]
    BertModel(config).save_pretrained(options.output)
    AutoTokenizer.from_pretrained(options.model).save_pretrained(options.output)


def classification_samples(options, tokenizer):
    with open(options.data, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = rows[:options.rows] if options.rows else rows
    labels = sorted({row[options.label_column] for row in rows})
    encoded = tokenizer([row[options.text_column] for row in rows], truncation=True,
                        max_length=options.max_length or 128,
                        padding="max_length" if options.padding == "max" else False)
    samples = [{name: values[i] for name, values in encoded.items()} for i in range(len(rows))]
    for sample, row in zip(samples, rows):
        sample["labels"] = labels.index(row[options.label_column])
    return samples, len(labels)


def question_samples(options, tokenizer):
    """Windows as in Hugging Face's run_qa example: an answer outside a window points at [CLS]."""
    with open(options.data, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    questions = [(q["question"].lstrip(), paragraph["context"], q["answers"])
                 for article in articles for paragraph in article["paragraphs"] for q in paragraph["qas"]]
    questions = questions[:options.rows] if options.rows else questions
    encoded = tokenizer([q[0] for q in questions], [q[1] for q in questions], truncation="only_second",
                        max_length=options.max_length or 384, stride=options.doc_stride,
                        return_overflowing_tokens=True, return_offsets_mapping=True,
                        padding="max_length" if options.padding == "max" else False)
    samples = []
    for i, question in enumerate(encoded["overflow_to_sample_mapping"]):
        start = end = 0
        answers = questions[question][2]
        if answers:
            first = answers[0]["answer_start"]
            last = first + len(answers[0]["text"])
            places = [(t, *encoded["offset_mapping"][i][t])
                      for t, part in enumerate(encoded.sequence_ids(i)) if part == 1]
            if places and places[0][1] <= first and places[-1][2] >= last:
                start = max(t for t, begin, _ in places if begin <= first)
                end = min(t for t, _, finish in places if finish >= last)
        samples.append({"input_ids": encoded["input_ids"][i], "token_type_ids": encoded["token_type_ids"][i],
                        "attention_mask": encoded["attention_mask"][i],
                        "start_positions": start, "end_positions": end})
    return samples


def main():
    options = parse_arguments()
    if options.make_shape:
        return make_shape(options)
    import torch
    import transformers
    from transformers import (AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoTokenizer,
                              DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    transformers.set_seed(42)
    transformers.logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    if options.data.endswith(".json"):
        samples = question_samples(options, tokenizer)
        model = AutoModelForQuestionAnswering.from_pretrained(options.model)
    else:
        samples, classes = classification_samples(options, tokenizer)
        model = AutoModelForSequenceClassification.from_pretrained(options.model, num_labels=classes)
    pad = DataCollatorWithPadding(tokenizer)
    batches = []  # (samples, real tokens) in the order of the steps

    def collate(chosen):
        batch = pad(chosen)
        batches.append((len(chosen), int(batch["attention_mask"].sum())))
        return batch

    class Clock(TrainerCallback):
        startup = None
        ends = []

        def on_step_begin(self, *_, **__):
            self.startup = self.startup or seconds_since_start()

        def on_step_end(self, *_, **__):
            self.ends.append(time.perf_counter())

    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, use_cpu=True, bf16=options.bf16, per_device_train_batch_size=options.batch_size,
            num_train_epochs=1, learning_rate=options.lr, warmup_ratio=0.1, weight_decay=0.01,
            group_by_length=options.padding == "group", save_strategy="no", logging_strategy="no",
            report_to=[], disable_tqdm=True, seed=42)
        Trainer(model=model, args=arguments, train_dataset=samples, data_collator=collate,
                callbacks=[clock]).train()
    # The first step makes memory and kernels ready; what a long run sees counts.
    seconds = clock.ends[-1] - clock.ends[0]
    counted = batches[1:len(clock.ends)]
    print(json.dumps({
        "samples": len(samples), "steps": len(clock.ends),
        "samples_per_second": sum(count for count, _ in counted) / seconds,
        "tokens_per_second": sum(tokens for _, tokens in counted) / seconds,
        "startup_seconds": clock.startup, "threads": torch.get_num_threads(),
        "torch": torch.__version__, "transformers": transformers.__version__}))


main()
