// Encodes text that may not be UTF-8 with a tokenizer for valid text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text/utf8.h"
#include "tokenizer/tokenizer.h"

namespace finetune {

// Calls encode(valid text, out) and appends its tokens. Bytes that are not UTF-8 become U+FFFD;
// the tokens' offsets are bytes of the original text.
template <typename Encode>
void encode_as_utf8(std::string_view text, TokenBuffer& out, Encode&& encode) {
  FINETUNE_CHECK(text.size() < UINT32_MAX);
  if (utf8::is_valid(text)) return encode(text, out);
  std::string valid;
  std::vector<uint32_t> source;  // for each byte of `valid` its character's place in `text`
  for (size_t at = 0; at < text.size();) {
    const utf8::Decoded d = utf8::decode(text, at);
    utf8::append(d.c, valid);
    source.resize(valid.size(), uint32_t(at));
    at += d.length;
  }
  source.push_back(uint32_t(text.size()));
  const size_t before = out.size();
  encode(valid, out);
  for (size_t i = before; i < out.size(); ++i) {
    out.begins[i] = source[out.begins[i]];
    out.ends[i] = source[out.ends[i]];
  }
}

}  // namespace finetune
