// Counts what is cut off texts, and describes it in the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"

namespace finetune {

// Counts over some rows.
struct CutTexts {
  int64_t max_length = 0, positions = 0;
  LongTexts long_texts;
  bool may_have_windows = true;

  int64_t rows = 0;
  int64_t tokens = 0;  // in all samples
  TextCounts counts{};
  int64_t split = 0, windows = 0, at_most = 0;  // rows with several; all; rows with the most

  void add(const SampleSet& set);
};

// "12 rows, 340 tokens (28.3 a row), 2 cut at 64 tokens (16.7 %)"; or counts of windows.
std::string describe_texts(const CutTexts& texts);
std::string describe_tokens(int64_t rows, int64_t tokens, int64_t truncated, int64_t max_length);
// A warning if more than a tenth of the texts are cut, else "".
std::string describe_cut_texts(std::string_view side, const CutTexts& texts);
// If more than a tenth of the tokens are unknown: how many, and what to do. Else "".
std::string describe_unknown_tokens(const CutTexts& texts);
// All warnings about cut texts and unknown tokens.
std::vector<std::string> text_warnings(std::string_view side, const CutTexts& texts);
// The length at which texts are cut: "64 tokens" or "16 windows of 64 tokens".
std::string cut_length(const CutTexts& texts);
// What the user can do: "a larger --max-windows keeps more".
std::string remedy(const CutTexts& texts);

}  // namespace finetune
