// Converts rows of texts to tokenized samples.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "data/columns/text_columns.h"
#include "model/config.h"
#include "tasks/task.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// The prefix of a column's name in --slice that asks whether its value is in the --seen-in files.
inline constexpr std::string_view kSeenPrefix = "seen:";

// options.rows with the names of the columns that the task reads: texts, slices, groups and, unless
// `without_label`, the label.
RowOptions row_options_of(const TaskOptions& options, bool without_label = false);

// The smallest max_length that leaves room for text beside the special tokens.
int64_t least_max_length(const SpecialTokens& special, bool pairs);

// Returns --max-length or, if it is 0, the default (128) limited to the model's positions.
// Error(usage) if it exceeds the positions or leaves no room for text; Error(model) for pairs with
// a model of one token type.
int64_t checked_max_length(int64_t asked, const EncoderConfig& config, const SpecialTokens& special,
                           bool pairs);

// Makes [CLS] text [SEP] or [CLS] text [SEP] pair [SEP], with the vocabulary's special tokens and
// at most max_length tokens: one sample per row, or windows (text_windows.h). In the order of the
// rows; the result does not depend on the number of threads.
SampleSet encode_rows(const Tokenizer& tokenizer, std::span<const RowValues> rows,
                      const TextColumns& columns, int64_t max_length,
                      const LongTexts& long_texts = {});

// One sum per example: equal for examples with the same tokens.
std::vector<TextSum> token_sums(const SampleSet& set);

}  // namespace finetune
