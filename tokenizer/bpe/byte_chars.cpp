// The table of GPT-2's byte characters and its inverse.
#include "tokenizer/bpe/byte_chars.h"

#include <algorithm>
#include <cstddef>

#include "core/text/utf8.h"

namespace finetune::bpe {

constexpr std::array<char32_t, 256> kTable = [] {
  std::array<char32_t, 256> chars{};
  char32_t next = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool stays = (b >= 33 && b <= 126) || (b >= 161 && b != 173);
    chars[b] = stays ? char32_t(b) : next++;
  }
  return chars;
}();
const std::array<char32_t, 256> kByteChars = kTable;

std::optional<std::string> bytes_of(std::string_view piece) {
  std::string bytes;
  for (size_t at = 0; at < piece.size();) {
    const utf8::Decoded d = utf8::decode(piece, at);
    at += d.length;
    const auto found = d.c < 0x100 && kTable[d.c] == d.c
                           ? kTable.begin() + std::ptrdiff_t(d.c)
                           : std::find(kTable.begin(), kTable.end(), d.c);
    if (found == kTable.end()) return std::nullopt;
    bytes += char(found - kTable.begin());
  }
  return bytes;
}

}  // namespace finetune::bpe
