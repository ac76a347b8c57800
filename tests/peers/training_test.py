"""Twenty steps of training beside a loop of torch.

AdamW, schedule and clipping of Hugging Face's Trainer, dropout 0. The options and shapes here are those
that the golden trajectories do not have."""
import json

import torch
import transformers
from peer import random_model, sample_rows, write_csv

from harness import main, steps_of, succeed

ROWS, BATCH, EPOCHS, RATE = 37, 8, 4, 5e-4  # 5 steps an epoch, the last of 5 rows
STEPS = EPOCHS * -(-ROWS // BATCH)
LOSS, NORM = 2e-5, 1e-4  # relative; rounding grows with the steps


def parameter_groups(model, decay, layer_decay):
    top = model.config.num_hidden_layers + 1
    keep = set(transformers.trainer_pt_utils.get_parameter_names(
        model, [torch.nn.LayerNorm], ["bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]))
    for name, parameter in model.named_parameters():
        layer = 0 if ".embeddings." in name else int(name.split(".")[3]) + 1 if ".layer." in name else top
        yield {"params": [parameter], "lr": RATE * layer_decay ** (top - layer),
               "weight_decay": decay if name in keep else 0.0}


def freeze(model, layers):
    """layers: None, or the number of frozen encoder layers (embeddings included)."""
    if layers is None:
        return
    for name, parameter in model.named_parameters():
        if ".embeddings." in name or (".layer." in name and int(name.split(".")[3]) < layers):
            parameter.requires_grad_(False)


def reference(model, batches, loss_of, schedule="linear", warmup=2, decay=0.01, clip=1.0, layer_decay=1.0,
              frozen=None):
    """[(loss, gradient norm)] of each step; `batches` is repeated once per epoch."""
    model.train()
    freeze(model, frozen)
    groups = [g for g in parameter_groups(model, decay, layer_decay) if g["params"][0].requires_grad]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-8)
    scheduler = transformers.get_scheduler(schedule, optimizer, num_warmup_steps=warmup, num_training_steps=STEPS)
    steps = []
    for _ in range(EPOCHS):
        for batch in batches:
            loss = loss_of(model, batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(
                [p for p in model.parameters() if p.requires_grad], clip if clip > 0 else float("inf"))
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            steps.append((loss.item(), norm.item()))
    return steps


def compare(directory, model, expected, data, *options):
    run = directory / "run"
    succeed("train", "--model", model, "--train", data, "--output", run, "--batch-size", BATCH, "--epochs", EPOCHS,
            "--lr", RATE, "--dropout", 0, "--no-shuffle", "--precision", "fp32", "--warmup-steps", 2, *options)
    steps = steps_of(run)
    assert len(steps) == STEPS == len(expected), (len(steps), len(expected))
    assert len({round(loss, 4) for loss, _ in expected}) > STEPS / 2, "the reference does not move"
    for ours, (loss, norm) in zip(steps, expected):
        assert abs(ours["loss"] - loss) <= LOSS * abs(loss), (ours, loss)
        assert abs(ours["grad_norm"] - norm) <= NORM * abs(norm), (ours, norm)


def encode(tokenizer, first, second=None, length=64):
    return tokenizer(first, second, truncation=True, max_length=length, padding=True, return_tensors="pt")


def batches_of(tokenizer, first, second, targets, length=64):
    return [(encode(tokenizer, first[i:i + BATCH], second[i:i + BATCH] if second else None, length), targets[i:i + BATCH])
            for i in range(0, len(first), BATCH)]


def texts(pairs=False):
    rows = sample_rows("toronto-train.csv", 2 * ROWS)
    first = [row["text"] for row in rows[:ROWS]]
    first[4] += " [PAD] [PAD]"  # whose word row does not learn
    return first, [row["text"] for row in rows[ROWS:]] if pairs else None


NAMES = ["airport", "bridge", "canal", "dock", "elevator"]


def classes():
    return [(i * i + i // 3) % 5 if i % 4 else 0 for i in range(ROWS)]  # uneven on purpose


def cross_entropy(weight=None, smoothing=0.0):
    def loss(model, batch):
        inputs, labels = batch
        rows = torch.nn.functional.cross_entropy(model(**inputs).logits, torch.tensor(labels), reduction="none",
                                                 label_smoothing=smoothing)
        weights = torch.ones(len(labels)) if weight is None else weight[torch.tensor(labels)]
        return (rows * weights).sum() / weights.sum()  # torch's own `weight` would weight the smoothed labels
    return loss


def single_label(directory, act, *options, pairs=False, weight=None, smoothing=0.0, shape=None, length=64, **loop):
    model, tokenizer = random_model(directory / "model", NAMES, "single_label_classification", hidden_act=act,
                                    **(shape or {}))
    first, second = texts(pairs)
    labels = classes()
    data = write_csv(directory / "train.csv", ["text", "other", "label"],
                     [(a, b, NAMES[c]) for a, b, c in zip(first, second or [""] * ROWS, labels)])
    expected = reference(model, batches_of(tokenizer, first, second, labels, length), cross_entropy(weight, smoothing),
                         **loop)
    compare(directory, directory / "model", expected, data, "--text-column", "text", "--max-length", length, *options,
            *(["--text-pair-column", "other"] if pairs else []))


def test_relu_pairs_cut_longest_first(directory):
    single_label(directory, "relu", pairs=True, length=24)


def test_gelu_new_class_weights(directory):
    counts = torch.bincount(torch.tensor(classes()), minlength=5)
    single_label(directory, "gelu_new", "--class-weights", "balanced", weight=ROWS / (5.0 * counts))


def test_silu_label_smoothing(directory):
    single_label(directory, "silu", "--label-smoothing", 0.1, smoothing=0.1)


def test_tanh_class_weights_and_label_smoothing(directory):
    counts = torch.bincount(torch.tensor(classes()), minlength=5)
    single_label(directory, "tanh", "--class-weights", "balanced", "--label-smoothing", 0.2,
                 weight=ROWS / (5.0 * counts), smoothing=0.2)


def test_gelu_cosine_without_clipping(directory):
    single_label(directory, "gelu", "--schedule", "cosine", "--max-grad-norm", 0, schedule="cosine", clip=0)


def test_constant_schedule_small_clip(directory):
    single_label(directory, "gelu", "--schedule", "constant", "--max-grad-norm", 0.25, "--weight-decay", 0.3,
                 schedule="constant_with_warmup", clip=0.25, decay=0.3)


def test_polynomial_layer_decay(directory):
    single_label(directory, "relu", "--schedule", "polynomial", "--layer-lr-decay", 0.7, schedule="polynomial",
                 layer_decay=0.7)


def test_frozen_embeddings(directory):
    single_label(directory, "gelu", "--freeze", "embeddings", frozen=0)


def test_frozen_layers(directory):
    single_label(directory, "gelu", "--freeze", 2, frozen=2)


def test_one_layer_of_odd_heads(directory):
    single_label(directory, "gelu", shape={"hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 77,
                                           "num_hidden_layers": 1, "layer_norm_eps": 1e-5})


def test_micro_batches_and_shards(directory):
    single_label(directory, "silu", "--micro-batch-tokens", 90, "--virtual-shards", 3)


def test_multi_label(directory):
    model, tokenizer = random_model(directory / "model", NAMES, "multi_label_classification", hidden_act="gelu_new")
    first, _ = texts()
    sets = [[c for c in range(5) if (i * 7 + c * 3) % 5 < 2 or i == c] if i % 6 else [] for i in range(ROWS)]
    targets = [[float(c in s) for c in range(5)] for s in sets]
    data = write_csv(directory / "train.csv", ["text", "label"],
                     [(text, "|".join(NAMES[c] for c in s)) for text, s in zip(first, sets)])

    def loss(model, batch):
        return model(**batch[0], labels=torch.tensor(batch[1])).loss

    expected = reference(model, batches_of(tokenizer, first, None, targets), loss)
    compare(directory, directory / "model", expected, data, "--multi-label", "|", "--max-length", 64)


def test_regression(directory):
    model, tokenizer = random_model(directory / "model", ["LABEL_0"], "regression", hidden_act="relu")
    first, _ = texts()
    targets = [((i * 37) % 11 - 5) / 4 for i in range(ROWS)]
    data = write_csv(directory / "train.csv", ["text", "score"], list(zip(first, targets)))

    def loss(model, batch):
        return model(**batch[0], labels=torch.tensor(batch[1])).loss

    expected = reference(model, batches_of(tokenizer, first, None, targets), loss)
    compare(directory, directory / "model", expected, data, "--regression", "--no-standardize",
            "--label-column", "score", "--max-length", 64)


def test_answers(directory):
    model, tokenizer = random_model(directory / "model", hidden_act="silu", max_position_embeddings=96)
    rows = []
    for i, row in enumerate(sample_rows("toronto-train.csv", ROWS)):
        words = row["text"].split()
        answer = words[i % len(words)]
        rows.append({"id": str(i), "title": "", "question": " ".join(words[: 1 + i % 4]), "context": row["text"],
                     "answers": {"text": [answer], "answer_start": [row["text"].index(answer)]}})
    data = directory / "train.json"
    data.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [
        {"context": r["context"], "qas": [{"id": r["id"], "question": r["question"], "answers": [
            {"text": r["answers"]["text"][0], "answer_start": r["answers"]["answer_start"][0]}]}]} for r in rows]}]}))

    def loss(model, batch):
        inputs, places = batch
        out = model(**inputs)
        starts = torch.tensor([inputs.char_to_token(i, begin, 1) for i, (begin, _) in enumerate(places)])
        ends = torch.tensor([inputs.char_to_token(i, end - 1, 1) for i, (_, end) in enumerate(places)])
        padding = inputs["attention_mask"] == 0  # ours covers a window's real tokens only
        return sum(torch.nn.functional.cross_entropy(logits.masked_fill(padding, float("-inf")), places)
                   for logits, places in ((out.start_logits, starts), (out.end_logits, ends))) / 2

    places = [(r["answers"]["answer_start"][0], r["answers"]["answer_start"][0] + len(r["answers"]["text"][0]))
              for r in rows]
    batches = batches_of(tokenizer, [r["question"] for r in rows], [r["context"] for r in rows], places, 96)
    compare(directory, directory / "model", reference(model, batches, loss), data, "--task", "qa", "--max-length", 96,
            "--doc-stride", 16)


main(globals())
