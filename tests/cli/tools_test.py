"""score, tokenize, inspect and convert."""
import gzip
import hashlib
import json
import shutil

from fixtures import EVAL, MODEL, MODELS, TRAIN, predict, squad, trained, write
from harness import GOLDEN, SAMPLES, SHARED, fail, main, metrics_of, need, shared_path, succeed


def test_official_scores_to_the_last_digit(_):
    golden = json.loads((GOLDEN / "qa-scores/scores.json").read_text())
    for version, data in (("v1.1", SAMPLES / "squad-dev.json"), ("v2.0", GOLDEN / "qa-postprocess/questions.json")):
        line = ["score", "--data", data, "--predictions", GOLDEN / f"qa-scores/predictions-{version}.json", "--json"]
        found, names = json.loads(succeed(*line).out), {
            "exact_match": "exact_match", "f1": "f1", "exact": "exact_match", "total": "total",
            "HasAns_exact": "has_answer_exact_match", "HasAns_f1": "has_answer_f1", "HasAns_total": "has_answer_total",
            "NoAns_exact": "no_answer_exact_match", "NoAns_f1": "no_answer_f1", "NoAns_total": "no_answer_total"}
        for theirs, value in golden[version].items():
            assert found["eval_" + names[theirs]] == value, (version, theirs, found)


def test_official_scores_of_published_predictions(_):
    need("data/squad/predictions", "data/squad/dev-v1.1.json", "data/squad/dev-v2.0.json")
    folder = SHARED / "data/squad"
    # data/squad/README.txt: the output of the official scripts
    expected = {
        "v1.1-bert-ensemble-google": {"eval_exact_match": 86.20624408703878, "eval_f1": 92.19557978351145},
        "v1.1-logistic-regression-stanford": {"eval_exact_match": 40.14191106906339, "eval_f1": 50.98153647324461},
        "v1.1-match-lstm-smu": {"eval_exact_match": 67.63481551561021, "eval_f1": 76.75556184979695},
        "v2.0-bert-single-google": {"eval_exact_match": 78.74168280973637, "eval_f1": 81.77528052374723,
                                    "eval_has_answer_exact_match": 74.10593792172739,
                                    "eval_has_answer_f1": 80.18183293833508, "eval_no_answer_f1": 83.36417157275021},
        "v2.0-nlnet-msra": {"eval_exact_match": 75.82750779078582, "eval_f1": 78.77776770381462,
                            "eval_has_answer_exact_match": 69.61875843454791,
                            "eval_has_answer_f1": 75.52773885752187, "eval_no_answer_f1": 82.01850294365012},
        "v2.0-bidaf-selfatt-elmo-ai2": {"eval_exact_match": 65.70369746483618, "eval_f1": 67.87648921451334,
                                        "eval_has_answer_exact_match": 61.42037786774629,
                                        "eval_has_answer_f1": 65.77219238257676,
                                        "eval_no_answer_f1": 69.97476871320437},
    }
    for name, values in expected.items():
        data = folder / f"dev-{name[:4]}.json"
        found = json.loads(succeed("score", "--data", data, "--predictions", folder / f"predictions/{name}.json",
                                   "--json").out)
        for key, value in values.items():
            assert found[key] == value, (name, key, found)


def test_score_bad_inputs(directory):
    data = write(directory / "d.json", squad([("1", "Who?", "The cat sat.", "The cat")]))
    predictions = write(directory / "p.json", '{"1": "cat"}')
    result = succeed("score", "--data", data, "--predictions", predictions)
    assert "eval_exact_match  100" in result.out and result.err == "", result
    assert "1 id is not a question" in succeed("score", "--data", data, "--predictions",
                                            write(directory / "e.json", '{"2": "x", "1": "cat"}')).err
    fail(3, "score", "--data", data, "--predictions", directory / "no.json", words=["no.json"])
    fail(3, "score", "--data", data, "--predictions", write(directory / "l.json", "[1]"), words=["l.json"])
    fail(3, "score", "--data", predictions, "--predictions", predictions, words=["p.json"])
    fail(2, "score", "--data", data, "--predictions", predictions, "--na-prob", predictions, words=["--na-prob"])
    for threshold in ("nan", "inf"):
        fail(2, "score", "--data", data, "--predictions", predictions, "--na-prob-threshold", threshold,
             words=["--na-prob-threshold"])


def test_tokenize(directory):
    need("golden/tokenization/bert-base-uncased.jsonl", "tokenizers/bert-base-uncased", *MODELS)
    lines = [json.loads(l) for l in open(GOLDEN / "tokenization/bert-base-uncased.jsonl", encoding="utf-8")][:300]
    inputs = write(directory / "in.jsonl", "".join(json.dumps({"text": l["text"]}) + "\n" for l in lines))
    vocabulary = directory / "vocabulary"  # tokenizer files only
    vocabulary.mkdir()
    for name in ("vocab.txt", "tokenizer_config.json", "tokenizer.json"):
        source = shared_path("tokenizers/bert-base-uncased") / name
        if source.exists():
            shutil.copy(source, vocabulary)
    found = [json.loads(l) for l in succeed("tokenize", "--model", vocabulary, "--jsonl", inputs).out.splitlines()]
    for want, have in zip(lines, found, strict=True):
        assert have["ids"] == want["ids"] and have["offsets"] == want["offsets"], (want, have)
    # lines in, lines out
    result = succeed("tokenize", "--model", vocabulary, stdin="\ufeffA naïve\r\n\nend")
    tokens = [json.loads(l)["tokens"] for l in result.out.splitlines()]
    assert tokens == [["[CLS]", "a", "naive", "[SEP]"], ["[CLS]", "[SEP]"], ["[CLS]", "end", "[SEP]"]], tokens
    assert succeed("tokenize", "--model", vocabulary, stdin="").out == ""
    cut = json.loads(succeed("tokenize", "--model", vocabulary, "--max-length", 5, stdin="a b c d e f").out)
    assert len(cut["ids"]) == 5, cut
    windows = succeed("tokenize", "--model", vocabulary, "--jsonl", "--max-length", 8, "--doc-stride", 1,
                      stdin='{"question":"who ?","context":"a b c d e"}\n').out.splitlines()
    assert len(windows) == 2 and json.loads(windows[0])["offsets"][:4] == [None] * 4, windows
    text = directory / "text.txt.gz"
    text.write_bytes(gzip.compress(b"a b c\nend\n"))
    packed = succeed("tokenize", "--model", vocabulary, text).out
    assert packed == succeed("tokenize", "--model", vocabulary, stdin="a b c\nend\n").out
    (directory / "run").mkdir()
    shutil.copytree(vocabulary, directory / "run/model")
    assert succeed("tokenize", "--model", directory / "run", text).out == packed
    (vocabulary / "model").mkdir()  # its own files take precedence
    assert succeed("tokenize", "--model", vocabulary, text).out == packed
    fail(3, "tokenize", "--model", vocabulary, directory / "no.txt", words=["no.txt"])
    fail(3, "tokenize", "--model", vocabulary, directory, words=["directory"])
    fail(3, "tokenize", "--model", vocabulary, "--jsonl", stdin="{}", words=[":1:"])
    fail(4, "tokenize", "--model", directory, stdin="a", words=["vocab.txt"])
    fail(2, "tokenize", "--model", vocabulary, "--max-length", 2, stdin="a", words=["--max-length"])


def test_inspect(directory):
    need("golden/trajectory-classification-train.csv", *MODELS)
    model = json.loads(succeed("inspect", MODEL, "--json").out)
    assert model["config"]["architectures"] == ["BertForSequenceClassification"]
    assert "  model_type: bert\n  architecture: BertForSequenceClassification\n" in succeed("inspect", MODEL).out
    assert model["config"]["num_hidden_layers"] == 2 and len(model["weights"]["tensors"]) == 41, model
    assert json.loads(succeed("inspect", MODEL / "model.safetensors", "--json").out)["weights"]["format"]
    out = trained(directory, "run", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--save-every", 4,
                  "--keep-checkpoints", 2)
    found = json.loads(succeed("inspect", out, "--json").out)
    assert found["run"]["finished"] and found["run"]["options"]["label-column"] == "category", found["run"]
    assert found["run"]["metrics"] == metrics_of(out) and found["run"]["facts"]["seed"] == "42"
    assert [c["step"] for c in found["run"]["checkpoints"]] == [4, 6], found["run"]["checkpoints"]
    assert found["run"]["newest_checkpoint"]["step"] == 6 and found["weights"]["parameters"] > 0
    newest = out / "checkpoints/step-00000006.h5"
    checkpoint = json.loads(succeed("inspect", newest, "--json").out)["checkpoint"]
    names = {t["name"]: t["shape"] for t in checkpoint["tensors"]}
    assert names["weights/classifier.bias"] == [24] and len(checkpoint["labels"]) == 24, names
    assert {n.split("/")[0] for n in names} == {"weights", "m", "v"} and checkpoint["step"] == 6
    assert "weights/classifier.bias" in succeed("inspect", newest).out
    # a screen for a person: only options that somebody chose, and no tensors
    text = succeed("inspect", out).out
    assert all(word in text for word in ("  label-column ", "step-00000006.h5", "total: ")), text
    assert not any(word in text for word in ("adam-beta1", "weight-decay", "classifier.bias", "train_runtime")), text
    assert "classifier.bias" in succeed("inspect", out / "model").out
    # a damaged checkpoint is refused; in a run it is skipped
    damaged = bytearray(newest.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    newest.write_bytes(damaged)
    fail(4, "inspect", newest, words=["step-00000006.h5"])
    result = succeed("inspect", out, "--json")
    assert json.loads(result.out)["run"]["newest_checkpoint"]["step"] == 4 and "step-00000006.h5" in result.err, result
    # not yet finished
    (out / "metrics.json").unlink()
    assert "not finished" in succeed("inspect", out).out
    fail(4, "inspect", directory / "nothing", words=["nothing"])
    fail(4, "inspect", directory, words=[str(directory)])
    fail(4, "inspect", EVAL, words=[EVAL.name])
    fail(2, "inspect", words=["FILE|DIR|ID is required"])


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_convert(directory):
    need("golden/formats", *MODELS)
    expected = sha256(MODEL / "model.safetensors")
    for model in sorted((GOLDEN / "formats").iterdir()):
        out = directory / model.name
        succeed("convert", "--model", model, "--output", out)
        if model.name not in ("safetensors-f16", "safetensors-bf16", "safetensors-no-prefix-no-head"):
            assert sha256(out / "model.safetensors") == expected, model
        else:  # rounded, or without a head; the output converts to itself
            succeed("convert", "--model", out, "--output", directory / "again", "--overwrite")
            assert sha256(directory / "again/model.safetensors") == sha256(out / "model.safetensors")
    zip_model = GOLDEN / "formats/pytorch-zip"
    for dtype in ("f16", "bf16"):
        out = directory / dtype
        succeed("convert", "--model", zip_model, "--output", out, "--dtype", dtype)
        again = directory / f"{dtype}-again"
        succeed("convert", "--model", out, "--output", again, "--dtype", dtype)
        assert sha256(out / "model.safetensors") == sha256(again / "model.safetensors")
        predict(write(directory / "d.csv", "text\nhello\n"), model=out)
    fail(2, "convert", "--model", zip_model, "--output", directory / "f16", words=["f16", "--overwrite"])
    own = directory / "own"
    shutil.copytree(zip_model, own)
    before = sorted(p.name for p in own.iterdir())
    fail(2, "convert", "--model", own, "--output", own, "--overwrite", words=["is the model itself"])
    fail(4, "convert", "--model", directory / "none", "--output", directory / "new", words=["none"])
    assert before == sorted(p.name for p in own.iterdir()) and not (directory / "new").exists()
    fail(4, "convert", "--model", zip_model, "--output", directory / "d.csv" / "x", words=["d.csv"])


main(globals())
