// Counts cut texts and windows, and describes them.
#include "tasks/classification/rows/cut_texts.h"

#include <algorithm>

#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {

void CutTexts::add(const SampleSet& set) {
  rows += set.examples;
  cut += set.truncated;
  tokens += int64_t(set.samples.ids.size());
  lost += set.lost;
  windows += set.samples.size();
  for (size_t row = 1; row < set.first_window.size(); ++row) {
    split += set.first_window[row] - set.first_window[row - 1] > 1;
  }
}

std::string describe_tokens(int64_t rows, int64_t tokens, int64_t truncated, int64_t max_length) {
  double count = double(std::max<int64_t>(1, rows));
  return concat(counted(tokens, "token"), " (", format_fixed(double(tokens) / count, 1),
                " a row), ", truncated, " cut at ", max_length, " tokens (",
                format_fixed(100.0 * double(truncated) / count, 1), " %)");
}

std::string describe_texts(const CutTexts& texts) {
  if (!texts.long_texts.in_windows) {
    return describe_tokens(texts.rows, texts.tokens, texts.cut, texts.max_length);
  }
  std::string line =
      concat(counted(texts.windows, "window"), " of up to ", counted(texts.max_length, "token"),
             ", ", counted(texts.tokens, "token"), " in all; ",
             counted(texts.split, "text has", "texts have"), " several windows");
  if (texts.cut > 0) line += concat(", ", texts.cut, " cut at ", cut_length(texts));
  return line;
}

std::string describe_cut_texts(std::string_view side, const CutTexts& texts) {
  if (texts.cut * 10 <= texts.rows) return {};
  const double share = double(texts.cut) / double(texts.rows);
  const double lost = double(texts.lost) / double(texts.lost + texts.tokens);
  return concat("warning: ", side, ": ", format_fixed(100 * share, 1),
                " % of the texts are cut at ", cut_length(texts), ", which loses ",
                format_fixed(100 * lost, 1), " % of all tokens; ", remedy(texts));
}

std::string remedy(const CutTexts& texts) {
  if (texts.long_texts.in_windows) return "a larger --max-windows keeps more";
  if (texts.max_length >= texts.positions) return "--long-text windows keeps more";
  return concat("--max-length, up to ", texts.positions,
                ", keeps more, and so does --long-text windows");
}

std::string cut_length(const CutTexts& texts) {
  const std::string tokens = counted(texts.max_length, "token");
  if (!texts.long_texts.in_windows) return tokens;
  return concat(counted(texts.long_texts.most_windows, "window"), " of ", tokens);
}

}  // namespace finetune
