"""Ids and offsets beside the package tokenizers, on a sample (scripts/compare_tokenizer.py compares all of a
corpus)."""
import subprocess
import sys

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


main(globals())
