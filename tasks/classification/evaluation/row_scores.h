// All scores of rows with labels: all rows, unseen rows, slices, probabilities.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/classification/evaluation/class_counts.h"
#include "tasks/classification/evaluation/probability_scores.h"
#include "tasks/classification/evaluation/row_source.h"
#include "tasks/task.h"

namespace finetune {

// eval_loss is the training loss (with weights and smoothing) summed over the rows and divided by
// their number, or by the sum of their labels' weights. A row whose label the model does not know
// has no loss (torch's ignore_index); in all other metrics it counts as wrong. Unknown labels of
// multi-label rows are not part of the target.
//
// Metrics   single-label  eval_loss, eval_accuracy, eval_f1_macro, eval_f1_micro,
//                         eval_f1_weighted, eval_mcc, eval_ece, eval_brier
//           multi-label   eval_loss, eval_accuracy (whole sets), eval_f1_*, eval_ece, eval_brier
//           regression    eval_loss, eval_mse, eval_mae, eval_r2, eval_pearson, eval_spearman
// Files     confusion.csv    single-label: a row per true label, a column per predicted one;
//                            multi-label: counts of true and false positives and negatives
//           per_class.csv    label, precision, recall, f1, support
//           slices.csv       with slices
// With options.folds also eval_folds (their number), and the standard deviation over folds of
// kFoldMeasures, as eval_accuracy_sd and so on. `options`: further metrics that evaluate offers
// (probability_scores.h).
std::vector<std::string> classification_metric_names(ProblemType problem,
                                                     const ClassificationOptions& options = {});

inline constexpr const char* kFoldMeasures[] = {"eval_accuracy", "eval_f1_macro", "eval_f1_micro",
                                                "eval_mse"};

class RowScores {
 public:
  // The inputs for scoring. All must outlive the scores. `slices` may be null.
  struct Setting {
    const ClassificationData& data;        // labels and problem type
    std::span<const float> weights;        // one per label, or empty
    const ClassificationOptions& options;  // label_smoothing, calibration, answer options
    Slices* slices = nullptr;
  };
  explicit RowScores(const Setting& setting);

  // From now on, rows whose text was trained on are also counted separately.
  void tell_repeated();
  bool tells_repeated() const { return unseen_.has_value(); }
  // Call in the order of the rows: sums depend on it. `answer`: the row's logits, or its number.
  // `unmixed`: the model's own logits if `answer` is mixed with n-grams; else null.
  void add(const WaitingRow& row, const float* answer, const float* unmixed);

  Metrics metrics() const;
  std::optional<Promise> promise() const;  // with options.promise
  Metrics unmixed() const;                 // metrics of the `unmixed` logits, if given
  std::string describe() const;            // for people: thresholds and slices, with line ends
  std::string slices_json() const;
  void write_files(const std::filesystem::path& directory) const;

 private:
  template <typename Count>
  void count(const WaitingRow& row, Count&& count_in);
  ClassCounts new_tally() const;
  void add_folds(Metrics& metrics) const;

  Setting setting_;
  ClassCounts all_;
  std::optional<ClassCounts> unseen_, unmixed_;
  std::vector<ClassCounts> folds_;  // with options.folds
  std::vector<int64_t> fold_rows_;
  std::optional<ProbabilityScores> answers_;  // for labels
  int64_t rows_ = 0, repeated_ = 0;
};

}  // namespace finetune
