// The paired bootstrap, the variance over seeds, and the interval of both.
#include "experiments/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "core/numeric/philox.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "experiments/compare/row_scores.h"

namespace finetune {
namespace {

constexpr int64_t kReplicates = 1000;
constexpr PhiloxKey kRowsKey{0x626F6F74, 0x73747261};

// Returns how often each of `rows` rows is drawn in a replicate.
std::vector<uint32_t> drawn_counts(int64_t rows, uint32_t replicate) {
  std::vector<uint32_t> counts(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; i += 4) {
    const PhiloxBlock bits =
        philox(kRowsKey, {uint32_t(i / 4), uint32_t((i / 4) >> 32), replicate, 0});
    for (int64_t k = 0; k < std::min<int64_t>(4, rows - i); ++k) {
      ++counts[size_t(uint64_t(bits[size_t(k)]) * uint64_t(rows) >> 32)];
    }
  }
  return counts;
}

// The metric of each run in each replicate, if the run's predictions can be read.
struct Bootstrap {
  std::vector<std::vector<double>> replicates;  // by run; empty: unknown
  std::vector<std::string> unknown;             // by run: the reason
};

Bootstrap bootstrap_of(const std::vector<RunRecord>& runs, const std::string& metric,
                       size_t reference) {
  Bootstrap out{std::vector<std::vector<double>>(runs.size()),
                std::vector<std::string>(runs.size())};
  std::vector<std::unique_ptr<RowScores>> scores(runs.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    auto read = read_row_scores(runs[r], metric);
    if (auto* found = std::get_if<0>(&read))
      scores[r] = std::move(*found);
    else
      out.unknown[r] = std::get<1>(read);
  }
  if (!scores[reference]) {
    for (std::string& why : out.unknown) why = out.unknown[reference];
    return out;
  }
  const std::string rows = scores[reference]->rows_sha256();
  for (size_t r = 0; r < runs.size(); ++r) {
    if (!scores[r]) continue;
    if (scores[r]->rows_sha256() == rows)
      out.replicates[r].resize(size_t(kReplicates));
    else
      out.unknown[r] = concat(runs[r].directory.string(), ": was evaluated on other rows than ",
                              runs[reference].directory.string());
  }
  parallel_for(kReplicates, [&](int64_t b) {
    const std::vector<uint32_t> counts = drawn_counts(scores[reference]->rows(), uint32_t(b));
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!out.replicates[r].empty()) out.replicates[r][size_t(b)] = scores[r]->metric(counts);
    }
  });
  return out;
}

// Returns the variance of the difference of two groups' means, or sets `unknown` to the reason.
std::optional<double> row_variance(const Bootstrap& bootstrap, const RunGroup& a, const RunGroup& b,
                                   std::string& unknown) {
  std::vector<double> differences(static_cast<size_t>(kReplicates));
  for (const auto& [group, sign] : {std::pair(&a, 1.0), {&b, -1.0}}) {
    for (size_t run : group->runs) {
      if (bootstrap.replicates[run].empty()) {
        unknown = bootstrap.unknown[run];
        return std::nullopt;
      }
      for (size_t i = 0; i < differences.size(); ++i) {
        differences[i] += sign * bootstrap.replicates[run][i] / double(group->runs.size());
      }
    }
  }
  const double sd = estimate_of(differences).sd;
  return sd * sd;
}

struct SeedVariance {
  double variance = 0;  // of the difference of two means
  double degrees = 0;   // 0: not known
};

SeedVariance seed_variance(const Estimate& a, const Estimate& b) {
  const double degrees = double(a.runs + b.runs - 2);
  if (degrees == 0) return {};
  const double pooled =
      (double(a.runs - 1) * a.sd * a.sd + double(b.runs - 1) * b.sd * b.sd) / degrees;
  return {pooled * (1.0 / double(a.runs) + 1.0 / double(b.runs)), degrees};
}

// Estimates the deciding metric over seeds. A seed counts once if a row's runs differ only in seed.
Estimate over_seeds(const std::vector<RunRecord>& runs, const RunComparison& comparison,
                    const RunGroup& group) {
  if (!comparison.within.empty()) return group.metrics.at(comparison.deciding());
  std::set<std::string> seeds;
  std::vector<double> values;
  for (size_t run : group.runs) {
    if (!seeds.insert(runs[run].option("seed")).second) continue;
    values.push_back(runs[run].metrics.at(comparison.deciding()));
  }
  return estimate_of(values);
}

Difference difference_of(const std::vector<RunRecord>& runs, const RunComparison& comparison,
                         const Bootstrap& bootstrap, const RunGroup& group, const RunGroup& best) {
  const Estimate &own = group.metrics.at(comparison.deciding()),
                 &other = best.metrics.at(comparison.deciding());
  Difference out;
  out.mean = own.mean - other.mean;
  const auto rows = row_variance(bootstrap, group, best, out.unknown);
  const SeedVariance seeds =
      seed_variance(over_seeds(runs, comparison, group), over_seeds(runs, comparison, best));
  if (!rows && seeds.degrees == 0) return out;
  const std::string spread = comparison.within.empty() ? "seeds" : "runs";
  out.noise = !rows ? spread : seeds.degrees > 0 ? concat("rows and ", spread) : "rows";
  const double variance = rows.value_or(0) + seeds.variance;
  const double share = seeds.variance / variance;  // NaN if nothing varies
  const double degrees = seeds.variance > 0 ? seeds.degrees / (share * share)
                                            : std::numeric_limits<double>::infinity();
  const double reach = student_95(degrees) * std::sqrt(variance);
  out.low = out.mean - reach;
  out.high = out.mean + reach;
  out.more_than_noise = *out.low > 0 || *out.high < 0;
  return out;
}

}  // namespace

void add_differences(const std::vector<RunRecord>& runs, RunComparison& comparison) {
  if (comparison.groups.size() < 2) return;
  const RunGroup& best = comparison.groups[comparison.best];
  const Bootstrap bootstrap = bootstrap_of(runs, comparison.deciding(), best.runs.front());
  for (RunGroup& group : comparison.groups) {
    if (&group == &best) continue;
    group.difference = difference_of(runs, comparison, bootstrap, group, best);
  }
}

}  // namespace finetune
