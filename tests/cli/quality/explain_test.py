"""predict --explain beside brute force: each text predicted again without each of its words."""
import json
import math
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import MODEL, MODELS, rows_of, write
from harness import DEVICE, fail, main, need, succeed

WORDS = {"fuel": ["SHELL", "ESSO"], "food": ["PIZZA", "SUSHI"], "rent": ["FLAT", "ROOM"]}


def texts(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        label = draw.choice(list(WORDS))
        words = [draw.choice(WORDS[label]), draw.choice(["STORE", "CITY"]), str(draw.randrange(9))]
        draw.shuffle(words)
        yield " ".join(words), label if draw.random() > 0.1 else "food"


def leads(model, directory, rows, label, against, header="text"):
    """ln(p(label) / p(against)) of texts; of pairs, two values are joined by '","'."""
    done = succeed("predict", "--model", model, "--input", write(directory / "variants.csv", header + "\n" + "".join(
        f'"{text}"\n' for text in rows)), "--output", "-", "--all-probabilities", "--quiet", *DEVICE).out
    names, *found = rows_of(done)
    places = [names.index(f"probability:{name}") for name in (label, against)]
    return [math.log(float(row[places[0]]) / float(row[places[1]])) for row in found]


def test_words_are_what_brute_force_says(directory):
    need(*MODELS)
    data = write(directory / "train.csv", "text,label\n" + "".join(f"{text},{label}\n" for text, label in texts(500, 1)))
    succeed("train", "--model", MODEL, "--reinit-head", "--train", data, "--eval-fraction", 0.5, "--output", directory / "run",
            "--quiet", "--lr", "3e-3", "--epochs", 1, "--ngram-mix", "yes", *DEVICE)
    rows = [*dict(texts(6, 9)), "ONE", "", "  SHELL   PIZZA "]
    file = write(directory / "new.csv", "text\n" + "".join(f'"{text}"\n' for text in rows))
    model = directory / "run/model"
    predict = ["predict", "--model", model, "--input", file, "--quiet", *DEVICE, "--output"]
    lines = succeed(*predict, "-", "--json-lines", "--explain").out.splitlines()
    plain = [json.loads(line) for line in succeed(*predict, "-", "--json-lines").out.splitlines()]
    assert (model / "ngrams.bin").exists()
    for text, own, line in zip(rows, plain, map(json.loads, lines), strict=True):
        assert abs(own.pop("probability") - line["probability"]) < 1e-5 and own.items() <= line.items(), line
        words = text.split()
        assert [part["word"] for part in line["words"]] == words, line
        without = [" ".join(words[:i] + words[i + 1:]) for i in range(len(words))]
        lead, *others = leads(model, directory, [text, *without], line["label"], line["against"])
        assert abs(line["lead"] - lead) < 2e-3 * (1 + abs(lead)), (line, lead)
        for part, other in zip(line["words"], others):
            assert abs(part["weight"] - (lead - other)) < 4e-3 * (1 + abs(lead)), (line, lead, other)
        assert abs(line["lead"] - line["rest"] - sum(part["weight"] for part in line["words"])) < 1e-4, line
        assert "ngrams" in line, line
    # CSV has the same; texts that were not to be explained have no further columns.
    names, *found = rows_of(succeed(*predict, "-", "--explain").out)
    assert names[:7] == ["text", "label", "probability", "against", "lead", "words", "rest"], names
    assert [row[1] for row in found] == [row["label"] for row in plain]
    strongest = max(json.loads(lines[0])["words"], key=lambda part: abs(part["weight"]))
    assert found[0][5].startswith(f"{strongest['word']} {strongest['weight']:+.2f}"), (found[0], strongest)
    fail(2, *predict, "-", "--explain", "--long-text", "windows", words=["--explain", "--long-text"])


def test_words_of_a_second_text_follow(directory):
    need(*MODELS)
    data = write(directory / "train.csv", "text,other,label\n" + "".join(
        f"{text},{draw[0]} STORE,{label}\n" for (text, label), draw in zip(texts(200, 1), texts(200, 2))))
    succeed("train", "--model", MODEL, "--reinit-head", "--train", data, "--text-pair-column", "other", "--output",
            directory / "run", "--quiet", "--lr", "3e-3", "--epochs", 1, *DEVICE)
    model, header = directory / "run/model", "text,other"
    file = write(directory / "new.csv", header + "\nSHELL 3,STORE PIZZA\n")
    line = json.loads(succeed("predict", "--model", model, "--input", file, "--output", "-", "--json-lines", "--explain",
                              "--quiet", *DEVICE).out)
    assert [part["word"] for part in line["words"]] == ["SHELL", "3", "STORE", "PIZZA"], line
    variants = ['SHELL 3","STORE PIZZA', '3","STORE PIZZA', 'SHELL","STORE PIZZA', 'SHELL 3","PIZZA', 'SHELL 3","STORE']
    lead, *others = leads(model, directory, variants, line["label"], line["against"], header)
    assert abs(line["lead"] - lead) < 2e-3 * (1 + abs(lead)), (line, lead)
    for part, other in zip(line["words"], others, strict=True):
        assert abs(part["weight"] - (lead - other)) < 4e-3 * (1 + abs(lead)), (line, lead, other)


main(globals())
