// Findings about labels: too few, too many, unknown, rare, or shifted.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/text/text.h"
#include "data/columns/label_column.h"
#include "tasks/classification/check/findings.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/target_scale.h"

namespace finetune {
namespace {

constexpr int64_t kFewRows = 10;        // a class with fewer rows teaches little
constexpr size_t kMostNamed = 5;        // labels named in a line
constexpr double kLopsidedShare = 0.9;  // with such a label accuracy says little

std::vector<int64_t> rows_of_labels(const CheckedData& data, const CheckedSide& side,
                                    int64_t* unknown = nullptr) {
  std::vector<int64_t> counts(size_t(data.labels.size()));
  for (std::string_view value : side.labels) {
    for_each_label(value, data.problem, data.options, [&](std::string_view name) {
      const int32_t id = data.labels.find(name);
      if (id >= 0)
        ++counts[size_t(id)];
      else if (unknown)
        ++*unknown;
    });
  }
  return counts;
}

std::string named(const std::vector<std::string>& labels) {
  std::vector<std::string> quoted;
  for (const std::string& label : labels) quoted.push_back(in_quotes(label));
  return join_some(quoted, kMostNamed);
}

void find_unknown_labels(const CheckedData& data, Findings& out) {
  std::map<std::string_view, int64_t> unknown;
  int64_t rows = 0;
  for (std::string_view value : data.eval.labels) {
    bool known = true;
    for_each_label(value, data.problem, data.options, [&](std::string_view name) {
      if (data.labels.find(name) >= 0) return;
      ++unknown[name];
      known = false;
    });
    rows += !known;
  }
  if (rows == 0) return;
  std::vector<std::string> names;
  for (const auto& [name, count] : unknown) names.emplace_back(name);
  const bool ignored = data.options.ignore_unknown_labels;
  const auto like = likeness(names, data.labels.names());
  out.push_back(
      {ignored ? FindingLevel::warning : FindingLevel::error, "unknown-labels",
       concat(counted(rows, "row", "rows"), " of the evaluation data (",
              percent(rows, int64_t(data.eval.size())), ") ",
              rows == 1 ? "has a label" : "have labels", " that training has not: ", named(names),
              like ? concat("; ", *like, ", --normalize-labels joins them") : "",
              ignored ? (rows == 1 ? "; it counts as wrong" : "; they count as wrong")
                      : "; add rows of them, or --ignore-unknown-labels"),
       rows});
}

bool labels_are_numbers(const LabelMap& labels) {
  return std::all_of(labels.names().begin(), labels.names().end(),
                     [](const std::string& name) { return finite_number(name).has_value(); });
}

// Returns whether all rows have the same number.
bool find_constant_numbers(const CheckedData& data, Findings& out) {
  const auto& labels = data.train.labels;
  const bool constant = std::all_of(labels.begin(), labels.end(), [&](std::string_view value) {
    return *finite_number(value) == *finite_number(labels.front());
  });
  if (!constant) return false;
  out.push_back(
      {FindingLevel::warning, "one-value",
       concat("every row has the number ", trim(labels.front()), ": there is nothing to learn"),
       int64_t(labels.size())});
  return true;
}

// Training and models compute in single precision.
void find_large_numbers(const CheckedData& data, Findings& out) {
  int64_t rows = 0;
  for (const CheckedSide* side : {&data.train, &data.eval}) {
    rows += std::count_if(side->labels.begin(), side->labels.end(), [](std::string_view label) {
      return std::abs(*finite_number(label)) > kMostNumber;
    });
  }
  if (rows == 0) return;
  out.push_back({FindingLevel::error, "large-numbers",
                 concat(counted(rows, "row has a number", "rows have numbers"),
                        " beyond 1e30, of which training takes none: divide all by a constant"),
                 rows});
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const CheckedSide& side) {
  Moments out;
  const auto rows = double(side.size());
  for (std::string_view label : side.labels) out.mean += *finite_number(label) / rows;
  for (std::string_view label : side.labels) {
    const double d = *finite_number(label) - out.mean;
    out.variance += d * d / rows;
  }
  return out;
}

void find_coarse_numbers(const CheckedData& data, Findings& out) {
  const Moments train = moments_of(data.train);
  const std::string fault = coarse_numbers(train.mean, std::sqrt(train.variance));
  if (fault.empty()) return;
  out.push_back({FindingLevel::warning, "coarse-numbers", fault, int64_t(data.train.size())});
}

// Uses Welch's test. Small shifts relative to the standard deviation are not reported.
void find_number_shift(const CheckedData& data, Findings& out) {
  constexpr double kSurely = 4, kNoticeable = 0.2;  // standard errors, standard deviations
  constexpr double kRounding = 1e-9;                // of a mean
  const Moments train = moments_of(data.train), eval = moments_of(data.eval);
  const double shift = std::abs(eval.mean - train.mean);
  const double error = std::sqrt(train.variance / double(data.train.size()) +
                                 eval.variance / double(data.eval.size()));
  if (shift <= kSurely * error || shift <= kNoticeable * std::sqrt(train.variance)) return;
  if (!(shift > kRounding * (std::abs(train.mean) + std::abs(eval.mean)))) return;
  const auto written = [](double value) { return format_measure(value); };
  out.push_back(
      {FindingLevel::warning, "label-shift",
       concat("numbers of the evaluation data lie elsewhere: their mean is ", written(eval.mean),
              ", that of training ", written(train.mean), " (standard deviation ",
              written(std::sqrt(train.variance)), "); draw both from one file, --eval-fraction"),
       int64_t(data.eval.size())});
}

}  // namespace

void find_label_faults(const CheckedData& data, Findings& out) {
  const auto rows = int64_t(data.train.size());
  if (data.problem == ProblemType::regression) {
    find_large_numbers(data, out);
    if (!find_constant_numbers(data, out)) find_coarse_numbers(data, out);
    return;
  }
  const int64_t labels = data.labels.size();
  if (labels < (data.problem == ProblemType::single_label ? 2 : 1)) {
    out.push_back({FindingLevel::error, "one-class",
                   concat("column ", in_quotes(data.options.label_column), " has ",
                          counted(labels, "class", "classes"),
                          "; training needs at least two; is it the right --label-column?"),
                   labels});
    return;
  }
  if (data.has_eval) find_unknown_labels(data, out);
  if (data.problem != ProblemType::single_label) return;
  const LabelFinding looks = look_at_labels(data.labels.names(), rows);
  if (looks.is_error) {
    out.push_back({FindingLevel::error, "amounts",
                   concat("column ", in_quotes(data.options.label_column), " ", looks.text),
                   labels});
    return;
  }
  const bool numbers = labels_are_numbers(data.labels);
  if (2 * labels > rows) {
    out.push_back(
        {FindingLevel::warning, "class-per-row",
         concat(labels, " classes in ", counted(rows, "row", "rows"), ", nearly one each: ",
                numbers ? "if these are amounts or scores, give --regression"
                        : "is it the right --label-column?"),
         labels});
  } else if (numbers && labels > 20) {
    out.push_back(
        {FindingLevel::note, "numbers",
         concat("the ", labels, " classes are all numbers: if they are amounts or scores ",
                "and no codes, give --regression"),
         labels});
  }
}

void find_rare_labels(const CheckedData& data, Findings& out) {
  if (data.problem == ProblemType::regression) return;
  const std::vector<int64_t> counts = rows_of_labels(data, data.train);
  std::vector<std::string> rare;
  int64_t single = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] >= kFewRows) continue;
    rare.push_back(data.labels.names()[i]);
    single += counts[i] == 1;
  }
  const auto rows = int64_t(data.train.size());
  if (!rare.empty() && 2 * data.labels.size() <= rows) {
    out.push_back({FindingLevel::warning, "rare-labels",
                   concat(rare.size(), " of ", data.labels.size(), " classes ",
                          rare.size() == 1 ? "has" : "have", " fewer than ", kFewRows, " rows",
                          single > 0 ? concat(", ", single, " of them one row") : "", ": ",
                          named(rare), "; join them to others, or add rows"),
                   int64_t(rare.size())});
  }
  if (data.problem != ProblemType::single_label || counts.size() < 2) return;
  const auto most = std::max_element(counts.begin(), counts.end());
  if (double(*most) < kLopsidedShare * double(rows)) return;
  out.push_back({FindingLevel::warning, "one-large-class",
                 concat(percent(*most, rows), " of the rows are ",
                        in_quotes(data.labels.names()[size_t(most - counts.begin())]),
                        ": accuracy says little; look at eval_f1_macro, --best-metric f1_macro, ",
                        "--class-weights balanced"),
                 *most});
}

void find_similar_labels(const CheckedData& data, Findings& out) {
  if (data.problem == ProblemType::regression) return;
  std::vector<std::string> names = data.labels.names();
  const std::vector<std::string> unknown = unknown_labels(data);
  names.insert(names.end(), unknown.begin(), unknown.end());
  int64_t count = 0;
  const auto groups = alike_labels(names);
  for (const auto& group : groups) count += int64_t(group.size());
  if (count > 0) {
    out.push_back(
        {FindingLevel::warning, "similar-labels",
         concat(counted(count, "class", "classes"),
                " differ only in case, white space, invisible characters, composed letters or zero "
                "decimals: ",
                named_alike(groups), "; --normalize-labels joins them"),
         count});
  }
  if (std::string fault = missing_warning(data.labels.names()); !fault.empty()) {
    out.push_back({FindingLevel::warning, "missing-labels", std::move(fault), 1});
  }
  if (std::string fault = list_warning(names, data.options); !fault.empty()) {
    out.push_back({FindingLevel::warning, "label-lists", std::move(fault), 1});
  }
  if (const int64_t joined = data.joined.spellings(); joined > 0) {
    out.push_back({FindingLevel::note, "joined-labels", data.joined.describe(), joined});
  }
}

void find_label_shift(const CheckedData& data, Findings& out) {
  if (!data.has_eval) return;
  if (data.problem == ProblemType::regression) return find_number_shift(data, out);
  int64_t unknown = 0;  // rows with unknown labels
  const std::vector<int64_t> train = rows_of_labels(data, data.train),
                             eval = rows_of_labels(data, data.eval, &unknown);
  const auto n = double(data.train.size()), m = double(data.eval.size());
  const double all_eval = std::accumulate(eval.begin(), eval.end(), double(unknown));
  double distance = double(unknown) / m / 2, by_chance = 0, largest = 0;
  size_t at = 0;
  for (size_t i = 0; i < train.size(); ++i) {
    const double p = double(train[i]) / n, q = double(eval[i]) / m;
    const double all = double(train[i] + eval[i]) / (n + m);
    distance += std::abs(p - q) / 2;
    // By chance |p - q| has the mean of the absolute value of a normal variable.
    by_chance += std::sqrt(2 / 3.141592653589793 * all * (1 - all) * (1 / n + 1 / m)) / 2;
    if (std::abs(p - q) <= largest) continue;
    largest = std::abs(p - q);
    at = i;
  }
  // Rows may have several labels: divide by the labels per row, averaged over both files.
  const double labels_a_row =
      (std::accumulate(train.begin(), train.end(), 0.0) / n + all_eval / m) / 2;
  distance /= labels_a_row;
  by_chance /= labels_a_row;
  if (distance < 2 * by_chance + 0.02) return;
  out.push_back(
      {FindingLevel::warning, "label-shift",
       concat("labels are distributed otherwise in the evaluation data: ",
              format_fixed(100 * distance, 1),
              data.problem == ProblemType::multi_label ? " % of the labels" : " % of the rows",
              " would have to change (", format_fixed(100 * by_chance, 1),
              " % by chance), most of all ", in_quotes(data.labels.names()[at]), " (",
              percent(train[at], int64_t(n)), ", there ", percent(eval[at], int64_t(m)),
              "); draw both from one file, --eval-fraction"),
       int64_t(std::lround(distance * all_eval))});
}

std::string percent(int64_t count, int64_t of) {
  return concat(format_fixed(100.0 * double(count) / double(std::max<int64_t>(1, of)), 1), " %");
}

}  // namespace finetune
