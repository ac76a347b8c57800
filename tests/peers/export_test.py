"""What `finetune train` exports, in transformers.

It loads without a warning and computes what ours does, padded there and packed here."""
import csv
import json
import shutil

import torch
from peer import (CLASSES, SAMPLES, TOLERANCE, deberta, load, minilm, near, need_class, need_sentencepiece, of_family,
                  random_model, sample_rows, train, write_csv)

from harness import GOLDEN, main, need, succeed

TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def predictions(directory, model, rows, *options):
    """Our values for each row: the columns probability:NAME, or `label` if there are none."""
    succeed("predict", "--model", model, "--input", rows, "--output", directory / "out.csv", "--precision", "fp32",
            *options)
    with open(directory / "out.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def logits_of(model, tokenizer, first, second=None, length=128):
    out = []
    with torch.no_grad():
        for i in range(0, len(first), 16):
            batch = tokenizer(first[i:i + 16], second[i:i + 16] if second else None, truncation=True,
                              max_length=length, padding=True, return_tensors="pt")
            out.append(model(**batch).logits)
    return torch.cat(out).double()


def same_log_probabilities(directory, exported, first, length, second=None):
    model, tokenizer = load(exported)
    data = write_csv(directory / "new.csv", ["text", "other"], list(zip(first, second or [""] * len(first))))
    ours = predictions(directory, exported, data, "--all-probabilities")
    names = [model.config.id2label[i] for i in range(model.config.num_labels)]
    probabilities = torch.tensor([[float(row["probability:" + name]) for name in names] for row in ours],
                                 dtype=torch.float64)
    expected = logits_of(model, tokenizer, first, second, length)
    near(probabilities.log(), expected.log_softmax(-1), TOLERANCE, "log-probabilities")
    assert [row["label"] for row in ours] == [names[i] for i in probabilities.argmax(-1)]
    return expected


def texts(count=70):
    long = " ".join(row["text"] for row in sample_rows("toronto-dev.csv", 60))
    return ["x", long, "ÀÉÎ naïve 中国 [SEP] ☃"] + [row["text"] for row in sample_rows("toronto-dev.csv", count)]


def test_classification(directory):
    need("golden/tiny-bert-classification")
    exported = train(directory, GOLDEN / "tiny-bert-classification", TRAIN, "--label-column", "category")
    same_log_probabilities(directory, exported, texts(), 128)


def test_frozen_encoders(directory):
    for name in ("tiny-bert-classification", "family/roberta/classification", "family/electra/classification",
                 "family/distilbert/classification", "family/albert/classification", "family/mpnet/classification",
                 *["family/nomic_bert/classification"] * ("NomicBertModel" in CLASSES)):
        need(f"golden/{name}")
        (directory / "out.csv").unlink(missing_ok=True)
        succeed("train", "--model", GOLDEN / name, "--train", TRAIN, "--label-column", "category", "--recipe", "quick",
                "--precision", "fp32", "--output", directory / "run", "--overwrite")
        exported = directory / "run/model"
        length = json.loads((exported / "config.json").read_text())["finetune"]["max_length"]
        same_log_probabilities(directory, exported, texts(), length)
        model, tokenizer = load(exported)
        if "finetune_pooling" not in model.config.to_dict():
            assert name.split("/")[1] in ("albert", "mpnet"), name
            continue
        batch = tokenizer(texts(), padding=True, truncation=True, max_length=32, return_tensors="pt")
        with torch.no_grad():
            states = model(**batch, output_hidden_states=True).hidden_states
        mask = batch["attention_mask"][..., None]
        mean = (states[-2] * mask).sum(1) / mask.sum(1)
        normalized = (mean - mean.mean(1, keepdim=True)) / mean.std(1, keepdim=True, unbiased=False)
        near(states[-1][:, 0], normalized, 5e-3, f"{name}: mean-pooled features")


def test_new_head_and_pairs(directory):
    need("golden/tiny-bert-classification")
    rows = sample_rows("toronto-train.csv", 40)
    data = write_csv(directory / "t.csv", ["text", "other", "label"],
                     [(r["text"], r["gl_category"], "ab"[i % 2]) for i, r in enumerate(rows)])
    exported = train(directory, GOLDEN / "tiny-bert-classification", data, "--reinit-head", "--text-column", "text",
                     "--text-pair-column", "other", "--max-length", 24)
    first = texts()
    same_log_probabilities(directory, exported, first, 24, list(reversed(first)))


def test_multi_label(directory):
    need("golden/tiny-bert-classification")
    rows = sample_rows("toronto-train.csv", 40)
    data = write_csv(directory / "t.csv", ["text", "label"],
                     [(r["text"], "|".join(n for j, n in enumerate(["red", "green", "blue"]) if i % (j + 2) == 0))
                      for i, r in enumerate(rows)])
    exported = train(directory, GOLDEN / "tiny-bert-classification", data, "--reinit-head", "--multi-label", "|")
    model, tokenizer = load(exported)
    assert model.config.problem_type == "multi_label_classification"
    assert sorted(model.config.label2id) == ["blue", "green", "red"]
    first = texts()
    ours = predictions(directory, exported, write_csv(directory / "new.csv", ["text"], [[t] for t in first]),
                       "--all-probabilities")
    expected = logits_of(model, tokenizer, first)
    values = torch.tensor([[float(row["probability:" + model.config.id2label[i]]) for i in range(3)] for row in ours])
    near(torch.logit(values.double()), expected, TOLERANCE, "logits")


def test_regression(directory):
    need("golden/tiny-bert-classification")
    rows = sample_rows("toronto-train.csv", 40)
    data = write_csv(directory / "t.csv", ["text", "amount"], [(r["text"], i % 7 - 3) for i, r in enumerate(rows)])
    exported = train(directory, GOLDEN / "tiny-bert-classification", data, "--reinit-head", "--regression",
                     "--label-column", "amount")
    model, tokenizer = load(exported)
    assert model.config.problem_type == "regression" and model.config.num_labels == 1
    first = texts()
    ours = predictions(directory, exported, write_csv(directory / "new.csv", ["text"], [[t] for t in first]))
    near([float(row["label"]) for row in ours], logits_of(model, tokenizer, first)[:, 0], TOLERANCE, "numbers")


def same_rows(directory, name, words):
    exported = train(directory, of_family(name) / "classification", GOLDEN / "family/trajectory-classification-train.csv",
                     "--label-column", "category", "--max-length", 96)
    same_log_probabilities(directory, exported, texts() + words, 96)


def same_pairs(directory, name):
    same_pairs_of(directory, of_family(name) / "classification")


def same_pairs_of(directory, model):
    rows = sample_rows("toronto-train.csv", 40)
    data = write_csv(directory / "t.csv", ["text", "other", "label"],
                     [(r["text"], r["gl_category"], "ab"[i % 2]) for i, r in enumerate(rows)])
    exported = train(directory, model, data, "--reinit-head", "--text-column", "text",
                     "--text-pair-column", "other", "--max-length", 24)
    first = texts()
    same_log_probabilities(directory, exported, first, 24, list(reversed(first)))


def test_albert(directory):
    same_rows(directory, "albert", ["a [MASK] b"])


def test_albert_pairs(directory):
    same_pairs(directory, "albert")


def test_deberta(directory):
    data = GOLDEN / "family/trajectory-classification-train.csv"
    exported = train(directory, deberta(directory, "classification"), data, "--label-column", "category",
                     "--max-length", 96)
    same_log_probabilities(directory, exported, texts() + ["a [MASK] b"], 96)


def test_deberta_with_positions_and_types(directory):
    """v2: projections of their own, a row for each distance; weights are new."""
    model = deberta(directory, "classification", {
        "share_att_key": False, "norm_rel_ebd": "none", "position_buckets": -1, "max_relative_positions": 24,
        "position_biased_input": True, "type_vocab_size": 2, "legacy": True, "max_position_embeddings": 128})
    (model / "model.safetensors").unlink()
    lines = write_csv(directory / "lines.csv", ["text"], [[text] for text in texts()])
    adapted = directory / "adapted"
    succeed("adapt", "--model", model, "--reinit", "--text", lines, "--text-column", "text", "--output", adapted,
            "--lr", "1e-3", "--max-steps", 5, "--quiet")
    load(adapted / "model")
    same_pairs_of(directory, adapted / "model")


def test_distilbert(directory):
    same_rows(directory, "distilbert", ["a [PAD] b"])


def test_distilbert_pairs(directory):
    same_pairs(directory, "distilbert")


def test_electra(directory):
    same_rows(directory, "electra", ["a [PAD] b"])


def test_electra_pairs(directory):
    same_pairs(directory, "electra")


def test_modernbert(directory):
    same_rows(directory, "modernbert", ["a [PAD] b", "two  spaces and more of them   " * 9])


def test_modernbert_pairs(directory):
    same_pairs(directory, "modernbert")


def test_modernbert_with_the_mean_of_tokens(directory):
    same_rows(directory, "modernbert-mean", ["a [PAD] b"])


def test_modernbert_with_other_rotations(directory):
    """transformers 5 writes layer_types and rope_parameters, which transformers 4 ignores."""
    model = shutil.copytree(of_family("modernbert") / "classification", directory / "model")
    config = json.loads((model / "config.json").read_text())
    for key in ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta"):
        del config[key]
    config["layer_types"] = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"]
    config["rope_parameters"] = {"full_attention": {"rope_type": "default", "rope_theta": 50.0},
                                 "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}
    (model / "config.json").write_text(json.dumps(config))
    exported = train(directory, model, GOLDEN / "family/trajectory-classification-train.csv", "--label-column", "category",
                     "--max-length", 96)
    same_log_probabilities(directory, exported, texts(), 96)


def test_nomic_bert(directory):
    need_class("NomicBertForSequenceClassification")
    same_rows(directory, "nomic_bert", ["a [PAD] b"])
    (directory / "pairs").mkdir()
    same_pairs(directory / "pairs", "nomic_bert")


def test_mpnet(directory):
    same_rows(directory, "mpnet", ["a <pad> b", "a </s> b <mask> c <s>"])


def test_mpnet_pairs(directory):
    same_pairs(directory, "mpnet")


def test_roberta(directory):
    """A padding token that a user wrote counts as no position in transformers."""
    same_rows(directory, "roberta", ["a <pad> b", "<pad><pad> fuel", "a </s> b <mask> c <s>"])


def test_roberta_pairs(directory):
    same_pairs(directory, "roberta")


def test_pairs_of_a_bert_with_xlm_roberta_s_vocabulary(directory):
    """As multilingual-e5-small: the tokenizer's class has no token types, though the model has two."""
    random_model(directory / "bert", labels=["a", "b"], vocab_size=452)
    (directory / "bert/vocab.txt").unlink()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(of_family("xlm-roberta") / "classification" / name, directory / "bert" / name)
    same_pairs_of(directory, directory / "bert")


def test_xlm_roberta(directory):
    same_rows(directory, "xlm-roberta", ["a <pad> b", "a </s> b <mask> c <s>"])


def test_xlm_roberta_pairs(directory):
    same_pairs(directory, "xlm-roberta")


def test_camembert(directory):
    need_sentencepiece()
    same_rows(directory, "camembert", ["a <mask> b"])


def test_minilm(directory):
    exported = train(directory, minilm(), SAMPLES / "toronto-train.csv", "--label-column", "category",
                     "--max-train-samples", 400, "--max-length", 48, "--max-steps", 2, "--keep-checkpoints", 1)
    same_log_probabilities(directory, exported, texts(20), 48)


main(globals())
