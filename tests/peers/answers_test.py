"""Answers of exported models, in transformers: equal logits of all spans, over several windows."""
import json

import torch
from peer import SAMPLES, TOLERANCE, deberta, load, minilm, need_sentencepiece, of_family, train

from harness import GOLDEN, main, need, succeed


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


def same_questions(directory, name):
    data = of_family(name) / "trajectory-qa-train.json"
    exported = train(directory, of_family(name) / "qa", data, "--max-length", 96, "--doc-stride", 32)
    same_answers(directory, exported, data, 96, 32, 8)


def test_albert_answers(directory):
    need_sentencepiece()
    same_questions(directory, "albert")


def test_deberta_answers(directory):
    data = GOLDEN / "family/deberta-v3/trajectory-qa-train.json"
    exported = train(directory, deberta(directory, "qa"), data, "--max-length", 96, "--doc-stride", 32)
    same_answers(directory, exported, data, 96, 32, 8)


def test_distilbert_answers(directory):
    same_questions(directory, "distilbert")


def test_electra_answers(directory):
    same_questions(directory, "electra")


def test_modernbert_answers(directory):
    same_questions(directory, "modernbert")


def test_mpnet_answers(directory):
    same_questions(directory, "mpnet")


def test_roberta_answers(directory):
    same_questions(directory, "roberta")


def test_xlm_roberta_answers(directory):
    need_sentencepiece()
    same_questions(directory, "xlm-roberta")


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
