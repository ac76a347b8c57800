// Compares the rows of an input with those of training, and says how they differ.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/classification/drift/drift_file.h"
#include "tasks/classification/drift/two_samples.h"

namespace finetune {

// Rows differ if they would by chance in at most 1 of 100 inputs of the training data's kind. Each
// of n tests has the level 0.01 / n (Bonferroni).
inline constexpr double kDriftLevel = 0.01;

class DriftReport {
 public:
  // `compares_answers`: the answers are made as those of training were.
  DriftReport(const SampleSummary& training, const SampleSummary& input, bool compares_answers);

  double p() const { return p_; }  // the least, times the number of tests
  bool differs() const { return p_ < kDriftLevel; }
  // "the rows differ from those of training (p 0.0003): 31 % of their word pieces and pairs are new
  // (training: 7 %), ..."; the clearest difference first. Empty if they do not differ.
  std::string line(ProblemType problem, const std::vector<std::string>& labels) const;
  // An object with the p-value and both means of each test.
  std::string json(const std::vector<std::string>& labels) const;

 private:
  struct Difference {
    std::string name;  // of the trait, or "labels"
    TwoSampleTest test;
    double training = 0, input = 0;  // means, or shares of the label that differs most
  };
  std::string words_for(const Difference& difference, ProblemType problem,
                        const std::vector<std::string>& labels, std::string_view mark) const;

  int64_t training_rows_, rows_;
  double p_ = 1;
  std::vector<Difference> tests_;  // by p-value
  int64_t label_ = -1;             // that differs most
};

}  // namespace finetune
