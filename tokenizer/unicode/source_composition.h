// Unicode's normalization form C, with the source bytes of each character.
// As in Hugging Face tokenizers 0.22.2: NFC of Unicode 9.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune::unicode {

// Composed text. Each byte has the source bytes [begin, end) of its character.
struct SourcedText {
  std::string text;
  std::vector<uint32_t> begins, ends;

  void clear();
  void append(char32_t c, uint32_t begin, uint32_t end);
};

// Returns whether NFC may change `text`. False means that it does not.
bool may_compose(std::string_view text);

// Appends NFC of `text` to `out`; sources count from `base`, the place of text's first byte. A
// character that several compose has the source of the first one: Hugging Face hands out the
// sources in order, by the number of characters that each step takes.
void compose_with_sources(std::string_view text, uint32_t base, SourcedText& out);

// Appends NFKD of `from`: parts of one character have its source. Marks are put in order, and the
// sources stay in theirs, as in Hugging Face.
void decompose_with_sources(const SourcedText& from, SourcedText& out);

}  // namespace finetune::unicode
