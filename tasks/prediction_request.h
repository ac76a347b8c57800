// What `finetune predict` and `finetune next` were asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/rows/row_options.h"

namespace finetune {

inline constexpr int64_t kMostNextRows = 2000;  // that `finetune next` chooses at once

struct PredictionRequest {
  std::string input;   // "-": standard input
  std::string output;  // "-": standard output
  std::string n_best;  // empty: not wanted
  std::optional<int64_t> top_k;
  bool all_probabilities = false;
  RowOptions rows;
  bool stream = false;            // rows are answered as they come
  bool json_lines = false;        // rows: JSON Lines instead of CSV
  bool spreadsheet_safe = false;  // rows: no cell of the CSV begins a formula
  bool explain = false;           // labels: which words made them
  int64_t next_rows = 0;          // next: how many rows to choose, at most kMostNextRows
  std::string column_option;      // a given option that names a column, or empty
};

}  // namespace finetune
