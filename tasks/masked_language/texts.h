// Files of texts to tokenized samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

struct Texts {
  SampleSet set;         // examples: texts that are kept; its other counts: texts read
  int64_t read = 0;      // texts in the files; 0: they are another side's
  int64_t empty = 0;     // rows without a text, left out
  int64_t dropped = 0;   // unusable rows (--skip-bad-rows)
  int64_t repeated = 0;  // with the tokens of an earlier one: read_texts() counts those left out
};

// Returns the texts of all rows in order, as [CLS] text [SEP] cut to max_length tokens. Memory
// holds their tokens and a part of the files. `limit` > 0: reads the first `limit` texts.
// Error(data) if the files cannot be read as rows, if the column of the text is not clear, or if
// there is no text.
Texts read_texts(const std::vector<InputFile>& files, const TaskOptions& options,
                 const Tokenizer& tokenizer, int64_t max_length, int64_t limit);

// Returns the texts with these numbers, ascending. `truncated`, `lost` and other counts of the
// files are the whole set's.
SampleSet select_texts(const SampleSet& from, const std::vector<uint32_t>& numbers);

// The number of texts with the tokens of an earlier one.
int64_t repeated_texts(const SampleSet& set);

// The number of texts of `eval` with the tokens of a text of `train`.
int64_t trained_texts(const SampleSet& train, const SampleSet& eval);

// A line for the log, and warnings: many texts cut, many tokens unknown. `positions`: the
// largest max_length.
std::vector<std::string> describe_texts(std::string_view name, const Texts& texts,
                                        int64_t max_length, int64_t positions, bool distinct);

}  // namespace finetune
