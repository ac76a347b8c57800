"""Questions as people have them: misplaced answers, missing ids, contradicting flags."""
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
    # A wrong answer before the right one; an offset that is off by one.
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
    lost = question("x", "How many?", [answer("it", 0)])  # twice in the context, never at byte 0
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


if __name__ == "__main__":
    main(globals())
