// Normalised answers, scores and thresholds as in the official scripts.
#include <doctest/doctest.h>

#include "tasks/scores/python_text.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune {
namespace {

SquadQuestion question(const std::vector<std::string>& answers) {
  SquadQuestion q;
  for (const std::string& text : answers) q.answers.push_back({text, 0});
  return q;
}

TEST_CASE("answers are normalized as in the official scripts") {
  // Computed with Python's own str methods and regular expressions.
  CHECK(normalize_answer("The  U.S.A.") == "usa");
  CHECK(normalize_answer("a-team") == "ateam");
  CHECK(normalize_answer("“The Cat”") == "“ cat”");
  CHECK(normalize_answer("An\u00a0apple") == "apple");
  CHECK(normalize_answer("naïve – A") == "naïve –");
  CHECK(normalize_answer("the_cat") == "thecat");
  CHECK(normalize_answer("Theé the") == "theé");
  CHECK(normalize_answer("İstanbul") == "i\u0307stanbul");
  CHECK(normalize_answer("ΑΣ") == "ας");
  CHECK(normalize_answer("10,000 km²") == "10000 km²");
  CHECK(normalize_answer("x\u3000y\x1cz\u0085w") == "x y z w");
  CHECK(normalize_answer("a") == "");
  CHECK(normalize_answer("") == "");
  CHECK(normalize_answer("a\u0301 b") == "\u0301 b");  // a combining mark is not \w
  CHECK(normalize_answer("ΣΑΣ'Α Σ") == "σασα σ");      // a sigma is final before none but cased
  CHECK(normalize_answer("a\xFF b") == "\uFFFD b");
}

TEST_CASE("leading white space is Python's") {
  CHECK(python_lstrip(" \t\u3000\u00a0\x1f\u2009What ") == "What ");
  CHECK(python_lstrip("\u200bWhat") == "\u200bWhat");  // zero width: not white space
  CHECK(python_lstrip("\u2009") == "");
  CHECK(python_lstrip("\xE2\x80") == "\xE2\x80");
}

TEST_CASE("an answer's score is the best over the references") {
  AnswerScore score = score_answer(question({"the big cat", "cat dog"}).answers, "Cat dog bird", 1);
  CHECK(score.exact == 0);
  CHECK(score.f1 == doctest::Approx(0.8));
  // Words count as often as they occur.
  score = score_answer(question({"x x y"}).answers, "x x x", 1);
  CHECK(score.f1 == doctest::Approx(2.0 * 2 / 3 * 2 / 3 / (4.0 / 3)));
  CHECK(score_answer(question({"the"}).answers, "a", 1).exact == 1);
  CHECK(score_answer(question({"the"}).answers, "a", 1).f1 == 0);
  CHECK(score_answer(question({"the"}).answers, "a", 2).f1 == 1);  // nothing left: ""
  CHECK(score_answer(question({}).answers, "", 2).exact == 1);
  CHECK(score_answer(question({}).answers, "x", 2).f1 == 0);
  CHECK(score_answer(question({"x"}).answers, "", 2).f1 == 0);
}

TEST_CASE("version 2: averages, thresholds and the best of them") {
  SquadData data;
  data.questions = {question({"one"}), question({}), question({"two"}), question({}),
                    question({"x"})};
  std::string one = "one", wrong = "wrong", none;
  SquadPredictions predictions;
  predictions.answers = {&one, &wrong, &wrong, &none, nullptr};
  auto scores = squad_scores(data, predictions, 2);
  CHECK(scores.at("eval_exact_match") == 50);
  CHECK(scores.at("eval_total") == 4);
  CHECK(scores.at("eval_has_answer_exact_match") == 50);
  CHECK(scores.at("eval_no_answer_f1") == 50);
  CHECK(scores.count("eval_best_f1") == 0);

  predictions.no_answer = {{1, 3.0}, {0, -2.0}, {2, 2.0}, {3, 5.0}};
  scores = squad_scores(data, predictions, 2);
  // Above 1.0: questions 1, 2 and 3 count as "".
  CHECK(scores.at("eval_exact_match") == 75);
  CHECK(scores.at("eval_no_answer_exact_match") == 100);
  CHECK(scores.at("eval_best_exact_match") == 75);
  CHECK(scores.at("eval_best_exact_match_threshold") == -2.0);

  // Version 1 counts questions without a prediction as wrong.
  CHECK(squad_scores(data, predictions, 1).at("eval_exact_match") == 20);
}

}  // namespace
}  // namespace finetune
