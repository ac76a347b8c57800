"""Data of a soak's rounds: other texts from each seed, but always as many rows, tokens and labels.

So the memory that two rounds take can be compared. Words are whole tokens of the model's vocabulary.
"""
import json
import random

TRAIN_ROWS, EVAL_ROWS, QUESTIONS = 96, 60, 24
LABELS = ("cash", "fuel", "rent", "travel", "wages")


def words_of(model):
    """Lower-case words of the vocabulary, in its order."""
    lines = (model / "vocab.txt").read_text(encoding="utf-8").splitlines()
    words = [word for word in lines if word.isascii() and word.isalpha() and word.islower() and len(word) > 2]
    assert len(words) >= 500, f"{model}: {len(words)} words are too few"
    return words


def texts(generator, words, count):
    """A text of 4 to 12 words, by the row's number; the first word determines the label."""
    return [" ".join([words[row % len(LABELS)], *generator.choices(words, k=3 + row * 7 % 9)]) for row in range(count)]


def write_rows(path, seed, words, count):
    rows = list(enumerate(texts(random.Random(f"{seed} {path.name}"), words, count)))
    random.Random(seed).shuffle(rows)
    with open(path, "w", encoding="utf-8") as out:
        out.write("text,label\n")
        out.writelines(f"{text},{LABELS[row % len(LABELS)]}\n" for row, text in rows)
    return path


def write_questions(path, seed, words):
    generator = random.Random(f"{seed} {path.name}")
    paragraphs = []
    for number in range(QUESTIONS):
        context = generator.choices(words, k=40)
        answer = context[number]
        text = " ".join(context)
        qas = [{"id": f"q{number}", "question": " ".join(generator.choices(words, k=6)), "is_impossible": False,
                "answers": [{"text": answer, "answer_start": f" {text} ".index(f" {answer} ")}]}]
        paragraphs.append({"context": text, "qas": qas})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


class RoundData:
    """The files of one seed, in a directory of their own."""

    def __init__(self, directory, seed, words):
        directory.mkdir()
        self.train = write_rows(directory / "train.csv", seed, words, TRAIN_ROWS)
        self.eval = write_rows(directory / "eval.csv", seed, words, EVAL_ROWS)
        self.questions = write_questions(directory / "questions.json", seed, words)
