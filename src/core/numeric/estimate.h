// Mean and spread of a metric over several runs, and Student's distribution.
#pragma once

#include <cstdint>
#include <vector>

namespace finetune {

struct Estimate {
  int64_t runs = 0;
  double mean = 0;
  double sd = 0;  // sample standard deviation (n - 1); 0 for one run
};
Estimate estimate_of(const std::vector<double>& values);

// Two-sided 95 % of Student's distribution: 12.71 for one degree of freedom, 1.96 for infinitely
// many.
double student_95(double degrees);

}  // namespace finetune
