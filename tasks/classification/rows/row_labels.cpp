// Checks a row's label values, and words the errors about them.
#include "tasks/classification/rows/row_labels.h"

#include <cmath>

#include "core/error.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "tasks/classification/rows/label_column.h"

namespace finetune {
namespace {

constexpr size_t kNamedUnknownLabels = 10;

}  // namespace

std::optional<double> finite_number(std::string_view text) {
  std::optional<double> value = parse_double(trim(text));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::string> row_fault(RowValues values, const std::vector<std::string>& names,
                                     const TextColumns& text, size_t label,
                                     const TaskOptions& options, ProblemType problem) {
  std::optional<std::string> empty = empty_text_column(values, text, names);
  if (!empty && problem != ProblemType::multi_label && trim(values[label]).empty()) {
    empty = options.label_column;
  }
  if (empty) return concat("column ", in_quotes(*empty), " is empty");
  if (problem == ProblemType::regression && !finite_number(values[label])) {
    return concat("column ", in_quotes(options.label_column), " is ", in_quotes(values[label]),
                  is_amount(values[label])
                      ? ", an amount; numbers have a decimal point, no currency and nothing "
                        "between thousands: -18.72"
                      : ", not a finite number");
  }
  return std::nullopt;
}

Error bad_row(const std::string& where, const std::string& fault) {
  return data_error(where, ": ", fault, " (mend the row, or drop such rows with --skip-bad-rows)");
}

void add_target(std::string_view value, const ClassificationData& data, const LabelMap& unknown,
                const TaskOptions& options, ClassificationSide& side) {
  if (data.problem == ProblemType::regression) {
    side.targets.push_back(*finite_number(value));
    return;
  }
  const std::vector<int32_t> ids =
      label_ids(value, data.problem, options, [&](std::string_view name) {
        const int32_t id = data.labels.find(name);
        return id >= 0 ? id : int32_t(data.labels.size()) + unknown.find(name);
      });
  if (data.problem == ProblemType::single_label)
    side.labels.push_back(ids.at(0));
  else
    side.label_sets.push_back(ids);
}

Error unknown_labels_error(const std::string& where, const std::vector<std::string>& unknown,
                           const TaskOptions& options) {
  std::vector<std::string> named;
  for (size_t i = 0; i < unknown.size() && i < kNamedUnknownLabels; ++i) {
    named.push_back(in_quotes(unknown[i]));
  }
  std::string more =
      unknown.size() > named.size() ? concat(" and ", unknown.size() - named.size(), " more") : "";
  return data_error(
      where, ": column ", in_quotes(options.label_column), " has ",
      counted(unknown.size(), "label"), " that ",
      options.train_files.empty() ? "the model does not know: " : "the training data lacks: ",
      join(named, ", "), more, " (to count them as wrong: --ignore-unknown-labels)");
}

void check_problem_options(const TaskOptions& options, ProblemType problem) {
  if (options.regression && !options.multi_label_separator.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  if (problem == ProblemType::single_label) return;
  std::string_view name = problem == ProblemType::regression ? "--regression" : "--multi-label";
  if (options.balanced_class_weights) {
    throw usage_error("--class-weights balanced does not go with ", name);
  }
  if (options.label_smoothing != 0) {
    throw usage_error("--label-smoothing does not go with ", name);
  }
}

}  // namespace finetune
