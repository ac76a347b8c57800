// Adds up the losses of windows and the scores of answers.
#include "tasks/qa/evaluation/question_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "tasks/evaluator.h"
#include "tasks/repeated_texts.h"

namespace finetune {
namespace {

// -log softmax(logits[0], logits[2], ...) at `target`.
double negative_log_likelihood(const float* logits, int64_t length, int64_t target) {
  double highest = logits[0];
  for (int64_t i = 1; i < length; ++i) highest = std::max(highest, double(logits[2 * i]));
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += std::exp(double(logits[2 * i]) - highest);
  return highest + std::log(sum) - double(logits[2 * target]);
}

}  // namespace

WindowAnswers window_answers(const SquadData& data, const QaWindows& windows, int64_t w,
                             const float* logits, const AnswerOptions& options) {
  const int64_t length = windows.set.samples.length(w);
  if (!all_finite({logits, size_t(2 * length)})) {
    throw not_finite(
        concat("question ", in_quotes(data.questions[windows.question[size_t(w)]].id)));
  }
  const int64_t token = windows.token_index(data, w);
  return reduce_window(logits, length, windows.set.samples.second[size_t(w)],
                       windows.context_length(w), windows.token_begins.data() + token,
                       windows.token_ends.data() + token, options);
}

void MeanLoss::add(std::optional<double> window) {
  if (!window) return;
  sum_ += *window;
  ++windows_;
}

void MeanLoss::write(Metrics& metrics) const {
  if (windows_ > 0) metrics["eval_loss"] = sum_ / double(windows_);
}

std::optional<double> window_loss(const QaWindows& windows, int64_t w, const float* logits) {
  if (windows.starts[size_t(w)] == QaWindows::kUnknown) return std::nullopt;
  const int64_t length = windows.set.samples.length(w);
  return (negative_log_likelihood(logits, length, windows.starts[size_t(w)]) +
          negative_log_likelihood(logits + 1, length, windows.ends[size_t(w)])) /
         2;
}

void QuestionScores::add(const SquadQuestion& question, const QuestionAnswer& answer) {
  if (squad_version_ == 2) {
    no_answer_.push_back({uint32_t(questions_.size()), double(answer.null_odds)});
  }
  questions_.push_back({score_answer(question.answers, answer.text, squad_version_), true,
                        !question.answers.empty(), answer.text.empty()});
}

std::vector<TextSum> question_sums(const SquadData& data) {
  std::vector<TextSum> sums;
  for (const SquadQuestion& question : data.questions) {
    const std::array<std::string_view, 2> parts{question.question, data.contexts[question.context]};
    sums.push_back(text_sum(parts));
  }
  return sums;
}

RepeatedQuestions repeated_questions(const SquadData& data, const TrainedTexts& trained) {
  RepeatedQuestions repeated;
  for (const TextSum& sum : question_sums(data)) repeated.push_back(trained.contains(sum));
  return repeated;
}

Metrics QuestionScores::metrics(const RepeatedQuestions& repeated) const {
  // The answers were already chosen by --null-threshold.
  constexpr double kChosen = std::numeric_limits<double>::infinity();
  Metrics metrics = squad_scores(questions_, no_answer_, kChosen, squad_version_);
  if (repeated.empty()) return metrics;
  QuestionScores unseen(squad_version_);
  for (size_t q = 0; q < questions_.size(); ++q) {
    if (repeated[q]) continue;
    if (squad_version_ == 2) {
      unseen.no_answer_.push_back({uint32_t(unseen.questions_.size()), no_answer_[q].value});
    }
    unseen.questions_.push_back(questions_[q]);
  }
  const auto count = int64_t(questions_.size() - unseen.questions_.size());
  add_unseen(unseen.questions_.empty() ? Metrics() : unseen.metrics(), count, metrics);
  return metrics;
}

bool has_known_places(const SquadData& data) {
  return std::any_of(data.questions.begin(), data.questions.end(),
                     [](const SquadQuestion& q) { return q.found != TargetFound::nowhere; });
}

std::vector<std::string> qa_metric_names(int squad_version, bool has_loss, bool knows_trained) {
  std::vector<std::string> names = {"eval_exact_match", "eval_f1"};
  if (has_loss) names.emplace_back("eval_loss");
  if (squad_version == 2) {
    for (const char* name :
         {"eval_total", "eval_has_answer_exact_match", "eval_has_answer_f1",
          "eval_has_answer_total", "eval_no_answer_exact_match", "eval_no_answer_f1",
          "eval_no_answer_total", "eval_best_exact_match", "eval_best_exact_match_threshold",
          "eval_best_f1", "eval_best_f1_threshold"}) {
      names.emplace_back(name);
    }
  }
  if (!knows_trained) return names;
  for (std::string& name : unseen_metric_names(names)) names.push_back(std::move(name));
  return names;
}

}  // namespace finetune
