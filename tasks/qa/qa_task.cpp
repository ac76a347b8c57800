// The question-answering task: reading, windows, hold-out, evaluation.
#include "tasks/qa/qa_task.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "data/hold_out.h"
#include "tasks/objective.h"
#include "tasks/qa/evaluation/qa_evaluator.h"
#include "tasks/qa/evaluation/window_summary.h"
#include "tasks/repeated_texts.h"

namespace finetune {
namespace {

bool has_answers(const SquadData& data) {
  return std::any_of(data.questions.begin(), data.questions.end(),
                     [](const SquadQuestion& q) { return !q.answers.empty(); });
}

// Returns all questions about the contexts in `chosen` (sorted), in order. Moves the contexts.
SquadData take_contexts(SquadData& from, const std::vector<uint32_t>& chosen) {
  SquadData out;
  std::vector<int64_t> place(from.contexts.size(), -1);
  for (uint32_t context : chosen) {
    place[context] = int64_t(out.contexts.size());
    out.contexts.push_back(std::move(from.contexts[context]));
  }
  for (SquadQuestion& question : from.questions) {
    if (place[question.context] < 0) continue;
    out.questions.push_back(std::move(question));
    SquadQuestion& taken = out.questions.back();
    taken.context = uint32_t(place[taken.context]);
    out.has_unanswerable |= taken.is_impossible;
  }
  return out;
}

// Leaves out training questions whose answers have no known place. Error(data) if most have none:
// then answer_start counts something else, or the answers are not from the contexts.
void leave_out_unplaced(SquadData& data, const std::string& file) {
  int64_t with_answers = 0;
  std::string first;
  for (const SquadQuestion& question : data.questions) {
    with_answers += !question.answers.empty();
    if (question.found != TargetFound::nowhere) continue;
    if (data.left_out++ == 0) first = question.id;
  }
  if (data.left_out == 0) return;
  if (2 * data.left_out > with_answers) {
    throw data_error(
        file, ": the answers of ", data.left_out, " of ", counted(with_answers, "question"),
        " are not at their answer_start, and their texts do not occur exactly once in "
        "the context; the first is question ",
        in_quotes(first), "; answer_start counts Unicode code points from the context's beginning");
  }
  std::erase_if(data.questions,
                [](const SquadQuestion& q) { return q.found == TargetFound::nowhere; });
}

HoldOut split_contexts(const SquadData& all, const TaskOptions& options) {
  HoldOut parts = hold_out(int64_t(all.contexts.size()), options.eval_fraction, options.seed);
  if (!parts.train.empty() && !parts.eval.empty()) return parts;
  throw data_error(options.train_files[0].name.string(), ": its ", all.contexts.size(),
                   " contexts cannot be divided by --eval-fraction ", options.eval_fraction);
}

void keep_first(SquadData& data, int64_t limit) {
  if (limit > 0 && int64_t(data.questions.size()) > limit) data.questions.resize(size_t(limit));
}

class QaTask : public Task {
 public:
  QaTask(const TaskOptions& options, const Tokenizer& tokenizer, int64_t max_positions)
      : window_options_(qa_window_options(options, tokenizer, max_positions)) {
    read(options);
    answer_options_ =
        qa_answer_options(options, train_data_.has_unanswerable || eval_data_.has_unanswerable);
    train_ = make_windows(train_data_, 0, int64_t(train_data_.questions.size()), tokenizer,
                          window_options_);
    train_.drop_offsets();
    eval_ = make_windows(eval_data_, 0, int64_t(eval_data_.questions.size()), tokenizer,
                         window_options_);
    describe_set("train", train_data_, train_);
    describe_set("eval", eval_data_, eval_);
    if (!train_data_.questions.empty()) {
      repeated_ = repeated_questions(eval_data_, TrainedTexts(question_sums(train_data_)));
    }
    std::string repeated = describe_repeated(std::count(repeated_.begin(), repeated_.end(), 1),
                                             int64_t(repeated_.size()), "questions", "");
    if (!repeated.empty()) lines_.push_back(std::move(repeated));
    train_data_ = {};  // its windows have all that training needs
  }

  TaskKind kind() const override { return TaskKind::qa; }
  Head head() const override { return {HeadKind::token, 2}; }
  const SampleSet& train_set() const override { return train_.set; }
  const SampleSet* eval_set() const override { return eval_.windows() > 0 ? &eval_.set : nullptr; }
  std::vector<std::string> describe() const override { return lines_; }

  TrainingArrays training_arrays() const override {
    TrainingArrays arrays;
    arrays.kind = kind();
    arrays.head = head();
    arrays.samples = train_.set.samples;
    arrays.labels = train_.starts;
    arrays.ends = train_.ends;
    return arrays;
  }

  void release_training_arrays() override {
    QaWindows counts;
    counts.set.examples = train_.set.examples;
    counts.set.truncated = train_.set.truncated;
    train_ = std::move(counts);
  }

  std::unique_ptr<Evaluator> start_evaluation() override {
    return std::make_unique<QaEvaluator>(eval_data_, eval_, answer_options_, repeated_);
  }
  std::string best_metric() const override { return "eval_f1"; }
  bool larger_is_better(const std::string& metric) const override {
    return metric != "eval_loss" && metric != kRepeatedMetric;
  }
  std::vector<std::string> metric_names() const override {
    return qa_metric_names(answer_options_.squad_version, has_known_places(eval_data_),
                           !repeated_.empty());
  }

  bool keeps_head() const override { return true; }
  int64_t max_length() const override { return window_options_.max_length; }
  std::string config_json() const override {
    const JsonObject own = {{"task", "qa"},
                            {"max_length", window_options_.max_length},
                            {"doc_stride", window_options_.doc_stride},
                            {"n_best", answer_options_.n_best},
                            {"max_answer_length", answer_options_.max_answer_length},
                            {"null_threshold", answer_options_.null_threshold},
                            {"squad_version", answer_options_.squad_version}};
    return JsonObject{{"finetune", own}}.text();
  }

 private:
  void read(const TaskOptions& options) {
    if (!options.train_files.empty()) {
      const bool split = options.eval_files.empty() && options.eval_fraction > 0;
      train_data_ = read_squad(options.train_files, split ? 0 : options.max_train_samples, true);
      if (split) hold_out_contexts(options);
      leave_out_unplaced(train_data_, options.train_files[0].name.string());
      if (!has_answers(train_data_)) {
        throw data_error(options.train_files[0].name.string(),
                         ": no training question has an answer; nothing can be learnt from it");
      }
    }
    if (!options.eval_files.empty()) {
      eval_data_ = read_squad(options.eval_files, options.max_eval_samples, true);
    }
  }

  void hold_out_contexts(const TaskOptions& options) {
    SquadData all = std::move(train_data_);
    const HoldOut parts = split_contexts(all, options);
    eval_data_ = take_contexts(all, parts.eval);
    train_data_ = take_contexts(all, parts.train);
    keep_first(train_data_, options.max_train_samples);
    keep_first(eval_data_, options.max_eval_samples);
    lines_.push_back(concat("eval: ", parts.eval.size(), " of ", all.contexts.size(),
                            " contexts are held out with all their questions"));
  }

  void describe_set(std::string_view name, const SquadData& data, const QaWindows& windows) {
    if (windows.windows() == 0) return;
    WindowTotals totals;
    totals.add(windows);
    for (auto& line : describe_questions(name, data, answer_options_.squad_version)) {
      lines_.push_back(std::move(line));
    }
    for (auto& line : describe_windows(name, totals, window_options_)) {
      lines_.push_back(std::move(line));
    }
  }

  WindowOptions window_options_;
  AnswerOptions answer_options_;
  SquadData train_data_, eval_data_;
  QaWindows train_, eval_;
  RepeatedQuestions repeated_;  // of the evaluation data
  std::vector<std::string> lines_;
};

}  // namespace

WindowOptions qa_window_options(const TaskOptions& options, const Tokenizer& tokenizer,
                                int64_t max_positions) {
  WindowOptions out;
  out.doc_stride = options.doc_stride;
  out.max_length = options.max_length;
  if (out.max_length == 0) {
    out.max_length = std::min<int64_t>(384, max_positions);
    const int64_t stated = tokenizer.stated().model_max_length;
    if (stated > 0) out.max_length = std::min(out.max_length, stated);
  }
  if (out.max_length > max_positions) {
    throw usage_error("--max-length ", out.max_length, " is beyond the model's ", max_positions,
                      " positions");
  }
  if (out.max_length < kMinimumWindow) {
    throw usage_error("--max-length ", out.max_length, ": must be at least ", kMinimumWindow,
                      ", to leave room for a question and a part of its context");
  }
  if (out.doc_stride < 0) throw usage_error("--doc-stride ", out.doc_stride, " is negative");
  return out;
}

AnswerOptions qa_answer_options(const QaOptions& options, bool has_unanswerable) {
  if (options.n_best < 1) throw usage_error("--n-best ", options.n_best, " is below 1");
  if (options.max_answer_length < 1) {
    throw usage_error("--max-answer-length ", options.max_answer_length, " is below 1");
  }
  if (options.squad_version < 0 || options.squad_version > 2) {
    throw usage_error("--squad-version ", options.squad_version, " is none of auto, 1 and 2");
  }
  int version = options.squad_version ? options.squad_version : has_unanswerable ? 2 : 1;
  return {options.n_best, options.max_answer_length, options.null_threshold, version};
}

TrainedTexts trained_questions(const TaskOptions& options) {
  const bool split = options.eval_files.empty() && options.eval_fraction > 0;
  SquadData data = read_squad(options.train_files, split ? 0 : options.max_train_samples, true);
  if (split) data = take_contexts(data, split_contexts(data, options).train);
  keep_first(data, options.max_train_samples);
  leave_out_unplaced(data, options.train_files[0].name.string());
  return TrainedTexts(question_sums(data));
}

std::unique_ptr<Task> make_qa_task(const TaskOptions& options, const Tokenizer& tokenizer,
                                   int64_t max_positions) {
  return std::make_unique<QaTask>(options, tokenizer, max_positions);
}

}  // namespace finetune
