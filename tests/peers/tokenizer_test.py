"""Ids and offsets beside the package tokenizers, on a sample.

tests/peers/compare_tokenizer.py compares all of a corpus."""
import itertools
import json
import random
import shutil
import subprocess
import sys

import transformers
from peer import ROOT, SAMPLES

from harness import BINARY, Skip, main, need, shared_path

VOCABULARIES = ["bert-base-uncased", "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased",
                "bert-base-multilingual-uncased", "kcbert-base"]


def compare(vocabulary, *arguments):
    need(f"tokenizers/{vocabulary}/tokenizer.json")
    compare_directory(shared_path(f"tokenizers/{vocabulary}"), *arguments)


def compare_directory(model, *arguments):
    done = subprocess.run([sys.executable, ROOT / "tests/peers/compare_tokenizer.py", "--binary", BINARY, "--tokenizer",
                           model, *map(str, arguments)],
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


# Vocabularies of byte-level BPE, and how many random texts and texts of hard pieces each has.
BYTE_LEVEL = [("tokenizers/roberta-base", 5000), ("byte-level-bpe/roberta", 2500), ("byte-level-bpe/modernbert", 2500)]


def test_byte_level_bpe(directory):
    for seed, (name, count) in enumerate(BYTE_LEVEL):
        need(f"{name}/tokenizer.json")
        compare_directory(shared_path(name), "--random", count, "--pieces", count, "--seed", seed)
    compare_directory(shared_path("byte-level-bpe/roberta"), SAMPLES / "toronto-dev.csv", SAMPLES / "squad-dev.json")


def test_byte_level_bpe_with_options(directory):
    """tokenizer.json with each choice of spaces, and without the added tokens' own flags."""
    whole = json.loads(shared_path("byte-level-bpe/roberta/tokenizer.json").read_text(encoding="utf-8"))
    for number, (prefix, trim, compose) in enumerate(itertools.product((False, True), repeat=3)):
        whole["pre_tokenizer"]["add_prefix_space"] = whole["post_processor"]["add_prefix_space"] = prefix
        whole["post_processor"]["trim_offsets"] = trim
        whole["normalizer"] = {"type": "NFC"} if compose else None
        generator = random.Random(number)
        for token in whole["added_tokens"]:
            token |= {name: generator.random() < 0.4 for name in ("lstrip", "rstrip", "single_word", "normalized")}
        model = directory / str(number)
        model.mkdir()
        (model / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
        compare_directory(model, "--random", 1000, "--pieces", 2000, "--seed", number)


def test_albert(directory):
    model = shared_path("golden/family/albert/classification")
    compare_directory(model, "--random", 1000)
    compare_directory(model, SAMPLES / "toronto-dev.csv", SAMPLES / "squad-dev.json")


def test_deberta(directory):
    need("golden/family/deberta-v3/classification/tokenizer.json")
    model = shared_path("golden/family/deberta-v3/classification/tokenizer.json").parent
    compare_directory(model, "--random", 1000)
    compare_directory(model, SAMPLES / "toronto-dev.csv", SAMPLES / "squad-dev.json")


def metaspace(**settings):
    return {"type": "Metaspace", "replacement": "\u2581", **settings}


def test_unigram(directory):
    """Both published forms of tokenizer.json, and others that old versions wrote; with the added tokens' own flags, too."""
    whole = json.loads(shared_path("golden/family/xlm-roberta/classification/tokenizer.json").read_text(encoding="utf-8"))
    (charsmap, strip, join), tokens = whole["normalizer"]["normalizers"], whole["added_tokens"]
    both, space = {**strip, "strip_left": True}, {**join, "content": " "}
    split = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace(add_prefix_space=True)]}
    forms = [([charsmap, strip, join], metaspace(prepend_scheme="always", split=True)), ([charsmap], split),
             ([charsmap, space], metaspace(add_prefix_space=True)), ([charsmap, both, join], metaspace()),
             ([charsmap, strip, join], metaspace(prepend_scheme="first")), ([], metaspace()), ([], split),
             ([charsmap, strip, join], metaspace(prepend_scheme="never"))]
    for number, ((steps, pre_tokenizer), own) in enumerate(itertools.product(forms, (True, False))):
        whole["normalizer"] = {"type": "Sequence", "normalizers": steps} if steps else None
        whole["pre_tokenizer"] = pre_tokenizer
        generator = random.Random(number)
        names = ("lstrip", "rstrip", "single_word", "normalized") if own else ()
        whole["added_tokens"] = [token | {name: generator.random() < 0.4 for name in names} for token in tokens]
        model = directory / str(number)
        model.mkdir()
        (model / "tokenizer.json").write_text(json.dumps(whole), encoding="utf-8")
        compare_directory(model, "--random", 1000, "--pieces", 2000, "--seed", number)
    compare_directory(shared_path("golden/family/xlm-roberta/classification"), SAMPLES / "toronto-dev.csv", SAMPLES / "squad-dev.json")


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "[X]", "<e>", "new", "a", "b", "hello", "##a",
          "##b", "##new", "x", "e", "[", "]", "<", ">", "cls", "mask", "##x"]
TEXTS = ["a [CLS] b", "[MASK]a[SEP]", "hello [unused1] new", "[X][x] <e> <E>", "New NEW anew [NEW] [new]", "[mask] [cls]",
         " [MASK] x  [unused1]  b", "abnew<e>ba [ X ]", "[PAD][UNK][unused1]"]


def flags(content, generator):
    chances = {"lstrip": 0.3, "rstrip": 0.3, "single_word": 0.3, "normalized": 0.5}
    return {"content": content, **{name: generator.random() < chance for name, chance in chances.items()}}


def named_tokens(objects, generator):
    """Special tokens as a file names them; `objects` describes one."""
    found = {}
    for key in ("bos_token", "eos_token"):
        if generator.random() < 0.3:
            found[key] = generator.choice(["<e>", "[unused1]", "[CLS]", None])
    for key in ("unk_token", "cls_token", "sep_token", "pad_token"):
        if generator.random() < 0.3:
            found[key] = f"[{key[:3].upper()}]"
    if generator.random() < 0.5:
        mask = generator.choice(["[MASK]", "[X]", "[unused1]"])
        found["mask_token"] = objects(mask) if generator.random() < 0.5 else mask
    if generator.random() < 0.5:
        some = generator.sample(["[unused1]", "[X]", "<e>", "new"], 2)
        found["additional_special_tokens"] = [objects(t) if generator.random() < 0.3 else t for t in some]
    elif generator.random() < 0.2:
        found["additional_special_tokens"] = None
    return found


def write_tokenizer(path, generator):
    """A directory with a vocabulary and some of the files that name tokens, as various versions have written them. No
    token is described twice with other flags: which count then hangs on how it came there."""
    path.mkdir()
    (path / "vocab.txt").write_text("".join(piece + "\n" for piece in PIECES), encoding="utf-8")
    (path / "config.json").write_text('{"model_type": "bert"}')
    in_config, in_map, in_decoder, numbered, whole = (generator.random() < chance for chance in (0.6, 0.5, 0.3, 0.5, 0.4))
    once = in_config + in_map + in_decoder + numbered + whole == 1

    def objects(content):
        return flags(content, generator) if once else {"content": content, "normalized": False}

    config = {"do_lower_case": generator.random() < 0.7}
    if in_config:
        config |= named_tokens(lambda content: {"__type": "AddedToken", **objects(content)}, generator)
    if in_decoder:
        config["added_tokens_decoder"] = {str(PIECES.index(content)): {**objects(content), "special": special}
                                          for content, special in (("[MASK]", True), ("[X]", False), ("new", False))}
    if whole:
        tokenizer = transformers.BertTokenizerFast(vocab_file=path / "vocab.txt", do_lower_case=config["do_lower_case"])
        tokenizer.add_tokens(generator.sample(["new", "<e>", "<Later>"], generator.randrange(3)))
        tokenizer.backend_tokenizer.save(str(path / "tokenizer.json"))
    if in_config or in_decoder or whole or generator.random() < 0.8:
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    if in_map:
        (path / "special_tokens_map.json").write_text(json.dumps(named_tokens(objects, generator)))
    if numbered:
        added = generator.sample(["<New>", "[X]", "[unused9]", "<e>", "[MASK]"], 2)
        numbers = itertools.count(len(PIECES))
        (path / "added_tokens.json").write_text(json.dumps({
            content: PIECES.index(content) if content in PIECES else next(numbers) for content in added}))


def test_tokens_of_configuration_files(directory):
    if int(transformers.__version__.split(".")[0]) > 4:
        raise Skip("transformers 5 takes tokens of these older files otherwise, or refuses them; 4 wrote them")
    generator = random.Random(1)
    different = []
    for number in range(300):
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
