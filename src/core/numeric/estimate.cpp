// Estimates over runs, and a table of Student's distribution.
#include "core/numeric/estimate.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace finetune {

Estimate estimate_of(const std::vector<double>& values) {
  Estimate out;
  out.runs = int64_t(values.size());
  const double n = double(out.runs);
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - out.mean) * (value - out.mean);
  if (out.runs > 1) out.sd = std::sqrt(squares / (n - 1));
  return out;
}

double student_95(double degrees) {
  struct Known {
    double degrees, value;
  };
  constexpr std::array<Known, 12> table{{{1, 12.706},
                                         {2, 4.303},
                                         {3, 3.182},
                                         {4, 2.776},
                                         {5, 2.571},
                                         {6, 2.447},
                                         {8, 2.306},
                                         {10, 2.228},
                                         {15, 2.131},
                                         {30, 2.042},
                                         {120, 1.980},
                                         {std::numeric_limits<double>::infinity(), 1.960}}};
  if (!(degrees > table.front().degrees)) return table.front().value;
  // Interpolates linearly in 1 / degrees, which never gives a value below the true one.
  for (size_t i = 1; i < table.size(); ++i) {
    if (degrees > table[i].degrees) continue;
    const double from = 1 / table[i - 1].degrees, to = 1 / table[i].degrees;
    const double share = (from - 1 / degrees) / (from - to);
    return table[i - 1].value + share * (table[i].value - table[i - 1].value);
  }
  return table.back().value;
}

}  // namespace finetune
