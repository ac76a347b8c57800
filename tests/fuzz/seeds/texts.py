"""Files of data: rows in every form, SQuAD questions, predictions of them."""
import gzip
import json
import struct

CSV = 'text,label,amount\nCOFFEE SHOP,food,3.50\n"A ""quoted"", one\nof two lines",other,\n\nlast,x,1\n'


def zstandard(content):
    """A frame of one block that is stored as it is."""
    return (b"\x28\xb5\x2f\xfd" + b"\xa0" + struct.pack("<I", len(content)) +
            struct.pack("<I", len(content) << 3 | 1)[:3] + content)


def chosen(first=0, encoding=0):
    """The two bytes that choose the reader's options (targets/data/rows.cpp)."""
    return bytes([ord("A") + first, ord("A") + encoding])


def add_rows(corpora):
    name_tsv, name_text, name_packed, name_none = 12, 24, 36, 48
    rows = {"csv": (chosen(), CSV), "crlf": (chosen(), CSV.replace("\n", "\r\n")), "cr": (chosen(), "a,b\r1,2\r3,4"),
            "semicolons": (chosen(), CSV.replace(",", ";")), "given-semicolons": (chosen(4), CSV.replace(",", ";")),
            "bars": (chosen(), CSV.replace(",", "|")), "skip-ragged": (chosen(1), "a,b\n1\n2,3\n4,5,6\n\"open,1\n"),
            "ragged": (chosen(), "a,b\n1\n2,3\n"), "bom": (chosen(), "\ufeffa,b\n1,2\n"),
            "tsv": (chosen(name_tsv), "a\tb\n\"1\t2\n3\t4\n"), "text": (chosen(name_text), "one\n\ntwo"),
            "unknown": (chosen(name_none), "a,b\n1,2\n"), "unknown-json": (chosen(name_none), '{"a": 1}\n'),
            "twice": (chosen(), "a,a\n1,2\n"), "spaces": (chosen(), " a , b \n 1 , 2 \n")}
    for name, (options, text) in rows.items():
        corpora.add("rows", name, options + text.encode())
    corpora.add("rows", "utf-16", chosen() + CSV.encode("utf-16"))
    corpora.add("rows", "utf-16-unmarked", chosen() + CSV.encode("utf-16-le"))
    corpora.add("rows", "utf-32", chosen() + CSV.encode("utf-32"))
    for number, encoding in ((3, "cp1252"), (4, "iso-8859-15"), (6, "iso-2022-jp"), (7, "gb18030"), (8, "shift_jis"),
                             (10, "utf-7"), (11, "big5")):
        text = "a,b\n\u65e5\u672c,1\n" if number in (6, 7, 8, 11) else "a,b\nCaf\u00e9,1\n"
        corpora.add("rows", encoding, chosen(0, number) + text.encode(encoding))
    packed = gzip.compress(CSV.encode(), mtime=0)
    corpora.add("rows", "gzip", chosen(name_packed) + packed)
    corpora.add("rows", "gzip-twice", chosen(name_packed) + packed + packed)
    corpora.add("rows", "gzip-cut", chosen(name_packed) + packed[:-9])
    corpora.add("rows", "zstd", chosen(name_packed) + zstandard(CSV.encode()))
    corpora.add("rows", "workbook", chosen() + b"PK\3\4xl/workbook.xml")
    corpora.words(["rows"], [",", ";", "\t", "|", '"', '""', "\r\n", "\n", "\ufeff", "text", "label", b"\xff\xfe", b"\xfe\xff",
                             b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PAR1", b"\xc3\x28", b"\0", '{"a": 1}'])


def add_json_rows(corpora):
    lines = ['{"text": "a", "label": "x", "n": 1}', '{"label": "y", "text": "\\u00e9\\ud83d\\ude00", "n": null, "more": [1]}',
             '{"n": true, "text": "\\"", "label": ""}']
    corpora.add("json_rows", "lines", "\n".join(lines) + "\n")
    corpora.add("json_rows", "lines-bad", lines[0] + "\n{}\nnot json\n" + lines[2])
    corpora.add("json_rows", "array", "[" + ",\n".join(lines) + "]")
    corpora.add("json_rows", "array-empty", "[]")
    corpora.add("json_rows", "surrogate", '{"a": "\\ud800"}\n')
    corpora.add("json_rows", "deep", '{"a": ' + "[" * 300 + "]" * 300 + "}")
    corpora.words(["json_rows"], ["{", "}", "[", "]", '"a"', '"text"', ":", ",", "null", "true", "false", "\\u0000", "\\ud800",
                                  "\\udc00", "\\n", '\\"', "1e400", "-0", "\ufeff", "\n", "\r\n"])


QUESTIONS = {"version": "1.1", "data": [{"title": "T", "paragraphs": [
    {"context": "Caf\u00e9 society in Vienna.", "qas": [
        {"id": "1", "question": "Where?", "answers": [{"text": "Vienna", "answer_start": 16}]},
        {"id": "2", "question": "What?", "answers": [{"text": "Caf\u00e9", "answer_start": 0},
                                                     {"text": "Caf\u00e9 society", "answer_start": 0}]}]},
    {"context": "x", "qas": [{"id": "3", "question": "None?", "is_impossible": True, "answers": []}]}]}]}


def flat(question, context):
    return {"id": question["id"], "question": question["question"], "context": context,
            "answers": {"text": [a["text"] for a in question["answers"]],
                        "answer_start": [a["answer_start"] for a in question["answers"]]}}


def add_questions(corpora, root):
    paragraphs = QUESTIONS["data"][0]["paragraphs"]
    rows = [flat(question, p["context"]) for p in paragraphs for question in p["qas"]]
    whole = json.dumps(QUESTIONS)
    forms = {"nested": whole, "nested-utf-8": json.dumps(QUESTIONS, ensure_ascii=False),
             "flat": json.dumps({"data": rows}), "array": json.dumps(rows), "lines": "\n".join(map(json.dumps, rows)),
             "misplaced": whole.replace('"answer_start": 0', '"answer_start": 7')}
    samples = root / "data" / "samples" / "squad-dev.json"
    if samples.exists():
        sample = json.loads(samples.read_text())
        sample["data"] = [{**sample["data"][0], "paragraphs": sample["data"][0]["paragraphs"][:1]}]
        forms["sample"] = json.dumps(sample)
    for name, text in forms.items():
        corpora.add("squad", name, text)
    answers = json.dumps({"1": "vienna", "2": "a caf\u00e9", "3": "", "9": "unknown"})
    odds = json.dumps({"1": -3.5, "2": 0, "3": 1e9})
    corpora.add("predictions", "version-2", whole, answers, odds)
    corpora.add("predictions", "version-1", forms["flat"], json.dumps({"1": "The Vienna!"}), "")
    corpora.add("predictions", "none", whole, json.dumps({"9": "x"}), odds)
    keys = ["data", "paragraphs", "context", "qas", "id", "question", "answers", "text", "answer_start", "is_impossible",
            "plausible_answers", "title", "version"]
    corpora.words(["squad", "predictions"], [f'"{key}":' for key in keys] + ["[", "]", "{", "}", ",", "true", "null", "\\u00e9",
                                             "\\ud83d\\ude00", '"1"', "-1", "99999999999999999999", "\n--8<--\n"])


def add(corpora, root):
    add_rows(corpora)
    add_json_rows(corpora)
    add_questions(corpora, root)
