"""nomic_bert, end to end: rotary positions and gated blocks, with norms behind the blocks."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import COSTLY, Encoder, sum_of, tests_of
from fixtures import copied, read_safetensors, write_safetensors
from harness import fail, main, succeed

NOMIC = Encoder("nomic_bert", "NomicBert", head="classifier", masked_head="cls.predictions.transform.dense",
                masked_bias="cls.predictions.bias", masked_unused="cls.predictions.bias",
                tied="cls.predictions.decoder.weight", width_key="hidden_size", tensors=26,
                dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
                qa_dropout_keys=("attn_pdrop",))
globals().update(tests_of(NOMIC, at_night=COSTLY))
# Keys of the published models, and transformers' for the same.
OLD = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
       "n_inner": "intermediate_size", "n_positions": "max_position_embeddings", "layer_norm_epsilon": "layer_norm_eps"}


def test_published_form_is_the_same_model(directory):
    """Its keys, and names of the first code: the encoder in `bert`, or bare."""
    NOMIC.need()
    config = json.loads((NOMIC.model / "config.json").read_text())
    few = ["--max-steps", 2, "--quiet"]
    expected = sum_of(directory, "run", [*NOMIC.rows(), *few])
    for prefix in ("bert.", ""):
        old = copied(NOMIC.model, directory / f"old-{prefix}")
        tensors = read_safetensors(old / "model.safetensors")
        write_safetensors(old / "model.safetensors", {name.replace("nomic_bert.", prefix): t for name, t in tensors.items()})
        theta = config["rope_parameters"]["rope_theta"]
        kept = {key: value for key, value in config.items() if key not in {"rope_parameters", "head_dim", *OLD.values()}}
        (old / "config.json").write_text(json.dumps(
            {**kept, **{key: config[name] for key, name in OLD.items()}, "rotary_emb_base": theta, "prenorm": False}))
        assert sum_of(directory, f"run-{prefix}", [*NOMIC.rows(old), *few]) == expected
        # transformers reads its own keys alone.
        exported = json.loads((directory / f"run-{prefix}" / "model/config.json").read_text())
        assert [exported.get(name) for name in OLD.values()] == [config[name] for name in OLD.values()], exported
        assert exported["rope_theta"] == theta


def test_variants_are_refused_by_name(directory):
    NOMIC.need()
    model = copied(NOMIC.model, directory / "model", rotary_emb_interleaved=True)
    fail(4, *NOMIC.rows(model), "--output", directory / "run", words=["rotary_emb_interleaved is true; only false"])


def test_quick_reads_the_mean_of_tokens(directory):
    """One more layer, whose fused projection has the values' rows."""
    NOMIC.need()
    rows = NOMIC.rows()
    for option in ("--batch-size", "--lr", "--epochs"):
        at = rows.index(option)
        del rows[at:at + 2]
    succeed(*rows, "--recipe", "quick", "--output", directory / "run", "--quiet")
    assert json.loads((directory / "run/model/config.json").read_text())["num_hidden_layers"] == 3


main(globals())
