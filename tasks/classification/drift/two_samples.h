// Tests whether two samples are of one distribution.
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

// Sizes that count for a p-value. They are smaller than the samples if values depend on each other.
struct SampleSizes {
  double a = 0, b = 0;
};

// Kolmogorov and Smirnov's test: `statistic` is the largest distance of the distribution functions.
// Both samples ascend. Equal values make p too large, never too small.
TwoSampleTest kolmogorov_smirnov(std::span<const double> a, std::span<const double> b,
                                 SampleSizes sizes);

struct CountsTest {
  TwoSampleTest test;
  int64_t largest = -1;  // the class that adds most to the statistic; -1: none
};
// Pearson's test of whether two samples have the same shares of the classes; `a` and `b` count each
// class. Classes with an expected count below 5 in either sample are joined into one.
CountsTest same_shares(std::span<const int64_t> a, std::span<const int64_t> b, SampleSizes sizes);

}  // namespace finetune
