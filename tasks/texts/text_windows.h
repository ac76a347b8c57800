// How a row's texts are cut to samples: one, or windows of a text that is too long for one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tasks/task.h"
#include "tasks/texts/encoded_rows.h"
#include "tokenizer/encoding.h"

namespace finetune {

// The tokens of one sample.
struct TextWindow {
  TokenRange first, second;  // of the row's texts
};

// Cuts a row whose texts have these lengths into samples, at least one; `second`: of a pair.
// `budget`: the tokens of a sample without special tokens. Returns the number of tokens that no
// sample has.
//
// Cut: at the end, of a pair the longer text first. In windows: neighbours share
// min(stride, window / 2) tokens, and the last one ends with the text. Of a pair the longer text
// has windows (equal ones: the second), each with the other text, which is cut at half of what
// there is room for. One window is what cutting leaves.
int64_t cut_to_windows(int64_t first, std::optional<int64_t> second, int64_t budget,
                       const LongTexts& long_texts, std::vector<TextWindow>& out);

}  // namespace finetune
