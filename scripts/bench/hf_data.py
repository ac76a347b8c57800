"""Makes samples as Hugging Face's examples do. `options` are those of hf_peer.py."""
import csv
import json
import os
import time

MODEL_INPUTS = ("input_ids", "token_type_ids", "attention_mask")  # some tokenizers give no token_type_ids


def seconds_since_start():
    """Seconds since this process started, including the interpreter's start."""
    with open("/proc/self/stat", encoding="ascii") as stat:
        started = int(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def encoded_rows(options, tokenizer, rows, labels):
    """Makes samples for classification. `labels`: the classes in order of id; None: without targets."""
    pair = getattr(options, "text_pair_column", "")
    encoded = tokenizer([row[options.text_column] for row in rows], [row[pair] for row in rows] if pair else None,
                        truncation=True, max_length=options.max_length or 128,
                        padding="max_length" if options.padding == "max" else False)
    samples = [{name: values[i] for name, values in encoded.items()} for i in range(len(rows))]
    for sample, row in zip(samples, rows if labels else []):
        sample["labels"] = labels.index(row[options.label_column])
    return samples


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def classification_samples(options, tokenizer):
    rows = read_rows(options.data)
    labels = sorted({row[options.label_column] for row in rows})
    rows = rows[:options.rows] if options.rows else rows
    return encoded_rows(options, tokenizer, rows, labels), labels


def masked_samples(options, tokenizer):
    """Makes samples as run_mlm does with --line_by_line, including special_tokens_mask."""
    rows = read_rows(options.data)
    rows = rows[:options.rows] if options.rows else rows
    encoded = tokenizer([row[options.text_column] for row in rows], truncation=True, return_special_tokens_mask=True,
                        max_length=options.max_length or 128,
                        padding="max_length" if options.padding == "max" else False)
    return [{name: values[i] for name, values in encoded.items()} for i in range(len(rows))]


def read_questions(path, count):
    with open(path, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    questions = [(q["question"].lstrip(), paragraph["context"], q["answers"], q["id"])
                 for article in articles for paragraph in article["paragraphs"] for q in paragraph["qas"]]
    return questions[:count] if count else questions


def encoded_windows(options, tokenizer, questions):
    return tokenizer([q[0] for q in questions], [q[1] for q in questions], truncation="only_second",
                     max_length=options.max_length or 384, stride=options.doc_stride,
                     return_overflowing_tokens=True, return_offsets_mapping=True,
                     padding="max_length" if options.padding == "max" else False)


def question_samples(options, tokenizer):
    """Makes windows as Hugging Face's run_qa does: if the answer is outside a window, its target is [CLS]."""
    questions = read_questions(options.data, options.rows)
    encoded = encoded_windows(options, tokenizer, questions)
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
        samples.append({**{name: encoded[name][i] for name in MODEL_INPUTS if name in encoded},
                        "start_positions": start, "end_positions": end})
    return samples


def answers_of(questions, windows, starts, ends, best=20, longest=30):
    """Returns each question's most likely span by its id, like run_qa for v1.1, where every question has an answer."""
    chosen = {}
    for i, question in enumerate(windows["overflow_to_sample_mapping"]):
        places = {t: windows["offset_mapping"][i][t]
                  for t, part in enumerate(windows.sequence_ids(i)) if part == 1}
        for start in starts[i].argsort()[::-1][:best]:
            for end in ends[i].argsort()[::-1][:best]:
                score = starts[i][start] + ends[i][end]
                if start in places and end in places and 0 <= end - start < longest \
                        and score > chosen.get(question, (float("-inf"),))[0]:
                    chosen[question] = (score, questions[question][1][places[start][0]:places[end][1]])
    return {q[3]: chosen.get(i, (0, ""))[1] for i, q in enumerate(questions)}


def longest_first(samples):
    """Sorts samples by length, longest first: batches are of similar length, and memory is allocated once."""
    return sorted(samples, key=lambda sample: -len(sample["input_ids"]))


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}
