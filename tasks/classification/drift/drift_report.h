// Tests whether the rows of an input differ from the training rows, and describes how.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/classification/drift/drift_file.h"
#include "tasks/classification/drift/two_samples.h"

namespace finetune {

// If the input is of the same kind as the training data, rows are reported as different by chance
// in at most 1 of 100 inputs. Each of n tests has the level 0.01 / n (Bonferroni).
inline constexpr double kDriftLevel = 0.01;

class DriftReport {
 public:
  // `compares_answers`: the answers are computed in the same way as in training.
  DriftReport(const SampleSummary& training, const SampleSummary& input, bool compares_answers);

  double p() const { return p_; }  // the lowest, times the number of tests
  bool differs() const { return p_ < kDriftLevel; }
  // "the rows differ from those of training (p 0.0003): 31 % of their word pieces and pairs are new
  // (training: 7 %), ...". The clearest difference is first. Returns "" if the rows do not differ.
  std::string line(ProblemType problem, const std::vector<std::string>& labels) const;
  // Returns an object with the p-value and both means of each test.
  std::string json(const std::vector<std::string>& labels) const;

 private:
  struct Difference {
    std::string name;  // a trait's name, or "labels"
    TwoSampleTest test;
    double training = 0, input = 0;  // means, or shares of the label that differs most
  };
  std::string words_for(const Difference& difference, ProblemType problem,
                        const std::vector<std::string>& labels, std::string_view mark) const;

  int64_t training_rows_, rows_;
  double p_ = 1;
  std::vector<Difference> tests_;  // by p-value
  int64_t label_ = -1;             // the label that differs most
};

}  // namespace finetune
