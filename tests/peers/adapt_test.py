"""finetune adapt beside a loop of torch over transformers' class, with the same words hidden."""
import math
import shutil

import torch
import transformers
from peer import load, near, need_class, random_model, sample_rows, write_csv

from hidden_words import EVALUATION, hidden, replacement
from harness import GOLDEN, main, metrics_of, need, steps_of, succeed

ROWS, BATCH, EPOCHS, RATE = 37, 8, 4, 5e-4  # 5 steps an epoch, the last of 5 rows
STEPS = EPOCHS * -(-ROWS // BATCH)
LOSS, NORM = 2e-5, 1e-4  # relative; rounding grows with the steps


def inputs_of(tokenizer, texts, numbers, epoch, **masks):
    encoded = tokenizer(texts, truncation=True, max_length=64)["input_ids"]
    size = max(map(len, encoded))
    ids = torch.full((len(texts), size), tokenizer.pad_token_id)
    labels = torch.full((len(texts), size), -100)
    attention = torch.zeros(len(texts), size, dtype=torch.long)
    for row, (own, number) in enumerate(zip(encoded, numbers)):
        ids[row, :len(own)], attention[row, :len(own)] = torch.tensor(own), 1
        for place in hidden(tokenizer.convert_ids_to_tokens(own), tokenizer.all_special_tokens, number, epoch,
                            added=tokenizer.get_added_vocab(), **masks):
            labels[row, place] = own[place]
            ids[row, place] = replacement(own[place], tokenizer.mask_token_id, len(tokenizer), place, number, epoch)
    return {"input_ids": ids, "attention_mask": attention, "labels": labels}


def reference(model, tokenizer, texts, **masks):
    """[(loss, gradient norm)] of each step of a Trainer."""
    model.train()
    keep = set(transformers.trainer_pt_utils.get_parameter_names(
        model, [torch.nn.LayerNorm], ["bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]))
    named = list(model.named_parameters())  # tied ones once
    optimizer = torch.optim.AdamW([{"params": [p for n, p in named if n in keep], "weight_decay": 0.01},
                                   {"params": [p for n, p in named if n not in keep], "weight_decay": 0.0}], lr=RATE)
    scheduler = transformers.get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=STEPS)
    steps = []
    for epoch in range(EPOCHS):
        for begin in range(0, ROWS, BATCH):
            numbers = range(begin, min(begin + BATCH, ROWS))
            loss = model(**inputs_of(tokenizer, texts[begin:begin + BATCH], numbers, epoch, **masks)).loss
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            steps.append((loss.item(), norm.item()))
    return steps


def evaluation(model, tokenizer, texts, **masks):
    with torch.no_grad():
        inputs = inputs_of(tokenizer, texts, range(len(texts)), EVALUATION, **masks)
        logits, chosen = model.eval()(**inputs).logits, inputs["labels"] >= 0
        ranks = (logits[chosen] > logits[chosen].gather(1, inputs["labels"][chosen][:, None])).sum(1)
        loss = torch.nn.functional.cross_entropy(logits[chosen], inputs["labels"][chosen]).item()
    return loss, (ranks < 1).double().mean().item(), (ranks < 5).double().mean().item()


def compare(directory, source, *options, **masks):
    """Our result from `source`, and theirs from the same initial weights."""
    texts = [row["text"] for row in sample_rows("toronto-train.csv", 2 * ROWS)]
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    texts[4] += f" {tokenizer.pad_token} x"  # the word row learns as a word that may be hidden, and as nothing else
    data, dev = (write_csv(directory / name, ["text"], [[t] for t in part])
                 for name, part in (("train.csv", texts[:ROWS]), ("dev.csv", texts[ROWS:])))
    line = ["adapt", "--model", source, "--text", data, "--eval", dev, "--batch-size", BATCH, "--dropout", 0,
            "--no-shuffle", "--precision", "fp32", "--max-length", 64, *options]
    succeed(*line, "--lr", 0, "--max-steps", 1, "--output", directory / "begin")
    log = succeed(*line, "--lr", RATE, "--epochs", EPOCHS, "--warmup-steps", 2, "--output", directory / "run").err
    model, tokenizer = load(directory / "begin/model")
    loss, first, among_five = evaluation(model, tokenizer, texts[ROWS:], **masks)
    ours = metrics_of(directory / "begin")
    near([ours["eval_loss"], ours["eval_perplexity"] / math.exp(loss)], [loss, 1], 2e-5 * loss, "evaluation")
    near([ours["eval_accuracy"], ours["eval_top5_accuracy"]], [first, among_five], 1e-9, "accuracy")
    expected = reference(model, tokenizer, texts, **masks)
    steps = steps_of(directory / "run")
    assert len(steps) == STEPS == len(expected), (len(steps), len(expected))
    assert len({round(loss, 4) for loss, _ in expected}) > STEPS / 2, "the reference does not move"
    for step, (loss, norm) in zip(steps, expected):
        assert abs(step["loss"] - loss) <= LOSS * abs(loss), (step, loss)
        assert abs(step["grad_norm"] - norm) <= NORM * abs(norm), (step, norm)
    return log


def masked_model(directory, **shape):
    """Random weights, including the head's, saved by the class itself."""
    random_model(directory / "other", ["a"], "regression", **shape)
    config = transformers.BertConfig.from_pretrained(directory / "other")
    config.id2label, config.problem_type = {0: "LABEL_0", 1: "LABEL_1"}, None
    torch.manual_seed(5)
    model = transformers.BertForMaskedLM(config)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter.data, 1.0 if name.endswith("LayerNorm.weight") else 0.0, 0.05)
    model.save_pretrained(directory / "masked")
    for file in (directory / "other").iterdir():
        if file.name.startswith(("tokenizer", "special", "vocab")):
            file.rename(directory / "masked" / file.name)
    return model, directory / "masked"


def test_with_the_head_of_the_weights(directory):
    _, source = masked_model(directory)
    log = compare(directory, source)
    assert "of the weights is kept" in log, log


def test_with_a_new_head_and_shards(directory):
    model, source = masked_model(directory, hidden_act="gelu_new", layer_norm_eps=1e-5)
    model.bert.save_pretrained(source)
    log = compare(directory, source, "--virtual-shards", 3, "--micro-batch-tokens", 90)
    assert "is newly initialised" in log, log


def test_pieces_by_themselves_in_more_of_the_text(directory):
    _, source = masked_model(directory, hidden_act="relu")
    compare(directory, source, "--no-whole-words", "--mask-probability", 0.4, whole_words=False, probability=0.4)


def test_weights_in_pickles_have_the_tied_tensors(directory):
    """Old files contain the decoder too; its bias has both names, or one of them."""
    model, source = masked_model(directory)
    state = model.state_dict()
    (source / "model.safetensors").unlink()
    torch.save(state, source / "pytorch_model.bin")
    log = compare(directory, source)
    assert "of the weights is kept" in log, log


def compare_family(directory, name):
    need(f"golden/family/{name}")
    source = directory / "source"
    source.mkdir()
    of_rows = (GOLDEN / f"family/{name}/classification/tokenizer.json").parent
    vocabulary = [*of_rows.glob("[tv]o*"), *of_rows.glob("merges.txt")]
    for file in [*(GOLDEN / f"family/{name}/mlm").iterdir(), *vocabulary]:
        shutil.copyfile(file, source / file.name)
    log = compare(directory, source)
    assert "of the weights is kept" in log, log


def test_albert(directory):
    compare_family(directory, "albert")


def test_deberta(directory):
    need("golden/family/deberta-v3/mlm", "golden/family/deberta-v3/classification/tokenizer.json")
    compare_family(directory, "deberta-v3")


def test_distilbert(directory):
    compare_family(directory, "distilbert")


def test_electra(directory):
    compare_family(directory, "electra")


def test_modernbert(directory):
    compare_family(directory, "modernbert")


def test_mpnet(directory):
    compare_family(directory, "mpnet")


def test_nomic_bert(directory):
    need_class("NomicBertForMaskedLM")
    compare_family(directory, "nomic_bert")


def test_roberta(directory):
    compare_family(directory, "roberta")


def test_xlm_roberta(directory):
    compare_family(directory, "xlm-roberta")


main(globals())
