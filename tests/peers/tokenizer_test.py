"""Ids and offsets beside the package tokenizers, on a sample (scripts/compare_tokenizer.py compares all of a
corpus)."""
import itertools
import json
import random
import shutil
import subprocess
import sys

import transformers
from peer import ROOT, SAMPLES

from harness import BINARY, SHARED, main, need

VOCABULARIES = ["bert-base-uncased", "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased",
                "bert-base-multilingual-uncased", "kcbert-base"]


def compare(vocabulary, *arguments):
    need(f"tokenizers/{vocabulary}/tokenizer.json")
    done = subprocess.run([sys.executable, ROOT / "scripts/compare_tokenizer.py", "--binary", BINARY, "--tokenizer",
                           SHARED / "tokenizers" / vocabulary, *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    total = done.stdout.splitlines()[-1]
    assert total.startswith("total: ") and total.endswith(" 0 differences"), total
    assert int(total.split()[1]) >= 1000, total


def test_transactions_and_questions(directory):
    for vocabulary in VOCABULARIES[:2]:
        compare(vocabulary, SAMPLES / "toronto-dev.csv", SAMPLES / "squad-dev.json")


def test_random_unicode(directory):
    for seed, vocabulary in enumerate(VOCABULARIES):
        compare(vocabulary, "--random", 1000, "--seed", seed)


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "[X]", "<e>", "new", "a", "b", "hello", "##a",
          "##b", "##new", "x", "e", "[", "]", "<", ">", "cls", "mask", "##x"]
TEXTS = ["a [CLS] b", "[MASK]a[SEP]", "hello [unused1] new", "[X][x] <e> <E>", "New NEW anew [NEW] [new]", "[mask] [cls]",
         " [MASK] x  [unused1]  b", "abnew<e>ba [ X ]", "[PAD][UNK][unused1]"]


def flags(content, generator, plain):
    chances = {"lstrip": 0.3, "rstrip": 0.3, "single_word": 0.3, "normalized": 0.5}
    return {"content": content,
            **{name: not plain and generator.random() < chance for name, chance in chances.items()}}


def write_tokenizer(path, generator):
    """A directory with a vocabulary and some of the files that name tokens, as various versions have written them."""
    path.mkdir()
    (path / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES), encoding="utf-8")
    (path / "config.json").write_text('{"model_type": "bert"}')

    def named(objects):
        found = {}
        for key in ("unk_token", "cls_token", "sep_token", "pad_token"):
            if generator.random() < 0.3:
                found[key] = f"[{key[:3].upper()}]"
        if generator.random() < 0.5:
            mask = generator.choice(["[MASK]", "[X]", "[unused1]"])
            found["mask_token"] = objects(mask) if generator.random() < 0.5 else mask
        if generator.random() < 0.5:
            some = generator.sample(["[unused1]", "[X]", "<e>", "new"], 2)
            found["additional_special_tokens"] = [objects(t) if generator.random() < 0.3 else t for t in some]
        return found

    # Of a token that is described twice, with other flags, it hangs on many things which count: not so here.
    plain, decoder = generator.random() < 0.5, generator.random() < 0.3
    config = {"do_lower_case": generator.random() < 0.7}
    if generator.random() < 0.7:
        config |= named(lambda content: content if decoder else
                        {"__type": "AddedToken", **flags(content, generator, plain)})
    if decoder:
        config["added_tokens_decoder"] = {str(PIECES.index(content)): {**flags(content, generator, False), "special": special}
                                          for content, special in (("[MASK]", True), ("[X]", False), ("new", False))}
    whole = generator.random() < 0.4
    if whole:
        tokenizer = transformers.BertTokenizerFast(vocab_file=path / "vocab.txt", do_lower_case=config["do_lower_case"])
        tokenizer.add_tokens(generator.sample(["new", "<e>", "<Later>"], generator.randrange(3)))
        tokenizer.backend_tokenizer.save(str(path / "tokenizer.json"))
    if whole or generator.random() < 0.8:
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    if generator.random() < 0.5:
        (path / "special_tokens_map.json").write_text(json.dumps(named(lambda content: flags(content, generator, plain))))
    if plain:
        added = generator.sample(["<New>", "[X]", "[unused9]", "<e>"], 2)
        numbers = itertools.count(len(PIECES))
        (path / "added_tokens.json").write_text(json.dumps({
            content: PIECES.index(content) if content in PIECES else next(numbers) for content in added}))


def test_tokens_of_configuration_files(directory):
    generator = random.Random(1)
    different = []
    for number in range(200):
        path = directory / str(number)
        write_tokenizer(path, generator)
        peer = transformers.BertTokenizerFast.from_pretrained(path)
        expected = [peer(text)["input_ids"] for text in TEXTS]
        done = subprocess.run([BINARY, "tokenize", "--model", path], input="\n".join(TEXTS) + "\n", capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, (number, done.stderr)
        for text, ids, line in zip(TEXTS, expected, done.stdout.splitlines(), strict=True):
            if json.loads(line)["ids"] != ids:
                files = {file.name: file.read_text() for file in path.glob("*.json") if file.name != "tokenizer.json"}
                different.append((number, text, ids, json.loads(line)["ids"], files))
        shutil.rmtree(path)
    assert not different, (len(different), different[0])


main(globals())
