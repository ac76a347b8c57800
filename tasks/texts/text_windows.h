// Cuts a row's texts into samples: one, or several windows of a text that is too long.
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

// Cuts a row whose texts have these lengths into samples, at least one. `second`: of a pair.
// `budget`: the tokens of a sample without special tokens. Returns the number of tokens that are in
// no sample.
//
// Cut: texts are cut at the end, in a pair the longer text first. In windows: neighbours share
// min(stride, window / 2) tokens, and the last window ends with the text. In a pair the longer text
// has windows (if equal: the second), each with the other text, which is cut to half of the room. A
// single window is the same as cutting.
int64_t cut_to_windows(int64_t first, std::optional<int64_t> second, int64_t budget,
                       const LongTexts& long_texts, std::vector<TextWindow>& out);

}  // namespace finetune
