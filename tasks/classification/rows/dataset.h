// Converts rows of files to classification samples: texts to tokens, labels to ids or numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/amount.h"
#include "data/labels.h"
#include "data/rows/records.h"
#include "data/text_sum.h"
#include "model/config.h"
#include "tasks/scores/label_scores.h"
#include "tasks/target_scale.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

class SeenTokens;  // tasks/classification/drift/seen_tokens.h
class TextRows;    // tasks/classification/ngrams/text_rows.h

// Hugging Face's problem_type: "single_label_classification", ...
std::string_view name_of(ProblemType problem);
ProblemType problem_type(const ClassificationOptions& options);

// One side of the data: train or eval. Members for other problem types are empty.
struct ClassificationSide {
  SampleSet set;
  std::vector<int32_t> labels;         // single-label: ids; LabelMap::size() and above: unknown
  LabelSets label_sets;                // multi-label: the same kind of ids
  std::vector<double> targets;         // regression
  int64_t dropped = 0;                 // unusable rows of the files (--skip-bad-rows)
  std::shared_ptr<const Table> table;  // only eval: predictions.csv repeats its columns for `rows`
  std::vector<uint32_t> rows;          // per sample: its row in the table
  TextColumns text;                    // the table's
  std::shared_ptr<TextRows> texts;     // options.baselines
  std::vector<NumberColumn> numbers;   // only train: one for each number column
  std::vector<uint8_t> repeated;       // eval, options.baselines: 1 if training has the text
  std::vector<uint8_t> folds;          // eval, options.folds: the fold of each row
  std::vector<uint8_t> parts;          // eval with labels: parts for cross-fitting (folds.h)
};

struct ClassificationData {
  ProblemType problem = ProblemType::single_label;
  LabelMap labels;                          // the model's outputs; empty for regression
  bool keeps_head = false;                  // the model's own head and label map fit, and are kept
  std::vector<int32_t> head_rows;           // Task::head_rows()
  std::string head_changes;                 // --extend-head, --drop-labels: a line for the log
  std::vector<std::string> unknown_labels;  // id LabelMap::size() + i, sorted; never predicted
  std::vector<std::string> label_warnings;  // about the label column
  std::string joined_labels;                // the changes of --normalize-labels, or empty
  int64_t max_length = 0;
  int64_t positions = 0;                  // the model's maximum of max_length
  std::vector<std::string> text_columns;  // resolved, as the next two
  std::vector<std::string> number_columns, category_columns;
  TargetScale target_scale;                       // regression: converts logits to numbers
  std::string split;                              // how evaluation rows were held out, for the log
  std::string split_fault;                        // a warning about the split, or empty
  TrainedTexts trained_texts;                     // training texts; with options.baselines
  std::shared_ptr<const SeenTokens> seen_tokens;  // the same; to compare later rows with
  ClassificationSide train;
  bool has_eval = false;
  ClassificationSide eval;

  int64_t outputs() const { return problem == ProblemType::regression ? 1 : labels.size(); }
  // With the labels of the evaluation data: first those the model knows, then the unknown ones.
  int64_t classes() const { return labels.size() + int64_t(unknown_labels.size()); }
  const std::string& class_name(int64_t id) const {
    return id < labels.size() ? labels.names()[size_t(id)]
                              : unknown_labels[size_t(id - labels.size())];
  }
};

// What follows from the options and the model alone: problem, max_length and positions.
// Error(usage) if they contradict each other.
ClassificationData data_without_rows(const TaskOptions& options, const Tokenizer& tokenizer,
                                     const EncoderConfig& config);

// Reads, checks, labels and tokenizes options.train_files and eval_files (or the held-out share).
//
// Labels: the names in all usable training rows, sorted by code point. --max-train-samples and
// hold-out choose samples later, so they do not change the label map. `model_head`: the model has a
// trained head that may be kept. It is kept, with its own order of labels, if its problem type is
// the data's and its labels include the data's. Without train_files (evaluation of a finished
// model) the labels are the model's.
//
// Error(data) with file and line for an empty text or label (multi-label: a row without labels is
// allowed) and for a regression value that is not a finite number, unless
// options.rows.skip_bad_rows. Error(data) also for fewer than two classes; no usable row;
// evaluation labels unknown to training, unless options.ignore_unknown_labels; a label column of
// amounts (label_column.h), unless the model's head or options.label_order has these labels.
ClassificationData load_classification_data(const TaskOptions& options, const Tokenizer& tokenizer,
                                            const EncoderConfig& config, bool model_head);

// Reads the beginnings of the training files. Error(data) if one cannot be read, or lacks a column
// that the options name.
void require_columns(const TaskOptions& options);

// Lines for the log.
std::string describe_labels(const ClassificationData& data, const TaskOptions& options);
std::string describe_unknown_labels(const ClassificationData& data, int64_t rows_with_unknown,
                                    int64_t rows);

}  // namespace finetune
