// Which usable rows of the training files are held out for evaluation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "data/columns/text_columns.h"
#include "data/hold_out.h"
#include "data/rows/records.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct UsableRows {
  const Table& table;
  std::span<const uint32_t> rows;  // of the table
  const TextColumns& text;
  size_t label = 0;  // its column
};

// options.eval_fraction of them, as places in `rows`: by strata of their labels (several labels a
// row: the rarest one; regression: tenths of the targets) unless options.stratified_split is false,
// and in whole groups with options.eval_group (rows with one value) or options.distinct_split (rows
// with one text). `data` has the problem and the labels. Error(data)
// for a group column that is missing, and if there is only one group.
HoldOut split_rows(const UsableRows& usable, const TaskOptions& options,
                   const ClassificationData& data);

// A line for the log.
std::string describe_split(const UsableRows& usable, const HoldOut& parts,
                           const TaskOptions& options);

// What is odd about it, for a warning, or empty: rows whose label no training row has, and much
// fewer or more rows than asked for.
std::string split_fault(const UsableRows& usable, const HoldOut& parts, const TaskOptions& options,
                        const ClassificationData& data);

}  // namespace finetune
