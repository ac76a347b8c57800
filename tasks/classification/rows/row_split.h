// Chooses the usable rows of the training files to hold out for evaluation.
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
  std::span<const uint32_t> rows;  // indices in the table
  const TextColumns& text;
  size_t label = 0;  // its column's index
};

// Holds out options.eval_fraction of the rows; returns indices in `rows`. The choice is stratified
// by label (several labels per row: the rarest one; regression: tenths of the targets) unless
// options.stratified_split is false. Groups are kept whole with options.eval_group (equal values in
// a column) or options.distinct_split (equal texts). `data` has the problem and the labels.
// Error(data) if the group column is missing, or if there is only one group.
HoldOut split_rows(const UsableRows& usable, const TaskOptions& options,
                   const ClassificationData& data);

// A line for the log.
std::string describe_split(const UsableRows& usable, const HoldOut& parts,
                           const TaskOptions& options);

// A warning about the split, or "": rows whose label no training row has, or much fewer or more
// rows than asked for.
std::string split_fault(const UsableRows& usable, const HoldOut& parts, const TaskOptions& options,
                        const ClassificationData& data);

}  // namespace finetune
