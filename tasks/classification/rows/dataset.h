// Rows of a file to classification samples: texts as tokens, labels as ids or numbers.
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

// One side of the data: train or eval. Members of other problem types are empty.
struct ClassificationSide {
  SampleSet set;
  std::vector<int32_t> labels;         // single-label: ids; those >= LabelMap::size() are unknown
  LabelSets label_sets;                // multi-label: ids of the same kind
  std::vector<double> targets;         // regression
  int64_t dropped = 0;                 // unusable rows of the files (--skip-bad-rows)
  std::shared_ptr<const Table> table;  // eval alone: predictions.csv repeats its columns of `rows`
  std::vector<uint32_t> rows;          // the table's row of each sample
  TextColumns text;                    // of the table
  std::shared_ptr<TextRows> texts;     // options.baselines
  std::vector<NumberColumn> numbers;   // train alone, of each number column
  std::vector<uint8_t> repeated;       // eval, options.baselines: 1 where training has the text
  std::vector<uint8_t> folds;          // eval, options.folds: the fold of each row
  std::vector<uint8_t> parts;          // eval, of labels: folds.h, for cross-fitting
};

struct ClassificationData {
  ProblemType problem = ProblemType::single_label;
  LabelMap labels;                          // of the model's outputs; empty for regression
  bool keeps_head = false;                  // the model's own head and label map fit and are kept
  std::vector<int32_t> head_rows;           // Task::head_rows()
  std::string head_changes;                 // --extend-head, --drop-labels: a line for the log
  std::vector<std::string> unknown_labels;  // id LabelMap::size() + i, sorted; never predicted
  std::vector<std::string> label_warnings;  // on the label column
  std::string joined_labels;                // the changes of --normalize-labels, or empty
  int64_t max_length = 0;
  int64_t positions = 0;                  // the model's: the largest max_length
  std::vector<std::string> text_columns;  // as resolved, as are the following
  std::vector<std::string> number_columns, category_columns;
  TargetScale target_scale;                       // regression: logits give numbers by it
  std::string split;                              // how evaluation rows were held out, for the log
  std::string split_fault;                        // what is odd about the split, or empty
  TrainedTexts trained_texts;                     // of the training rows; with options.baselines
  std::shared_ptr<const SeenTokens> seen_tokens;  // likewise, to compare a night's rows with them
  ClassificationSide train;
  bool has_eval = false;
  ClassificationSide eval;

  int64_t outputs() const { return problem == ProblemType::regression ? 1 : labels.size(); }
  // Labels of the evaluation data included: those the model knows, then the unknown ones.
  int64_t classes() const { return labels.size() + int64_t(unknown_labels.size()); }
  const std::string& class_name(int64_t id) const {
    return id < labels.size() ? labels.names()[size_t(id)]
                              : unknown_labels[size_t(id - labels.size())];
  }
};

// What the options and the model say before any row is read: problem, max_length and positions.
// Error(usage) if they contradict each other.
ClassificationData data_without_rows(const TaskOptions& options, const Tokenizer& tokenizer,
                                     const EncoderConfig& config);

// Reads, checks, labels and tokenizes options.train_files and eval_files (or the held-out share).
//
// Labels: the names of all usable training rows, sorted by code point; --max-train-samples and
// hold-out choose samples afterwards, so they do not change the label map. `model_head` says that
// the model has a trained head that may be kept: it is, if its problem type is the data's and its
// labels cover the data's, and then its own label order counts. Without train_files (evaluation
// of a finished model) the model's labels count.
//
// Error(data) with file and line for an empty text or label (multi-label: a row without labels is
// legal) and a regression value that is not a finite number, unless options.rows.skip_bad_rows; for
// fewer than two classes, no usable row, and evaluation labels unknown to training, unless
// options.ignore_unknown_labels; and for a label column of amounts (label_column.h), unless the
// model's head or options.label_order knows these labels.
ClassificationData load_classification_data(const TaskOptions& options, const Tokenizer& tokenizer,
                                            const EncoderConfig& config, bool model_head);

// Error(data) if a training file cannot be read or lacks a column that options name.
// Reads their beginnings.
void require_columns(const TaskOptions& options);

// Lines for the log.
std::string describe_labels(const ClassificationData& data, const TaskOptions& options);
std::string describe_unknown_labels(const ClassificationData& data, int64_t rows_with_unknown,
                                    int64_t rows);

}  // namespace finetune
