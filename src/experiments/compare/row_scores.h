// Computes a run's metric over a sample of its evaluation rows, from its saved predictions.
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
  // Returns the metric if row i counts counts[i] times. Thread-safe.
  virtual double metric(std::span<const uint32_t> counts) const = 0;

 protected:
  RowScores(int64_t rows, std::string rows_sha256)
      : rows_(rows), rows_sha256_(std::move(rows_sha256)) {}

 private:
  int64_t rows_;
  std::string rows_sha256_;
};

// Reads predictions.csv, or predictions.json and the evaluation data. Returns the reason instead if
// the predictions do not determine the metric, if files are missing, or if the metric differs from
// metrics.json.
std::variant<std::unique_ptr<RowScores>, std::string> read_row_scores(const RunRecord& run,
                                                                      const std::string& metric);

}  // namespace finetune
