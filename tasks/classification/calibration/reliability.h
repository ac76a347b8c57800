// How far probabilities are what they say: expected calibration error and Brier score.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

inline constexpr size_t kReliabilityBins = 10;  // of equal width, as in the report

// Counts in any order: sums are whole numbers of 2^-32, so that no order changes a bit.
class Reliability {
 public:
  // several_labels: a row may have any number of the labels, each with a probability of its own.
  Reliability(int64_t outputs, bool several_labels);

  // The probabilities of one row. `truth`: its label, or one that is no output, which nothing can
  // predict. One label a row.
  void add(std::span<const double> probabilities, int32_t truth);
  // Several: its labels, ascending; those that are no output are not part of it.
  void add(std::span<const double> probabilities, std::span<const int32_t> truth);

  // One label a row: over the rows, of the highest probability of each: the mean distance between
  // the mean probability of its bin and the share of the bin's rows that are right. Several: that
  // of each label's probability and the rows that have it, the mean over labels.
  double calibration_error() const;
  // The mean over rows of the sum over labels of (probability - truth)^2, from 0 to 2. Several
  // labels: the mean over rows and labels of that square, from 0 to 1.
  double brier_score() const;

 private:
  struct Bin {
    int64_t rows = 0, right = 0, probability = 0;
  };
  using Bins = std::array<Bin, kReliabilityBins>;
  static void count(Bins& bins, double probability, bool right);

  int64_t rows_ = 0;
  int64_t outputs_;
  std::vector<Bins> bins_;  // one; of several labels one for each
  // Brier: whole numbers of 2^-32, and what is more than 2^62 of them.
  int64_t squares_ = 0, squares_carried_ = 0;
};

}  // namespace finetune
