"""Predictions: inputs, outputs, columns, answers."""
import csv
import json
import resource
import shutil
import signal
import subprocess
from pathlib import Path

from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, copied, kill_when, predict, rows_of, write
from harness import BINARY, GOLDEN, fail, main, need, succeed


def test_predict_inputs(directory):
    need(*MODELS)
    header = ["text", "label", "probability"]
    assert rows_of(predict(write(directory / "h.csv", "text\n")).out) == [header]
    assert rows_of(predict("-", stdin="").out) == [header]
    assert len(rows_of(predict(write(directory / "o.csv", "text\nhello\n")).out)) == 2
    # one text per line; an empty line counts
    lines = rows_of(predict(write(directory / "l.txt", "b\n\na, \"c\"")).out)
    assert [row[0] for row in lines] == ["text", "b", "", 'a, "c"'], lines
    assert rows_of(predict("-", stdin="b\n\na, \"c\"").out) == lines
    # BOM, CRLF, quotes, a column with a name that finetune writes
    rows = rows_of(predict(write(directory / "b.csv", b'\xef\xbb\xbftext,label\r\ncaf\xc3\xa9,"x,y"\r\nz,"q""q"\r\n')).out)
    assert rows[0] == ["text", "label", "predicted_label", "probability"], rows
    assert [r[:2] for r in rows[1:]] == [["café", "x,y"], ["z", 'q"q']], rows
    rows = rows_of(predict(write(directory / "c.csv", "text,label,probability\nx,1,2\n")).out)
    assert rows[0][3:] == ["predicted_label", "predicted_probability"], rows
    # the only column besides the label is the text
    only = write(directory / "only.csv", "words,kind\nhello,x\n")
    fail(3, "predict", "--model", MODEL, "--input", only, "--output", "-", words=["--text-column"])
    assert rows_of(predict(only, "--label-column", "kind").out)[1][2:] == rows_of(predict("-", stdin="hello").out)[1][1:]
    # TSV and JSON Lines give the same predictions
    tsv = rows_of(predict(write(directory / "t.tsv", "text\tn\nhello\t1\n")).out)
    jsonl = rows_of(predict(write(directory / "t.jsonl", '{"text":"hello","n":1}\n')).out)
    assert tsv == jsonl, (tsv, jsonl)


def test_predict_bad_inputs(directory):
    need(*MODELS)

    def refused(code, data, words, *more):
        fail(code, "predict", "--model", MODEL, "--input", data, "--output", "-", *more, words=words)
        fail(code, "predict", "--model", MODEL, "--input", data, "--output", directory / "out.csv", *more, words=words)
        assert not list(directory.glob("out.csv*"))

    one = write(directory / "one.csv", "text\nhello\n")
    empty = predict(write(directory / "e.csv", ""))
    assert rows_of(empty.out) == [["text", "label", "probability"]] and "e.csv holds no rows" in empty.err, empty
    refused(3, directory / "nothing.csv", ["nothing.csv"])
    refused(3, directory, ["directory"])
    refused(3, write(directory / "r.csv", "text,n\nx,1\ny,1,2\n"), ["r.csv:3"])
    refused(3, write(directory / "u.txt", b"caf\xe9\n"), ["u.txt:1", "UTF-8"])
    refused(3, write(directory / "q.csv", 'text,n\n"open,1\n'), ["q.csv:2", "quote"])
    refused(3, one, ["one.csv", "'foo'"], "--text-column", "foo")
    refused(3, SQUAD, ["questions", "classification"])
    refused(2, write(directory / "plain.txt", "hello\n"), ["--text-column", "plain.txt"], "--text-column", "text")
    refused(3, one, ["no column is left", "'text'"], "--text-pair-column", "text")
    refused(2, one, ["--max-length", "512"], "--max-length", "513")
    refused(2, one, ["--max-length"], "--max-length", "2")
    refused(2, one, ["--top-k", "24"], "--top-k", "25")
    refused(2, one, ["--nbest"], "--nbest", directory / "n.json")
    result = predict(directory / "r.csv", "--skip-bad-rows")
    assert len(rows_of(result.out)) == 2 and "1 unusable" in result.err, result


def test_options_of_the_other_task(directory):
    need(*MODELS, "golden/trajectory-qa-train.json")
    rows = write(directory / "one.csv", "text\nhello\n")
    for model, data, options in (
            (MODEL, rows, (["--doc-stride", 8], ["--squad-version", "2"], ["--nbest", directory / "n.json"])),
            (QA_MODEL, SQUAD, (["--text-column", "text"], ["--text-pair-column", "b"], ["--skip-bad-rows"],
                               ["--top-k", 2], ["--all-probabilities"]))):
        for option in options:
            fail(2, "predict", "--model", model, "--input", data, "--output", "-", *option, words=[option[0]])
    for option in (["--label-column", "label"], ["--ignore-unknown-labels"], ["--skip-bad-rows"]):
        fail(2, "evaluate", "--model", QA_MODEL, "--data", SQUAD, *option, words=[option[0]])


def test_predict_outputs(directory):
    need(*MODELS)
    one = write(directory / "one.csv", "text\nhello\n")
    base = ["predict", "--model", MODEL, "--input", one, "--output"]
    fail(2, *base, one, words=["one.csv"])
    fail(2, *base, one, "--overwrite", words=["is the input"])
    model = shutil.copytree(MODEL, directory / "model")
    for path in (model, model / "model.safetensors"):
        fail(2, "predict", "--model", path, "--input", one, "--output", model / "config.json", "--overwrite",
             words=["config.json", "one of the model's files"])
    run = directory / "ended"
    run.mkdir()
    model.rename(run / "model")
    write(run / "labels.csv", "")
    succeed("predict", "--model", run, "--input", one, "--output", run / "labels.csv", "--overwrite")
    fail(2, "predict", "--model", run, "--input", one, "--output", run / "model" / "vocab.txt", "--overwrite",
         words=["vocab.txt", "one of the model's files"])
    fail(2, *base, directory, words=["directory"])
    fail(2, *base, directory / "labels.tsv", words=["labels.tsv", ".csv"])
    unfinished = directory / "run"
    unfinished.mkdir()
    write(unfinished / "config.toml", "")
    fail(4, "predict", "--model", unfinished, "--input", one, "--output", "-", words=["this run is unfinished", "--resume"])
    fail(4, *base, directory / "no" / "x.csv", words=["x.csv"])
    fail(4, *base, "/dev/full", words=["/dev/full", "No space"])
    succeed(*base, "/dev/null", "--overwrite")
    assert not Path("/dev/null").is_file()
    out = directory / "out.csv"
    result = succeed(*base, out)
    assert result.out == "" and "1 row in" in result.err and len(result.err.splitlines()) == 1, result
    fail(2, *base, out, words=["out.csv", "--overwrite"])
    assert succeed(*base, out, "--overwrite", "--quiet").err == ""
    assert out.read_text() == predict(one).out
    fail(4, "predict", "--model", directory / "none", "--input", one, "--output", out, "--overwrite", words=["none"])


def test_predict_to_links(directory):
    """A link's target file is checked and replaced, not the link."""
    need(*MODELS)
    one = write(directory / "one.csv", "text\nhello\n")
    link, target = directory / "link.csv", write(directory / "target.csv", "old")
    base = ["predict", "--model", MODEL, "--input", one, "--output", link]
    link.symlink_to("target.csv")
    fail(2, *base, words=["target.csv: exists", "--overwrite"])
    succeed(*base, "--overwrite")
    assert link.is_symlink() and target.read_text() == predict(one).out
    model = shutil.copytree(MODEL, directory / "model")
    link.unlink()
    link.symlink_to("model/vocab.txt")
    fail(2, "predict", "--model", model, "--input", one, "--output", link, "--overwrite", words=["the model's files"])
    link.unlink()
    link.symlink_to("nowhere.csv")
    for more in ([], ["--overwrite"]):
        fail(2, *base, *more, words=["link.csv", "leads nowhere"])
    assert link.is_symlink() and not (directory / "nowhere.csv").exists()
    # Standard output is a file under another name such as /dev/stdout: the file is written, the name stays.
    link.unlink()
    link.symlink_to("/proc/self/fd/1")
    with open(directory / "stdout.csv", "w") as file:
        done = subprocess.run([BINARY, *map(str, base), "--overwrite", "--quiet"], stdout=file, stderr=subprocess.PIPE,
                              text=True)
    assert done.returncode == 0 and link.is_symlink(), done
    assert (directory / "stdout.csv").read_text() == predict(one).out


def test_planted_links_are_not_followed(directory):
    """Names of temporary files are unpredictable, even from the process id, which is known here."""
    need(*MODELS)
    one, victim = write(directory / "one.csv", "text\nhello\n"), write(directory / "victim", "precious")
    with subprocess.Popen(["true"]) as process:
        for number in range(process.pid, process.pid + 2000):
            (directory / f"out.csv.tmp.{number}").symlink_to(victim)
    succeed("predict", "--model", MODEL, "--input", one, "--output", directory / "out.csv")
    assert victim.read_text() == "precious" and not (directory / "out.csv").is_symlink()


def test_predict_clears_away_what_was_killed(directory):
    need(*MODELS)
    one = write(directory / "one.csv", "text\nhello\n")
    write(directory / "out.csv.tmp.0123456789abcdef", "half")
    others = [write(directory / name, "mine") for name in ("out.csv.tmp.12", "b.csv.tmp.0123456789abcdef")]
    succeed("predict", "--model", MODEL, "--input", one, "--output", directory / "out.csv")
    assert sorted(directory.iterdir()) == sorted([one, directory / "out.csv", *others]), list(directory.iterdir())


def test_a_signal_leaves_nothing_behind(directory):
    need(*MODELS)
    rows = write(directory / "rows.csv", "text\n" + "hello RONA BRACKETS\n" * 200_000)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        code = kill_when(lambda: list(directory.glob("out.csv.tmp.*")), "predict", "--model", MODEL, "--input", rows,
                         "--output", directory / "out.csv", number=number)
        assert code == -number and list(directory.iterdir()) == [rows], (code, number)


def test_nbest_that_cannot_be_written(directory):
    """Answers and candidates belong together: both are replaced, or neither."""
    need(*MODELS, "golden/trajectory-qa-train.json")
    answers, candidates = write(directory / "a.json", "old"), write(directory / "n.json", "old")
    line = ["predict", "--model", QA_MODEL, "--input", SQUAD, "--output", answers, "--nbest", candidates, "--overwrite"]

    def limit():  # the answers have room in it, the candidates have not
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    done = subprocess.run([BINARY, *map(str, line)], preexec_fn=limit, capture_output=True, text=True)
    assert done.returncode == 4 and "n.json" in done.stderr and "File too large" in done.stderr, done
    assert answers.read_text() == candidates.read_text() == "old"
    assert sorted(directory.iterdir()) == sorted([answers, candidates])
    succeed(*line)
    assert answers.stat().st_size < 100000 < candidates.stat().st_size, "the limit does not part them"


def test_predict_columns(directory):
    need(*MODELS)
    data = write(directory / "d.csv", "text\nhello\nRONA BRACKETS\n")
    rows = rows_of(predict(data, "--top-k", 3, "--all-probabilities").out)
    names = rows[0]
    assert names[1:7] == ["label", "probability", "label_2", "probability_2", "label_3", "probability_3"], names
    for row in rows[1:]:
        values = [float(v) for v in row[7:]]
        assert len(values) == 24 and abs(sum(values) - 1) < 1e-5
        assert float(row[2]) == max(values) and names[7 + values.index(max(values))] == "probability:" + row[1]
        assert [float(row[i]) for i in (2, 4, 6)] == sorted(values, reverse=True)[:3]


def test_predictions_keep_order_and_do_not_depend_on_threads_or_batches(directory):
    need(*MODELS)
    data = write(directory / "e.csv", "".join(open(EVAL, encoding="utf-8").readlines()[:101]))
    outputs = {threads: predict(data, "--all-probabilities", "--threads", threads).out for threads in (1, 2, 3)}
    assert len(set(outputs.values())) == 1
    rows = rows_of(outputs[1])
    with open(data, newline="", encoding="utf-8") as file:
        assert [row[:2] for row in rows] == list(csv.reader(file))
    # no memory for sequences that no micro-batch has
    assert predict(data, "--all-probabilities", "--threads", 1, "--batch-size", 2**63 - 1).out == outputs[1]
    for size in (1, 7, 64):  # products of other shapes round differently
        other = rows_of(predict(data, "--all-probabilities", "--batch-size", size).out)
        for a, b in zip(rows[1:], other[1:], strict=True):
            assert all(abs(float(x) - float(y)) < 1e-6 for x, y in zip(a[3:], b[3:])), (size, a, b)


def test_repeated_texts(directory):
    """A repeated text is not computed again; it gets the same bits."""
    need(*MODELS)
    texts = ["coffee shop 12", "RONA BRACKETS", "Coffee  Shop 12", "", "taxi", "RONA BRACKETS", "", "taxi", "taxi"]
    data = write(directory / "r.csv", "text,n\n" + "".join(f"{text},{i}\n" for i, text in enumerate(texts)))
    result = predict(data, "--all-probabilities")
    assert "5 of them have the tokens of an earlier one" in result.err, result
    rows = rows_of(result.out)[1:]
    assert [row[:2] for row in rows] == [[text, str(i)] for i, text in enumerate(texts)]
    for a, b in [(0, 2), (1, 5), (3, 6), (4, 7), (4, 8)]:  # the model is uncased
        assert rows[a][2:] == rows[b][2:], (a, b)
    for row in rows:
        alone = rows_of(predict("-", "--all-probabilities", stdin=row[0] + "\n").out)[1]
        assert row[2] == alone[1]
        assert all(abs(float(x) - float(y)) < 1e-6 for x, y in zip(row[3:], alone[2:], strict=True))
    # A block of input without new texts.
    many = write(directory / "m.csv", "text\n" + "taxi\nRONA BRACKETS\n" * 5000)
    result = predict(many)
    assert "9,998 of them" in result.err and len(set(map(tuple, rows_of(result.out)[1:]))) == 2
    # Pairs: the same tokens, divided differently.
    pairs = write(directory / "p.csv", "a,b\nred,green blue\nred green,blue\nred,green blue\n")
    result = predict(pairs, "--text-column", "a", "--text-pair-column", "b")
    assert "1 of them" in result.err, result


def test_models_of_others(directory):
    need(*MODELS)
    # no `finetune` object, only Hugging Face's label names
    assert "finetune" not in json.loads((MODEL / "config.json").read_text())
    model = copied(MODEL, directory / "model", id2label={str(i): f"LABEL_{i}" for i in range(24)},
                   label2id={f"LABEL_{i}": i for i in range(24)})
    data = write(directory / "d.csv", "text\nhello\n")
    row = rows_of(predict(data, model=model).out)[1]
    assert row[1].startswith("LABEL_") and row[2] == rows_of(predict(data).out)[1][2], row
    # sentences of others carry pairs
    pairs = write(directory / "p.csv", "a,b\nhello,world\n")
    single = rows_of(predict(pairs, "--text-column", "a").out)[1]
    pair = rows_of(predict(pairs, "--text-column", "a", "--text-pair-column", "b").out)[1]
    both = rows_of(predict(pairs, "--text-column", "a,b").out)[1]
    assert len({single[3], pair[3], both[3]}) == 3, (single, pair, both)
    # no head at all
    need("golden/formats/safetensors-no-prefix-no-head")
    fail(4, "predict", "--model", GOLDEN / "formats/safetensors-no-prefix-no-head", "--input", data, "--output", "-",
         words=["no trained head"])


def test_predict_answers(directory):
    need("golden/trajectory-qa-train.json", *MODELS)
    ids = [q["id"] for a in json.loads(SQUAD.read_text())["data"] for p in a["paragraphs"] for q in p["qas"]][:10]
    out, n_best = directory / "a.json", directory / "n.json"
    data = write(directory / "d.json", '{"data":[{"paragraphs":[{"context":"Der Bär saß im Café.","qas":['
                 '{"id":"b","question":"Wer?"},{"id":"a","question":"Wo?"}]}]}]}')
    base = ["predict", "--model", QA_MODEL, "--input", data]
    result = succeed(*base, "--output", out, "--nbest", n_best)
    assert "2 questions" in result.err, result
    answers = json.loads(out.read_text())
    assert list(answers) == ["b", "a"] and all(a in "Der Bär saß im Café." for a in answers.values()), answers
    lists = json.loads(n_best.read_text())
    assert list(lists) == ["b", "a"] and lists["a"][0]["text"] == answers["a"], lists
    assert json.loads(succeed("predict", "--model", QA_MODEL, "--input", "-", "--output", "-",
                              stdin=data.read_text()).out) == answers
    flat = write(directory / "flat.jsonl", '{"id":"b","question":"Wer?","context":"Der Bär saß im Café."}\n')
    assert json.loads(predict(flat, model=QA_MODEL).out) == {"b": answers["b"]}
    for batch, threads in ((1, 1), (2, 2)):
        assert json.loads(predict(data, "--batch-size", batch, "--threads", threads, model=QA_MODEL).out) == answers
    fail(2, *base, "--output", directory / "x", "--nbest", directory / "x", words=["--nbest"])
    fail(2, *base, "--output", "-", "--top-k", 2, words=["--top-k", "question"])
    fail(2, *base, "--output", "-", "--max-length", 1000, words=["--max-length"])
    fail(3, "predict", "--model", QA_MODEL, "--input", EVAL, "--output", "-", words=[EVAL.name])
    fail(3, "predict", "--model", QA_MODEL, "--input", write(directory / "none.json", '{"data":[]}'), "--output", "-",
         words=["none.json"])
    assert not (directory / "x").exists() and ids


main(globals())
