// Tests whether two samples have the same distribution.
#pragma once

#include <cstdint>
#include <span>

namespace finetune {

// The limit of P(sqrt(n) * D > x) of Kolmogorov's distance D as n grows: scipy's kolmogorov(x).
double kolmogorov_tail(double x);
// P(chi-square with `freedom` degrees of freedom > x).
double chi_square_tail(double x, double freedom);

struct TwoSampleTest {
  double statistic = 0, p = 1;
};

// Effective sizes for a p-value: smaller than the samples if values depend on each other.
struct SampleSizes {
  double a = 0, b = 0;
};

// The Kolmogorov-Smirnov test: `statistic` is the largest distance of the distribution functions.
// Both samples must be ascending. Equal values can make p too large, but not too small.
TwoSampleTest kolmogorov_smirnov(std::span<const double> a, std::span<const double> b,
                                 SampleSizes sizes);

struct CountsTest {
  TwoSampleTest test;
  int64_t largest = -1;  // the class with the largest term of the statistic; -1: none
};
// Pearson's test whether two samples have the same shares of the classes. `a` and `b` count each
// class. Classes with an expected count below 5 in either sample are joined into one.
CountsTest same_shares(std::span<const int64_t> a, std::span<const int64_t> b, SampleSizes sizes);

}  // namespace finetune
