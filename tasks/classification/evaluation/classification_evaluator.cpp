// Turns logits into answers in the order of the rows, counts them and writes their lines.
#include "tasks/classification/evaluation/classification_evaluator.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/baseline.h"
#include "tasks/classification/evaluation/input_rows.h"
#include "tasks/classification/evaluation/labelled_files.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/predictions/prediction_checks.h"
#include "tasks/evaluator.h"
#include "tasks/repeated_texts.h"
#include "tasks/scores/promise_file.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {

std::unique_ptr<ClassificationEvaluator> ClassificationEvaluator::of_memory(
    const ClassificationData& data, std::span<const float> class_weights, double smoothing,
    const std::string& separator, Keeps keeps) {
  std::unique_ptr<ClassificationEvaluator> made(new ClassificationEvaluator);
  made->options_.label_smoothing = smoothing;
  made->options_.multi_label_separator = separator;
  made->class_weights_ = class_weights;
  made->take_labels(data);
  made->rows_ = std::make_unique<RowsInMemory>(data);
  made->logits_.emplace(data, keeps);
  made->keeps_predictions_ = true;
  made->lines_.emplace(made->format(), made->rows_->columns());
  made->start_scores();
  if (data.seen_tokens) made->start_sample(data.seen_tokens);
  return made;
}

std::unique_ptr<ClassificationEvaluator> ClassificationEvaluator::of_files(
    const TaskOptions& options, const TaskModel& model) {
  std::unique_ptr<ClassificationEvaluator> made(new ClassificationEvaluator);
  // Report faults of the model before faults of the data.
  made->stored_weights_ =
      stored_class_weights(model.config, int64_t(trained_labels(model.config).size()));
  auto files = std::make_unique<LabelledFiles>(options, model);
  made->options_ = options;
  made->take_labels(files->data());
  made->class_weights_ = made->stored_weights_;
  made->rows_ = std::move(files);
  made->open_mix(options);
  made->start_scores();
  return made;
}

std::unique_ptr<ClassificationEvaluator> ClassificationEvaluator::of_input(
    const PredictionRequest& request, const TaskOptions& options, const TaskModel& model) {
  std::unique_ptr<ClassificationEvaluator> made(new ClassificationEvaluator);
  check_prediction(request, options, model.config);
  made->options_ = options;
  made->problem_ = problem_type(options);
  made->labels_ = trained_labels(model.config);
  made->outputs_ = made->problem_ == ProblemType::regression ? 1 : int64_t(made->labels_.size());
  made->max_length_ =
      checked_max_length(options.max_length, model.config, model.tokenizer.special(),
                         !options.text_pair_column.empty());
  made->open_mix(options);
  made->rows_ = std::make_unique<InputRows>(request, options, model, made->max_length_);
  const bool has_one_label = made->problem_ == ProblemType::single_label;
  made->stored_ = read_drift(options.model_directory, has_one_label ? made->outputs_ : 0,
                             model.tokenizer.special().unk);
  if (made->stored_) {
    made->compares_answers_ = made->stored_->answers == answers_in_words(options);
    made->start_sample(made->stored_->seen);
  }
  PredictionFormat format = made->format();
  format.top_k = request.top_k.value_or(1);
  format.all_probabilities = request.all_probabilities;
  format.min_probability = options.min_probability;
  format.spreadsheet_safe = request.spreadsheet_safe;
  format.json_lines = request.json_lines;
  format.explains = made->explains_ = request.explain;
  format.explains_ngrams = request.explain && made->ngrams_;
  made->lines_.emplace(std::move(format), made->rows_->columns());
  made->output_name_ = request.output;
  made->stream_ = request.stream;
  return made;
}

void ClassificationEvaluator::take_labels(const ClassificationData& data) {
  data_ = &data;
  problem_ = data.problem;
  labels_ = data.labels.names();
  outputs_ = data.outputs();
  max_length_ = data.max_length;
  target_scale_ = data.target_scale;
}

PredictionFormat ClassificationEvaluator::format() const {
  PredictionFormat format;
  format.problem = problem_;
  format.labels = labels_;
  format.separator = options_.multi_label_separator;
  format.calibration = options_.calibration;
  return format;
}

void ClassificationEvaluator::open_mix(const TaskOptions& options) {
  ngrams_ = open_ngram_mix(options, outputs_);
  if (!ngrams_) return;
  mix_ = ngrams_->weights;
  options_.calibration = {};  // the weights of the mix include it
}

void ClassificationEvaluator::start_scores() {
  scores_.emplace(RowScores::Setting{*data_, class_weights_, options_, rows_->slices()});
  if (!data_->eval.repeated.empty()) scores_->tell_repeated();
}

void ClassificationEvaluator::start_sample(std::shared_ptr<const SeenTokens> seen) {
  sample_ = std::make_unique<RowSample>(std::move(seen), problem_, outputs_);
  rows_->measure_with(sample_.get());
}

std::optional<SampleSummary> ClassificationEvaluator::row_sample(double temperature) const {
  return sample_ ? sample_->summary(temperature) : std::nullopt;
}

std::optional<DriftReport> ClassificationEvaluator::drift() const {
  if (!stored_) return std::nullopt;
  const auto input = row_sample(options_.calibration.temperature);
  if (!input) return std::nullopt;
  return DriftReport(stored_->summary, *input, compares_answers_);
}

std::string ClassificationEvaluator::report_json() const {
  if (scores_) return scores_->slices_json();
  const auto found = drift();
  return concat("\"drift\":", found ? found->json(labels_) : "null");
}

std::vector<std::string> ClassificationEvaluator::metric_names() const {
  std::vector<std::string> names = classification_metric_names(problem_, options_);
  if (ngrams_) names.insert(names.end(), {"eval_ece_calibrated", "eval_brier_calibrated"});
  if (!scores_->tells_repeated()) return names;
  for (std::string& name : unseen_metric_names(names)) names.push_back(std::move(name));
  return names;
}

std::string ClassificationEvaluator::answers_line() const {
  return ngrams_ ? kMixLine : describe_calibration(options_.calibration);
}

std::vector<std::string> ClassificationEvaluator::describe_samples() const {
  std::vector<std::string> lines = rows_->describe_samples();
  if (ngrams_) {
    for (std::string& line : ngrams_->unread_lines()) lines.push_back(std::move(line));
  }
  if (scores_) return lines;
  if (std::string line = answers_line(); !line.empty()) lines.push_back(std::move(line));
  if (unsure_ > 0) {
    lines.push_back(concat(
        unsure_, " of ", counted(answered_, "label"), unsure_ == 1 ? " is " : " are ", kUnsure,
        options_.is_automatic
            ? concat(": below the promised probability ", *options_.min_probability)
            : ": below --min-probability"));
  }
  if (const auto found = drift(); found && found->differs()) {
    lines.push_back(concat("note: ", found->line(problem_, labels_),
                           options_.is_automatic ? "; what --automatic promises holds for rows "
                                                   "like those of training"
                                                 : ""));
  }
  return lines;
}

std::optional<SampleChunk> ClassificationEvaluator::next() {
  const size_t before = waiting_.size();
  std::optional<SampleChunk> chunk = rows_->next(waiting_, output_ ? &*lines_ : nullptr);
  all_given_ = !chunk;
  if (chunk && ngrams_) add_margins(before);
  return chunk;
}

void ClassificationEvaluator::add_margins(size_t first_waiting) {
  const std::vector<std::string> texts = rows_->texts();
  const std::vector<float> margins = ngrams_->scorer.margins_of(texts);
  size_t sample = 0;
  for (size_t i = first_waiting; i < waiting_.size(); ++i) {
    WaitingRow& row = waiting_[i];
    if (explains_) row.text = texts[sample];
    ngrams_->count_unread(texts[sample]);
    const auto next = margins.begin() + int64_t(sample) * outputs_;
    sample += 1 + row.words.size();
    row.margins.assign(next, margins.begin() + int64_t(sample) * outputs_);
  }
}

void ClassificationEvaluator::add(const PackedBatch& batch, const float* logits) {
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample == uint32_t(taken_++) && !waiting_.empty());
    WaitingRow& row = waiting_.front();
    const float* answers = std::exchange(logits, logits + outputs_);
    if (explains_) {
      collect(row, answers);
      if (row.answers.size() < (1 + row.words.size()) * size_t(outputs_)) continue;
      answers = row.answers.data();
    }
    answer(row, answers);
    waiting_.pop_front();
    ++answered_;
  }
  write_ready_lines();
}

void ClassificationEvaluator::collect(WaitingRow& row, const float* logits) {
  const auto outputs = size_t(outputs_);
  if (!all_finite({logits, outputs})) throw not_finite(concat("row ", answered_ + 1));
  row.answers.insert(row.answers.end(), logits, logits + outputs);
}

Explanation ClassificationEvaluator::explanation_of(const WaitingRow& row) {
  std::vector<float> answers = row.answers;
  if (mix_) mix_logits(*mix_, row.margins, answers);
  for (float& logit : answers) logit = float(double(logit) / options_.calibration.temperature);
  Explanation found = explained(answers, outputs_, row.words);
  if (ngrams_) {
    explain_ngrams(ngrams_->scorer.model(), row.text, mix_->ngrams, ngrams_->columns, found);
  }
  return found;
}

void ClassificationEvaluator::answer(WaitingRow& row, const float* logits) {
  const auto outputs = size_t(outputs_);
  if (!all_finite({logits, outputs})) throw not_finite(concat("row ", answered_ + 1));
  if (logits_) logits_->keep(answered_, logits);
  const float* unmixed = nullptr;
  if (mix_) {
    mixed_.assign(logits, logits + outputs);
    mix_logits(*mix_, std::span(row.margins).first(outputs), mixed_);
    unmixed = std::exchange(logits, mixed_.data());
  } else if (!target_scale_.is_identity()) {
    number_ = float(target_scale_.number(double(logits[0])));
    logits = &number_;
  }
  if (sample_) sample_->count_row();
  if (row.traits) sample_->add(*row.traits, {logits, outputs});
  if (scores_) {
    scores_->add(row, logits, unmixed);
  } else if (options_.min_probability) {
    const ScoredLabel best = top_label(logits, outputs_, options_.calibration.temperature);
    unsure_ += !is_sure(best.probability, *options_.min_probability);
  }
  if (keeps_predictions_) {
    lines_->finish(logits, predictions_);
    prediction_ends_.push_back(predictions_.size());
  } else if (output_) {
    text_ += row.line;
    if (explains_) {
      const Explanation explanation = explanation_of(row);
      lines_->finish(logits, text_, &explanation);
    } else {
      lines_->finish(logits, text_);
    }
  }
}

// The first lines are written with the header, and a chunk at a time. So if they have a fault, no
// output is written at all.
void ClassificationEvaluator::write_ready_lines() {
  if (!output_ || (answers_each_chunk() && !waiting_.empty())) return;
  output_->write(text_);
  if (stream_) output_->flush();
  text_.clear();
}

void ClassificationEvaluator::mix(std::span<const MixWeights> part_weights,
                                  std::span<const float> margins) {
  const std::vector<float> logits = logits_->take_all();
  const auto outputs = size_t(outputs_);
  start_scores();
  if (data_->seen_tokens) start_sample(data_->seen_tokens);
  predictions_.clear();
  prediction_ends_.clear();
  answered_ = 0;
  rows_->rewind();
  while (next()) {
    for (; !waiting_.empty(); waiting_.pop_front(), ++answered_) {
      const size_t begin = size_t(answered_) * outputs;
      const auto row_margins = margins.subspan(begin, outputs);
      waiting_.front().margins.assign(row_margins.begin(), row_margins.end());
      mix_ = part_weights[data_->eval.parts[size_t(answered_)]];
      answer(waiting_.front(), logits.data() + begin);
    }
  }
}

HeldOutLogits ClassificationEvaluator::held_out(std::span<const float> margins,
                                                bool of_known_labels) const {
  return logits_->held_out(margins, of_known_labels);
}

void ClassificationEvaluator::open_outputs(const OpenOutput& open) {
  if (!lines_) lines_.emplace(format(), rows_->columns());
  output_ = open(output_name_);
  text_ = lines_->header();
}

void ClassificationEvaluator::commit_outputs() {
  FINETUNE_CHECK(output_ && waiting_.empty());
  rows_->require_usable_rows();
  output_->write(text_);
  output_->complete();
  output_->commit();
}

Metrics ClassificationEvaluator::metrics() {
  FINETUNE_CHECK(all_given_ && waiting_.empty());
  if (!scores_) return {};
  Metrics metrics = scores_->metrics();
  if (ngrams_) {  // the mix is calibrated; uses training's names
    metrics["eval_ece_calibrated"] = metrics.at("eval_ece");
    metrics["eval_brier_calibrated"] = metrics.at("eval_brier");
  }
  return metrics;
}

void ClassificationEvaluator::write_files(const std::filesystem::path& directory) {
  FINETUNE_CHECK(all_given_ && waiting_.empty());
  scores_->write_files(directory);
  if (!keeps_predictions_) return;
  const std::unique_ptr<PredictionOutput> output = files_in(directory)(output_name_);
  output->write(lines_->header());
  rows_->rewind();
  std::deque<WaitingRow> rows;
  size_t row = 0, begin = 0;
  while (rows_->next(rows, &*lines_)) {
    for (; !rows.empty(); rows.pop_front(), ++row) {
      output->write(rows.front().line);
      output->write(std::string_view(predictions_).substr(begin, prediction_ends_[row] - begin));
      begin = prediction_ends_[row];
    }
  }
  output->commit();
}

void ClassificationEvaluator::take_training_rows(const TaskOptions& training) {
  rows_->take_training_rows(training);
  scores_->tell_repeated();
}

Baselines ClassificationEvaluator::baselines() {
  Baselines found = rows_->baselines();
  if (ngrams_) found.metrics.merge(unmixed_metrics(scores_->unmixed()));
  return found;
}

}  // namespace finetune
