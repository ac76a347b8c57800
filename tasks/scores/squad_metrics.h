// Computes the official SQuAD scores: exact match and F1, equal to the last digit.
// Like evaluate-v1.1.py and evaluate-v2.0.py (Rajpurkar et al., 2016, 2018): sums run over the
// questions in the order of the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/squad.h"

namespace finetune {

// Lower case, without ASCII punctuation, without the words a, an, the, and with single blanks.
std::string normalize_answer(std::string_view answer);

struct AnswerScore {
  double exact = 0;  // 0 or 1
  double f1 = 0;     // 0..1, over the words of the normalized answers
};
// The best score over the reference answers. Version 1: without common words F1 is 0, even for two
// empty answers. Version 2: empty references are ignored; without others "" is right.
AnswerScore score_answer(const std::vector<SquadAnswer>& references, std::string_view prediction,
                         int squad_version);

// An entry of a file of no-answer probabilities (or null odds), in the order of the file.
struct NoAnswerScore {
  uint32_t question = 0;  // index into SquadData::questions
  double value = 0;
};

struct SquadPredictions {
  std::vector<const std::string*> answers;  // one for each question; null: not predicted
  std::vector<NoAnswerScore> no_answer;     // empty: not given; else per predicted question
  double no_answer_threshold = 1.0;         // version 2: above it the answer counts as ""
};

// A question, predicted or not, with the facts that its scores need.
struct ScoredQuestion {
  AnswerScore score;
  bool predicted = true;
  bool has_answer = false;        // in the references
  bool answered_nothing = false;  // the prediction is ""
};

// Percentages, 0 to 100.
// Version 1: eval_exact_match, eval_f1 over all questions (0 if not predicted).
// Version 2: over the predicted questions; also eval_has_answer_{exact_match,f1,total},
// eval_no_answer_{...} if there are such questions, eval_total. With no-answer scores also
// eval_best_{exact_match,f1}, the best value over all thresholds on these scores, and
// eval_best_{exact_match,f1}_threshold.
// Requires at least one predicted question. `no_answer`: see SquadPredictions.
std::map<std::string, double> squad_scores(std::span<const ScoredQuestion> questions,
                                           std::span<const NoAnswerScore> no_answer,
                                           double no_answer_threshold, int squad_version);
std::map<std::string, double> squad_scores(const SquadData& data,
                                           const SquadPredictions& predictions, int squad_version);

}  // namespace finetune
