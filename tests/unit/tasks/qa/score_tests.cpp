// Published predictions get their official SQuAD scores.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "../../contains.h"
#include "core/error.h"
#include "error_line.h"
#include "golden.h"
#include "tasks/scores/prediction_files.h"
#include "tasks/scores/squad_metrics.h"
#include "temporary_directory.h"

namespace finetune {

using test::contains;
namespace {

using test::have_shared;
using test::shared_path;
namespace fs = std::filesystem;

std::map<std::string, double> scores_of(const fs::path& data_file, const fs::path& answers) {
  const SquadData data = read_squad({data_file}, 0, false);
  const PredictionFile file = read_predictions(answers, data);
  SquadPredictions predictions;
  predictions.answers = file.answers;
  return squad_scores(data, predictions, data.has_unanswerable ? 2 : 1);
}

std::map<std::string, double> published_scores(const std::string& data_file,
                                               const std::string& name) {
  return scores_of(shared_path("data/squad/" + data_file),
                   shared_path("data/squad/predictions/" + name + ".json"));
}

std::string message_of(auto&& action) {
  return test::error_line(ExitCode::data, action);
}

TEST_CASE("answers get the scores of the official scripts, to the last digit") {
  const auto golden = test::read_json(shared_path("golden/qa-scores/scores.json"));
  auto scores = scores_of(test::source_path("data/samples/squad-dev.json"),
                          shared_path("golden/qa-scores/predictions-v1.1.json"));
  CHECK(scores.size() == 2);
  CHECK(scores["eval_exact_match"] == golden["v1.1"]["exact_match"].as<double>());
  CHECK(scores["eval_f1"] == golden["v1.1"]["f1"].as<double>());

  scores = scores_of(shared_path("golden/qa-postprocess/questions.json"),
                     shared_path("golden/qa-scores/predictions-v2.0.json"));
  const std::pair<const char*, const char*> names[] = {
      {"eval_exact_match", "exact"},
      {"eval_f1", "f1"},
      {"eval_total", "total"},
      {"eval_has_answer_exact_match", "HasAns_exact"},
      {"eval_has_answer_f1", "HasAns_f1"},
      {"eval_has_answer_total", "HasAns_total"},
      {"eval_no_answer_exact_match", "NoAns_exact"},
      {"eval_no_answer_f1", "NoAns_f1"},
      {"eval_no_answer_total", "NoAns_total"}};
  for (const auto& [ours, theirs] : names) {
    CHECK(scores[ours] == golden["v2.0"][theirs].as<double>());
  }
}

// The scores that the official scripts give for published predictions (data/squad/README.txt).
TEST_CASE("published predictions get their official scores, to the last digit") {
  if (!have_shared("data/squad/predictions")) return;
  auto scores = published_scores("dev-v1.1.json", "v1.1-bert-ensemble-google");
  CHECK(scores["eval_exact_match"] == 86.20624408703878);
  CHECK(scores["eval_f1"] == 92.19557978351145);
  CHECK(scores.size() == 2);
  scores = published_scores("dev-v1.1.json", "v1.1-logistic-regression-stanford");
  CHECK(scores["eval_exact_match"] == 40.14191106906339);
  CHECK(scores["eval_f1"] == 50.98153647324461);
  scores = published_scores("dev-v1.1.json", "v1.1-match-lstm-smu");
  CHECK(scores["eval_exact_match"] == 67.63481551561021);
  CHECK(scores["eval_f1"] == 76.75556184979695);

  scores = published_scores("dev-v2.0.json", "v2.0-bert-single-google");
  CHECK(scores["eval_exact_match"] == 78.74168280973637);
  CHECK(scores["eval_f1"] == 81.77528052374723);
  CHECK(scores["eval_has_answer_exact_match"] == 74.10593792172739);
  CHECK(scores["eval_has_answer_f1"] == 80.18183293833508);
  CHECK(scores["eval_no_answer_exact_match"] == 83.36417157275021);
  CHECK(scores["eval_no_answer_f1"] == 83.36417157275021);
  CHECK(scores["eval_total"] == 11873);
  CHECK(scores["eval_has_answer_total"] == 5928);
  CHECK(scores["eval_no_answer_total"] == 5945);
  scores = published_scores("dev-v2.0.json", "v2.0-nlnet-msra");
  CHECK(scores["eval_exact_match"] == 75.82750779078582);
  CHECK(scores["eval_f1"] == 78.77776770381462);
  CHECK(scores["eval_has_answer_exact_match"] == 69.61875843454791);
  CHECK(scores["eval_has_answer_f1"] == 75.52773885752187);
  CHECK(scores["eval_no_answer_f1"] == 82.01850294365012);
  scores = published_scores("dev-v2.0.json", "v2.0-bidaf-selfatt-elmo-ai2");
  CHECK(scores["eval_exact_match"] == 65.70369746483618);
  CHECK(scores["eval_f1"] == 67.87648921451334);
  CHECK(scores["eval_has_answer_exact_match"] == 61.42037786774629);
  CHECK(scores["eval_has_answer_f1"] == 65.77219238257676);
  CHECK(scores["eval_no_answer_exact_match"] == 69.97476871320437);
}

TEST_CASE("files of predictions with missing, unknown or broken parts") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "predictions.json";
  SquadData data;
  data.questions.resize(3);
  for (size_t q = 0; q < 3; ++q) data.questions[q].id = std::string(1, char('a' + q));
  auto write = [&](std::string_view text) { std::ofstream(path) << text; };

  write(R"({"c": "x", "z": "unknown", "a": "\u00e9", "c": "last"})");
  PredictionFile file = read_predictions(path, data);
  CHECK(file.missing == 1);
  CHECK(file.unknown == 1);
  CHECK(*file.answers[0] == "é");
  CHECK(file.answers[1] == nullptr);
  CHECK(*file.answers[2] == "last");

  write(R"({"c": 1, "z": 2, "a": -0.5, "b": 7})");
  auto scores = read_no_answer_scores(path, data, file);
  REQUIRE(scores.size() == 2);  // in the order of the file, without unpredicted ones
  CHECK(scores[0].question == 2);
  CHECK(scores[1].value == -0.5);
  write(R"({"c": 1})");
  CHECK(message_of([&] { read_no_answer_scores(path, data, file); }).find("'a'") !=
        std::string::npos);
  write(R"({"c": "x"})");
  CHECK(message_of([&] { read_no_answer_scores(path, data, file); }).find("not a number") !=
        std::string::npos);
  write(R"({"c": 1})");
  CHECK(message_of([&] { read_predictions(path, data); }).find("'c' is not a string") !=
        std::string::npos);
  write(R"({"y": "1", "z": "2"})");
  CHECK(message_of([&] {
          require_answers(read_predictions(path, data), path);
        }).find("none of its 2 ids") != std::string::npos);
  write("[]");
  CHECK(message_of([&] { read_predictions(path, data); }).find("not a JSON object") !=
        std::string::npos);
  write("{");
  CHECK(contains(message_of([&] { read_predictions(path, data); }), "not JSON"));
}

}  // namespace
}  // namespace finetune
