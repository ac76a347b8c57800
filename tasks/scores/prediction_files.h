// Reads predictions.json ({id: answer}) and null_odds.json ({id: number}) against a data set.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/squad.h"
#include "tasks/scores/squad_metrics.h"

namespace finetune {

struct PredictionFile {
  std::deque<std::string> texts;            // owns the answers
  std::vector<const std::string*> answers;  // one for each question; null: not predicted
  int64_t unknown = 0;                      // ids that the data does not have
  int64_t missing = 0;                      // questions without a prediction
};

// Error(data) naming the file if it is not a JSON object of strings.
PredictionFile read_predictions(const std::filesystem::path& path, const SquadData& data);
// Error(data) if no id of the file is a question of the data.
void require_answers(const PredictionFile& predictions, const std::filesystem::path& path);

// The scores of the predicted questions, in the order of the file. Error(data) naming a predicted
// question without a score.
std::vector<NoAnswerScore> read_no_answer_scores(const std::filesystem::path& path,
                                                 const SquadData& data,
                                                 const PredictionFile& predictions);

}  // namespace finetune
