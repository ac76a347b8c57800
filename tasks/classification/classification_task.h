// Sequence classification and regression as a Task.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/files/mapped_file.h"
#include "tasks/classification/evaluation/classification_evaluator.h"
#include "tasks/classification/ngram_mix/ngram_file.h"
#include "tasks/classification/ngram_mix/ngram_mix.h"
#include "tasks/classification/ngrams/baselines.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/classification/window_targets.h"
#include "tasks/task.h"

namespace finetune {

class ClassificationTask final : public Task {
 public:
  // Loads the data (dataset.h lists rules and errors). `model_head`: the model has a trained head
  // that may be kept; false with --reinit-head. Without options.train_files the task can only
  // evaluate: take `options` from classification_defaults(config) and set eval_files.
  ClassificationTask(const TaskOptions& options, const Tokenizer& tokenizer,
                     const EncoderConfig& config, bool model_head);

  TaskKind kind() const override { return TaskKind::classification; }
  Head head() const override { return {HeadKind::sequence, data_.outputs()}; }
  bool keeps_head() const override { return data_.keeps_head; }
  std::span<const int32_t> head_rows() const override { return data_.head_rows; }
  std::vector<std::string> labels() const override { return data_.labels.names(); }
  TargetScale target_scale() const override { return data_.target_scale; }
  SampleView label_names() const override { return label_names_; }
  int64_t max_length() const override { return data_.max_length; }
  const ClassificationData& data() const { return data_; }
  // One weight per class, or none: N / (C * n_c) over the training samples, where C counts the
  // classes that occur (scikit-learn's "balanced"). The weight of a class that does not occur is 1.
  std::span<const float> class_weights() const { return class_weights_; }

  const SampleSet& train_set() const override { return data_.train.set; }
  const SampleSet* eval_set() const override { return data_.has_eval ? &data_.eval.set : nullptr; }
  std::vector<std::string> describe() const override { return lines_; }
  TrainingArrays training_arrays() const override;
  void release_training_arrays() override;
  void take_loss_options(const TaskOptions& options) override;

  std::unique_ptr<Evaluator> start_evaluation() override;
  Baselines baselines() override;
  // As in Hugging Face's run_classification: accuracy; micro F1 for multi-label; the mean squared
  // error for regression.
  std::string best_metric() const override;
  bool larger_is_better(const std::string& metric) const override;
  std::vector<std::string> metric_names() const override;
  CalibrationReport calibrate(Evaluator& evaluator, Metrics& metrics) override;
  std::vector<std::string> calibration_metric_names() const override;
  std::vector<ModelFile> model_files() const override;
  std::string config_json() const override;

 private:
  // The linear model, as the process that computes the baselines left it.
  struct TrainedNgrams {
    explicit TrainedNgrams(const Descriptor& file);
    MappedFile file;
    std::string sha256;
    NgramScorer scorer;
  };

  CalibrationReport fit(ClassificationEvaluator& evaluator, Metrics& metrics);
  std::string drift_file(const ClassificationEvaluator& evaluator) const;
  // The n-grams' margins of the evaluation rows. If there are none: empty, with the reason in
  // `why`.
  std::vector<float> eval_margins(const ClassificationEvaluator& evaluator, std::string& why);
  TaskOptions options_;
  ClassificationData data_;
  std::vector<float> class_weights_;
  std::vector<float> train_targets_;      // regression: data_.train.targets as used in training
  std::optional<WindowTargets> windows_;  // for training rows in windows
  TokenizedSamples label_names_;          // one label and one text per row
  std::vector<std::string> lines_;
  Majority majority_;
  std::optional<Baselines> baselines_;
  std::vector<float> fold_margins_;        // with options_.folds: of the n-grams, out of fold
  std::unique_ptr<TrainedNgrams> ngrams_;  // with options_.ngram_mix, after the baselines
  LogitCalibration calibration_;
  std::optional<MixWeights> mix_;
  std::string drift_;  // the file of the exported model, or empty
};

// The options of the training run of a classification model, from the object `finetune` in its
// config.json. Missing options get train's defaults. Labels and files are not among them.
TaskOptions classification_defaults(const EncoderConfig& config);

}  // namespace finetune
