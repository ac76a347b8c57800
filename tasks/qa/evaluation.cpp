#include "tasks/qa/evaluation.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/files.h"
#include "core/parallel.h"
#include "tasks/qa/squad_metrics.h"

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

QaEvaluation::QaEvaluation(const SquadData& data, const QaWindows& windows,
                           const AnswerOptions& options, bool with_references)
    : data_(data), windows_(windows), options_(options), with_references_(with_references) {
  answers_.resize(size_t(windows.windows()));
  losses_.resize(size_t(windows.windows()));
}

void QaEvaluation::add(const PackedBatch& batch, const float* logits) {
  // A window takes some ten microseconds: not worth waking threads.
  for (int64_t b = 0; b < batch.sequences(); ++b) {
    const int64_t w = batch.indices[size_t(b)];
    const int64_t length = windows_.set.samples.length(w);
    FINETUNE_CHECK(batch.offsets[size_t(b) + 1] - batch.offsets[size_t(b)] == length);
    const float* window = logits + 2 * int64_t(batch.offsets[size_t(b)]);  // (length, 2)
    for (int64_t i = 0; i < 2 * length; ++i) {
      if (!std::isfinite(window[i])) {
        throw Error(ExitCode::diverged,
                    concat("the model's outputs for question ",
                           in_quotes(data_.questions[windows_.question[size_t(w)]].id),
                           " are not finite: its weights have diverged or are damaged"));
      }
    }
    const int64_t token = windows_.token_index(data_, w);
    answers_[size_t(w)] = reduce_window(
        window, length, windows_.set.samples.second[size_t(w)], windows_.context_length(w),
        windows_.token_begins.data() + token, windows_.token_ends.data() + token, options_);
    if (with_references_) {
      losses_[size_t(w)] = (negative_log_likelihood(window, length, windows_.starts[size_t(w)]) +
                            negative_log_likelihood(window + 1, length, windows_.ends[size_t(w)])) /
                           2;
    }
  }
  added_ += batch.sequences();
}

void QaEvaluation::check_complete() const {
  FINETUNE_CHECK(added_ == windows_.windows());
}

QuestionAnswer QaEvaluation::answer(int64_t question) const {
  const size_t q = size_t(question - windows_.begin);
  const int64_t first = windows_.first_window[q];
  const int64_t count = windows_.first_window[q + 1] - first;
  return answer_question(data_.contexts[data_.questions[size_t(question)].context],
                         answers_.data() + first, count, options_);
}

Metrics QaEvaluation::metrics() {
  check_complete();
  if (!with_references_) return {};
  FINETUNE_CHECK(windows_.begin == 0 && windows_.end == int64_t(data_.questions.size()));
  std::vector<std::string> texts(data_.questions.size());
  SquadPredictions predictions;
  predictions.answers.resize(texts.size());
  if (options_.squad_version == 2) predictions.no_answer.resize(texts.size());
  // The answers have been chosen by --null-threshold already.
  predictions.no_answer_threshold = std::numeric_limits<double>::infinity();
  parallel_ranges(windows_.end, 64, [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      QuestionAnswer chosen = answer(q);
      texts[size_t(q)] = chosen.text;
      predictions.answers[size_t(q)] = &texts[size_t(q)];
      if (options_.squad_version == 2) {
        predictions.no_answer[size_t(q)] = {uint32_t(q), double(chosen.null_odds)};
      }
    }
  });
  Metrics out = squad_scores(data_, predictions, options_.squad_version);
  double loss = 0;
  for (double window : losses_) loss += window;
  out["eval_loss"] = loss / double(losses_.size());
  return out;
}

void QaEvaluation::write(const AnswerWriters& writers) const {
  check_complete();
  for (int64_t q = windows_.begin; q < windows_.end; ++q) {
    const std::string& id = data_.questions[size_t(q)].id;
    QuestionAnswer chosen = answer(q);
    if (writers.predictions) writers.predictions->add(id, chosen.text);
    if (writers.n_best) writers.n_best->add(id, chosen.n_best);
    if (writers.null_odds) writers.null_odds->add(id, chosen.null_odds);
  }
}

void QaEvaluation::write_files(const std::filesystem::path& directory) {
  AtomicFile predictions(directory / "predictions.json");
  AtomicFile n_best(directory / "nbest_predictions.json");
  JsonObjectWriter predictions_writer([&](std::string_view text) { predictions.write(text); });
  JsonObjectWriter n_best_writer([&](std::string_view text) { n_best.write(text); });
  if (options_.squad_version == 2) {
    AtomicFile null_odds(directory / "null_odds.json");
    JsonObjectWriter null_odds_writer([&](std::string_view text) { null_odds.write(text); });
    write({&predictions_writer, &n_best_writer, &null_odds_writer});
    null_odds_writer.finish();
    null_odds.commit();
  } else {
    write({&predictions_writer, &n_best_writer, nullptr});
  }
  predictions_writer.finish();
  n_best_writer.finish();
  predictions.commit();
  n_best.commit();
}

std::vector<std::string> qa_metric_names(int squad_version) {
  std::vector<std::string> names = {"eval_exact_match", "eval_f1", "eval_loss"};
  if (squad_version == 2) {
    for (const char* name :
         {"eval_total", "eval_has_answer_exact_match", "eval_has_answer_f1",
          "eval_has_answer_total", "eval_no_answer_exact_match", "eval_no_answer_f1",
          "eval_no_answer_total", "eval_best_exact_match", "eval_best_exact_match_threshold",
          "eval_best_f1", "eval_best_f1_threshold"}) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace finetune
