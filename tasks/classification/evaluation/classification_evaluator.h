// The evaluator of classification and regression: scores rows with labels, predicts for others.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/classification/calibration/kept_logits.h"
#include "tasks/classification/drift/drift_report.h"
#include "tasks/classification/evaluation/row_scores.h"
#include "tasks/classification/evaluation/row_source.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/classification/predictions/explanation.h"
#include "tasks/evaluator.h"
#include "tasks/prediction_request.h"
#include "tasks/task_traits.h"

namespace finetune {

class ClassificationEvaluator final : public Evaluator {
 public:
  using Keeps = KeptLogits::Keeps;

  // For the evaluation rows of a training run. `data` and `class_weights` (one per output, or none)
  // must outlive the evaluator. `keeps`: logits for held_out(), or all of them for mix().
  static std::unique_ptr<ClassificationEvaluator> of_memory(const ClassificationData& data,
                                                            std::span<const float> class_weights,
                                                            double smoothing,
                                                            const std::string& separator,
                                                            Keeps keeps = Keeps::nothing);
  // For options.eval_files, which have labels. `options`: the model's stored options with the
  // command line's changes. The model must outlive the evaluator.
  static std::unique_ptr<ClassificationEvaluator> of_files(const TaskOptions& options,
                                                           const TaskModel& model);
  // For rows without labels. Error(usage) if the request does not suit the model.
  static std::unique_ptr<ClassificationEvaluator> of_input(const PredictionRequest& request,
                                                           const TaskOptions& options,
                                                           const TaskModel& model);

  Head head() const override { return {HeadKind::sequence, outputs_}; }
  int64_t max_length() const override { return max_length_; }
  std::vector<std::string> metric_names() const override;
  std::vector<std::string> describe() const override { return rows_->describe(answers_line()); }
  std::vector<std::string> describe_samples() const override;
  std::vector<std::string> warnings() const override { return rows_->warnings(); }
  std::vector<std::string> early_warnings() override { return rows_->early_warnings(); }

  std::optional<SampleChunk> next() override;
  bool answers_each_chunk() const override { return rows_->answers_each_chunk(); }
  double share() const override { return rows_->share(); }
  int64_t rows() const override { return answered_; }
  double seconds_waited() const override { return rows_->seconds_waited(); }
  void add(const PackedBatch& batch, const float* logits) override;

  void open_outputs(const OpenOutput& open) override;
  void commit_outputs() override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;
  void take_training_rows(const TaskOptions& training) override;
  Baselines baselines() override;
  std::optional<Promise> promise() const override {
    return scores_ ? scores_->promise() : std::nullopt;
  }
  std::string report() const override { return scores_ ? scores_->describe() : ""; }
  std::string report_json() const override;

  // Rows in memory: the logits to fit a calibration to, with the n-grams' margins (rows, outputs).
  HeldOutLogits held_out(std::span<const float> margins, bool of_known_labels = true) const;
  // Rows in memory, after all logits: the sample that later inputs are compared with. Returns
  // nothing if there are too few rows. `temperature`: divides the logits.
  std::optional<SampleSummary> row_sample(double temperature) const;
  // Rows in memory: whether mix() may be called.
  bool can_mix() const { return logits_ && logits_->has_all(); }
  // Rows in memory, once, after all logits: scores all rows again with logits mixed with the
  // n-grams' margins. A row uses the weights of its part.
  void mix(std::span<const MixWeights> part_weights, std::span<const float> margins);

 private:
  ClassificationEvaluator() = default;
  void take_labels(const ClassificationData& data);
  void open_mix(const TaskOptions& options);
  void start_scores();
  void start_sample(std::shared_ptr<const SeenTokens> seen);
  std::optional<DriftReport> drift() const;
  std::string answers_line() const;
  void add_margins(size_t first_waiting);
  Explanation explanation_of(const WaitingRow& row);
  void answer(WaitingRow& row, const float* logits);
  void collect(WaitingRow& row, const float* logits);
  void write_ready_lines();

  PredictionFormat format() const;

  ClassificationOptions options_;
  std::span<const float> class_weights_;
  std::vector<float> stored_weights_;
  const ClassificationData* data_ = nullptr;  // for rows with labels
  ProblemType problem_ = ProblemType::single_label;
  std::vector<std::string> labels_;  // of the outputs
  int64_t outputs_ = 0, max_length_ = 0;
  TargetScale target_scale_;  // turns outputs into numbers during training
  std::unique_ptr<RowSource> rows_;
  std::unique_ptr<NgramMix> ngrams_;  // of a stored model; null: none
  std::optional<MixWeights> mix_;     // of ngrams_, or of the row's part in training

  std::deque<WaitingRow> waiting_;
  bool all_given_ = false;  // next() has reached the end
  int64_t taken_ = 0;       // samples
  int64_t answered_ = 0, unsure_ = 0;
  bool explains_ = false;              // a row has further samples, each without one of its words
  std::optional<RowScores> scores_;    // for rows with labels
  std::unique_ptr<RowSample> sample_;  // for the comparison with training rows; null: none
  std::optional<StoredDrift> stored_;  // rows without labels: the training rows' summary
  bool compares_answers_ = true;       // with the answers in stored_
  std::vector<float> mixed_;
  float number_ = 0;  // regression

  std::optional<PredictionLines> lines_;
  std::string output_name_ = "predictions.csv";
  std::unique_ptr<PredictionOutput> output_;
  bool stream_ = false;
  std::string text_;  // lines not yet written

  // Rows in memory: the ends of their lines, one after the other, for write_files().
  bool keeps_predictions_ = false;
  std::string predictions_;
  std::vector<size_t> prediction_ends_;
  std::optional<KeptLogits> logits_;
};

}  // namespace finetune
