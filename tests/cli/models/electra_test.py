"""ELECTRA, end to end."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, tests_of
from fixtures import copied
from harness import fail, main

ELECTRA = Encoder("electra", "Electra", head="classifier.out_proj", masked_head="generator_predictions.dense",
                  masked_bias="generator_lm_head.bias", masked_unused="generator_lm_head.bias",
                  tied="generator_lm_head.weight", width_key="hidden_size", tensors=43,
                  dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
                  qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"))
globals().update(tests_of(ELECTRA))


def test_width_of_the_embeddings_is_checked(directory):
    ELECTRA.need()
    wide = copied(ELECTRA.model, directory / "wide", embedding_size=64)
    fail(4, *ELECTRA.rows(wide), "--output", directory / "run", words=["embedding_size 64", "hidden_size 32"])
    narrow = copied(ELECTRA.model, directory / "narrow", embedding_size=8)
    fail(4, *ELECTRA.rows(narrow), "--output", directory / "run", words=["electra.embeddings", "needed is", "8"])


main(globals())
