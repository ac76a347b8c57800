// Answers and scores questions from logits of their windows.
#include "tasks/qa/evaluation/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "tasks/finite_outputs.h"
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

AnswerFiles::AnswerFiles(const std::filesystem::path& directory, int squad_version)
    : predictions_(directory / "predictions.json"), n_best_(directory / "nbest_predictions.json") {
  if (squad_version == 2) null_odds_.emplace(directory / "null_odds.json");
}

AnswerWriters AnswerFiles::writers() {
  return {&predictions_.writer, &n_best_.writer, null_odds_ ? &null_odds_->writer : nullptr};
}

void AnswerFiles::File::commit() {
  writer.finish();
  file.commit();
}

void AnswerFiles::commit() {
  if (null_odds_) null_odds_->commit();
  predictions_.commit();
  n_best_.commit();
}

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

void write_answer(const std::string& id, const QuestionAnswer& answer,
                  const AnswerWriters& writers) {
  if (writers.predictions) writers.predictions->add(id, answer.text);
  if (writers.n_best) writers.n_best->add(id, answer.n_best);
  if (writers.null_odds) writers.null_odds->add(id, answer.null_odds);
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
  // The answers have been chosen by --null-threshold already.
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

QaEvaluation::QaEvaluation(const SquadData& data, const QaWindows& windows,
                           const AnswerOptions& options, RepeatedQuestions repeated)
    : data_(data), windows_(windows), options_(options), repeated_(std::move(repeated)) {
  FINETUNE_CHECK(windows.begin == 0 && windows.end == int64_t(data.questions.size()));
  answers_.resize(size_t(windows.windows()));
  losses_.resize(size_t(windows.windows()));
}

void QaEvaluation::add(const PackedBatch& batch, const float* logits) {
  // A window takes some ten microseconds: not worth waking threads.
  for (int64_t b = 0; b < batch.sequences(); ++b) {
    const int64_t w = batch.indices[size_t(b)];
    const float* window = logits + 2 * int64_t(batch.offsets[size_t(b)]);  // (length, 2)
    FINETUNE_CHECK(batch.offsets[size_t(b) + 1] - batch.offsets[size_t(b)] ==
                   windows_.set.samples.length(w));
    answers_[size_t(w)] = window_answers(data_, windows_, w, window, options_);
    losses_[size_t(w)] = window_loss(windows_, w, window);
  }
  added_ += batch.sequences();
}

void QaEvaluation::check_complete() const {
  FINETUNE_CHECK(added_ == windows_.windows());
}

QuestionAnswer QaEvaluation::answer(int64_t question) const {
  const int64_t first = windows_.first_window[size_t(question)];
  const int64_t count = windows_.first_window[size_t(question) + 1] - first;
  return answer_question(data_.contexts[data_.questions[size_t(question)].context],
                         answers_.data() + first, count, options_);
}

Metrics QaEvaluation::metrics() {
  check_complete();
  QuestionScores scores(options_.squad_version);
  for (int64_t q = 0; q < windows_.end; ++q) scores.add(data_.questions[size_t(q)], answer(q));
  Metrics out = scores.metrics(repeated_);
  MeanLoss loss;
  for (const std::optional<double>& window : losses_) loss.add(window);
  loss.write(out);
  return out;
}

void QaEvaluation::write(const AnswerWriters& writers) const {
  check_complete();
  for (int64_t q = 0; q < windows_.end; ++q) {
    write_answer(data_.questions[size_t(q)].id, answer(q), writers);
  }
}

void QaEvaluation::write_files(const std::filesystem::path& directory) {
  AnswerFiles files(directory, options_.squad_version);
  write(files.writers());
  files.commit();
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
