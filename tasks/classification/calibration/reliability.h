// Measures how reliable probabilities are: expected calibration error and Brier score.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

inline constexpr size_t kReliabilityBins = 10;  // of equal width, as in the report

// Rows may come in any order: sums are whole numbers of 2^-32, so the order changes no bit.
class Reliability {
 public:
  // several_labels: a row has any number of labels, each with its own probability.
  Reliability(int64_t outputs, bool several_labels);

  // One label per row: the row's probabilities and its label, which the model may not know.
  void add(std::span<const double> probabilities, int32_t truth);
  // Several labels per row: its labels, ascending, without those that the model does not know.
  void add(std::span<const double> probabilities, std::span<const int32_t> truth);

  // One label per row: rows are put into bins by their highest probability. Returns the mean, over
  // rows, of the distance between the bin's mean probability and its share of right rows. Several
  // labels: the mean of this over labels, from each label's probability and rows.
  double calibration_error() const;
  // The mean over rows of the sum over labels of (probability - truth)^2, from 0 to 2. Several
  // labels: the mean of this square over rows and labels, from 0 to 1.
  double brier_score() const;

 private:
  struct Bin {
    int64_t rows = 0, right = 0, probability = 0;
  };
  using Bins = std::array<Bin, kReliabilityBins>;
  static void count(Bins& bins, double probability, bool right);

  int64_t rows_ = 0;
  int64_t outputs_;
  std::vector<Bins> bins_;  // one; with several labels per row, one per label
  // Sum for the Brier score in units of 2^-32, and a carry in units of 2^62 of them.
  int64_t squares_ = 0, squares_carried_ = 0;
};

}  // namespace finetune
