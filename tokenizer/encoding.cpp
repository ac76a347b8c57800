// Truncation of pairs, windows, [CLS] and [SEP], byte to code-point offsets.
#include "tokenizer/encoding.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/utf8.h"

namespace finetune {

PairLengths truncate_longest_first(int64_t first, int64_t second, int64_t budget) {
  FINETUNE_CHECK(budget >= 0);
  if (first + second <= budget) return {first, second};
  int64_t shorter = std::min(first, second);
  if (shorter > budget / 2) shorter = budget / 2;
  return first <= second ? PairLengths{shorter, budget - shorter}
                         : PairLengths{budget - shorter, shorter};
}

std::vector<TokenRange> windows(int64_t length, int64_t window, int64_t overlap) {
  FINETUNE_CHECK(0 <= overlap && overlap < window);
  std::vector<TokenRange> out;
  for (int64_t begin = 0;; begin += window - overlap) {
    int64_t end = std::min(begin + window, length);
    out.push_back({begin, end});
    if (end == length) return out;
  }
}

uint32_t append_single(const SpecialTokens& special, const int32_t* a, int64_t a_length,
                       std::vector<int32_t>& ids) {
  ids.push_back(special.cls);
  ids.insert(ids.end(), a, a + a_length);
  ids.push_back(special.sep);
  return uint32_t(a_length + special.around_single());
}

uint32_t append_pair(const SpecialTokens& special, const int32_t* a, int64_t a_length,
                     const int32_t* b, int64_t b_length, std::vector<int32_t>& ids) {
  uint32_t second = append_single(special, a, a_length, ids);
  for (int32_t i = 1; i < special.separators; ++i, ++second) ids.push_back(special.sep);
  ids.insert(ids.end(), b, b + b_length);
  ids.push_back(special.sep);
  return second;
}

CodePointIndex::CodePointIndex(std::string_view text) {
  ascii_ = std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; });
  if (ascii_) return;
  index_.reserve(text.size() + 1);
  uint32_t count = 0;
  for (size_t i = 0; i < text.size();) {
    uint32_t length = utf8::decode(text, i).length;
    index_.insert(index_.end(), length, count++);
    i += length;
  }
  index_.push_back(count);
}

uint32_t CodePointIndex::operator()(uint32_t byte_offset) const {
  return ascii_ ? byte_offset : index_[byte_offset];
}

}  // namespace finetune
