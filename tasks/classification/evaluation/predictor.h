// Rows to predictions in bounded chunks, for inputs of any length. The command's loop:
//
//   ClassificationPredictor predictor(options, tokenizer, config, top_k, all_probabilities);
//   out.write(predictor.begin(columns, file, plain_text));
//   while (chunk.read(reader, kPredictionChunk)) {
//     SampleSet set = predictor.tokenize(chunk.rows());
//     compute_logits(backend, bert, weights, device, set.samples, limits..., logits);
//     out.write(predictor.format(chunk.rows(), logits));
//   }
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/parameters.h"
#include "tasks/classification/evaluation/predictions.h"
#include "tasks/classification/mix/ngram_mix.h"
#include "tasks/classification/rows/cut_texts.h"
#include "tasks/classification/rows/text_columns.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

constexpr int64_t kPredictionChunk = 4096;  // rows; at most their windows are held

class ClassificationPredictor {
 public:
  // options: classification_defaults(config) with what the command line changes. The tokenizer must
  // outlive the predictor. Error(model) for a config without labels, Error(usage) for a top_k that
  // is not in [1, labels] or does not go with the problem type, and for a min_probability of
  // options that does not or where a label has the name that less would have.
  ClassificationPredictor(const TaskOptions& options, const Tokenizer& tokenizer,
                          const BertConfig& config, int64_t top_k, bool all_probabilities);

  Head head() const { return {HeadKind::sequence, outputs_}; }
  int64_t max_length() const { return texts_.max_length; }

  // Finds the text columns of the input and returns the output's header line (JSON Lines: none).
  // Plain text: its one column is the text, whatever columns the options name. Once, before the
  // first rows.
  std::string begin(const std::vector<std::string>& columns, const std::filesystem::path& file,
                    bool plain_text, bool json_lines = false);
  // The rows in order. An empty text is a text (a line in, a line out); it is counted. Where rows
  // have windows format() takes their pooled logits.
  SampleSet tokenize(std::span<const RowValues> rows);
  // Output rows, a line each. logits (rows, outputs) row-major.
  std::string format(std::span<const RowValues> rows, std::span<const float> logits);

  // Before begin(): cells that a spreadsheet would take for formulas are disarmed.
  void write_for_spreadsheets() { format_.spreadsheet_safe = true; }

  int64_t rows() const { return texts_.rows; }
  const CutTexts& cut_texts() const { return texts_; }
  // For the log: how answers differ from the model's own. Empty: in nothing.
  std::string describe_answers() const;
  int64_t empty() const { return empty_; }
  int64_t unsure() const { return unsure_; }  // below options.min_probability

 private:
  TaskOptions options_;
  const Tokenizer& tokenizer_;
  PredictionFormat format_;
  std::unique_ptr<NgramMix> mix_;  // null: there is none
  std::vector<float> mixed_;       // logits of the rows
  int64_t outputs_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string> names_;  // of the output
  bool json_lines_ = false;
  TextColumns text_;
  CutTexts texts_;
  int64_t empty_ = 0, unsure_ = 0;
};

}  // namespace finetune
