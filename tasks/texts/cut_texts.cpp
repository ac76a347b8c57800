// Counts cut texts and windows, and describes them.
#include "tasks/texts/cut_texts.h"

#include <algorithm>

#include "core/text/counted.h"
#include "core/text/text.h"

namespace finetune {

void CutTexts::add(const SampleSet& set) {
  rows += set.examples;
  counts.add_counts(set);
  tokens += int64_t(set.samples.ids.size());
  windows += set.samples.size();
  for (size_t row = 1; row < set.first_window.size(); ++row) {
    const int64_t of_row = set.first_window[row] - set.first_window[row - 1];
    split += of_row > 1;
    at_most += of_row == long_texts.most_windows;
  }
}

namespace {

std::string share(int64_t part, int64_t all) {
  return format_fixed(100.0 * double(part) / double(std::max<int64_t>(1, all)), 1) + " %";
}

// Whether most cut texts are cut by the room for the shorter text, not by --max-windows.
bool is_cut_inside(const CutTexts& texts) {
  return texts.long_texts.in_windows && 2 * texts.at_most < texts.counts.truncated;
}

}  // namespace

std::string describe_tokens(int64_t rows, int64_t tokens, int64_t truncated, int64_t max_length) {
  double count = double(std::max<int64_t>(1, rows));
  return concat(counted(tokens, "token"), " (", format_fixed(double(tokens) / count, 1),
                " a row), ", truncated, " cut at ", max_length, " tokens (",
                format_fixed(100.0 * double(truncated) / count, 1), " %)");
}

std::string describe_texts(const CutTexts& texts) {
  if (!texts.long_texts.in_windows) {
    return describe_tokens(texts.rows, texts.tokens, texts.counts.truncated, texts.max_length);
  }
  std::string line =
      concat(counted(texts.windows, "window"), " of up to ", counted(texts.max_length, "token"),
             ", ", counted(texts.tokens, "token"), " in all; ",
             counted(texts.split, "text has", "texts have"), " several windows");
  if (texts.counts.truncated > 0)
    line += concat(", ", texts.counts.truncated, " cut at ", cut_length(texts));
  return line;
}

std::string describe_cut_texts(std::string_view side, const CutTexts& texts) {
  if (texts.counts.truncated * 10 <= texts.rows) return {};
  return concat("warning: ", side, ": ", share(texts.counts.truncated, texts.rows),
                " of the texts are cut at ", cut_length(texts), ", which loses ",
                share(texts.counts.lost, texts.counts.text_tokens), " of all tokens; ",
                remedy(texts));
}

std::string describe_unknown_tokens(const CutTexts& texts) {
  if (texts.counts.unknown * 10 <= texts.counts.text_tokens) return {};
  return concat(share(texts.counts.unknown, texts.counts.text_tokens),
                " of the tokens are unknown to the model's vocabulary; choose a model that knows ",
                "the language and the writing of the texts");
}

std::vector<std::string> text_warnings(std::string_view side, const CutTexts& texts) {
  std::vector<std::string> lines;
  if (std::string line = describe_cut_texts(side, texts); !line.empty()) {
    lines.push_back(std::move(line));
  }
  if (const std::string line = describe_unknown_tokens(texts); !line.empty()) {
    lines.push_back(concat("warning: ", side, ": ", line));
  }
  return lines;
}

std::string remedy(const CutTexts& texts) {
  const bool is_longest = texts.max_length >= texts.positions;
  const std::string longer = concat("--max-length, up to ", texts.positions, ", keeps more");
  if (is_cut_inside(texts)) return is_longest ? "the model has no room for more" : longer;
  if (texts.long_texts.in_windows) return "a larger --max-windows keeps more";
  if (!texts.may_have_windows) return is_longest ? "rows of shorter texts keep more" : longer;
  if (is_longest) return "--long-text windows keeps more";
  return longer + ", and so does --long-text windows";
}

std::string cut_length(const CutTexts& texts) {
  std::string tokens = counted(texts.max_length, "token");
  if (!texts.long_texts.in_windows) return tokens;
  if (is_cut_inside(texts)) return concat("half of ", tokens, ", a pair's shorter text");
  return concat(counted(texts.long_texts.most_windows, "window"), " of ", tokens);
}

}  // namespace finetune
