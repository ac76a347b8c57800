// Answers, n-best lists and null odds compared with Hugging Face's.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "../../written_output.h"
#include "core/threads/parallel.h"
#include "data/packing.h"
#include "golden.h"
#include "tasks/qa/evaluation/postprocess.h"
#include "tasks/qa/evaluation/qa_evaluator.h"
#include "tokenizer/tokenizer.h"

namespace finetune {
namespace {

using test::GoldenTensors;
using test::have_shared;
using test::read_json;
using test::shared_path;

double number_in(const JsonValue& object, std::string_view key) {
  return object[key].as<double>().value();
}

void check_golden(int version, int threads_count) {
  CAPTURE(version);
  set_threads(threads_count);
  const auto directory = shared_path("golden/qa-postprocess");
  auto tokenizer = Tokenizer::load(shared_path("golden/tiny-bert-qa"));
  const SquadData data = read_squad({directory / "questions.json"}, 0, false);
  const QaWindows windows =
      make_windows(data, 0, int64_t(data.questions.size()), *tokenizer, {384, 128});
  const GoldenTensors golden(directory / "logits.safetensors");
  const auto start = golden.values<float>("start_logits");  // (168, 384)
  const auto end = golden.values<float>("end_logits");
  const auto length = golden.values<int64_t>("length");
  REQUIRE(windows.windows() == int64_t(length.size()));

  AnswerOptions options;
  options.squad_version = version;
  QaEvaluator evaluator(data, windows, options);
  std::map<std::string, std::string> written;
  evaluator.open_outputs([&](const std::string& name) {
    return std::make_unique<test::WrittenOutput>(written[name]);
  });
  while (evaluator.next()) {
  }
  // Several windows at a time.
  std::vector<uint32_t> order(length.size());
  std::iota(order.begin(), order.end(), 0u);
  for (size_t begin = 0; begin < order.size(); begin += 5) {
    size_t count = std::min<size_t>(5, order.size() - begin);
    PackedBatch batch;
    pack(windows.set.samples, std::span(order).subspan(begin, count), {}, batch);
    std::vector<float> logits;
    for (size_t i = begin; i < begin + count; ++i) {
      REQUIRE(windows.set.samples.length(order[i]) == length[order[i]]);
      for (int64_t t = 0; t < length[order[i]]; ++t) {
        logits.push_back(start[size_t(order[i] * 384 + t)]);
        logits.push_back(end[size_t(order[i] * 384 + t)]);
      }
    }
    evaluator.add(batch, logits.data());
  }
  evaluator.commit_outputs();
  set_threads(available_cores());

  const auto expected =
      read_json(directory / (version == 1 ? "expected-v1.json" : "expected-v2.json"));
  const auto predictions = JsonValue::parse(written["predictions.json"]);
  REQUIRE(predictions.members().size() == expected["predictions"].members().size());
  for (const auto& [id, text] : expected["predictions"].members()) {
    CHECK(predictions[id].as<std::string>() == text.as<std::string>());
  }

  const auto n_best = JsonValue::parse(written["nbest_predictions.json"]);
  REQUIRE(n_best.members().size() == expected["nbest_first_5"].members().size());
  for (const auto& [id, list] : expected["nbest_first_5"].members()) {
    CAPTURE(id);
    const JsonValue::Items& ours = n_best[id].items();
    REQUIRE(ours.size() >= list.items().size());
    CHECK(ours.size() <= 21);
    for (size_t i = 0; i < list.items().size(); ++i) {
      const JsonValue& theirs = list.items()[i];
      CHECK(ours[i]["text"].as<std::string>() == theirs["text"].as<std::string>());
      CHECK(number_in(ours[i], "start_logit") == number_in(theirs, "start_logit"));
      CHECK(number_in(ours[i], "end_logit") == number_in(theirs, "end_logit"));
      const double probability = number_in(theirs, "probability");
      CHECK(std::abs(number_in(ours[i], "probability") - probability) <= 1e-6 * probability);
    }
  }
  if (version == 2) {
    const auto odds = JsonValue::parse(written["null_odds.json"]);
    REQUIRE(odds.members().size() == expected["null_odds"].members().size());
    for (const auto& [id, value] : expected["null_odds"].members()) {
      CAPTURE(id);
      CHECK(std::abs(number_in(odds, id) - value.as<double>().value()) <= 2e-6);
    }
  }
  Metrics metrics = evaluator.metrics();
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics) {
    names.push_back(name);
    CHECK(std::isfinite(value));
  }
  auto possible = qa_metric_names(version);
  std::sort(possible.begin(), possible.end());
  CHECK(names == possible);
}

TEST_CASE("answers, n-best and null odds are Hugging Face's") {
  if (!have_shared("golden/qa-postprocess")) return;
  check_golden(1, 1);
  check_golden(2, 2);
}

TEST_CASE("a window is reduced to its best spans inside the context") {
  // [CLS] q [SEP] c0 c1 c2 [SEP]
  const float logits[] = {9, 9, 8, 8, 7, 7, 1, 0, 2, 3, 0, 2, 6, 6};
  const uint32_t begins[] = {0, 4, 6}, ends[] = {3, 5, 9};
  AnswerOptions options;
  WindowAnswers all = reduce_window(logits, 7, 3, 3, begins, ends, options);
  CHECK(all.null_start == 9);
  REQUIRE(all.candidates.size() == 6);
  CHECK(all.candidates[0].begin == 4);
  CHECK(all.candidates[0].end == 5);
  // Equal scores 4: start c1 with end c2 before start c0 with end c1.
  CHECK(all.candidates[1].end == 9);
  CHECK(all.candidates[1].begin == 4);
  CHECK(all.candidates[2].begin == 0);

  options.max_answer_length = 1;
  CHECK(reduce_window(logits, 7, 3, 3, begins, ends, options).candidates.size() == 3);
  options.max_answer_length = 30;
  options.n_best = 4;  // the largest four are all outside the context
  CHECK(reduce_window(logits, 7, 3, 3, begins, ends, options).candidates.empty());
}

TEST_CASE("a question without any span is answered \"empty\" or \"\"") {
  WindowAnswers window;
  window.null_start = 2;
  window.null_end = 1;
  AnswerOptions options;
  QuestionAnswer answer = answer_question("context", &window, 1, options);
  CHECK(answer.text == "empty");
  CHECK(answer.n_best.size() == 1);
  options.squad_version = 2;
  answer = answer_question("context", &window, 1, options);
  CHECK(answer.text == "");
  CHECK(answer.null_odds == 3);
  REQUIRE(answer.n_best.size() == 2);
  CHECK(answer.n_best[0].text == "empty");
  CHECK(answer.n_best[0].probability == doctest::Approx(1 / (1 + std::exp(3.0))));
  options.null_threshold = 3;
  CHECK(answer_question("context", &window, 1, options).text == "empty");
}

TEST_CASE("an answer has no white space around it, though its tokens have") {
  const std::string context = "in\u00a0 the year \u3000 2";
  WindowAnswers window;
  window.candidates = {{2, 1, 2, 13}, {1, 1, 13, 18}};
  const QuestionAnswer answer = answer_question(context, &window, 1, {});
  CHECK(answer.text == "the year");
  CHECK(answer.n_best[1].text.empty());
}

TEST_CASE("the null answer of several windows is the least, and stays in the list") {
  WindowAnswers windows[2];
  windows[0].null_start = 5;
  windows[1].null_start = -9;
  windows[0].candidates = {{1, 1, 0, 3}, {1, 0, 4, 6}};
  windows[1].candidates = {{2, 0, 4, 6}};
  AnswerOptions options;
  options.squad_version = 2;
  options.n_best = 2;
  QuestionAnswer answer = answer_question("one two", windows, 2, options);
  CHECK(answer.text == "one");  // of equal scores the first window's
  CHECK(answer.null_odds == -11);
  REQUIRE(answer.n_best.size() == 3);
  CHECK(answer.n_best[1].text == "tw");
  CHECK(answer.n_best[2].text == "");
}

TEST_CASE("files are indented ASCII, as json.dumps(..., indent=4) writes them") {
  std::string out;
  JsonObjectWriter writer([&](std::string_view text) { out += text; });
  writer.add("a\"", "é\n😀");
  writer.add("b", 1.0f);
  writer.add("c", std::vector<RankedAnswer>{{"x", 0.5f, -2, 1}});
  writer.finish();
  CHECK(
      out ==
      "{\n    \"a\\\"\": \"\\u00e9\\n\\ud83d\\ude00\",\n    \"b\": 1.0,\n    \"c\": [\n        {\n"
      "            \"start_logit\": 0.5,\n            \"end_logit\": -2.0,\n"
      "            \"text\": \"x\",\n            \"probability\": 1.0\n        }\n    ]\n}\n");
  out.clear();
  JsonObjectWriter empty([&](std::string_view text) { out += text; });
  empty.finish();
  CHECK(out == "{}\n");
}

}  // namespace
}  // namespace finetune
