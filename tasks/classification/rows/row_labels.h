// Reads the label of one row, and checks whether it can be used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/columns/text_columns.h"
#include "tasks/classification/rows/dataset.h"
#include "tasks/labels/label_names.h"

namespace finetune {

// Returns why a row cannot be used, or nothing: an empty text, an empty label, or for regression a
// label that is not a number. `names`: the columns' names; `label`: the label column's index.
std::optional<std::string> row_fault(RowValues values, const std::vector<std::string>& names,
                                     const TextColumns& text, size_t label,
                                     const TaskOptions& options, ProblemType problem);
// The error for this row. `where`: "train.csv:118".
Error bad_row(const std::string& where, const std::string& fault);

// Rewrites the label column's value for all later steps. A list of labels becomes names between
// separators. With `names` (--normalize-labels) each label gets its normal name, which `joined`
// records. Returns nothing if the value stays as it is.
std::optional<std::string> rewritten_label(std::string_view value, ProblemType problem,
                                           const ClassificationOptions& options,
                                           const LabelNames* names, JoinedLabels* joined = nullptr);

// Counts the labels of a row for --normalize-labels.
void count_labels(std::string_view value, ProblemType problem, const ClassificationOptions& options,
                  LabelNames& names);

// Calls label(name) for the row's label, or for each of several.
template <typename Label>
void for_each_label(std::string_view value, ProblemType problem,
                    const ClassificationOptions& options, Label&& label) {
  if (problem == ProblemType::single_label) return label(value);
  for (std::string_view part : split_labels(value, options.multi_label_separator)) label(part);
}

// Returns id_of(name) for the labels of a row, ascending and without duplicates.
template <typename IdOf>
std::vector<int32_t> label_ids(std::string_view value, ProblemType problem,
                               const ClassificationOptions& options, IdOf&& id_of) {
  std::vector<int32_t> ids;
  for_each_label(value, problem, options,
                 [&](std::string_view name) { ids.push_back(id_of(name)); });
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Adds a row's label to `side`: a number, or ids. `data`'s labels have the first ids, followed by
// the labels in `unknown`.
void add_target(std::string_view value, const ClassificationData& data, const LabelMap& unknown,
                const TaskOptions& options, ClassificationSide& side);

// The error for labels that the model does not know (distinct and sorted). `where`: the first one's
// place. `known`: the labels that it knows.
Error unknown_labels_error(const std::string& where, const std::vector<std::string>& unknown,
                           const LabelMap& known, const TaskOptions& options);

// A warning about labels that look the same to a person, or "".
std::string alike_warning(const std::vector<std::string>& labels);
// A warning about labels that stand for a missing value, such as "nan", or "".
std::string missing_warning(const std::vector<std::string>& labels);
// A warning about labels that are lists, or that are parts of a list cut at its separators, or "".
std::string list_warning(const std::vector<std::string>& labels,
                         const ClassificationOptions& options);

// Error(usage) for options that contradict each other or the problem type.
void check_problem_options(const ClassificationOptions& options, ProblemType problem);

}  // namespace finetune
