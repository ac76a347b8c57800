"""Files as banks export them: delimiters, encodings, compression, standard input with a header."""
import csv
import gzip
import io
import json
import subprocess
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import EVAL, MODEL, MODELS, TRAIN, computing_seconds, evaluate, predict, rows_of, write
from harness import BINARY, facts_of, fail, main, need, succeed


def converted(source, target, delimiter, encoding):
    with open(source, newline="", encoding="utf-8") as lines:
        rows = [[value.replace("\u2019", "'") for value in row] for row in csv.reader(lines)]
    with open(target, "w", newline="", encoding=encoding) as out:
        csv.writer(out, delimiter=delimiter).writerows([[f" {name} " for name in rows[0]], *rows[1:]])
    return target


def test_training_on_what_a_bank_exports(directory):
    need(*MODELS)
    sums, line = set(), ("--model", MODEL, "--label-column", "category", "--max-steps", 3)
    forms = [(TRAIN, ()), (converted(TRAIN, directory / "a.csv", ";", "utf-16"), ("--delimiter", "semicolon")),
             (converted(TRAIN, directory / "b.csv", "\t", "windows-1252"), ("--encoding", "windows-1252")),
             (write(directory / "c.csv.gz", gzip.compress(TRAIN.read_bytes())), ("--encoding", "utf-8"))]
    for i, (data, more) in enumerate(forms):
        out = directory / f"run{i}"
        result = succeed("train", *line, "--train", data, "--output", out, *more)
        assert ("its values are between " in result.err) == (i in (1, 2)), result.err
        sums.add(facts_of(out)["weights_sha256"])
    assert len(sums) == 1, sums
    assert 'encoding = "windows-1252"' in (directory / "run2" / "config.toml").read_text()
    metrics = {evaluate(data, *more, "--label-column", "category", "--quiet").out for data, more in
               ((EVAL, ()), (converted(EVAL, directory / "e.csv", "|", "utf-8"), ()),
                (write(directory / "e.csv.gz", gzip.compress(EVAL.read_bytes())), ()))}
    assert len({text.split("in ")[0] for text in metrics}) == 1, metrics


def test_standard_input_with_a_header(directory):
    need(*MODELS)
    file = write(directory / "rows.csv", "id;text\n1;hello there\n2;PIZZA\n")
    expected = predict(file).out
    assert rows_of(expected)[0] == ["id", "text", "label", "probability"], expected
    assert predict("-", stdin=file.read_text()).out == expected
    assert predict("-", "--input-format", "csv", stdin=file.read_text()).out == expected
    assert predict("-", stdin='{"id":1,"text":"hello there"}\n{"id":2,"text":"PIZZA"}\n').out == expected
    array = '[\n{"id":1,"text":"hello there"},\n{"id":2,"text":"PIZZA"}]'
    assert predict("-", "--input-format", "json", stdin=array).out == expected
    assert len(rows_of(predict("-", "--input-format", "text", stdin=file.read_text()).out)) == 4
    # no such column: each line is a text
    assert len(rows_of(predict("-", stdin="no text here, alas\nPIZZA\n").out)) == 3


def test_headers_that_are_elsewhere(directory):
    """Excel's first line, no suffix, a .txt with columns, lines about the account before the header."""
    need(*MODELS)
    lines = "id;text\n1;hello there\n2;PIZZA\n"
    expected = predict(write(directory / "rows.csv", lines)).out
    assert predict("-", stdin="sep=;\n" + lines).out == expected
    assert predict(write(directory / "rows.txt", lines), "--delimiter", "semicolon").out == expected
    assert len(rows_of(predict(directory / "rows.txt").out)) == 4  # one text per line
    one = write(directory / "one", "text\nhello there\n")
    assert rows_of(predict(one).out)[0] == ["text", "label", "probability"]
    line = ["predict", "--model", MODEL, "--output", "-", "--text-column", "Zweck", "--input"]
    account = write(directory / "account.csv", "Konto;DE01\n\nDatum;\"Zweck\";Betrag\n1;a;2\n")
    fail(3, *line, account, words=["no column 'Zweck'", "line 3 has it", "(tail -n +3)"])
    for name, data in (("c.csv.gz", gzip.compress(account.read_bytes())), ("d.csv", account.read_text().encode("utf-16"))):
        said = fail(3, *line, write(directory / name, data), words=["line 3 has it"])
        assert "tail" not in said, said  # the line number would be wrong, or a character cut
    account.write_text("Konto;DE01\nDatum;Zweckgebunden;Zweck\n1;a;2\n")
    fail(3, *line, account, words=["line 2 has it"])
    rows = write(directory / "c.jsonl", '{"id":1}\n{"Zweck":"a"}\n')  # the rows have no header
    for other in (write(directory / "b.csv", "Konto;DE01\nDatum;Verwendungszweck\n"), rows):
        fail(3, *line, other, words=["no column 'Zweck'", "choose one with --text-column"])
    assert len(rows_of(predict("-", stdin="sep=a\nhello\n").out)) == 3  # not a delimiter: each line is a text
    assert len(rows_of(predict(write(directory / "note", "Hello, text\nfoo\n")).out)) == 3
    train = ["train", "--model", MODEL, "--label-column", "label", "--max-steps", 1, "--output", directory / "run"]
    data = write(directory / "train.csv", "text,label\na,x\nb,y\n")
    fail(2, *train, "--train", data, "--text-column", "text,text", words=["'text' is given twice"])
    fail(3, *train, "--train", write(directory / "unnamed.csv", ",label\na,x\nb,y\n"), words=["column 1", "no name"])
    fail(3, *train, "--train", directory / "rows.txt", words=["there is only 'text'", "--delimiter"])
    amounts = write(directory / "amounts.csv", "text,label\na,1.5\nb,\"-18,72\"\n")
    fail(3, *train, "--train", amounts, "--regression", "--reinit-head", words=["'-18,72', an amount", "decimal point"])
    succeed(*train, "--train", data, "--text-column", " text ", "--reinit-head", "--quiet")
    fail(2, "predict", "--model", MODEL, "--input", data, "--output", directory / "o.csv.gz", words=["not packed"])
    fail(2, "predict", "--model", MODEL, "--input", data, "--output", "-", "--window-stride", 8, words=["--long-text"])


def test_nested_values_are_no_columns(directory):
    need(*MODELS)
    for name, data in (("b", '{"text":"a"}\n{"text":["b"]}\n'), ("c", '{"text":["a"],"id":1}\n{"text":"b","id":2}\n')):
        fail(3, "predict", "--model", MODEL, "--output", "-", "--input", write(directory / f"{name}.jsonl", data),
             words=[f"{name}.jsonl:{1 if name == 'c' else 2}:", "key 'text' has a nested value", "jq -c"])
    # Such values are allowed in a column that is not read.
    unread = write(directory / "a.jsonl", '{"id":1,"text":"a"}\n{"id":{"n": 1},"text":"b"}\n')
    out = succeed("predict", "--model", MODEL, "--output", "-", "--json-lines", "--input", unread).out
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1", '{"n": 1}'], out
    fail(3, "predict", "--model", MODEL, "--output", "-", "--input",
         write(directory / "pretty.json", '{\n  "text": "a"\n}\n'), words=["over several lines", "jq -c"])


def test_json_lines(directory):
    need(*MODELS)
    line = ("--top-k", 2, "--all-probabilities")
    data = write(directory / "rows.csv", 'text,label\n"a ""b"",\u00e9",x\nPIZZA,\n')
    table = list(csv.DictReader(io.StringIO(predict(data, *line).out)))
    objects = [json.loads(text) for text in predict(data, *line, "--json-lines").out.splitlines()]
    assert [list(row) for row in objects] == [list(table[0])] * 2, objects
    for row, expected in zip(objects, table):
        assert {name: value if isinstance(value, str) else float(value) for name, value in row.items()} == {
            name: value if isinstance(row[name], str) else float(value) for name, value in expected.items()}
        assert isinstance(row["probability"], float) and row["text"] == expected["text"]
    out = directory / "labels.jsonl"
    succeed("predict", "--model", MODEL, "--input", data, "--output", out, *line)
    assert out.read_text() == predict(data, *line, "--json-lines").out
    fail(2, "predict", "--model", MODEL, "--input", data, "--output", directory / "x.json", words=[".jsonl"])
    fail(2, "predict", "--model", MODEL, "--input", data, "--output", out, "--overwrite", "--stream",
         words=["--stream", "is a file"])


def test_json_lines_of_unnamed_columns(directory):
    need(*MODELS)
    rows = predict(write(directory / "unnamed.csv", "text,,,column_3\nfoo,b,c,d\n"), "--json-lines").out
    row = dict(json.loads(rows, object_pairs_hook=list)[:4])
    assert row == {"text": "foo", "column_2": "b", "column_3_": "c", "column_3": "d"}, rows


def test_many_columns(directory):
    """Takes linear time in the number of columns, also if JSON Lines order their keys differently."""
    need(*MODELS)
    row = {"text": "foo", **{f"c{i}": str(i) for i in range(60000)}}
    reversed_row = dict(reversed(row.items()))

    def seconds_and_rows(*rows):
        data = write(directory / "wide.jsonl", "".join(json.dumps(r) + "\n" for r in rows))
        start = computing_seconds()
        lines = predict(data, "--json-lines").out.splitlines()
        return computing_seconds() - start, [json.loads(line) for line in lines]

    same_order, _ = seconds_and_rows(row, row, row)
    other_order, out = seconds_and_rows(row, reversed_row, reversed_row)
    assert other_order < 3 * same_order + 0.3, (same_order, other_order)
    assert len(out) == 3 and all(list(o) == list(out[0]) and o["c59999"] == "59999" for o in out)


def test_rows_are_answered_as_they_come(directory):
    need(*MODELS)
    texts = ["RONA BRACKETS", "PIZZA PIZZA"]
    expected = predict("-", stdin="\n".join(texts) + "\n").out.splitlines()
    command = [BINARY, "predict", "--model", MODEL, "--input", "-", "--output", "-", "--stream"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        timer = threading.Timer(60, process.kill)
        timer.start()
        answers = []
        for text in texts:
            process.stdin.write(text + "\n")
            process.stdin.flush()
            answers += [process.stdout.readline().rstrip("\n") for _ in range(1 if answers else 2)]  # a header first
        process.stdin.close()
        assert answers == expected and process.stdout.read() == "", (answers, expected)
        assert process.wait() == 0
        timer.cancel()


def test_faults(directory):
    need(*MODELS)
    line = ("predict", "--model", MODEL, "--output", "-", "--input")
    fail(2, *line, EVAL, "--delimiter", "ab", words=["--delimiter 'ab'", "semicolon"])
    fail(2, *line, EVAL, "--encoding", "latin-77", words=["--encoding 'latin-77'", "windows-1252"])
    fail(2, "train", "--model", MODEL, "--train", EVAL, "--output", directory / "r", "--encoding", "x",
         words=["--encoding 'x'"])
    latin = write(directory / "l.csv", b"text,n\ncaf\xe9,1\n")
    fail(3, *line, latin, words=["l.csv:2", "0xE9", "--encoding"])
    book = write(directory / "b.xlsx", b"PK\x03\x04\x14\0\x06\0xl/workbook.xml[Content_Types].xml")
    fail(3, *line, book, words=["b.xlsx", "Excel", "CSV"])
    none = write(directory / "none.csv", "text,n\n1,2,3\n")
    fail(3, *line, none, "--skip-bad-rows", words=["none.csv:2", "no other row can be used"])
    packed = gzip.compress(b"text\n" + b"hello\n" * 5000)
    fail(3, *line, write(directory / "cut.csv.gz", packed[:-9]), words=["cut.csv.gz", "ends too early"])


main(globals())
