// How reliable probabilities are: expected calibration error and Brier score.
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

  // One label a row: the row's probabilities and its label, which may be unknown to the model.
  void add(std::span<const double> probabilities, int32_t truth);
  // Several labels a row: its labels, ascending, without those that the model does not know.
  void add(std::span<const double> probabilities, std::span<const int32_t> truth);

  // One label a row: rows are put into bins by their highest probability. Returns the mean, over
  // rows, of the distance between the bin's mean probability and its share of right rows. Several
  // labels: the same for each label's probability and the rows that have it; the mean over labels.
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
  std::vector<Bins> bins_;  // one, or with several labels a row one for each label
  // Brier: whole numbers of 2^-32, and the carry in units of 2^62 of them.
  int64_t squares_ = 0, squares_carried_ = 0;
};

}  // namespace finetune
