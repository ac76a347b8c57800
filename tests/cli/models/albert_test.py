"""ALBERT, end to end: layers that share weights, and its Unigram vocabulary."""
import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import COSTLY, FAMILY, Encoder, tests_of, trajectory
from fixtures import copied, predict, write
from harness import fail, main, succeed

ALBERT = Encoder("albert", "Albert", head="classifier", masked_head="predictions.dense", masked_bias="predictions.bias",
                 masked_unused="predictions.", tied="predictions.decoder.weight", width_key="hidden_size", tensors=27,
                 dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"),
                 qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"))
globals().update(tests_of(ALBERT, at_night=COSTLY))


def groups(directory):
    """A model of two groups of two layers, with the other model's vocabulary."""
    model = copied(FAMILY / "albert-groups/classification", directory / "groups-model")
    (model / "tokenizer.json").write_bytes((ALBERT.model / "tokenizer.json").read_bytes())
    return model


def test_trajectory_of_two_groups_of_two_layers(directory):
    ALBERT.need()
    of_groups = dataclasses.replace(ALBERT, name="albert-groups")
    trajectory(of_groups, directory, "classification", ALBERT.rows(groups(directory)), "fp32", "--recompute")


def test_layers_that_share_weights_are_frozen_together(directory):
    ALBERT.need()
    fail(2, *ALBERT.rows(), "--freeze", 1, "--output", directory / "run",
         words=["--freeze 1", "layer 2 has the weights of layer 1", "--freeze embeddings"])
    for layers in ("embeddings", 2):
        succeed(*ALBERT.rows(), "--freeze", layers, "--max-steps", 1, "--output", directory / f"{layers}", "--quiet")
    model = groups(directory)
    succeed(*ALBERT.rows(model), "--freeze", 4, "--max-steps", 1, "--output", directory / "group", "--quiet")
    fail(2, *ALBERT.rows(model), "--freeze", 5, "--output", directory / "run", words=["layer 7 has the weights of layer 5"])


def test_sizes_and_groups_are_checked(directory):
    ALBERT.need()
    for change, words in (({"embedding_size": 64}, ["embedding_size 64", "hidden_size 32"]),
                          ({"num_hidden_groups": 3}, ["num_hidden_groups 3", "num_hidden_layers 2"]),
                          ({"position_embedding_type": "relative_key"}, ["'relative_key'", "'absolute'"])):
        name = next(iter(change))
        model = copied(ALBERT.model, directory / name, **change)
        fail(4, *ALBERT.rows(model), "--output", directory / "run", words=words)


def test_sentencepiece_model_gives_the_answers_of_tokenizer_json(directory):
    ALBERT.need()
    other = copied(ALBERT.model, directory / "other")
    (other / "tokenizer.json").unlink()
    (other / "spiece.model").write_bytes((ALBERT.qa_model / "spiece.model").read_bytes())
    data = write(directory / "t.csv", "text\nFuel at  THE station\nL\u2019\u00c9t\u00e9 ``\ufb01n'' [MASK] e\u0301\n\"\u00a0a, 9,\"\n")
    assert predict(data, model=other).out == predict(data, model=ALBERT.model).out


def test_export_states_the_types_of_tokens(directory):
    """transformers 5 gives ALBERT's second text type 0 where the tokenizer's configuration does not list them."""
    ALBERT.need()
    succeed(*ALBERT.rows(), "--max-steps", 1, "--output", directory / "run", "--quiet")
    stated = json.loads((directory / "run/model/tokenizer_config.json").read_text())
    assert stated["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"], stated


main(globals())
