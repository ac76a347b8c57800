// The requests of `finetune predict` and `finetune next`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/rows/row_options.h"

namespace finetune {

inline constexpr int64_t kMostNextRows = 2000;  // per call of `finetune next`

struct PredictionRequest {
  std::string input;   // "-": standard input
  std::string output;  // "-": standard output
  std::string n_best;  // empty: none
  std::optional<int64_t> top_k;
  bool all_probabilities = false;
  RowOptions rows;
  bool stream = false;            // rows are answered as they arrive
  bool json_lines = false;        // rows: JSON Lines instead of CSV
  bool spreadsheet_safe = false;  // rows: no cell of the CSV begins a formula
  bool explain = false;           // labels: which words led to them
  int64_t next_rows = 0;          // next: how many rows to choose, at most kMostNextRows
  std::string column_option;      // a given option that names a column, or empty
};

}  // namespace finetune
