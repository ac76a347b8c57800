"""DeBERTa, end to end: scores by relative position, and spm.model without tokenizer.json."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import COSTLY, Encoder, tests_of
from fixtures import copied
from harness import fail, main, nightly, succeed

DEBERTA = Encoder("deberta-v3", "DebertaV2", head="classifier", masked_head="lm_predictions.lm_head.dense",
                  masked_bias="lm_predictions.lm_head.bias", masked_unused="lm_predictions.lm_head.LayerNorm.bias",
                  tied="lm_predictions.lm_head.decoder.weight", width_key="hidden_size", tensors=42,
                  dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "cls_dropout", "pooler_dropout"),
                  qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"), model_type="deberta-v2")
globals().update(tests_of(DEBERTA, at_night=COSTLY))


def test_what_cannot_be_loaded_is_named(directory):
    DEBERTA.need()
    for number, (config, words) in enumerate((({"model_type": "deberta"}, ["model_type is 'deberta'", "'deberta-v2'"]),
                                              ({"conv_kernel_size": 3, "conv_groups": 2}, ["conv_groups is 2"]),
                                              ({"pos_att_type": "p2p"}, ["pos_att_type has 'p2p'", "'c2p' and 'p2c'"]),
                                              ({"embedding_size": 16}, ["embedding_size is 16", "only 32"]))):
        model = copied(DEBERTA.model, directory / str(number), **config)
        fail(4, *DEBERTA.rows(model), "--output", directory / "run", words=words)


@nightly
def test_texts_may_be_longer_than_max_position_embeddings(directory):
    """There is no table of positions, and the farthest distances share a row."""
    DEBERTA.need()
    succeed(*DEBERTA.rows(), "--max-length", 300, "--max-steps", 1, "--output", directory / "run")


main(globals())
