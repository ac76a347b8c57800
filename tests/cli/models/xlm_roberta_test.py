"""XLM-RoBERTa, end to end: RoBERTa's encoder with a Unigram vocabulary."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from encoder_tests import Encoder, tests_of
from fixtures import copied, predict, write
from harness import DEVICE, main, succeed

XLM_ROBERTA = Encoder("xlm-roberta", "XLMRoberta", head="classifier.out_proj", masked_head="lm_head.dense",
                      masked_bias="lm_head.bias", masked_unused="lm_head.bias", tied="lm_head.decoder.weight",
                      width_key="hidden_size", tensors=41,
                      dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
                      qa_dropout_keys=("hidden_dropout_prob", "attention_probs_dropout_prob"))
globals().update(tests_of(XLM_ROBERTA))


def test_sentencepiece_model_gives_the_answers_of_tokenizer_json(directory):
    """Both are the same vocabulary; the export has the file that the model came with."""
    XLM_ROBERTA.need()
    other = copied(XLM_ROBERTA.model, directory / "other")
    (other / "tokenizer.json").unlink()
    pieces = (XLM_ROBERTA.qa_model / "sentencepiece.bpe.model").read_bytes()
    (other / "sentencepiece.bpe.model").write_bytes(pieces)
    data = write(directory / "t.csv", "text\nfuel at  the station\nl\u2019\u00e9t\u00e9 \ufb01n <mask> e\u0301\n\u00a0a\n")
    assert predict(data, model=other).out == predict(data, model=XLM_ROBERTA.model).out
    run = directory / "run"
    succeed(*XLM_ROBERTA.rows(other), "--max-steps", 1, "--output", run, "--quiet")
    assert (run / "model/sentencepiece.bpe.model").read_bytes() == pieces


def test_answers_have_no_space_around_them(directory):
    """The tokens of a sentencepiece model begin with the space before their word."""
    XLM_ROBERTA.need()
    succeed("predict", "--model", XLM_ROBERTA.qa_model, "--input", XLM_ROBERTA.squad, "--output", directory / "a.json",
            "--max-length", 96, "--doc-stride", 32, *DEVICE)
    answers = json.loads((directory / "a.json").read_text())
    assert len(answers) > 5 and all(text == text.strip() for text in answers.values()), answers


main(globals())
