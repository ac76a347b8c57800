"""MPNet, end to end: a bias of attention by distance, and WordPiece between <s> and </s>."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import COSTLY, Encoder, tests_of
from fixtures import copied, predict, write
from harness import fail, main

MPNET = Encoder("mpnet", "MPNet", head="classifier.out_proj", masked_head="lm_head.dense", masked_bias="lm_head.bias",
                masked_unused="lm_head.bias", tied="lm_head.decoder.weight", width_key="hidden_size", tensors=41,
                dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"),
                qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"))
globals().update(tests_of(MPNET, at_night=COSTLY))


def test_other_numbers_of_buckets_are_refused(directory):
    """transformers computes 32 buckets whatever the config says."""
    MPNET.need()
    model = copied(MPNET.model, directory / "buckets", relative_attention_num_buckets=16)
    fail(4, *MPNET.rows(model), "--output", directory / "run", words=["relative_attention_num_buckets is 16", "only 32"])


def test_vocab_txt_gives_the_answers_of_tokenizer_json(directory):
    MPNET.need()
    other = copied(MPNET.model, directory / "other")
    (other / "tokenizer.json").unlink()
    data = write(directory / "t.csv", "text\nFuel at  the STATION\nl\u2019\u00e9t\u00e9 <mask> </s> e\u0301\n")
    assert predict(data, model=other).out == predict(data, model=MPNET.model).out


main(globals())
