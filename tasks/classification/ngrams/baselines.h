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

// The answer that is best without reading the text: the most frequent label (the first of equally
// frequent ones), the labels of more than half of the rows, or the mean.
struct Majority {
  std::vector<int32_t> labels;
  double number = 0;
};
Majority majority_of(const ClassificationData& data, const ClassificationSide& side);

// Rows for text_rows_of(), and their labels in `side`.
struct RowsToKeep {
  std::span<const RowValues> rows;
  const TextColumns& columns;
  const ClassificationSide& side;
  ProblemType problem = ProblemType::single_label;
  bool is_training = false;  // at most kMostTrainingBytes of text are kept then, of every k-th row
  bool has_texts = true;     // else the labels alone
};
constexpr int64_t kMostTrainingBytes = 12 << 20;
constexpr int64_t kMostNgramLabels = 10'000;  // with more labels only the majority is computed
// Error(model) if $TMPDIR cannot hold them.
std::shared_ptr<TextRows> text_rows_of(const RowsToKeep& keep);
// The text of a row with its pair, if it has one.
std::string whole_text(RowValues row, const TextColumns& columns);
// What the linear model reads of a row: its whole text, and the columns beside it.
std::string linear_input(RowValues row, const TextColumns& columns);
std::vector<std::string> linear_inputs(std::span<const RowValues> rows, const TextColumns& columns);

// Baselines of the rows in `eval`, whose labels are ids of `data`. `train` null: only the majority.
// `model`: an empty file for the linear model (mix/ngram_file.h), which stays empty if there is
// none. Error(device) or Error(model) if the linear model cannot be trained: too little memory, no
// process, a full disk.
Baselines baselines_of(const ClassificationData& data, const Majority& majority,
                       const TextRows* train, const TextRows& eval,
                       const Descriptor* model = nullptr);

// The same with options.folds: `rows` are the training rows, measured fold by fold; `model` is
// trained on all. `margins` gets the scores (rows, labels). Numbers and too much text: only the
// majority.
Baselines baselines_of_folds(const ClassificationData& data, const Majority& majority,
                             const TextRows* train, const TextRows& rows, const Descriptor* model,
                             std::vector<float>& margins);

// What an evaluation of files keeps of the rows that the model was trained on.
struct TrainedRows {
  Majority majority;
  std::shared_ptr<TextRows> texts;  // null without options.ngram_baseline
  TrainedTexts sums;
};
// `data` has the model's labels. Error(data) where the rows cannot be read, or have other labels.
TrainedRows read_trained_rows(const TaskOptions& training, const EncoderConfig& config,
                              const ClassificationData& data);

// Baselines of an evaluation of files. `trained` null: the majority of `eval` itself.
Baselines file_baselines(const ClassificationData& data, const TrainedRows* trained,
                         TextRows& eval);

}  // namespace finetune
