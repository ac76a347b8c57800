// The label of one row: whether it can be used, and what it says.
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

// Says why a row cannot be used, or nothing: an empty text, an empty label, a label that is not a
// number for regression. `names`: the columns, `label`: the index of the label's.
std::optional<std::string> row_fault(RowValues values, const std::vector<std::string>& names,
                                     const TextColumns& text, size_t label,
                                     const TaskOptions& options, ProblemType problem);
// The error for such a row, `where` being "train.csv:118".
Error bad_row(const std::string& where, const std::string& fault);

// Rewrites the value of the label column for the rest of the program: a list of labels becomes
// names between separators, and with `names` (--normalize-labels) each label gets its normal name,
// which `joined` notes. Returns nothing if the value stays as it is.
std::optional<std::string> rewritten_label(std::string_view value, ProblemType problem,
                                           const ClassificationOptions& options,
                                           const LabelNames* names, JoinedLabels* joined = nullptr);

// Counts the labels of a row for --normalize-labels.
void count_labels(std::string_view value, ProblemType problem, const ClassificationOptions& options,
                  LabelNames& names);

// Calls label(name) for the label of a row, or for each of several.
template <typename Label>
void for_each_label(std::string_view value, ProblemType problem,
                    const ClassificationOptions& options, Label&& label) {
  if (problem == ProblemType::single_label) return label(value);
  for (std::string_view part : split_labels(value, options.multi_label_separator)) label(part);
}

// id_of(name) of the labels of a row, ascending and each once.
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

// Adds a row's label to `side`: a number, or ids. Ids of `data`'s labels come first, then those of
// `unknown`.
void add_target(std::string_view value, const ClassificationData& data, const LabelMap& unknown,
                const TaskOptions& options, ClassificationSide& side);

// The error for labels that the model does not know (distinct and sorted); `where`: the first.
// `known`: those that it knows.
Error unknown_labels_error(const std::string& where, const std::vector<std::string>& unknown,
                           const LabelMap& known, const TaskOptions& options);

// A warning on labels that a person takes for one, or nothing.
std::string alike_warning(const std::vector<std::string>& labels);
// A warning on labels that stand for a missing value, as "nan", or nothing.
std::string missing_warning(const std::vector<std::string>& labels);
// A warning on labels that are lists, or parts of a list that was cut at its separators, or
// nothing.
std::string list_warning(const std::vector<std::string>& labels,
                         const ClassificationOptions& options);

// Error(usage) for options that contradict each other or the problem type.
void check_problem_options(const ClassificationOptions& options, ProblemType problem);

}  // namespace finetune
