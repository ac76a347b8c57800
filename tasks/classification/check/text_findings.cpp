// Findings about texts: equal texts, texts that are in both files, and texts that are cut.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/text/text.h"
#include "tasks/classification/check/findings.h"
#include "tasks/classification/rows/row_labels.h"
#include "tasks/texts/cut_texts.h"
#include "tasks/texts/encoded_rows.h"

namespace finetune {
namespace {

constexpr size_t kLongestShown = 60;          // bytes of a text in a line
constexpr int64_t kFewOf = 1000;              // one row in this number is worth a warning
constexpr int64_t kUncut = int64_t{1} << 40;  // tokens

// The rows of a side, with equal texts next to each other, each group in the order of the file.
std::vector<uint32_t> by_text(const CheckedSide& side) {
  std::vector<uint32_t> order(side.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return side.input_sums[a] < side.input_sums[b]; });
  return order;
}

// A few such rows in a large file do no harm.
FindingLevel level_of(int64_t rows, int64_t of) {
  return rows * kFewOf >= of ? FindingLevel::warning : FindingLevel::note;
}

// How many of these rows have their most frequent label.
int64_t most_frequent(const CheckedSide& side, std::span<const uint32_t> rows) {
  std::unordered_map<std::string_view, int64_t> counts;
  int64_t most = 0;
  for (uint32_t row : rows) most = std::max(most, ++counts[side.labels[row]]);
  return most;
}

// The numbers of rows with equal texts: whether they differ, and squared distances to their mean.
struct NumberSpread {
  bool differ = false;
  double squares = 0;
};

NumberSpread spread_of(const CheckedSide& side, std::span<const uint32_t> rows) {
  NumberSpread out;
  const double first = *finite_number(side.labels[rows[0]]);
  double mean = 0;
  for (uint32_t row : rows) {
    const double number = *finite_number(side.labels[row]);
    out.differ = out.differ || number != first;
    mean += number / double(rows.size());
  }
  if (!out.differ) return out;  // avoids rounding errors
  for (uint32_t row : rows) {
    const double d = *finite_number(side.labels[row]) - mean;
    out.squares += d * d;
  }
  return out;
}

}  // namespace

void find_faulty_rows(const CheckedData& data, Findings& out) {
  const auto find = [&](const CheckedSide& side, const char* name) {
    if (side.faulty == 0) return;
    const bool dropped = data.options.rows.skip_bad_rows;
    out.push_back(
        {dropped ? FindingLevel::note : FindingLevel::error, "faulty-rows",
         concat(counted(side.faulty, "row", "rows"), " of ", name, " cannot be used",
                side.first_fault.empty() ? "" : concat(", the first is ", side.first_fault),
                dropped ? "; --skip-bad-rows drops them"
                        : "; mend them, or drop them with --skip-bad-rows"),
         side.faulty});
  };
  find(data.train, "training");
  if (data.has_eval) find(data.eval, "evaluation");
}

void find_equal_texts(const CheckedData& data, Findings& out) {
  const CheckedSide& side = data.train;
  const std::vector<uint32_t> order = by_text(side);
  int64_t repeated = 0, texts = 0, rows = 0, right = 0;
  double squares = 0;  // of numbers from each text's mean
  const bool of_numbers = data.problem == ProblemType::regression;
  uint32_t first = UINT32_MAX;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && side.input_sums[order[end]] == side.input_sums[order[begin]]) {
      ++end;
    }
    const std::span<const uint32_t> equal(&order[begin], end - begin);
    repeated += int64_t(equal.size()) - 1;
    bool contradict = false;
    if (of_numbers) {
      const NumberSpread spread = spread_of(side, equal);
      contradict = spread.differ;
      squares += spread.squares;
    } else {
      const int64_t most = most_frequent(side, equal);
      contradict = most < int64_t(equal.size());
      right += most;
    }
    if (contradict) {
      ++texts;
      rows += int64_t(equal.size());
      first = std::min(first, equal[0]);
    }
    begin = end;
  }
  const auto all = int64_t(side.size());
  if (texts > 0 && !of_numbers) {
    const int64_t wrong = all - right;
    out.push_back(
        {level_of(wrong, all), "contradictions",
         concat(counted(texts, "text has", "texts have"), " several labels, in ", rows,
                " rows, such as ", in_quotes(trim(side.texts[first]), kLongestShown),
                ": whatever a model says, ", counted(wrong, "row is wrong", "rows are wrong"), " (",
                percent(wrong, all), "); mend the labels, or add a column that tells them apart"),
         rows});
  }
  if (texts > 0 && of_numbers && std::isfinite(squares)) {
    const double least = squares / double(all);
    out.push_back(
        {FindingLevel::note, "contradictions",
         concat(counted(texts, "text has", "texts have"), " several numbers, in ", rows,
                " rows, such as ", in_quotes(trim(side.texts[first]), kLongestShown),
                ": whatever a model says, the MSE of all rows is at least ", format_measure(least)),
         rows});
  }
  if (10 * repeated >= all) {
    out.push_back({FindingLevel::note, "repeated-texts",
                   concat(counted(repeated, "row repeats", "rows repeat"),
                          " the text of an earlier one (", percent(repeated, all), ")"),
                   repeated});
  }
}

void find_overlap(const CheckedData& data, Findings& out) {
  if (!data.has_eval) return;
  const auto answer_to = [&](const CheckedSide& side, size_t i) {
    std::string answer(side.labels[i]);
    if (data.problem == ProblemType::regression) answer = format_number(*finite_number(answer));
    return std::pair(side.text_sums[i], std::move(answer));
  };
  std::unordered_set<uint64_t> trained;
  std::set<std::pair<uint64_t, std::string>> answers;
  for (size_t i = 0; i < data.train.size(); ++i) {
    trained.insert(data.train.text_sums[i]);
    answers.insert(answer_to(data.train, i));
  }
  int64_t rows = 0, same = 0;
  for (size_t i = 0; i < data.eval.size(); ++i) {
    if (!trained.contains(data.eval.text_sums[i])) continue;
    ++rows;
    same += answers.contains(answer_to(data.eval, i));
  }
  if (rows == 0) return;
  const auto all = int64_t(data.eval.size());
  out.push_back(
      {level_of(rows, all), "overlap",
       concat(counted(rows, "row", "rows"), " of the evaluation data (", percent(rows, all), ") ",
              rows == 1 ? "has a text" : "have texts", " that training has too, ", same,
              " with the same label: metrics count what is merely remembered; leave them "
              "out of one of the files"),
       rows});
}

void find_cut_texts(const CheckedData& data, const CheckedModel& model, Findings& out) {
  const auto find = [&](const CheckedSide& side, const char* name) {
    CutTexts texts{model.max_length, model.positions, data.options.long_texts};
    std::vector<RowValues> rows;
    for (size_t i = 0; i < side.size(); ++i) rows.push_back(side.values(i));
    texts.add(encode_rows(model.tokenizer, rows, side.text, model.max_length, texts.long_texts));
    if (std::string line = describe_unknown_tokens(texts); !line.empty()) {
      out.push_back(
          {FindingLevel::warning, "unknown-tokens", std::move(line), texts.counts.unknown});
    }
    if (texts.counts.truncated == 0) return;
    const SampleSet whole = encode_rows(model.tokenizer, rows, side.text, kUncut);
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < whole.samples.size(); ++i) lengths.push_back(whole.samples.length(i));
    std::sort(lengths.begin(), lengths.end());
    const int64_t enough = lengths[(99 * lengths.size() + 99) / 100 - 1];
    const bool longer_would_do =
        !texts.long_texts.in_windows && enough > model.max_length && enough <= model.positions;
    out.push_back(
        {FindingLevel::warning, "cut-texts",
         concat(counted(texts.counts.truncated, "text", "texts"), " of ", name, " (",
                percent(texts.counts.truncated, texts.rows), ") ",
                texts.counts.truncated == 1 ? "is" : "are", " cut at ", cut_length(texts),
                ", which loses ", percent(texts.counts.lost, texts.counts.text_tokens),
                " of all tokens; the longest has ", lengths.back(), ", ",
                longer_would_do
                    ? concat("--max-length ", enough,
                             " keeps 99 % of the texts whole, and --long-text windows reads more")
                    : remedy(texts)),
         texts.counts.truncated});
  };
  find(data.train, "training");
  if (data.has_eval) find(data.eval, "evaluation");
}

}  // namespace finetune
