// Reads rows twice: surveys labels first, then scores rows piece by piece.
#include "tasks/classification/evaluation/file_evaluation.h"

#include <set>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/classification/evaluation/predictor.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/finite_outputs.h"
#include "tasks/repeated_texts.h"

namespace finetune {
namespace {

constexpr size_t kMostChunkBytes = size_t{8} << 20;

void check_answer_options(const TaskOptions& options, ProblemType problem) {
  if (problem == ProblemType::single_label) return;
  const char* given = options.min_probability   ? "--min-probability"
                      : options.target_accuracy ? "--target-accuracy"
                                                : nullptr;
  if (given == nullptr) return;
  throw usage_error(given, " is for one label a row; this model gives several or numbers");
}

// What the model and the options say; the files say the rest.
ClassificationData checked_data(const TaskOptions& options, const BertConfig& config) {
  ClassificationData data;
  data.problem = problem_type(options);
  check_problem_options(options, data.problem);
  data.max_length =
      checked_max_length(options.max_length, config, !options.text_pair_column.empty());
  data.positions = config.max_length();
  const std::vector<std::string>& labels = trained_labels(config);
  check_answer_options(options, data.problem);
  if (data.problem != ProblemType::regression) data.labels = LabelMap(labels);
  return data;
}

}  // namespace

ClassificationFileEvaluation::ClassificationFileEvaluation(const TaskOptions& options,
                                                           const Tokenizer& tokenizer,
                                                           const BertConfig& config)
    : options_(options),
      tokenizer_(tokenizer),
      config_(config),
      data_(checked_data(options, config)),
      files_(options.eval_files, row_options_of(options)),
      slices_(options, data_.problem, files_.columns(), files_.first_file()) {
  class_weights_ = stored_class_weights(config, data_.labels.size());
  texts_.max_length = data_.max_length;
  texts_.positions = data_.positions;
  texts_.long_texts = options.long_texts;
  text_ = find_text_columns(files_.columns(), files_.first_file(), options);
  label_ =
      find_column(files_.columns(), options.label_column, files_.first_file(), "--label-column");
  mix_ = open_ngram_mix(options, data_.outputs());
  if (mix_) options_.calibration = {};  // which the mix has in its weights
  if (data_.problem != ProblemType::regression) {
    answers_.emplace(data_.problem, data_.outputs(), options_);
  }
  if (options.normalizes_labels) names_.emplace(config.labels);
  survey();
  unknown_ = LabelMap(data_.unknown_labels);
  tally_.emplace(data_, class_weights_, options.label_smoothing);
  if (mix_) unmixed_.emplace(data_, class_weights_, options.label_smoothing);
  if (options.baselines) kept_ = std::make_unique<TextRows>();
}

// The next row that can be scored, up to --max-eval-samples of them.
bool ClassificationFileEvaluation::next_usable(Row& row) {
  if (options_.max_eval_samples > 0 && read_ == options_.max_eval_samples) return false;
  while (files_.next(row)) {
    std::optional<std::string> fault =
        row_fault(row.values, files_.columns(), text_, label_, options_, data_.problem);
    if (!fault) {
      ++read_;
      rewrite_label(row);
      return true;
    }
    if (!options_.rows.skip_bad_rows) throw bad_row(files_.where(row), *fault);
    ++faulty_;
  }
  return false;
}

// Its values then live until the next row is read, as those of the file do.
void ClassificationFileEvaluation::rewrite_label(Row& row) {
  auto cell = rewritten_label(row.values[label_], data_.problem, options_,
                              names_ ? &*names_ : nullptr, &joined_);
  if (!cell) return;
  rewritten_ = std::move(*cell);
  values_.assign(row.values.begin(), row.values.end());
  values_[label_] = rewritten_;
  row.values = values_;
}

void ClassificationFileEvaluation::survey() {
  std::set<std::string, std::less<>> unknown;
  std::string first_unknown;
  Row row;
  while (next_usable(row)) {
    slices_.note(row.values);
    if (data_.problem == ProblemType::regression) continue;
    bool known = true;
    for_each_label(row.values[label_], data_.problem, options_, [&](std::string_view name) {
      if (data_.labels.find(name) >= 0) return;
      known = false;
      if (!unknown.contains(name)) unknown.emplace(name);
    });
    if (!known && rows_with_unknown_++ == 0) first_unknown = files_.where(row);
  }
  rows_ = read_;
  dropped_ = files_.skipped_rows() + faulty_;
  if (rows_ == 0) {
    throw data_error(files_.first_file().string(), ": no usable row",
                     dropped_ > 0 ? concat(" (", dropped_, " dropped)") : "");
  }
  data_.unknown_labels.assign(unknown.begin(), unknown.end());
  if (!unknown.empty() && !options_.ignore_unknown_labels) {
    throw unknown_labels_error(first_unknown, data_.unknown_labels, data_.labels, options_);
  }
  if (data_.problem == ProblemType::single_label && rows_with_unknown_ == rows_) {
    throw data_error(files_.first_file().string(), ": column ", in_quotes(options_.label_column),
                     " has no label that the model knows");
  }
  files_.rewind();
  read_ = faulty_ = 0;
  options_.max_eval_samples = rows_;  // rows that come after the survey are none of it
}

std::vector<std::string> ClassificationFileEvaluation::metric_names() const {
  std::vector<std::string> names = classification_metric_names(data_.problem, options_);
  if (mix_) names.insert(names.end(), {"eval_ece_calibrated", "eval_brier_calibrated"});
  if (!trained_) return names;
  for (std::string& name : unseen_metric_names(names)) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> ClassificationFileEvaluation::describe() const {
  std::vector<std::string> lines;
  lines.push_back(
      concat("eval: ", counted(rows_, "row"),
             dropped_ > 0 ? concat(", ", counted(dropped_, "unusable row"), " dropped") : ""));
  lines.push_back(describe_labels(data_, options_));
  if (std::string line = describe_calibration(options_.calibration); !line.empty()) {
    lines.push_back(std::move(line));
  }
  if (mix_) lines.push_back(describe_mix(mix_->weights));
  if (const std::string line = joined_.describe(); !line.empty()) lines.push_back(line);
  std::vector<std::string> all = data_.labels.names();
  all.insert(all.end(), data_.unknown_labels.begin(), data_.unknown_labels.end());
  if (const std::string warning = alike_warning(all); !warning.empty()) {
    lines.push_back(concat("warning: ", warning));
  }
  if (rows_with_unknown_ > 0) {
    lines.push_back(describe_unknown_labels(data_, rows_with_unknown_, rows_));
  }
  return lines;
}

std::vector<std::string> ClassificationFileEvaluation::describe_samples() const {
  std::vector<std::string> lines;
  lines.push_back(concat("eval: ", describe_texts(texts_)));
  for (std::string& warning : text_warnings("eval", texts_)) lines.push_back(std::move(warning));
  std::string repeated = describe_repeated(repeated_, rows_, "rows", "");
  if (!repeated.empty()) lines.push_back(std::move(repeated));
  return lines;
}

void ClassificationFileEvaluation::open_files(const std::filesystem::path& directory) {
  format_.problem = data_.problem;
  format_.labels = data_.labels.names();
  format_.separator = options_.multi_label_separator;
  format_.calibration = options_.calibration;
  std::vector<std::string> columns = files_.columns();
  for (std::string& name : prediction_columns(format_, files_.columns())) {
    columns.push_back(std::move(name));
  }
  std::string line;
  append_csv_row(columns, line);
  predictions_.emplace(directory / "predictions.csv");
  predictions_->write(line);
}

int32_t ClassificationFileEvaluation::id_of(std::string_view name, const Row& row) const {
  if (int32_t id = data_.labels.find(name); id >= 0) return id;
  if (int32_t id = unknown_.find(name); id >= 0) return int32_t(data_.labels.size()) + id;
  throw data_error(files_.where(row), ": label ", in_quotes(name),
                   " is new; the file has changed while it was evaluated");
}

ClassificationFileEvaluation::Waiting ClassificationFileEvaluation::waiting(const Row& row) const {
  Waiting out;
  std::string_view label = row.values[label_];
  switch (data_.problem) {
    case ProblemType::single_label:
      out.label = id_of(label, row);
      break;
    case ProblemType::multi_label:
      out.labels = label_ids(label, data_.problem, options_,
                             [&](std::string_view name) { return id_of(name, row); });
      break;
    case ProblemType::regression:
      out.target = *finite_number(label);
      break;
  }
  if (predictions_) {
    append_csv_row(row.values, out.values);
    out.values.pop_back();  // the line goes on with the prediction
  }
  out.slices = slices_.places_of(row.values);
  out.repeated = trained_ && trained_->sums.contains(text_sum_of(row.values, text_));
  return out;
}

void ClassificationFileEvaluation::keep_for_baselines(const Row& row, const Waiting& waiting) {
  if (!kept_) return;
  const std::span<const int32_t> labels =
      data_.problem == ProblemType::single_label ? std::span(&waiting.label, 1) : waiting.labels;
  kept_->add(options_.ngram_baseline ? whole_text(row.values, text_) : std::string(), labels,
             waiting.target);
}

void ClassificationFileEvaluation::take_training_rows(const TaskOptions& training) {
  trained_ = read_trained_rows(training, config_, data_);
  unseen_.emplace(data_, class_weights_, options_.label_smoothing);
}

Baselines ClassificationFileEvaluation::baselines() {
  Baselines found;
  if (kept_) found = file_baselines(data_, trained_ ? &*trained_ : nullptr, *kept_);
  if (unmixed_) found.metrics.merge(unmixed_metrics(unmixed_->metrics()));
  return found;
}

const SampleSet* ClassificationFileEvaluation::next() {
  chunk_.clear();
  Row row;
  while (chunk_.size() < kPredictionChunk && chunk_.bytes() < kMostChunkBytes &&
         !chunk_.is_wide() && next_usable(row)) {
    chunk_.add(row.values);
    waiting_.push_back(waiting(row));
    keep_for_baselines(row, waiting_.back());
  }
  if (chunk_.size() == 0 && read_ < rows_) {
    throw data_error(files_.first_file().string(), ": the data had ", rows_,
                     " usable rows at first, now ", read_,
                     ": they have changed while they were evaluated");
  }
  if (chunk_.size() == 0) return nullptr;
  add_margins();
  set_ = encode_rows(tokenizer_, chunk_.rows(), text_, data_.max_length, options_.long_texts);
  texts_.add(set_);
  return &set_;
}

void ClassificationFileEvaluation::add_margins() {
  if (!mix_) return;
  const std::vector<float> margins = mix_->scorer.margins_of(whole_texts(chunk_.rows(), text_));
  auto next = margins.begin();
  for (auto row = waiting_.end() - chunk_.size(); row != waiting_.end(); ++row) {
    row->margins.assign(next, next + data_.outputs());
    next += data_.outputs();
  }
}

void ClassificationFileEvaluation::add(const PackedBatch& batch, const float* logits) {
  std::string line;
  for (uint32_t sample : batch.indices) {
    FINETUNE_CHECK(sample == uint32_t(scored_) && !waiting_.empty());
    line = std::move(waiting_.front().values);
    score(waiting_.front(), logits, line);
    if (predictions_) predictions_->write(line += '\n');
    waiting_.pop_front();
    ++scored_;
    logits += data_.outputs();
  }
}

template <typename Count>
void ClassificationFileEvaluation::count_in_tallies(const Waiting& row, Count&& count) {
  count(*tally_);
  if (unseen_ && !row.repeated) count(*unseen_);
  repeated_ += row.repeated;
}

void ClassificationFileEvaluation::score(const Waiting& row, const float* logits,
                                         std::string& prediction) {
  if (!all_finite({logits, size_t(data_.outputs())})) throw not_finite(concat("row ", scored_ + 1));
  switch (data_.problem) {
    case ProblemType::single_label: {
      if (mix_) {
        unmixed_->add_label(row.label, top_label(logits, data_.outputs()).id, 0);
        mixed_.assign(logits, logits + data_.outputs());
        mix_logits(mix_->weights, row.margins, mixed_);
        logits = mixed_.data();
      }
      ScoredLabel top = top_label(logits, data_.outputs(), options_.calibration.temperature);
      count_in_tallies(row, [&, loss = tally_->label_loss(logits, row.label)](auto& tally) {
        tally.add_label(row.label, top.id, loss);
      });
      answers_->add_label(logits, row.label, top);
      slices_.add_label(row.slices, row.label, top.id);
      if (predictions_) append_labels(format_, {&top, 1}, prediction);
      break;
    }
    case ProblemType::multi_label: {
      std::vector<ScoredLabel> labels =
          positive_labels(logits, data_.outputs(), options_.calibration);
      count_in_tallies(row, [&, loss = tally_->set_loss(logits, row.labels)](auto& tally) {
        tally.add_set(row.labels, ids_of(labels), loss);
      });
      answers_->add_set(logits, row.labels);
      slices_.add_set(row.slices, row.labels, ids_of(labels));
      if (predictions_) append_labels(format_, labels, prediction);
      break;
    }
    case ProblemType::regression:
      count_in_tallies(row, [&, loss = tally_->value_loss(logits[0], row.target)](auto& tally) {
        tally.add_value(row.target, logits[0], loss);
      });
      slices_.add_value(row.slices, row.target, double(logits[0]));
      if (predictions_) append_prediction(format_, logits, prediction);
      break;
  }
}

Metrics ClassificationFileEvaluation::metrics() {
  FINETUNE_CHECK(scored_ == rows_);
  Metrics metrics = tally_->metrics();
  if (answers_) answers_->add_metrics(metrics);
  if (mix_) {  // its weights are its calibration: as training names these
    metrics["eval_ece_calibrated"] = metrics.at("eval_ece");
    metrics["eval_brier_calibrated"] = metrics.at("eval_brier");
  }
  if (unseen_) add_unseen(repeated_ < rows_ ? unseen_->metrics() : Metrics(), repeated_, metrics);
  return metrics;
}

std::string ClassificationFileEvaluation::report() const {
  return concat(answers_ ? answers_->describe() : "", slices_.table());
}

std::string ClassificationFileEvaluation::report_json() const {
  return slices_.empty() ? "" : concat("\"slices\":", slices_.json());
}

void ClassificationFileEvaluation::write_files(const std::filesystem::path& directory) {
  FINETUNE_CHECK(predictions_ && scored_ == rows_);
  predictions_->commit();
  tally_->write_files(directory);
  if (!slices_.empty()) slices_.write(directory / "slices.csv");
}

}  // namespace finetune
