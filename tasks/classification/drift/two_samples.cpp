// Sums the series for Kolmogorov's and the chi-square distribution.
#include "tasks/classification/drift/two_samples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace finetune {
namespace {

constexpr double kLeastExpected = 5 - 1e-9;  // tolerates the rounding of 5
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// The integral of the gamma function up to x, relative to the whole, by its series; for x < a + 1.
double lower_gamma(double a, double x) {
  double term = 1 / a, sum = term;
  for (double n = a + 1; term > sum * kEpsilon; ++n) sum += term *= x / n;
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

// One minus that, by Lentz's method for its continued fraction; for x >= a + 1.
double upper_gamma(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, fraction = d;
  for (int i = 1; i < 10'000; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    if (std::abs(d) < kTiny) d = kTiny;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    fraction *= d * c;
    if (std::abs(d * c - 1) < kEpsilon) break;
  }
  return fraction * std::exp(a * std::log(x) - x - std::lgamma(a));
}

}  // namespace

double kolmogorov_tail(double x) {
  if (x <= 0) return 1;
  double sum = 0;
  if (x < 1) {  // the other series converges slowly
    const double step = std::numbers::pi * std::numbers::pi / (8 * x * x);
    for (int k = 1; k < 20; k += 2) sum += std::exp(-k * k * step);
    return 1 - std::sqrt(2 * std::numbers::pi) / x * sum;
  }
  for (int k = 1; k < 20; ++k) sum += (k % 2 ? 2 : -2) * std::exp(-2 * k * k * x * x);
  return std::clamp(sum, 0.0, 1.0);
}

double chi_square_tail(double x, double freedom) {
  if (x <= 0 || freedom <= 0) return 1;
  const double a = freedom / 2;
  x /= 2;
  return x < a + 1 ? 1 - lower_gamma(a, x) : upper_gamma(a, x);
}

TwoSampleTest kolmogorov_smirnov(std::span<const double> a, std::span<const double> b,
                                 SampleSizes sizes) {
  double most = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double value = std::min(a[i], b[j]);
    while (i < a.size() && a[i] == value) ++i;
    while (j < b.size() && b[j] == value) ++j;
    most = std::max(most, std::abs(double(i) / double(a.size()) - double(j) / double(b.size())));
  }
  // Stephens' correction of the limit, for small samples.
  const double root = std::sqrt(sizes.a * sizes.b / (sizes.a + sizes.b));
  return {most, kolmogorov_tail((root + 0.12 + 0.11 / root) * most)};
}

CountsTest same_shares(std::span<const int64_t> a, std::span<const int64_t> b, SampleSizes sizes) {
  const auto sum_of = [](std::span<const int64_t> counts) {
    return double(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  };
  const double scale_a = sizes.a / sum_of(a), scale_b = sizes.b / sum_of(b);
  const double share_a = sizes.a / (sizes.a + sizes.b);
  CountsTest found;
  double most = 0, rare_a = 0, rare_b = 0;
  int64_t classes = 0;
  const auto add = [&](double in_a, double in_b) {
    if (in_a + in_b <= 0) return 0.0;
    ++classes;
    const double expected_a = (in_a + in_b) * share_a, expected_b = (in_a + in_b) * (1 - share_a);
    const double more = (in_a - expected_a) * (in_a - expected_a) / expected_a +
                        (in_b - expected_b) * (in_b - expected_b) / expected_b;
    found.test.statistic += more;
    return more;
  };
  for (size_t i = 0; i < a.size(); ++i) {
    const double in_a = double(a[i]) * scale_a, in_b = double(b[i]) * scale_b;
    if ((in_a + in_b) * std::min(share_a, 1 - share_a) < kLeastExpected) {
      rare_a += in_a;
      rare_b += in_b;
      continue;
    }
    const double more = add(in_a, in_b);
    if (more <= most) continue;
    most = more;
    found.largest = int64_t(i);
  }
  add(rare_a, rare_b);
  if (classes > 1) found.test.p = chi_square_tail(found.test.statistic, double(classes - 1));
  return found;
}

}  // namespace finetune
