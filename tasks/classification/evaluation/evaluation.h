// Evaluation of classification: logits of the evaluation samples to metrics and files.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/evaluation/answer_scores.h"
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
//                         eval_f1_weighted, eval_mcc, eval_ece, eval_brier
//           multi-label   eval_loss, eval_accuracy (whole sets), eval_f1_*, eval_ece, eval_brier
//           regression    eval_loss, eval_mse, eval_mae, eval_pearson, eval_spearman
// Files     predictions.csv  the evaluation rows with the columns of predictions.h
//           confusion.csv    single-label: a row per true label, a column per predicted one;
//                            multi-label: counts of true and false positives and negatives
//           per_class.csv    label, precision, recall, f1, support
// options: what an evaluation of files may be asked for besides (answer_scores.h).
std::vector<std::string> classification_metric_names(ProblemType problem,
                                                     const TaskOptions& options = {});

class ClassificationEvaluation final : public Evaluation {
 public:
  // What is kept beside the predictions: logits for held_out(), or all of them for mix().
  enum class Keeps { nothing, held_out, all };
  static constexpr int64_t kMostLogits = int64_t{1} << 25;  // that are kept for mix()

  // All must outlive the evaluation. weights: one per output, or empty.
  ClassificationEvaluation(const ClassificationData& data, std::span<const float> weights,
                           double smoothing, std::string separator, Keeps keeps = Keeps::nothing);

  void add(const PackedBatch& batch, const float* logits) override;
  Metrics metrics() override;
  void write_files(const std::filesystem::path& directory) override;

  // What a calibration is fitted to: every k-th sample, so that there are no more than 2^22 logits,
  // of those whose label the model knows, or of the others (several labels a row: none, what the
  // model knows of a row's is left). `margins`: (samples, outputs) of n-grams, or empty. Labels,
  // not numbers.
  HeldOutLogits held_out(std::span<const float> margins, bool of_known_labels = true) const;

  // There are all logits, so that mix() can be called: Keeps::all, one label a row, not too many.
  bool can_mix() const { return keeps_all_; }
  // All samples anew, by their logits and the n-grams' margins. Once, after all samples.
  void mix(const MixWeights& weights, std::span<const float> margins);

 private:
  void place(uint32_t sample, const float* logits);
  void keep(uint32_t sample, const float* logits);
  // Of all samples in their order, or of those whose text is not trained on.
  ClassificationTally tally(bool unseen_alone = false) const;
  void write_predictions(const std::filesystem::path& path) const;

  const ClassificationData& data_;
  std::span<const float> weights_;
  double smoothing_;
  std::string separator_;
  const ClassificationTally losses_of_;
  // By sample, so that sums do not depend on the order of arrival.
  std::vector<char> seen_;
  std::vector<double> losses_;
  std::vector<ScoredLabel> top_;                    // single-label
  std::vector<std::vector<ScoredLabel>> positive_;  // multi-label
  std::vector<float> values_;                       // regression
  std::optional<AnswerScores> answers_;             // of labels
  int64_t stride_ = 0;         // of the samples whose logits are kept; 0: none are
  int64_t fitted_stride_ = 0;  // of those that a calibration is fitted to
  bool keeps_all_ = false;
  std::vector<float> logits_;  // (kept samples, outputs)
};

}  // namespace finetune
