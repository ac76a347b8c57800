// Tokenizes chunks of rows and formats their predictions.
#include "tasks/classification/evaluation/predictor.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text/text.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/finite_outputs.h"

namespace finetune {
namespace {

void check_min_probability(double least, const PredictionFormat& format) {
  if (format.problem != ProblemType::single_label) {
    throw usage_error("--min-probability ", least,
                      " is for one label a row; this model gives several or numbers");
  }
  if (std::find(format.labels.begin(), format.labels.end(), kUnsure) == format.labels.end()) return;
  throw usage_error("--min-probability ", least, ": the model has a label ", in_quotes(kUnsure),
                    " of its own; leave the option out and look at the probabilities");
}

}  // namespace

ClassificationPredictor::ClassificationPredictor(const TaskOptions& options,
                                                 const Tokenizer& tokenizer,
                                                 const BertConfig& config, int64_t top_k,
                                                 bool all_probabilities)
    : options_(options), tokenizer_(tokenizer) {
  format_.labels = trained_labels(config);
  format_.problem = problem_type(options);
  format_.separator = options.multi_label_separator;
  format_.top_k = top_k;
  format_.all_probabilities = all_probabilities;
  format_.calibration = options.calibration;
  format_.min_probability = options.min_probability;
  if (options.min_probability) check_min_probability(*options.min_probability, format_);
  int64_t labels = int64_t(config.labels.size());
  outputs_ = format_.problem == ProblemType::regression ? 1 : labels;
  if (format_.problem == ProblemType::regression && (top_k != 1 || all_probabilities)) {
    throw usage_error("--top-k and --all-probabilities do not go with a regression model");
  }
  if (format_.problem == ProblemType::multi_label && top_k != 1) {
    throw usage_error("--top-k does not go with a multi-label model (--all-probabilities does)");
  }
  if (top_k < 1 || top_k > labels) {
    throw usage_error("--top-k ", top_k, " is not in 1 to ", labels, ", the model's labels");
  }
  mix_ = open_ngram_mix(options, outputs_);
  if (mix_) format_.calibration = {};  // which the mix has in its weights
  texts_.max_length =
      checked_max_length(options.max_length, config, !options.text_pair_column.empty());
  texts_.positions = config.max_length();
  texts_.long_texts = options.long_texts;
}

std::string ClassificationPredictor::begin(const std::vector<std::string>& columns,
                                           const std::filesystem::path& file, bool plain_text,
                                           bool json_lines) {
  columns_ = columns;
  if (plain_text) {
    text_ = {{0}, std::nullopt};
  } else {
    text_ = find_text_columns(columns, file, options_);
  }
  names_ = json_lines ? json_columns(columns) : columns;
  for (std::string& name : prediction_columns(format_, names_)) names_.push_back(std::move(name));
  json_lines_ = json_lines;
  std::string header;
  if (!json_lines) append_csv_row(names_, header, format_.spreadsheet_safe);
  return header;
}

SampleSet ClassificationPredictor::tokenize(std::span<const RowValues> rows) {
  SampleSet set = encode_rows(tokenizer_, rows, text_, texts_.max_length, texts_.long_texts);
  texts_.add(set);
  for (RowValues row : rows) empty_ += empty_text_column(row, text_, columns_).has_value();
  return set;
}

std::string ClassificationPredictor::describe_answers() const {
  return mix_ ? describe_mix(mix_->weights) : describe_calibration(format_.calibration);
}

std::string ClassificationPredictor::format(std::span<const RowValues> rows,
                                            std::span<const float> logits) {
  FINETUNE_CHECK(logits.size() == rows.size() * size_t(outputs_));
  if (mix_) {
    mixed_.assign(logits.begin(), logits.end());
    mix_logits(mix_->weights, mix_->scorer.margins_of(whole_texts(rows, text_)), mixed_);
    logits = mixed_;
  }
  std::string out;
  const float* row_logits = logits.data();
  int64_t number = texts_.rows - int64_t(rows.size());
  for (RowValues row : rows) {
    ++number;
    if (!all_finite({row_logits, size_t(outputs_)})) throw not_finite(concat("row ", number));
    if (format_.min_probability) {
      const ScoredLabel best = top_label(row_logits, outputs_, format_.calibration.temperature);
      unsure_ += !is_sure(best.probability, *format_.min_probability);
    }
    if (json_lines_) {
      append_json_row(names_, row, format_, row_logits, out);
    } else {
      append_csv_row(row, out, format_.spreadsheet_safe);
      out.pop_back();
      append_prediction(format_, row_logits, out);
      out += '\n';
    }
    row_logits += outputs_;
  }
  return out;
}

}  // namespace finetune
