// Counts right and wrong predictions by class, sample by sample. The metrics, confusion.csv and
// per_class.csv are computed from the counts. The memory grows with the labels, not the samples.
// Only regression keeps its numbers, since rank correlations need all of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/files/files.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/scores/label_scores.h"
#include "tasks/task.h"

namespace finetune {

// Losses of one sample on the host, in double, so evaluation needs no device for them. The formulas
// are those of the backend's cross_entropy, binary_cross_entropy and squared_error. w[y] * ((1 -
// smoothing) * nll(y) + smoothing / C * sum_c nll(c)); without weights all are 1.
double cross_entropy_loss(std::span<const float> logits, int32_t label,
                          std::span<const float> weights, double smoothing);
// Mean over the classes; `positive` lists the classes whose target is 1.
double binary_cross_entropy_loss(std::span<const float> logits, std::span<const int32_t> positive);

class ClassCounts {
 public:
  // Uses the labels and the problem type of `data`. `data` and `weights` (one per output, or none)
  // must outlive this.
  ClassCounts(const ClassificationData& data, std::span<const float> weights, double smoothing);

  // The training loss of a sample. It is zero for a label that the model does not know.
  double label_loss(const float* logits, int32_t label) const;
  double set_loss(const float* logits, std::span<const int32_t> labels) const;
  double value_loss(float value, double target) const;

  // Adds a sample's truth and prediction. Call in the order of the samples: sums depend on it.
  void add_label(int32_t truth, int32_t predicted, double loss);
  void add_set(std::span<const int32_t> truth, std::span<const int32_t> predicted, double loss);
  void add_value(double truth, float predicted, double loss);

  Metrics metrics() const;
  void write_files(const std::filesystem::path& directory) const;

 private:
  std::vector<ClassScores> class_scores() const;
  void write_confusion(const std::filesystem::path& path) const;
  void write_pairs(AtomicFile& file) const;
  void write_per_class(const std::filesystem::path& path) const;

  const ClassificationData& data_;
  std::span<const float> weights_;
  double smoothing_;
  int64_t samples_ = 0;
  double loss_ = 0, denominator_ = 0;
  std::vector<ClassScores> counts_;                  // (classes)
  std::unordered_map<uint64_t, int64_t> confusion_;  // truth * classes + prediction
  int64_t whole_sets_ = 0;
  std::vector<double> truths_, values_;  // regression
};

}  // namespace finetune
