// Evaluation of classification: logits of the evaluation samples to metrics and files.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tasks/classification/evaluation/predictions.h"
#include "tasks/classification/evaluation/tally.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/task.h"

namespace finetune {

// eval_loss is the training loss (weights and smoothing included) summed over the samples and
// divided by their number, or by the sum of the weights of their labels. Samples whose label the
// model does not know have no loss and are left out of it (torch's ignore_index); in all other
// metrics they count as wrong. Unknown labels of multi-label samples are not part of the target.
//
// Metrics   single-label  eval_loss, eval_accuracy, eval_f1_macro, eval_f1_micro,
//                         eval_f1_weighted, eval_mcc
//           multi-label   eval_loss, eval_accuracy (whole sets), eval_f1_*
//           regression    eval_loss, eval_mse, eval_mae, eval_pearson, eval_spearman
// Files     predictions.csv  the evaluation rows with the columns of predictions.h
//           confusion.csv    single-label: a row per true label, a column per predicted one;
//                            multi-label: counts of true and false positives and negatives
//           per_class.csv    label, precision, recall, f1, support
std::vector<std::string> classification_metric_names(ProblemType problem);

class ClassificationEvaluation final : public Evaluation {
 public:
  // All must outlive the evaluation. weights: one per output, or empty.
  ClassificationEvaluation(const ClassificationData& data, std::span<const float> weights,
                           double smoothing, std::string separator);

  void add(const PackedBatch& batch, const float* logits) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;

 private:
  ClassificationTally tally() const;  // of all samples, in their order
  void write_predictions(const std::filesystem::path& path) const;

  const ClassificationData& data_;
  std::span<const float> weights_;
  double smoothing_;
  std::string separator_;
  // By sample, so that sums do not depend on the order of arrival.
  std::vector<char> seen_;
  std::vector<double> losses_;
  std::vector<ScoredLabel> top_;                    // single-label
  std::vector<std::vector<ScoredLabel>> positive_;  // multi-label
  std::vector<float> values_;                       // regression
};

}  // namespace finetune
