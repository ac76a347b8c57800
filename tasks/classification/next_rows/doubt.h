// How uncertain a model is about a text's label, in numbers and in words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/calibration.h"
#include "tasks/task.h"

namespace finetune {

struct Doubt {
  std::vector<int32_t> likely;  // one label, or all labels that the model gives
  int32_t other = 0;            // one label: the second; several: the most doubtful one
  float confidence = 0;         // probability of `likely`; several: of the decision on `other`
  float of_other = 0;           // probability of `other`
  // From 0 (certain) to 1. One label: 1 - (first - second probability). Several labels: for the
  // decision that is nearest to its threshold.
  double doubt = 0;
};

// Takes the calibrated logits of one row.
Doubt doubt_of(std::span<const float> logits, ProblemType problem,
               const LogitCalibration& calibration);

// "'Food' 41 % or 'Travel' 38 %", "probably 'Food' (92 %)", "has 'Food' with 48 %".
std::string describe_doubt(const Doubt& doubt, ProblemType problem,
                           const std::vector<std::string>& labels);

}  // namespace finetune
