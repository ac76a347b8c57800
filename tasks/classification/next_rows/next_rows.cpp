// Counts equal texts, weights them by doubt and count, and writes a batch of them.
#include "tasks/classification/next_rows/next_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/files/path_advice.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/row_chunk.h"
#include "data/rows/csv_line.h"
#include "data/rows/row_files.h"
#include "tasks/classification/model_options.h"
#include "tasks/registry.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr const char* kColumns[] = {"count", "likely_label", "confidence", "reason"};

void check_model(ProblemType problem, size_t labels) {
  if (problem == ProblemType::regression) {
    throw usage_error("finetune next needs a model that gives labels; this model gives numbers");
  }
  if (problem == ProblemType::single_label && labels < 2) {
    throw usage_error("finetune next needs a model of two labels or more; this model has one");
  }
}

void check_files(const PredictionRequest& request, const TaskOptions& options) {
  require_form_of(TaskKind::classification, std::filesystem::path(request.input),
                  options.text_columns);
  require_output_suffix("--output", request.output, {".csv"},
                        "rows are written as CSV; name it .csv");
}

}  // namespace

NextRows::NextRows(const PredictionRequest& request, const TaskOptions& options,
                   const TaskModel& model)
    : options_(options),
      tokenizer_(model.tokenizer),
      problem_(problem_type(options)),
      labels_(trained_labels(model.config)),
      outputs_(int64_t(labels_.size())),
      wanted_(request.next_rows),
      output_name_(request.output),
      spreadsheet_safe_(request.spreadsheet_safe) {
  check_model(problem_, labels_.size());
  check_files(request, options);
  max_length_ = checked_max_length(options.max_length, model.config, model.tokenizer.special(),
                                   !options.text_pair_column.empty());
  ngrams_ = open_ngram_mix(options, outputs_);
  if (ngrams_) options_.calibration = {};  // the weights of the mix include it
  rows_ = std::make_unique<InputRows>(request, options, model, max_length_);
  PredictionFormat format;
  format.spreadsheet_safe = spreadsheet_safe_;
  lines_ = std::make_unique<PredictionLines>(std::move(format), rows_->columns());
}

void NextRows::take_training_rows(const TaskOptions& training) {
  std::vector<InputFile> files = training.train_files;
  files.insert(files.end(), training.eval_files.begin(), training.eval_files.end());
  RowFiles rows(files, row_options_of(training));
  const TextColumns text =
      find_text_columns(rows.columns(), rows.first_file(), training.column_names());
  const size_t label =
      find_column(rows.columns(), training.label_column, rows.first_file(), "--label-column");
  RowChunk chunk;
  const auto take = [&] {
    const SampleSet set =
        encode_rows(tokenizer_, chunk.rows(), text, max_length_, options_.long_texts);
    for (const TextSum& sum : token_sums(set)) labelled_.insert(sum);
    chunk.clear();
  };
  for (Row row; rows.next(row);) {
    // With several labels, a row may have none.
    if (training.multi_label_separator.empty() && trim(row.values[label]).empty()) continue;
    if (!chunk.has_room()) take();
    chunk.add(row.values);
  }
  take();
}

// Counts the row. Returns whether its text needs logits.
bool NextRows::is_new(const TextSum& sum, const std::string& text, bool is_labelled) {
  if (trim(text).empty()) return false;
  if (is_labelled) {
    ++labelled_rows_;
    labelled_.insert(sum);
    const auto earlier = places_.find(sum);
    if (earlier != places_.end()) candidates_[earlier->second].is_labelled = true;
    return false;
  }
  if (labelled_.contains(sum)) {
    ++trained_rows_;
    return false;
  }
  const auto [place, added] = places_.emplace(sum, candidates_.size());
  if (!added) ++candidates_[place->second].count;
  return added;
}

std::optional<SampleChunk> NextRows::next() {
  std::optional<SampleChunk> chunk = rows_->next(read_, lines_.get());
  if (!chunk) return chunk;
  std::vector<std::string> texts = rows_->texts();
  const std::vector<TextSum> sums = rows_->token_sums();
  const std::vector<bool> labelled = rows_->have_value_in(options_.label_column);
  const std::vector<float> margins =
      ngrams_ ? ngrams_->scorer.margins_of(texts) : std::vector<float>();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (ngrams_) {
      ngrams_->count_unread(texts[i]);
      texts[i] = split_columns(texts[i], ngrams_->scorer.model().index().columns().counts()).text;
    }
    Waiting& row = waiting_.emplace_back();
    if (!is_new(sums[i], texts[i], labelled[i])) continue;
    row.candidate = int64_t(candidates_.size());
    if (ngrams_) {
      const auto begin = margins.begin() + int64_t(i) * outputs_;
      row.margins.assign(begin, begin + outputs_);
    }
    candidates_.push_back({std::move(read_[i].line), 1, {}});
    choice_.push_back({std::move(texts[i]), 0});
  }
  read_.clear();
  return chunk;
}

void NextRows::add(const PackedBatch& batch, const float* logits) {
  for (size_t i = 0; i < batch.indices.size(); ++i, logits += outputs_) {
    FINETUNE_CHECK(!waiting_.empty());
    const Waiting row = std::move(waiting_.front());
    waiting_.pop_front();
    ++answered_;
    if (row.candidate < 0) continue;
    mixed_.assign(logits, logits + outputs_);
    if (!all_finite(mixed_)) throw not_finite(concat("row ", answered_));
    if (ngrams_) mix_logits(ngrams_->weights, row.margins, mixed_);
    candidates_[size_t(row.candidate)].doubt = doubt_of(mixed_, problem_, options_.calibration);
  }
}

void NextRows::open_outputs(const OpenOutput& open) {
  output_ = open(output_name_);
}

std::string NextRows::header() const {
  std::vector<std::string> names = rows_->columns();
  const std::vector<std::string> own = names;
  for (std::string name : kColumns) {
    const auto taken = [&] { return std::find(own.begin(), own.end(), name) != own.end(); };
    if (taken()) name = "next_" + name;
    while (taken()) name += "_";
    names.push_back(std::move(name));
  }
  std::string line;
  append_csv_row(names, line, spreadsheet_safe_);
  return line;
}

std::string NextRows::reason(const Candidate& candidate) const {
  std::string out = describe_doubt(candidate.doubt, problem_, labels_);
  if (candidate.count > 1) out += concat("; ", candidate.count, " rows have this text");
  return out;
}

void NextRows::leave_out_labelled() {
  size_t kept = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].is_labelled) {
      trained_rows_ += candidates_[i].count;
      continue;
    }
    if (kept != i) {
      candidates_[kept] = std::move(candidates_[i]);
      choice_[kept] = std::move(choice_[i]);
    }
    ++kept;
  }
  candidates_.resize(kept);
  choice_.resize(kept);
}

void NextRows::commit_outputs() {
  rows_->require_usable_rows();
  leave_out_labelled();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    choice_[i].weight = candidates_[i].doubt.doubt * std::sqrt(double(candidates_[i].count));
  }
  output_->write(header());
  for (const size_t place : choose_batch(choice_, wanted_)) {
    const Candidate& candidate = candidates_[place];
    std::vector<std::string> names;
    for (const int32_t id : candidate.doubt.likely) names.push_back(labels_[size_t(id)]);
    std::string line = concat(candidate.line, ",", candidate.count);
    for (const std::string& value :
         {join(names, options_.multi_label_separator), format_number(candidate.doubt.confidence),
          reason(candidate)}) {
      line += ',';
      append_csv_value(value, line, spreadsheet_safe_);
    }
    output_->write(line + "\n");
    ++chosen_;
    chosen_rows_ += candidate.count;
  }
  output_->complete();
  output_->commit();
}

std::vector<std::string> NextRows::describe_samples() const {
  std::vector<std::string> lines = rows_->describe_samples();
  if (ngrams_) {
    for (std::string& line : ngrams_->unread_lines()) lines.push_back(std::move(line));
  }
  if (candidates_.empty() && labelled_rows_ + trained_rows_ > 0) {
    lines.emplace_back(labelled_rows_ > 0
                           ? "every row has a label already: none is left to choose"
                           : "the model's run read every row's text: none is left to choose");
    return lines;
  }
  lines.push_back(concat(
      "chose ", with_thousands(double(chosen_)), " of ", counted(candidates_.size(), "text"),
      chosen_rows_ > chosen_ ? concat(", which ", counted(chosen_rows_, "row"), " have") : "",
      trained_rows_ > 0
          ? concat("; left out: ", counted(trained_rows_, "row"), " whose text has a label already")
          : ""));
  if (labelled_rows_ > 0) {
    lines.push_back(concat("left out: ", counted(labelled_rows_, "row that has", "rows that have"),
                           " a label in the column ", in_quotes(options_.label_column)));
  }
  return lines;
}

Metrics NextRows::metrics() {
  return {{"rows", double(answered_)},
          {"rows_labelled", double(labelled_rows_)},
          {"rows_trained", double(trained_rows_)},
          {"texts", double(candidates_.size())},
          {"chosen", double(chosen_)},
          {"chosen_rows", double(chosen_rows_)}};
}

}  // namespace finetune
