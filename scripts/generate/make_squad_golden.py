#!/usr/bin/env python3
"""Makes golden values for the small SQuAD files: scores of the official scripts, windows by digest.

    scripts/generate/make_squad_golden.py EVALUATE_V1.1.py EVALUATE_V2.0.py [SHARED]

Needs tokenizers (0.22.2) and numpy, which the second script imports. The official scripts, which are not part of this
project, have the md5 sums afb04912d18ff20696f7f88eed49bea9 and ff23213bed5516ea4a6d9edb6cd7d627. Writes into tests/golden:

    qa-features-questions.json   the questions of qa-features.jsonl, from SHARED/data/squad/train-v1.1.json
    qa-features-digest.json      windows of data/samples/squad-*.json and of qa-postprocess/questions.json, and those that
                                 SHARED/golden/qa-features-digest.json has for whole SQuAD, which are computed again here
    qa-scores/                   made-up answers to squad-dev.json (v1.1) and to qa-postprocess/questions.json (v2.0),
                                 with the scores that the official scripts give them

Without SHARED only the last is made. scripts/generate/copy_golden.py --sums afterwards.
"""
import hashlib
import json
import random
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
SAMPLES = ROOT / "data/samples"
V1, V2 = SAMPLES / "squad-dev.json", GOLDEN / "qa-postprocess/questions.json"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def write(path, value, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, **options) + "\n", encoding="utf-8")


def questions_of(data):
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield paragraph["context"], question


def chosen_questions(shared):
    """Returns a SQuAD file of the questions whose windows are in qa-features.jsonl, in its order."""
    lines = (GOLDEN / "qa-features.jsonl").read_text(encoding="utf-8").splitlines()
    ids = list(dict.fromkeys(json.loads(line)["id"] for line in lines))
    found = {question["id"]: {"context": context, "qas": [question]} for context, question in questions_of(
        read(shared / "data/squad/train-v1.1.json"))}
    return {"version": "1.1", "data": [{"title": "qa-features", "paragraphs": [found[id] for id in ids]}]}


def positions(window, sequence_ids, offsets, answers):
    """Returns the first and last token of the first answer; (0, 0) if there is none, or not wholly in the window."""
    if not answers:
        return 0, 0
    begin = answers[0]["answer_start"]
    end = begin + len(answers[0]["text"])
    context = [i for i in range(len(window)) if sequence_ids[i] == 1]
    if offsets[context[0]][0] > begin or offsets[context[-1]][1] < end:
        return 0, 0
    first = max(i for i in context if offsets[i][0] <= begin)
    last = min(i for i in context if offsets[i][1] >= end)
    return first, last


def digest(tokenizer, path):
    ids, spans = hashlib.sha256(), hashlib.sha256()
    questions = windows = tokens = 0
    for context, question in questions_of(read(path)):
        questions += 1
        whole = tokenizer.encode(question["question"].lstrip(), context)
        for window in [whole, *whole.overflowing]:
            windows += 1
            tokens += len(window.ids)
            ids.update(struct.pack(f"<I{len(window.ids)}i", len(window.ids), *window.ids))
            spans.update(struct.pack("<2i", *positions(window.ids, window.sequence_ids, window.offsets,
                                                       question["answers"])))
    return {"questions": questions, "features": windows, "tokens": tokens, "sha256_ids": ids.hexdigest(),
            "sha256_positions": spans.hexdigest()}


def digests(shared):
    from tokenizers import Tokenizer
    files = {f"data/squad/{name}.json": shared / f"data/squad/{name}.json" for name in (
        "dev-v1.1", "dev-v2.0", "train-v1.1")}
    files |= {str(path.relative_to(ROOT)): path for path in (SAMPLES / "squad-train.json", V1, V2)}
    published = read(shared / "golden/qa-features-digest.json")
    out = {}
    for vocabulary in ("bert-base-uncased", "bert-base-cased"):
        tokenizer = Tokenizer.from_file(str(GOLDEN / "tokenizers" / vocabulary / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(384, stride=128, strategy="only_second")
        for name, path in files.items():
            made = digest(tokenizer, path)
            known = published.get(f"{vocabulary} {Path(name).stem}")
            if name.startswith("data/squad/") and made != known:
                sys.exit(f"make_squad_golden: {vocabulary} {name}: {made} is not the known {known}")
            out[f"{vocabulary} {name}"] = made
    return out


def made_up_answers(path, draw):
    """Makes up right, nearly right, wrong and empty answers, in about equal numbers."""
    out = {}
    for context, question in questions_of(read(path)):
        answers = [answer["text"] for answer in question["answers"]]
        words = context.split()
        at = draw.randrange(len(words))
        some_words = " ".join(words[at:at + draw.randint(1, 6)])
        kind = draw.randrange(6) if answers else draw.choice([3, 4])
        if kind == 0:
            out[question["id"]] = draw.choice(answers)
        elif kind == 1:
            out[question["id"]] = f"The {draw.choice(answers).upper()}!"
        elif kind == 2:
            out[question["id"]] = " ".join(draw.choice(answers).split()[:-1]) + " " + some_words
        elif kind == 3:
            out[question["id"]] = some_words
        elif kind == 4:
            out[question["id"]] = ""
        else:
            out[question["id"]] = draw.choice(answers) + ", " + some_words
    return out


def official(script, *arguments):
    done = subprocess.run([sys.executable, script, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def make_scores(script_v1, script_v2):
    out, draw = GOLDEN / "qa-scores", random.Random(51)
    files = {"v1.1": V1, "v2.0": V2}
    for version, path in files.items():
        write(out / f"predictions-{version}.json", made_up_answers(path, draw), indent=0)
    no_answer = {id: round(draw.betavariate(4, 1) if answer == "" else draw.betavariate(1, 4), 6)
                 for id, answer in read(out / "predictions-v2.0.json").items()}
    write(out / "na-prob-v2.0.json", no_answer, indent=0)
    write(out / "scores.json", {
        "v1.1": official(script_v1, V1, out / "predictions-v1.1.json"),
        "v2.0": official(script_v2, V2, out / "predictions-v2.0.json"),
        "v2.0 with na-prob": official(script_v2, V2, out / "predictions-v2.0.json", "--na-prob-file",
                                      out / "na-prob-v2.0.json", "--na-prob-thresh", 0.5)}, indent=1)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    make_scores(*sys.argv[1:3])
    if len(sys.argv) == 4:
        shared = Path(sys.argv[3])
        write(GOLDEN / "qa-features-questions.json", chosen_questions(shared), indent=1)
        write(GOLDEN / "qa-features-digest.json", digests(shared), indent=1)


main()
