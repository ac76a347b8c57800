"""DistilBERT, end to end."""
import math
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, tests_of
from fixtures import copied, read_safetensors, write
from harness import DEVICE, fail, main, succeed

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


def test_random_weights_begin_with_sinusoidal_positions(directory):
    """The table of transformers' create_sinusoidal_embeddings, in place of random values."""
    DISTILBERT.need()
    texts = write(directory / "texts.txt", "fuel\nrent\n")
    tables = []
    for name, value in (("plain", False), ("sines", True)):
        model = copied(DISTILBERT.model, directory / name, sinusoidal_pos_embds=value)
        succeed("adapt", "--model", model, "--reinit", "--text", texts, "--max-steps", 1, "--lr", 0, "--output",
                directory / f"{name}-run", "--quiet", *DEVICE)
        stored = read_safetensors(directory / f"{name}-run/model/model.safetensors")
        table = stored["distilbert.embeddings.position_embeddings.weight"]
        tables.append(struct.unpack(f"<{len(table.data) // 4}f", table.data))
    sines = [(math.cos if c % 2 else math.sin)(p / 10000 ** (c // 2 * 2 / 32)) for p in range(128) for c in range(32)]
    assert max(abs(a - b) for a, b in zip(tables[1], sines, strict=True)) < 1e-7
    assert max(abs(a - b) for a, b in zip(tables[0], sines, strict=True)) > 0.5


main(globals())
