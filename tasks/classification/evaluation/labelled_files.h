// The rows of files with labels, of any size, for an evaluation. The files are read twice. The
// first time checks all rows and finds their labels, so that a fault ends the command before
// anything is computed. The second time scores the rows.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/row_chunk.h"
#include "data/rows/row_files.h"
#include "tasks/classification/evaluation/row_source.h"
#include "tasks/classification/evaluation/slices.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/labels/label_names.h"
#include "tasks/task_traits.h"
#include "tasks/texts/cut_texts.h"

namespace finetune {

// The texts of all rows of the files, whether or not they were trained on. Error(data) if a file
// cannot be read.
TrainedTexts texts_in(const std::vector<InputFile>& files, const TaskOptions& options);

class LabelledFiles final : public RowSource {
 public:
  // `options`: the model's stored options with eval_files and the command line's changes. The model
  // must outlive this. Errors as in load_classification_data.
  LabelledFiles(const TaskOptions& options, const TaskModel& model);

  const ClassificationData& data() const { return data_; }  // labels, without samples
  bool knows_training_rows() const { return trained_.has_value(); }

  std::optional<SampleChunk> next(std::deque<WaitingRow>& waiting,
                                  const PredictionLines* lines) override;
  double share() const override { return double(read_) / double(rows_); }
  std::vector<std::string> texts() override { return linear_inputs(chunk_.rows(), text_); }
  std::vector<std::string> columns() const override { return files_.columns(); }
  Slices* slices() override { return slices_.empty() ? nullptr : &slices_; }
  std::vector<std::string> describe(const std::string& answers) const override;
  std::vector<std::string> describe_samples() const override;
  void take_training_rows(const TaskOptions& training) override;
  Baselines baselines() override;

 private:
  bool next_usable(Row& row);
  void rewrite_label(Row& row);
  void survey();
  void require_known_labels(const std::string& first_unknown) const;
  int32_t id_of(std::string_view name, const Row& row) const;
  void require_fresh_row();
  Freshness freshness_of(const TextSum& sum);
  WaitingRow waiting(const Row& row, const PredictionLines* lines);
  void keep_for_baselines(const Row& row, const WaitingRow& waiting);

  TaskOptions options_;
  TaskModel model_;
  ClassificationData data_;
  RowFiles files_;
  TextColumns text_;
  size_t label_ = 0;                 // the index of its column
  std::optional<LabelNames> names_;  // --normalize-labels
  JoinedLabels joined_;
  std::vector<std::string_view> values_;  // of a row with a rewritten label
  std::string rewritten_;
  LabelMap unknown_;

  int64_t rows_ = 0, dropped_ = 0, rows_with_unknown_ = 0;  // from the first reading
  int64_t read_ = 0, faulty_ = 0;                           // in the current reading
  CutTexts texts_;
  RowChunk chunk_;
  SampleSet set_;
  std::optional<TrainedRows> trained_;
  int64_t repeated_ = 0;      // rows whose text was trained on
  TrainedTexts read_by_run_;  // with options.promise: texts of all rows in the run's files
  std::set<TextSum> given_;   // with options.promise: texts of the rows returned by next()
  Slices slices_;
  std::unique_ptr<TextRows> kept_;  // with options.baselines
};

}  // namespace finetune
