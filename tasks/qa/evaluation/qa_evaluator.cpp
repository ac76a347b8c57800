// Answers each question when the logits of all its windows are known.
#include "tasks/qa/evaluation/qa_evaluator.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/files/path_advice.h"
#include "tasks/qa/qa_task.h"
#include "tasks/repeated_texts.h"
#include "tasks/texts/pair_types.h"

namespace finetune {
namespace {

constexpr size_t kMostContextBytes = size_t{8} << 20;  // for the questions of one piece

TaskOptions with_input(TaskOptions options, const std::string& input) {
  options.eval_files = {std::filesystem::path(input == "-" ? "/dev/stdin" : input)};
  return options;
}

void check_request(const PredictionRequest& request) {
  if (request.top_k || request.all_probabilities) {
    throw usage_error(
        "--top-k and --all-probabilities are for classification; this is a question-answering "
        "model (--nbest FILE writes its candidates)");
  }
  if (request.rows.skip_bad_rows) {
    throw usage_error("--skip-bad-rows is for classification; this is a question-answering model");
  }
  for (const auto& [option, path] :
       {std::pair("--output", request.output), std::pair("--nbest", request.n_best)}) {
    require_output_suffix(option, path, {".json"}, "one JSON object is written; name it .json");
  }
}

}  // namespace

QaEvaluator::QaEvaluator(const SquadData& data, const QaWindows& windows,
                         const AnswerOptions& options, RepeatedQuestions repeated)
    : data_(&data),
      answer_options_(options),
      chunks_(windows.set),
      scores_(options.squad_version),
      repeated_(std::move(repeated)),
      paths_(answer_paths(options.squad_version)) {
  FINETUNE_CHECK(windows.begin == 0 && windows.end == questions());
  pieces_.emplace_back(std::shared_ptr<const QaWindows>(), &windows);
  window_options_.max_length = SampleView(windows.set.samples).longest();
  scores_.reserve(data.questions.size());
}

QaEvaluator::QaEvaluator(const TaskOptions& options, const Tokenizer& tokenizer,
                         int64_t max_positions, bool has_references, int64_t questions_at_once)
    : data_(&read_),
      tokenizer_(&tokenizer),
      window_options_(qa_window_options(options, tokenizer, max_positions)),
      has_references_(has_references),
      questions_at_once_(questions_at_once),
      scores_(0) {
  read_ = read_squad(options.eval_files, options.max_eval_samples, has_references);
  answer_options_ = qa_answer_options(options, read_.has_unanswerable);
  scores_ = QuestionScores(answer_options_.squad_version);
  paths_ = answer_paths(answer_options_.squad_version);
  if (has_references) scores_.reserve(read_.questions.size());
}

std::unique_ptr<QaEvaluator> QaEvaluator::of_input(const PredictionRequest& request,
                                                   const TaskOptions& options,
                                                   const TaskModel& model) {
  check_request(request);
  require_pair_types(model.config, "question answering");
  auto made = std::make_unique<QaEvaluator>(with_input(options, request.input), model.tokenizer,
                                            model.config.max_length(), false);
  made->paths_ = {request.output, request.n_best, ""};
  return made;
}

std::vector<std::string> QaEvaluator::metric_names() const {
  return qa_metric_names(answer_options_.squad_version, has_known_places(*data_),
                         !repeated_.empty());
}

void QaEvaluator::take_training_rows(const TaskOptions& training) {
  repeated_ = repeated_questions(*data_, trained_questions(training));
}

std::vector<std::string> QaEvaluator::describe() const {
  std::vector<std::string> lines =
      describe_questions("eval", *data_, answer_options_.squad_version);
  std::string repeated = describe_repeated(std::count(repeated_.begin(), repeated_.end(), 1),
                                           questions(), "questions", "");
  if (!repeated.empty()) lines.push_back(std::move(repeated));
  return lines;
}

std::vector<std::string> QaEvaluator::describe_samples() const {
  if (!has_references_) return {};
  return describe_windows("eval", totals_, window_options_);
}

void QaEvaluator::open_outputs(const OpenOutput& open) {
  files_.emplace(paths_, open);
}

double QaEvaluator::share() const {
  return chunks_ ? chunks_->share() : double(given_) / double(questions());
}

std::optional<SampleChunk> QaEvaluator::next() {
  if (chunks_) return chunks_->next();
  const int64_t begin = given_;
  size_t bytes = 0;
  while (given_ < questions() && given_ - begin < questions_at_once_ && bytes < kMostContextBytes) {
    bytes += data_->contexts[data_->questions[size_t(given_++)].context].size();
  }
  if (given_ == begin) return std::nullopt;
  pieces_.push_back(std::make_shared<QaWindows>(
      make_windows(*data_, begin, given_, *tokenizer_, window_options_)));
  totals_.add(*pieces_.back());
  return SampleChunk{pieces_.back()->set.samples};
}

void QaEvaluator::add(const PackedBatch& batch, const float* logits) {
  for (int64_t b = 0; b < batch.sequences(); ++b, ++windows_added_) {
    FINETUNE_CHECK(batch.indices[size_t(b)] == uint32_t(windows_added_) && !pieces_.empty());
    const QaWindows& piece = *pieces_.front();
    const int64_t w = window_++;
    const float* window = logits + 2 * int64_t(batch.offsets[size_t(b)]);  // (length, 2)
    FINETUNE_CHECK(batch.offsets[size_t(b) + 1] - batch.offsets[size_t(b)] ==
                   piece.set.samples.length(w));
    open_.push_back(window_answers(*data_, piece, w, window, answer_options_));
    if (has_references_) loss_.add(window_loss(piece, w, window));
    const int64_t question = piece.question[size_t(w)];
    if (piece.first_window[size_t(question - piece.begin) + 1] == window_) {
      finish_question(question);
    }
    if (window_ < piece.windows() || chunks_) continue;
    pieces_.pop_front();
    window_ = 0;
  }
}

QuestionAnswer QaEvaluator::answer_of(int64_t question, const WindowAnswers* windows,
                                      int64_t count) const {
  const std::string_view context = data_->contexts[data_->questions[size_t(question)].context];
  return answer_question(context, windows, count, answer_options_);
}

void QaEvaluator::finish_question(int64_t question) {
  const SquadQuestion& asked = data_->questions[size_t(question)];
  const QuestionAnswer chosen = answer_of(question, open_.data(), int64_t(open_.size()));
  if (has_references_) scores_.add(asked, chosen);
  if (files_) files_->add(asked.id, chosen);
  if (chunks_) std::move(open_.begin(), open_.end(), std::back_inserter(kept_));
  open_.clear();
  ++answered_;
}

void QaEvaluator::require_all_answered() const {
  FINETUNE_CHECK(answered_ == questions());
}

Metrics QaEvaluator::metrics() {
  require_all_answered();
  if (!has_references_) return {};
  Metrics out = scores_.metrics(repeated_);
  loss_.write(out);
  return out;
}

void QaEvaluator::commit_outputs() {
  require_all_answered();
  files_->commit();
}

void QaEvaluator::write_files(const std::filesystem::path& directory) {
  require_all_answered();
  if (!chunks_) return;
  AnswerFiles files(paths_, files_in(directory));
  const QaWindows& windows = *pieces_.front();
  for (int64_t q = 0; q < questions(); ++q) {
    const int64_t first = windows.first_window[size_t(q)];
    const int64_t count = windows.first_window[size_t(q) + 1] - first;
    files.add(data_->questions[size_t(q)].id, answer_of(q, kept_.data() + first, count));
  }
  files.commit();
}

}  // namespace finetune
