#!/usr/bin/env python3
"""Times Hugging Face's Trainer.evaluate and Trainer.predict, as peers to measure against.

Prints one JSON object: sequences per second of both as the Trainer reports them, at the batch size that
evaluates fastest; the loss; versions; seconds from the process's start until all is imported, and until model
and tokens are ready; on a GPU the most memory that torch reserved. Two batches warm up each call.

  hf_inference.py --model run/model --data dev.csv --label-column category --batch-sizes 8,32,64
  hf_inference.py --model run/model --data dev-v1.1.json --bf16
  hf_inference.py --model run/model --data dev-v1.1.json --batch-sizes 64 --only predict
"""
import argparse
import json
import os
import tempfile

from hf_data import accuracy, encoded_rows, longest_first, question_samples, read_rows, seconds_since_start

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a fine-tuned directory")
    parser.add_argument("--data", required=True, help="CSV with a header, or SQuAD JSON")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--batch-sizes", default="64")
    parser.add_argument("--max-length", type=int, default=0, help="default: 128; questions 384")
    parser.add_argument("--doc-stride", type=int, default=128)
    parser.add_argument("--bf16", action="store_true", help="bf16_full_eval")
    parser.add_argument("--only", choices=["evaluate", "predict"],
                        help="this alone and once, without warm-up, as a process of a user does")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--threads", type=int, default=0)
    parser.set_defaults(rows=0, padding="dynamic")
    return parser.parse_args()


def main():
    options = parse_arguments()
    import torch
    import transformers
    from transformers import (AutoModelForQuestionAnswering, AutoModelForSequenceClassification, AutoTokenizer,
                              DataCollatorWithPadding, Trainer, TrainingArguments)
    started = seconds_since_start()
    if options.threads:
        torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    questions = options.data.endswith(".json")
    if questions:
        model = AutoModelForQuestionAnswering.from_pretrained(options.model)
        samples = question_samples(options, tokenizer)
        targets = ("start_positions", "end_positions")
    else:
        model = AutoModelForSequenceClassification.from_pretrained(options.model)
        labels = [model.config.id2label[i] for i in range(model.config.num_labels)]
        samples = encoded_rows(options, tokenizer, read_rows(options.data), labels)
        targets = ("labels",)
    samples = longest_first(samples)
    unlabelled = [{name: value for name, value in sample.items() if name not in targets} for sample in samples]

    def trainer(batch_size, scratch):
        arguments = TrainingArguments(scratch, use_cpu=options.device == "cpu", bf16_full_eval=options.bf16,
                                      torch_compile=options.compile, label_names=list(targets),
                                      dataloader_num_workers=4 if options.device == "cuda" else 0,
                                      per_device_eval_batch_size=batch_size, report_to=[], disable_tqdm=True)
        return Trainer(model=model, args=arguments, data_collator=DataCollatorWithPadding(tokenizer),
                       compute_metrics=None if questions else accuracy)

    ready = seconds_since_start()
    with tempfile.TemporaryDirectory() as scratch:
        tried = {}
        for size in map(int, options.batch_sizes.split(",")):
            own = trainer(size, scratch)
            if options.only == "predict":
                tried[size] = {"eval_samples_per_second": None, "eval_loss": None}
                continue
            if not options.only:
                own.evaluate(samples[:2 * size])
            tried[size] = own.evaluate(samples)
        best = max(tried, key=lambda size: tried[size]["eval_samples_per_second"] or 0)
        predicted = {}
        if options.only != "evaluate":
            own = trainer(best, scratch)
            if not options.only:
                own.predict(unlabelled[:2 * best])
            predicted = own.predict(unlabelled).metrics
    lengths = [len(sample["input_ids"]) for sample in samples]
    print(json.dumps({
        "started": started, "ready": ready,
        "device_peak_memory_mb": torch.cuda.max_memory_reserved() / 2**20 if options.device == "cuda" else None,
        "sequences": len(samples), "tokens": sum(lengths), "squared_lengths": sum(n * n for n in lengths),
        "batch_size": best, "evaluate": tried[best]["eval_samples_per_second"],
        "predict": predicted.get("test_samples_per_second"), "loss": tried[best]["eval_loss"],
        "accuracy": tried[best].get("eval_accuracy"),
        "tried": {size: metrics["eval_samples_per_second"] for size, metrics in tried.items()},
        "threads": torch.get_num_threads(), "torch": torch.__version__, "transformers": transformers.__version__}))


main()
