// Rows of texts as tokenized samples.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/columns/text_columns.h"
#include "model/config.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// Before the name of a column in --slice: whether its value was in the files of --seen-in.
inline constexpr std::string_view kSeenPrefix = "seen:";

// options.rows with the names of the columns that the task reads: texts, slices and groups, and
// unless `without_label` the label.
RowOptions row_options_of(const TaskOptions& options, bool without_label = false);

// The least max_length that leaves room for text beside the special tokens.
int64_t least_max_length(const SpecialTokens& special, bool pairs);

// Returns --max-length or, if that is 0, the default (128) limited to the model's positions.
// Error(usage) if it is beyond the positions or leaves no room for text, Error(model) for pairs
// with a model of one token type.
int64_t checked_max_length(int64_t asked, const EncoderConfig& config, const SpecialTokens& special,
                           bool pairs);

// Makes [CLS] text [SEP] or [CLS] text [SEP] pair [SEP], with the vocabulary's special tokens, of
// at most max_length tokens: one sample a row, or windows (text_windows.h). In the order of the
// rows, on all threads; the result does not depend on their number.
SampleSet encode_rows(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                      const TextColumns& columns, int64_t max_length,
                      const LongTexts& long_texts = {});

// One for each example: equal for examples with the same tokens.
std::vector<TextSum> token_sums(const SampleSet& set);

}  // namespace finetune
