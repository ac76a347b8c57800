// Masked language modelling as a Task: trains a model further on texts without labels.
#pragma once

#include <string>
#include <vector>

#include "tasks/masked_language/masking.h"
#include "tasks/masked_language/texts.h"
#include "tasks/task.h"
#include "tasks/task_traits.h"

namespace finetune {

class MaskedTask final : public Task {
 public:
  // Reads and tokenizes options.train_files, and eval_files or the held-out share. The words of the
  // evaluation data are hidden once, depending on the seed. Error(model) if the model has no
  // [MASK], or if its decoder is not its word embedding.
  MaskedTask(const TaskOptions& options, const TaskModel& model);

  TaskKind kind() const override { return TaskKind::mlm; }
  Head head() const override { return head_; }
  bool keeps_head() const override { return true; }
  int64_t max_length() const override { return max_length_; }
  const SampleSet& train_set() const override { return train_.set; }
  const SampleSet* eval_set() const override { return has_eval_ ? &eval_.set : nullptr; }
  std::vector<std::string> describe() const override { return lines_; }
  TrainingArrays training_arrays() const override;
  void release_training_arrays() override { train_.set.samples = {}; }

  std::unique_ptr<Evaluator> start_evaluation() override;
  std::string best_metric() const override { return "eval_loss"; }
  bool larger_is_better(const std::string& metric) const override {
    return metric.ends_with("accuracy");
  }
  std::vector<std::string> metric_names() const override;
  std::string config_json() const override;

 private:
  void warn_of_trained_texts(const TaskOptions& options);
  void require_words(const TaskOptions& options) const;  // Error(data) if no word can be hidden
  void read(const TaskOptions& options, const Tokenizer& tokenizer);
  void hold_out_texts(const TaskOptions& options);
  void hide_evaluation_words();

  Head head_;
  int64_t max_length_ = 0;
  MaskingOptions masking_;
  std::vector<uint8_t> word_kinds_;
  Texts train_, eval_;
  bool has_eval_ = false;
  std::vector<std::string> lines_;
};

// The WordKind of each id of a vocabulary. Special tokens are those of BERT's templates, [UNK] and
// [MASK].
std::vector<uint8_t> word_kinds(const Tokenizer& tokenizer);

}  // namespace finetune
