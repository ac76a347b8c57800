"""CamemBERT, end to end: its classifier, with a sentencepiece model alone."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, tests_of
from harness import main, succeed

CAMEMBERT = Encoder("camembert", "Camembert", head="classifier.out_proj", masked_head="lm_head.dense",
                    masked_bias="lm_head.bias", masked_unused="lm_head.bias", tied="lm_head.decoder.weight",
                    width_key="hidden_size", tensors=41, dropout_keys=(), qa_dropout_keys=())
ALL = tests_of(CAMEMBERT)
globals().update({name: ALL[name] for name in (
    "test_trajectory_of_classification", "test_trajectory_of_classification_in_tensor_shards",
    "test_trajectory_of_classification_in_bf16", "test_rows_from_training_to_prediction", "test_two_texts_of_a_row",
    "test_new_head", "test_resumed_run", "test_planned_before_the_run")})


def test_special_tokens_are_the_vocabulary_s(directory):
    """<s> is 5 and </s> is 6; pairs have two separators."""
    CAMEMBERT.need()
    texts = directory / "texts.jsonl"
    texts.write_text('{"text": "a"}\n{"text": "a", "text_pair": "b"}\n')
    lines = succeed("tokenize", "--model", CAMEMBERT.model, "--jsonl", texts).out.splitlines()
    one, pair = [json.loads(line)["tokens"] for line in lines]
    assert one == ["<s>", "\u2581a", "</s>"], one
    assert pair[:4] == ["<s>", "\u2581a", "</s>", "</s>"] and json.loads(lines[1])["ids"][0] == 5, lines


main(globals())
