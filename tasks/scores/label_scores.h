// Metrics of classification and regression, with the semantics of scikit-learn 1.x and SciPy.
// accuracy_score, precision_recall_fscore_support, f1_score with zero_division = 0,
// matthews_corrcoef, confusion_matrix; of SciPy the correlations pearsonr and spearmanr.
//
// Classes are ids from 0. Labels that the model does not know (--ignore-unknown-labels) have ids
// from the model's number of outputs on. They occur in the truth, but never in predictions. So each
// such sample counts as wrong, and each such label as a class with recall 0, exactly as
// scikit-learn counts them if given the names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

struct ClassScores {
  double precision = 0;  // 0 if the class was never predicted
  double recall = 0;     // 0 if the class never occurs
  double f1 = 0;         // 2 TP / (support + predicted), 0 if both are 0
  int64_t support = 0;   // samples of the class in truth
  int64_t predicted = 0;
  int64_t correct = 0;  // TP
};

struct F1Scores {
  double micro = 0;
  double macro = 0;
  double weighted = 0;  // by support
};

// One label per sample.
struct SingleLabelScores {
  double accuracy = 0;
  F1Scores f1;     // macro: over classes in truth or prediction
  double mcc = 0;  // multi-class Matthews correlation (R_K, Gorodkin 2004); else 0
  std::vector<ClassScores> classes;
};
// Counts one sample. Ids are in [0, classes).
void count_label(std::vector<ClassScores>& classes, int32_t truth, int32_t predicted);
// The scores from the counts of all samples. Without samples all are 0.
SingleLabelScores single_label_scores(std::vector<ClassScores> counts);
SingleLabelScores single_label_scores(std::span<const int32_t> truth,
                                      std::span<const int32_t> predicted, int64_t classes);

// Any number of labels per sample. Sample i has the ids [offsets[i], offsets[i+1]), ascending and
// distinct.
struct LabelSets {
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};

  int64_t size() const { return int64_t(offsets.size()) - 1; }
  std::span<const int32_t> operator[](int64_t i) const {
    return {ids.data() + offsets[size_t(i)], ids.data() + offsets[size_t(i) + 1]};
  }
  void push_back(std::span<const int32_t> set) {
    ids.insert(ids.end(), set.begin(), set.end());
    offsets.push_back(int64_t(ids.size()));
  }
};

struct MultiLabelScores {
  double accuracy = 0;  // subset accuracy: the whole set is right
  F1Scores f1;          // macro: over all classes, as for scikit-learn's indicator matrices
  std::vector<ClassScores> classes;
};
// Counts one sample; ids are ascending. Returns true if the whole set is right.
bool count_labels(std::vector<ClassScores>& classes, std::span<const int32_t> truth,
                  std::span<const int32_t> predicted);
// The scores from the counts of all samples; for `whole` of them the whole set is right.
MultiLabelScores multi_label_scores(std::vector<ClassScores> counts, int64_t whole,
                                    int64_t samples);
MultiLabelScores multi_label_scores(const LabelSets& truth, const LabelSets& predicted,
                                    int64_t classes);

struct RegressionScores {
  double mse = 0;
  double mae = 0;
  double r2 = 0;        // 1 - mse / variance of truth; constant truth: 1 if exact, else 0
  double pearson = 0;   // 0 (SciPy: nan) if truth or prediction is constant or not finite
  double spearman = 0;  // Pearson of ranks; equal values have their average rank
};
RegressionScores regression_scores(std::span<const double> truth,
                                   std::span<const double> predicted);

}  // namespace finetune
