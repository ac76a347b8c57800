// Checks a row's label values, and formats the errors about them.
#include "tasks/classification/rows/row_labels.h"

#include "core/error.h"
#include "core/option_advice.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "data/columns/label_column.h"
#include "tasks/labels/label_list.h"

namespace finetune {
namespace {

constexpr size_t kNamedUnknownLabels = 10;

bool is_empty_label(std::string_view value, const ClassificationOptions& options) {
  return trim(value).empty() || (options.normalizes_labels && normal_label(value).empty());
}

// Returns a list's label that contains the separator, so that joining would split it, or nothing.
std::optional<std::string> label_with_separator(std::string_view value,
                                                const std::string& separator) {
  const auto list = label_list(value);
  if (!list) return std::nullopt;
  for (const std::string& name : *list) {
    if (name.find(separator) != std::string::npos) return name;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> row_fault(RowValues values, const std::vector<std::string>& names,
                                     const TextColumns& text, size_t label,
                                     const TaskOptions& options, ProblemType problem) {
  std::optional<std::string> empty = empty_text_column(values, text, names);
  const bool is_multi = problem == ProblemType::multi_label;
  if (!empty && !is_multi && is_empty_label(values[label], options)) empty = options.label_column;
  if (empty) return concat("column ", in_quotes(*empty), " is empty");
  if (is_multi) {
    const auto name = label_with_separator(values[label], options.multi_label_separator);
    if (!name) return std::nullopt;
    return concat("column ", in_quotes(options.label_column), " lists the label ", in_quotes(*name),
                  ", which holds the separator of --multi-label ",
                  in_quotes(options.multi_label_separator), "; choose another one");
  }
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
  const std::string drop = option_advice(", or drop such rows with --skip-bad-rows");
  return data_error(where, ": ", fault, " (mend the row", drop, ")");
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

std::optional<std::string> rewritten_label(std::string_view value, ProblemType problem,
                                           const ClassificationOptions& options,
                                           const LabelNames* names, JoinedLabels* joined) {
  if (problem == ProblemType::regression) return std::nullopt;
  const auto named = [&](std::string_view label) {
    std::string name = names ? names->name_of(label) : std::string(label);
    if (joined) joined->note(label, name);
    return name;
  };
  if (problem == ProblemType::single_label) {
    if (!names) return std::nullopt;
    std::string name = named(value);
    return name == value ? std::nullopt : std::optional(std::move(name));
  }
  const auto list = label_list(value);
  if (!list && !names) return std::nullopt;
  std::vector<std::string> out;
  const auto add = [&](std::string_view label) {
    std::string name = named(label);
    if (!name.empty() && std::find(out.begin(), out.end(), name) == out.end()) {
      out.push_back(std::move(name));
    }
  };
  if (list) {
    for (const std::string& label : *list) add(label);
  } else {
    for (std::string_view label : split_labels(value, options.multi_label_separator)) add(label);
  }
  return join(out, options.multi_label_separator);
}

void count_labels(std::string_view value, ProblemType problem, const ClassificationOptions& options,
                  LabelNames& names) {
  const auto cell = rewritten_label(value, problem, options, nullptr);
  for_each_label(cell ? *cell : value, problem, options,
                 [&](std::string_view name) { names.count(name); });
}

std::string alike_warning(const std::vector<std::string>& labels) {
  const auto groups = alike_labels(labels);
  if (groups.empty()) return "";
  return concat("labels that a person takes for one are different classes: ", named_alike(groups),
                "; --normalize-labels joins them");
}

std::string missing_warning(const std::vector<std::string>& labels) {
  // As written by pandas, SQL and Excel. "none" and "NA" may be real classes.
  constexpr std::string_view kMissing[] = {"nan", "NaN", "NAN",  "<NA>", "#N/A",
                                           "N/A", "NaT", "NULL", "null", "None"};
  std::vector<std::string> found;
  for (const std::string& label : labels) {
    if (std::find(std::begin(kMissing), std::end(kMissing), label) == std::end(kMissing)) continue;
    found.push_back(in_quotes(label));
  }
  if (found.empty()) return "";
  return concat(
      join(found, ", "), found.size() == 1 ? " is a label" : " are labels",
      " here, and what programs write for a missing value; if it is one, leave these rows "
      "out (in pandas: table.dropna(subset=[\"label\"]))");
}

std::string list_warning(const std::vector<std::string>& labels,
                         const ClassificationOptions& options) {
  const bool is_single = options.multi_label_separator.empty();
  const auto is_odd = [&](const std::string& label) {
    if (is_single) return label_list(label).has_value();
    return label.starts_with('[') != label.ends_with(']');
  };
  const auto found = std::find_if(labels.begin(), labels.end(), is_odd);
  if (found == labels.end()) return "";
  if (is_single) {
    return concat("the label ", in_quotes(*found), " is a list of labels, and one class here",
                  option_advice("; --multi-label SEP reads lists"));
  }
  return concat("the label ", in_quotes(*found), " is a part of a list that is not understood; ",
                "write [\"a\", \"b\"], or names between ",
                in_quotes(options.multi_label_separator));
}

Error unknown_labels_error(const std::string& where, const std::vector<std::string>& unknown,
                           const LabelMap& known, const TaskOptions& options) {
  const auto like = likeness(unknown, known.names());
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
      join(named, ", "), more,
      like ? concat("; ", *like, option_advice(", --normalize-labels joins them")) : "",
      option_advice(" (to count them as wrong: --ignore-unknown-labels)"));
}

void check_problem_options(const ClassificationOptions& options, ProblemType problem) {
  if (options.regression && !options.multi_label_separator.empty()) {
    throw usage_error("--regression and --multi-label exclude each other");
  }
  if (options.normalizes_labels && problem == ProblemType::regression) {
    throw usage_error("--normalize-labels is for labels; --regression learns numbers");
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
