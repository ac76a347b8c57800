// Evaluates or answers question files some hundred questions at a time.
#include "tasks/qa/evaluation/file_evaluation.h"

#include <algorithm>

#include "core/error.h"
#include "tasks/qa/qa_task.h"
#include "tasks/repeated_texts.h"

namespace finetune {
namespace {

constexpr size_t kMostContextBytes = size_t{8} << 20;  // of the questions of one piece

}  // namespace

QaFileEvaluation::QaFileEvaluation(const TaskOptions& options, const Tokenizer& tokenizer,
                                   int64_t max_positions, bool with_references,
                                   int64_t questions_at_once)
    : tokenizer_(tokenizer),
      window_options_(qa_window_options(options, tokenizer, max_positions)),
      data_(read_squad(options.eval_files, options.max_eval_samples, with_references)),
      answer_options_(qa_answer_options(options, data_.has_unanswerable)),
      with_references_(with_references),
      questions_at_once_(questions_at_once),
      scores_(answer_options_.squad_version) {
  if (with_references) scores_.reserve(data_.questions.size());
}

void QaFileEvaluation::take_training_rows(const TaskOptions& training) {
  repeated_ = repeated_questions(data_, trained_questions(training));
}

std::vector<std::string> QaFileEvaluation::describe() const {
  std::vector<std::string> lines = describe_questions("eval", data_, answer_options_.squad_version);
  std::string repeated = describe_repeated(std::count(repeated_.begin(), repeated_.end(), 1),
                                           questions(), "questions", "");
  if (!repeated.empty()) lines.push_back(std::move(repeated));
  return lines;
}

std::vector<std::string> QaFileEvaluation::describe_samples() const {
  return describe_windows("eval", totals_, window_options_);
}

void QaFileEvaluation::open_files(const std::filesystem::path& directory) {
  files_.emplace(directory, answer_options_.squad_version);
  writers_ = files_->writers();
}

const SampleSet* QaFileEvaluation::next() {
  const int64_t begin = read_;
  size_t bytes = 0;
  while (read_ < questions() && read_ - begin < questions_at_once_ && bytes < kMostContextBytes) {
    bytes += data_.contexts[data_.questions[size_t(read_++)].context].size();
  }
  if (read_ == begin) return nullptr;
  pieces_.push_back(make_windows(data_, begin, read_, tokenizer_, window_options_));
  totals_.add(pieces_.back());
  return &pieces_.back().set;
}

void QaFileEvaluation::add(const PackedBatch& batch, const float* logits) {
  for (int64_t b = 0; b < batch.sequences(); ++b, ++added_) {
    FINETUNE_CHECK(batch.indices[size_t(b)] == uint32_t(added_) && !pieces_.empty());
    const QaWindows& piece = pieces_.front();
    const int64_t w = window_;
    const float* window = logits + 2 * int64_t(batch.offsets[size_t(b)]);  // (length, 2)
    FINETUNE_CHECK(batch.offsets[size_t(b) + 1] - batch.offsets[size_t(b)] ==
                   piece.set.samples.length(w));
    open_.push_back(window_answers(data_, piece, w, window, answer_options_));
    if (with_references_) loss_.add(window_loss(piece, w, window));
    const int64_t question = piece.question[size_t(w)];
    ++window_;
    if (piece.first_window[size_t(question - piece.begin) + 1] == window_) answer(question);
    if (window_ == piece.windows()) {
      pieces_.pop_front();
      window_ = 0;
    }
  }
}

void QaFileEvaluation::answer(int64_t question) {
  const SquadQuestion& asked = data_.questions[size_t(question)];
  QuestionAnswer chosen = answer_question(data_.contexts[asked.context], open_.data(),
                                          int64_t(open_.size()), answer_options_);
  if (with_references_) scores_.add(asked, chosen);
  write_answer(asked.id, chosen, writers_);
  open_.clear();
}

Metrics QaFileEvaluation::metrics() {
  FINETUNE_CHECK(read_ == questions() && pieces_.empty());
  if (!with_references_) return {};
  Metrics out = scores_.metrics(repeated_);
  loss_.write(out);
  return out;
}

void QaFileEvaluation::write_files(const std::filesystem::path&) {
  FINETUNE_CHECK(files_ && pieces_.empty());
  files_->commit();
}

}  // namespace finetune
