"""evaluate, predict, score, tokenize, inspect, convert, doctor and --help through the binary."""
import csv
import hashlib
import io
import json
import shutil
import subprocess
from pathlib import Path

from harness import BINARY, GOLDEN, SHARED, fail, main, metrics_of, need, run, succeed

MODEL = GOLDEN / "tiny-bert-classification"
QA_MODEL = GOLDEN / "tiny-bert-qa"
TRAIN = GOLDEN / "trajectory-classification-train.csv"
EVAL = GOLDEN / "trajectory-classification-eval.csv"
SQUAD = GOLDEN / "trajectory-qa-train.json"
MODELS = ("golden/tiny-bert-classification", "golden/tiny-bert-qa")
COMMANDS = ("train", "evaluate", "predict", "bench", "tokenize", "inspect", "convert", "score", "doctor")


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def predict(data, *more, model=MODEL, **options):
    return succeed("predict", "--model", model, "--input", data, "--output", "-", *more, **options)


def squad(questions, version="1.1"):
    """questions: (id, question, context, answer or None for unanswerable)"""
    entries = []
    for name, question, context, answer in questions:
        answers = [] if answer is None else [{"text": answer, "answer_start": context.index(answer)}]
        entries.append({"context": context, "qas": [{"id": name, "question": question, "answers": answers,
                                                     "is_impossible": answer is None}]})
    return json.dumps({"version": version, "data": [{"title": "t", "paragraphs": entries}]})


# ---- help and mistakes


def test_help_of_every_command(directory):
    general = succeed("--help").out
    for command in COMMANDS:
        assert command in general, command
        for text in (succeed(command, "--help").out, succeed(command, "-h").out):
            assert f"Usage: finetune {command}" in text and "Example" in text, text
            for noise in ("INT", " TEXT", "FLOAT", " ...  ", "POSITIVE", "in [0", "REQUIRED", ":{", "=auto"):
                assert noise not in text, (command, noise, text)
            assert max(map(len, text.splitlines())) < 140, command
    assert succeed("--version").out.strip().count(".") == 2
    for command in ("step", "ops", "tokenizer"):
        assert ":{" not in succeed("bench", command, "--help").out
    help_text = succeed("train", "--help").out
    for words in ("[linear]", "--model DIR|FILE", "--train FILE...", "--output DIR", "--baseline FILE",
                  "--label-column NAME", "--multi-label SEP", "--lr X", "--epochs X", "--batch-size N", "--threads N|all",
                  "--time-limit TIME", "--dropout P", "--freeze none|embeddings|N", "--tolerance METRIC=X"):
        assert words in help_text, words


def test_mistakes_on_the_command_line(directory):
    fail(2, words=["train", "--help"])
    fail(2, "trian", words=["'trian'", "did you mean train?"])
    fail(2, "frobnicate", words=["predict"])
    fail(2, "--verson", words=["--version"])
    fail(2, "predict", "--modl", "x", words=["'--modl'", "did you mean --model?"])
    fail(2, "predict", "--xyzzy=1", words=["'--xyzzy'", "finetune predict --help"])
    fail(2, "evaluate", "-k", "3", words=["'-k'"])
    fail(2, "predict", words=["--model", "required"])
    fail(2, "predict", "--model", words=["--model", "value is missing"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "extra", words=["'extra'"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "--top-k", "two", words=["--top-k", "'two'"])
    fail(2, "predict", "--model", "a", "--input", "b", "--output", "c", "--top-k", "0", words=["--top-k", "'0'"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--threads", "1.5", words=["--threads", "'1.5'"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--threads", "9" * 20, words=["--threads"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--precision", "fp8", words=["'fp8'", "bf16"])
    fail(2, "evaluate", "--model", "a", "--data", "b", "--json=maybe", words=["--json", "flag"])
    fail(2, "train", "--epochs", "1", "--epochs", words=["--epochs", "missing"])
    fail(2, "train", "--lr", "fast", words=["--lr", "'fast'"])
    fail(2, "convert", "--model", "a", "--output", "b", "--dtype", "f64", words=["'f64'"])
    fail(4, "predict", "--model", "a\nb", "--input", "b", "--output", "c", words=["a\\nb"])


def test_the_last_value_counts_and_underscores(directory):
    need(*MODELS)
    data = write(directory / "a.txt", "one\n")
    assert predict(data, "--batch_size", "3", "--batch_size", "4").out == predict(data).out
    assert predict(data, "--threads", "all").out == predict(data, "--threads", "1", "--threads", "2").out


def test_standard_output(directory):
    need(*MODELS)
    with open("/dev/full", "w") as full:
        for arguments in (["--help"], ["--version"], ["inspect", MODEL], ["doctor"],
                          ["evaluate", "--model", MODEL, "--data", EVAL, "--label-column", "category", "--quiet"],
                          ["predict", "--model", MODEL, "--input", EVAL, "--output", "-"],
                          ["tokenize", "--model", MODEL, EVAL]):
            done = subprocess.run([BINARY, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True)
            assert done.returncode == 4 and "No space left" in done.stderr, (arguments, done)
    # A reader that goes away: no message, nothing left behind.
    big = write(directory / "big.txt", "some words\n" * 50000)
    for arguments in (["tokenize", "--model", MODEL, big],):
        process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 141, arguments


# ---- predict, classification


def test_predict_inputs(directory):
    need(*MODELS)
    header = ["text", "label", "probability"]
    assert rows_of(predict(write(directory / "h.csv", "text\n")).out) == [header]
    assert rows_of(predict("-", stdin="").out) == [header]
    assert len(rows_of(predict(write(directory / "o.csv", "text\nhello\n")).out)) == 2
    # a text per line; an empty line is a line
    lines = rows_of(predict(write(directory / "l.txt", "b\n\na, \"c\"")).out)
    assert [row[0] for row in lines] == ["text", "b", "", 'a, "c"'], lines
    assert rows_of(predict("-", stdin="b\n\na, \"c\"").out) == lines
    # BOM, CRLF, quotes, a column of our name
    rows = rows_of(predict(write(directory / "b.csv", b'\xef\xbb\xbftext,label\r\ncaf\xc3\xa9,"x,y"\r\nz,"q""q"\r\n')).out)
    assert rows[0] == ["text", "label", "predicted_label", "probability"], rows
    assert [r[:2] for r in rows[1:]] == [["café", "x,y"], ["z", 'q"q']], rows
    rows = rows_of(predict(write(directory / "c.csv", "text,label,probability\nx,1,2\n")).out)
    assert rows[0][3:] == ["predicted_label", "predicted_probability"], rows
    # the only column besides the label's is the text
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
    refused(3, write(directory / "e.csv", ""), ["e.csv", "empty"])
    refused(3, directory / "nothing.csv", ["nothing.csv"])
    refused(3, directory, ["directory"])
    refused(3, write(directory / "r.csv", "text,n\nx,1\ny,1,2\n"), ["r.csv:3"])
    refused(3, write(directory / "u.txt", b"caf\xe9\n"), ["u.txt:1", "UTF-8"])
    refused(3, write(directory / "q.csv", 'text,n\n"open,1\n'), ["q.csv:2", "quote"])
    refused(3, one, ["one.csv", "'foo'"], "--text-column", "foo")
    refused(3, SQUAD, ["questions", "classification"])
    refused(2, one, ["--max-length", "512"], "--max-length", "513")
    refused(2, one, ["--max-length"], "--max-length", "2")
    refused(2, one, ["--top-k", "24"], "--top-k", "25")
    refused(2, one, ["--nbest"], "--nbest", directory / "n.json")
    result = predict(directory / "r.csv", "--skip-bad-rows")
    assert len(rows_of(result.out)) == 2 and "1 unusable" in result.err, result


def test_predict_outputs(directory):
    need(*MODELS)
    one = write(directory / "one.csv", "text\nhello\n")
    base = ["predict", "--model", MODEL, "--input", one, "--output"]
    fail(2, *base, one, words=["one.csv"])
    fail(2, *base, one, "--overwrite", words=["is the input"])
    fail(2, *base, directory, words=["directory"])
    fail(4, *base, directory / "no" / "x.csv", words=["x.csv"])
    fail(4, *base, "/dev/full", words=["/dev/full", "No space"])
    succeed(*base, "/dev/null", "--overwrite")
    assert not Path("/dev/null").is_file()
    out = directory / "out.csv"
    result = succeed(*base, out)
    assert result.out == "" and "1 rows" in result.err and len(result.err.splitlines()) == 1, result
    fail(2, *base, out, words=["out.csv", "--overwrite"])
    assert succeed(*base, out, "--overwrite", "--quiet").err == ""
    assert out.read_text() == predict(one).out
    fail(4, "predict", "--model", directory / "none", "--input", one, "--output", out, "--overwrite", words=["none"])


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
    for size in (1, 7, 64):  # other shapes of the matrix products round differently
        other = rows_of(predict(data, "--all-probabilities", "--batch-size", size).out)
        for a, b in zip(rows[1:], other[1:], strict=True):
            assert all(abs(float(x) - float(y)) < 1e-6 for x, y in zip(a[3:], b[3:])), (size, a, b)


def peak_memory(arguments, directory):
    """MiB of the highest resident memory."""
    script = ("import resource, subprocess, sys; c = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode; "
              "print(c, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)")
    done = subprocess.run(["python3", "-c", script, BINARY, *map(str, arguments)], capture_output=True, text=True)
    code, memory = done.stdout.split()
    assert code == "0", done
    return int(memory)


def test_memory_of_predict_does_not_grow(directory):
    need(*MODELS)
    peaks = []
    for count in (5000, 200000):
        data = write(directory / "big.csv", "text,n\n" + "".join(f"words {i} here,{i}\n" for i in range(count)))
        out = directory / f"out-{count}.csv"
        peaks.append(peak_memory(["predict", "--model", MODEL, "--input", data, "--output", out, "--max-length", 8],
                                 directory))
        assert sum(1 for _ in open(out)) == count + 1
    # Rows that were held would take 440 bytes each: 80 MiB. Allocation of threads varies by 10.
    assert peaks[1] < peaks[0] + 24, peaks


def test_models_of_others(directory):
    need(*MODELS)
    # no `finetune` object, Hugging Face's label names
    model = directory / "model"
    shutil.copytree(MODEL, model)
    for path in model.iterdir():
        path.chmod(0o644)
    config = json.loads((model / "config.json").read_text())
    assert "finetune" not in config
    config["id2label"] = {str(i): f"LABEL_{i}" for i in range(24)}
    config["label2id"] = {f"LABEL_{i}": i for i in range(24)}
    (model / "config.json").write_text(json.dumps(config))
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


# ---- evaluate


def evaluate(data, *more, model=MODEL, **options):
    return succeed("evaluate", "--model", model, "--data", *([data] if isinstance(data, Path) else data), *more,
                   **options)


def test_memory_of_evaluate_does_not_grow(directory):
    need(*MODELS)
    peaks = []
    label = rows_of(predict("-", stdin="hello").out)[1][1]
    for count in (5000, 200000):
        data = write(directory / "big.csv", "text,label,n\n" +
                     "".join(f'words {i} here,"{label}",{i}\n' for i in range(count)))
        out = directory / f"out-{count}"
        peaks.append(peak_memory(["evaluate", "--model", MODEL, "--data", data, "--output", out, "--max-length", 8],
                                 directory))
        assert sum(1 for _ in open(out / "predictions.csv")) == count + 1
    assert peaks[1] < peaks[0] + 24, peaks
    # Questions are held, and what they and their context take in the file; no windows, logits or n-best lists,
    # which would be 28 MiB here.
    peaks = []
    context = "The cat sat on the mat . " * 30
    for count in (500, 4500):
        data = write(directory / "big.json", squad([(f"{i}", f"Who is {i}?", context, "The cat") for i in range(count)]))
        peaks.append(peak_memory(["evaluate", "--model", QA_MODEL, "--data", data, "--max-length", 32, "--doc-stride",
                                  8, "--output", directory / f"qa-{count}"], directory))
    assert peaks[1] < peaks[0] + 18, peaks


def test_evaluate_inputs(directory):
    need(*MODELS)
    lines = open(EVAL, encoding="utf-8").readlines()[:301]
    whole = write(directory / "e.csv", "".join(lines))
    expected = evaluate(whole, "--label-column", "category", "--json").out
    # several files are joined, a pipe is a file
    parts = [write(directory / f"{i}.csv", lines[0] + "".join(lines[1 + 100 * i:101 + 100 * i])) for i in range(3)]
    assert evaluate(parts, "--label-column", "category", "--json").out == expected
    column = [row[1] for row in rows_of("".join(lines))]
    assert column[0] == "category"
    text = "".join(lines)
    assert evaluate(Path("/dev/stdin"), "--label-column", "category", "--json", stdin=text).out == expected
    # The first N usable rows.
    first = evaluate(parts[0], "--label-column", "category", "--json").out
    assert evaluate(parts, "--label-column", "category", "--json", "--max-eval-samples", 100).out == first
    bad = write(directory / "bad.csv", lines[0] + '"",x\nragged\n' + "".join(lines[1:]))
    result = evaluate(bad, "--label-column", "category", "--json", "--skip-bad-rows", "--max-eval-samples", 100)
    assert result.out == first and "2 unusable rows" in result.err, result
    # Faults are found before anything is computed or written, in the last row too.
    out = directory / "out"
    base = ["evaluate", "--model", MODEL, "--label-column", "category", "--output", out, "--data"]
    fail(3, *base, bad, words=["bad.csv:2", "is empty"])
    fail(3, *base, parts[0], write(directory / "late.csv", "".join(lines) + "x,\n"), words=["late.csv:302", "empty"])
    fail(3, *base, parts[0], write(directory / "late.csv", "".join(lines) + "x,new label\n"),
         words=["late.csv:302", "'new label'", "--ignore-unknown-labels"])
    fail(3, *base, parts[0], write(directory / "other.csv", "a,b\n1,2\n"), words=["other.csv", "its columns"])
    fail(3, *base, parts[0], write(directory / "none.csv", lines[0]), words=["none.csv", "no rows"])
    fail(3, *base, write(directory / "empty.csv", ""), words=["empty.csv", "is empty"])
    fail(3, *base, write(directory / "new.csv", "text,category\nx,y\n"), "--ignore-unknown-labels", words=["new.csv"])
    fail(3, *base, directory, words=["directory"])
    assert not out.exists()


def trained(directory, name, *arguments):
    out = directory / name
    succeed("train", "--output", out, "--lr", "1e-3", "--max-steps", 6, "--quiet", *arguments)
    return out


def same_metrics(out, data, *more):
    """evaluate gives what the run ended with."""
    expected = {k: v for k, v in metrics_of(out).items() if k.startswith("eval_")}
    for model in (out, out / "model"):
        found = json.loads(succeed("evaluate", "--model", model, "--data", data, "--json", *more).out)
        for key, value in found.items():
            assert abs(value - expected[key]) <= 1e-6 * max(1, abs(value)), (key, value, expected)
        assert set(found) <= set(expected) and len(found) >= 3, (found, expected)


def test_evaluate_equals_the_run(directory):
    need("golden/trajectory-classification-train.csv", *MODELS)
    out = trained(directory, "single", "--model", MODEL, "--train", TRAIN, "--eval", EVAL, "--label-column", "category")
    same_metrics(out, EVAL)
    files = directory / "files"
    result = succeed("evaluate", "--model", out, "--data", EVAL, "--output", files, "--quiet")
    assert result.err == "" and "eval_accuracy" in result.out, result
    for name in ("predictions.csv", "confusion.csv", "per_class.csv"):
        assert (files / name).read_text() == (out / name).read_text(), name
    # the label column is known from training: predict takes it as an ordinary column
    assert rows_of(predict(EVAL, model=out).out)[0] == ["text", "category", "label", "probability"]

    texts = ["red apple", "green pear", "blue sky", "red sky", "green sea", "blue apple"] * 4
    multi = write(directory / "m.csv", "text,label\n" + "".join(f"{t},{t.replace(' ', ';')}\n" for t in texts))
    out = trained(directory, "multi", "--model", MODEL, "--train", multi, "--eval", multi, "--multi-label", ";",
                  "--reinit-head")
    same_metrics(out, multi)
    assert rows_of(predict(multi, "--all-probabilities", model=out).out)[0][2:4] == ["predicted_label", "probability"]
    fail(2, "predict", "--model", out, "--input", multi, "--output", "-", "--top-k", 2, words=["--top-k"])

    numbers = write(directory / "n.csv", "text,label\n" + "".join(f"{t},{i % 6 / 2}\n" for i, t in enumerate(texts)))
    out = trained(directory, "number", "--model", MODEL, "--train", numbers, "--eval", numbers, "--regression",
                  "--reinit-head")
    same_metrics(out, numbers)
    rows = rows_of(predict(numbers, model=out).out)
    assert rows[0] == ["text", "label", "predicted_label"] and float(rows[1][2]) == float(rows[1][2]), rows
    fail(2, "predict", "--model", out, "--input", numbers, "--output", "-", "--top-k", 2, words=["regression"])

    pairs = write(directory / "p.csv", "a,b,label\n" + "".join(f"{t},{t[::-1]},{i % 2}\n" for i, t in enumerate(texts)))
    out = trained(directory, "pair", "--model", MODEL, "--train", pairs, "--eval", pairs, "--text-column", "a",
                  "--text-pair-column", "b", "--reinit-head")
    same_metrics(out, pairs)


def test_evaluate_equals_the_run_of_questions(directory):
    need("golden/trajectory-qa-train.json", *MODELS)
    out = trained(directory, "v1", "--task", "qa", "--model", QA_MODEL, "--train", SQUAD, "--eval", SQUAD,
                  "--max-train-samples", 40, "--max-eval-samples", 20, "--batch-size", 4, "--max-length", 128,
                  "--doc-stride", 32)
    same_metrics(out, SQUAD, "--max-eval-samples", 20)
    context = "The cat sat on the mat in the old house by the river."
    mixed = [(f"q{i}", "Where did the cat sit?", context, [None, "the mat"][i % 2]) for i in range(8)]
    both = write(directory / "v2.json", squad(mixed, "v2.0"))
    v2 = trained(directory, "v2", "--task", "qa", "--model", QA_MODEL, "--train", both, "--eval", both,
                 "--batch-size", 4, "--max-length", 64, "--doc-stride", 16)
    same_metrics(v2, both)
    # The rules follow the data unless stated.
    only_v1 = write(directory / "v1.json", squad([q for q in mixed if q[3]]))
    v1_keys = set(json.loads(succeed("evaluate", "--model", v2, "--data", only_v1, "--json").out))
    v2_keys = set(json.loads(succeed("evaluate", "--model", out, "--data", both, "--json", "--max-length", 64,
                                     "--doc-stride", 16).out))
    assert "eval_no_answer_f1" in v2_keys and "eval_no_answer_f1" not in v1_keys, (v1_keys, v2_keys)
    forced = succeed("evaluate", "--model", v2, "--data", only_v1, "--json", "--squad-version", 2)
    assert "eval_has_answer_f1" in forced.out, forced


def test_evaluate_bad_inputs(directory):
    need(*MODELS)
    base = ["evaluate", "--model", MODEL, "--data"]
    fail(3, *base, write(directory / "h.csv", "text,label\n"), words=["h.csv"])
    fail(3, *base, write(directory / "u.csv", "text,label\nx,zebra\n"), words=["zebra", "--ignore-unknown-labels"])
    succeed(*base, write(directory / "v.csv", "text,label\nx,zebra\ny,Utilities\n"), "--ignore-unknown-labels")
    fail(3, *base, SQUAD, words=["questions", "classification"])
    fail(3, *base, EVAL, words=["label", "category"])
    fail(3, "evaluate", "--model", QA_MODEL, "--data", EVAL, words=[EVAL.name])
    fail(2, *base, EVAL, "--label-column", "category", "--output", EVAL, words=["--output"])
    fail(2, *base, EVAL, "--label-column", "category", "--max-length", 1000, words=["--max-length"])
    fail(3, "evaluate", "--model", QA_MODEL, "--data",
         write(directory / "n.json", '{"data":[{"paragraphs":[{"context":"c","qas":[{"id":"1","question":"q"}]}]}]}'),
         words=["n.json", "answers"])


# ---- predict, questions


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


# ---- score


def test_official_scores_to_the_last_digit(directory):
    need("data/squad/predictions", "data/squad/dev-v1.1.json", "data/squad/dev-v2.0.json")
    folder = SHARED / "data/squad"
    # data/squad/README.txt: what the official scripts print
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
    assert "1 ids are not questions" in succeed("score", "--data", data, "--predictions",
                                            write(directory / "e.json", '{"2": "x", "1": "cat"}')).err
    fail(3, "score", "--data", data, "--predictions", directory / "no.json", words=["no.json"])
    fail(3, "score", "--data", data, "--predictions", write(directory / "l.json", "[1]"), words=["l.json"])
    fail(3, "score", "--data", predictions, "--predictions", predictions, words=["p.json"])
    fail(2, "score", "--data", data, "--predictions", predictions, "--na-prob", predictions, words=["--na-prob"])


# ---- tokenize


def test_tokenize(directory):
    need("golden/tokenization/bert-base-uncased.jsonl", "tokenizers/bert-base-uncased", *MODELS)
    lines = [json.loads(l) for l in open(GOLDEN / "tokenization/bert-base-uncased.jsonl", encoding="utf-8")][:300]
    inputs = write(directory / "in.jsonl", "".join(json.dumps({"text": l["text"]}) + "\n" for l in lines))
    vocabulary = directory / "vocabulary"  # tokenizer files only
    vocabulary.mkdir()
    for name in ("vocab.txt", "tokenizer_config.json", "tokenizer.json"):
        source = SHARED / "tokenizers/bert-base-uncased" / name
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
    fail(3, "tokenize", "--model", vocabulary, directory / "no.txt", words=["no.txt"])
    fail(3, "tokenize", "--model", vocabulary, directory, words=["directory"])
    fail(3, "tokenize", "--model", vocabulary, "--jsonl", stdin="{}", words=[":1:"])
    fail(4, "tokenize", "--model", directory, stdin="a", words=["vocab.txt"])
    fail(2, "tokenize", "--model", vocabulary, "--max-length", 2, stdin="a", words=["--max-length"])


# ---- inspect, convert, doctor


def test_inspect(directory):
    need("golden/trajectory-classification-train.csv", *MODELS)
    model = json.loads(succeed("inspect", MODEL, "--json").out)
    assert model["config"]["num_hidden_layers"] == 2 and len(model["weights"]["tensors"]) == 41, model
    assert json.loads(succeed("inspect", MODEL / "model.safetensors", "--json").out)["weights"]["format"]
    out = trained(directory, "run", "--model", MODEL, "--train", TRAIN, "--label-column", "category", "--save-every", 4)
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
    for path, words in ((out, ["eval_", "step-00000006.h5", "label-column"][1:]), (newest, ["weights/classifier.bias"])):
        text = succeed("inspect", path).out
        assert all(word in text for word in words), text
    # a damaged checkpoint is refused, and of a run passed over
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
    fail(2, "inspect", words=["path"])


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
        else:  # rounded, or without a head; what is there converts to itself
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


def test_doctor(directory):
    text = succeed("doctor").out
    for word in ("finetune", "CPU", "oneDNN", "code path", "CUDA"):
        assert word in text, text


main(globals())
