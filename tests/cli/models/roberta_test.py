"""RoBERTa, end to end."""
import csv
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, tests_of
from fixtures import Tensor, copied, predict, read_safetensors, write, write_safetensors
from harness import DEVICE, fail, main, succeed

ROBERTA = Encoder("roberta", "Roberta", head="classifier.out_proj", masked_head="lm_head.dense",
                  masked_bias="lm_head.bias", masked_unused="lm_head.bias", tied="lm_head.decoder.weight",
                  width_key="hidden_size", tensors=41,
                  dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
                  qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"))
globals().update(tests_of(ROBERTA))


def test_inputs_have_as_many_tokens_as_positions_behind_the_first(directory):
    """130 rows of positions, of which the first text token takes the third."""
    ROBERTA.need()
    long = "many words of a text " * 40
    data = write(directory / "long.csv", "text,category\n" + 2 * f"{long},Vehicle fuel\n{long},Other retail\n")
    line = ["train", "--model", ROBERTA.model, "--train", data, "--label-column", "category", "--max-steps", 1,
            "--quiet", *DEVICE]
    succeed(*line, "--max-length", 128, "--output", directory / "run")
    fail(2, *line, "--max-length", 129, "--output", directory / "longer", words=["--max-length 129", "128 positions"])


def test_four_special_tokens_around_a_pair_need_room(directory):
    ROBERTA.need()
    data = write(directory / "pairs.csv", "text,other,label\na,b,x\nb,c,y\n")
    line = ["train", "--model", ROBERTA.model, "--reinit-head", "--train", data, "--text-column", "text",
            "--text-pair-column", "other", "--max-steps", 1, "--quiet", *DEVICE]
    succeed(*line, "--max-length", 6, "--output", directory / "run")
    fail(2, *line, "--max-length", 5, "--output", directory / "shorter", words=["--max-length 5", "at least 6"])


def test_padding_token_in_a_text_takes_no_position(directory):
    """The golden model with another row of positions: only a text with <pad> reads row 1."""
    ROBERTA.need()
    tensors = read_safetensors(ROBERTA.model / "model.safetensors")
    positions, row = "roberta.embeddings.position_embeddings.weight", 4 * 32
    data = write(directory / "t.csv", "text\nfuel at the station\nfuel <pad> at the station\n")

    def answers(name, number):
        model = copied(ROBERTA.model, directory / name)
        changed = bytearray(tensors[positions].data)
        changed[number * row:(number + 1) * row] = struct.pack("<32f", *range(32))
        write_safetensors(model / "model.safetensors", {**tensors, positions: Tensor((130, 32), changed)})
        return list(csv.DictReader(predict(data, "--all-probabilities", model=model).out.splitlines()))

    plain = list(csv.DictReader(predict(data, "--all-probabilities", model=ROBERTA.model).out.splitlines()))
    assert answers("row-0", 0) == plain
    without_row_1 = answers("row-1", 1)
    assert without_row_1[0] == plain[0] and without_row_1[1] != plain[1], without_row_1


main(globals())
