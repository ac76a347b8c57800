// From token sequences to model inputs: special tokens, truncation, overlapping windows.
// Semantics: Hugging Face tokenizers 0.22.2 with TemplateProcessing of BERT.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace finetune {

// How many tokens of A and B remain if both together may have `budget` tokens, without special
// tokens.
struct PairLengths {
  int64_t first = 0;
  int64_t second = 0;
};
// "longest_first": the longer part is cut first. If both must be cut, the shorter one keeps budget
// / 2 and the longer one the rest; on a tie A counts as the shorter one.
PairLengths truncate_longest_first(int64_t first, int64_t second, int64_t budget);

// Cuts a second text of `length` tokens into windows of at most `window` tokens that overlap by
// `overlap` ("only_second" with return_overflowing_tokens), as token ranges [begin, end). The last
// window is the first one that reaches the end; an empty text has one empty window. Requires 0 <=
// overlap < window.
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;
};
std::vector<TokenRange> windows(int64_t length, int64_t window, int64_t overlap);

// Appends [CLS] a [SEP], or [CLS] a [SEP] b [SEP], to `ids`; a and b are token ranges. RoBERTa's
// pairs have a second [SEP] before b. Returns the position, counted from the first appended token,
// at which the second text begins: the number of appended tokens if there is no second text.
uint32_t append_single(const SpecialTokens& special, const int32_t* a, int64_t a_length,
                       std::vector<int32_t>& ids);
uint32_t append_pair(const SpecialTokens& special, const int32_t* a, int64_t a_length,
                     const int32_t* b, int64_t b_length, std::vector<int32_t>& ids);

// Converts byte offsets of one text to code-point indices, which users' files contain.
class CodePointIndex {
 public:
  explicit CodePointIndex(std::string_view text);
  uint32_t operator()(
      uint32_t byte_offset) const;  // 0..size; inside a code point: that code point's index

 private:
  bool ascii_ = true;
  std::vector<uint32_t> index_;  // per byte; empty if the text is ASCII
};

}  // namespace finetune
