// The steps that AlbertTokenizer applies to a text before the sentencepiece library sees it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

struct SentencePieceOptions {
  bool lowercase = true;
  bool remove_space = true;   // white space trimmed and collapsed, `` and '' become "
  bool keep_accents = false;  // false: NFKD without combining characters
};

// A prepared text; each byte records the source bytes that it stands for.
struct PreparedText {
  std::string text;
  std::vector<uint32_t> begins, ends;  // source bytes, one pair for each byte of `text`
};

void prepare(std::string_view text, uint32_t begin, uint32_t end,
             const SentencePieceOptions& options, PreparedText& out);

}  // namespace finetune
