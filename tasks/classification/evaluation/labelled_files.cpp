// Reads files once to find their labels, then returns their rows chunk by chunk.
#include "tasks/classification/evaluation/labelled_files.h"

#include <set>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/classification/model_options.h"
#include "tasks/classification/predictions/prediction_checks.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/repeated_texts.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

void check_answer_options(const TaskOptions& options, ProblemType problem,
                          const std::vector<std::string>& labels) {
  if (options.promise) check_unsure("--max-error", problem, labels);
  if (problem == ProblemType::single_label) return;
  const char* given = options.min_probability   ? "--min-probability"
                      : options.target_accuracy ? "--target-accuracy"
                                                : nullptr;
  if (given == nullptr) return;
  throw usage_error(given, " is for one label a row; this model gives several or numbers");
}

// The data according to the model and the options. Reading the files adds the rest.
ClassificationData checked_data(const TaskOptions& options, const TaskModel& model) {
  const EncoderConfig& config = model.config;
  ClassificationData data = data_without_rows(options, model.tokenizer, config);
  const std::vector<std::string>& labels = trained_labels(config);
  check_answer_options(options, data.problem, labels);
  if (data.problem != ProblemType::regression) data.labels = LabelMap(labels);
  return data;
}

}  // namespace

TrainedTexts texts_in(const std::vector<InputFile>& files, const TaskOptions& options) {
  RowFiles rows(files, row_options_of(options));
  const TextColumns text =
      find_text_columns(rows.columns(), rows.first_file(), options.column_names());
  std::vector<TextSum> sums;
  for (Row row; rows.next(row);) sums.push_back(text_sum_of(row.values, text));
  return TrainedTexts(std::move(sums));
}

LabelledFiles::LabelledFiles(const TaskOptions& options, const TaskModel& model)
    : options_(options),
      model_(model),
      data_(checked_data(options, model)),
      files_(options.eval_files, row_options_of(options)),
      slices_(options, data_.problem, files_.columns(), files_.first_file()) {
  texts_.max_length = data_.max_length;
  texts_.positions = data_.positions;
  texts_.long_texts = options.long_texts;
  text_ = find_text_columns(files_.columns(), files_.first_file(), options.column_names());
  label_ =
      find_column(files_.columns(), options.label_column, files_.first_file(), "--label-column");
  if (options.normalizes_labels) names_.emplace(model.config.labels);
  survey();
  unknown_ = LabelMap(data_.unknown_labels);
  if (options.baselines) kept_ = std::make_unique<TextRows>();
}

// Reads the next row that can be scored, up to --max-eval-samples rows.
bool LabelledFiles::next_usable(Row& row) {
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

// The rewritten values are valid until the next row is read, like those of the file.
void LabelledFiles::rewrite_label(Row& row) {
  auto cell = rewritten_label(row.values[label_], data_.problem, options_,
                              names_ ? &*names_ : nullptr, &joined_);
  if (!cell) return;
  rewritten_ = std::move(*cell);
  values_.assign(row.values.begin(), row.values.end());
  values_[label_] = rewritten_;
  row.values = values_;
}

void LabelledFiles::survey() {
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
  require_known_labels(first_unknown);
  files_.rewind();
  read_ = faulty_ = 0;
  options_.max_eval_samples = rows_;  // ignores rows appended after the first reading
}

void LabelledFiles::require_known_labels(const std::string& first_unknown) const {
  if (!data_.unknown_labels.empty() && !options_.ignore_unknown_labels) {
    throw unknown_labels_error(first_unknown, data_.unknown_labels, data_.labels, options_);
  }
  if (data_.problem == ProblemType::single_label && rows_with_unknown_ == rows_) {
    throw data_error(files_.first_file().string(), ": column ", in_quotes(options_.label_column),
                     " has no label that the model knows");
  }
}

std::vector<std::string> LabelledFiles::describe(const std::string& answers) const {
  std::vector<std::string> lines;
  lines.push_back(
      concat("eval: ", counted(rows_, "row"),
             dropped_ > 0 ? concat(", ", counted(dropped_, "unusable row"), " dropped") : ""));
  lines.push_back(describe_labels(data_, options_));
  if (!answers.empty()) lines.push_back(answers);
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

std::vector<std::string> LabelledFiles::describe_samples() const {
  std::vector<std::string> lines;
  lines.push_back(concat("eval: ", describe_texts(texts_)));
  for (std::string& warning : text_warnings("eval", texts_)) lines.push_back(std::move(warning));
  std::string repeated = describe_repeated(repeated_, rows_, "rows", "");
  if (!repeated.empty()) lines.push_back(std::move(repeated));
  return lines;
}

int32_t LabelledFiles::id_of(std::string_view name, const Row& row) const {
  if (int32_t id = data_.labels.find(name); id >= 0) return id;
  if (int32_t id = unknown_.find(name); id >= 0) return int32_t(data_.labels.size()) + id;
  throw data_error(files_.where(row), ": label ", in_quotes(name),
                   " is new; the file has changed while it was evaluated");
}

// Error(usage) if the model's run has read the texts of all rows.
void LabelledFiles::require_fresh_row() {
  bool fresh = false;
  for (Row row; !fresh && files_.next(row);)
    fresh = !read_by_run_.contains(text_sum_of(row.values, text_));
  files_.rewind();
  if (fresh) return;
  throw usage_error("--max-error: the model's run has read the texts of all rows of ",
                    files_.first_file().string(),
                    "; a promise needs rows that the model has not seen");
}

Freshness LabelledFiles::freshness_of(const TextSum& sum) {
  if (read_by_run_.contains(sum)) return Freshness::read_by_run;
  return given_.insert(sum).second ? Freshness::fresh : Freshness::repeated;
}

WaitingRow LabelledFiles::waiting(const Row& row, const PredictionLines* lines) {
  WaitingRow out;
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
  if (lines) out.line = lines->begin(row.values);
  out.slices = slices_.places_of(row.values);
  if (trained_ || options_.promise) {
    const TextSum sum = text_sum_of(row.values, text_);
    out.repeated = trained_ && trained_->sums.contains(sum);
    if (options_.promise) out.freshness = freshness_of(sum);
  }
  repeated_ += out.repeated;
  return out;
}

void LabelledFiles::keep_for_baselines(const Row& row, const WaitingRow& waiting) {
  if (!kept_) return;
  const std::span<const int32_t> labels =
      data_.problem == ProblemType::single_label ? std::span(&waiting.label, 1) : waiting.labels;
  kept_->add(options_.ngram_baseline ? linear_input(row.values, text_) : std::string(), labels,
             waiting.target);
}

void LabelledFiles::take_training_rows(const TaskOptions& training) {
  TaskOptions trained = training;
  trained.eval_files.clear();
  if (!options_.has_side_columns()) trained.leave_out_side_columns();
  if (options_.promise) {
    std::vector<InputFile> files = training.train_files;
    files.insert(files.end(), training.eval_files.begin(), training.eval_files.end());
    read_by_run_ = texts_in(files, training);
    require_fresh_row();
  }
  trained_ = read_trained_rows(trained, model_.config, data_);
}

Baselines LabelledFiles::baselines() {
  return kept_ ? file_baselines(data_, trained_ ? &*trained_ : nullptr, *kept_) : Baselines();
}

std::optional<SampleChunk> LabelledFiles::next(std::deque<WaitingRow>& waiting_rows,
                                               const PredictionLines* lines) {
  chunk_.clear();
  Row row;
  while (chunk_.has_room() && next_usable(row)) {
    chunk_.add(row.values);
    waiting_rows.push_back(waiting(row, lines));
    keep_for_baselines(row, waiting_rows.back());
  }
  if (chunk_.size() == 0 && read_ < rows_) {
    throw data_error(files_.first_file().string(), ": the data had ", rows_,
                     " usable rows at first, now ", read_,
                     ": they have changed while they were evaluated");
  }
  if (chunk_.size() == 0) return std::nullopt;
  set_ = encode_rows(model_.tokenizer, chunk_.rows(), text_, data_.max_length, options_.long_texts);
  texts_.add(set_);
  return SampleChunk{set_.samples, set_.first_window};
}

}  // namespace finetune
