"""What `finetune train` exports, in transformers.

It loads without a warning and computes what ours does, padded there and packed here."""
import csv
import importlib
import json
import shutil

import torch
from peer import CLASSES, SAMPLES, load, minilm, near, need_class, random_model, sample_rows, write_csv

from harness import GOLDEN, Skip, main, need, succeed

TOLERANCE = 1e-4  # of log-probabilities and of logits
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"


def train(directory, model, data, *options):
    succeed("train", "--model", model, "--train", data, "--output", directory / "run", "--max-steps", 5, "--lr", "1e-3",
            "--batch-size", 8, "--precision", "fp32", *options)
    return directory / "run/model"


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


def answers_by_transformers(model, tokenizer, question, context, length, stride, longest):
    """{(text): [(start logit, end logit)]} of all valid spans of all windows, and the best sum."""
    encoded = tokenizer(question, context, truncation="only_second", max_length=length, stride=stride, padding=True,
                        return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="pt")
    inputs = {name: encoded[name] for name in tokenizer.model_input_names}
    with torch.no_grad():
        out = model(**inputs)
    spans, best = {}, -float("inf")
    for w in range(len(encoded["input_ids"])):
        inside = [t for t, part in enumerate(encoded.sequence_ids(w)) if part == 1]
        offsets = encoded["offset_mapping"][w].tolist()
        for t, token in enumerate(tokenizer.convert_ids_to_tokens(encoded["input_ids"][w].tolist())):
            if token == "\u2581":  # a blank alone: transformers 5 gives it the place of the character after it
                offsets[t][1] = offsets[t][0]
        starts, ends = out.start_logits[w].tolist(), out.end_logits[w].tolist()
        real = range(sum(encoded["attention_mask"][w].tolist()))  # padding may have high logits
        best_starts = set(sorted(real, key=lambda t: -starts[t])[:20])
        best_ends = set(sorted(real, key=lambda t: -ends[t])[:20])
        for s in inside:
            for e in range(s, min(s + longest, inside[-1] + 1)):
                spans.setdefault(context[offsets[s][0]:offsets[e][1]].strip(), []).append((starts[s], ends[e]))
                if s in best_starts and e in best_ends:
                    best = max(best, starts[s] + ends[e])
    return spans, best


def same_answers(directory, exported, data, length, stride, count):
    model, tokenizer = load(exported)
    succeed("predict", "--model", exported, "--input", data, "--output", directory / "answers.json", "--nbest",
            directory / "nbest.json", "--precision", "fp32")
    ours = json.loads((directory / "nbest.json").read_text(encoding="utf-8"))
    answers = json.loads((directory / "answers.json").read_text(encoding="utf-8"))
    questions = [(paragraph["context"], question) for article in json.loads(data.read_text())["data"]
                 for paragraph in article["paragraphs"] for question in paragraph["qas"]]
    assert len(ours) == len(questions) >= count
    windows_cut = 0
    for context, question in questions[:count]:
        text = question["question"].lstrip()
        spans, best = answers_by_transformers(model, tokenizer, text, context, length, stride, 30)
        windows_cut += len(tokenizer(text, context)["input_ids"]) > length
        entries = ours[question["id"]]
        assert entries and entries[0]["text"] == answers[question["id"]], entries[:2]
        for entry in entries:
            mine = (entry["start_logit"], entry["end_logit"])
            near_ones = [s for s in spans.get(entry["text"], [])
                         if max(abs(s[0] - mine[0]), abs(s[1] - mine[1])) <= TOLERANCE]
            assert near_ones, f"{question['id']}: {entry}: transformers has {spans.get(entry['text'])}"
        top = entries[0]["start_logit"] + entries[0]["end_logit"]
        assert abs(top - best) <= 2 * TOLERANCE, (question["id"], top, best)
    assert windows_cut > 0, "no question has more than one window"


def test_answers(directory):
    need("golden/tiny-bert-qa")
    exported = train(directory, GOLDEN / "tiny-bert-qa", GOLDEN / "trajectory-qa-train.json", "--max-length", 120,
                     "--doc-stride", 40)
    same_answers(directory, exported, GOLDEN / "trajectory-qa-train.json", 120, 40, 25)


def of_family(name):
    need(f"golden/family/{name}")
    return GOLDEN / "family" / name


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


def same_questions(directory, name):
    data = of_family(name) / "trajectory-qa-train.json"
    exported = train(directory, of_family(name) / "qa", data, "--max-length", 96, "--doc-stride", 32)
    same_answers(directory, exported, data, 96, 32, 8)


def test_albert(directory):
    same_rows(directory, "albert", ["a [MASK] b"])


def test_albert_pairs(directory):
    same_pairs(directory, "albert")


def test_albert_answers(directory):
    need_sentencepiece()
    same_questions(directory, "albert")


def deberta(directory, task, config=None):
    """One of its models with the tokenizer.json that does not travel with the project."""
    need(*(f"golden/family/deberta-v3/{name}" for name in ("classification/tokenizer.json", "qa")))
    model = directory / f"deberta-{task}"
    model.mkdir()
    for file in [*(GOLDEN / f"family/deberta-v3/{task}").iterdir(),
                 GOLDEN / "family/deberta-v3/classification/tokenizer.json"]:
        if file.name != "spm.model":
            shutil.copyfile(file, model / file.name)
    before = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**before, **(config or {})}))
    return model


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


def test_deberta_answers(directory):
    data = GOLDEN / "family/deberta-v3/trajectory-qa-train.json"
    exported = train(directory, deberta(directory, "qa"), data, "--max-length", 96, "--doc-stride", 32)
    same_answers(directory, exported, data, 96, 32, 8)


def test_distilbert(directory):
    same_rows(directory, "distilbert", ["a [PAD] b"])


def test_distilbert_pairs(directory):
    same_pairs(directory, "distilbert")


def test_distilbert_answers(directory):
    same_questions(directory, "distilbert")


def test_electra(directory):
    same_rows(directory, "electra", ["a [PAD] b"])


def test_electra_pairs(directory):
    same_pairs(directory, "electra")


def test_electra_answers(directory):
    same_questions(directory, "electra")


def test_modernbert(directory):
    same_rows(directory, "modernbert", ["a [PAD] b", "two  spaces and more of them   " * 9])


def test_modernbert_pairs(directory):
    same_pairs(directory, "modernbert")


def test_modernbert_answers(directory):
    same_questions(directory, "modernbert")


def test_modernbert_with_the_mean_of_tokens(directory):
    same_rows(directory, "modernbert-mean", ["a [PAD] b"])


def test_nomic_bert(directory):
    need_class("NomicBertForSequenceClassification")
    same_rows(directory, "nomic_bert", ["a [PAD] b"])
    (directory / "pairs").mkdir()
    same_pairs(directory / "pairs", "nomic_bert")


def test_mpnet(directory):
    same_rows(directory, "mpnet", ["a <pad> b", "a </s> b <mask> c <s>"])


def test_mpnet_pairs(directory):
    same_pairs(directory, "mpnet")


def test_mpnet_answers(directory):
    same_questions(directory, "mpnet")


def test_roberta(directory):
    """A padding token that a user wrote counts as no position in transformers."""
    same_rows(directory, "roberta", ["a <pad> b", "<pad><pad> fuel", "a </s> b <mask> c <s>"])


def test_roberta_pairs(directory):
    same_pairs(directory, "roberta")


def test_roberta_answers(directory):
    same_questions(directory, "roberta")


def test_pairs_of_a_bert_with_xlm_roberta_s_vocabulary(directory):
    """As multilingual-e5-small: the tokenizer's class has no token types, though the model has two."""
    random_model(directory / "bert", labels=["a", "b"], vocab_size=452)
    (directory / "bert/vocab.txt").unlink()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(of_family("xlm-roberta") / "classification" / name, directory / "bert" / name)
    same_pairs_of(directory, directory / "bert")


def need_sentencepiece():
    """transformers reads sentencepiece models by these packages."""
    for package in ("sentencepiece", "google.protobuf"):
        try:
            importlib.import_module(package)
        except ImportError as missing:
            raise Skip(f"the package {package} is not installed") from missing


def test_xlm_roberta(directory):
    same_rows(directory, "xlm-roberta", ["a <pad> b", "a </s> b <mask> c <s>"])


def test_xlm_roberta_pairs(directory):
    same_pairs(directory, "xlm-roberta")


def test_xlm_roberta_answers(directory):
    need_sentencepiece()
    same_questions(directory, "xlm-roberta")


def test_camembert(directory):
    need_sentencepiece()
    same_rows(directory, "camembert", ["a <mask> b"])


def test_minilm(directory):
    exported = train(directory, minilm(), SAMPLES / "toronto-train.csv", "--label-column", "category",
                     "--max-train-samples", 400, "--max-length", 48, "--max-steps", 2, "--keep-checkpoints", 1)
    same_log_probabilities(directory, exported, texts(20), 48)


def test_minilm_answers(directory):
    exported = train(directory, minilm(), SAMPLES / "squad-train.json", "--max-train-samples", 8, "--max-length", 96,
                     "--doc-stride", 32, "--max-steps", 1, "--batch-size", 4, "--keep-checkpoints", 1)
    few = json.loads((SAMPLES / "squad-dev.json").read_text())
    few["data"] = few["data"][:1]
    few["data"][0]["paragraphs"] = few["data"][0]["paragraphs"][:2]
    data = directory / "few.json"
    data.write_text(json.dumps(few))
    same_answers(directory, exported, data, 96, 32, 2)


main(globals())
