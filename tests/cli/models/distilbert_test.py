"""DistilBERT, end to end."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, copied, tests_of
from harness import fail, main

DISTILBERT = Encoder("distilbert", "DistilBert", head="classifier", masked_head="vocab_transform",
                     masked_bias="vocab_projector.bias", masked_unused="vocab_layer_norm.bias",
                     tied="vocab_projector.weight", width_key="dim", tensors=40,
                     dropout_keys=("dropout", "attention_dropout", "seq_classif_dropout"),
                     qa_dropout_keys=("dropout", "attention_dropout", "qa_dropout"))
globals().update(tests_of(DISTILBERT))


def test_other_architectures_are_refused_by_name(directory):
    DISTILBERT.need()
    model = copied(DISTILBERT.model, directory / "gpt2")
    (model / "config.json").write_text('{"model_type": "gpt2"}')
    fail(4, *DISTILBERT.rows(model), "--output", directory / "run",
         words=["gpt2/config.json", "model_type is 'gpt2'",
                "'bert', 'albert', 'deberta-v2', 'distilbert', 'electra', 'modernbert', 'mpnet', 'nomic_bert', 'roberta', "
                "'xlm-roberta' and 'camembert'"])


main(globals())
