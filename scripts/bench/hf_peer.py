#!/usr/bin/env python3
"""Trains with Hugging Face Trainer, as a peer to measure against.

Prints one JSON object: samples and real tokens per second of all steps but the first (--uncounted),
seconds from the start of the process to the first step, with --eval the accuracy, on a GPU the most
memory that torch reserved, versions. --predictions writes the predictions for --eval: a label a line, or
a JSON object of answers; --output keeps the trained model. Needs torch, transformers and accelerate.

  hf_peer.py --model DIR --data train.csv --text-column text --label-column category --rows 640
  hf_peer.py --model DIR --data train-v1.1.json --rows 160 --batch-size 8 --padding max
  hf_peer.py --model DIR --data train.csv --eval dev.csv --label-column category --lr 1e-4
  hf_peer.py --model DIR --data train-v1.1.json --device cuda --bf16 --compile --uncounted 20
  hf_peer.py --model DIR --data train.csv --masked --rows 640    run_mlm: a text a line, dynamic masks
  hf_peer.py --model DIR --make-shape base --output base-random/      a model of that shape, random
  hf_peer.py --model VOCABULARIES --make-shape base --architecture mpnet --output mpnet-random/
"""
import argparse
import json
import os
import tempfile
import time

from hf_data import (MODEL_INPUTS, accuracy, answers_of, classification_samples, encoded_rows, encoded_windows, longest_first,
                     masked_samples, question_samples, read_questions, read_rows,
                     seconds_since_start)
from hf_shapes import ARCHITECTURES, SHAPES, write_encoder, write_shape

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", help="CSV with a header, or SQuAD JSON")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--text-pair-column", default="")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--masked", action="store_true", help="masked language modelling on the texts")
    parser.add_argument("--rows", type=int, default=0, help="first N rows or questions; 0: all")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=0, help="default: 128; questions 384")
    parser.add_argument("--doc-stride", type=int, default=128)
    parser.add_argument("--padding", choices=["group", "dynamic", "max"], default="group",
                        help="group: batches of similar length, padded to their longest; max: to max-length")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--uncounted", type=int, default=1, help="first steps that make memory and kernels ready")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: the process's own time, with --threads 1, for a machine that others use too")
    parser.add_argument("--lr", type=float, default=5e-5)
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--max-steps", type=int, default=-1)
    parser.add_argument("--eval", help="CSV, or SQuAD JSON with --predictions, to evaluate on after training")
    parser.add_argument("--predictions", help="file to write what is predicted of --eval to")
    parser.add_argument("--eval-rows", type=int, default=0, help="first N rows; 0: all")
    parser.add_argument("--eval-batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--make-shape", choices=sorted(SHAPES))
    parser.add_argument("--architecture", choices=ARCHITECTURES, help="of --make-shape; --model: a folder of tokenizers")
    parser.add_argument("--output", help="directory to write the model to")
    return parser.parse_args()


def renamed(training_arguments, options):
    """Returns the arguments whose names differ between transformers 4 and 5."""
    by_length = options.padding == "group"
    if "group_by_length" in training_arguments.__dataclass_fields__:
        return {"warmup_ratio": 0.1, "group_by_length": by_length}
    return {"warmup_steps": 0.1, "train_sampling_strategy": "group_by_length" if by_length else "random"}


def evaluation_samples(options, tokenizer, labels):
    if not options.eval or options.predictions:
        return []
    rows = read_rows(options.eval)
    rows = rows[:options.eval_rows] if options.eval_rows else rows
    return longest_first(encoded_rows(options, tokenizer, rows, labels))


def write_predictions(options, trainer, tokenizer, labels):
    if options.data.endswith(".json"):
        questions = read_questions(options.eval, options.eval_rows)
        windows = encoded_windows(options, tokenizer, questions)
        names = [name for name in MODEL_INPUTS if name in windows]
        starts, ends = trainer.predict([{name: windows[name][i] for name in names}
                                        for i in range(len(windows["input_ids"]))]).predictions
        said = json.dumps(answers_of(questions, windows, starts, ends))
    else:
        rows = read_rows(options.eval)
        rows = rows[:options.eval_rows] if options.eval_rows else rows
        samples = encoded_rows(options, tokenizer, rows, None)
        said = "\n".join(labels[i] for i in trainer.predict(samples).predictions.argmax(-1))
    with open(options.predictions, "w", encoding="utf-8") as file:
        file.write(said)


def main():
    options = parse_arguments()
    if options.architecture:
        return write_encoder(options.architecture, options.make_shape, options.model, options.output)
    if options.make_shape:
        return write_shape(options.model, options.make_shape, options.output)
    import torch
    import transformers
    from transformers import (AutoModelForMaskedLM, AutoModelForQuestionAnswering, AutoModelForSequenceClassification,
                              AutoTokenizer, DataCollatorForLanguageModeling, DataCollatorWithPadding, Trainer,
                              TrainerCallback, TrainingArguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    transformers.set_seed(options.seed)
    transformers.logging.set_verbosity_error()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    labels = None
    collator = DataCollatorWithPadding(tokenizer)
    if options.masked:
        samples = masked_samples(options, tokenizer)
        model = AutoModelForMaskedLM.from_pretrained(options.model)
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    elif options.data.endswith(".json"):
        samples = question_samples(options, tokenizer)
        model = AutoModelForQuestionAnswering.from_pretrained(options.model)
    else:
        samples, labels = classification_samples(options, tokenizer)
        model = AutoModelForSequenceClassification.from_pretrained(options.model, num_labels=len(labels),
                                                                   id2label=dict(enumerate(labels)),
                                                                   label2id={label: i for i, label in enumerate(labels)})
    batches = []  # (samples, real tokens) of each step; the tokens stay on the device until the end

    class CountingTrainer(Trainer):
        def training_step(self, model, inputs, *more, **named):
            batches.append((len(inputs["attention_mask"]), inputs["attention_mask"].sum()))
            return super().training_step(model, inputs, *more, **named)

    def now():
        """Waits for the device's pending work and returns the time."""
        if options.device == "cuda":
            torch.cuda.synchronize()
        return time.process_time() if options.clock == "cpu" else time.perf_counter()

    class Clock(TrainerCallback):
        startup = counted_from = end = None
        steps = 0

        def on_step_begin(self, *_, **__):
            self.startup = self.startup or seconds_since_start()

        def on_step_end(self, _, state, *__, **___):
            self.steps += 1
            if self.steps == options.uncounted:
                self.counted_from = now()
            if self.steps == state.max_steps:
                self.end = now()

    clock = Clock()
    evaluation = {}
    eval_samples = evaluation_samples(options, tokenizer, labels)
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            scratch, use_cpu=options.device == "cpu", bf16=options.bf16, torch_compile=options.compile, per_device_train_batch_size=options.batch_size,
            per_device_eval_batch_size=options.eval_batch_size, max_steps=options.max_steps,
            dataloader_num_workers=4 if options.device == "cuda" else 0,
            num_train_epochs=options.epochs, learning_rate=options.lr, weight_decay=0.01, save_strategy="no", logging_strategy="no",
            report_to=[], disable_tqdm=True, seed=options.seed, **renamed(TrainingArguments, options))
        trainer = CountingTrainer(model=model, args=arguments, train_dataset=samples,
                                  data_collator=collator, compute_metrics=accuracy,
                                  callbacks=[clock])
        trainer.train()
        counted = batches[options.uncounted:]
        for name, value in (("group_by_length", False), ("train_sampling_strategy", "random")):
            if hasattr(arguments, name):
                setattr(arguments, name, value)  # grouping by length would also reorder the evaluation
        if eval_samples:
            metrics = trainer.evaluate(eval_samples)
            evaluation = {"eval_accuracy": metrics["eval_accuracy"], "eval_seconds": metrics["eval_runtime"],
                          "seconds_to_metrics": seconds_since_start()}
        if options.predictions:
            write_predictions(options, trainer, tokenizer, labels)
    if options.output:
        trainer.save_model(options.output)
        tokenizer.save_pretrained(options.output)
    # The speed of a long run: the start does not count.
    seconds = clock.end - clock.counted_from if counted else None
    print(json.dumps({
        "samples": len(samples), "steps": clock.steps,
        "samples_per_second": sum(count for count, _ in counted) / seconds if counted else None,
        "tokens_per_second": sum(int(tokens) for _, tokens in counted) / seconds if counted else None,
        "device_peak_memory_mb":
            torch.cuda.max_memory_reserved() / 2**20 if options.device == "cuda" else None,
        "startup_seconds": clock.startup, "threads": torch.get_num_threads(), **evaluation,
        "torch": torch.__version__, "transformers": transformers.__version__}))


main()
