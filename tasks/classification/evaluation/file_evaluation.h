// Evaluation of classification on files of any size. The rows are read twice: once to check them
// and to find their labels, so that a fault ends the command before anything is computed, and once
// to score them.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/files/files.h"
#include "data/rows/row_files.h"
#include "tasks/classification/evaluation/answer_scores.h"
#include "tasks/classification/evaluation/evaluation.h"
#include "tasks/classification/evaluation/predictions.h"
#include "tasks/classification/evaluation/slices.h"
#include "tasks/classification/evaluation/tally.h"
#include "tasks/classification/labels/label_names.h"
#include "tasks/classification/mix/ngram_mix.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/cut_texts.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/classification/rows/row_chunk.h"
#include "tasks/file_evaluation.h"

namespace finetune {

class ClassificationFileEvaluation final : public FileEvaluation {
 public:
  // options: classification_defaults(config) with eval_files and what the command line changes. The
  // tokenizer must outlive the evaluation. The errors are those of load_classification_data.
  ClassificationFileEvaluation(const TaskOptions& options, const Tokenizer& tokenizer,
                               const BertConfig& config);

  Head head() const override { return {HeadKind::sequence, data_.outputs()}; }
  int64_t max_length() const override { return data_.max_length; }
  std::vector<std::string> metric_names() const override;
  std::vector<std::string> describe() const override;
  std::vector<std::string> describe_samples() const override;

  void open_files(const std::filesystem::path& directory) override;
  int64_t rows() const override { return rows_; }
  const SampleSet* next() override;
  double share() const override { return double(read_) / double(rows_); }
  void add(const PackedBatch& batch, const float* logits) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;
  void take_training_rows(const TaskOptions& training) override;
  Baselines baselines() override;
  std::string report() const override;
  std::string report_json() const override;

 private:
  // A row that waits for its logits: what it says, and its values for predictions.csv.
  struct Waiting {
    int32_t label = 0;
    std::vector<int32_t> labels;
    double target = 0;
    std::string values;
    std::vector<int32_t> slices;  // places in them
    std::vector<float> margins;   // with a mix
    bool repeated = false;        // its text is trained on, too
  };

  bool next_usable(Row& row);
  void rewrite_label(Row& row);
  void survey();
  int32_t id_of(std::string_view name, const Row& row) const;
  Waiting waiting(const Row& row) const;
  void keep_for_baselines(const Row& row, const Waiting& waiting);
  void add_margins();  // to the chunk's rows
  void score(const Waiting& row, const float* logits, std::string& prediction);
  // Calls count(tally) for that of all rows, and for that of unseen ones if the row is one.
  template <typename Count>
  void count_in_tallies(const Waiting& row, Count&& count);

  TaskOptions options_;
  const Tokenizer& tokenizer_;
  const BertConfig& config_;
  ClassificationData data_;  // without samples
  RowFiles files_;
  TextColumns text_;
  size_t label_ = 0;                 // its column
  std::optional<LabelNames> names_;  // --normalize-labels
  JoinedLabels joined_;
  std::vector<std::string_view> values_;  // of a row whose label is rewritten
  std::string rewritten_;
  LabelMap unknown_;
  std::vector<float> class_weights_;

  int64_t rows_ = 0, dropped_ = 0, rows_with_unknown_ = 0;  // from the first reading
  int64_t read_ = 0, faulty_ = 0;                           // of the reading under way
  int64_t scored_ = 0;
  CutTexts texts_;
  RowChunk chunk_;
  SampleSet set_;
  std::deque<Waiting> waiting_;
  std::optional<ClassificationTally> tally_;
  std::optional<AnswerScores> answers_;         // of labels
  std::unique_ptr<NgramMix> mix_;               // null: there is none
  std::optional<ClassificationTally> unmixed_;  // with a mix: of the model alone
  std::vector<float> mixed_;
  std::optional<TrainedRows> trained_;         // once they are taken
  std::optional<ClassificationTally> unseen_;  // then: of rows whose text is not trained on
  int64_t repeated_ = 0;                       // the other rows
  Slices slices_;
  PredictionFormat format_;
  std::optional<AtomicFile> predictions_;
  std::unique_ptr<TextRows> kept_;  // options.baselines
};

}  // namespace finetune
