// Makes strata of labels and groups of a column's values.
#include "tasks/classification/rows/row_split.h"

#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "data/columns/text_columns.h"
#include "tasks/classification/rows/row_labels.h"

namespace finetune {
namespace {

std::string_view value(const UsableRows& usable, uint32_t row, size_t column) {
  return usable.table.rows()[row].values[column];
}

std::vector<int32_t> strata_of(const UsableRows& usable, const TaskOptions& options,
                               const ClassificationData& data) {
  std::vector<int32_t> labels;
  std::vector<int64_t> offsets{0};
  std::vector<double> targets;
  for (uint32_t row : usable.rows) {
    const std::string_view label = value(usable, row, usable.label);
    if (data.problem == ProblemType::regression) {
      targets.push_back(*finite_number(label));
      continue;
    }
    for_each_label(label, data.problem, options,
                   [&](std::string_view name) { labels.push_back(data.labels.find(name)); });
    offsets.push_back(int64_t(labels.size()));
  }
  switch (data.problem) {
    case ProblemType::single_label:
      return labels;
    case ProblemType::multi_label:
      return strata_of_sets(labels, offsets, data.labels.size());
    case ProblemType::regression:
      return strata_of_values(targets);
  }
  return {};
}

bool has_groups(const TaskOptions& options) {
  return options.distinct_split || !options.eval_group.empty();
}

std::vector<int32_t> groups_of_texts(const UsableRows& usable) {
  std::map<TextSum, int32_t> ids;
  std::vector<int32_t> groups;
  for (uint32_t row : usable.rows) {
    const TextSum sum = text_sum_of(usable.table.rows()[row].values, usable.text);
    groups.push_back(ids.emplace(sum, int32_t(ids.size())).first->second);
  }
  if (ids.size() > 1) return groups;
  throw data_error(usable.table.files().front().string(),
                   ": all rows have the same text: --eval-split distinct needs two texts at least");
}

std::vector<int32_t> groups_of(const UsableRows& usable, const TaskOptions& options) {
  if (options.distinct_split) return groups_of_texts(usable);
  const Table& table = usable.table;
  const size_t column =
      find_column(table.columns(), options.eval_group, table.files().front(), "--eval-group");
  std::unordered_map<std::string_view, int32_t> ids;
  std::vector<int32_t> groups;
  for (uint32_t row : usable.rows) {
    groups.push_back(ids.emplace(value(usable, row, column), int32_t(ids.size())).first->second);
  }
  if (ids.size() > 1) return groups;
  throw data_error(table.files().front().string(), ": column ", in_quotes(options.eval_group),
                   " has one value alone, ", in_quotes(ids.begin()->first),
                   ": --eval-group needs two groups at least");
}

}  // namespace

HoldOut split_rows(const UsableRows& usable, const TaskOptions& options,
                   const ClassificationData& data) {
  const double fraction = options.eval_fraction;
  if (has_groups(options)) {
    const std::vector<int32_t> groups = groups_of(usable, options);
    const std::vector<int32_t> strata = options.stratified_split
                                            ? strata_of(usable, options, data)
                                            : std::vector<int32_t>(groups.size(), 0);
    return grouped_hold_out(groups, strata, fraction, options.seed);
  }
  if (!options.stratified_split) {
    return hold_out(int64_t(usable.rows.size()), fraction, options.seed);
  }
  return stratified_hold_out(strata_of(usable, options, data), fraction, options.seed);
}

std::string split_fault(const UsableRows& usable, const HoldOut& parts, const TaskOptions& options,
                        const ClassificationData& data) {
  std::string fault;
  if (data.problem != ProblemType::regression) {
    const auto each = [&](uint32_t place, auto visit) {
      for_each_label(value(usable, usable.rows[place], usable.label), data.problem, options, visit);
    };
    std::set<std::string_view> trained;
    std::set<std::string> missing;
    for (uint32_t place : parts.train) {
      each(place, [&](std::string_view name) { trained.insert(name); });
    }
    int64_t rows = 0;
    for (uint32_t place : parts.eval) {
      bool is_known = true;
      each(place, [&](std::string_view name) {
        if (trained.contains(name)) return;
        missing.insert(in_quotes(name));
        is_known = false;
      });
      rows += !is_known;
    }
    if (rows > 0) {
      fault =
          concat(counted(rows, "held-out row has", "held-out rows have"),
                 " a label that no training row has, ",
                 join_some({missing.begin(), missing.end()}, 3), ": nothing can be learnt of it");
    }
  }
  // Groups are held out as a whole, so a large group may exceed the share.
  const double asked = options.eval_fraction * double(usable.rows.size());
  const auto held = double(parts.eval.size());
  if (has_groups(options) && (2 * held < asked || held > 2 * asked)) {
    fault +=
        concat(fault.empty() ? "" : "; ", parts.eval.size(), " rows are held out where ",
               std::llround(asked), " were asked for, since ",
               options.distinct_split ? "rows with the same text"
                                      : concat("groups of column ", in_quotes(options.eval_group)),
               options.distinct_split ? " are kept together" : " are not cut");
  }
  return fault;
}

std::string describe_split(const UsableRows& usable, const HoldOut& parts,
                           const TaskOptions& options) {
  std::string line = concat("held out ", with_thousands(double(parts.eval.size())), " of ",
                            counted(usable.rows.size(), "row"), ", ",
                            options.stratified_split ? "by strata" : "by chance");
  if (!has_groups(options)) return line;
  const std::vector<int32_t> groups = groups_of(usable, options);
  std::unordered_set<int32_t> held, all(groups.begin(), groups.end());
  for (uint32_t place : parts.eval) held.insert(groups[place]);
  return line + concat(", whole groups: ", held.size(), " of ", all.size(),
                       options.distinct_split
                           ? " texts"
                           : concat(" values of column ", in_quotes(options.eval_group)));
}

}  // namespace finetune
