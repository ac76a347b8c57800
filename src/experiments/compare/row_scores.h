// A run's metric over any sample of the rows it was evaluated on, from its saved predictions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "experiments/compare/run_record.h"

namespace finetune {

class RowScores {
 public:
  virtual ~RowScores() = default;
  int64_t rows() const { return rows_; }
  // Equal for runs that were evaluated on the same rows in the same order.
  const std::string& rows_sha256() const { return rows_sha256_; }
  // The metric where row i counts counts[i] times. Thread-safe.
  virtual double metric(std::span<const uint32_t> counts) const = 0;

 protected:
  RowScores(int64_t rows, std::string rows_sha256)
      : rows_(rows), rows_sha256_(std::move(rows_sha256)) {}

 private:
  int64_t rows_;
  std::string rows_sha256_;
};

// From predictions.csv, or predictions.json and the evaluation data; or why it cannot be had: the
// metric is no function of the predictions, files are gone, or they do not give the metric that
// metrics.json has.
std::variant<std::unique_ptr<RowScores>, std::string> read_row_scores(const RunRecord& run,
                                                                      const std::string& metric);

}  // namespace finetune
