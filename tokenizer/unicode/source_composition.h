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

// Appends NFC of `text` to `out`. `base` is the source offset of text's first byte. A composed
// character has the source of its first part: Hugging Face assigns the sources in order, by the
// number of characters that each step consumes.
void compose_with_sources(std::string_view text, uint32_t base, SourcedText& out);

// Appends NFKD of `from`. All parts of a character have its source. Marks are sorted, but the
// sources keep their order, as in Hugging Face.
void decompose_with_sources(const SourcedText& from, SourcedText& out);

}  // namespace finetune::unicode
