// The baselines of classification: the majority, and a linear model on n-grams.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/columns/text_columns.h"
#include "tasks/baseline.h"
#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

// The best prediction without reading the text: the most frequent label (the first of equally
// frequent ones), the labels of more than half of the rows, or the mean.
struct Majority {
  std::vector<int32_t> labels;
  double number = 0;
};
Majority majority_of(const ClassificationData& data, const ClassificationSide& side);

// Rows for text_rows_of(); `side` has their labels.
struct RowsToKeep {
  std::span<const RowValues> rows;
  const TextColumns& columns;
  const ClassificationSide& side;
  ProblemType problem = ProblemType::single_label;
  bool is_training = false;  // keeps every k-th row, within kMostTrainingBytes of text
  bool has_texts = true;     // else only labels
};
constexpr int64_t kMostTrainingBytes = 12 << 20;
constexpr int64_t kMostNgramLabels = 10'000;  // with more labels only the majority
// Error(model) if the rows do not fit into $TMPDIR.
std::shared_ptr<TextRows> text_rows_of(const RowsToKeep& keep);
// The text of a row, joined with its pair if it has one.
std::string whole_text(RowValues row, const TextColumns& columns);
// The linear model's input for a row: its whole text, and the columns beside it.
std::string linear_input(RowValues row, const TextColumns& columns);
std::vector<std::string> linear_inputs(std::span<const RowValues> rows, const TextColumns& columns);

// Baselines for the rows in `eval`, whose labels are ids of `data`. If `train` is null: only the
// majority. `model`: an empty file to write the linear model to (mix/ngram_file.h); it stays empty
// if there is none. Error(device) or Error(model) if the linear model cannot be trained: too little
// memory, no process, a full disk.
Baselines baselines_of(const ClassificationData& data, const Majority& majority,
                       const TextRows* train, const TextRows& eval,
                       const Descriptor* model = nullptr);

// The same with options.folds: `rows` are the training rows, measured fold by fold. `model` is
// trained on all rows. `margins` gets the scores (rows, labels). For numbers and for too much text:
// only the majority.
Baselines baselines_of_folds(const ClassificationData& data, const Majority& majority,
                             const TextRows* train, const TextRows& rows, const Descriptor* model,
                             std::vector<float>& margins);

// What an evaluation of files needs of the rows that the model was trained on.
struct TrainedRows {
  Majority majority;
  std::shared_ptr<TextRows> texts;  // null without options.ngram_baseline
  TrainedTexts sums;
};
// `data` has the model's labels. Error(data) if rows are unreadable or have other labels.
TrainedRows read_trained_rows(const TaskOptions& training, const EncoderConfig& config,
                              const ClassificationData& data);

// Baselines for an evaluation of files. If `trained` is null: the majority of `eval` itself.
Baselines file_baselines(const ClassificationData& data, const TrainedRows* trained,
                         TextRows& eval);

}  // namespace finetune
