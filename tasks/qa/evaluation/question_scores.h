// Scores of answered questions: losses of windows, exact match and F1 of answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/squad.h"
#include "data/text_sum.h"
#include "tasks/qa/evaluation/postprocess.h"
#include "tasks/qa/features.h"
#include "tasks/scores/squad_metrics.h"
#include "tasks/task.h"

namespace finetune {

// A window's contribution to its question, from the logits (length, 2) of window w. Error(diverged)
// if logits are not finite.
WindowAnswers window_answers(const SquadData& data, const QaWindows& windows, int64_t w,
                             const float* logits, const AnswerOptions& options);
// The training loss of window w, or nothing if the place of its question's answer is unknown.
std::optional<double> window_loss(const QaWindows& windows, int64_t w, const float* logits);

// The mean of window losses.
class MeanLoss {
 public:
  void add(std::optional<double> window);
  void write(Metrics& metrics) const;  // "eval_loss", unless no window has a loss

 private:
  double sum_ = 0;
  int64_t windows_ = 0;
};

// One flag per question: whether its question and context were trained on, too. Empty if the
// trained questions are not known.
using RepeatedQuestions = std::vector<uint8_t>;
RepeatedQuestions repeated_questions(const SquadData& data, const TrainedTexts& trained);
std::vector<TextSum> question_sums(const SquadData& data);

// The scores of chosen answers. Add questions in the order of the data.
class QuestionScores {
 public:
  explicit QuestionScores(int squad_version) : squad_version_(squad_version) {}
  void reserve(size_t questions) { questions_.reserve(questions); }
  void add(const SquadQuestion& question, const QuestionAnswer& answer);
  // If the repeated questions are known, also has metrics of the others (tasks/repeated_texts.h).
  Metrics metrics(const RepeatedQuestions& repeated = {}) const;

 private:
  int squad_version_;
  std::vector<ScoredQuestion> questions_;
  std::vector<NoAnswerScore> no_answer_;  // version 2
};

// Whether any question has a loss, that is, has no answer, or has an answer with a known place.
bool has_known_places(const SquadData& data);
// The metrics that QuestionScores::metrics() may give for version 1 or 2.
std::vector<std::string> qa_metric_names(int squad_version, bool has_loss = true,
                                         bool knows_trained = false);

}  // namespace finetune
