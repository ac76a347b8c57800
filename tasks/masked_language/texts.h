// Reads files of texts as tokenized samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

struct Texts {
  SampleSet set;         // examples: texts kept; other counts: texts read
  int64_t read = 0;      // texts in the files; 0: read for another side
  int64_t empty = 0;     // rows without a text, left out
  int64_t dropped = 0;   // unusable rows (--skip-bad-rows)
  int64_t repeated = 0;  // with the tokens of an earlier text; from read_texts(): left-out ones
};

// Returns the texts of all rows in order, as [CLS] text [SEP] cut to max_length tokens. Their
// tokens and a part of the files are in memory. `limit` > 0: reads only the first `limit` texts.
// Error(data) if the files cannot be read as rows, if it is unclear which column has the text, or
// if there is no text.
Texts read_texts(const std::vector<InputFile>& files, const TaskOptions& options,
                 const Tokenizer& tokenizer, int64_t max_length, int64_t limit);

// Returns the texts with these numbers, ascending. `truncated`, `lost` and other counts of the
// files stay those of the whole set.
SampleSet select_texts(const SampleSet& from, const std::vector<uint32_t>& numbers);

// The number of texts whose tokens an earlier text has, too.
int64_t repeated_texts(const SampleSet& set);

// The number of texts of `eval` whose tokens a text of `train` has, too.
int64_t trained_texts(const SampleSet& train, const SampleSet& eval);

// Lines for the log: a summary, and warnings about many cut texts or many unknown tokens.
// `positions`: the maximum of max_length.
std::vector<std::string> describe_texts(std::string_view name, const Texts& texts,
                                        int64_t max_length, int64_t positions, bool distinct);

}  // namespace finetune
