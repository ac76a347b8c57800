"""Questions of real data: misplaced answers, missing ids, contradicting flags."""
import csv
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from fixtures import QA_MODEL, evaluate, predict, write  # noqa: E402
from harness import fail, main, need, succeed  # noqa: E402

CONTEXT = "The harbour was built in 1811. It has two towers. The older tower is 20 m high. A lion was put there in 1856."
TRAINING = ("--task", "qa", "--model", QA_MODEL, "--max-steps", 3, "--batch-size", 2, "--lr", "1e-3", "--no-shuffle",
            "--precision", "fp32", "--threads", 1, "--no-progress")


def question(name, text, answers, **more):
    row = {"id": name, "question": text, "context": CONTEXT, "answers": answers, **more}
    return {key: value for key, value in row.items() if value is not None}


def answer(text, start=None):
    return {"text": text, "answer_start": CONTEXT.index(text) if start is None else start}


def rows(path, *questions):
    return write(path, "".join(json.dumps(q) + "\n" for q in questions))


def train(directory, name, data, *more):
    out = directory / name
    result = succeed("train", *TRAINING, "--train", data, "--output", out, *more)
    return out, result.err


def sum_of(run):
    return json.loads((run / "run.json").read_text())["weights_sha256"]


GOOD = [question("a", "When was it built?", [answer("1811")]), question("b", "What was put there?", [answer("lion")]),
        question("c", "When was it put there?", [answer("1856")]), question("d", "Who?", [])]


def test_a_misplaced_first_answer_is_not_taught_as_no_answer(directory):
    need("golden/tiny-bert-qa")
    good = rows(directory / "good.jsonl", *GOOD)
    # A wrong answer before the right one; an offset off by one.
    mended = rows(directory / "mended.jsonl", question("a", "When was it built?", [answer("1811", 3), answer("1811")]),
                  GOOD[1], question("c", "When was it put there?", [answer("1856", 101)]), GOOD[3])
    one, quiet = train(directory, "one", good)
    two, said = train(directory, "two", mended)
    assert sum_of(one) == sum_of(two)
    assert "answer_start" not in quiet, quiet
    line = [line for line in said.splitlines() if "answer_start" in line]
    assert len(line) == 1, said
    for word in ("warning: train: 2 first answers are not at their answer_start", "1 is taken from a later answer",
                 "1 is taken where its text occurs", "question 'a'"):
        assert word in line[0], line


def test_a_question_without_a_place_is_left_out_of_training_alone(directory):
    need("golden/tiny-bert-qa")
    lost = question("x", "How many?", [answer("it", 0)])  # occurs twice in the context, never at byte 0
    good = rows(directory / "good.jsonl", *GOOD)
    more = rows(directory / "more.jsonl", GOOD[0], lost, *GOOD[1:])
    one, _ = train(directory, "one", good)
    two, said = train(directory, "two", more, "--eval", more)
    assert sum_of(one) == sum_of(two)
    assert "train: 4 questions" in said and "1 is left out of training" in said, said
    assert "warning: eval: 1 first answer is not at its answer_start" in said, said
    assert "eval: 5 questions" in said, said
    assert len(json.loads((two / "predictions.json").read_text())) == 5
    whole, part = (json.loads((directory / name / "metrics.json").read_text()) for name in ("two", "two"))
    assert whole["eval_total"] == 5 and part["eval_loss"] > 0
    scored = evaluate(more, "--json", model=two / "model")
    assert json.loads(scored.out)["eval_total"] == 5 and "not part of eval_loss" in scored.err


def test_evaluation_of_answers_that_are_nowhere_has_scores_and_no_loss(directory):
    need("golden/tiny-bert-qa")
    data = rows(directory / "free.jsonl", question("a", "When was it built?", [answer("in the year 1811", 0)]))
    metrics = json.loads(evaluate(data, "--json", model=QA_MODEL).out)
    assert "eval_f1" in metrics and "eval_loss" not in metrics, metrics
    fail(3, "train", *TRAINING, "--train", data, "--output", directory / "no",
         words=("of 1 question are not at their answer_start", "'a'", "code points"))


def test_no_answer_in_every_spelling(directory):
    need("golden/tiny-bert-qa")
    good = rows(directory / "good.jsonl", *GOOD)
    for number, none in enumerate([[{"text": "", "answer_start": -1}], {"text": [""], "answer_start": [-1]}]):
        data = rows(directory / f"{number}.jsonl", *GOOD[:3], question("d", "Who?", none))
        run, said = train(directory, f"run{number}", data)
        assert "1 question has no answer" in said and "warning" not in said, said
        assert sum_of(run) == sum_of(train(directory, f"same{number}", good)[0])


def test_a_flag_that_contradicts_the_answers_is_said(directory):
    need("golden/tiny-bert-qa")
    data = rows(directory / "a.jsonl", question("a", "When was it built?", [answer("1811")], is_impossible=True),
                GOOD[1], question("d", "Who?", [], is_impossible=False))
    said = train(directory, "run", data)[1]
    assert "the is_impossible of 2 questions contradicts their answers" in said and "question 'a'" in said, said


def test_questions_without_ids_are_numbered(directory):
    need("golden/tiny-bert-qa")
    data = rows(directory / "a.jsonl", question(None, "When was it built?", None), question("x", "What?", None),
                question(None, "Who?", None))
    assert list(json.loads(predict(data, model=QA_MODEL).out)) == ["q-1", "x", "q-3"]
    labelled = rows(directory / "b.jsonl", *(question(None, q["question"], q["answers"]) for q in GOOD))
    run, _ = train(directory, "run", labelled, "--eval", labelled)
    assert list(json.loads((run / "predictions.json").read_text())) == ["q-1", "q-2", "q-3", "q-4"]
    succeed("score", "--data", labelled, "--predictions", run / "predictions.json")


def test_an_id_that_occurs_twice_names_both_places(directory):
    need("golden/tiny-bert-qa")
    data = rows(directory / "a.jsonl", *GOOD, GOOD[1])
    fail(3, "train", *TRAINING, "--train", data, "--output", directory / "run",
         words=("a.jsonl: question 5 has the id 'b' of question 2;", "leave out all ids"))
    fail(3, "predict", "--model", QA_MODEL, "--input", data, "--output", "-", words=("question 5", "question 2"))


def csv_of(path, header, *values, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(values)
    return path


def test_tables_of_questions(directory):
    need("golden/tiny-bert-qa")
    asked = [(q["id"], q["question"], CONTEXT) for q in GOOD]
    expected = predict(rows(directory / "a.jsonl", *GOOD), model=QA_MODEL).out
    for name, delimiter in [("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t"), ("no-suffix", ",")]:
        data = csv_of(directory / name, ("id", "question", "context"), *asked, delimiter=delimiter)
        assert predict(data, model=QA_MODEL).out == expected, name
    text = (directory / "a.csv").read_text()
    assert predict("-", model=QA_MODEL, stdin=text).out == expected
    without = csv_of(directory / "d.csv", ("question", "context"), *(row[1:] for row in asked))
    assert list(json.loads(predict(without, model=QA_MODEL).out)) == ["q-1", "q-2", "q-3", "q-4"]
    fail(3, "predict", "--model", QA_MODEL, "--input", csv_of(directory / "e.csv", ("id", "text"), (1, "a")), "--output", "-",
         words=("e.csv: a table of questions has the columns 'question' and 'context'; its columns are: id, text",))


def test_training_on_tables_of_questions(directory):
    need("golden/tiny-bert-qa")
    one, _ = train(directory, "one", rows(directory / "a.jsonl", *GOOD), "--eval", directory / "a.jsonl")
    answers = [q["answers"][0] if q["answers"] else {"text": "", "answer_start": ""} for q in GOOD]
    columns = csv_of(directory / "columns.csv", ("id", "question", "context", "answer_text", "answer_start"),
                     *((q["id"], q["question"], CONTEXT, a["text"], a["answer_start"]) for q, a in zip(GOOD, answers)))
    # As JSON, as pandas writes a dict, and as pandas writes one with numpy arrays.
    flat = [{"text": [a["text"] for a in q["answers"]], "answer_start": [a["answer_start"] for a in q["answers"]]} for q in GOOD]
    arrays = [f"{{'text': array({f['text']}, dtype=object), 'answer_start': array({f['answer_start']}, dtype=int32)}}" for f in flat]
    header = ("id", "question", "context", "answers")
    tables = [columns] + [csv_of(directory / f"{number}.csv", header, *((q["id"], q["question"], CONTEXT, cell)
                                                                        for q, cell in zip(GOOD, cells)))
                          for number, cells in enumerate([map(json.dumps, flat), map(str, flat), arrays])]
    for number, data in enumerate(tables):
        out = directory / f"run{number}"
        # The header identifies questions: no --task needed.
        succeed("train", *TRAINING[2:], "--train", data, "--eval", data, "--output", out)
        assert sum_of(out) == sum_of(one), data
        assert (out / "predictions.json").read_text() == (one / "predictions.json").read_text()
    broken = csv_of(directory / "broken.csv", header, ("a", "When?", CONTEXT, "{'text': 1811"))
    fail(3, "train", *TRAINING, "--train", broken, "--output", directory / "no", words=("broken.csv:2", "1811", "answer_text"))
    start = csv_of(directory / "start.csv", ("question", "context", "answer_text", "answer_start"), ("When?", CONTEXT, "1811", "x"))
    fail(3, "train", *TRAINING, "--train", start, "--output", directory / "no", words=("start.csv:2", "a whole number, not 'x'"))


def test_rows_under_data_are_not_questions(directory):
    need("golden/tiny-bert-qa")
    data = write(directory / "a.json", json.dumps({"data": [{"text": "a", "label": "b"}] * 3}))
    fail(3, "train", *TRAINING[2:], "--train", data, "--output", directory / "no", words=("a.json", "data"))
    assert "question" not in fail(3, "check", "--train", data)


if __name__ == "__main__":
    main(globals())
