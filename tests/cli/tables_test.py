"""Tables of real data: through pipes, quoted, with preambles, without rows; outputs."""
import csv
import gzip
import json
import resource
import subprocess

from fixtures import EVAL, MODEL, MODELS, QA_MODEL, SQUAD, TRAIN, predict, rows_of, write
from harness import BINARY, facts_of, fail, main, need, run, succeed

NAMES = "Description,Amount,label\n"
TABLE = NAMES + "PETROL 1,3.50,fuel\nRENT MAY,-12.5,rent\nPETROL 2,4.00,fuel\nRENT JUNE,7,rent\n"
STEPS = ("--max-steps", 2, "--batch-size", 4, "--no-ngram-baseline", "--threads", 1)


def train(data, output, *more):
    files = data if isinstance(data, list) else [data]
    return ["train", "--model", MODEL, "--reinit-head", "--train", *files, "--output", output, *STEPS, *more]


def labels_of(run_directory):
    return set(json.loads((run_directory / "model/config.json").read_text())["id2label"].values())


def test_a_table_by_pipe_is_read_as_from_a_file(directory):
    need(*MODELS)
    line = ["predict", "--model", MODEL, "--output", "-", "--input"]
    objects = '{"Description":"PETROL 1","n":1}\n{"Description":"RENT","n":2}\n'
    for name, text in (("a.csv", TABLE), ("b.tsv", TABLE.replace(",", "\t")), ("c.csv", TABLE.replace(",", ";")),
                       ("d.jsonl", objects), ("e.json", "[" + objects.strip().replace("\n", ",\n") + "]")):
        file = write(directory / name, text)
        bare = write(directory / name.replace(".", "-"), text)  # without a suffix
        for data, stdin in ((file, None), ("-", text), (bare, None)):
            fail(3, *line, data, stdin=stdin, words=["no column 'text'", "'Description'", "--text-column"])
            out = rows_of(predict(data, "--text-column", "Description", stdin=stdin).out)
            assert out[1][0] == "PETROL 1" and len(out) == (3 if "json" in name else 5), (name, data, out)
    # With one column besides the label's, or one key, it works as for a file.
    two = "Description,label\nFUEL STOP,fuel\nGROCER,food\n"
    assert predict("-", stdin=two).out == predict(write(directory / "two.csv", two)).out
    assert rows_of(predict("-", stdin='{"Description":"PETROL 1"}\n').out)[1][0] == "PETROL 1"
    # A bad row is reported, not labelled.
    fail(3, *line, "-", stdin="id,text\n1,a\n2\n3,c\n", words=["standard input:3", "2 values"])


def test_texts_by_pipe_stay_texts(directory):
    need(*MODELS)
    for text in ("RONA BRACKETS\n", "RONA, TORONTO\n", "a, b\nPIZZA\n", "SHELL, TORONTO, ON\nESSO, OTTAWA, ON\n",
                 "{braces} in a text\nnext\n", "[PENDING] SHELL\n", "no text here, alas\nPIZZA\n"):
        out = rows_of(predict("-", stdin=text).out)
        assert [row[0] for row in out[1:]] == text.splitlines(), (text, out)
    lines = predict("-", "--input-format", "text", stdin=TABLE).out
    assert len(rows_of(lines)) == 6
    table = write(directory / "rows.txt", TABLE)
    result = predict(table)
    assert len(rows_of(result.out)) == 6 and "looks like a table; --delimiter comma" in result.err, result
    assert "looks like" not in predict(write(directory / "texts.txt", "one\ntwo, three\n")).err


def test_evaluation_by_pipe(directory):
    need(*MODELS)
    line = ["evaluate", "--model", MODEL, "--label-column", "category", "--json", "--quiet", "--data"]
    by_file, by_pipe = (json.loads(succeed(*line, data, stdin=stdin).out)
                        for data, stdin in ((EVAL, None), ("-", EVAL.read_text())))
    assert by_file["eval_accuracy"] == by_pipe["eval_accuracy"] and by_file["eval_loss"] == by_pipe["eval_loss"]


def test_quotes_of_a_tsv(directory):
    """Excel and pandas quote where needed; in a file with an unpaired quote, quotes are characters."""
    need(*MODELS)
    rows = [("text", "label"), ("a\tb", "fuel"), ('say "hi"', "Food, drink"), ("two\nlines", "fuel"), ("d", "rent")]
    with open(directory / "pandas.tsv", "w", newline="") as out:
        csv.writer(out, delimiter="\t", lineterminator="\n").writerows(rows)
    result = predict(directory / "pandas.tsv")
    assert [tuple(row[:2]) for row in rows_of(result.out)[1:]] == rows[1:] and "are quoted" in result.err, result
    excel = write(directory / "excel.tsv", 'text\tlabel\nPETROL\tfuel\n"ISP ONLINE, INC"\t"Food, drink"\nRENT\trent\n')
    succeed(*train(excel, directory / "run"))
    assert labels_of(directory / "run") == {"fuel", "Food, drink", "rent"}
    for text in ('text\tn\n" unpaired\t1\n"paired"\t2\n', 'text\tn\nhe said "no"\t1\n"paired"\t2\n',
                 'text\tn\n"open\t1\nclose "\t2\n', 'text\tn\n7" nail\t1\n"b"\t2\n'):
        out = rows_of(predict(write(directory / "lone.tsv", text)).out)
        assert [row[0] for row in out[1:]] == [line.split("\t")[0] for line in text.splitlines()[1:]], (text, out)
    assert [row[0] for row in rows_of(predict(excel, "--input-format", "tsv").out)][2] == '"ISP ONLINE, INC"'


def test_lines_before_the_header(directory):
    need(*MODELS)
    body = "text,betrag,label\nPETROL 1,3,fuel\nRENT MAY,4,rent\n"
    semicolons = body.replace(",", ";")
    files = {"comma.csv": ("Account,0815\nFrom,2024-01-01\n\n" + body, 4), "one.csv": ("Account 0815\n" + body, 2),
             "semicolon.csv": ('"Konto";"Giro 0815"\n' + semicolons, 2), "padded.csv": ("Account 0815,,\n,,\n" + body, 3),
             "quoted.csv": ('"Account\n0815"\n\n' + semicolons, 4)}
    out = directory / "out"
    grid = write(directory / "grid.toml", "")
    for name, (text, line) in files.items():
        data = write(directory / name, text)
        hint = [name, f"line {line}", f"tail -n +{line}"]
        grid.write_text(f'model = "{MODEL}"\ntrain = "{data}"\noutput = "{out}"\nmax-steps = 1\nreinit-head = true\n'
                        '[sweep]\nlr = [1e-3, 1e-4]\n')
        for command in (train(data, out), train(data, out, "--skip-bad-rows"), ["check", "--train", data],
                        ["predict", "--model", MODEL, "--output", "-", "--input", data],
                        ["evaluate", "--model", MODEL, "--data", data],
                        ["adapt", "--model", MODEL, "--text", data, "--output", out],
                        ["sweep", grid]):
            fail(3, *command, words=hint)
        cut = subprocess.run(f"tail -n +{line} '{data}'", shell=True, capture_output=True, text=True).stdout
        assert len(rows_of(predict(write(directory / "cut.csv", cut)).out)) == 3
        fail(3, "predict", "--model", MODEL, "--output", "-", "--input", "-", stdin=text, words=[f"line {line}"])
    # Bad rows below a valid header are reported as before.
    fail(3, *train(write(directory / "bad.csv", "text,label\na, b,x\nc, d,y\ne, f,x\n"), out),
         words=["bad.csv:2: 2 values are expected"])


def test_equal_names_of_columns_that_nothing_reads(directory):
    need(*MODELS)
    data = write(directory / "rows.csv", "text,label,Name,Name\nPETROL 1,fuel,a,b\nRENT MAY,rent,c,d\n")
    succeed(*train(data, directory / "run", "--eval", data))
    with open(directory / "run/predictions.csv", newline="") as lines:
        assert [row[2:4] for row in csv.reader(lines)] == [["Name", "Name"], ["a", "b"], ["c", "d"]]
    out = rows_of(predict(data).out)
    assert [row[2:4] for row in out] == [["Name", "Name"], ["a", "b"], ["c", "d"]], out
    first = json.loads(predict(data, "--json-lines").out.splitlines()[0])
    assert first["Name"] == "a" and first["Name_4"] == "b", first
    # check's exit code for findings is 7, not 3.
    assert run("check", "--train", data).code in (0, 7)
    for words in (["--text-column", "Name"], ["--label-column", "Name"]):
        fail(3, *train(data, directory / "other", *words), words=["rows.csv:1: two columns are named 'Name'"])


def test_files_in_another_order_are_joined_by_name(directory):
    need(*MODELS)
    a = write(directory / "a.csv", "text,label,note\nPETROL 1,fuel,x\nRENT MAY,rent,y\n")
    b = write(directory / "b.csv", "label,extra,text\nfuel,1,PETROL 2\nrent,2,RENT JUNE\n")
    same = write(directory / "same.csv", "text,label,note\nPETROL 2,fuel,\nRENT JUNE,rent,\n")
    sums = set()
    for name, second in (("one", b), ("two", same)):
        result = succeed(*train([a, second], directory / name, "--eval", second))
        assert ("lacks 1 column" in result.err) == (second is b), result.err
        sums.add(json.loads((directory / name / "run.json").read_text())["weights_sha256"])
    assert len(sums) == 1
    line = ["evaluate", "--model", directory / "one/model", "--json", "--quiet", "--data"]
    assert json.loads(succeed(*line, a, b).out)["eval_loss"] == json.loads(succeed(*line, a, same).out)["eval_loss"]
    fail(3, *train([a, write(directory / "c.csv", "text,note\nx,y\n")], directory / "three"),
         words=["c.csv", "no column 'label'", "a.csv"])
    objects = [write(directory / "a.jsonl", '{"text":"A","label":"x","note":1}\n{"label":"y","text":"B"}\n'),
               write(directory / "b.jsonl", '{"label":"x","text":"C"}\n')]
    succeed(*train(objects, directory / "four"))
    fail(3, *train([objects[0], write(directory / "d.jsonl", '{"text":"C","note":2}\n')], directory / "five"),
         words=["d.jsonl:1", "'label' is missing"])


def test_as_many_rows_out_as_in(directory):
    need(*MODELS)
    for name in ("one.csv", "one.tsv"):
        data = write(directory / name, "text\na\n\n  \n\"\"\nb\n")
        result = predict(data)
        assert len(rows_of(result.out)) == 6 and "3 texts are empty" in result.err, (name, result)
    two = write(directory / "two.csv", "text,n\na,1\n\n,2\n")  # a blank line is not a row of two values
    assert len(rows_of(predict(two).out)) == 3


def test_inputs_without_rows(directory):
    need(*MODELS)
    files = {"header.csv": "text,label\n", "empty.csv": "", "blank.csv": "\n\n", "empty.jsonl": "", "array.json": "[]",
             "empty": "", "empty.txt": "", "empty.tsv": ""}
    out = directory / "out"
    for name, text in files.items():
        data, packed = write(directory / name, text), write(directory / f"{name}.gz", gzip.compress(text.encode()))
        for one in (data, packed):
            for more in ([], ["--json-lines"]):
                result = predict(one, *more)
                assert len(result.out.splitlines()) == (0 if more else 1), (one, result)
                assert f"warning: {one} holds no rows" in result.err, result
            for command in (train(one, out), ["check", "--train", one], ["evaluate", "--model", MODEL, "--data", one],
                            ["adapt", "--model", MODEL, "--text", one, "--output", out]):
                said = fail(3, *command, words=[one.name])
                assert "empty" in said or "no rows" in said, said
            assert not out.exists()
    for text in ("", "text,n\n", "[]"):
        result = predict("-", stdin=text)
        assert len(result.out.splitlines()) == 1 and "standard input holds no rows" in result.err, result


def test_tables_of_other_programs(directory):
    need(*MODELS)
    line = ["predict", "--model", MODEL, "--output", "-", "--input"]
    orients = {"columns": '{"text":{"0":"a","1":"b"},"label":{"0":"x","1":"y"}}', "index": '{"0":{"text":"a"},"1":{"text":"b"}}',
               "one": '{"text":{"0":"a"}}',
               "split": '{"columns":["text"],"index":[0,1],"data":[["a"],["b"]]}',
               "table": '{"schema":{"fields":[]},"data":[{"text":"a"}]}'}
    for name, text in orients.items():
        data = write(directory / f"{name}.json", text)
        for command in ([*line, data], ["check", "--train", data], train(data, directory / "out")):
            fail(3, *command, words=[f"{name}.json", "pandas", 'orient="records", lines=True'])
    stream = write(directory / "data-00000-of-00001.arrow", b"\xff\xff\xff\xff\x10\x01\0\0\x10\0\0\0\0\0\x0a\0")
    fail(3, *line, stream, words=["Arrow stream", "datasets.Dataset.from_file('"])
    saved = directory / "saved"
    saved.mkdir()
    write(saved / "state.json", "{}")
    for command in ([*line, saved], train(saved, directory / "out"), ["check", "--train", saved],
                    ["evaluate", "--model", MODEL, "--data", saved]):
        fail(3, *command, words=["save_to_disk", f"datasets.load_from_disk('{saved}').to_csv('rows.csv')"])
    (saved / "state.json").rename(saved / "dataset_dict.json")
    fail(3, *line, saved, words=["['train'].to_csv"])
    for url, word in (("https://example.org/rows.csv", "curl -L -o"), ("s3://bank/rows.csv", "aws s3 cp"),
                      ("hf://datasets/a/b/rows.csv", "hf download"), ("file:///tmp/rows.csv", "/tmp/rows.csv")):
        for command in ([*line, url], train(url, directory / "out"), ["check", "--train", url],
                        ["evaluate", "--model", MODEL, "--data", url]):
            fail(3, *command, words=[url, word])
        for command in (["train", "--config", url], ["sweep", url, "--output", directory / "out"]):
            fail(2, *command, words=[url, word])
    done = subprocess.run([BINARY, *map(str, line), "-"], input=b"PAR1\x15\x04", capture_output=True)
    assert b"'standard input'" not in done.stderr and b"read_parquet('FILE')" in done.stderr, done.stderr


def test_lines_of_fasttext(directory):
    need(*MODELS)
    rows = [(f'SHOP {i}, "x" {name}', name) for i in range(10) for name in ("fuel", "food")]
    table = directory / "rows.csv"
    with open(table, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    succeed(*train(table, directory / "of-table"))
    weights = facts_of(directory / "of-table")["weights_sha256"]
    for name in ("rows.txt", "rows.train"):
        data = write(directory / name, "".join(f"__label__{label} {text}\n" for text, label in rows))
        out = directory / f"of-{data.suffix[1:]}"
        assert f"{name}: is read as fastText's lines" in succeed(*train(data, out)).err
        assert facts_of(out)["weights_sha256"] == weights
        named = directory / f"named-{data.suffix[1:]}"
        succeed(*train(data, named, "--label-column", "category"))
        assert labels_of(named) == {"fuel", "food"}
    several = write(directory / "several.txt", "".join(f"__label__{label} __label__big {text}\n" for text, label in rows))
    assert "--multi-label SEP reads lists" in succeed("check", "--train", several).out
    succeed(*train(several, directory / "several", "--multi-label", ";"))
    assert labels_of(directory / "several") == {"fuel", "food", "big"}
    found = json.loads(succeed("evaluate", "--model", directory / "of-table", "--data", data, "--json").out)
    assert found["eval_rows"] == len(rows)
    texts = [row[0] for row in rows_of(predict(data, model=directory / "of-table").out)[1:]]
    assert texts == [text for text, _ in rows] == [
        row[0] for row in rows_of(predict("-", model=directory / "of-table", stdin=data.read_text()).out)[1:]]


def test_names_of_outputs(directory):
    """An output name of another format is refused before anything is read."""
    need(*MODELS, "golden/trajectory-qa-train.json")
    one = write(directory / "one.csv", "text\nhello\n")
    for name in ("x.parquet", "x.xlsx", "x.feather", "x.txt", "x.json", "x.tsv", "x.XLSX", "x.html"):
        said = fail(2, "predict", "--model", MODEL, "--input", one, "--output", directory / name, words=[name, ".csv"])
        assert not (directory / name).exists(), said
    for name in ("a.csv", "b.jsonl", "c.ndjson", "d.JSONL", "labels", "labels.2024"):
        succeed("predict", "--model", MODEL, "--input", one, "--output", directory / name)
        is_json = (directory / name).read_text().startswith("{")
        assert is_json == ("json" in name.lower() or "nd" in name), name
    fail(2, "predict", "--model", MODEL, "--input", one, "--output", directory / "e.csv", "--json-lines", words=["e.csv"])
    for name in ("x.csv", "x.jsonl", "x.parquet"):
        fail(2, "predict", "--model", QA_MODEL, "--input", SQUAD, "--output", directory / name, words=[name, ".json"])
    data = write(directory / "rows.csv", TABLE)
    for name in ("m.onnx", "m.csv", "m.pt", "m.zip"):
        for command in (["convert", "--model", MODEL], ["evaluate", "--model", MODEL, "--data", data],
                        ["train", "--model", MODEL, "--train", data], ["adapt", "--model", MODEL, "--text", data]):
            fail(2, *command, "--output", directory / name, words=[name, "a directory is written"])
            assert not (directory / name).exists()
    fail(2, "report", directory, "--output", directory / "r.pdf", words=["r.pdf", ".html"])
    fail(2, "evaluate", "--model", MODEL, "--data", EVAL, "--assert", "eval_accuracy>0", "--junit", directory / "j.json",
         words=["j.json", ".xml"])


def within(megabytes, seconds, *line):
    """Runs the command with this limit on address space."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    return subprocess.run([BINARY, *map(str, line)], capture_output=True, text=True, timeout=seconds, preexec_fn=limit)


def test_limits_of_rows(directory):
    need(*MODELS)
    predicting = ["predict", "--model", MODEL, "--output", "-", "--input"]
    commas = write(directory / "commas.csv.gz", gzip.compress(b"," * (63 << 20) + b"\n"))
    keys = write(directory / "keys.jsonl", "{" + ",".join(f'"k{i}":1' for i in range(100_001)) + "}\n")
    tabs = write(directory / "tabs.tsv", "text" + "\t" * 100_001 + "\n")
    long = write(directory / "long.csv", b"text\n" + b"x" * (65 << 20) + b"\n")
    ends = write(directory / "ends.csv", b"text,label\n" + b"\n" * (8 << 20))
    zeros, holes = directory / "zeros.csv", write(directory / "holes.csv", "text,label\na,b\nc,d\n")
    for file in (zeros, holes):
        with open(file, "ab") as out:
            out.truncate(20 << 30)
    bomb = directory / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=6) as out:
        out.write(b"text,label\n")
        for _ in range(80):
            out.write(b"a,b\n" * (1 << 18))
    for data, words in ((commas, ["more than 100,000 values"]), (keys, ["more than 100,000 values"]),
                        (tabs, ["more than 100,000 values"]), (long, ["long.csv:2", "64 MiB"]),
                        (ends, ["blank lines in a row"]), (zeros, ["NUL"]), (holes, ["holes.csv:4", "MiB"]),
                        (bomb, ["200 times its size", "unpack it first"])):
        for command in ([*predicting, data], ["check", "--no-progress", "--train", data], train(data, directory / "out")):
            if command[0] == "predict" and data == bomb:
                continue  # it answers rows until it notices
            done = within(30_000 if data in (zeros, holes) else 3000, 60, *command)
            assert done.returncode == 3 and len(done.stderr.splitlines()) == 1, (data, command, done)
            assert all(word in done.stderr for word in words), (data, done)


def test_spreadsheet_safe(directory):
    need(*MODELS)
    texts = ["=HYPERLINK(1)", "+1-2", "-12.5", "@SUM(A1)", "\tx", "-1,234.56", "+49", "-5e-3", "plain", "-cmd|' /C calc'!A0"]
    with open(directory / "rows.csv", "w", newline="") as out:
        csv.writer(out).writerows([["text", "=note"], *[[text, "n"] for text in texts]])
    data = directory / "rows.csv"
    out = rows_of(predict(data, "--spreadsheet-safe").out)
    disarmed = {"=HYPERLINK(1)", "+1-2", "@SUM(A1)", "\tx", "-cmd|' /C calc'!A0"}
    assert [row[0] for row in out[1:]] == [("'" if text in disarmed else "") + text for text in texts], out
    assert out[0][1] == "'=note" and [row[2:] for row in out[1:]] == [row[2:] for row in rows_of(predict(data).out)[1:]]
    assert rows_of(predict(data).out)[1][0] == texts[0]
    fail(2, "predict", "--model", MODEL, "--input", data, "--output", "-", "--json-lines", "--spreadsheet-safe",
         words=["--spreadsheet-safe"])


def test_tokenize_reads_tables(directory):
    need(*MODELS)

    def tokens(*line, **options):
        return succeed("tokenize", "--model", MODEL, *line, **options).out
    texts = tokens(stdin="PETROL 1\nRENT MAY\nPETROL 2\nRENT JUNE\n")
    data = write(directory / "rows.csv", TABLE)
    assert tokens("--text-column", "Description", data) == texts
    assert tokens(data, "--text-column", "Description") == texts
    assert tokens("--text-column", "Description", stdin=TABLE) == texts
    assert tokens(write(directory / "b.csv", TABLE.replace("Description", "text"))) == texts
    assert tokens(write(directory / "texts.txt", "PETROL 1\nRENT MAY\nPETROL 2\nRENT JUNE\n")) == texts
    fail(3, "tokenize", "--model", MODEL, data, words=["no column 'text'", "--text-column"])
    fail(3, "tokenize", "--model", MODEL, stdin=TABLE.replace("Description", "text"), words=["header", "--text-column"])
    fail(2, "tokenize", "--model", MODEL, "--jsonl", "--text-column", "a", stdin="{}", words=["--jsonl"])


main(globals())
