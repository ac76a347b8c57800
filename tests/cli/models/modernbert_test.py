"""ModernBERT, end to end."""
import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, sum_of, tests_of, trajectory
from fixtures import copied, write
from harness import DEVICE, fail, main, succeed

MODERNBERT = Encoder("modernbert", "ModernBert", head="classifier", masked_head="head.dense",
                     masked_bias="decoder.bias", masked_unused="decoder.bias", tied="decoder.weight",
                     width_key="hidden_size", tensors=30, masked_others="1 other tensor",
                     dropout_keys=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"),
                     qa_dropout_keys=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"))
globals().update(tests_of(MODERNBERT))
# Biases everywhere, the mean of all tokens, a window of ten tokens, tanh GELU and SiLU.
MEAN = dataclasses.replace(MODERNBERT, name="modernbert-mean")


def test_trajectory_of_the_mean(directory):
    trajectory(MEAN, directory, "classification", MEAN.rows(), "fp32", "--recompute")


def test_trajectory_of_the_mean_in_tensor_shards_and_bf16(directory):
    trajectory(MEAN, directory, "classification", MEAN.rows(), "bf16", "--tensor-shards", 2)


def test_both_forms_of_the_configuration_are_one_model(directory):
    """transformers 5 writes layer_types and rope_parameters."""
    MODERNBERT.need()
    config = json.loads((MODERNBERT.model / "config.json").read_text())
    new = copied(MODERNBERT.model, directory / "new")
    for key in ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta"):
        del config[key]
    config["layer_types"] = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
    config["rope_parameters"] = {"full_attention": {"rope_type": "default", "rope_theta": 160000.0},
                                 "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    (new / "config.json").write_text(json.dumps(config))
    few = ["--max-steps", 2, "--quiet"]
    expected = sum_of(directory, "old-run", [*MODERNBERT.rows(), *few])
    assert sum_of(directory, "new-run", [*MODERNBERT.rows(new), *few]) == expected
    config["layer_types"] = ["full_attention", "full_attention", "sliding_attention", "full_attention"]
    (new / "config.json").write_text(json.dumps(config))
    assert sum_of(directory, "other-run", [*MODERNBERT.rows(new), *few]) != expected


def test_exports_are_one_model_in_all_versions(directory):
    """transformers 4 ignores layer_types and rope_parameters; 5 cannot read a local_rope_theta of null."""
    MODERNBERT.need()
    old = json.loads((MODERNBERT.model / "config.json").read_text())
    thetas = {"full_attention": {"rope_type": "default", "rope_theta": 50.0},
              "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}
    types = {"f": "full_attention", "s": "sliding_attention"}
    texts = write(directory / "texts.csv", "text\nPETROL\n")

    def converted(name, removed=(), **keys):
        model = copied(MODERNBERT.model, directory / name)
        config = {key: value for key, value in old.items() if key not in removed} | keys
        (model / "config.json").write_text(json.dumps(config))
        done = succeed("convert", "--model", model, "--output", directory / f"{name}-out")
        succeed("predict", "--model", directory / f"{name}-out", "--input", texts, "--output", "-", "--quiet")
        return json.loads((directory / f"{name}-out/config.json").read_text()), done.err

    removed = ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta")
    found, _ = converted("new", removed, layer_types=[types[t] for t in "fsfs"], rope_parameters=thetas, sliding_window=7)
    assert [found[key] for key in (*removed, "local_attention")] == [2, 50, 300, 14], found
    assert found["rope_parameters"] == thetas and len(found["layer_types"]) == 4, found
    found, _ = converted("null", local_rope_theta=None)
    assert [found[key] for key in removed] == [3, 160000, 160000], found
    found, _ = converted("nulls", global_attn_every_n_layers=None, local_attention=None, layer_types=[types[t] for t in "fssf"])
    assert [found["global_attn_every_n_layers"], found["local_attention"]] == [3, 128], found
    found, told = converted("same")
    assert found.items() >= old.items() and "warning" not in told, (found, told)
    found, told = converted("other", removed, layer_types=[types[t] for t in "ffsf"])
    assert "global_attn_every_n_layers" not in found and "transformers 4 ignores them" in told, (found, told)
    # A trained model, too.
    model = directory / "new"
    succeed(*MODERNBERT.rows(model), "--reinit-head", "--max-steps", 1, "--quiet", "--output", directory / "run")
    found = json.loads((directory / "run/model/config.json").read_text())
    assert [found[key] for key in removed] == [2, 50, 300], found


def test_head_for_answers_is_not_one_for_categories(directory):
    """Both are called classifier; config.json's class tells them apart."""
    MODERNBERT.need()
    answers = copied(MODERNBERT.qa_model, directory / "answers")
    data = directory / "two.csv"
    data.write_text("text,category\n" + "".join(f"coffee {i},{'ab'[i % 2]}\n" for i in range(24)))
    line = ["train", "--model", answers, "--train", data, "--label-column", "category", "--max-steps", 1, *DEVICE]
    log = succeed(*line, "--output", directory / "run").err
    assert "the head (classifier) is newly initialised" in log, log
    succeed("convert", "--model", answers, "--output", directory / "same")
    config = json.loads((directory / "same/config.json").read_text())
    assert config["architectures"] == ["ModernBertForQuestionAnswering"], config
    fail(2, "evaluate", "--model", answers, "--data", data, "--label-column", "category",
         words=["was trained for question answering"])


main(globals())
