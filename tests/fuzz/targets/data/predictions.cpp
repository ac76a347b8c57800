// What `score` reads: a SQuAD file, predictions for it, and no-answer scores.
#include <cmath>

#include "fuzz/target.h"
#include "tasks/scores/prediction_files.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune::fuzz {
namespace {

// As in the official script, the best scores count all questions without an answer, but divide by
// those that were predicted.
void check_scores(const std::map<std::string, double>& scores, size_t questions) {
  for (const auto& [name, value] : scores) {
    const bool is_count = name.ends_with("_total");
    if (name.starts_with("eval_best_")) continue;
    const double most = is_count ? double(questions) : 100 + 1e-9;
    require(value >= 0 && value <= most, name, " is ", value);
  }
}

void check_predictions(std::string_view input) {
  const auto parts = parts_of(input, 3);
  const SquadData data = read_squad({InputFile(scratch_file("dev.json", parts[0]))}, 0, false);
  const PredictionFile predictions =
      read_predictions(scratch_file("predictions.json", parts[1]), data);
  require(predictions.answers.size() == data.questions.size(), "answers are not one a question");
  SquadPredictions scored;
  scored.answers = predictions.answers;
  scored.no_answer_threshold = 0.5;
  check_scores(squad_scores(data, scored, 1), data.questions.size());
  check_scores(squad_scores(data, scored, 2), data.questions.size());
  if (parts[2].empty()) return;
  scored.no_answer =
      read_no_answer_scores(scratch_file("null_odds.json", parts[2]), data, predictions);
  check_scores(squad_scores(data, scored, 2), data.questions.size());
}

const Registration kPredictionsTarget({.name = "predictions",
                                       .run = check_predictions,
                                       .memory = kPackedMemory});

}  // namespace
}  // namespace finetune::fuzz
